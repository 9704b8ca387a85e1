# SPDX-License-Identifier: Apache-2.0
"""`warpcipher parquet`: info, decrypt, encrypt, rekey, rewrap."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable
from typing import Any, cast

import click

import warpcipher as wc

from . import conflicts, folders, jobs, keys
from .errors import EPILOG, CliError, Command, Group, counted, print_json, shown, usage
from .files import InputFile, OutputFile, Target
from .options import FORCE, JSON, argument, option, with_options
from .report import Progress
from .run import DRY_RUN, ENGINE, TELLING, Looks, Run, RunOptions

SUFFIX = ".parquet"
KEY_SIZES = (16, 24, 32)
Work = Callable[[Any, Any, Callable[[int], object]], Any]

Choices = dict[str, keys.Choice]


def _of_columns(_ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Choices:
    """The callback of COLUMN=FILE options."""
    option, found = parameter.opts[0], {}
    for entry in given:
        name, equals, path = entry.rpartition("=")
        if not equals or not name:
            raise usage(f"{option} takes COLUMN=FILE")
        found[name] = keys.Choice(file=path, option=option)
    return found


def _bytes(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> bytes | None:
    """The callback of an option that is stored as bytes."""
    return None if text is None else os.fsencode(text)


PATHS = argument("paths FILE...", required=True)
AAD_PREFIX = option("--aad-prefix TEXT", "The AAD prefix of the file; UTF-8.", callback=_bytes)
KEY_METADATA = option("--key-metadata TEXT", "Text about the footer's key.", callback=_bytes)
_COLUMNS: Any = {"multiple": True, "callback": _of_columns}
key_options = with_options(
    PATHS,
    *keys.OPTIONS,
    option("--column-key column_keys COLUMN=FILE", "The key of a column.", **_COLUMNS),
    AAD_PREFIX,
)
_OUTPUT = "Output file or directory; - is standard output."
_OPTIONS = (FORCE, ENGINE, DRY_RUN, *TELLING)


file_options = with_options(option("-o --output PATH", _OUTPUT, required=True), *_OPTIONS)
in_place_options = with_options(
    option(
        "-o --output PATH", f"{_OUTPUT} Without it each FILE is replaced when all of it is written."
    ),
    *_OPTIONS,
)


def needed(choice: keys.Choice) -> keys.Choice:
    """The choice of a key, which must be there."""
    if not choice:
        raise usage("give the key, with --key FILE")
    return choice


def key_bytes(choice: keys.Choice) -> bytes:
    """An AES key. Raises CliError, OSError."""
    return bytes(choice.resolve(KEY_SIZES, "an AES key"))


def keys_of(choices: Choices) -> dict[str, bytes]:
    """The keys of columns."""
    return {name: key_bytes(choice) for name, choice in choices.items()}


def reading_keys(choice: keys.Choice, columns: Choices) -> Any:
    """Keys as `warpcipher.parquet.open` takes them."""
    footer = key_bytes(choice)
    return {b"": footer, **keys_of(columns)} if columns else footer


class ParquetRun(Run):
    """One run of a command that writes Parquet files."""

    def __init__(
        self, paths: tuple[str, ...], given: dict[str, Any], *choices: keys.Choice
    ) -> None:
        """given: the options of `file_options`. choices: keys; no output may replace theirs."""
        if jobs.STANDARD in paths:
            raise usage("a Parquet file is read from its end: standard input (-) cannot be one")
        self.engine = given.pop("engine")
        options = RunOptions(paths=paths, **given)
        options.check_telling()
        if options.force and options.output is None:
            raise usage("--force is for --output: each FILE is replaced without it")
        super().__init__(options, "parquet")
        self._in_place = options.output is None
        self._key_files = [one.path for one in choices if one.path]

    def each(self, process: Work) -> None:
        """Does every file. process: (source, target, progress) of one."""
        self._process = process
        self.run()

    def _make_plan(self) -> jobs.Plan:
        plan = jobs.make_plan(self._options.paths, self._options.output, jobs.SameNames(SUFFIX))
        conflicts.refuse(plan, self._key_files, self._kept, in_place=self._in_place)
        return plan

    def _choose(self, plan: jobs.Plan) -> list[jobs.Job]:
        for tree in plan.trees:
            left_out = {**dict.fromkeys(tree.links, "a symbolic link"), **tree.others}
            for name, reason in sorted(left_out.items()):
                self._report.skip(f"{tree.source}/{name}", reason)
        return plan.jobs

    def _may_replace(self, job: jobs.Job) -> bool:
        return self._in_place or super()._may_replace(job)

    def _make_folders(self, plan: jobs.Plan) -> None:
        for path in (plan.folder, *(tree.target for tree in plan.trees)):
            if path is not None:
                folders.make_folder(path)

    def _work(self, job: jobs.Job, source: InputFile, target: Target, progress: Progress) -> None:
        file = io.FileIO(source.descriptor, closefd=False)
        self._process(file, target, progress.at)
        source.count = source.size or 0  # read at many places, in any order
        if self._in_place and isinstance(target, OutputFile):
            old = source.descriptor
            target.commit(target.take_over(os.fstat(old)), of=old)
        else:
            target.commit(source.mode)

    def _finish(self, plan: jobs.Plan) -> None:
        for tree in plan.trees:
            for name, (mode, _) in sorted(tree.folders.items(), reverse=True):
                folders.finish(tree.target, folders.parts_of(name), mode, None, always=False)

    def _translated(self, job: jobs.Job, error: Exception) -> CliError:
        """A key that is missing is named by its option."""
        if isinstance(error, wc.parquet.MissingKeyError) and error.column is not None:
            metadata = _shown(error.key_metadata)
            says = f", of which the file says {shown(metadata)}" if metadata else ""
            column = shown(error.column)
            return usage(
                f"{shown(job.path)}: column {column} has its own key{says}: give it with "
                f"--column-key {column}=FILE"
            )
        return super()._translated(job, error)


def files_of(path: str) -> list[str]:
    """The file of this name, or the Parquet files of a directory. Raises FileNotFoundError."""
    return wc.parquet.find_files(path) if os.path.isdir(path) else [path]  # noqa: PTH112


def describe(path: str, found: Any, prefix: bytes | None) -> dict[str, Any]:
    """The facts of a file, with or without its keys."""
    seen = wc.parquet.inspect(path)
    entry: dict[str, Any] = {
        "path": path,
        "encryption": seen.encryption,
        "algorithm": seen.algorithm or None,
        "key_metadata": _shown(seen.key_metadata),
        "aad_prefix": _shown(seen.aad_prefix),
        "needs_aad_prefix": seen.needs_prefix,
    }
    if found is None and seen.encryption != "none":
        return entry
    if seen.encryption == "none":
        found = prefix = None
    with wc.parquet.open(path, found, aad_prefix=prefix) as file:
        entry["rows"] = file.num_rows
        entry["row_groups"] = file.num_row_groups
        entry["columns"] = [_column(column) for column in file.columns()]
    return entry


def _column(column: wc.parquet.ColumnInfo) -> dict[str, Any]:
    return {**column._asdict(), "key_metadata": _shown(column.key_metadata)}


def _shown(data: bytes) -> str | None:
    """Bytes that may be text."""
    return data.decode("utf-8", "backslashreplace") if data else None


def print_entry(entry: dict[str, Any]) -> None:
    """The result of `describe`, for people."""
    algorithm = f", {entry['algorithm']}" if entry["algorithm"] else ""
    click.echo(f"{shown(entry['path'])}: encryption: {entry['encryption']}{algorithm}")
    if entry["key_metadata"]:
        click.echo(f"  key metadata  {shown(entry['key_metadata'])}")
    if entry["aad_prefix"]:
        click.echo(f"  AAD prefix    {shown(entry['aad_prefix'])}")
    if entry["needs_aad_prefix"]:
        click.echo("  AAD prefix    not in the file: give it")
    if "rows" in entry:
        click.echo(
            f"  rows          {entry['rows']} in {counted(entry['row_groups'], 'row group')}"
        )
        for column in entry["columns"]:
            metadata = f" ({shown(column['key_metadata'])})" if column["key_metadata"] else ""
            click.echo(f"  column        {shown(column['name'])}: {column['encryption']}{metadata}")


@click.group(cls=Group, epilog=EPILOG)
def parquet() -> None:
    """Encrypt and decrypt Parquet files by the format's own modular encryption.

    Pages are not decoded: compression, encodings and statistics stay as they are. pyarrow, Spark
    and Polars read the encrypted files, and any reader the decrypted ones.
    """


@parquet.command(cls=Command, epilog=EPILOG)
@key_options
@JSON
def info(
    paths: tuple[str, ...],
    column_keys: Choices,
    aad_prefix: bytes | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Show how files are encrypted; with their keys also their content.

    Of a directory all files below it whose names end in .parquet.
    """
    choice = keys.Choice.take(given)
    found = None if not choice else reading_keys(choice, column_keys)
    if found is None and (column_keys or aad_prefix is not None):
        raise usage("give the footer's key, too: with --key FILE")
    looks = Looks()
    entries = []
    for path in paths:
        for name in looks.at(path, files_of) or ():
            entry = looks.at(name, lambda name: describe(name, found, aad_prefix))
            if entry is not None:
                entries.append(entry)
    if as_json:
        print_json({"files": entries})
    else:
        for entry in entries:
            print_entry(entry)
    looks.end()


