# SPDX-License-Identifier: Apache-2.0
"""`warpcipher explain`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from . import algorithms, completion
from .errors import ENGINE, Command, counted, epilog

if TYPE_CHECKING:
    from warpcipher.tuning import Decision


@click.command(cls=Command, epilog=epilog(ENGINE))
@click.argument("algorithm", shell_complete=completion.algorithms, callback=algorithms.of_option)
@click.option("--messages", metavar="N", type=int, default=1, help="Messages.  [default: 1]")
@click.option(
    "--size", metavar="SIZE", default="1MiB", help="Text of each: 4096, 64KiB ...  [default: 1MiB]"
)
@click.option("--keys", metavar="N", type=int, default=1, help="Keys of all.  [default: 1]")
@click.option("--decrypt", is_flag=True, help="Decryption, not encryption.")
@click.option("--device", metavar="N", type=int, default=0, help="Number of the GPU.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(
    algorithm: str,
    messages: int,
    size: str,
    keys: int,
    decrypt: bool,
    device: int,
    as_json: bool,
) -> None:
    """Say which kernels a GPU runs for a batch in its memory, and why not the others.

    Nothing is run.
    """
    from warpcipher import tuning
    from warpcipher.arguments import parse_size

    shape: dict[str, Any] = {
        "algorithm": algorithm,
        "direction": "decrypt" if decrypt else "encrypt",
        "messages": messages,
        "size": parse_size(size),
        "keys": keys,
        "device": device,
    }
    decisions = tuning.explain(**shape)
    if as_json:
        entries = [dataclasses.asdict(decision) for decision in decisions]
        click.echo(json.dumps({**shape, "decisions": entries}, indent=2))
        return
    click.echo(
        f"{algorithm}, {shape['direction']}, GPU {device}: {counted(messages, 'message')} of "
        f"{counted(shape['size'], 'byte')}, {counted(keys, 'key')}"
    )
    for decision in decisions:
        _print(decision)


def _print(decision: Decision) -> None:
    for one in decision.candidates:
        if one.chosen:
            click.echo(f"{decision.subject}: {one.name}, {one.description}: {one.reason}")
    for one in decision.candidates:
        if not one.chosen:
            click.echo(f"  not {one.name}: {one.reason}")
