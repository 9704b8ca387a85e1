# SPDX-License-Identifier: Apache-2.0
"""The commands that this package adds to `warpcipher`: `bench` and `lab`."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from warpcipher.cli import names as completion
from warpcipher.cli.errors import ENGINE, command, print_json, shown, usage
from warpcipher.cli.files import open_output
from warpcipher.cli.options import JSON, option
from warpcipher.cli.report import on_terminal

if TYPE_CHECKING:
    from .results import PaperReport

Names = tuple[str, ...]
ALL = "all"
TIMELINE = "timeline"
DEVICE = option("--device N", "The GPU.  [default: 0]", type=int, default=0)
many = partial(option, multiple=True)
ALGORITHM = "An algorithm, or all. May be given several times, as may the next four."
ENGINES = "Engine to measure, or auto.  [default: all that run here except reference]"
QUICK = option("--quick", "Small and short, to try the command; not to quote.")


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from . import lab

    return [name for name in (*lab.PAPERS, ALL, TIMELINE) if name.startswith(incomplete)]


def _show(news: object, *, err: bool = False) -> None:
    from . import report

    click.echo(report.line(news), err=err)


def _watch(news: object) -> None:
    """Standard output has the result: who watches sees the lines on standard error."""
    if on_terminal():
        _show(news, err=True)


@command(ENGINE)
@many("--algorithm algorithms NAME", ALGORITHM, shell_complete=completion.algorithms)
@many("--direction directions NAME", "encrypt (default) or decrypt.", default=("encrypt",))
@many("--size sizes SIZE", "Text, up to 8GiB: 16, 64KiB, or a range in steps of 4, 16..1GiB.")
@many("--residence residences NAME", "Where the data lie: device, pinned, pageable or file.")
@many("--engine engines NAME", ENGINES, shell_complete=completion.engines)
@option(
    "--message SIZE",
    "Cut the text into messages of this size; by default where one message cannot fill an "
    "engine: XTS and chained directions, 4KiB.",
)
@option("--repetitions N", "Timed repetitions of a row.  [default: 7]", type=int)
@option(
    "--row-seconds SECONDS",
    "Time limit for a row in seconds: slower rows get fewer repetitions or are skipped.  "
    "[default: 1.5]",
    type=float,
)
@DEVICE
@option("--folder DIR", "For --residence file; the system's for temporaries.")
@option("--against NAME", "Run a peer too: openssl (its speed -multi) or pyca (by turns).")
@QUICK
@JSON
@option("--png FILE", "Write plots.")
@option("-f --force", "Replace the file of --png.")
def bench(as_json: bool, png: str | None, force: bool, **asked: Any) -> None:
    """Measure how fast this machine encrypts, and how near that is to its bounds.

    Rates are GB/s of text (10^9 bytes), the median with the least and the most, through the Python
    calls that everybody uses, on random data that lie in no cache. Beside each: a single call, and
    the rate in percent of the bounds, which are measured in the same run. docs/bench.md explains.

    \b
    warpcipher bench
    warpcipher bench --algorithm aes-256-gcm --size 16..1GiB --png report.png
    warpcipher bench --residence file --folder /mnt/data --against openssl
    """
    import warpcipher as wc
    from warpcipher.arguments import parse_size

    from . import bench as measuring
    from . import plots
    from .settings import parse_sizes

    if "all" in asked["algorithms"]:
        asked["algorithms"] = tuple(entry.name for entry in wc.algorithms())
    asked["sizes"] = tuple(size for text in asked["sizes"] for size in parse_sizes(text))
    if asked["message"] is not None:
        asked["message"] = parse_size(asked["message"])
    settings = measuring.Settings(**asked)
    with contextlib.ExitStack() as stack:
        # Opened before measuring, so that a name that cannot be written is refused at once.
        output = None if png is None else stack.enter_context(open_output(png, force=force))
        result = measuring.run(settings, _watch if as_json else _show)
        if as_json:
            print_json(result.as_dict())
        if output is not None:
            data = plots.drawn(plots.of_run(result), plots.subtitle_of_run(result))
            output.write_all(data, None)


@command(ENGINE)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_names)
@QUICK
@many("--set values NAME=VALUE", "A parameter of the paper; the list has them.")
@option("--repetitions N", "Timed repetitions of a figure.  [default: 7]", type=int)
@DEVICE
@JSON
@option(
    "--out DIR", "Write NAME.md, NAME.json and NAME-PLOT.png to this folder, made if it is missing."
)
@option("-f --force", "Replace files in --out.")
def lab(
    names: Names, values: Names, as_json: bool, out: str | None, force: bool, **asked: Any
) -> None:
    """Rerun papers on GPU cryptography on this machine, and show the figures they published.

    Without a name: the list of papers, their variants and parameters. `all` is every paper,
    `timeline` AES-128 on GPUs from 2005 to this one. Each variant is checked before it is timed.
    Most look secrets up in tables, in a time that depends on them: they are only for measuring.
    docs/lab.md explains.

    \b
    warpcipher lab
    warpcipher lab billava2022 --quick
    warpcipher lab billava2022 --set threads=256 --out results
    warpcipher lab all --out results
    warpcipher lab timeline --out results
    """
    from . import lab as papers

    if not names:
        _list(as_json)
        return
    wanted = (*papers.PAPERS, *(name for name in names if name != ALL)) if ALL in names else names
    chosen = list(dict.fromkeys(wanted))
    settings = papers.Settings(values=_values(values), **asked)
    for name in chosen:
        papers.find_paper(name).values(settings)  # refuses what is wrong before anything is run
    if out is not None:
        try:
            os.makedirs(out, exist_ok=True)  # noqa: PTH103 - the other checks of names work on strings
        except FileExistsError:
            raise usage(f"{shown(out)} is not a directory") from None
        for name in chosen:
            _check_outputs(name, out, force)
    reports = []
    for name in chosen:
        result = papers.run(name, settings, _watch)
        reports.append(result)
        if out is not None:
            _write_all(result, out, force)
        elif not as_json:
            click.echo(papers.markdown(result), nl=False)
    if as_json:
        print_json([result.as_dict() for result in reports])


def _values(given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            found[name] = int(value)
        except ValueError:
            equals = ""
        if not equals:
            raise usage(f"--set is {text!r}: expected NAME=VALUE with a whole number")
    return found


def _list(as_json: bool) -> None:
    from . import lab as papers

    known = {paper: papers.variants(paper.name).values() for paper in papers.PAPERS.values()}
    if as_json:
        entries = [
            {
                **{name: getattr(paper, name) for name in ("name", "title", "citation")},
                "parameters": [asdict(entry) for entry in paper.parameters],
                "variants": [asdict(entry) for entry in variants],
            }
            for paper, variants in known.items()
        ]
        print_json(entries)
        return
    for paper, variants in known.items():
        click.echo(f"{paper.name}: {paper.title}\n  {paper.citation}")
        for parameter in paper.parameters:
            given = f"--set {parameter.name}={parameter.default}"
            click.echo(f"  {given:24} {parameter.text}")
        width = max((len(variant.name) for variant in variants), default=0)
        for variant in variants:
            gpu = "needs a GPU" if variant.needs_gpu else ""
            leaks = "" if variant.constant_time else "not constant time"
            text = "; ".join(filter(None, (variant.description, gpu, leaks, variant.absent)))
            click.echo(f"  {variant.name:{width}} {text}")
    click.echo(f"{TIMELINE}: AES-128 on GPUs from 2005 to this one, published and measured")


def _check_outputs(name: str, folder: str, force: bool) -> None:
    """Reports that a report exists before it is measured again, which takes long."""
    for file in (f"{name}.md", f"{name}.json"):
        open_output(os.path.join(folder, file), force=force).close()  # noqa: PTH118


def _write_all(report: PaperReport, folder: str, force: bool) -> None:
    from . import plots
    from .report import markdown

    subtitle, name = plots.subtitle_of(report), report.paper
    contents = {
        f"{name}.md": markdown(report).encode(),
        f"{name}.json": (json.dumps(report.as_dict(), indent=2) + "\n").encode(),
        **{f"{name}-{it.name}.png": plots.drawn([it], subtitle) for it in report.plots},
    }
    for file, data in contents.items():
        path = os.path.join(folder, file)  # noqa: PTH118
        with open_output(path, force=force) as output:
            output.write_all(data, None)
        click.echo(shown(path))
