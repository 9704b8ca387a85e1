# SPDX-License-Identifier: Apache-2.0
"""`warpcipher lab`: its papers, reports and refusals. No test looks at how fast anything is."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from cli_support import names, run, run_json
from warpcipher_measure import _native, lab, machine, plots, published, report, session
from warpcipher_measure.results import Spread

CUDA = next(entry for entry in wc.engines() if entry.name == "cuda")
DOCS = Path(__file__).parents[3] / "docs"
without_gpu = pytest.mark.skipif(CUDA.usable, reason="there is a GPU")
SMALL = lab.Settings(quick=True, repetitions=1, values={"largest": 10, "naive_ms": 5})


@pytest.fixture(scope="module")
def billava() -> lab.Report:
    return lab.run("billava2022", SMALL)


def test_papers_are_those_of_the_library() -> None:
    assert set(lab.PAPERS) == set(_native.papers())


@pytest.mark.parametrize("name", lab.PAPERS)
def test_published_values_name_their_place(name: str) -> None:
    document = published.load(name)
    assert document
    for entry in document.values():
        assert entry["source"]
        assert set(entry) > {"source"}


@pytest.mark.parametrize("name", lab.PAPERS)
def test_page_has_its_pictures(name: str) -> None:
    assert f"lab/{name}.md" in (DOCS / "lab.md").read_text()
    page = (DOCS / "lab" / f"{name}.md").read_text()
    for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", page):
        assert (DOCS / "lab" / picture).is_file()


def test_published_rates_are_read_in_gigabytes() -> None:
    """The papers' 35.2 Gbit/s and 6914 Mbit/s; what is not a rate stays."""
    iwai, harrison = published.load("iwai2012"), published.load("harrison2008")
    assert iwai["table5"]["gb_per_s"]["16-shared-shared-registers"] == pytest.approx(4.4)
    assert iwai["overlapped"]["hidden"] == 0.65
    assert harrison["table2_gb_per_s"]["ctr-quad-shared"] == pytest.approx(0.86425)
    assert harrison["table1_seconds"]["reads"] == 5_000_000_000


def test_billava_measures_what_can_run(billava: lab.Report) -> None:
    measured = {entry.variant for entry in billava.measurements}
    skipped = {entry.what for entry in billava.skipped}
    for variant in lab.variants("billava2022"):
        assert (variant in measured) != (f"variant {variant}" in skipped)
    assert {"naive", "key-plain"} <= measured
    assert len(billava.conclusions) >= 2
    for entry in billava.measurements:
        assert entry.checked
        assert not entry.constant_time
        assert 0 < entry.seconds.least <= entry.seconds.median <= entry.seconds.most


def test_report_serialises(billava: lab.Report) -> None:
    document = json.loads(json.dumps(billava.as_dict(), allow_nan=False))
    assert document["paper"] == "billava2022"
    assert document["values"] == {"threads": 512, "largest": 10, "naive_ms": 5}
    assert document["machine"]["cpu"]["model"]
    assert len(document["measurements"]) == len(billava.measurements)


def test_markdown_says_what_it_stands_on(billava: lab.Report) -> None:
    text = lab.markdown(billava)
    assert billava.machine.cpu.model in text
    assert "A quick run" in text
    assert "depends on keys and data" in text
    for table in billava.tables:
        assert f"## {table.title}" in text
    for line in text.splitlines():
        assert line.count("|") != 1
    assert "A quick run" not in lab.markdown(replace(billava, quick=False))


def test_plots(billava: lab.Report) -> None:
    pytest.importorskip("matplotlib")
    for plot in billava.plots:
        data = plots.drawn([plot], plots.subtitle_of(billava))
        assert data.startswith(b"\x89PNG")
        assert data == plots.drawn([plot], plots.subtitle_of(billava))


def test_bars_and_points_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    bars = lab.Plot(
        "b",
        "bars",
        "",
        "GB/s",
        (
            lab.Series("published", ("a", "b"), (1.0, 2.0), published=True),
            lab.Series("here", ("a",), (3.0,)),
        ),
        kind="bars",
    )
    points = replace(
        bars, kind="points", series=(lab.Series("here", (2005.0,), (1.5,)),), log_y=True
    )
    for plot in (bars, points):
        assert plots.drawn([plot], "").startswith(b"\x89PNG")