@parquet.command(cls=Command, epilog=EPILOG)
@key_options
@file_options
def decrypt(
    paths: tuple[str, ...], column_keys: Choices, aad_prefix: bytes | None, **given: Any
) -> None:
    """Make plain files that any reader reads.

    \b
    warpcipher parquet decrypt --key my.key -o plain.parquet people.parquet
    warpcipher parquet decrypt --key my.key -o plain/ people/
    """
    choice = needed(keys.Choice.take(given))
    found = reading_keys(choice, column_keys)
    run = ParquetRun(paths, given, choice, *column_keys.values())
    run.each(
        lambda source, target, progress: wc.parquet.to_plain(
            source, found, target, aad_prefix=aad_prefix, engine=run.engine, progress=progress
        )
    )


@parquet.command(cls=Command, epilog=EPILOG)
@key_options
@option(
    "--column columns NAME",
    "Encrypt only the named columns with the footer key; may be repeated.",
    multiple=True,
)
@option("--others-plain", "Leave in plaintext what neither --column nor --column-key names.")
@click.option(
    "--algorithm",
    type=click.Choice(["AES_GCM_V1", "AES_GCM_CTR_V1"]),
    default="AES_GCM_V1",
    help="AES_GCM_CTR_V1 does not authenticate pages.  [default: AES_GCM_V1]",
)
@option("--plaintext-footer", "Sign the footer and leave it readable.")
@KEY_METADATA
@option("--no-store-prefix", "Leave the AAD prefix out of the file.")
@file_options
def encrypt(
    paths: tuple[str, ...],
    column_keys: Choices,
    columns: tuple[str, ...],
    others_plain: bool,
    algorithm: str,
    plaintext_footer: bool,
    key_metadata: bytes | None,
    aad_prefix: bytes | None,
    no_store_prefix: bool,
    **given: Any,
) -> None:
    """Encrypt plain Parquet files.

    All columns are encrypted: columns of --column-key with their own keys, the others with the
    footer's. --column and --others-plain leave columns in plaintext.

    \b
    warpcipher parquet encrypt --key my.key -o people.parquet plain.parquet
    warpcipher parquet encrypt --key my.key --column-key ssn=ssn.key -o secret/ people/
    """
    choice = needed(keys.Choice.take(given))
    config = wc.parquet.EncryptionConfig(
        footer_key=key_bytes(choice),
        footer_key_metadata=key_metadata or b"",
        column_keys=keys_of(column_keys),
        columns=columns if columns or others_plain else None,
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        aad_prefix=aad_prefix or b"",
        store_aad_prefix=not no_store_prefix,
    )
    run = ParquetRun(paths, given, choice, *column_keys.values())
    run.each(
        lambda source, target, progress: wc.parquet.encrypt(
            source, target, config, engine=run.engine, progress=progress
        )
    )


