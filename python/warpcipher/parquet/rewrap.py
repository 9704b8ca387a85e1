# SPDX-License-Identifier: Apache-2.0
"""Wraps the data keys of a file under other master keys: only its footer, or the key material
beside it, is written again."""

from __future__ import annotations

from collections.abc import Mapping

from .. import stores
from .._types import PathLike
from ..formats.source import write_changed
from . import metadata as md
from .footer import read_footer, seal_footer, tail
from .kms import KmsClient, KmsKeys, Rotation, is_external
from .storage import Source, naming
from .thrift import BINARY


def rewrap(
    table: PathLike,
    keys: KmsKeys,
    masters: Mapping[str, str] | None = None,
    out: PathLike | None = None,
    *,
    client: KmsClient | None = None,
    aad_prefix: bytes | None = None,
    replace: bool = True,
    copy: bool = False,
) -> int:
    """Wraps the data keys of a table again, and returns how many. No page is read: key material in
    the table costs a footer, material beside it a file of JSON (`KmsKeys.rotate_master_keys`).

    table:      the path or URL of one Parquet file. keys: unwrap its keys.
    masters:    ids of master keys to the ids that take their place. Others stay, and the KMS wraps
                under its present version of them. client: wraps, where another KMS does.
    out:        the file that is written; None replaces the table in one step. Not for material that
                lies beside the table.
    aad_prefix: of a table that does not store it. replace: False raises FileExistsError where `out`
                exists. copy: a table at a URL is read and written, all of it, where its store
                cannot copy all but the footer (S3 can).
    The footer is authenticated first. The data keys stay the same: `rekey` takes fresh ones. Raises
    InvalidTag, FormatError, ValueError (a master key that no key of the table has), OSError, and
    the client's errors; then nothing was written.
    """
    with naming(table), Source(table) as source:
        if source.place is None:
            raise TypeError(f"table is {type(table).__name__}: expected the path of one file")
        magic, data = tail(source)
        footer, ring = read_footer(source, keys, aad_prefix, check_footer=True, engine="auto")
        if footer.crypto is None or footer.key is None or ring is None:
            raise ValueError(f"{source.name} is not encrypted: it has no keys to wrap")
        if is_external(footer.key_metadata):
            if out is not None:
                raise ValueError("the key material lies beside the table: out is for a table")
            return keys.beside(table).rotate_master_keys(masters, client=client)
        rotation = Rotation(keys, masters or {}, client)
        fields = footer.fields
        metadata = rotation.of_metadata(footer.key_metadata)
        for group in md.structs(fields, md.ROW_GROUPS, "the row groups"):
            for chunk in md.structs(group, md.COLUMNS, "the columns"):
                union = md.substruct(chunk, md.CRYPTO_METADATA) or {}
                own = md.substruct(union, md.WITH_COLUMN_KEY)
                given = own and md.binary(own, md.COLUMN_KEY_METADATA, "the key metadata")
                if own and given:
                    own[md.COLUMN_KEY_METADATA] = BINARY, rotation.of_metadata(given)
        rotation.check(source.name)
        how = footer.crypto, footer.key, metadata, (footer.prefix, footer.stored)
        end = seal_footer(fields, *how, encrypted=footer.encrypted) + magic
        kept = 0, source.size - 8 - len(data)
        place = source.place
        target = place if out is None else stores.local_path(out)
        replace = out is None or replace
        write_changed(place, source.opened, target, kept, end=end, replace=replace, copy=copy)
    return rotation.count
