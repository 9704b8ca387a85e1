# SPDX-License-Identifier: Apache-2.0
"""`warpcipher parquet`: info, decrypt, encrypt, rekey."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from . import keys, parquet_run
from .errors import EPILOG, Command, Group, complain, shown, translate, usage
from .parquet_run import Run, file_options, in_place_options

PATHS = click.argument(
    "paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(readable=False)
)
COLUMN_KEY = click.option(
    "--column-key",
    "column_keys",
    metavar="COLUMN=FILE",
    multiple=True,
    help="The key of a column that has one of its own; may be given several times.",
)
AAD_PREFIX = click.option(
    "--aad-prefix", metavar="TEXT", help="What the file is bound to by its AAD prefix; UTF-8."
)
KEY_METADATA = click.option(
    "--key-metadata", metavar="TEXT", help="What the file says of the footer's key."
)


@click.group(cls=Group, epilog=EPILOG)
def parquet() -> None:
    """Encrypt and decrypt Parquet files by the format's own modular encryption.

    Pages are not decoded: compression, encodings and statistics stay as they are. pyarrow, Spark
    and Polars read what is encrypted here, and any reader what is decrypted.
    """


@parquet.command(cls=Command, epilog=EPILOG)
@PATHS
@keys.key_options
@COLUMN_KEY
@AAD_PREFIX
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(
    paths: tuple[str, ...],
    column_keys: tuple[str, ...],
    aad_prefix: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Tell how files are encrypted; with their keys also what is in them.

    Of a directory all files below it whose names end in .parquet.
    """
    choice = keys.Choice.take(given)
    found = None if not choice else parquet_run.reading_keys(choice, column_keys)
    if found is None and (column_keys or aad_prefix is not None):
        raise usage("give the footer's key, too: with --key FILE")
    prefix = parquet_run.encoded(aad_prefix)
    entries = []
    code = 0

    def attempt(action: Callable[[], Any], path: str) -> Any:
        nonlocal code
        try:
            return action()
        except Exception as error:
            failure = translate(error, shown(path))
            if failure is None:
                raise
            complain(failure.message)
            code = code or failure.exit_code

    for path in paths:
        for name in attempt(partial(parquet_run.files_of, path), path) or ():
            entry = attempt(partial(parquet_run.describe, name, found, prefix), name)
            if entry is not None:
                entries.append(entry)
    if as_json:
        click.echo(json.dumps({"files": entries}, indent=2))
    else:
        for entry in entries:
            parquet_run.print_entry(entry)
    if code:
        raise click.exceptions.Exit(code)


@parquet.command(cls=Command, epilog=EPILOG)
@PATHS
@keys.key_options
@COLUMN_KEY
@AAD_PREFIX
@file_options
def decrypt(
    paths: tuple[str, ...], column_keys: tuple[str, ...], aad_prefix: str | None, **given: Any
) -> None:
    """Make plain files that any reader reads.

    \b
    warpcipher parquet decrypt --key my.key -o plain.parquet people.parquet
    warpcipher parquet decrypt --key my.key -o plain/ people/
    """
    from warpcipher import parquet as tables

    choice = parquet_run.needed(keys.Choice.take(given))
    found = parquet_run.reading_keys(choice, column_keys)
    prefix = parquet_run.encoded(aad_prefix)
    run = Run.take(paths, given, choice, column_keys)
    run.each(
        lambda source, target, progress: tables.to_plain(
            source, found, target, aad_prefix=prefix, engine=run.engine, progress=progress
        )
    )


