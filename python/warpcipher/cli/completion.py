# SPDX-License-Identifier: Apache-2.0
"""`warpcipher completion`, and the values that completion offers for options."""

from __future__ import annotations

from collections.abc import Iterable

import click

from .errors import Command, usage

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
    from warpcipher.formats import FORMATS

    return _beginning((name for name in FORMATS if name != "raw"), incomplete)


def templates(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from warpcipher.formats import TEMPLATES

    return _beginning(TEMPLATES, incomplete)


def algorithms(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    import warpcipher as wc

    return _beginning((entry.name for entry in wc.algorithms()), incomplete)


def engines(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    import warpcipher as wc

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
    from warpcipher import keysearch

    names = ("auto", *(entry.name for entry in keysearch.searchers()))
    return [name for name in names if name.startswith(incomplete)]
