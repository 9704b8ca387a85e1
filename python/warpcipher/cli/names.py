# SPDX-License-Identifier: Apache-2.0
"""Names that options take, as people write them (AES-256-CTR, aes256ctr) and as a shell completes
them; `warpcipher completion`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import click

import warpcipher as wc

from .errors import Command, did_you_mean, usage
from .options import Option, option

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


def canonical(
    given: str, known: Iterable[str], listed: str = "`warpcipher info --algorithms` lists them"
) -> str:
    """The known name for `given`; prints a note if the spelling differs. Raises CliError for any
    other name, with those that are like it, and `listed`, which says where or what all are."""
    names = {_bare(name): name for name in known}
    found = names.get(_bare(given))
    if found is not None:
        if found != given:
            click.echo(f"warpcipher: {given!r} is {found}", err=True)
        return found
    # As in the library: for another name of triple DES the likest would be names of DES.
    like = re.sub("^(tripledes|3des|des3|tdes|tdea)", "desede3", _bare(given))
    raise usage(f"unknown algorithm {given[:64]!r}: {did_you_mean(like, names)}{listed}")


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
    return canonical(
        value, [*CIPHERS, *both], "a search takes a cipher in ECB, CBC, CFB, OFB or CTR"
    )


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


def _completing(names: Callable[[], Iterable[str]]) -> Completion:
    """Completes an option's value to one of these names."""

    def complete(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
        return [name for name in names() if name.startswith(begun)]

    return complete


formats = _completing(
    lambda: (name for name, entry in wc.formats.FORMATS.items() if not entry.command)
)
templates = _completing(lambda: wc.formats.TEMPLATES)
algorithms = _completing(lambda: (entry.name for entry in wc.algorithms()))
engines = _completing(lambda: ("auto", *(entry.name for entry in wc.engines())))
searchers = _completing(lambda: ("auto", *(entry.name for entry in wc.keysearch.searchers())))


@_completing
def searched_algorithms() -> Iterable[str]:
    from warpcipher.keysearch.pairs import MODES

    return (entry.name for entry in wc.algorithms() if entry.name.rsplit("-", 1)[1] in MODES)


def algorithm_option(help: str) -> Option:
    """The option of a command that takes one of all algorithms, and needs it."""
    how: Any = {"shell_complete": algorithms, "callback": of_option}
    return option("--algorithm NAME", help, required=True, **how)


FORMAT = option(
    "--format format_name NAME",
    "File format.  [default: the format that the key is for]",
    default="auto",
    shell_complete=formats,
)
