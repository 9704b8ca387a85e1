# SPDX-License-Identifier: Apache-2.0
"""`warpcipher tune` and `warpcipher explain`: which kernels run, and why."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

import warpcipher as wc

from . import names
from .errors import ENGINE, command, counted, print_json, usage
from .options import JSON, option
from .report import on_terminal


@command(ENGINE)
@option("--quick", "Short and rough, to try the command; nothing is kept.")
@option("--forget", "Remove the kept rates instead.")
@JSON
def tune(quick: bool, forget: bool, as_json: bool) -> None:
    """Measure this machine once, to find the fastest place for data and the fastest kernels.

    Takes a few minutes, and wants the GPU and all cores to itself. The rates are kept for
    this library, processor, GPUs and driver, and `--engine auto` decides by it; it never changes
    a result. `warpcipher info --engines` shows it. WARPCIPHER_DEVICES says which GPUs are used.
    """
    if quick and forget:
        raise usage("--quick and --forget exclude each other: give one")

    def tell(text: str, done: float) -> None:
        if not as_json or on_terminal():  # who watches, where a program reads the output
            click.echo(f"{done:4.0%}  {text}", err=as_json)

    path = ""
    if forget:
        removed = wc.tuning.forget()
        if not as_json:
            click.echo("forgotten" if removed else "nothing was kept for this machine")
    else:
        path = wc.tuning.measure(tell, quick=quick)
        if not as_json and path:
            click.echo(f"kept in {path}")
    if as_json:
        print_json({**dataclasses.asdict(wc.tuning.current()), "path": path})


@command(ENGINE)
@click.argument(
    "algorithm", required=False, shell_complete=names.algorithms, callback=names.of_option
)
@option(
    "--algorithm named NAME",
    "ALGORITHM by the option that other commands have.",
    shell_complete=names.algorithms,
    callback=names.of_option,
)
@option("--messages N", "Messages.  [default: 1]", type=int, default=1)
@option("--size SIZE", "Text of each: 4096, 64KiB ...  [default: 1MiB]", default="1MiB")
@option("--keys N", "Keys of all.  [default: 1]", type=int, default=1)
@option("--decrypt", "Decryption, not encryption.")
@option("--device GPU", "Its number; or one that is not here: h200, a100, l4 ...  [default: 0]")
@click.option(
    "--engine",
    type=click.Choice(["cuda", "cpu"]),
    help="A GPU's kernels, or the CPU's code.  [default: cuda with --device or a usable GPU]",
)
@JSON
def explain(
    algorithm: str | None,
    named: str | None,
    messages: int,
    size: str,
    keys: int,
    decrypt: bool,
    device: str | None,
    engine: str | None,
    as_json: bool,
) -> None:
    """Say which kernels a GPU runs for a batch in its memory, or which code the CPU takes, and why
    not the others.

    With `--engine cpu`, and where no GPU is usable or named, the code that the CPU takes: this
    library's own, or libcrypto's. Nothing is run.
    """
    from warpcipher.arguments import parse_size

    if (algorithm is None) == (named is None):
        raise usage("give one algorithm: explain ALGORITHM, or --algorithm NAME")
    algorithm = named if algorithm is None else algorithm
    if engine is None:
        usable = any(one.name == "cuda" and one.usable for one in wc.engines())
        engine = "cuda" if device is not None or usable else "cpu"
    device = device or "0"
    shape: dict[str, Any] = {
        "algorithm": algorithm,
        "direction": "decrypt" if decrypt else "encrypt",
        "messages": messages,
        "size": parse_size(size),
        "keys": keys,
        "device": int(device) if device.lstrip("-").isdecimal() else device,
        "engine": engine,
    }
    decisions = wc.tuning.explain(**shape)
    if as_json:
        print_json({**shape, "decisions": [dataclasses.asdict(decision) for decision in decisions]})
        return
    place = f"GPU {device}" if engine == "cuda" else "CPU"
    click.echo(
        f"{algorithm}, {shape['direction']}, {place}: {counted(messages, 'message')} of "
        f"{counted(shape['size'], 'byte')}, {counted(keys, 'key')}"
    )
    for decision in decisions:
        _print(decision)


def _print(decision: wc.tuning.Decision) -> None:
    for one in decision.candidates:
        if one.chosen:
            click.echo(f"{decision.subject}: {one.name}, {one.description}: {one.reason}")
    for one in decision.candidates:
        if not one.chosen:
            click.echo(f"  not {one.name}: {one.reason}")
