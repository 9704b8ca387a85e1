# SPDX-License-Identifier: Apache-2.0
"""`warpcipher tune`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import click

from .errors import ENGINE, Command, epilog, usage
from .progress import on_terminal


@click.command(cls=Command, epilog=epilog(ENGINE))
@click.option("--quick", is_flag=True, help="Short and rough, to try the command; nothing is kept.")
@click.option("--forget", is_flag=True, help="Remove what was kept instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tune(quick: bool, forget: bool, as_json: bool) -> None:
    """Measure this machine once, to find the fastest place for data and the fastest kernels.

    Takes a few minutes, and wants the GPU and all cores to itself. What is found is kept for
    this library, processor, GPUs and driver, and `--engine auto` decides by it; it never changes
    a result. `warpcipher info --engines` shows it. WARPCIPHER_DEVICES says which GPUs are used.
    """
    from warpcipher import tuning

    if quick and forget:
        raise usage("--quick and --forget exclude each other: give one")
    path = ""
    if forget:
        removed = tuning.forget()
        if not as_json:
            click.echo("forgotten" if removed else "nothing was kept for this machine")
    else:
        path = tuning.measure(_observer(as_json), quick=quick)
        if not as_json and path:
            click.echo(f"kept in {path}")
    if as_json:
        document = dataclasses.asdict(tuning.current())
        click.echo(json.dumps({**document, "path": path}, indent=2))


def _observer(as_json: bool) -> Callable[[str, float], None]:
    """Prints findings: on standard error, for who watches, where a program reads the output."""

    def show(text: str, done: float) -> None:
        if not as_json or on_terminal():
            click.echo(f"{done:4.0%}  {text}", err=as_json)

    return show
