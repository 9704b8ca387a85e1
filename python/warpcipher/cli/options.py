# SPDX-License-Identifier: Apache-2.0
"""Options and arguments of commands, a line each where that holds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(Protocol):
    """Adds one option of a command, or several."""

    def __call__(self, function: Function, /) -> Function: ...


def option(spec: str, help: str, **more: Any) -> Option:
    """One option. spec: its names, its parameter's if that is another, and what it takes in
    capitals: "--key --key-file key_file FILE"; one that takes nothing is a flag."""
    *names, last = spec.split()
    if last.startswith("-") or last.islower():
        more["is_flag"], names = True, [*names, last]
    else:
        more["metavar"] = last
    return click.option(*names, help=help, **more)


def argument(spec: str, **more: Any) -> Option:
    """Paths, as they are given: "path FILE" takes one, "paths FILE..." several."""
    name, metavar = spec.split()
    count = -1 if metavar.endswith("...") else 1
    kind = click.Path(readable=False)
    return click.argument(name, metavar=metavar, nargs=count, type=kind, **more)


def with_options(*options: Option) -> Option:
    """Adds options to a command, in this order."""

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def in_section(title: str, *options: Option) -> tuple[Option, ...]:
    """The options, under a title in the help of `Command`."""

    def titled(option: Option) -> Option:
        def add(function: Function) -> Function:
            made = option(function)
            made.__click_params__[-1].section = title  # type: ignore[attr-defined]
            return made

        return add

    return tuple(map(titled, options))


FORCE = option("-f --force", "Replace outputs that exist.")
JSON = option("--json as_json", "Print JSON.")
