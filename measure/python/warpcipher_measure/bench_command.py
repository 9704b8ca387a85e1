# SPDX-License-Identifier: Apache-2.0
"""`warpcipher bench`."""

from __future__ import annotations

import contextlib
import json

import click
from warpcipher.cli import names
from warpcipher.cli.conflicts import Folders
from warpcipher.cli.errors import ENGINE, Command, epilog, usage
from warpcipher.cli.files import open_output
from warpcipher.cli.report import on_terminal

Names = tuple[str, ...]


def _engines(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    import warpcipher as wc

    from warpcipher_measure.bench.settings import AUTO

    names = (AUTO, *(entry.name for entry in wc.engines()))
    return [name for name in names if name.startswith(incomplete)]


@click.command(cls=Command, epilog=epilog(ENGINE))
@click.option(
    "--algorithm",
    "algorithms",
    metavar="NAME",
    multiple=True,
    shell_complete=names.algorithms,
    help="An algorithm, or all. May be given several times, as may the next four.",
)
@click.option(
    "--direction",
    "directions",
    metavar="NAME",
    multiple=True,
    default=("encrypt",),
    help="encrypt (default) or decrypt.",
)
@click.option(
    "--size",
    "sizes",
    metavar="SIZE",
    multiple=True,
    help="Text, up to 8GiB: 16, 64KiB, or a range in steps of 4, 16..1GiB.",
)
@click.option(
    "--residence",
    "residences",
    metavar="NAME",
    multiple=True,
    help="Where the data lie: device, pinned, pageable or file.",
)
@click.option(
    "--engine",
    "engines",
    metavar="NAME",
    multiple=True,
    shell_complete=_engines,
    help="Engine to measure, or auto.  [default: all that run here except reference]",
)
@click.option(
    "--message",
    metavar="SIZE",
    help="Cut the text into messages of this size; by default where one message cannot fill an "
    "engine: XTS and chained directions, 4KiB.",
)
@click.option(
    "--repetitions", metavar="N", type=int, help="Timed repetitions of a row.  [default: 7]"
)
@click.option(
    "--row-seconds",
    metavar="SECONDS",
    type=float,
    help="Time limit for a row in seconds: slower rows get fewer repetitions or are skipped.  "
    "[default: 1.5]",
)
@click.option("--device", metavar="N", type=int, default=0, help="The GPU.  [default: 0]")
@click.option("--folder", metavar="DIR", help="For --residence file; the system's for temporaries.")
@click.option(
    "--against",
    metavar="NAME",
    help="Run a peer too: openssl (its speed -multi) or pyca (by turns).",
)
@click.option("--quick", is_flag=True, help="Small and short, to try the command; not to quote.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--png", metavar="FILE", help="Write plots; needs warpcipher[measure].")
@click.option("--html", metavar="FILE", help="Write a page with plots; needs warpcipher[measure].")
@click.option("-f", "--force", is_flag=True, help="Replace the files of --png and --html.")
def bench(
    algorithms: Names,
    directions: Names,
    sizes: Names,
    residences: Names,
    engines: Names,
    message: str | None,
    repetitions: int | None,
    row_seconds: float | None,
    device: int,
    folder: str | None,
    against: str | None,
    quick: bool,
    as_json: bool,
    as_csv: bool,
    png: str | None,
    html: str | None,
    force: bool,
) -> None:
    """Measure how fast this machine encrypts, and how near that is to what it can do.

    Rates are GB/s of text (10^9 bytes), the median with the least and the most, through the Python
    calls that everybody uses, on random data that lie in no cache. Beside each: one call alone, and
    the rate in percent of the bounds, which are measured in the same run. docs/bench.md explains.

    \b
    warpcipher bench
    warpcipher bench --algorithm aes-256-gcm --size 16..1GiB --html report.html
    warpcipher bench --residence file --folder /mnt/data --against openssl
    """
    import warpcipher as wc

    from warpcipher_measure import bench as measuring
    from warpcipher_measure.bench import page, plots, report

    if as_json and as_csv:
        raise usage("--json and --csv both go to standard output: give one")
    settings = measuring.Settings(
        algorithms=tuple(entry.name for entry in wc.algorithms())
        if "all" in algorithms
        else algorithms,
        directions=directions,
        sizes=tuple(size for text in sizes for size in measuring.parse_sizes(text)),
        residences=residences,
        engines=engines,
        message=None if message is None else measuring.parse_size(message),
        repetitions=repetitions,
        row_seconds=row_seconds,
        device=device,
        folder=folder,
        against=against,
        quick=quick,
    )
    if png is not None and html is not None:
        folders = Folders()
        if folders.entry(png) == folders.entry(html):
            raise usage("--png and --html name the same file")
    if png is not None or html is not None:
        plots.require()
    with contextlib.ExitStack() as stack:
        # Opened before measuring, so that a name that cannot be written is told at once.
        outputs = {
            form: stack.enter_context(open_output(path, force=force))
            for form, path in (("png", png), ("html", html))
            if path is not None
        }
        observe = _print_lines if not (as_json or as_csv) else _watch
        result = measuring.run(settings, observe)
        if as_json:
            click.echo(json.dumps(result.as_dict(), indent=2))
        elif as_csv:
            click.echo(report.as_csv(result), nl=False)
        for form, output in outputs.items():
            data = plots.as_png(result) if form == "png" else page.as_html(result).encode()
            output.write_all(data, None)


def _print_lines(news: object) -> None:
    from warpcipher_measure.bench import report

    click.echo(report.line(news))


def _watch(news: object) -> None:
    """Standard output is for a program: who watches sees the lines on standard error."""
    from warpcipher_measure.bench import report

    if on_terminal():
        click.echo(report.line(news), err=True)
