# SPDX-License-Identifier: Apache-2.0
"""Standard input and output, pipes, memory, and what a reader of a broken stream gets."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_support import COMMAND, ended, make_key, names, run, start

CHUNK = 16 << 10


def test_pipe_through_both_ways(tmp_path: Path) -> None:
    make_key(tmp_path)
    plain = os.urandom(10_000_000)
    script = '"$@" encrypt --key key - | "$@" decrypt --key key -'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, "bash", *COMMAND],
        cwd=tmp_path,
        input=plain,
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == plain
    assert done.stderr == b""


def test_pipes_that_another_program_made_non_blocking(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(os.urandom(3_000_000))
    run("encrypt", "--key", "key", "a", cwd=tmp_path)
    (source, feed), (taken, sink) = os.pipe(), os.pipe()
    os.set_blocking(source, False)
    os.set_blocking(sink, False)
    arguments = ("decrypt", "--key", "key", "-o", "-", "-")
    with ended(start(*arguments, cwd=tmp_path, stdin=source, stdout=sink)) as process:
        os.close(source)
        os.close(sink)
        sealed = (tmp_path / "a.cobblestone").read_bytes()
        with os.fdopen(feed, "wb", 0) as writer, os.fdopen(taken, "rb") as reader:
            with ThreadPoolExecutor() as pool:
                plain = pool.submit(reader.read)
                for begin in range(0, len(sealed), 60_000):
                    writer.write(sealed[begin : begin + 60_000])
                    while any(fcntl.ioctl(feed, termios.FIONREAD, bytes(4))):
                        assert process.poll() is None
                    time.sleep(0.005)  # it asks for more, which is not there
                writer.close()
            assert plain.result() == (tmp_path / "a").read_bytes()
        assert process.wait() == 0


def test_file_to_standard_output_and_standard_input_to_file(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    sealed = run("encrypt", "--key", "key", "-o", "-", "a", cwd=tmp_path).stdout
    run("decrypt", "--key", "key", "-o", "b", "-", cwd=tmp_path, stdin=sealed)
    assert (tmp_path / "b").read_bytes() == b"text"


def test_input_may_be_a_pipe_with_a_name(tmp_path: Path) -> None:
    make_key(tmp_path)
    script = '"$@" encrypt --key key -o a.cobblestone <(printf text)'
    subprocess.run(["bash", "-c", script, "bash", *COMMAND], cwd=tmp_path, check=True, timeout=60)
    run("decrypt", "--key", "key", "a.cobblestone", cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == b"text"


def test_only_authentic_chunks_reach_standard_output(tmp_path: Path) -> None:
    make_key(tmp_path)
    plain = os.urandom(40 << 20)
    sealed = bytearray(run("encrypt", "--key", "key", "-", cwd=tmp_path, stdin=plain).stdout)
    sealed[len(sealed) * 3 // 4] ^= 1
    done = run("decrypt", "--key", "key", "-", cwd=tmp_path, stdin=bytes(sealed), expect=3)
    assert len(done.stdout) % CHUNK == 0
    assert 0 < len(done.stdout) <= len(plain) * 3 // 4
    assert plain.startswith(done.stdout)
    assert b"failed authentication" in done.stderr
    assert b"incomplete" in done.stderr


@pytest.mark.parametrize("source", ["other", "text"])
def test_nothing_to_discard_where_nothing_came_out(tmp_path: Path, source: str) -> None:
    make_key(tmp_path)
    make_key(tmp_path, "other")
    sealed = run("encrypt", "--key", "other", "-", cwd=tmp_path, stdin=b"text").stdout
    text = sealed if source == "other" else b"no encrypted file"
    done = run("decrypt", "--key", "key", "-", cwd=tmp_path, stdin=text, expect=3)
    assert done.stdout == b""
    assert b"discard" not in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("cut", [0, 1, 55, 56, 57, 71, 56 + CHUNK + 16, 50_000, -1])
def test_cut_stream_is_refused(tmp_path: Path, cut: int) -> None:
    make_key(tmp_path)
    plain = os.urandom(100_000)
    sealed = run("encrypt", "--key", "key", "-", cwd=tmp_path, stdin=plain).stdout
    done = run("decrypt", "--key", "key", "-", cwd=tmp_path, stdin=sealed[:cut], expect=3)
    assert plain.startswith(done.stdout)
    assert len(done.stdout) < len(plain)


def test_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    make_key(tmp_path)
    with (tmp_path / "big").open("wb") as file:
        file.truncate(64 << 20)
    with ended(
        start(
            *("encrypt", "--key", "key", "-o", "-", "big"),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(1000)) == 1000
        process.stdout.close()
        assert process.wait(timeout=60) == -signal.SIGPIPE
        assert process.stderr.read() == b""


def test_closed_pipe_ends_a_list_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = ("info", "--algorithms")
    with ended(start(*command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)) as process:
        os.close(writer)
        assert process.stderr is not None
        assert process.wait(timeout=60) == -signal.SIGPIPE
        assert process.stderr.read() == b""


def test_full_device_is_an_error_of_the_system(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    with (
        Path("/dev/full").open("wb") as full,
        ended(
            start(
                *("encrypt", "--key", "key", "-o", "-", "a"),
                cwd=tmp_path,
                stdout=full,
                stderr=subprocess.PIPE,
            )
        ) as process,
    ):
        assert process.wait(timeout=60) == 4
        assert process.stderr is not None
        assert b"standard output: No space left" in process.stderr.read()


def test_closed_standard_streams(tmp_path: Path) -> None:
    """No file takes the number of a stream that the caller closed."""
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    for line, code in (
        ('"$@" encrypt --key key a <&- >&- 2>&-', 0),
        ('"$@" encrypt --key key - -o b <&-', 4),
        ('"$@" encrypt --key key a -o - >&-', 4),
        ('"$@" encrypt --key key missing 2>&-', 4),
    ):
        done = subprocess.run(
            ["bash", "-c", line, "bash", *COMMAND],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, line
        assert b"Traceback" not in done.stderr
    run("decrypt", "--key", "key", "-o", "c", "a.cobblestone", cwd=tmp_path)
    assert (tmp_path / "c").read_bytes() == b"text"
    assert names(tmp_path) == {"key", "a", "a.cobblestone", "c"}


# Not wait4's ru_maxrss: that counts what the process was before it became the command.
MEASURED = [
    sys.executable,
    "-c",
    """