@parquet.command(cls=Command, epilog=EPILOG)
@key_options
@option("--new-key FILE", "The new key of the footer.", required=True)
@option("--new-column-key new_column_keys COLUMN=FILE", "The new key of a column.", **_COLUMNS)
@KEY_METADATA
@in_place_options
def rekey(
    paths: tuple[str, ...],
    column_keys: Choices,
    new_key: str,
    new_column_keys: Choices,
    key_metadata: bytes | None,
    aad_prefix: bytes | None,
    **given: Any,
) -> None:
    """Encrypt files again under other keys; all else stays as it is in each file.

    Without -o each FILE is replaced when all of it is written. What a file said of its old keys is
    left out: --key-metadata says something of the new one.

    \b
    warpcipher parquet rekey --key old.key --new-key new.key people/
    warpcipher parquet rekey --key old.key --new-key new.key -o new/ people/
    """
    choice = needed(keys.Choice.take(given))
    found = reading_keys(choice, column_keys)
    new_choice = keys.Choice(file=new_key, option="--new-key")
    new, own = key_bytes(new_choice), keys_of(new_column_keys)
    choices = choice, new_choice, *column_keys.values(), *new_column_keys.values()
    run = ParquetRun(paths, given, *choices)

    def change(source: Any, target: Any, progress: Any) -> int:
        with wc.parquet.open(source, found, aad_prefix=aad_prefix, engine=run.engine) as file:
            config = wc.parquet.EncryptionConfig.like(
                file, new, own, footer_key_metadata=key_metadata or b""
            )
            return wc.parquet.rekey(file, target, None, config, progress=progress)

    run.each(change)


