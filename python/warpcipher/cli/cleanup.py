# SPDX-License-Identifier: Apache-2.0
"""What an error or a signal removes before it ends the process, and how a signal ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from warpcipher._new_file import unfinished

from . import folders


def on_signals() -> None:
    """Makes SIGINT, SIGTERM and SIGHUP remove what is unfinished before they end the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _on_signal)


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
    """Removes what is unfinished and ends the process by a signal, as a shell expects.

    Nothing waits for the threads of a running stream: they may be stuck in a write.
    """
    remove_unfinished()
    if reason:
        with contextlib.suppress(OSError):
            os.write(2, f"\nwarpcipher: {reason}\n".encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def remove(name: str) -> None:
    """Removes a temporary, where it is there, and what is known of it."""
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
