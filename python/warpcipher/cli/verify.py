# SPDX-License-Identifier: Apache-2.0
"""`warpcipher verify`."""

from __future__ import annotations

import json
from typing import Any, cast

import click

from .errors import NOT_FOUND, Command, counted, epilog, usage
from .keys import Choice, key_options, parse_hex
from .search import pair_options, read_pairs


@click.command(cls=Command, epilog=epilog(NOT_FOUND, who="verify"))
@pair_options
@key_options
@click.option("--key-hex", metavar="HEX", help="The key; whoever lists processes sees it.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def verify(
    algorithm: str,
    pairs: tuple[str, ...],
    pair_files: tuple[str, ...],
    key_hex: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Tell whether a key turns the plaintext of every pair into its ciphertext.

    Exit code 0 means that it does, 6 that it does not. Parity bits of DES keys are ignored.

    \b
    warpcipher verify --algorithm aes-128-ecb --key my.key --pair 6bc1bee2...:3ad77bb4...
    """
    from warpcipher.keysearch.pairs import Algorithm, Test

    choice = Choice.take(given)
    if bool(choice) == (key_hex is not None):
        raise usage("give the key: either --key FILE or --key-hex HEX")
    named = Algorithm.named(algorithm)
    test = Test(named, read_pairs(pairs, pair_files))
    if key_hex is not None:
        key = bytearray(parse_hex("--key-hex", key_hex))
    else:
        # Not every cipher and mode that can be searched is an algorithm: all have ECB.
        read = choice.read("raw", f"{named.cipher}-ecb", named=named.cipher)
        key = cast("bytearray", read)
    passes = test.native.passes(key)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "passes": passes,
                    "blocks": len(test.blocks),
                    "known_bits": test.native.bits,
                },
                indent=2,
            )
        )
    elif passes:
        blocks = counted(len(test.blocks), "block")
        click.echo(f"the key passes: {counted(test.native.bits, 'known bit')} in {blocks}")
    else:
        click.echo("the key does not pass")
    if not passes:
        raise click.exceptions.Exit(NOT_FOUND)
