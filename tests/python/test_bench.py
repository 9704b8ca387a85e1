# SPDX-License-Identifier: Apache-2.0
"""A run of the benchmark: what it measures and leaves out, and its reports. No test looks at how
fast anything is."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import os
import re
from dataclasses import asdict
from html.parser import HTMLParser
from typing import Any

import pytest
import warpcipher as wc
from bench_support import ALGORITHMS
from warpcipher import bench
from warpcipher.bench import measure, memory, plots, report


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
