# SPDX-License-Identifier: Apache-2.0
"""Exit codes, and which exception leads to which. A user's errors end as one line."""

from __future__ import annotations

import collections
import errno
import functools
import gc
import os
from collections.abc import Callable, Mapping
from typing import IO, Any, TypeAlias

import click

import warpcipher as wc
from warpcipher._errors import counted as counted
from warpcipher._errors import explained
from warpcipher._types import PathLike
from warpcipher.stores.store import shown as without_password

OK = 0
BUG = 1
USAGE = 2
NOT_AUTHENTIC = 3
SYSTEM = 4
ENGINE = 5
NOT_FOUND = 6
INTERRUPTED = 7

_MEANINGS = {
    str(OK): "done",
    str(BUG): "a bug in warpcipher",
    str(USAGE): "error of use: an option, a key of the wrong size, an output that exists",
    str(NOT_AUTHENTIC): "not authentic: wrong key, or a damaged, truncated or foreign file",
    str(SYSTEM): "the system refused: missing file, no permission, disk full, no memory",
    str(ENGINE): "the engine is unknown, cannot run here, or failed",
    str(NOT_FOUND): "search: no key in the range passes; verify: the key does not pass",
    str(INTERRUPTED): "search: ended by SIGINT, SIGTERM or SIGHUP; the checkpoint is saved",
    "129, 130, 143": "ended by SIGHUP, SIGINT, SIGTERM; nothing half written remains",
    "141": "the reader of standard output went away",
}
_OF_FEW = (NOT_AUTHENTIC, ENGINE, NOT_FOUND, INTERRUPTED)


def epilog(*codes: int, who: str = "") -> str:
    """The end of a command's help: the exit codes of all commands, and these of the others. who:
    the command, where a code has a meaning for each."""
    lines = [
        f"  {code:<4} {_meaning(meaning, who)}" if len(code) < 5 else f"  {code}   {meaning}"
        for code, meaning in _MEANINGS.items()
        if not code.isdigit() or int(code) not in _OF_FEW or int(code) in codes
    ]
    return "\n".join(["\n\b", "Exit codes:", *lines, ""])


def _meaning(text: str, who: str) -> str:
    own = [part for part in text.split("; ") if who and part.startswith(f"{who}: ")]
    return own[0].removeprefix(f"{who}: ") if own else text


EPILOG = epilog(NOT_AUTHENTIC, ENGINE)
"""Of commands that work on files."""
EPILOG_OF_ALL = epilog(*_OF_FEW)


# Options by their parameter's name that are given once: a key, passphrase or output that is passed
# over in silence is not what somebody meant. Of others, such as --engine, the last counts.
_ONCE = frozenset((
    "key_file", "key_env", "key_fd", "key_command", "kms", "key_hex", "iv_hex", "new_key",
    "new_key_file", "new_key_env", "new_key_command", "new_kms", "passphrase_env", "passphrase_fd",
    "new_passphrase_env", "new_passphrase_fd", "new_context", "context", "context_hex",
    "aad_prefix", "output",
))  # fmt: skip


class CliError(click.ClickException):
    """An error as the user sees it: the given and the expected value, never a secret."""

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.format_message())


class UsageError(CliError):
    exit_code = USAGE


class NotAuthenticError(CliError):
    exit_code = NOT_AUTHENTIC


class SystemRefusedError(CliError):
    exit_code = SYSTEM


class EngineFailedError(CliError):
    exit_code = ENGINE


LISTED = 5
"""Names that an error shows."""

Failures: TypeAlias = list[tuple[str, CliError]]
"""Paths, and the error of each."""


def usage(message: str) -> CliError:
    return UsageError(message)


as_usage = functools.partial(explained, kind=usage)
"""Makes a ValueError one of use."""


def complain(message: str) -> None:
    click.echo(f"warpcipher: {message}", err=True)


def print_json(document: Any) -> None:
    import json

    click.echo(json.dumps(document, indent=2))


def warn(message: str) -> None:
    click.echo(f"warpcipher: warning: {message}", err=True)


def listed(names: list[str], count: int | None = None) -> str:
    """The first of some names. count: of all, where these are only the first."""
    some, count = names[:LISTED], len(names) if count is None else count
    more = f" and {count - len(some)} more" if count > len(some) else ""
    return ", ".join(map(shown, some)) + more


def shown(path: PathLike) -> str:
    """A path fit for a terminal: control characters and bytes that are not text are escaped. A
    secret key that was given for a path is not shown, nor a password in a URL."""
    text = withheld(os.fspath(path))
    return text if text.isprintable() else ascii(text)[1:-1]


