# SPDX-License-Identifier: Apache-2.0
"""Which kernels run, and why, as a user sees it. The choices: tests/unit/test_choice.cpp."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import run
from click.testing import CliRunner
from warpcipher.cli.app import cli

CUDA = {entry.name: entry for entry in wc.engines()}["cuda"]


def chosen(algorithm: str, **batch: Any) -> dict[str, str]:
    decisions = wc.tuning.explain(algorithm, **{"device": "h200", **batch})
    return {decision.subject: decision.chosen for decision in decisions}


def test_explain_says_which_kernels_run() -> None:
    assert chosen("aes-128-gcm", messages=1000, size=65536) == {
        "tables": "128 KiB",
        "counter": "tiles",
        "keys": "parameter",
        "ghash": "tensor one key",
    }
    assert chosen("aes-128-ctr", messages=100_000, size=1024)["counter"] == "hybrid packed"
    assert chosen("aes-128-ctr", messages=100_000, size=1024, keys=9)["keys"] == "key bytes"
    assert chosen("aes-256-ctr", size=1 << 30)["counter"] == "hybrid"
    assert chosen("aes-128-cbc", messages=10) == {"tables": "128 KiB", "serial": "12 warps"}
    assert chosen("aes-128-cbc", size=1 << 30, direction="decrypt")["text"] == "hybrid"
    assert chosen("aes-128-xts", messages=100_000, size=4096)["data units"] == "rows"
    assert chosen("des-ede3-ecb") == {"text": "bitslice"}


def test_explain_says_why_others_do_not() -> None:
    found = wc.tuning.explain("aes-128-ctr", messages=9, device="H200")
    text = {decision.subject: decision for decision in found}["counter"]
    reasons = {candidate.name: candidate.reason for candidate in text.candidates}
    assert reasons["packed"] == "takes messages of up to 511 blocks, the longest has 65536"
    assert reasons["hybrid"] == "needs 16896 tiles of 256 blocks to pay, there are 2304"
    assert [candidate.name for candidate in text.candidates if candidate.chosen] == [text.chosen]


def test_a_smaller_gpu_runs_other_kernels() -> None:
    found = wc.tuning.explain("aes-128-gcm", device="t4")
    (tables, text, tags) = (
        {candidate.name: candidate.reason for candidate in decision.candidates}
        for decision in found
    )
    assert tables["128 KiB"] == "needs 131072 bytes of shared memory a block, there are 65536"
    assert text["hybrid"] == "needs compute capability 9.0"
    assert tags["tensor one key"] == "needs compute capability 8.x or 9.x"
    assert tags["scalar"] == "the first that is not refused"


@pytest.mark.parametrize(
    ("batch", "error", "says"),
    [
        ({"algorithm": "aes-128-xyz"}, ValueError, "aes-128-xyz"),
        ({"direction": "up"}, ValueError, "direction is 'up': expected 'encrypt' or 'decrypt'"),
        ({"messages": 0}, ValueError, "messages is 0, expected 1 to 4294967294"),
        ({"messages": -1}, ValueError, "messages is -1: expected 0 to"),
        ({"messages": 1 << 64}, ValueError, "messages is 18446744073709551616: expected"),
        ({"messages": 2, "keys": 3}, ValueError, "keys is 3, expected 1 to the number of messages"),
        ({"size": 1 << 62}, ValueError, "size is 4611686018427387904, expected at most"),
        ({"size": 1.5}, TypeError, "float"),
        ({"device": -1}, ValueError, "device is -1: expected 0 to"),
        ({"device": "h300"}, ValueError, "device is 'h300': expected a number, or t4, a100"),
    ],
)
def test_explain_refuses_what_no_batch_is(
    batch: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        wc.tuning.explain(**{"algorithm": "aes-128-ctr", "device": "h200", **batch})


@pytest.mark.skipif(CUDA.usable, reason="for machines without a GPU")
def test_without_a_gpu_the_engine_says_why(tmp_path: Path) -> None:
    with pytest.raises(wc.EngineError, match="engine 'cuda' cannot run here"):
        wc.tuning.explain("aes-128-gcm")
    for which in (["--engine", "cuda"], ["--device", "0"]):
        done = run("explain", "aes-128-gcm", *which, cwd=tmp_path, expect=5)
        assert b"engine 'cuda' cannot run here" in done.stderr
        assert done.stdout == b""
    assert run("explain", "aes-128-gcm", cwd=tmp_path).stdout.startswith(
        b"aes-128-gcm, encrypt, CPU: 1 message"
    )


def test_the_rule_of_the_cpu_is_printed(tmp_path: Path) -> None:
    (decision,) = wc.tuning.explain("des-ede3-cbc", engine="cpu")
    assert (decision.subject, decision.chosen) == ("CPU", "own code")
    assert decision.candidates[1].name == "libcrypto"
    with pytest.raises(ValueError, match="engine is 'gpu': expected 'cuda' or 'cpu'"):
        wc.tuning.explain("des-ede3-cbc", engine="gpu")
    done = run("explain", "des-ede3-cbc", "--engine", "cpu", cwd=tmp_path)
    assert done.stdout.decode().splitlines()[0] == (
        "des-ede3-cbc, encrypt, CPU: 1 message of 1048576 bytes, 1 key"
    )
    again = ["explain", "aes-256-gcm", "--size", "64KiB", "--engine", "cpu"]
    assert run(*again, cwd=tmp_path).stdout == run(*again, cwd=tmp_path).stdout


@pytest.mark.skipif(not CUDA.usable, reason="needs a GPU")
def test_with_a_gpu_there_is_a_choice(tmp_path: Path) -> None:
    assert chosen("aes-128-gcm", device=0)["counter"] in {"hybrid", "tiles"}
    assert b"tables: " in run("explain", "aes-128-gcm", cwd=tmp_path).stdout


def forced(choices: str) -> subprocess.CompletedProcess[str]:
    """A new process's answer about a batch with choices that the environment forces."""
    script = (
        "from warpcipher import tuning\n"
        "found = tuning.explain('aes-128-gcm', device='h200')\n"
        "print({d.subject: [c.name for c in d.candidates if c.chosen] for d in found})"
    )
    environment = os.environ | {"WARPCIPHER_FORCE": choices}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_forces_kernels() -> None:
    done = forced("tables=64,ghash=scalar")
    assert done.stdout == "{'tables': ['64 KiB'], 'counter': ['tiles'], 'ghash': ['scalar']}\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tables", "128, 64"),
        ("ghash", "lanes, rows, scalar, tensor, warpgroups"),
        ("counter", "packed, hybrid-packed, tiles, hybrid"),
        ("text", "hybrid, tiles"),
        ("poly1305", "chunks, lanes"),
        ("columns", "device, host"),
        ("copies", "batches, calls"),
    ],
)
def test_a_value_that_forces_nothing_is_refused(name: str, expected: str) -> None:
    done = forced(f"{name}=fastest")
    assert done.returncode == 1
    says = f"'{name}=fastest' is unknown: expected {name}= and one of {expected}"
    assert done.stderr.splitlines()[-1] == f"ValueError: WARPCIPHER_FORCE: {says}"


