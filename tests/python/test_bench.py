# SPDX-License-Identifier: Apache-2.0
"""`warpcipher bench`: what it measures and leaves out, what it prints, and what it refuses. No test
looks at how fast anything is."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import COMMAND, run, run_json
from warpcipher import bench
from warpcipher.bench import measure, memory, openssl, plots, report

ENGINES = {entry.name: entry for entry in wc.engines()}
ALGORITHMS = {entry.name: entry for entry in wc.algorithms()}
QUICK = ("bench", "--quick", "--engine", "cpu")
DOCS = Path(__file__).parents[2] / "docs" / "bench.md"

needs_cuda = pytest.mark.skipif(not ENGINES["cuda"].usable, reason="needs the cuda engine")
without_cuda = pytest.mark.skipif(ENGINES["cuda"].usable, reason="there is a GPU")


@pytest.fixture(scope="module")
def small() -> bench.Report:
    """Every algorithm both ways."""
    return bench.run(
        bench.Settings(
            algorithms=tuple(ALGORITHMS),
            directions=bench.DIRECTIONS,
            sizes=(8192,),
            engines=("cpu",),
            quick=True,
        )
    )


# --- a run ----------------------------------------------------------------------------------------


def test_every_algorithm_is_measured(small: bench.Report) -> None:
    expected = {(name, direction, 8192) for name in ALGORITHMS for direction in bench.DIRECTIONS}
    assert {(row.algorithm, row.direction, row.size) for row in small.rows} == expected
    assert len(small.rows) == len(expected)


def test_rows_are_whole(small: bench.Report) -> None:
    for row in small.rows:
        rate = row.gigabytes_per_second
        assert 0 < rate.least <= rate.median <= rate.most
        assert row.latency.least > 0
        assert row.seconds.count == rate.count == 3
        assert math.isclose(rate.median, row.size / row.seconds.median / 1e9)
        assert row.messages == -(-row.size // row.message)
        assert row.limit == max(row.percent_of, key=lambda name: row.percent_of[name])
        assert set(row.percent_of) == {"host"}


def test_report_serialises(small: bench.Report) -> None:
    document = json.loads(json.dumps(small.as_dict(), allow_nan=False))
    assert document == json.loads(json.dumps(asdict(small)))
    assert document["version"] == wc.__version__
    assert document["machine"]["cpu"]["cores"] == len(os.sched_getaffinity(0))
    assert document["settings"]["repetitions"] == 3
    assert [bound["name"] for bound in document["bounds"]] == ["host"]


def test_csv_has_a_whole_line_for_each_row(small: bench.Report) -> None:
    lines = list(csv.DictReader(io.StringIO(report.as_csv(small))))
    assert len(lines) == len(small.rows)
    for line, row in zip(lines, small.rows, strict=True):
        assert tuple(line) == report.CSV_COLUMNS
        assert line["algorithm"] == row.algorithm
        assert float(line["gb_per_s_median"]) == pytest.approx(
            row.gigabytes_per_second.median, 1e-4
        )
        assert all(line[name] for name in ("device", "driver", "repetitions", "percent_of_host"))


class Page(HTMLParser):
    """Counts elements, and sees to it that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html(small: bench.Report) -> None:
    pytest.importorskip("matplotlib")
    text = plots.as_html(small)
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open
    assert page.count["svg"] == 2
    assert page.count["tr"] == 1 + len(small.bounds) + 1 + len(small.rows)
    assert not re.search(r"(?:src|href)=\"https?:", text)
    assert small.machine.cpu.model in text


def test_png(small: bench.Report) -> None:
    pytest.importorskip("matplotlib")
    data = plots.as_png(small)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")


def test_a_wrong_engine_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = bench.Settings(engines=("cpu",), sizes=(64,), quick=True)
    genuine = memory.Arena.read
    reads = iter(range(100))

    def altered(self: memory.Arena, part: Any) -> bytes:
        data = genuine(self, part)  # the first is the text, the second the result
        return data if next(reads) % 2 == 0 else bytes([data[0] ^ 1]) + data[1:]

    monkeypatch.setattr(memory.Arena, "read", altered)
    with pytest.raises(wc.EngineError, match="wrong result for aes-128-ctr encrypt"):
        bench.run(settings)


