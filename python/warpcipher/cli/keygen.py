# SPDX-License-Identifier: Apache-2.0
"""`warpcipher keygen`."""

from __future__ import annotations

import json
import os

import click

from . import algorithms, completion, keys
from .errors import Command, epilog, shown, usage
from .outputs import open_output
from .progress import on_terminal

DEFAULT_FORMAT = "cobblestone-256"
DEFAULT_TEMPLATE = "AES256_GCM_HKDF_1MB"


@click.command(cls=Command, epilog=epilog())
@click.argument("path", metavar="FILE", type=click.Path(readable=False))
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    default=DEFAULT_FORMAT,
    shell_complete=completion.formats,
    help=f"The format the key is for; {DEFAULT_FORMAT} by default.",
)
@click.option(
    "--template",
    metavar="NAME",
    shell_complete=completion.templates,
    help=f"Format tink: Tink's key template; {DEFAULT_TEMPLATE} by default.",
)
@click.option(
    "--algorithm",
    metavar="NAME",
    shell_complete=completion.algorithms,
    callback=algorithms.of_option,
    help="Format raw: the algorithm the key is for.",
)
@click.option(
    "-f", "--force", is_flag=True, help="Replace FILE. What it encrypted is lost without it."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON; never the key.")
def keygen(
    path: str,
    format_name: str,
    template: str | None,
    algorithm: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make a key and write it to FILE, readable by its owner alone (mode 0600).

    The file holds the raw bytes of the key; for --format tink a cleartext Tink keyset in JSON.
    Nothing secret is printed. Who loses the file loses what it encrypted.

    \b
    warpcipher keygen my.key
    warpcipher keygen --format tink --template AES128_GCM_HKDF_1MB keyset.json
    """
    if path == "-":
        raise usage("a key goes to a file: give its name")
    if template is not None and format_name != "tink":
        raise usage("--template belongs to --format tink")
    if algorithm is not None and format_name != "raw":
        raise usage("--algorithm belongs to --format raw")
    if format_name == "tink":
        template = template or DEFAULT_TEMPLATE
        data = _keyset(template)
    else:
        data = os.urandom(_key_size(format_name, algorithm))
    with open_output(path, force=force) as output:
        output.write_all(data, 0o600)
    if as_json:
        made = {
            "path": path,
            "format": format_name,
            "template": template,
            "algorithm": algorithm,
            "bytes": len(data),
        }
        click.echo(json.dumps(made, indent=2))
    elif on_terminal():
        click.echo(f"{shown(path)}: a new key for {template or algorithm or format_name}", err=True)


def _keyset(template: str) -> bytes:
    from warpcipher.formats import Keyset

    return Keyset.generate(template).to_json().encode()


def _key_size(format_name: str, algorithm: str | None) -> int:
    from warpcipher.formats import get

    get(format_name)  # refuses an unknown name and tells the known ones
    return keys.key_sizes(format_name, algorithm)[0]