def test_a_name_that_forces_nothing_is_refused() -> None:
    done = forced("ghash=rows,blocks=tiles")
    assert done.returncode == 1
    says = "'blocks=tiles' is unknown: expected name=value, with a name of tables, ghash, "
    assert says in done.stderr.splitlines()[-1]


def test_the_command_prints_the_choice() -> None:
    batch = ["--messages", "1000", "--size", "64KiB", "--decrypt", "--device", "h200"]
    result = CliRunner().invoke(cli, ["explain", "aes-128-gcm", *batch])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "aes-128-gcm, decrypt, GPU h200: 1000 messages of 65536 bytes, 1 key"
    assert "counter: tiles, a tile a warp, by tables: the first that is not refused" in lines
    assert "  not hybrid: needs 16896 tiles of 256 blocks to pay, there are 16000" in lines


def test_the_page_shows_what_the_command_prints() -> None:
    page = (Path(__file__).parents[3] / "docs/cli.md").read_text(encoding="utf-8")
    found = re.search(r"```text\n\$ warpcipher (explain .*)\n([^`]*)```", page)
    assert found is not None
    printed = iter(CliRunner().invoke(cli, found[1].split()).output.splitlines())
    assert all(line == "..." or line in printed for line in found[2].splitlines())  # in this order


def test_the_command_prints_json() -> None:
    batch = ["--messages", "5", "--size", "16", "--keys", "5", "--json", "--device", "h200"]
    result = CliRunner().invoke(cli, ["explain", "--algorithm", "aes-256-ctr", *batch])
    choice = json.loads(result.output)
    decisions = choice.pop("decisions")
    assert choice == {
        "algorithm": "aes-256-ctr",
        "direction": "encrypt",
        "messages": 5,
        "size": 16,
        "keys": 5,
        "device": "h200",
        "engine": "cuda",
    }
    assert [decision["subject"] for decision in decisions] == ["tables", "counter", "keys"]
    assert set(decisions[0]) == {"subject", "chosen", "candidates"}
    assert set(decisions[0]["candidates"][0]) == {"name", "description", "chosen", "reason"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--messages", "3"], b"give one algorithm: explain ALGORITHM"),
        ([""], b"unknown algorithm ''"),
        (["aes-128-ctr", "--algorithm", "aes-128-ctr"], b"give one algorithm"),
        (["aes-128-ctr", "--messages", "x"], b"'x' is not a valid integer"),
        (["aes-128-ctr", "--size", "big"], b"size is 'big': expected bytes"),
        (["aes-128-zzz"], b"aes-128-zzz"),
    ],
)
def test_the_command_refuses_what_fits_nothing(
    tmp_path: Path, arguments: list[str], says: bytes
) -> None:
    assert says in run("explain", *arguments, cwd=tmp_path, expect=2).stderr
