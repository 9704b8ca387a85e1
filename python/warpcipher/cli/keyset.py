# SPDX-License-Identifier: Apache-2.0
"""`warpcipher keyset`: the keys of a Tink keyset, as `tinkey` lists and changes them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from . import completion, keys
from .errors import Command, epilog, shown, usage
from .outputs import open_output

if TYPE_CHECKING:
    from warpcipher.formats import Keyset


@click.command(cls=Command, epilog=epilog())
@click.argument("path", metavar="FILE", type=click.Path(readable=False))
@click.option("--rotate", is_flag=True, help="Add a fresh key and make it the primary one.")
@click.option("--add", is_flag=True, help="Add a fresh key that only decrypts, until promoted.")
@click.option(
    "--template",
    metavar="NAME",
    shell_complete=completion.templates,
    help="The kind of the fresh key: a template of Tink.  [default: that of the primary key]",
)
@click.option("--promote", metavar="ID", type=int, help="Make this key the primary one.")
@click.option("--enable", metavar="ID", type=int, help="Let this key decrypt again.")
@click.option("--disable", metavar="ID", type=int, help="Keep this key and do not try it.")
@click.option(
    "--delete", metavar="ID", type=int, help="Remove this key: what it encrypted is lost."
)
@click.option("-o", "--output", metavar="OUT", help="Write OUT and leave FILE as it is.")
@click.option("-f", "--force", is_flag=True, help="Replace OUT where it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def keyset(
    path: str,
    rotate: bool,
    add: bool,
    template: str | None,
    promote: int | None,
    enable: int | None,
    disable: int | None,
    delete: int | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """List the keys of a Tink keyset, or change which of them encrypts and which decrypt.

    FILE is a keyset of streaming keys in cleartext JSON, as `keygen --format tink` and tinkey write
    it. The primary key encrypts; every enabled key decrypts. One change a call; FILE is replaced in
    one step. The list never shows a key.

    \b
    warpcipher keyset keyset.json
    warpcipher keyset --rotate keyset.json
    warpcipher keyset --disable 1234567890 keyset.json
    """
    changes = [rotate, add, *(given is not None for given in (promote, enable, disable, delete))]
    if sum(changes) > 1:
        raise usage(
            "one change a call: one of --rotate, --add, --promote, --enable, --disable and --delete"
        )
    if template is not None and not (rotate or add):
        raise usage("--template is for a fresh key: give it with --rotate or --add")
    if output is not None and not any(changes):
        raise usage("-o is for a changed keyset: give --rotate or another change")
    if force and output is None:
        raise usage("--force is for --output: FILE is replaced without it")
    found = _read(path)
    if rotate or add:
        found = found.rotated(template) if rotate else found.added(template)
    elif promote is not None:
        found = found.promoted(promote)
    elif enable is not None:
        found = found.with_status(enable, "ENABLED")
    elif disable is not None:
        found = found.with_status(disable, "DISABLED")
    elif delete is not None:
        found = found.without(delete)
    if any(changes):
        place = os.path.realpath(path) if output is None else output
        with open_output(place, force=output is None or force) as target:
            target.write_all(found.to_json().encode(), 0o600)
    _list(path if output is None else output, found, as_json)


def _read(path: str) -> Keyset:
    from warpcipher.formats import FormatError, Keyset
    from warpcipher.keys.sources import read_bounded

    if path == keys.STANDARD:
        raise usage("a keyset is a file: give its name")
    keys.warn_of_mode(path, "FILE")
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        data = read_bounded(file.fileno(), shown(path))
    try:
        return Keyset.from_json(data)
    except FormatError as error:
        raise usage(f"{shown(path)}: {error}") from None


def _list(path: str, found: Keyset, as_json: bool) -> None:
    listed = [
        {
            "id": key.key_id,
            "primary": key.key_id == found.primary_key_id,
            "status": key.status,
            "type": key.type_name,
            "derived_key_size": key.derived_key_size,
            "segment_size": key.segment_size,
        }
        for key in found.keys
    ]
    if as_json:
        click.echo(json.dumps({"path": path, "keys": listed}, indent=2))
        return
    for key in listed:
        mark = "primary" if key["primary"] else ""
        click.echo(
            f"{key['id']:>10}  {mark:7}  {key['status']:8}  {key['type']}, "
            f"{key['derived_key_size']} bytes, segments of {key['segment_size']}"
        )
