# SPDX-License-Identifier: Apache-2.0
"""The work of a job on one object, in any thread or on any node."""

from __future__ import annotations

import base64
import contextlib
import errno
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import warpcipher as wc

from .. import stores
from .._tree_names import HEAD_SIZE
from ..formats import FormatError, Options
from ..formats.base import wipe
from ..formats.rekey import Rekeyed, from_disk, rekey_to_object
from ..formats.rewrap import NewHeader, new_header
from ..formats.sealed import Sealed
from ..formats.trees import Entry, head_of
from .journal import Done
from .places import Held, Item, Items, Target

Task = Literal["encrypt", "decrypt", "check", "rekey", "rewrap"]

FIRST_DELAY = 0.5  # seconds before the second attempt; each further one waits twice as long
LONGEST_DELAY = 30.0
NO_MODE = 0o644
"""Of an object of a store in a manifest, which has a mode for each file. A file that gets it back
gets what the umask leaves."""
PREPARED = "prepared "
"""The prefix of a state in the journal that is the new header of an object."""
CHANGED = "the object changed while it was read"
_FINAL = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError)


class Outcome(NamedTuple):
    """How it went with an object: `done`, or `error`, after `attempts` and `seconds`."""

    item: Item
    done: Done | None
    error: Exception | None
    attempts: int
    seconds: float


class StoppedError(Exception):
    """The job ends before this object is done."""


def never() -> bool:
    return False


class _Counted:
    """An object that is read or written, its bytes counted, with the first of them; None: nowhere.
    It ends when the job does."""

    def __init__(self, file: Any, stopped: Callable[[], bool] = never) -> None:
        self._file, self._stopped = file, stopped
        self.size = getattr(file, "size", None)
        self.count = 0
        self.head = b""

    def readinto(self, buffer: memoryview, /) -> int:
        if self._stopped():
            raise StoppedError
        return self._add(buffer[: self._file.readinto(buffer)])

    def write(self, data: memoryview, /) -> int:
        if self._stopped():
            raise StoppedError
        return self._add(data if self._file is None else data[: self._file.write(data)])

    def _add(self, data: memoryview) -> int:
        if len(self.head) < HEAD_SIZE:
            self.head += bytes(data[: HEAD_SIZE - len(self.head)])
        self.count += len(data)
        return len(data)


class _Change(NamedTuple):
    """An object that is open, whose keys change from the ones of `sealed` to those of `new`."""

    sealed: Sealed
    new: Sealed
    item: Item
    entry: Entry | None
    opened: Any
    stopped: Callable[[], bool]


