# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it: a process of its own, with files in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "warpcipher"]


def path_with_command(folder: Path) -> str:
    """A PATH on which `warpcipher` is the command of this checkout. folder: made for it."""
    folder.mkdir()
    command = folder / "warpcipher"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


# Signals ignored here, as under nohup or behind `&`, the commands would ignore too.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def run(
    *arguments: str | Path,
    cwd: Path,
    stdin: bytes = b"",
    expect: int = 0,
    prefix: tuple[str, ...] = (),
    command: Sequence[str] = COMMAND,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Runs `PREFIX warpcipher ARGUMENTS` in `cwd`; checks exit code, tracebacks, leaks."""
    done = subprocess.run(
        [*prefix, *command, *map(os.fspath, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
        **options,
    )
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == expect, errors
    assert "Traceback" not in errors
    assert "nanobind" not in errors  # which tells, at exit, of objects that nobody freed
    return done


def run_json(*arguments: str | Path, cwd: Path, **options: Any) -> Any:
    return json.loads(run(*arguments, "--json", cwd=cwd, **options).stdout)


def start(*arguments: str | Path, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *map(os.fspath, arguments)], cwd=cwd, **options)


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Sees to it that a failing test leaves no process."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Polls for up to a minute."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"a minute passed without {what}")


def make_key(folder: Path, name: str = "key", *options: str) -> Path:
    """A key file: by the command where it takes options, else written here, which is faster."""
    path = folder / name
    if options:
        run("keygen", name, *options, cwd=folder)
    else:
        path.touch(0o600)
        path.write_bytes(os.urandom(32))
    return path


def temporaries(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".warpcipher-*.part"))


def names(folder: Path) -> set[str]:
    """Everything below a folder, relative to it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def pattern(expected: str) -> str:
    """`...` in an expected output stands for anything, over lines where it stands alone; a line of
    a device, for one line or more."""

    def line_pattern(line: str) -> str:
        if line == "...\n":
            return r"(?:.*\n)*"
        found = re.escape(line).replace(re.escape("..."), ".*")
        return f"(?:{found})+" if line.startswith("device ") else found

    return "".join(map(line_pattern, expected.splitlines(keepends=True)))