def test_a_run_leaves_no_cycles() -> None:
    """What it holds goes in order when it ends: device memory before the stream it is freed on."""
    settings = bench.Settings(
        algorithms=("aes-128-ctr", "aes-128-cbc", "aes-128-gcm"),
        directions=bench.DIRECTIONS,
        sizes=(8192,),
        quick=True,
    )
    gc.collect()
    gc.disable()
    try:
        bench.run(settings)
        kept = {type(thing) for thing in gc.get_objects()}
    finally:
        gc.enable()
    assert not kept & {
        memory.Arena,
        memory.DeviceMemory,
        memory.DevicePart,
        memory.HostMemory,
        measure.Call,
    }


def test_sizes_that_do_not_fit_an_algorithm_are_left_out() -> None:
    found = bench.run(
        bench.Settings(
            algorithms=("aes-128-ecb", "aes-128-ctr", "aes-128-xts"),
            sizes=(5, 32),
            engines=("reference",),
            quick=True,
        )
    )
    assert [(row.algorithm, row.size) for row in found.rows] == [
        ("aes-128-ecb", 32),
        ("aes-128-ctr", 5),
        ("aes-128-ctr", 32),
        ("aes-128-xts", 32),
    ]
    reasons = {(entry.algorithm, entry.size): entry.reason for entry in found.skipped}
    assert "whole blocks of 16" in reasons["aes-128-ecb", 5]
    assert "messages of 16 bytes or more" in reasons["aes-128-xts", 5]


def test_messages(tmp_path: Path) -> None:
    arguments = (*QUICK, "--algorithm", "aes-256-gcm", "--size", "1000", "--message", "300")
    for direction in bench.DIRECTIONS:
        document = run_json(*arguments, "--direction", direction, cwd=tmp_path)
        (row,) = document["rows"]
        assert (row["messages"], row["message"], row["direction"]) == (4, 300, direction)


# --- the command ----------------------------------------------------------------------------------


