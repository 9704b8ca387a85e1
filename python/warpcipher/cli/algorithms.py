# SPDX-License-Identifier: Apache-2.0
"""Names of algorithms as people write them: AES-256-CTR, aes_256_ctr, aes256ctr."""

from __future__ import annotations

from collections.abc import Iterable

import click

from .errors import did_you_mean, usage


def canonical(given: str, known: Iterable[str]) -> str:
    """The known name for `given`; prints a note if the spelling differs. Raises CliError for any
    other name, with those that are like it."""
    names = {_bare(name): name for name in known}
    found = names.get(_bare(given))
    if found is not None:
        if found != given:
            click.echo(f"warpcipher: {given!r} is {found}", err=True)
        return found
    raise usage(
        f"unknown algorithm {given[:64]!r}: {did_you_mean(_bare(given), names)}`warpcipher info "
        "--algorithms` lists them"
    )


def _bare(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def of_option(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> str | None:
    """The callback of an option that names one of all algorithms."""
    if not value:
        return value
    import warpcipher as wc

    return canonical(value, (entry.name for entry in wc.algorithms()))


def of_search(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """The callback of an option that names what a key search takes: a cipher, or one in a mode."""
    from warpcipher.keysearch.pairs import MODES
    from warpcipher.keysearch.template import CIPHERS

    both = (f"{cipher}-{mode}" for cipher in CIPHERS for mode in MODES)
    return canonical(value, [*CIPHERS, *both])
