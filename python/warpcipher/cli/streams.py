# SPDX-License-Identifier: Apache-2.0
"""The standard streams as the commands use them: what becomes of a write that fails.

Standard output: OSError, which names it, also where the caller closed it; a reader that went away
ends the process by SIGPIPE. Standard error: nothing. It tells what happens and is not what the
command was asked for, so that a full disk under a log changes no result and no exit code.

Nothing stays in a buffer, which the interpreter would try to write once more when it exits.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from typing import TYPE_CHECKING, TextIO

from warpcipher._descriptors import write_all

from . import cleanup

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Output(io.RawIOBase):
    """A descriptor to write to, which stays open."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        size = memoryview(data).nbytes
        try:
            write_all(self._descriptor, data)
        except BrokenPipeError:
            cleanup.die(signal.SIGPIPE)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), self.name) from None
        return size


class _Messages(_Output):
    """Standard error: what cannot be written is lost."""

    def write(self, data: Buffer, /) -> int:
        with contextlib.suppress(OSError):
            write_all(self._descriptor, data)
        return memoryview(data).nbytes


def protect() -> None:
    """Puts these streams in the place of Python's own, for the rest of the process."""
    _reserve()
    sys.stdout = _text(_Output(1, "standard output"), sys.stdout)
    sys.stderr = _text(_Messages(2, "standard error"), sys.stderr)


def _reserve() -> None:
    """Opens the standard streams that the caller closed, so that no file gets their numbers.

    They stay unusable: 0 cannot be read, 1 and 2 cannot be written.
    """
    for descriptor, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free: this one


def _text(output: _Output, before: TextIO | None) -> TextIO:
    """before: what the stream was, None where it was closed; its encoding is the user's."""
    return io.TextIOWrapper(
        output,
        encoding=before.encoding if before is not None else "utf-8",
        errors=before.errors if before is not None else "backslashreplace",
        write_through=True,
    )