def test_text(tmp_path: Path) -> None:
    done = run(*QUICK, "--size", "64", "--algorithm", "aes-128-ctr", cwd=tmp_path)
    text = done.stdout.decode()
    assert re.search(r"^aes-128-ctr +encrypt +64 B +pageable +cpu .* GB/s x3 +alone ", text, re.M)
    assert re.search(r"^cpu: .*\n(gpu: .*\n)?system: ", text, re.M)
    assert re.search(r"^bound host ", text, re.M)
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
    (left_out,) = (entry for entry in document["skipped"] if entry["algorithm"])
    assert left_out["algorithm"] == "aes-128-xts"
    assert "up to 16 MiB" in left_out["reason"]
    assert len(document["rows"]) == 3


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = (*QUICK, "--size", "64", "--png", "a.png", "--html", "b.html")
    run(*arguments, cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.html"}
    before = (tmp_path / "a.png").read_bytes()
    done = run(*arguments, cwd=tmp_path, expect=2)
    assert b"a.png exists: use --force" in done.stderr
    assert (tmp_path / "a.png").read_bytes() == before
    run(*arguments, "--force", cwd=tmp_path)


@pytest.mark.parametrize("option", ["--png", "--html"])
def test_plots_without_matplotlib(tmp_path: Path, option: str) -> None:
    """Told before anything is measured, and no file is made."""
    program = (
        "import sys; sys.modules['matplotlib'] = None; from warpcipher.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *QUICK, option, "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip install 'warpcipher[bench]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


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
        (("--against", "gpg"), 2, "against is 'gpg': expected openssl"),
        (("--json", "--csv"), 2, "--json and --csv both"),
        (("--engine", "cpu", "--residence", "device"), 5, "engine cpu runs on host memory"),
        (("--png", "nowhere/x"), 4, "No such file"),
        (("--html", ""), 2, "names no file"),
    ],
)
def test_errors(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    if "--png" in arguments or "--html" in arguments:
        pytest.importorskip("matplotlib")
    done = run("bench", "--quick", *arguments, cwd=tmp_path, expect=code)
    assert message in done.stderr.decode()
    assert done.stdout == b""


def test_what_the_library_would_choose(tmp_path: Path) -> None:
    arguments = ("bench", "--quick", "--engine", "auto", "--residence", "pageable", "--size", "64")
    document = run_json(*arguments, cwd=tmp_path)
    assert [row["algorithm"] for row in document["rows"]] == list(bench.ALGORITHMS)
    for row in document["rows"]:
        assert (row["engine"], set(row["percent_of"])) == ("auto", {"host"})
        assert row["blocks_per_clock"] is None


@needs_cuda
def test_what_the_library_would_choose_with_a_gpu(tmp_path: Path) -> None:
    arguments = ("bench", "--quick", "--engine", "auto", "--size", "64")
    document = run_json(*arguments, cwd=tmp_path)
    for row in document["rows"]:
        bounds = {"dram", "logic"} if row["residence"] == "device" else {"host"}
        assert bounds <= set(row["percent_of"])
    assert {row["residence"] for row in document["rows"]} == {"device", "pinned", "pageable"}


@without_cuda
def test_says_what_needs_a_gpu(tmp_path: Path) -> None:
    document = run_json("bench", "--quick", "--size", "16", cwd=tmp_path)
    assert document["machine"]["gpu"] is None
    assert document["machine"]["without_gpu"] == ENGINES["cuda"].reason
    (left_out,) = document["skipped"]
    assert left_out["engine"] == "cuda"
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


# --- peers ----------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_against_openssl(tmp_path: Path) -> None:
    names = ("--algorithm", "aes-256-gcm", "--direction", "decrypt")
    arguments = (*QUICK, *names, "--size", "4096", "--against", "openssl")
    document = run_json(*arguments, cwd=tmp_path)
    (peer,) = document["peers"]
    assert peer["processes"] == len(os.sched_getaffinity(0))
    assert peer["gigabytes_per_second"]["median"] > 0
    assert peer["version"].startswith("OpenSSL 3")
    assert peer["command"].startswith("openssl speed -mr -elapsed -multi ")
    assert peer["command"].endswith("-bytes 4096 -aead -decrypt -evp aes-256-gcm")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_names_of_openssl() -> None:
    """Each that this OpenSSL has without its legacy provider, which holds single DES."""
    listed = subprocess.run(
        ["openssl", "list", "-cipher-algorithms"], capture_output=True, text=True, check=True
    ).stdout.lower()
    for name in ALGORITHMS:
        if not name.startswith("des-ede2-cfb8") and "des-" not in name:
            assert openssl.name_of(name) in listed
    assert openssl.name_of("des-ede2-cbc") == "des-ede-cbc"
    assert openssl.name_of("des-ede3-cbc") == "des-ede3-cbc"


def test_results_of_openssl_are_parsed() -> None:
    output = "Got: +F:25:AES-256-GCM:100.0 from 0\n+F:25:AES-256-GCM:911546144.95\n"
    assert openssl.parse(output) == 911546144.95
    assert openssl.parse("speed: unknown\n") is None


def test_what_openssl_refuses_is_reported(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    found = openssl.measure("openssl", "", "no-cipher", "encrypt", 16, 1)
    assert isinstance(found, str)
    assert found.startswith("openssl speed: ")


def test_against_openssl_without_openssl(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = run("bench", "--against", "openssl", cwd=tmp_path, expect=2, env=environment)
    assert "no openssl is on PATH" in done.stderr.decode()


# --- documentation --------------------------------------------------------------------------------


def test_page_has_every_option_and_bound() -> None:
    page = DOCS.read_text()
    text = subprocess.run(
        [*COMMAND, "bench", "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", text)) - {"--help"}
    assert len(options) > 12
    for option in options:
        assert f"`{option}" in page or f", `{option}" in page, option
    for name in ("dram", "shared", "logic", "link", "host", "file", "launch"):
        assert f"| `{name}` | " in page
    for name in bench.ALGORITHMS:
        assert name in page
    assert ", ".join(bench.shown_size(size) for size in bench.SIZES) in page
