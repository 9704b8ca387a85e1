# SPDX-License-Identifier: Apache-2.0
"""Standard output and standard error that are closed, full or broken."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND, make_key, names, run

FULL = "/dev/full"


def shell(line: str, *, cwd: Path, expect: int) -> subprocess.CompletedProcess[bytes]:
    """Runs a line of bash in which "$@" is the command."""
    done = subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND],
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == expect, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done


def broken_pipe() -> int:
    """The descriptor of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(b"text")
    return tmp_path


@pytest.mark.parametrize("errors", [f"2>{FULL}", "2>&-", "2</dev/null"])
def test_messages_that_cannot_be_written_change_nothing(folder: Path, errors: str) -> None:
    """A missing file, a warning of the key's mode: the other file is encrypted all the same."""
    (folder / "key").chmod(0o644)
    (folder / "damaged.cobblestone").write_bytes(bytes(100))
    line = f'"$@" encrypt --key key missing a {errors}'
    shell(line, cwd=folder, expect=4)
    assert "a.cobblestone" in names(folder)
    (folder / "a").unlink()
    line = f'"$@" decrypt --json --key key damaged.cobblestone a.cobblestone {errors}'
    done = shell(line, cwd=folder, expect=3)
    assert (folder / "a").read_bytes() == b"text"
    assert json.loads(done.stdout)["failures"][0]["exit_code"] == 3
    # Errors of use, which click reports, and success.
    shell(f'"$@" encrypt --no-such-option {errors}', cwd=folder, expect=2)
    shell(f'"$@" encrypt --force --key key a {errors}', cwd=folder, expect=0)
    shell(f'"$@" info --engines --json {errors}', cwd=folder, expect=0)


def test_messages_into_a_broken_pipe_change_nothing(folder: Path) -> None:
    writer = broken_pipe()
    done = subprocess.run(
        [*COMMAND, "encrypt", "--key", "key", "missing", "a"],
        cwd=folder,
        stderr=writer,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert done.returncode == 4
    assert names(folder) == {"key", "a", "a.cobblestone"}


PRINTING = [
    "--help",
    "--version",
    "encrypt --help",
    "completion bash",
    "info --algorithms",
    "info --json --formats",
    "keygen --json new",
    "encrypt --json --key key a",
    "search --dry-run --no-checkpoint --algorithm des-ecb --template 00????00000000?? "
    "--pair 0000000000000000:0000000000000000 --engine cpu",
]


@pytest.mark.parametrize("arguments", PRINTING)
@pytest.mark.parametrize(
    ("redirection", "text"),
    [(f">{FULL}", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_output_that_cannot_be_written_is_an_error_of_the_system(
    folder: Path, arguments: str, redirection: str, text: str
) -> None:
    done = shell(f'"$@" {arguments} {redirection}', cwd=folder, expect=4)
    assert done.stderr.decode() == f"warpcipher: standard output: {text}\n"


@pytest.mark.parametrize("arguments", ["--help", "--version", "encrypt --help", "completion zsh"])
def test_output_into_a_broken_pipe_ends_quietly(folder: Path, arguments: str) -> None:
    writer = broken_pipe()
    done = subprocess.run(
        [*COMMAND, *arguments.split()],
        cwd=folder,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert done.returncode == -13
    assert done.stderr == b""


def test_report_that_cannot_be_written_does_not_hide_a_failure(folder: Path) -> None:
    (folder / "damaged.cobblestone").write_bytes(bytes(100))
    line = f'"$@" decrypt --json --key key damaged.cobblestone >{FULL}'
    done = shell(line, cwd=folder, expect=3)
    assert done.stderr.endswith(b"warpcipher: standard output: No space left on device\n")


def test_silent_command_needs_no_output(folder: Path) -> None:
    shell('"$@" encrypt --key key a >&-', cwd=folder, expect=0)
    run("decrypt", "--key", "key", "-o", "b", "a.cobblestone", cwd=folder)
    assert (folder / "b").read_bytes() == b"text"


def test_text_on_a_terminal_is_by_itself(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "f").write_bytes(b"some text")
    run("encrypt", "--key", "key", "f", cwd=tmp_path)
    for output, shown in (("-", b"some text"), ("g", b"f.cobblestone -> g: 9 B in ")):
        terminal, line = pty.openpty()
        arguments = ("decrypt", "--key", "key", "-o", output, "f.cobblestone")
        subprocess.run([*COMMAND, *arguments], cwd=tmp_path, stdout=line, stderr=line, check=True)
        written = os.read(terminal, 4096)
        assert written == shown if output == "-" else shown in written
        os.close(line)
        os.close(terminal)