def test_bars_begin_at_zero_and_log_axes_have_dots() -> None:
    """A bar on a logarithmic axis would begin nowhere, and its length would say nothing."""
    pytest.importorskip("matplotlib")
    series = (lab.Series("here", ("a", "b"), (0.25, 1000.0)),)
    bars = lab.Plot("b", "bars", "", "GB/s", series, kind="bars")
    for plot in (bars, replace(bars, log_y=True)):
        (axes,) = plots.figure_of([plot], "").axes
        assert bool(axes.patches) != plot.log_y
        assert bool(axes.collections) == plot.log_y
        assert axes.get_ylim()[0] == 0 or plot.log_y
        assert [text.get_text() for text in axes.texts] == ["0.25", "1,000"]


def test_points_stand_at_their_year_and_decades_are_numbers() -> None:
    pytest.importorskip("matplotlib")
    series = [lab.Series("published", (2005.0, 2012.0), (2e-4, 4.0), published=True)]
    series += [lab.Series(f"{n}, here", (2026.0,) * 2, (100.0 * n, 300.0)) for n in range(1, 6)]
    plot = lab.Plot("p", "", "year", "GB/s", tuple(series), kind="points", log_y=True)
    figure = plots.figure_of([plot], "")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    drawn = [x for points in axes.collections for x, _ in points.get_offsets()]
    assert drawn[:2] == [2005, 2012]
    assert all(round(x) == 2026 for x in drawn[2:])
    assert list(axes.get_xticks()) == [2005, 2010, 2015, 2020, 2026]
    assert {"0.001", "0.1", "1", "1,000"} <= {label.get_text() for label in axes.get_yticklabels()}


def test_a_subtitle_names_a_machine_only_where_something_ran(billava: lab.Report) -> None:
    machine = billava.machine
    device = machine.cpu.model if machine.gpu is None else machine.gpu.name
    assert f"on {device}, " in plots.subtitle_of(billava)
    nothing = plots.subtitle_of(replace(billava, measurements=[]))
    assert nothing == "only published values: nothing was measured"


def test_lines_are_drawn_with_their_units() -> None:
    pytest.importorskip("matplotlib")
    sizes = tuple(float(1 << n) for n in range(4, 31))
    lines = lab.Plot(
        "l",
        "lines",
        "bytes",
        "GB/s",
        tuple(lab.Series(f"{name}, a", sizes, sizes, name == "p") for name in "xxypzvw"),
        log_x=True,
        log_y=True,
    )
    assert plots.drawn([lines], "").startswith(b"\x89PNG")


def test_cells() -> None:
    assert report.cell_text(None) == "-"
    assert report.cell_text(1.23456) == "1.235"
    assert report.cell_text(512) == "512"
    assert report.cell_text(12345.6) == "12346"
    assert report.cell_text(Spread(2e-3, 1e-3, 3.0, 3)) == "2 ms (1 ms to 3 s)"
    table = lab.Table("", "", ("a",), (("b|c",),))
    assert report.as_table(table) == "| a |\n| --- |\n| b\\|c |"


def test_a_wrong_result_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    true_result = session.Session.result

    def wrong(*arguments: Any) -> bytes:
        data = true_result(*arguments)
        return data[:-1] + bytes([data[-1] ^ 1])

    monkeypatch.setattr(session.Session, "result", wrong)
    with pytest.raises(wc.EngineError, match="'naive' of billava2022 is wrong"):
        lab.run("billava2022", SMALL)


def test_long_texts_are_checked_against_the_cpu_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lab.Session(lab.find_paper("billava2022"), SMALL, machine.look(0))
    size = session.REFERENCE_MOST + 16
    found.check_cipher("naive", "aes-128-ecb", (16, size))
    monkeypatch.setattr(found, "result", lambda *_: b"")
    with pytest.raises(wc.EngineError, match=f"for {size} bytes .* the cpu engine"):
        found.check_cipher("naive", "aes-128-ecb", (size,))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"thread": 1}, "no parameter 'thread' of billava2022"),
        ({"threads": 16}, "threads is 16: billava2022 takes 32 to 1024"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        lab.run("billava2022", lab.Settings(values=values))


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="no paper 'iwai'"):
        lab.run("iwai")
    with pytest.raises(ValueError, match="repetitions is 0"):
        lab.Settings(repetitions=0)
    with pytest.raises(ValueError, match="device is -1"):
        lab.Settings(device=-1)


