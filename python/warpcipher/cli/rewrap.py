# SPDX-License-Identifier: Apache-2.0
# The names are text that the user gave, as everywhere here:
# ruff: noqa: PTH112
"""`warpcipher rewrap`."""

from __future__ import annotations

import os
from typing import Any

import click

import warpcipher as wc
from warpcipher import stores

from . import keys, names, new_keys, recipients
from .errors import EPILOG, Command, print_json, shown, translate, usage
from .files import exists, open_output
from .new_keys import NewKeys, RekeySettings
from .options import argument, in_section, option, with_options
from .report import on_terminal
from .run import DRY_RUN, TELLING
from .settings import MANY, NO_MANIFEST, refuse_many

_options = with_options(
    argument("path FILE"),
    *in_section("Key", *keys.OPTIONS, *recipients.READING),
    *in_section(
        "New key",
        *new_keys.KEY,
        *new_keys.PEOPLE,
        option("--new-kms URI", "FILE is a Tink keyset: this key of a KMS wraps it then."),
        option("--keep", "The readers that FILE has now can still decrypt it."),
    ),
    *in_section("Format", names.FORMAT, *recipients.CONTEXT),
    option("-o --output OUT", "Write OUT and leave FILE as it is."),
    option("-f --force", "Replace OUT where it exists."),
    *in_section(
        "Many objects, at URLs",
        option("--copy", "Read and write all of an object, where its store cannot copy it."),
        NO_MANIFEST,
        DRY_RUN,
        *MANY,
    ),
    *TELLING,
)


@click.command(cls=Command, epilog=EPILOG)
@_options
def rewrap(
    path: str,
    new_kms: str | None,
    keep: bool,
    copy: bool,
    format_name: str,
    output: str | None,
    force: bool,
    **given: Any,
) -> None:
    """Change who can decrypt FILE, of format age or Crypt4GH; the keys that wrap and sign a
    cryptotensors model; or, with --kms and --new-kms, the key of a KMS that encrypts a Tink keyset.

    Only the beginning of FILE is written again: the data is not decrypted and stays as it is. FILE
    is replaced in one step, or left as it is after an error. Whoever could decrypt FILE before may
    have kept its data key: `rekey` changes that, too. Keys of cryptotensors are JSON Web Key Sets,
    with a key of type oct and one of type okp; the new ones sign, so that their okp key has its
    private part.

    FILE may be the URL of an object (not a keyset), or of a prefix of many (not models): the store
    copies the data (S3), or --copy reads and writes it. It may be an encrypted tree, too.

    \b
    warpcipher rewrap -i me.txt -R team.txt notes.age
    warpcipher rewrap -i me.sec -R you.pub --keep sample.c4gh
    warpcipher rewrap --key old.json --new-key new.json model.safetensors
    warpcipher rewrap --kms aws-kms://old --new-kms aws-kms://new keyset.json
    warpcipher rewrap -i me.txt -R team.txt -o s3://bucket/new/ s3://bucket/old/
    """
    path, output = stores.local_path(path), stores.local_path(output)
    is_url = os.path.isdir(path) or any(map(stores.is_url, (path, output)))
    if is_url and new_kms is not None:
        raise usage("--new-kms takes the file of a keyset")
    told = {name: given.pop(name) for name in ("as_json", "quiet", "verbose")}
    has_new = any(given[f"new_key_{name}"] for name in ("file", "env", "command"))
    is_model = has_new and format_name == "auto" and _is_model(path)
    is_job = is_url and not is_model
    if not is_job:
        refuse_many(given)
        if (copy and not is_url) or given["no_manifest"] or given["dry_run"]:
            raise usage("--copy, --no-manifest and --dry-run are for objects at URLs")
        if force and output is None:
            raise usage("--force is for --output: FILE is replaced without it")
    if new_kms is not None:
        made = _rewrap_keyset(path, new_kms, output, force, given, keep)
    else:
        given |= {"new": NewKeys.take(given), "new_format": "auto", "new_armor": False}
        given |= {"in_place": output is None, "new_context": None, **told}
        given |= {"paths": (path,), "output": output, "files_from": None, "null": False}
        given |= {"force": force, "format_name": format_name, "engine": "auto"}
        how = RekeySettings.of(given, decrypts=True)
        if is_job:
            from .object_keys import ObjectKeys

            ObjectKeys(how, "rewrap", keep=keep, copy=copy).run()
            return
        try:
            if is_model and not (how.people or how.new.people):
                made = _rewrap_model(path, how, keep=keep, copy=copy)
            else:
                made = _rewrap_file(path, how, keep=keep)
        except FileExistsError:
            raise exists(str(output)) from None
        except (wc.InvalidTag, ValueError) as error:
            raise translate(error, shown(path)) from None
    if told["as_json"]:
        print_json(made)
    elif told["verbose"] or (on_terminal() and not told["quiet"]):
        click.echo(f"{shown(made['path'])}: its keys are new", err=True)


def _is_model(path: str) -> bool:
    from warpcipher.fleet.places import is_prefix
    from warpcipher.formats import foreign
    from warpcipher.formats.reader import open_place

    if is_prefix(path):
        return False
    with open_place(path) as file:
        head, size = file.read(foreign.PREFIX_SIZE), file.seek(0, 2)
    found = foreign.identify(head, size)
    return found is not None and found.name == "safetensors"


def _rewrap_model(path: str, how: RekeySettings, *, keep: bool, copy: bool) -> dict[str, Any]:
    if keep or how.context or how.context_hex:
        raise usage("--keep and --context are not for cryptotensors")
    old, new = how.key.read_web_keys(), how.new.choice.read_web_keys()
    wc.weights.rewrap(path, old, new, how.output, replace=how.force, copy=copy)
    return {"path": how.output or path, "key_id": new.key_id, "sign_key_id": new.sign_key_id}


def _rewrap_file(path: str, how: RekeySettings, *, keep: bool) -> dict[str, Any]:
    options = wc.formats.Options(context=keys.read_context(how.context, how.context_hex))
    key = how.people.read(encrypts=False) if how.people else how.key.read(how.format_name, None)
    name = wc.formats.resolve(how.format_name, key).name
    new_key = how.new.read(name)
    if how.new.people and (fits := wc.formats.resolve("auto", new_key).name) != name:
        raise usage(
            f"the new keys are of format {fits}, and the file's key is of {name}: `warpcipher "
            "rekey` changes the format"
        )
    more: Any = {"format": name, "options": options, "keep": keep, "replace": how.force}
    wc.formats.rewrap_file(path, key, new_key, how.output, **more)
    return {"path": how.output or path, "format": name}


def _rewrap_keyset(
    path: str, new_kms: str, output: str | None, force: bool, given: dict[str, Any], more: bool
) -> dict[str, Any]:
    from warpcipher.keys.sources import read_bounded

    kms = given.pop("kms")
    if kms is None or more or any(given.values()):
        raise usage("--new-kms goes only with --kms: FILE is the keyset")
    place = path if output is None else output
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        made = wc.keys.rewrap_tink(bytes(read_bounded(file.fileno(), shown(path))), kms, new_kms)
        old = file.fileno() if output is None else -1
        with open_output(place, force=output is None or force) as target:
            mode = target.take_over(os.fstat(old)) if output is None else None
            target.write_all(made, mode, old)
    return {"path": place, "kms": new_kms}
