# SPDX-License-Identifier: Apache-2.0
"""`warpcipher bench`: what its options do, what it prints and refuses, and its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench_support import ALGORITHMS, ENGINES, QUICK, run, run_json
from warpcipher_measure import bench

DOCS = Path(__file__).parents[3] / "docs" / "bench.md"

needs_cuda = pytest.mark.skipif(not ENGINES["cuda"].usable, reason="needs the cuda engine")
without_cuda = pytest.mark.skipif(ENGINES["cuda"].usable, reason="there is a GPU")


def test_messages(tmp_path: Path) -> None:
    arguments = (*QUICK, "--algorithm", "aes-256-gcm", "--size", "1000", "--message", "300")
    for direction in bench.DIRECTIONS:
        document = run_json(*arguments, "--direction", direction, cwd=tmp_path)
        (row,) = document["rows"]
        assert (row["messages"], row["message"], row["direction"]) == (4, 300, direction)


def test_text(tmp_path: Path) -> None:
    done = run(*QUICK, "--size", "64", "--algorithm", "aes-128-ctr", cwd=tmp_path)
    text = done.stdout.decode()
    assert re.search(r"^aes-128-ctr +encrypt +64 B +pageable +cpu .* GB/s x3 +alone ", text, re.M)
    assert re.search(r"^cpu: .*\n(gpu: .*\n)?system: ", text, re.M)
    assert re.search(r"^copy  memmove ", text, re.M)
    assert done.stderr == b""


def test_quick_defaults(tmp_path: Path) -> None:
    document = run_json(*QUICK, cwd=tmp_path)
    assert {row["algorithm"] for row in document["rows"]} == set(bench.ALGORITHMS)
    assert document["settings"]["sizes"] == [16, 65536]


def test_options_reach_the_settings(tmp_path: Path) -> None:
    document = run_json(
        *QUICK,
        *("--algorithm", "aes-192-ecb", "--algorithm", "des-cbc"),
        *("--direction", "decrypt", "--size", "16..256", "--residence", "file"),
        *("--repetitions", "2", "--row-seconds", "9", "--folder", tmp_path),
        cwd=tmp_path,
    )
    settings = document["settings"]
    assert settings["algorithms"] == ["aes-192-ecb", "des-cbc"]
    assert (settings["repetitions"], settings["row_seconds"]) == (2, 9)
    assert settings["folder"] == str(tmp_path)
    assert [(row["algorithm"], row["size"]) for row in document["rows"]] == [
        (name, size) for name in ("aes-192-ecb", "des-cbc") for size in (16, 64, 256)
    ]
    for row in document["rows"]:
        assert (row["residence"], row["direction"]) == ("file", "decrypt")
        assert row["seconds"]["count"] == 2
        assert set(row["percent_of"]) == {"file"}
    assert list(tmp_path.iterdir()) == []


def test_all_algorithms(tmp_path: Path) -> None:
    arguments = ("bench", "--quick", "--algorithm", "all", "--size", "16", "--residence", "file")
    document = run_json(*arguments, "--engine", "cpu", cwd=tmp_path)
    assert [row["algorithm"] for row in document["rows"]] == list(ALGORITHMS)


def test_files_have_their_limits(tmp_path: Path) -> None:
    names = ("--algorithm", "aes-128-xts", "--algorithm", "aes-128-ctr")
    document = run_json(
        *(*QUICK, *names, "--residence", "file", "--size", "20MiB", "--size", "64"),
        cwd=tmp_path,
    )
    (left_out,) = (entry for entry in document["skipped"] if "aes" in entry["what"])
    assert left_out["what"].startswith("aes-128-xts ")
    assert "up to 16 MiB" in left_out["reason"]
    assert len(document["rows"]) == 3


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = (*QUICK, "--size", "64", "--png", "a.png")
    run(*arguments, cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png"}
    before = (tmp_path / "a.png").read_bytes()
    done = run(*arguments, cwd=tmp_path, expect=2)
    assert b"a.png exists: use --force" in done.stderr
    assert (tmp_path / "a.png").read_bytes() == before
    run(*arguments, "--force", cwd=tmp_path)


def test_nothing_is_left_of_a_run_that_failed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run(*QUICK, "--algorithm", "nothing", "--png", "x.png", cwd=tmp_path, expect=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--algorithm", "aes-128-ct"), 2, "unknown algorithm 'aes-128-ct'"),
        (("--direction", "up"), 2, "direction is 'up': expected encrypt or decrypt"),
        (("--size", "9GiB"), 2, "expected 1 to 8GiB"),
        (("--size", "many"), 2, "size is 'many'"),
        (("--residence", "moon"), 2, "residence is 'moon'"),
        (("--engine", "steam"), 5, "no engine 'steam': there are "),
        (("--message", "0"), 2, "size is '0'"),
        (("--repetitions", "0"), 2, "repetitions is 0"),
        (("--row-seconds", "0"), 2, "row-seconds is 0.0"),
        (("--device", "-1"), 2, "device is -1"),
        (("--folder", "nowhere"), 2, "folder is 'nowhere', which is not a directory"),
        (("--against", "gpg"), 2, "against is 'gpg': expected openssl or pyca"),
        (("--engine", "cpu", "--residence", "device"), 5, "engine cpu runs on host memory"),
        (("--png", "nowhere/x"), 4, "No such file"),
        (("--png", ""), 2, "names no file"),
    ],
)
def test_errors(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    if "--png" in arguments:
        pytest.importorskip("matplotlib")
    done = run("bench", "--quick", *arguments, cwd=tmp_path, expect=code)
    assert message in done.stderr.decode()
    assert done.stdout == b""


def test_what_the_library_would_choose(tmp_path: Path) -> None:
    arguments = ("bench", "--quick", "--engine", "auto", "--residence", "pageable", "--size", "64")
    document = run_json(*arguments, cwd=tmp_path)
    assert [row["algorithm"] for row in document["rows"]] == list(bench.ALGORITHMS)
    for row in document["rows"]:
        assert (row["engine"], set(row["percent_of"])) == ("auto", {"memmove"})
        assert row["blocks_per_clock"] is None


@needs_cuda
def test_what_the_library_would_choose_with_a_gpu(tmp_path: Path) -> None:
    arguments = ("bench", "--quick", "--engine", "auto", "--size", "64")
    document = run_json(*arguments, cwd=tmp_path)
    for row in document["rows"]:
        bounds = {"dram", "logic"} if row["residence"] == "device" else {"memmove"}
        assert bounds <= set(row["percent_of"])
    assert {row["residence"] for row in document["rows"]} == {"device", "pinned", "pageable"}


@without_cuda
def test_says_what_needs_a_gpu(tmp_path: Path) -> None:
    document = run_json("bench", "--quick", "--size", "16", cwd=tmp_path)
    assert document["machine"]["gpu"] is None
    assert document["machine"]["without_gpu"] == ENGINES["cuda"].reason
    (left_out,) = document["skipped"]
    assert left_out["what"] == "cuda"
    assert left_out["reason"] == f"needs a GPU: {ENGINES['cuda'].reason}"
    done = run("bench", "--engine", "cuda", cwd=tmp_path, expect=5)
    assert ENGINES["cuda"].reason in done.stderr.decode()
    run("bench", "--quick", "--residence", "pinned", cwd=tmp_path, expect=5)


@needs_cuda
def test_rows_of_a_gpu(tmp_path: Path) -> None:
    names = (*bench.ALGORITHMS, "aes-128-cbc", "des-cfb")
    document = run_json(
        *("bench", "--quick", "--engine", "cuda", "--size", "8KiB"),
        *("--direction", "encrypt", "--direction", "decrypt"),
        *(part for name in names for part in ("--algorithm", name)),
        cwd=tmp_path,
    )
    found = {(row["algorithm"], row["direction"], row["residence"]) for row in document["rows"]}
    assert found == {
        (name, direction, residence)
        for name in names
        for direction in bench.DIRECTIONS
        for residence in ("device", "pinned", "pageable")
    }
    assert {bound["name"] for bound in document["bounds"]} == {
        *("dram", "shared", "logic", "launch", "to_device", "to_host", "both_ways")
    }
    for row in document["rows"]:
        assert row["clock_mhz"] > 0
        assert row["blocks_per_clock"] > 0
        assert ("dram" if row["residence"] == "device" else "link") in row["percent_of"]
        assert ("logic" in row["percent_of"]) == getattr(
            ALGORITHMS[row["algorithm"]], f"parallel_{row['direction']}"
        )
    gpu = document["machine"]["gpu"]
    assert gpu["name"] in ENGINES["cuda"].devices[0]
    assert gpu["multiprocessors"] > 0
    count = len(ENGINES["cuda"].devices)
    done = run("bench", "--device", "999", cwd=tmp_path, expect=2)
    assert f"this machine has {count} GPUs" in done.stderr.decode()


def test_page_has_every_bound() -> None:
    page = DOCS.read_text()
    for name in ("dram", "shared", "logic", "link", "memmove", "file", "launch"):
        assert f"| `{name}` | " in page