def test_jobs_refuse_what_they_do_not_take() -> None:
    with pytest.raises(ValueError, match="key is 5 bytes: expected 16, 32"):
        _native.Job("billava2022", "naive", bytes(5), b"", {}, 0)
    with pytest.raises(ValueError, match="no parameter 'x' here"):
        _native.Job("billava2022", "naive", bytes(16), b"", {"x": 1}, 0)
    with pytest.raises(ValueError, match="no variant 'y' of billava2022"):
        _native.Job("billava2022", "y", bytes(16), b"", {}, 0)
    with pytest.raises(ValueError, match="in is 15 bytes and out 15"):
        _native.Job("billava2022", "naive", bytes(16), b"", {}, 0).run(0, 15, 0, 15, 0)


@without_gpu
def test_a_gpu_variant_says_what_it_needs() -> None:
    found = lab.Session(lab.find_paper("billava2022"), SMALL, machine.look(0))
    assert not found.can_run("kernel")
    assert not found.can_run("kernel")
    assert [entry.what for entry in found.report.skipped] == ["variant kernel"]
    assert "needs a GPU" in found.report.skipped[0].reason


# --- the command ----------------------------------------------------------------------------------


def test_command_lists_the_papers(tmp_path: Path) -> None:
    text = run("lab", cwd=tmp_path).stdout.decode()
    listed = run_json("lab", cwd=tmp_path)
    assert [entry["name"] for entry in listed] == list(lab.PAPERS)
    for entry in listed:
        assert entry["name"] in text
        for variant in entry["variants"]:
            assert variant["name"] in text
        for parameter in lab.PAPERS[entry["name"]].parameters:
            assert f"--set {parameter.name}=" in text
    assert "not constant time" in text


QUICK = ("lab", "billava2022", "--quick", "--repetitions", "1", "--set", "largest=10")


def test_command_prints_markdown_or_json(tmp_path: Path) -> None:
    text = run(*QUICK, cwd=tmp_path).stdout.decode()
    assert text.startswith("# billava2022: ")
    (document,) = run_json(*QUICK, cwd=tmp_path)
    assert document["quick"] is True
    assert document["repetitions"] == 1


def test_command_writes_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new" / "results"
    run(*QUICK, "--out", "new/results", cwd=tmp_path)
    assert {"billava2022.md", "billava2022.json", "billava2022-time.png"} <= names(folder)
    before = (folder / "billava2022.md").read_bytes()
    # Existing files are reported before anything is measured.
    run("lab", "timeline", "billava2022", "--out", "new/results", cwd=tmp_path, expect=2)
    assert (folder / "billava2022.md").read_bytes() == before
    assert "timeline.md" not in names(folder)
    run(*QUICK, "--out", "new/results", "--force", cwd=tmp_path)


@without_gpu
def test_command_has_a_timeline(tmp_path: Path) -> None:
    text = run("lab", "timeline", cwd=tmp_path).stdout.decode()
    assert "| 2005 | Cook et al., OpenGL | GeForce3 Ti200 | 0.0001912 |" in text
    assert "- the kernels of the lab and of the product: no GPU" in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("timeline", "--set", "threads=1"), "no parameter 'threads' of timeline"),
        (("nothing",), "no paper 'nothing': there are yang2007,"),
        (("billava2022", "--set", "threads"), "expected NAME=VALUE"),
        (("billava2022", "--set", "threads=x"), "expected NAME=VALUE"),
        (("billava2022", "--set", "threads=8"), "threads is 8"),
        (("billava2022", "--out", "file"), "file is not a directory"),
    ],
)
def test_command_refuses(arguments: tuple[str, ...], text: str, tmp_path: Path) -> None:
    if "--out" in arguments:
        pytest.importorskip("matplotlib")
    (tmp_path / "file").touch()
    assert text in run("lab", *arguments, cwd=tmp_path, expect=2).stderr.decode()
