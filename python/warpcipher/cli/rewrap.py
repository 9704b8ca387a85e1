# SPDX-License-Identifier: Apache-2.0
"""`warpcipher rewrap`."""

from __future__ import annotations

import json
from typing import Any

import click

from . import keys
from .errors import EPILOG, Command, shown, translate, usage
from .files import exists
from .report import on_terminal


@click.command(cls=Command, epilog=EPILOG)
@click.argument("path", metavar="FILE", type=click.Path(readable=False))
@keys.key_options
@click.option("--new-key", metavar="FILE", help="The new JSON Web Keys; - is standard input.")
@click.option("--new-key-env", metavar="NAME", help="They are in this environment variable.")
@click.option("--new-key-command", metavar="COMMAND", help="Take them from this command's output.")
@click.option(
    "--new-kms", metavar="URI", help="FILE is a Tink keyset: this key of a KMS wraps it then."
)
@click.option("-o", "--output", metavar="OUT", help="Write OUT and leave FILE as it is.")
@click.option("-f", "--force", is_flag=True, help="Replace OUT where it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def rewrap(
    path: str,
    new_key: str | None,
    new_key_env: str | None,
    new_key_command: str | None,
    new_kms: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Change the keys of a cryptotensors FILE: the one that wraps and the one that signs; or, with
    --kms and --new-kms, the key of a KMS that encrypts a Tink keyset.

    Keys are JSON Web Key Sets, with a key of type oct and one of type okp; the new ones sign, so
    that their okp key has its private part. The data is not decrypted and stays as it is. FILE is
    replaced in one step, or left as it is after an error.

    \b
    warpcipher rewrap --key old.json --new-key new.json model.safetensors
    warpcipher rewrap --kms aws-kms://old --new-kms aws-kms://new keyset.json
    """
    import warpcipher as wc
    from warpcipher import weights

    if new_kms is not None:
        named = [new_key, new_key_env, new_key_command]
        _rewrap_keyset(path, new_kms, output, force, as_json, {**given, "new": named})
        return
    old = keys.Choice.take(given)
    new = keys.Choice(file=new_key, env=new_key_env, command=new_key_command, option="--new-key")
    if not old:
        raise usage("give the file's keys: --key FILE")
    if sum(value is not None for value in (new_key, new_key_env, new_key_command)) != 1:
        raise usage("give the new keys: one of --new-key, --new-key-env and --new-key-command")
    if old.takes_standard_input and new.takes_standard_input:
        raise usage("both keys are to come from standard input: name a file for one")
    if force and output is None:
        raise usage("--force is for --output: FILE is replaced without it")
    old_key, fresh_key = old.read_web_keys(), new.read_web_keys()
    try:
        weights.rewrap(path, old_key, fresh_key, output, replace=force)
    except FileExistsError:
        raise exists(str(output)) from None
    except (wc.InvalidTag, ValueError) as error:
        raise translate(error, shown(path)) or error from None
    if as_json:
        made = {
            "path": path if output is None else output,
            "key_id": fresh_key.key_id,
            "sign_key_id": fresh_key.sign_key_id,
        }
        click.echo(json.dumps(made, indent=2))
    elif on_terminal():
        click.echo(f"{shown(path if output is None else output)}: its keys are new", err=True)


def _rewrap_keyset(
    path: str,
    new_kms: str,
    output: str | None,
    force: bool,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    from warpcipher._new_file import replaced
    from warpcipher.formats.whole import write_whole
    from warpcipher.keys import rewrap_tink
    from warpcipher.keys.sources import read_bounded

    kms = given.pop("kms")
    if kms is None or any(given.pop("new")) or any(given.values()):
        raise usage("--new-kms goes only with --kms: FILE is the keyset")
    if force and output is None:
        raise usage("--force is for --output: FILE is replaced without it")
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        made = rewrap_tink(bytes(read_bounded(file.fileno(), shown(path))), kms, new_kms)
    place = path if output is None else output
    try:
        with replaced(place, replace=output is None or force) as target:
            write_whole(target, memoryview(made))
    except FileExistsError:
        raise exists(str(output)) from None
    done = path if output is None else output
    if as_json:
        click.echo(json.dumps({"path": done, "kms": new_kms}, indent=2))
    elif on_terminal():
        click.echo(f"{shown(done)}: its key is new", err=True)
