# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as in the command:
"""The journal of a job: which objects are done, so that a second call continues.

    "warpcipher-journal-1\n", then parts, each: u64, big-endian, of the bytes that follow, and a
    file of the job's format under its key, whose plaintext is a JSON array of finished objects:
    [name, state of the source, mode, modified, plain bytes, sealed bytes, head, holes]

or an object with `notes` of the job. A later line replaces an earlier one of the same name. The
context of a part: the job's context, 00, "warpcipher.job.v1/journal", 00, and the job's name:
no part of another job passes, and what it says of heads may go into a manifest. A local journal
grows by a part at a time; a kill leaves at most a part that is not whole, which the next run cuts
off. An object of a store cannot grow: it is written again, whole, as long as that takes a small
share of the time.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import warpcipher as wc

from .. import stores
from ..formats import FormatError
from ..formats.sealed import Sealed
from ..stores.store import shown

MAGIC = b"warpcipher-journal-1\n"
LABEL = b"\0warpcipher.job.v1/journal\0"
LEAST_SECONDS = 1.0
"""Between two parts; and, for an object of a store, at least SHARE times the time of the last."""
SHARE = 20
PART = 20_000
"""Lines of a part at most."""
CACHE = 16 << 10
"""KiB of the table of names that stay in memory."""


class JournalError(ValueError):
    """A journal that is not one of this job."""


class Done(NamedTuple):
    """A finished object: a line of the journal. state: of the source; size, sealed: bytes of
    plaintext and of the encrypted form; head: of the encrypted form, holes: of the plaintext, as in
    the manifest."""

    name: str
    state: str
    mode: int
    modified: int
    size: int
    sealed: int
    head: str
    holes: bool = False


class Journal:
    """The finished objects of a job, in a table that the system keeps in a file without a name. It
    is kept in `place`, a local path or the URL of an object; None: nowhere."""

    def __init__(self, place: str | None, sealed: Sealed, job: str, *, fresh: bool = False) -> None:
        """Reads it; nothing is written before `begin`. job: its name, which a second call gives
        again. fresh: what an earlier run left is dropped. Raises JournalError, OSError."""
        self._fresh = fresh
        self._place, self._shown = place, shown(place or "")
        self._sealed = sealed
        self._context = sealed.options.context + LABEL + os.fsencode(job)
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute(f"PRAGMA cache_size = -{CACHE}")
        self._table.execute(
            "CREATE TABLE done (name BLOB PRIMARY KEY, state TEXT, mode INT, modified INT,"
            " size INT, sealed INT, head TEXT, holes INT) WITHOUT ROWID"
        )
        self._new: list[Done | dict[str, str]] = []
        self.notes: dict[str, str] = {}
        """Notes of the job itself, by name. See `note`."""
        self._file: IO[bytes] | None = None
        self._end = len(MAGIC)
        self._next = time.monotonic() + LEAST_SECONDS
        self.found = False
        """Whether an earlier run left one."""
        if place is not None:
            try:
                with contextlib.suppress(FileNotFoundError):
                    self._file = self._open(place)
                if self._file is not None:
                    self.found = self._load(self._file)
            except BaseException:
                self.close()
                raise

    def begin(self) -> None:
        """Makes the journal where an earlier run left none, so that a run that is killed has one
        from its beginning on. Raises JournalError, OSError."""
        if self._place is None or self.found:
            return
        if self._file is None:
            self._file = self._open(self._place, os.O_CREAT | os.O_EXCL)
        self._file.seek(0)
        self._file.write(MAGIC)
        self._write()

    def _open(self, place: str, flags: int = 0) -> IO[bytes]:
        if not stores.is_url(place):
            try:
                descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
            except FileExistsError:
                raise JournalError(f"{place}: another run writes this journal now") from None
            file = os.fdopen(descriptor, "r+b")
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                raise JournalError(f"{place}: another run writes this journal now") from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
                    raise
            return file
        copy = self._file = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the journal
        with contextlib.suppress(FileNotFoundError), stores.open_object(place) as source:
            while data := source.read(1 << 20):
                copy.write(data)
        copy.seek(0)
        return copy

    def _load(self, file: IO[bytes]) -> bool:
        """Takes what an earlier run left, except for a part that is not whole."""
        begin = file.read(len(MAGIC))
        if begin != MAGIC and not MAGIC.startswith(begin):
            raise JournalError(
                f"{self._shown} is not a journal of a job: name another with --journal"
            )
        end = len(MAGIC) if begin == MAGIC else 0
        size = end if self._fresh else file.seek(0, os.SEEK_END)
        while end and end + 8 <= size:
            file.seek(end)
            length = int.from_bytes(file.read(8), "big")
            last = end + 8 + length
            if not length or last > size:
                break
            # A loss of power may damage the last part. Earlier ones show that the key fits.
            data = file.read(length)
            may_be_cut = last == size and (end > len(MAGIC) or not any(data))
            if not self._take(data, may_be_cut=may_be_cut):
                break
            end = last
        self._end = max(end, len(MAGIC))  # where the next part is written, and ends the file
        return end > len(MAGIC)

    def _take(self, data: bytes, *, may_be_cut: bool) -> bool:
        """Takes a part. False for a damaged one that may be cut off."""
        if not self._sealed.can_open:
            raise JournalError(
                "public keys cannot open the journal of an earlier run: add -i FILE of one of its "
                "recipients, or name another with --journal"
            )
        try:
            text = self._sealed.open_text(data, self._context)
            lines = [
                fields if isinstance(fields, dict) else Done(*fields) for fields in json.loads(text)
            ]
        except (wc.InvalidTag, FormatError):
            if may_be_cut:
                return False
            raise JournalError(
                f"{self._shown} is not the journal of this job with this key and context, or of "
                "other inputs, or was damaged: name another with --journal"
            ) from None
        self._insert(lines)
        return True

    def _insert(self, lines: list[Done | dict[str, str]]) -> None:
        for line in lines:
            if isinstance(line, dict):
                self.notes |= line
        with self._table:
            self._table.execute("BEGIN")
            self._table.executemany(
                "INSERT OR REPLACE INTO done VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (os.fsencode(line.name), *line[1:])
                    for line in lines
                    if not isinstance(line, dict)
                ],
            )

    def keep(self, there: Iterable[tuple[str, int]], *, sealed: bool) -> None:
        """Forgets the objects whose outputs are gone or of another size. there: the name of each
        object that has one, and its bytes; sealed: of the encrypted form."""
        size = "sealed" if sealed else "done.size"
        for _ in self._forget(there, f"there.size = {size}"):
            pass

    def keep_named(self, names: Iterable[str]) -> Iterator[str]:
        """Forgets the objects that have none of these names, when all of theirs were taken."""
        return self._forget(((name, 0) for name in names), "TRUE")

    def _forget(self, there: Iterable[tuple[str, int]], matches: str) -> Iterator[str]:
        pairs = ((os.fsencode(name), size) for name, size in there)
        with self._table as table:
            table.execute("BEGIN")
            table.execute("CREATE TEMP TABLE there (name BLOB PRIMARY KEY, size) WITHOUT ROWID")
            table.executemany("INSERT OR REPLACE INTO there VALUES (?, ?)", pairs)
            gone = "FROM done WHERE NOT EXISTS (SELECT 1 FROM there WHERE there.name = done.name"
            gone += f" AND {matches})"  # text of this file
            for (name,) in table.execute(f"SELECT name {gone}"):
                yield os.fsdecode(name)
            table.execute(f"DELETE {gone}")
            table.execute("DROP TABLE there")

    def get(self, name: str) -> Done | None:
        """The finished object of that name."""
        row = self._table.execute(
            "SELECT * FROM done WHERE name = ?", (os.fsencode(name),)
        ).fetchone()
        return None if row is None else Done(name, *row[1:])

    def add(self, done: Done) -> None:
        """An object is done. Writes a part from time to time; it is in the table from then on."""
        self._new.append(done)
        if len(self._new) >= PART or time.monotonic() >= self._next:
            self.save()

    def note(self, name: str, text: str) -> None:
        """Keeps a text of the job, which the next part has."""
        self.notes[name] = text
        self._new.append({name: text})

    def save(self) -> None:
        """Writes what is new. Raises OSError."""
        if self._new:
            self._write()

    def _write(self) -> None:
        self._insert(self._new)
        if self._file is None or self._place is None:
            self._new.clear()
            return
        start = time.monotonic()
        text, part = json.dumps(self._new).encode("ascii"), io.BytesIO()
        self._sealed.seal_text(text, self._context, part)
        data = len(part.getvalue()).to_bytes(8, "big") + part.getvalue()
        self._file.seek(self._end)  # a signal may have ended the last write in the middle
        self._file.write(data)
        self._file.truncate()
        self._file.flush()
        wait = LEAST_SECONDS
        if stores.is_url(self._place):
            self._file.seek(0)
            with stores.writing(self._place) as writer:
                while piece := self._file.read(1 << 20):
                    writer.write(piece)
            wait = max(wait, SHARE * (time.monotonic() - start))
        else:
            os.fsync(self._file.fileno())
        self._end += len(data)
        self._new.clear()
        self._next = time.monotonic() + wait

    def rows(self, extension: str = "") -> Iterator[Done]:
        """All finished objects, in the order of the bytes of name and extension."""
        cursor = self._table.cursor()
        rows = cursor.execute("SELECT * FROM done ORDER BY name || ?", (extension.encode(),))
        for name, *rest in rows:
            yield Done(os.fsdecode(name), *rest)

    def __len__(self) -> int:
        count: Any = self._table.execute("SELECT count(*) FROM done").fetchone()[0]
        return int(count)

    def remove(self) -> None:
        """Of a job that nobody will continue with. Raises OSError."""
        if self._place is not None and stores.is_url(self._place):
            stores.remove(self._place)
        elif self._place is not None:
            os.unlink(self._place)  # noqa: PTH108

    def close(self) -> None:
        """Without saving."""
        self._table.close()
        if self._file is not None:
            self._file.close()
