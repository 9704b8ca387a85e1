# SPDX-License-Identifier: Apache-2.0
"""Names that options take, as people write them (AES-256-CTR, aes256ctr) and as a shell completes
them; `warpcipher completion`."""

from __future__ import annotations

from collections.abc import Iterable

import click

import warpcipher as wc

from .errors import Command, did_you_mean, usage
from .options import option


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
    return canonical(value, (entry.name for entry in wc.algorithms()))


def of_search(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """The callback of an option that names what a key search takes: a cipher, or one in a mode."""
    from warpcipher.keysearch.pairs import MODES
    from warpcipher.keysearch.template import CIPHERS

    both = (f"{cipher}-{mode}" for cipher in CIPHERS for mode in MODES)
    return canonical(value, [*CIPHERS, *both])


SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that makes a shell complete commands, options and their values.

    \b
    bash   eval "$(warpcipher completion bash)"              in ~/.bashrc
    zsh    eval "$(warpcipher completion zsh)"               in ~/.zshrc
    fish   warpcipher completion fish | source               in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise usage(f"this version of click has no completion for {shell}")
    click.echo(made(ctx.find_root().command, {}, "warpcipher", "_WARPCIPHER_COMPLETE").source())


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(
        (name for name, entry in wc.formats.FORMATS.items() if not entry.command), incomplete
    )


FORMAT = option(
    "--format format_name NAME",
    "File format.  [default: the format that the key is for]",
    default="auto",
    shell_complete=formats,
)


def templates(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(wc.formats.TEMPLATES, incomplete)


def algorithms(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _beginning((entry.name for entry in wc.algorithms()), incomplete)


def engines(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(("auto", *(entry.name for entry in wc.engines())), incomplete)


def searched_algorithms(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    from warpcipher.keysearch.pairs import MODES

    return [
        name
        for name in algorithms(_context, _parameter, incomplete)
        if name.rsplit("-", 1)[1] in MODES
    ]


def searchers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    names = ("auto", *(entry.name for entry in wc.keysearch.searchers()))
    return [name for name in names if name.startswith(incomplete)]
