# SPDX-License-Identifier: Apache-2.0
"""`warpcipher lab`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click
from warpcipher.cli.errors import ENGINE, Command, epilog, shown, usage
from warpcipher.cli.files import open_output
from warpcipher.cli.report import on_terminal

if TYPE_CHECKING:
    from warpcipher_measure.lab import Report

ALL = "all"
TIMELINE = "timeline"


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from warpcipher_measure import lab

    return [name for name in (*lab.PAPERS, ALL, TIMELINE) if name.startswith(incomplete)]


@click.command(cls=Command, epilog=epilog(ENGINE))
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_names)
@click.option("--quick", is_flag=True, help="Small and short, to try the command; not to quote.")
@click.option(
    "--set",
    "values",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the paper; the list has them.",
)
@click.option("--repetitions", metavar="N", type=int, help="Timed repetitions of a figure; 7.")
@click.option("--device", metavar="N", type=int, default=0, help="The GPU; 0.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--out",
    metavar="DIR",
    help="Write NAME.md, NAME.json and NAME-PLOT.png to this folder, made if it is missing;"
    " plots need warpcipher[measure].",
)
@click.option("-f", "--force", is_flag=True, help="Replace files in --out.")
def lab(
    names: tuple[str, ...],
    quick: bool,
    values: tuple[str, ...],
    repetitions: int | None,
    device: int,
    as_json: bool,
    out: str | None,
    force: bool,
) -> None:
    """Rerun papers on GPU cryptography on this machine, and show the figures they published.

    Without a name: the list of papers, their variants and parameters. `all` is every paper,
    `timeline` AES-128 on GPUs from 2005 to this one. Each variant is checked
    before it is timed. Most look secrets up in tables, in a time that depends on them: they are for
    measuring alone. docs/lab.md explains.

    \b
    warpcipher lab
    warpcipher lab billava2022 --quick
    warpcipher lab billava2022 --set threads=256 --out results
    warpcipher lab all --out results
    warpcipher lab timeline --out results
    """
    from warpcipher_measure import lab as papers
    from warpcipher_measure.lab import plots

    if not names:
        _list(as_json)
        return
    wanted = (*papers.PAPERS, *(name for name in names if name != ALL)) if ALL in names else names
    chosen = list(dict.fromkeys(wanted))
    for name in chosen:
        if name not in (*papers.PAPERS, TIMELINE):
            known = ", ".join((*papers.PAPERS, ALL))
            raise usage(f"no paper {name!r}: there are {known} and {TIMELINE}")
    settings = papers.Settings(
        quick=quick, device=device, repetitions=repetitions, values=_values(values)
    )
    for name in chosen:
        if name != TIMELINE:
            papers.find_paper(name).values(settings)
        elif settings.values:
            raise usage(f"--set is given: {TIMELINE} has no parameters")
    if out is not None:
        plots.require()
        try:
            os.makedirs(out, exist_ok=True)  # noqa: PTH103 - the other checks of names work on strings
        except FileExistsError:
            raise usage(f"{shown(out)} is not a directory") from None
        for name in chosen:
            _check_outputs(name, out, force)
    reports = []
    for name in chosen:
        result = (
            papers.timeline(settings, _watch)
            if name == TIMELINE
            else papers.run(name, settings, _watch)
        )
        reports.append(result)
        if out is not None:
            _write_all(result, out, force)
        elif not as_json:
            click.echo(papers.markdown(result), nl=False)
    if as_json:
        click.echo(json.dumps([result.as_dict() for result in reports], indent=2))


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
    from warpcipher_measure import lab as papers

    entries = [
        {
            "name": paper.name,
            "title": paper.title,
            "citation": paper.citation,
            "parameters": [
                {"name": entry.name, "default": entry.default, "text": entry.text}
                for entry in paper.parameters
            ],
            "variants": [
                {
                    "name": variant.name,
                    "description": variant.description,
                    "needs_gpu": variant.needs_gpu,
                    "constant_time": variant.constant_time,
                    "absent": variant.absent,
                }
                for variant in papers.variants(paper.name).values()
            ],
        }
        for paper in papers.PAPERS.values()
    ]
    if as_json:
        click.echo(json.dumps(entries, indent=2))
        return
    for paper in papers.PAPERS.values():
        click.echo(f"{paper.name}: {paper.title}\n  {paper.citation}")
        for entry in paper.parameters:
            click.echo(f"  {f'--set {entry.name}={entry.default}':24} {entry.text}")
        variants = papers.variants(paper.name).values()
        width = max((len(variant.name) for variant in variants), default=0)
        for variant in variants:
            marks = [
                *(["needs a GPU"] if variant.needs_gpu else []),
                *([] if variant.constant_time else ["not constant time"]),
                *([variant.absent] if variant.absent else []),
            ]
            text = "; ".join([variant.description, *([", ".join(marks)] if marks else [])])
            click.echo(f"  {variant.name:{width}} {text}")
    click.echo(f"{TIMELINE}: AES-128 on GPUs from 2005 to this one, published and measured")


def _watch(news: object) -> None:
    """Standard output has the result: who watches sees the lines on standard error."""
    from warpcipher_measure.lab import report

    if on_terminal():
        click.echo(report.line(news), err=True)


def _check_outputs(name: str, folder: str, force: bool) -> None:
    """Tells of a report that exists before it is measured again, which takes long."""
    for file in (f"{name}.md", f"{name}.json"):
        open_output(os.path.join(folder, file), force=force).close()  # noqa: PTH118


def _write_all(report: Report, folder: str, force: bool) -> None:
    from warpcipher_measure.lab import markdown, plots

    subtitle = plots.subtitle_of(report)
    contents = {
        f"{report.paper}.md": markdown(report).encode(),
        f"{report.paper}.json": (json.dumps(report.as_dict(), indent=2) + "\n").encode(),
        **{
            f"{report.paper}-{plot.name}.png": plots.as_png(plot, subtitle) for plot in report.plots
        },
    }
    for name, data in contents.items():
        path = os.path.join(folder, name)  # noqa: PTH118
        with open_output(path, force=force) as output:
            output.write_all(data, None)
        click.echo(shown(path))
