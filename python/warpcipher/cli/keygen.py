# SPDX-License-Identifier: Apache-2.0
"""`warpcipher keygen` makes keys; `warpcipher keyset` lists and changes those of a Tink keyset, as
`tinkey` does."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

import warpcipher as wc
from warpcipher._descriptors import closing, open_seekable

from . import keys, names, recipients
from .errors import as_usage, command, print_json, shown, usage
from .files import open_output
from .options import argument, option, with_options
from .report import on_terminal

if TYPE_CHECKING:
    from warpcipher.formats.base import NewKey

DEFAULT_FORMAT = "cobblestone-256"


@command()
@argument("path FILE")
@option(
    "--format format_name NAME",
    f"The format that the key is for.  [default: {DEFAULT_FORMAT}]",
    default=DEFAULT_FORMAT,
    shell_complete=names.formats,
)
@option(
    "--template NAME",
    "Format tink: Tink's key template.  [default: AES256_GCM_HKDF_1MB]",
    shell_complete=names.templates,
)
@option("--pq", "Format age: a post-quantum key, as of `age-keygen -pq`.")
@option("-f --force", "Replace FILE. What it encrypted is lost without it.")
@option("--public", "Make nothing: print the public keys of the identities or secret key in FILE.")
@with_options(
    *recipients.passphrase_options(
        "Formats age and crypt4gh: encrypt the key with a passphrase, asked for."
    )
)
@option("--json as_json", "Print what was made as JSON; never the key.")
def keygen(
    path: str,
    format_name: str,
    template: str | None,
    pq: bool,
    force: bool,
    public: bool,
    as_json: bool,
    **passphrase: Any,
) -> None:
    """Make a key and write it to FILE, readable only by its owner (mode 0600).

    The file holds the raw bytes of the key; for --format tink a cleartext Tink keyset in JSON. For
    --format age it holds an identity, and its recipient, which is public, is printed; for --format
    crypt4gh it holds a secret key, and FILE.pub the public one. A passphrase encrypts these two.
    Nothing secret is printed. Without the file, what it encrypted is lost.

    \b
    warpcipher keygen my.key
    warpcipher keygen --format age identity.txt
    warpcipher keygen --public identity.txt
    warpcipher keygen --format tink --template AES128_GCM_HKDF_1MB keyset.json
    """
    if public:
        if force or template or pq or format_name != DEFAULT_FORMAT:
            raise usage("--public reads FILE: it takes only a passphrase and --json")
        _print_public(path, recipients.People.take(passphrase), as_json)
        return
    refuse_standard(path)
    chosen = wc.formats.get(format_name)
    if template is not None and not chosen.template:
        names = " and ".join(entry.name for entry in wc.formats.FORMATS.values() if entry.template)
        raise usage(f"--template belongs to --format {names}")
    people = recipients.People.take(passphrase)
    if people and not chosen.takes_passphrase:
        names = " and ".join(
            entry.name for entry in wc.formats.FORMATS.values() if entry.takes_passphrase
        )
        raise usage(f"a passphrase encrypts the keys of --format {names}")
    if pq and not chosen.pq_template:
        raise usage("--pq belongs to --format age")
    template = chosen.pq_template if pq else template or chosen.template
    with contextlib.ExitStack() as outputs:
        # Outputs first: where they are refused, nobody has typed a passphrase.
        output = outputs.enter_context(open_output(path, force=force))
        if chosen.public_suffix:
            beside = outputs.enter_context(open_output(path + chosen.public_suffix, force=force))
        phrase = None
        if people:
            phrase = recipients.read_passphrase(people, "Passphrase of the new key", twice=True)
        made = chosen.make_key(template, phrase)
        if chosen.public_suffix and made.public_file:
            beside.write_all(made.public_file, None)
        output.write_all(made.data, 0o600)
    document = {"path": path, "format": format_name, "template": template or None}
    tell(path, made, template or format_name, document, as_json)


def refuse_standard(path: str) -> None:
    if path == keys.STANDARD:
        raise usage("a key goes to a file: give its name")


def tell(path: str, made: NewKey, kind: str, document: dict[str, Any], as_json: bool) -> None:
    """Says what was made; never the key."""
    if as_json:
        recipient = {"recipient": made.recipient} if made.recipient else {}
        print_json({**document, "bytes": len(made.data), **recipient})
        return
    if made.recipient:
        click.echo(made.recipient)
    if on_terminal():
        click.echo(f"{shown(path)}: a new key for {kind}", err=True)


def _print_public(path: str, people: recipients.People, as_json: bool) -> None:
    """Prints the public keys of a file of secret keys."""
    people = dataclasses.replace(people, identities=(path,))
    secrets = people.read(encrypts=True)
    of = wc.formats.resolve("auto", secrets)
    found = [of.public_text(one) for one in secrets]
    if as_json:
        print_json({"path": path, "recipients": found})
        return
    for text in found:
        click.echo(text.removesuffix("\n"))


@command()
@argument("path FILE")
@option("--rotate", "Add a fresh key and make it the primary one.")
@option("--add", "Add a fresh key that only decrypts, until promoted.")
@option(
    "--template NAME",
    "The kind of the fresh key: a template of Tink.  [default: the primary key's]",
    shell_complete=names.templates,
)
@option("--promote ID", "Make this key the primary one.", type=int)
@option("--enable ID", "Let this key decrypt again.", type=int)
@option("--disable ID", "Keep this key and do not try it.", type=int)
@option("--delete ID", "Remove this key: what it encrypted is lost.", type=int)
@option("-o --output OUT", "Write OUT and leave FILE as it is.")
@option("-f --force", "Replace OUT where it exists.")
@option("--json as_json", "Print the list as JSON.")
def keyset(
    path: str,
    rotate: bool,
    add: bool,
    template: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
    **numbers: int | None,
) -> None:
    """List the keys of a Tink keyset, or change which of them encrypts and which decrypt.

    FILE is a keyset of streaming keys in cleartext, JSON or binary, as `keygen --format tink` and
    tinkey write it. The primary key encrypts; every enabled key decrypts. One change a call; FILE
    is replaced in one step. The list never shows a key.

    \b
    warpcipher keyset keyset.json
    warpcipher keyset --rotate keyset.json
    warpcipher keyset --disable 1234567890 keyset.json
    """
    asked = [(name, number) for name, number in numbers.items() if number is not None]
    changes = rotate + add + len(asked)
    if changes > 1:
        raise usage(
            "one change a call: one of --rotate, --add, --promote, --enable, --disable and --delete"
        )
    if template is not None and not (rotate or add):
        raise usage("--template is for a fresh key: give it with --rotate or --add")
    if output is not None and not changes:
        raise usage("-o is for a changed keyset: give --rotate or another change")
    if force and output is None:
        raise usage("--force is for --output: FILE is replaced without it")
    is_replaced = bool(changes) and output is None
    with contextlib.ExitStack() as stack:
        old = -1
        if is_replaced and path != keys.STANDARD:
            keys.status_of(path, "FILE")
            old = stack.enter_context(closing(open_seekable(path)))
        found = _read(path, is_replaced=is_replaced)
        if rotate or add:
            found = found.rotated(template) if rotate else found.added(template)
        for name, number in asked:
            found = _CHANGES[name](found, number)
        if changes:
            place = os.path.realpath(path) if output is None else output
            with open_output(place, force=is_replaced or force) as target:
                if is_replaced:
                    target.take_over(os.fstat(old))
                target.write_all(found.to_json().encode(), 0o600, old)
    _list(path if output is None else output, found, as_json)


_CHANGES: dict[str, Callable[[wc.formats.Keyset, int], wc.formats.Keyset]] = {
    "promote": lambda keyset, number: keyset.promoted(number),
    "enable": lambda keyset, number: keyset.with_status(number, "ENABLED"),
    "disable": lambda keyset, number: keyset.with_status(number, "DISABLED"),
    "delete": lambda keyset, number: keyset.without(number),
}


def _read(path: str, *, is_replaced: bool) -> wc.formats.Keyset:
    if path == keys.STANDARD:
        raise usage("a keyset is a file: give its name")
    data = keys.content_of(path, "FILE", secret=True)
    with as_usage(shown(path)):
        if data[:1] == b"\x08":
            if is_replaced:
                raise usage(f"{shown(path)} is binary, and JSON is written: give -o")
            return wc.formats.Keyset.from_binary(data)
        return wc.formats.Keyset.from_json(data)


def _list(path: str, found: wc.formats.Keyset, as_json: bool) -> None:
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
        print_json({"path": path, "keys": listed})
        return
    for key in listed:
        mark = "primary" if key["primary"] else ""
        click.echo(
            f"{key['id']:>10}  {mark:7}  {key['status']:8}  {key['type']}, "
            f"{key['derived_key_size']} bytes, segments of {key['segment_size']}"
        )
