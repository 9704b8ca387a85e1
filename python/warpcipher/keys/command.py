# SPDX-License-Identifier: Apache-2.0
"""A key that a command prints: a KMS's, a password manager's, a hardware token's.

The command gets no shell, no terminal and no input. When it is done, the rest of its process
group is ended. When time is up, when it prints too much, when this process must end, all that it
started is: children in their own sessions are found by a mark in their environment. After a
command that succeeded these live on: `gpg` starts its agent so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from ..arguments import require_number
from .decode import LONGEST, Encoding, may_be_key
from .source import KeyId, KeySource
from .sources import shown, unnamed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

SHOWN_ERRORS = 2000
"""Bytes of a failed command's standard error that are shown: its end."""
POLL_SECONDS = 0.05

START_SECONDS = 5
"""How long a process that must end itself waits for a command to be known that is being started."""

MARK = b"WARPCIPHER_KEY_COMMAND"
"""The variable with the mark of a command and of all that it starts."""
ROUNDS = 20
"""How often the processes are looked through for those that one started while it was ended."""

_running: dict[int, bytes] = {}
"""The process groups of commands that run now, and their marks."""
_starting: set[threading.Thread] = set()


def end_running() -> None:
    """Ends the commands that run now, for a process that must end itself, from a signal handler."""
    deadline = time.monotonic() + START_SECONDS
    while _starting and time.monotonic() < deadline:
        time.sleep(0.001)
    for group, mark in list(_running.items()):
        _end_all(group, mark)


def _end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _end_all(group: int, mark: bytes) -> None:
    """Ends a command and all that it started, in whatever session."""
    _end_group(group)
    entry = b"\0" + MARK + b"=" + mark + b"\0"
    for _ in range(ROUNDS):
        if not sum(_end_marked(int(name), entry) for name in _processes()):
            return


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:  # it is not mounted: the group is all that is known
        return []


def _end_marked(process: int, entry: bytes) -> bool:
    """Ends a process that has the entry in its environment; False: it has not, or has ended."""
    try:
        descriptor = os.pidfd_open(process)  # its number may be another's a moment later
    except OSError:
        return False
    try:
        with open(f"/proc/{process}/environ", "rb") as file:  # noqa: PTH123
            found = entry in b"\0" + file.read() + b"\0"
        if found:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:  # another user's, or it has ended
        return False
    finally:
        os.close(descriptor)
    return found


def _has_ended(leader: int) -> bool | None:
    """Whether a command has ended, which is not waited for: its number is given to no other. None:
    it has, and nobody can say how."""
    try:
        return os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return None


class _Command(KeySource):
    def __init__(self, arguments: list[str], timeout: float, encoding: Encoding) -> None:
        import shutil

        # The arguments may hold secrets: only the program is named.
        # And not even that where the key itself may have been given for the command.
        program, line = arguments[0], " ".join(arguments)
        secret = (may_be_key(program) or may_be_key(line)) and shutil.which(program) is None
        super().__init__(f"the command {unnamed(line) if secret else shown(program)}", encoding)
        self._arguments = arguments
        self._timeout = timeout

    def read(self, key_id: KeyId) -> bytearray:
        environment = dict(os.environb)
        environment.pop(b"WARPCIPHER_KEY_ID", None)
        if key_id is not None:
            environment[b"WARPCIPHER_KEY_ID"] = _id_bytes(key_id)
        mark = environment[MARK] = os.urandom(16).hex().encode()
        try:
            process = _start(self._arguments, environment, mark)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from None
        try:
            output, errors = self._collect(process)
            is_known = _has_ended(process.pid) is not None
        except BaseException:
            _end_all(process.pid, mark)
            raise
        finally:
            # The number is the group's until the leader, which has ended, is waited for.
            _end_group(process.pid)
            _running.pop(process.pid, None)
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        if not is_known:  # which Popen takes for success
            raise ChildProcessError(
                f"{self.name} ended, and nothing says how: SIGCHLD is ignored, or another part of "
                "this process waits for all of its children"
            )
        if process.returncode:
            raise ChildProcessError(f"{self.name} {_ending(process.returncode)}{_told(errors)}")
        return output

    def _collect(self, process: subprocess.Popen[bytes]) -> tuple[bytearray, bytearray]:
        """The command's output until it has ended. Raises TimeoutError, ValueError."""
        import selectors

        output, errors = bytearray(), bytearray()
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            for stream, into in ((process.stdout, output), (process.stderr, errors)):
                if stream is not None:
                    selector.register(stream.fileno(), selectors.EVENT_READ, into)
            # The command's children may keep its streams open: its own end counts.
            while selector.get_map():
                ended = _has_ended(process.pid) is not False
                ready = selector.select(0 if ended else POLL_SECONDS)
                for entry, _ in ready:
                    part = os.read(entry.fd, 1 << 16)
                    if not part:
                        selector.unregister(entry.fd)
                    entry.data.extend(part)
                del errors[:-SHOWN_ERRORS]
                if len(output) > LONGEST:
                    raise ValueError(
                        f"{self.name} printed more than {LONGEST} bytes: that is not a key"
                    )
                if ended and not ready:
                    break
                self._check_time(deadline, errors)
        while _has_ended(process.pid) is False:  # it closed its streams before it ended
            self._check_time(deadline, errors)
            time.sleep(POLL_SECONDS)
        return output, errors

    def _check_time(self, deadline: float, errors: bytearray) -> None:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{self.name} did not end within {self._timeout:g} seconds{_told(errors)}"
            )


