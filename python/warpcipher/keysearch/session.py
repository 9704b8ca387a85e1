# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: which keys of a search are done, in a file that survives a crash.

The file is JSON. It holds no key and no known bit of one, but hashes of the template and of the
pairs, and the numbers of keys that were found: with the template these give the key away, so only
the file's owner may read it. It is replaced in one step by a new one, and locked while a search
uses it.

The lock is on the file itself. A new version is locked before it gets the name, so that the name
never stands for an unlocked file while the search runs; a process that waits for the old version's
lock must look whether the name has moved on.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._descriptors import closing, open_seekable, write_all
from .._new_file import NewFile, target_of
from .._types import PathLike
from .._uncopied import Closed
from .ranges import RangeSet

FORMAT = "warpcipher-search"
VERSION = 1
LONGEST = 1 << 24


class CheckpointError(ValueError):
    """A checkpoint is damaged, in use, or of another search. It was left as it is."""


@dataclass(frozen=True)
class Identity:
    """Identifies a search: a checkpoint serves no other."""

    algorithm: str
    template: str  # Template.digest
    pairs: str  # Test.digest
    start: int
    end: int

    @property
    def document(self) -> dict[str, Any]:
        """Its part of a checkpoint."""
        parts = {"algorithm": self.algorithm, "template": self.template, "pairs": self.pairs}
        return {**parts, "range": [str(self.start), str(self.end)]}

    @property
    def name(self) -> str:
        """The name of the checkpoint, where the user gives none."""
        text = json.dumps([self.algorithm, self.template, self.pairs, self.start, self.end])
        return f"warpcipher-search-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


@dataclass
class State:
    """The results so far."""

    done: RangeSet = field(default_factory=RangeSet)
    found: list[int] = field(default_factory=list)
    false_positives: int = 0
    seconds: float = 0.0


class Checkpoint(Closed):
    """The file of one search. It appears with the first `save`."""

    def __init__(self, path: PathLike, identity: Identity) -> None:
        self.path = Path(path)
        self._identity = identity
        self._descriptor: int | None = None

    def load(self) -> State | None:
        """Locks the file and reads it; None if there is none.

        Raises CheckpointError, OSError.
        """
        while (descriptor := self._open()) is not None:
            try:
                self._lock(descriptor)
                if _named(self.path, descriptor):
                    state = self._parse(descriptor)
                    self._descriptor = descriptor
                    return state
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        return None

    def peek(self) -> State | None:
        """Reads the last saved state, also while a search runs; None without a file.

        Raises CheckpointError, OSError.
        """
        descriptor = self._open()
        if descriptor is None:
            return None
        with closing(descriptor):
            return self._parse(descriptor)

    def save(self, state: State) -> None:
        """Replaces the file. Raises OSError; the old version is there still, then. Raises
        CheckpointError where another search has taken the name meanwhile."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            **self._identity.document,
            "done": [[str(first), str(end)] for first, end in state.done],
            "found": [str(number) for number in state.found],
            "false_positives": state.false_positives,
            "seconds": round(state.seconds, 3),
        }
        document["sha256"] = _digest(document)
        base, name = target_of(self.path)
        folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with NewFile(folder, name, os.fspath(self.path)) as new:
            self._lock(new.fileno())
            write_all(new.fileno(), json.dumps(document, indent=1).encode() + b"\n")
            if self._descriptor is None:
                try:
                    new.give_name(replace=False)
                except FileExistsError:
                    raise CheckpointError(
                        f"{self.path} has appeared meanwhile: another search uses that name"
                    ) from None
            elif not new.take_place_of(self._descriptor):
                raise CheckpointError(f"{self.path} was replaced by another program: not saved")
            self.close()
            self._descriptor = new.detach()

    def close(self) -> None:
        """Gives the lock back. The file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int | None:
        """The file, to be read; None if there is none."""
        place = Path(*target_of(self.path))
        try:
            return open_seekable(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._require_folder(place.parent)
            return None
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ESPIPE):
                raise
            raise CheckpointError(
                f"{self.path} is not a regular file: name one for the checkpoint"
            ) from None

    def _require_folder(self, folder: Path) -> None:
        """Now, and not when the first keys are done."""
        if not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder for the checkpoint", str(folder))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise CheckpointError(f"{self.path} is in use: the same search runs already") from None

    def _parse(self, descriptor: int) -> State:
        data = b""
        while len(data) <= LONGEST and (part := os.read(descriptor, 1 << 20)):
            data += part
        if len(data) > LONGEST:
            raise CheckpointError(
                f"{self.path} has more than {LONGEST} bytes, which no checkpoint has: name another "
                "file"
            )
        try:
            document = json.loads(data)
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise CheckpointError(f"{self.path} is not a checkpoint of a search: name another")
            if document.get("version") != VERSION:
                raise CheckpointError(
                    f"{self.path} is of version {_shown(document.get('version'))}, expected "
                    f"{VERSION}"
                )
            digest = document.pop("sha256", None)
            if digest != _digest(document):
                raise ValueError
            self._compare(document)
            return _state(document, self._identity)
        except CheckpointError:
            raise
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise CheckpointError(
                f"{self.path} is damaged: its tested ranges cannot be trusted. Move it away to "
                "search from the start"
            ) from None

    def _compare(self, document: dict[str, Any]) -> None:
        mine = self._identity.document
        different = [name for name, value in mine.items() if document[name] != value]
        if different:
            raise CheckpointError(
                f"{self.path} belongs to another search ({', '.join(different)} differ): name "
                "another file"
            )


def _digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _state(document: dict[str, Any], identity: Identity) -> State:
    state = State(
        found=[int(number) for number in document["found"]],
        false_positives=int(document["false_positives"]),
        seconds=float(document["seconds"]),
    )
    if not (math.isfinite(state.seconds) and state.seconds >= 0 and state.false_positives >= 0):
        raise ValueError
    for first, end in document["done"]:
        if not identity.start <= int(first) < int(end) <= identity.end:
            raise ValueError
        state.done.add(int(first), int(end))
    if any(not identity.start <= number < identity.end for number in state.found):
        raise ValueError
    return state


def _shown(value: object) -> str:
    """A value of a file that anyone may have written, for an error."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _named(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the descriptor's open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
