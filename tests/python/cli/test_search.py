# SPDX-License-Identifier: Apache-2.0
"""`warpcipher search` and `verify`: output, exit codes, and sessions that end in any way."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import COMMAND, ended, names, run, start, wait_until

KEY = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
PLAINTEXT = bytes(range(16))
PAIR = f"{PLAINTEXT.hex()}:{wc.Cipher('aes-128-ecb', KEY).encrypt(PLAINTEXT).hex()}"
ENDLESS = (
    "search",
    "--yes",
    "--algorithm",
    "aes-128",
    "--pair",
    PAIR,
    "--template",
    f"00??{{14}}{KEY.hex()[-2:]}",
)


def arguments(template: str = f"{KEY.hex()[:-3]}???") -> tuple[str, ...]:
    return ("search", "--algorithm", "aes-128-ecb", "--pair", PAIR, "--template", template)


def checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("warpcipher-search-*.json"))


def ranges_done(checkpoint: Path) -> list[tuple[int, int]]:
    """First keys and ends, in order; while several devices search there may be gaps."""
    return [(int(first), int(end)) for first, end in json.loads(checkpoint.read_text())["done"]]


def keys_done(checkpoint: Path) -> int:
    return sum(end - first for first, end in ranges_done(checkpoint))


def lines(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_key_is_printed_and_nothing_else(tmp_path: Path) -> None:
    done = run(*arguments(), cwd=tmp_path)
    assert done.stdout == KEY.hex().encode() + b"\n"
    assert done.stderr == b""
    assert names(tmp_path) == set()  # too short for a checkpoint


def test_exhausted(tmp_path: Path) -> None:
    done = run(*arguments("00{15}??"), cwd=tmp_path, expect=6)
    assert done.stdout == b""
    assert b"not found: all 256 (2^8) keys" in done.stderr


def test_json_lines(tmp_path: Path) -> None:
    events = lines(run(*arguments(), "--json", cwd=tmp_path).stdout)
    assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
    assert events[0]["keys"] == 4096
    assert events[0]["known_bits"] == 128
    (found,) = [entry for entry in events if entry["event"] == "found"]
    assert found["key"] == KEY.hex()
    end = {"event": "end", "result": "found", "keys": [KEY.hex()], "checkpoint": None}
    assert events[-1] == end
    progress = [entry for entry in events if entry["event"] == "progress"]
    assert progress[-1]["done"] <= progress[-1]["total"] == 4096
    assert progress[-1]["slow"] is False
    assert progress[-1]["recent_rate"] == 0  # too short to tell


def test_dry_run_searches_nothing(tmp_path: Path) -> None:
    text = run(*arguments("??{16}"), "--dry-run", "--shard", "2/4", cwd=tmp_path).stdout.decode()
    assert "2^126" in text
    assert "keys/s" in text
    assert "years" in text
    (event,) = lines(run(*arguments(), "--dry-run", "--json", cwd=tmp_path).stdout)
    assert event["keys"] == 4096
    assert event["rate"] > 0
    assert names(tmp_path) == set()


def test_pairs_from_a_file_key_mask_and_shards(tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text(f"\ufeff# known\n\n{PAIR}\n{PAIR[:30]}??{PAIR[32:]}\n", "utf-8")
    codes = {
        run(
            *("search", "--algorithm", "aes-128", "--pairs", "pairs", "--template", KEY.hex()),
            *("--key-mask", "ff" * 14 + "00ff", "--shard", f"{index}/2"),
            cwd=tmp_path,
            expect=6 if index == 2 else 0,
        ).returncode
        for index in (1, 2)
    }
    assert codes == {0, 6}


def test_weak_pairs_bring_a_warning_and_all_keys(tmp_path: Path) -> None:
    weak = f"{PAIR[:2]}{'??' * 15}{PAIR[32:]}"
    done = run(
        *("search", "--algorithm", "aes-128", "--pair", weak, "--all"),
        *("--template", f"{KEY.hex()[:-3]}???"),
        cwd=tmp_path,
    )
    assert KEY.hex() in done.stdout.decode().split()
    assert len(done.stdout.splitlines()) > 4
    assert b"16 wrong keys are expected to pass" in done.stderr


def test_errors_of_use(tmp_path: Path) -> None:
    (tmp_path / "short").write_text(f"# known\n{PAIR}\n00:11\n")
    for options, expected in (
        (("--algorithm", "aes-128"), b"no pair was given"),
        (("--algorithm", "aes-128", "--pair", "xx:00"), b"--pair: the plaintext"),
        (("--algorithm", "aes-128", "--pair", "00:11"), b"--pair: the ciphertext has 1 bytes"),
        (("--algorithm", "aes-128", "--pair", PAIR, "--pair", "00:11"), b"--pair 2: the cipher"),
        (("--algorithm", "aes-128", "--pairs", "short"), b"short, line 3: the ciphertext has 1"),
        (("--algorithm", "aes-128", "--pair", PAIR, "--shard", "x"), b"--shard takes I/N"),
        (("--algorithm", "aes-128", "--pair", PAIR, "--template", "00"), b"has 1 bytes"),
        (("--algorithm", "aes-128-gcm", "--pair", PAIR), b"a search takes a cipher in ECB, CBC,"),
    ):
        assert expected in run("search", *options, cwd=tmp_path, expect=2).stderr
    run("search", "--algorithm", "aes-128", "--pairs", "missing", cwd=tmp_path, expect=4)
    run(*arguments(), "--engine", "abacus", cwd=tmp_path, expect=5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_saves_and_exits_with_its_own_code(tmp_path: Path, number: int) -> None:
    with ended(start(*ENDLESS, "--json", cwd=tmp_path, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line).get("done"):
                break
        process.send_signal(number)
        rest = lines(process.stdout.read())
        assert process.wait(30) == 7
    assert rest[-1]["result"] == "cancelled"
    (checkpoint,) = checkpoints(tmp_path)
    assert keys_done(checkpoint) == [e for e in rest if e["event"] == "progress"][-1]["done"]
    assert names(tmp_path) == {checkpoint.name}


def test_killed_search_goes_on_and_repeats_no_more_than_a_range(tmp_path: Path) -> None:
    begins = []
    for delay in (0.0, 0.3, 0.1):
        with ended(start(*ENDLESS, "--json", cwd=tmp_path, stdout=subprocess.PIPE)) as process:
            assert process.stdout is not None
            devices = len(json.loads(process.stdout.readline())["devices"])
            begins.append(json.loads(process.stdout.readline())["done"])
            wait_until(lambda: checkpoints(tmp_path), "a checkpoint")
            before = checkpoints(tmp_path)[0].read_bytes()
            wait_until(lambda old=before: checkpoints(tmp_path)[0].read_bytes() != old, "a save")
            time.sleep(delay)
            process.kill()
        (saved,) = checkpoints(tmp_path)
        # Gaps: what devices were at when this one was killed, and what is left of those before.
        assert len(ranges_done(saved)) <= 2 * devices - 1
        begins.append(keys_done(saved))
    assert begins == sorted(begins)


def test_two_sessions_in_one_folder(tmp_path: Path) -> None:
    other = [*ENDLESS[:-1], "01" + ENDLESS[-1][2:]]
    with (
        ended(start(*ENDLESS, cwd=tmp_path)) as first,
        ended(start(*other, cwd=tmp_path)) as second,
    ):
        wait_until(lambda: len(checkpoints(tmp_path)) == 2, "two checkpoints")
        done = run(*ENDLESS, cwd=tmp_path, expect=2)
        assert b"in use: the same search runs already" in done.stderr
        (estimate,) = lines(run(*ENDLESS, "--dry-run", "--json", cwd=tmp_path).stdout)
        assert 0 < estimate["keys_left"] < estimate["keys"]
        for process in (first, second):
            process.send_signal(signal.SIGINT)
        assert first.wait(30) == second.wait(30) == 7
    assert len(names(tmp_path)) == 2
    named = checkpoints(tmp_path)[0]
    before = named.read_bytes()
    foreign = run(*arguments(), "--checkpoint", named, cwd=tmp_path, expect=2)
    assert b"belongs to another search" in foreign.stderr
    assert named.read_bytes() == before


def test_named_checkpoint_is_kept_and_read(tmp_path: Path) -> None:
    for _ in range(2):
        assert (
            run(*arguments(), "--checkpoint", "c", cwd=tmp_path).stdout.decode().strip()
            == KEY.hex()
        )
        assert names(tmp_path) == {"c"}
    assert KEY.hex().encode() not in (tmp_path / "c").read_bytes()
    text = run(*arguments(), "--checkpoint", "c", "--dry-run", cwd=tmp_path).stdout.decode()
    assert "the checkpoint has the others" in text


def test_verify(tmp_path: Path) -> None:
    (tmp_path / "key").touch(0o600)
    (tmp_path / "key").write_bytes(KEY)
    options = ("verify", "--algorithm", "aes-128-ecb", "--pair", PAIR)
    assert b"the key passes" in run(*options, "--key", "key", cwd=tmp_path).stdout
    done = run(*options, "--key-hex", "00" * 16, "--json", cwd=tmp_path, expect=6)
    assert json.loads(done.stdout) == {"passes": False, "blocks": 1, "known_bits": 128}
    run(*options, cwd=tmp_path, expect=2)
    run(*options, "--key-hex", "00", cwd=tmp_path, expect=2)


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        done = run(*arguments(), "--checkpoint", "missing/c", cwd=tmp_path, expect=4)
    else:
        tmp_path.chmod(0o500)
        done = run(*arguments(), "--checkpoint", "c", cwd=tmp_path, expect=4)
    assert b"Traceback" not in done.stderr


def test_candidates_nested_deeply_are_an_error_of_use(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("[" * 100_000)
    done = run(*arguments(), "--candidates", "c.json", cwd=tmp_path, expect=2)
    assert done.stderr.startswith(b"warpcipher: c.json: the candidates are nested too deeply")


def test_fifo_is_no_checkpoint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for option in ((), ("--dry-run",)):
        done = run(*arguments(), "--checkpoint", "fifo", *option, cwd=tmp_path, expect=2)
        assert b"fifo is not a regular file" in done.stderr
    assert names(tmp_path) == {"fifo"}


LONG = ("search", "--algorithm", "aes-128", "--pair", PAIR)


def test_a_search_of_more_than_a_day_says_so_and_asks(tmp_path: Path) -> None:
    """Without --template, 2^128 keys were begun without a word."""
    done = run(*LONG, cwd=tmp_path, expect=2)
    assert re.search(rb"warning: 2\^128 keys at \S+ keys/s take \S+ years, half", done.stderr)
    assert b"nothing was searched: --yes begins a search of more than a day" in done.stderr
    for answer, code in ((b"n", 2), (b"", 2), (b"\x04", 2), (b"y", 7)):
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(tmp_path)
            os.execv(COMMAND[0], [*COMMAND, *LONG])  # noqa: S606
        shown, is_ended = b"", False
        with contextlib.suppress(OSError):  # the end of the terminal
            while True:
                if not select.select([terminal], [], [], 60)[0]:
                    os.kill(child, signal.SIGKILL)
                if not (part := os.read(terminal, 4096)):
                    break
                if b"Begin? [y/N]: " in part:
                    os.write(terminal, answer if answer == b"\x04" else answer + b"\n")
                shown += part
                is_going = b"0%|" in shown and re.search(rb"\[00:0[1-9]<[^]]* years, ", shown)
                if is_going and not is_ended:  # a second signal would end it at once
                    is_ended = True
                    os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        os.close(terminal)
        assert os.waitstatus_to_exitcode(status) == code, shown
        assert (code == 2) == (b"nothing was searched" in shown)
        assert (code == 7) == (names(tmp_path) != set())
    # Begun once, it goes on without a question, and says the rate of this run only.
    (saved,) = checkpoints(tmp_path)
    before = keys_done(saved)
    with ended(start(*LONG, cwd=tmp_path, stderr=subprocess.PIPE)) as process:
        wait_until(lambda: keys_done(checkpoints(tmp_path)[0]) > before, "a save")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.read()
        assert process.wait(30) == 7
    assert b"of them now, in" in told


def test_the_bar_counts_no_keys_of_earlier_runs() -> None:
    """It showed 698 Gkey/s on two cores, and hours as 75201:14:39."""
    program = """
import time
from warpcipher.cli.report import Progress
with Progress(1 << 70, visible=True, unit="key") as bar:
    bar.begin_at(1 << 60)
    bar.at(1 << 60)
    time.sleep(0.25)
    bar.at((1 << 60) + 1000)
"""
    master, terminal = pty.openpty()
    subprocess.run([sys.executable, "-c", program], stderr=terminal, check=True)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    os.close(terminal)
    rate = re.findall(r"([\d.]+k?)key/s", shown)[-1]
    assert rate.endswith("k")
    assert float(rate[:-1]) < 5
    assert "years" in shown
    assert not re.search(r"\d{4,}:\d\d:\d\d", shown)
