# SPDX-License-Identifier: Apache-2.0
"""The process of a command: its standard streams, and how an error or a signal ends it.

Standard output: a write that fails is an OSError, which names it, also where the caller closed it;
a reader that went away ends the process by SIGPIPE. Standard error: nothing. It says what happens
and is not what the command was asked for, so that a full disk under a log changes no result and no
exit code. Nothing stays in a buffer, which the interpreter would try to write once more when it
exits.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TextIO

from warpcipher._descriptors import write_all
from warpcipher._new_file import unfinished
from warpcipher._types import Buffer

from . import folders


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
            die(signal.SIGPIPE)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), self.name) from None
        return size


class _Messages(_Output):
    """Standard error: unwritable messages are lost."""

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
    """before: the stream as it was, None if it was closed; its encoding is the user's."""
    return io.TextIOWrapper(
        output,
        encoding=before.encoding if before is not None else "utf-8",
        errors=before.errors if before is not None else "backslashreplace",
        write_through=True,
    )


def on_signals() -> None:
    """Makes SIGINT, SIGTERM and SIGHUP remove unfinished files before they end the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _on_signal)
    # Where it was ignored, nobody could say whether the command that prints a key succeeded.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    global _asking
    if _asking == "yes":
        _asking = "interrupted"
        raise _InterruptedError(number)
    if _asking == "no":
        die(number, "interrupted")


class _InterruptedError(BaseException):
    """A signal while a question waits for its answer."""


_asking = "no"
"""Whether a question waits on the terminal: "yes", or "interrupted" while its echo is turned on
again, when further signals change nothing."""


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Around a question on the terminal: a signal ends the process only when the block has put the
    terminal back as it was, or the shell would show nothing of what is typed."""
    global _asking
    number = 0
    try:
        _asking = "yes"
        yield
    except _InterruptedError as error:
        (number,) = error.args
    finally:
        _asking = "no"
    if number:
        die(number, "interrupted")


def die(number: int, reason: str = "") -> None:
    """Removes unfinished files and ends the process by a signal, as a shell expects.

    Nothing waits for the threads of a running stream: they may be stuck in a write.
    """
    remove_unfinished()
    if reason:
        with contextlib.suppress(OSError):
            os.write(2, f"\nwarpcipher: {reason}\n".encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def remove(name: str) -> None:
    """Removes a temporary, if it exists, and its record."""
    folder = unfinished.pop(name, None)
    if folder is not None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


def remove_unfinished() -> None:
    """Removes the temporaries, and the folders that were made and hold nothing; ends the command
    that was asked for a key."""
    if (commands := sys.modules.get("warpcipher.keys.command")) is not None:
        commands.end_running()
    for name in list(unfinished):
        remove(name)
    folders.remove_empty()
    folders.close_opened()
