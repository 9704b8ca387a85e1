# SPDX-License-Identifier: Apache-2.0
"""Runs the `warpcipher` command with one fault at a counted place, the same each time:

    python faulty_command.py '{"count": "FILE"}' ARGUMENTS...
    python faulty_command.py '{"signal": 15, "at": 120}' ARGUMENTS...
    python faulty_command.py '{"errno": 28, "at": 7}' ARGUMENTS...

A signal comes before the line of the package's code that the main thread runs as number `at`, from
where SIGINT no longer raises KeyboardInterrupt on. An error is raised by the package's call number
`at` of those in CALLS; errno 0 writes or reads less than was asked for: not an error. "count"
writes both totals to a file. A fault that has no place any more is none.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

CALLS = (
    "open", "read", "readv", "write", "fstat", "stat", "scandir", "fsync", "fchmod", "link",
    "rename", "replace", "mkdir", "unlink", "rmdir",
)  # fmt: skip
PARTIAL = ("read", "readv", "write")


class Lines:
    """Counts lines of the package in the main thread, and sends the signal at one of them."""

    def __init__(self, number: int | None, at: int) -> None:
        self.count = 0
        self._number, self._at, self._counts = number, at, False

    def trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        name = frame.f_globals.get("__name__", "")
        if not (isinstance(name, str) and name.startswith("warpcipher")):
            return None
        if event != "line":
            return self.trace
        if not self._counts:
            self._counts = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            return self.trace
        self.count += 1
        if self._number is not None and self.count == self._at:
            os.kill(os.getpid(), self._number)
        return self.trace


class Calls:
    """Counts the package's calls of the system, and lets one fail."""

    def __init__(self, errno: int | None, at: int) -> None:
        self.count = 0
        self.failed = ""
        self._errno, self._at = errno, at
        self._lock = threading.Lock()

    def wrap(self) -> None:
        for name in CALLS:
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, call: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if not caller.startswith("warpcipher"):
                return call(*arguments, **options)
            with self._lock:
                self.count += 1
                due = self._errno is not None and self.count == self._at
            if not due:
                return call(*arguments, **options)
            if self._errno:
                self.failed = name
                raise OSError(self._errno, os.strerror(self._errno), *_name(arguments))
            return call(*_less(name, arguments), **options)

        return wrapped


def _name(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The path that the system's own error would have."""
    return arguments[:1] if isinstance(arguments[0], (str, bytes)) else ()


def _less(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if name not in PARTIAL:
        return arguments
    descriptor, what = arguments
    if name == "read":
        return descriptor, (what + 1) // 2
    if name == "write":
        return descriptor, memoryview(what)[: (len(what) + 1) // 2]
    (buffer,) = what
    return descriptor, [buffer[: (len(buffer) + 1) // 2]]


def main() -> None:
    fault = json.loads(sys.argv[1])
    sys.argv[1:] = sys.argv[2:]
    lines = Lines(fault.get("signal"), fault.get("at", 0))
    calls = Calls(fault.get("errno"), fault.get("at", 0))
    if "errno" in fault or "count" in fault:
        calls.wrap()
    if "signal" in fault or "count" in fault:
        sys.settrace(lines.trace)
    try:
        from warpcipher_command.main import main as command

        command()
    finally:
        sys.settrace(None)
        if "count" in fault:
            Path(fault["count"]).write_text(json.dumps([lines.count, calls.count]))
        if calls.failed == "unlink":  # what it was to remove may be there
            os.write(2, b"faulty_command: unlink failed\n")


main()