def _start(
    arguments: list[str], environment: dict[bytes, bytes], mark: bytes
) -> subprocess.Popen[bytes]:
    """Starts a command that end_running() knows from its first moment on.

    In a thread: a signal handler, which runs in the main thread, could otherwise come between the
    command's start and the note of it.
    """
    import subprocess

    outcome: list[subprocess.Popen[bytes] | Exception] = []

    def start() -> None:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                bufsize=0,
                start_new_session=True,
            )
            _running[process.pid] = mark
            outcome.append(process)
        except Exception as error:
            outcome.append(error)
        finally:
            _starting.discard(thread)

    thread = threading.Thread(target=start, name="warpcipher.keys")
    _starting.add(thread)
    try:
        thread.start()
        thread.join()
    except BaseException:  # an interrupt: nobody will wait for the command
        if thread.ident is not None:
            thread.join(START_SECONDS)
        _starting.discard(thread)
        for process in outcome:
            if isinstance(process, subprocess.Popen):
                _end_all(process.pid, mark)
                _running.pop(process.pid, None)
        raise
    (started,) = outcome
    if isinstance(started, Exception):
        raise started
    return started


def _ending(code: int) -> str:
    if code > 0:
        return f"failed with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _told(errors: bytearray) -> str:
    text = errors.decode("utf-8", "replace").strip()
    lines = "; ".join(shown(line) for line in text.splitlines() if line)
    return f": {lines}" if text else ""


def _id_bytes(key_id: str | bytes | int) -> bytes:
    data = os.fsencode(str(key_id)) if isinstance(key_id, (str, int)) else bytes(key_id)
    if b"\0" in data:
        raise ValueError("the key's id has a zero byte: no environment variable can hold it")
    return data


def from_command(
    command: str | Sequence[str], *, timeout: float = 30, encoding: Encoding = "auto"
) -> KeySource:
    """The key that a command prints on standard output, each time the key is needed.

    command:  the program and its arguments; a str is split as a shell splits words, and no shell
              runs: `["sh", "-c", "..."]` runs one.
    timeout:  seconds after which it and all that it started are ended.
    encoding: of its output; "auto" recognizes raw, hex and base64.
    It has no standard input and no terminal. WARPCIPHER_KEY_ID is the key's id, where the file has
    one. On failure the error has the end of its standard error: ChildProcessError, TimeoutError, or
    OSError where it cannot be started; ValueError where it prints more than 1 MiB or no key.

    >>> from warpcipher import keys
    >>> len(keys.resolve(keys.from_command(["echo", "00112233445566778899aabbccddeeff"])))
    16
    """
    import shlex

    arguments = shlex.split(command) if isinstance(command, str) else [*command]
    if not arguments or not all(isinstance(word, str) for word in arguments):
        raise ValueError("from_command takes a program and its arguments, as text")
    if not require_number("timeout", timeout) > 0:
        raise ValueError(f"timeout is {timeout}: expected more than 0 seconds")
    return _Command(arguments, timeout, encoding)