import atexit, sys
from warpcipher.cli import main
status = lambda: next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
atexit.register(lambda: sys.stderr.write(status()))
main()
""",
]


def test_memory_is_bounded(tmp_path: Path) -> None:
    """More than 2 GiB through the command, both ways, and at most 512 MiB of it resident."""
    make_key(tmp_path)
    with (tmp_path / "big").open("wb") as file:
        file.truncate((2 << 30) + 12345)
    given = ("--key", "key", "-o", "-")
    sealer = subprocess.Popen(
        [*MEASURED, "encrypt", *given, "big"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with ended(sealer):
        opener = subprocess.run(
            [*MEASURED, "decrypt", *given, "-"],
            cwd=tmp_path,
            stdin=sealer.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=True,
        )
        assert sealer.stderr is not None
        sealed = sealer.stderr.read()
        assert sealer.wait() == 0
    for told in (sealed, opener.stderr):
        assert int(told.split(b"VmHWM:")[1].split()[0]) < 512 << 10  # KiB


def test_standard_streams_and_json_do_not_mix(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    for arguments in (("-o", "-", "a"), ("-",), ("a", "-"), ("a", "key", "-o", "-")):
        run("encrypt", "--json", "--key", "key", *arguments, cwd=tmp_path, expect=2)
    run("encrypt", "--key", "key", "-o", ".", "-", cwd=tmp_path, expect=2)
    assert names(tmp_path) == {"key", "a"}


def on_terminal(arguments: list[str], cwd: Path) -> tuple[int, str]:
    """Runs the command on a terminal; its exit code and what it showed."""
    leader, follower = pty.openpty()
    with ended(
        subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
        )
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 4096):
                shown += part
        except OSError:  # the terminal's other end was closed
            pass
        finally:
            os.close(leader)
        return process.wait(timeout=60), shown.decode()


def test_progress_shows_on_a_terminal_alone(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(bytes(30_000_000))
    code, shown = on_terminal(["encrypt", "--key", "key", "a"], tmp_path)
    assert code == 0
    assert "B/s" in shown
    assert "a -> a.cobblestone: 30.0 MB" in shown
    code, shown = on_terminal(["encrypt", "-f", "--quiet", "--key", "key", "a"], tmp_path)
    assert (code, shown) == (0, "")
    done = run("encrypt", "-f", "--key", "key", "a", cwd=tmp_path)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_ciphertext_is_not_written_to_a_terminal(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    code, shown = on_terminal(["encrypt", "--key", "key", "-o", "-", "a"], tmp_path)
    assert code == 2
    assert "standard output is a terminal" in shown


@pytest.mark.parametrize("size", [(0, 0), (24, 60)])
def test_bar_on_a_terminal_of_any_size(size: tuple[int, int]) -> None:
    """A serial line and `docker exec -t` say 0 x 0: nothing was shown there."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    program = (
        "from warpcipher.cli.report import Progress\n"
        "with Progress(100, visible=True) as bar: bar.say('half'), bar.at(50)\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    subprocess.run([sys.executable, "-c", program], stderr=terminal, check=True, env=environment)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    os.close(terminal)
    assert "half" in shown
    assert re.search(r"0%\|.*0.00/100", shown)