class _Client:
    """The client of a KMS, with its errors as errors of a file that is refused."""

    def __init__(self, place: str) -> None:
        """place: MODULE:NAME. Raises CliError."""
        module, colon, name = place.partition(":")
        try:
            self._client = getattr(importlib.import_module(module), name)()
        except Exception as error:  # of any module
            why = f"{type(error).__name__}: {error}" if colon else "expected MODULE:NAME"
            raise usage(f"--kms {shown(place)}: {why}") from None

    def wrap_key(self, key: bytes, master: str, /) -> bytes | str:
        return cast("bytes | str", self._asked("wrap_key", key, master))

    def unwrap_key(self, wrapped: Any, master: str, /) -> bytes:
        return cast("bytes", self._asked("unwrap_key", wrapped, master))

    def _asked(self, call: str, *arguments: Any) -> object:
        try:
            return getattr(self._client, call)(*arguments)
        except Exception as error:  # of any library
            raise PermissionError(f"{call} of the KMS: {type(error).__name__}: {error}") from error


@parquet.command(cls=Command, epilog=EPILOG)
@PATHS
@option("--kms MODULE:NAME", "What makes the client of the KMS, in a Python module.", required=True)
@option("--master masters OLD=NEW", "The new id of a master key; may be repeated.", multiple=True)
@AAD_PREFIX
@option("-o --output OUT", "Write OUT and leave the one FILE as it is.")
@FORCE
@option("--copy", "URLs: read and write all of a file, where its store cannot copy it.")
def rewrap(
    paths: tuple[str, ...],
    kms: str,
    masters: tuple[str, ...],
    aad_prefix: bytes | None,
    output: str | None,
    force: bool,
    copy: bool,
) -> None:
    """Wrap the data keys of files under other master keys of a KMS, or their present versions.

    The footer is written again, or the key material beside FILE; no page is decrypted. FILE may be
    a URL: the store copies the pages (S3). NAME is called for a client, as pyarrow knows them, with
    wrap_key and unwrap_key.

    \b
    warpcipher parquet rewrap --kms my_kms:Client --master 2026=2027 people.parquet
    """
    pairs = [entry.split("=") for entry in masters]
    if any(len(pair) != 2 for pair in pairs) or len(dict(pairs)) != len(pairs):
        raise usage("--master takes OLD=NEW, once for each OLD")
    if output is not None and len(paths) > 1:
        raise usage("--output takes one FILE")
    found, looks = wc.parquet.KmsKeys(_Client(kms)), Looks()
    how: Any = {"aad_prefix": aad_prefix, "replace": force, "copy": copy}
    for path in paths:
        count = looks.at(
            path, lambda path: wc.parquet.rewrap(path, found, dict(pairs), output, **how)
        )
        if count is not None:
            click.echo(f"{shown(path)}: {counted(count, 'key')} wrapped again", err=True)
    looks.end()
