# SPDX-License-Identifier: Apache-2.0
"""Full chunks from one file to another, past Python: threads read, encrypt or decrypt, and write a
few at a time, which stay in the cache of a core.

    | first piece | full chunks: copied here ... | what is left, with the final chunk |

The pieces before and after these go the way of every stream, which knows headers and the end.
Where copying ends early, that way continues from the first chunk that is not done, and says what is
wrong. An encryption stops there: chunks after it were on the disk for a moment, and their numbers
would be used again for a text that may have changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .base import PieceCipher

AT_ONCE = 32 << 20
"""Bytes of the first call: progress is reported after each. Calls get longer while they are short,
and shorter, down to this, where one was long: a fast disk may become a slow one."""
SHORT_CALL = 0.05
"""Seconds."""
LONG_CALL = 0.5


class DirectFile(Protocol):
    """A file whose bytes may be moved by its descriptor."""

    def fileno(self) -> int: ...

    def passed(self, count: int) -> None:
        """`count` bytes from the file's position on were read or written: moves the position past
        them."""


class _Plain:
    """A file of Python itself as a DirectFile."""

    def __init__(self, file: io.FileIO | io.BufferedReader | io.BufferedWriter) -> None:
        self._file = file
        self.fileno = file.fileno
        if isinstance(file, io.BufferedWriter):
            file.flush()
        os.lseek(file.fileno(), file.tell(), os.SEEK_SET)

    def passed(self, count: int) -> None:
        self._file.seek(self._file.tell() + count)


def direct(file: object) -> DirectFile | None:
    """The file as one whose descriptor may be used; None for any other: its methods may do more
    than to read and write."""
    if type(file) in (io.FileIO, io.BufferedReader, io.BufferedWriter):
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # type: ignore[attr-defined]
            return None
        return _Plain(file)  # type: ignore[arg-type]
    return file if hasattr(file, "passed") else None  # type: ignore[return-value]


class Copy:
    """The chunks between two files that can be copied."""

    def __init__(
        self, source: DirectFile, target: DirectFile, cipher: PieceCipher, sizes: tuple[int, int]
    ) -> None:
        """sizes: `chunk_sizes` of the cipher."""
        self._source, self._target = source, target
        self._sizes = sizes
        self._cipher = cipher
        self.consumed = self.written = 0
        self.ended_early = False

    def is_worth_it(self) -> bool:
        """Whether both are files where this works, and enough is left."""
        source, target = self._source.fileno(), self._target.fileno()
        return _left(source, target) > self._cipher.piece

    def run(self, report: Callable[[int], object]) -> None:
        """Copies what can be copied. report: called with the bytes consumed so far."""
        source, target = self._source.fileno(), self._target.fileno()
        begin, end = os.lseek(source, 0, os.SEEK_CUR), os.lseek(target, 0, os.SEEK_CUR)
        chunk, made = self._sizes
        # One byte at least is left: the final chunk is not for here.
        left = max(0, _left(source, target) - 1) // chunk
        at_once = AT_ONCE
        try:
            while left:
                wanted = min(left, max(1, at_once // chunk))
                start = time.monotonic()
                done = self._cipher.copy(
                    (source, begin + self.consumed), (target, end + self.written), wanted
                )
                self.consumed += done * chunk
                self.written += done * made
                at_once = _after(at_once, time.monotonic() - start)
                report(self.consumed)
                self.ended_early = done < wanted
                left = 0 if self.ended_early else left - done
        except OSError as error:
            file = self._target if error.filename == target else self._source
            raise OSError(error.errno, error.strerror, getattr(file, "path", None)) from None
        finally:
            # Threads may have written chunks after the first one that is not done.
            with contextlib.suppress(OSError):
                os.ftruncate(target, end + self.written)
            self._source.passed(self.consumed)
            self._target.passed(self.written)


def _after(at_once: int, seconds: float) -> int:
    """The bytes of the call after one that took so long."""
    if seconds < SHORT_CALL:
        return at_once * 2
    while seconds > LONG_CALL and at_once > AT_ONCE:
        at_once, seconds = at_once // 2, seconds / 2
    return at_once


def _left(source: int, target: int) -> int:
    """The bytes of the source from its position on; 0 unless both are regular files and the
    position of the target is its end."""
    status, other = os.fstat(source), os.fstat(target)
    if not (stat.S_ISREG(status.st_mode) and stat.S_ISREG(other.st_mode)):
        return 0
    if fcntl.fcntl(target, fcntl.F_GETFL) & os.O_APPEND:  # pwrite() would write at the end
        return 0
    if os.path.samestat(status, other) or other.st_size != os.lseek(target, 0, os.SEEK_CUR):
        return 0
    return status.st_size - os.lseek(source, 0, os.SEEK_CUR)
