# SPDX-License-Identifier: Apache-2.0
"""The entry point, and the list of commands: each is imported when it is used, to start fast."""

from __future__ import annotations

import gc
import importlib
import sys

import click

import warpcipher as wc

from . import errors, process

# Commands by name, in the order of --help, each with its module, which has an object of that name.
# Those without one are of MEASURE.
COMMANDS = {
    "keygen": "keygen", "keyset": "keygen", "encrypt": "encrypt", "decrypt": "encrypt",
    "check": "encrypt", "list": "list", "raw": "raw", "info": "info", "explain": "tuning",
    "parquet": "parquet", "rekey": "rekey", "rewrap": "rewrap", "bench": "", "tune": "tuning",
    "search": "search", "verify": "search", "lab": "", "completion": "names",
}  # fmt: skip

MEASURE = {
    "bench": "Measure how fast this machine encrypts, and how near that is to its bounds.",
    "lab": "Rerun papers on GPU cryptography on this machine, and show the figures they published.",
}
"""Commands of another package, warpcipher-measure, which names them as entry points."""


class Group(errors.Group):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in MEASURE:
            return _find_measure(cmd_name)
        module = importlib.import_module(f"{__package__}.{COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module.__name__}.{cmd_name} is not a command")
        return command


def _find_measure(name: str) -> click.Command:
    """The command of warpcipher-measure; where that is not installed, one that says so."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="warpcipher.commands", name=name):
        command: click.Command = entry.load()
        return command

    def refuse() -> None:
        how = "pip install ./measure in a checkout, or 'warpcipher[measure]'"
        raise errors.usage(f"{name} is of another package: {how}")

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    return click.Command(name, anything, refuse, help=MEASURE[name])


@click.group(
    cls=Group,
    epilog=errors.EPILOG_OF_ALL,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(wc.__version__, message="warpcipher %(version)s")
def cli() -> None:
    """Encrypt and decrypt files with authenticated encryption, on all CPU cores or a GPU.

    \b
    warpcipher keygen my.key
    warpcipher encrypt --key my.key photos.tar
    warpcipher decrypt --key my.key photos.tar.cobblestone
    """


def main() -> None:
    """Runs the command line of this process; never returns."""
    process.protect()
    process.on_signals()
    try:
        cli(prog_name="warpcipher")
    except OSError as error:  # --help, --version and completion are printed by no command
        errors.complain(f"{error.filename}: {error.strerror}")
        sys.exit(errors.SYSTEM)
    except SystemExit as end:
        # A last look for cycles, at exit, would take a tenth of a short run. An error leaves cycles
        # of frames that hold keys and native objects: only that look frees them.
        if not end.code:
            gc.freeze()
        raise