@dataclass(frozen=True)
class Work:
    """The work of a job, without its key. format, options: as of `formats`; target: None where
    objects are checked.

    bound:     the names of objects are in their contexts, as a tree's are.
    replace:   outputs that exist are replaced.
    output:    the name of the one output; "": outputs have the names of the objects, with or
               without the format's extension.
    preserves: local files get times and permissions.
    retries:   further attempts with an object.
    checks_place: one object of a tree must be listed by the tree's manifest.

    Where keys change, which `Sealed.new` has:

    new_extension: of the new format.
    in_place: objects are replaced; their names stay.
    keep:     those who open an object now keep doing so (rewrap).
    copy:     an object that its store cannot copy in place is read and written (rewrap).
    """

    task: Task
    items: Items
    target: Target | None
    format: str
    extension: str
    options: Options
    bound: bool
    replace: bool = True
    output: str = ""
    preserves: bool = True
    retries: int = 3
    checks_place: bool = True
    new_extension: str = ""
    in_place: bool = False
    keep: bool = False
    copy: bool = False

    @property
    def changes_keys(self) -> bool:
        return self.task in ("rekey", "rewrap")

    @property
    def prepares(self) -> bool:
        """Whether a tree's headers are all made, and in the journal, before the first object is
        replaced: a run that was killed continues without a key that opens the new ones."""
        return self.task == "rewrap" and self.in_place and self.bound

    @property
    def makes_trees(self) -> bool:
        """Whether outputs are encrypted."""
        return self.changes_keys or self.task == "encrypt"

    def name_of(self, name: str) -> str:
        """The name of an object in the journal; of one that is encrypted in the end, in the tree
        too."""
        return name.removesuffix(self.extension) if self.changes_keys else name

    def output_of(self, name: str) -> str:
        """The name of an output."""
        if self.output:
            return self.output
        if self.task == "encrypt":
            return name + self.extension
        return name.removesuffix(self.extension) + self.new_extension

    def _output_place(self, item: Item) -> str:
        return self.target.place(self.output_of(item.name)) if self.target else ""

    def do(
        self,
        sealed: Sealed,
        item: Item,
        entry: Entry | None = None,
        ready: Done | None = None,
        stopped: Callable[[], bool] = never,
    ) -> Outcome:
        """entry: of an object in the manifest; ready: what was prepared of it. Raises only what no
        object is the cause of."""
        start, attempt = time.perf_counter(), 0
        if self.bound and not {"", ".", ".."}.isdisjoint(item.name.split("/")):
            why = OSError(errno.EINVAL, "no tree has a file of a name with empty parts, . or ..")
            return Outcome(item, None, why, 0, 0.0)
        while True:
            attempt += 1
            error: Exception
            try:
                done = self._once(sealed, item, entry, ready, stopped)
                return Outcome(item, done, None, attempt, time.perf_counter() - start)
            except OSError as problem:
                error = problem
                if attempt > self.retries or stopped() or isinstance(problem, _FINAL):
                    break
                if problem.errno == errno.EINVAL:  # of the name
                    break
            except (wc.InvalidTag, ValueError, MemoryError, wc.EngineError, StoppedError) as other:
                error = other
                break
            end = time.monotonic() + min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY)
            while not stopped() and time.monotonic() < end:
                time.sleep(0.05)
            if error.errno == errno.ESTALE:
                with contextlib.suppress(OSError):
                    item = self.items.again(item)
        return Outcome(item, None, error, attempt, time.perf_counter() - start)

    def _once(
        self,
        sealed: Sealed,
        item: Item,
        entry: Entry | None,
        ready: Done | None,
        stopped: Callable[[], bool],
    ) -> Done:
        with self.items.open(item) as opened:
            if sealed.new is not None:
                change = _Change(sealed, sealed.new, item, entry, opened, stopped)
                if self.prepares:
                    return self._prepare(change) if ready is None else self._finish(change, ready)
                return self._change(change)
            options = self.options_of(sealed, item, opened)
            if isinstance(opened, Held):
                return self._do_short(sealed, item, entry, options, opened.view)
            source = _Counted(opened, stopped)
            with self._writing(item, entry) as target:
                writer = _Counted(target)
                if self.task == "encrypt":
                    sealed.encrypt(source, writer, options)
                    sizes, head = (source.count, writer.count), writer.head
                else:
                    try:
                        sealed.decrypt(source, writer, options)
                    except (wc.InvalidTag, FormatError):
                        _compare(entry, source.head)
                        raise
                    _compare(entry, source.head)
                    sizes, head = (writer.count, source.count), source.head
                    _compare_size(entry, writer.count)
                if source.count != item.size:
                    raise OSError(errno.ESTALE, CHANGED)
        return self._done(item, entry, *sizes, head)

    def _do_short(
        self, sealed: Sealed, item: Item, entry: Entry | None, options: Options, data: memoryview
    ) -> Done:
        """A short object, whose bytes are `data`."""
        encrypts = self.task == "encrypt"
        try:
            made = (sealed.encrypt_short if encrypts else sealed.decrypt_short)(data, options)
        except (wc.InvalidTag, FormatError):
            _compare(entry, data[:HEAD_SIZE])
            raise
        plain, file = (data, made) if encrypts else (made, data)
        try:
            _compare(entry, file[:HEAD_SIZE])
            _compare_size(entry, len(plain))
            if self.target is not None:
                name, of = self.output_of(item.name), self._attributes(item, entry)
                self.target.write_short(name, made, of, replace=self.replace)
            head = bytes(file[:HEAD_SIZE])
            return self._done(item, entry, len(plain), len(file), head)
        finally:
            if not encrypts:
                wipe(plain)

    def _done(self, item: Item, entry: Entry | None, size: int, sealed: int, begins: bytes) -> Done:
        mode, modified, holes = NO_MODE if item.mode is None else item.mode, item.modified, False
        if entry is not None and self.changes_keys:
            mode, modified, holes = entry.mode, entry.mtime, entry.holes
        name, head = self.name_of(item.name), head_of(begins)
        return Done(name, item.state, mode, modified, size, sealed, head, holes)

    def _change(self, change: _Change) -> Done:
        item, entry, opened = change.item, change.entry, change.opened
        try:
            _compare(entry, opened.read_at(0, HEAD_SIZE) if entry is not None else b"")
            sizes = (self._rekey if self.task == "rekey" else self._rewrap)(change)
        except (wc.InvalidTag, FormatError):
            if not (self.in_place and self._is_changed(change)):
                raise
            # A run that was killed before its journal said so has done it.
            size = 0 if entry is None else entry.size
            return self._done(item, entry, size, item.size, opened.read_at(0, HEAD_SIZE))
        return self._done(self.items.again(item) if self.in_place else item, entry, *sizes)

    def _is_changed(self, change: _Change) -> bool:
        """Whether an object has the new key: of a rekey all of it is read, as a damaged one that
        nobody could rekey may begin with a key that the old and the new ones share."""
        new, opened = change.new, change.opened
        new = Sealed(new.format.primary(new.key), new.format, new.options)
        name = self.name_of(change.item.name)
        options = new.options_of(name) if self.bound else new.options
        if not new.opens(opened.read_at, options):
            return False
        if self.task == "rekey":
            opened.seek(0)
            try:
                writer = _Counted(None)
                new.decrypt(_Counted(opened, change.stopped), writer, options)
                _compare_size(change.entry, writer.count)
            except (wc.InvalidTag, FormatError):
                return False
        return True

    def _rekey(self, change: _Change) -> tuple[int, int, bytes]:
        """Returns the bytes of the text and of the new object, and the first of these."""
        sealed, new, item, entry, opened, stopped = change
        place = self._output_place(item)
        options = new.options_of(self.name_of(item.name)) if self.bound else new.options
        writers: list[_Counted] = []

        def check() -> None:  # a store reads the version that it was asked for
            may_change = self.in_place or item.mode is not None
            if may_change and self.items.again(item).state != item.state:
                raise OSError(errno.ESTALE, CHANGED)

        with sealed.opened(opened, self.options_of(sealed, item, opened)) as text:

            def encrypted(target: Any) -> Rekeyed:
                writers.append(writer := _Counted(target, stopped))
                made = Rekeyed(text, writer, new.key, new.format, options)
                _compare_size(entry, made.size)
                return made

            if stores.is_url(place):
                made = rekey_to_object(place, text.raw.size, self.replace, encrypted, check)
            else:
                with self._writing(item, entry) as file:
                    made = encrypted(file)
                    with from_disk(file.fileno()) as written:
                        made.prove(written)
                    check()
        return made.size, made.sealed, writers[-1].head

    def _rewrap(self, change: _Change) -> tuple[int, int, bytes]:
        """As `_rekey`; without a manifest nothing says the bytes of the text: 0."""
        size = 0 if change.entry is None else change.entry.size
        return size, *self._put_header(change, self._rewrapped(change))

    def _rewrapped(self, change: _Change) -> NewHeader:
        sealed, opened = change.sealed, change.opened
        options = self.options_of(sealed, change.item, opened)
        name = sealed.format.name
        return new_header(opened, sealed.key, change.new.key, name, options, keep=self.keep)

    def _put_header(self, change: _Change, made: NewHeader) -> tuple[int, bytes]:
        """Writes an object with another header; returns its bytes, and the first of these."""
        item, is_text = change.item, made.write_text is not None
        texts: list[_Counted] = []

        @contextlib.contextmanager
        def writing() -> Iterator[Any]:
            with self._writing(item, change.entry) as target:
                texts.append(_Counted(target, change.stopped))
                yield texts[0] if is_text else target
                if item.mode is not None and self.items.again(item).state != item.state:
                    raise OSError(errno.ESTALE, CHANGED)

        def check() -> None:
            if change.stopped():
                raise StoppedError

        how: Any = {"replace": self.replace, "copy": self.copy, "within": writing(), "check": check}
        place, out = self.items.place(item.name), self._output_place(item)
        made.write(place, change.opened, out, **how)
        if is_text:
            return texts[0].count, texts[0].head
        return item.size - made.size + len(made.header), made.begins

    def _prepare(self, change: _Change) -> Done:
        """The header that an object will get, in the place of a state: nothing is written."""
        item, entry = change.item, change.entry
        _compare(entry, change.opened.read_at(0, HEAD_SIZE), item.size)
        made = self._rewrapped(change)
        if made.write_text is not None:
            raise ValueError("text (armor) in a tree cannot be replaced in place: take -o")
        size = item.size - made.size + len(made.header)
        done = self._done(item, entry, 0 if entry is None else entry.size, size, made.begins)
        return done._replace(state=PREPARED + base64.b64encode(made.header).decode())

    def _finish(self, change: _Change, ready: Done) -> Done:
        """Gives an object the header that was prepared, unless an earlier run has."""
        item, entry, opened = change.item, change.entry, change.opened
        begins = opened.read_at(0, HEAD_SIZE)
        if (item.size, head_of(begins)) != (ready.sealed, ready.head):
            header = base64.b64decode(ready.state.removeprefix(PREPARED))
            _compare(entry, begins, item.size)
            old = item.size + len(header) - ready.sealed
            self._put_header(change, NewHeader(old, header))
            item = self.items.again(item)
        return ready._replace(state=item.state)

    @contextlib.contextmanager
    def _writing(self, item: Item, entry: Entry | None) -> Iterator[Any]:
        if self.target is None:
            yield None
            return
        name, of = self.output_of(item.name), self._attributes(item, entry)
        how: Any = {"replace": self.replace, "in_place": self.in_place}
        with self.target.writing(name, of, **how) as writer:
            yield writer

    def _attributes(self, item: Item, entry: Entry | None) -> Item | None:
        """Whose time and permissions a local file gets."""
        if not self.preserves:
            return None
        if entry is None:
            return item
        mode = None if entry.mode == NO_MODE else entry.mode
        return item._replace(modified=entry.mtime, mode=mode)

    def options_of(self, sealed: Sealed, item: Item, opened: Any) -> Options:
        """The options of an object, which is open."""
        if self.bound:
            return sealed.options_of(
                item.name if self.task == "encrypt" else item.name.removesuffix(self.extension)
            )
        if self.task == "encrypt":
            return self.options
        return sealed.options_at(self.items.place(item.name), opened, listed=self.checks_place)


def _compare_size(entry: Entry | None, size: int) -> None:
    """Raises InvalidTag where the text of an object is not as long as the manifest says."""
    if entry is not None and size != entry.size:
        raise wc.InvalidTag(f"{size} bytes of plaintext, and the manifest says {entry.size}")


def _compare(entry: Entry | None, begins: bytes | memoryview, sealed: int | None = None) -> None:
    """Raises InvalidTag where an object is not the one of the manifest. begins: its first bytes;
    sealed: all of them, where no later check would miss some."""
    if entry is not None and not entry.is_of(bytes(begins), sealed):
        raise wc.InvalidTag(
            "exchanged or renamed, of another tree, of another time, or damaged: the manifest "
            "lists another object there"
        )


__all__ = ["Outcome", "StoppedError", "Task", "Work"]
