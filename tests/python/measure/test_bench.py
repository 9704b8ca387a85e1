# SPDX-License-Identifier: Apache-2.0
"""A run of the benchmark: what it measures and leaves out, and its reports. No test looks at how
fast anything is."""

from __future__ import annotations

import gc
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
import warpcipher as wc
from bench_support import ALGORITHMS, SMALL_CACHE
from warpcipher_measure import bench, bounds, cases, machine, memory, plots
from warpcipher_measure.results import shown


@pytest.fixture(scope="module", autouse=True)
def small_cache() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "_cache_bytes", lambda: SMALL_CACHE)
        yield


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
        assert row.limit == ("memmove" if row.percent_of["memmove"] <= 100 else "")
        assert set(row.percent_of) == {"memmove"}


def test_report_serialises(small: bench.Report) -> None:
    document = json.loads(json.dumps(small.as_dict(), allow_nan=False))
    assert document == json.loads(json.dumps(asdict(small)))
    assert document["version"] == wc.__version__
    assert document["machine"]["cpu"]["cores"] == len(os.sched_getaffinity(0))
    assert document["settings"]["repetitions"] == 3
    assert [bound["name"] for bound in document["bounds"]] == ["memmove"]


def test_png(small: bench.Report) -> None:
    pytest.importorskip("matplotlib")
    data = plots.drawn(plots.of_run(small), plots.subtitle_of_run(small))
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")


def on_a_gpu(small: bench.Report) -> bench.Report:
    """Some rows as if of GPU memory, with other rates, and the host's."""
    rows = [
        replace(
            row,
            residence="device",
            engine="cuda",
            gigabytes_per_second=row.gigabytes_per_second.rate(1e3),
            percent_of={"dram": 50.0, "tables": 99.0},
        )
        for row in small.rows[:3]
    ]
    return replace(small, rows=[*rows, *small.rows[:3]])


def test_pictures_stand_for_each_place_and_have_no_bars(small: bench.Report) -> None:
    """Data of host and device stand apart; a bar on a logarithmic axis would begin nowhere."""
    pytest.importorskip("matplotlib")
    both = on_a_gpu(small)
    made = plots.of_run(both)
    places = ["GPU memory, cuda", "host memory, cpu"]
    assert [plot.title for plot in made if plot.name == "rates"] == places
    figure = plots.figure_of(made, "")
    figure.draw_without_rendering()
    assert not any(axes.patches for axes in figure.axes)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    for row in both.rows:
        assert shown(row.gigabytes_per_second.median) in texts
    marks = {series.label for plot in made for series in plot.series}
    assert marks >= {"measured", "bound: dram", "counted: tables", "plain copy: memmove"}
    for label in figure.axes[0].get_yticklabels():
        assert "$" not in label.get_text(), "decades are numbers"


def test_a_quick_run_has_the_bounds_of_a_long_one() -> None:
    """The copy is as long in both: in a quick run it once fitted the cache."""
    settings = [bench.Settings(quick=quick, repetitions=1).effective() for quick in (False, True)]
    found = [bounds.of_host(effective, 1 << 20).measured.split(" in ")[0] for effective in settings]
    assert found[0] == found[1]
    assert found[0] == f"copies of {64 << 20} bytes of random data"


def test_a_wrong_engine_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = bench.Settings(engines=("cpu",), sizes=(64,), quick=True)
    genuine = memory.HostMemory.read
    reads = iter(range(100))

    def altered(self: memory.HostMemory, size: int) -> bytes:
        data = genuine(self, size)  # the first is the text, the second the result
        return data if next(reads) % 2 == 0 else bytes([data[0] ^ 1]) + data[1:]

    monkeypatch.setattr(memory.HostMemory, "read", altered)
    with pytest.raises(wc.EngineError, match="wrong result for aes-128-ctr encrypt"):
        bench.run(settings)


def test_the_text_that_is_checked_has_room_where_caches_are_small() -> None:
    """It is shorter than those of the rows, so there was room for fewer of it than were sealed."""
    settings = bench.Settings(
        algorithms=("aes-256-gcm",),
        directions=("decrypt",),
        sizes=(65536,),
        engines=("cpu",),
        quick=True,
    )
    assert len(bench.run(settings).rows) == 1


def test_a_run_leaves_no_cycles() -> None:
    """At its end it frees in order: device memory before the stream it is freed on."""
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
        cases.Call,
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
    reasons = {entry.what: entry.reason for entry in found.skipped}
    of_both = "encrypt 5 B pageable reference"
    assert "whole blocks of 16" in reasons[f"aes-128-ecb {of_both}"]
    assert "messages of 16 bytes or more" in reasons[f"aes-128-xts {of_both}"]
    long = bench.Settings(algorithms=("aes-128-xts",), sizes=(32 << 20,), message=32 << 20)
    with pytest.raises(wc.EngineError, match="aes-128-xts takes messages of 16 MiB at most"):
        bench.run(long)
