# SPDX-License-Identifier: Apache-2.0
"""`warpcipher raw`: bare ciphertext, as `openssl enc` reads and writes it."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from . import algorithms, completion, keys
from .errors import ENGINE, NOT_AUTHENTIC, Command, Group, epilog, shown, usage
from .outputs import open_output
from .progress import on_terminal
from .settings import Settings, raw_options
from .transfer import Transfer

EPILOG = epilog(NOT_AUTHENTIC, ENGINE)


@click.group(cls=Group, epilog=EPILOG)
def raw() -> None:
    """Encrypt and decrypt bare ciphertext, for other programs. AEADs excepted, it is NOT
    authenticated: a change or a wrong key goes unnoticed.

    \b
    warpcipher raw encrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf
    warpcipher raw decrypt --algorithm aes-256-cbc --passphrase backup.enc
    """


@raw.command(cls=Command, epilog=EPILOG)
@raw_options
@click.option("-a", "--armor", is_flag=True, help="With a password: write base64, as openssl's -a.")
def encrypt(**given: Any) -> None:
    """Encrypt files, directory trees or standard input (-). FILE becomes FILE.enc.

    With a key it writes as `openssl enc -K -iv` does; one IV encrypts one file. With a password it
    writes as `openssl enc -pbkdf2`, with a fresh salt for each file.

    \b
    warpcipher raw encrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf
    warpcipher raw encrypt --algorithm aes-256-cbc -p --iterations 600000 report.pdf
    """
    Transfer(Settings.of({**given, "format_name": "raw"}), "encrypt").run()


@raw.command(cls=Command, epilog=EPILOG)
@raw_options
def decrypt(**given: Any) -> None:
    """Decrypt files, directory trees or standard input (-).

    The file names neither its algorithm nor, made from a password, its digest and iterations: give
    those that it was made with. Base64 is found. Files of `openssl enc` without -pbkdf2 are not
    read: `openssl enc -d` reads them.

    \b
    warpcipher raw decrypt --algorithm aes-256-ctr --key my.key --iv-hex ... report.pdf.enc
    warpcipher raw decrypt --algorithm aes-256-cbc -p --iterations 600000 report.pdf.enc
    """
    Transfer(Settings.of({**given, "format_name": "raw"}), "decrypt").run()


@raw.command(cls=Command, epilog=epilog())
@click.argument("path", metavar="FILE", type=click.Path(readable=False))
@click.option(
    "--algorithm",
    metavar="NAME",
    required=True,
    shell_complete=completion.algorithms,
    callback=algorithms.of_option,
    help="The algorithm that the key is for.",
)
@click.option(
    "-f", "--force", is_flag=True, help="Replace FILE. What it encrypted is lost without it."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON; never the key.")
def keygen(path: str, algorithm: str, force: bool, as_json: bool) -> None:
    """Make a key of an algorithm and write its bytes to FILE, readable by its owner alone.

    \b
    warpcipher raw keygen --algorithm des-ede3-cbc old.key
    """
    if path == keys.STANDARD:
        raise usage("a key goes to a file: give its name")
    key = os.urandom(keys.key_sizes("raw", algorithm)[0])
    with open_output(path, force=force) as output:
        output.write_all(key, 0o600)
    if as_json:
        document = {"path": path, "algorithm": algorithm, "bytes": len(key)}
        click.echo(json.dumps(document, indent=2))
    elif on_terminal():
        click.echo(f"{shown(path)}: a new key for {algorithm}", err=True)