@parquet.command(cls=Command, epilog=EPILOG)
@PATHS
@keys.key_options
@COLUMN_KEY
@click.option(
    "--column",
    "columns",
    metavar="NAME",
    multiple=True,
    help="Encrypt only the named columns with the footer key; may be repeated.",
)
@click.option(
    "--others-plain",
    is_flag=True,
    help="Leave all columns in plaintext that neither --column nor --column-key names.",
)
@click.option(
    "--algorithm",
    type=click.Choice(["AES_GCM_V1", "AES_GCM_CTR_V1"]),
    default="AES_GCM_V1",
    help="AES_GCM_CTR_V1 does not authenticate pages.  [default: AES_GCM_V1]",
)
@click.option("--plaintext-footer", is_flag=True, help="Sign the footer and leave it readable.")
@KEY_METADATA
@AAD_PREFIX
@click.option("--no-store-prefix", is_flag=True, help="Leave the AAD prefix out of the file.")
@file_options
def encrypt(
    paths: tuple[str, ...],
    column_keys: tuple[str, ...],
    columns: tuple[str, ...],
    others_plain: bool,
    algorithm: str,
    plaintext_footer: bool,
    key_metadata: str | None,
    aad_prefix: str | None,
    no_store_prefix: bool,
    **given: Any,
) -> None:
    """Encrypt plain Parquet files.

    All columns are encrypted: those of --column-key with their own keys, the others with the
    footer's. --column and --others-plain leave columns in plaintext.

    \b
    warpcipher parquet encrypt --key my.key -o people.parquet plain.parquet
    warpcipher parquet encrypt --key my.key --column-key ssn=ssn.key -o secret/ people/
    """
    from warpcipher import parquet as tables

    choice = parquet_run.needed(keys.Choice.take(given))
    own = parquet_run.column_keys(column_keys)
    config = tables.EncryptionConfig(
        footer_key=parquet_run.key_bytes(choice),
        footer_key_metadata=parquet_run.encoded(key_metadata) or b"",
        column_keys=own,
        columns=columns if columns or others_plain else None,
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        aad_prefix=parquet_run.encoded(aad_prefix) or b"",
        store_aad_prefix=not no_store_prefix,
    )
    run = Run.take(paths, given, choice, column_keys)
    run.each(
        lambda source, target, progress: tables.encrypt(
            source, target, config, engine=run.engine, progress=progress
        )
    )


@parquet.command(cls=Command, epilog=EPILOG)
@PATHS
@keys.key_options
@COLUMN_KEY
@click.option("--new-key", metavar="FILE", required=True, help="The new key of the footer.")
@click.option(
    "--new-column-key",
    "new_column_keys",
    metavar="COLUMN=FILE",
    multiple=True,
    help="The new key of a column.",
)
@KEY_METADATA
@AAD_PREFIX
@in_place_options
def rekey(
    paths: tuple[str, ...],
    column_keys: tuple[str, ...],
    new_key: str,
    new_column_keys: tuple[str, ...],
    key_metadata: str | None,
    aad_prefix: str | None,
    **given: Any,
) -> None:
    """Encrypt files again under other keys; all else stays as it is in each file.

    Without -o each FILE is replaced when all of it is written. What a file said of its old keys is
    left out: --key-metadata says something of the new one.

    \b
    warpcipher parquet rekey --key old.key --new-key new.key people/
    warpcipher parquet rekey --key old.key --new-key new.key -o new/ people/
    """
    from warpcipher import parquet as tables

    choice = parquet_run.needed(keys.Choice.take(given))
    found = parquet_run.reading_keys(choice, column_keys)
    new = parquet_run.key_bytes(keys.Choice(file=new_key, option="--new-key"))
    own = parquet_run.column_keys(new_column_keys, "--new-column-key")
    prefix = parquet_run.encoded(aad_prefix)
    run = Run.take(paths, given, choice, (*column_keys, *new_column_keys, f"={new_key}"))

    def change(source: Any, target: Any, progress: Any) -> int:
        with tables.open(source, found, aad_prefix=prefix, engine=run.engine) as file:
            config = tables.EncryptionConfig.like(
                file, new, own, footer_key_metadata=parquet_run.encoded(key_metadata) or b""
            )
            return tables.rekey(file, target, None, config, progress=progress)

    run.each(change)