def withheld(text: str) -> str:
    """The text without the password of a URL; a stand-in if it has a secret key of age or a PEM."""
    if "://" in text:
        text = without_password(text)
    if "-" not in text:  # as nearly always
        return text
    from warpcipher.keys.decode import is_secret
    from warpcipher.keys.sources import unnamed

    return unnamed(text) if is_secret(text) else text


def refuse_secret(error: click.NoSuchOption) -> None:
    """Raises CliError where a PEM without its option was taken for one, which click repeats."""
    if (safe := withheld(error.option_name)) != error.option_name:
        raise usage(f"no such option: {safe}") from None


def translate(error: BaseException, what: str = "") -> CliError:
    """The error that the user sees. One that nothing here expects is raised again: a bug.

    what: the file that was worked on, put before the text.
    """
    before = f"{what}: " if what else ""
    if isinstance(error, CliError):
        return error
    if what and str(error).startswith(what):  # as it comes to users of the library
        before = ""
    if isinstance(error, (wc.InvalidTag, wc.formats.FormatError)):
        return NotAuthenticError(f"{before}{error}")
    if isinstance(error, wc.EngineError):
        return EngineFailedError(f"{before}{error}")
    if isinstance(error, OSError):
        if error.filename is not None:
            before = f"{shown(str(error.filename)) or 'an empty name'}: "
        is_url = isinstance(error, FileNotFoundError) and "://" in str(error.filename)
        if is_url and error.strerror == os.strerror(errno.ENOENT):  # stores have words of their own
            return UsageError(f"{before}expected the path of a file here, and this is a URL")
        return SystemRefusedError(f"{before}{error.strerror or error}")
    if isinstance(error, MemoryError):
        return SystemRefusedError(f"{before}out of memory")
    if isinstance(error, ValueError):
        return UsageError(f"{before}{error}")
    raise error


def did_you_mean(given: str, known: Mapping[str, str]) -> str:
    """The names that are like the one given, for an error; "" if none is. known: what users
    call them, by how they are compared."""
    import difflib

    like = difflib.get_close_matches(given, known, n=3, cutoff=0.7)
    return f"did you mean {' or '.join(known[name] for name in like)}? " if like else ""


WHOLE = 1000
"""Characters: more than a sentence has."""


class Group(click.Group):
    """A group of commands, which names those that are like one that is not there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            refuse_secret(error)
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            from warpcipher.keys.decode import may_be_key

            if may_be_key(name):
                raise usage(
                    f"no such command: {counted(len(name), 'character')}, not repeated here as "
                    "they may be a key"
                )
            known = {command: command for command in self.list_commands(ctx)}
            raise usage(
                f"no such command: {shown(name)}: {did_you_mean(name.lower(), known)}"
                f"`{ctx.command_path} --help` lists them"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with its whole first sentence, which click cuts off at the end of the line."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, one.get_short_help_str(WHOLE)) for name, one in found if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Command(click.Command):
    """A command whose errors end as `CliError`."""

    # click's own error repeats them, and one may be a key that lost its option.
    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, [*args])
            if not ctx.resilient_parsing:
                self._refuse_twice(ctx, args)
            return rest
        except click.NoSuchOption as error:
            refuse_secret(error)
            raise

    def _refuse_twice(self, ctx: click.Context, args: list[str]) -> None:
        """Raises CliError for such an option that was given two values: click takes the last."""
        _, _, order = self.make_parser(ctx).parse_args(args=args)
        for option, count in collections.Counter(order).items():
            if count > 1 and option.name in _ONCE and not getattr(option, "multiple", False):
                name = next(name for name in option.opts if name.startswith("--"))
                raise usage(f"{name} was given {count} times: give one")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options by section, as `in_section` says, those without one last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", ""), []).append(record)
        others = sections.pop("", [])
        for title, records in [
            *sections.items(),
            ("Other options" if sections else "Options", others),
        ]:
            with formatter.section(title):
                formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        # Where the entry point turned it off. Imported objects stay: no look for cycles needs to
        # pass over it. In another program it would stay too, with the keys of cycles already lost.
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        if ctx.args:
            raise usage(
                f"{counted(len(ctx.args), 'argument')} too many, not repeated here as it may be a "
                f"key: see `{ctx.command_path} --help`"
            )
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise translate(error) from error


def command(*codes: int, who: str = "") -> Callable[[Callable[..., Any]], Command]:
    """Makes a command whose help ends as `epilog` says."""
    return click.command(cls=Command, epilog=epilog(*codes, who=who))
