# SPDX-License-Identifier: Apache-2.0
"""How a file is to be encrypted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .._uncopied import Uncopied
from ..arguments import require_bytes
from .crypto import ALGORITHMS, GCM
from .file import BaseFile
from .keyring import Key, check_key, closest_name


class ColumnKey(NamedTuple):
    """The key of a column. metadata: the file's text about it; own: it is not the footer's."""

    key: bytes
    metadata: bytes
    own: bool


@dataclass(frozen=True)
class EncryptionConfig(Uncopied):
    """How `encrypt` encrypts a file. Keys have 16, 24 or 32 bytes, or are sources of
    `warpcipher.keys`.

    footer_key:          encrypts the footer, or signs it.
    footer_key_metadata: the file's text about it, by which a reader finds it.
    column_keys:         columns with keys of their own: a path in the schema ("a.b"), or its
                         beginning ("a"), to a key. The longest name of a column counts. One key
                         for several columns is one key.
    column_key_metadata: the file's texts about these keys, by the same names.
    columns:             the other columns to encrypt, with the footer's key; None: all of them, and
                         () leaves them plain.
    algorithm:           "AES_GCM_V1", or "AES_GCM_CTR_V1", whose pages are not authenticated.
    plaintext_footer:    the footer stays readable and is signed; statistics of encrypted columns
                         are not in it.
    aad_prefix:          bound to every module, so that the file cannot pass for another.
    store_aad_prefix:    False: readers must be given the prefix.
    """

    footer_key: Key = field(repr=False)
    footer_key_metadata: bytes = b""
    column_keys: Mapping[str, Key] = field(default_factory=dict, repr=False)
    column_key_metadata: Mapping[str, bytes] = field(default_factory=dict)
    columns: Sequence[str] | None = None
    algorithm: str = GCM
    plaintext_footer: bool = False
    aad_prefix: bytes = b""
    store_aad_prefix: bool = True

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {self.algorithm!r}: expected {' or '.join(ALGORITHMS)}")
        if isinstance(self.columns, str):
            raise TypeError("columns is a str: expected a sequence of names")
        for what in ("column_keys", "column_key_metadata"):
            if not isinstance(value := getattr(self, what), Mapping):
                raise TypeError(f"{what} is {type(value).__name__}: expected a mapping of columns")
        for name, metadata in self.column_key_metadata.items():
            require_bytes(f"column_key_metadata of {name!r}", metadata)
            if name not in self.column_keys:
                raise ValueError(f"column_key_metadata names {name!r}, and column_keys does not")
        for what in ("footer_key_metadata", "aad_prefix"):
            object.__setattr__(self, what, require_bytes(what, getattr(self, what)))
        if not self.store_aad_prefix and not self.aad_prefix:
            raise ValueError("store_aad_prefix is False without an aad_prefix")

    @classmethod
    def like(
        cls,
        file: BaseFile,
        footer_key: Key,
        column_keys: Mapping[str, Key] | None = None,
        *,
        footer_key_metadata: bytes = b"",
        column_key_metadata: Mapping[str, bytes] | None = None,
    ) -> EncryptionConfig:
        """The configuration of an encrypted file that is open, with other keys: for `rekey`.

        Key metadata speaks of keys, so the file's is not taken over: give one for the new
        ones.
        Raises ValueError where a column has a key of its own and `column_keys` has none for it,
        FormatError if the end of the AAD prefix cannot be known.
        """
        if not isinstance(file, BaseFile):
            raise TypeError(f"file is {type(file).__name__}: expected a file that `open` opened")
        if file.crypto is None:
            raise ValueError("the file is not encrypted: it has no configuration")
        file.footer.check_prefix()
        own = dict(column_keys or {})
        new = set().union(*(file.choose_columns([name]) for name in own))
        under_footer_key = []
        for number, column in enumerate(file.columns()):
            if column.encryption == "footer key" and number not in new:
                under_footer_key.append(column.name)
            if column.encryption == "column key" and number not in new:
                raise ValueError(
                    f"column {column.name} has a key of its own: give it a new one in column_keys "
                    f"(--new-column-key {column.name}=FILE in the command)"
                )
        return cls(
            footer_key,
            footer_key_metadata,
            own,
            column_key_metadata or {},
            under_footer_key,
            file.crypto.algorithm,
            not file.footer.encrypted,
            file.footer.prefix,
            file.footer.stored,
        )

    def resolve(self, file: BaseFile) -> tuple[bytes, list[ColumnKey | None]]:
        """The footer's key, and each column's key in the file; None: it stays plain."""
        footer = check_key(self.footer_key, "the footer's key", self.footer_key_metadata)
        plain = ColumnKey(footer, b"", False)
        chosen = set(file.choose_columns(self.columns))
        found = [plain if i in chosen else None for i in range(len(file.leaves))]
        for name, key in self.column_keys.items():
            metadata = self.column_key_metadata.get(name, b"")
            own = ColumnKey(check_key(key, f"the key of column {name}", metadata), metadata, True)
            for column in file.choose_columns([name]):
                if closest_name(file.names[column], self.column_keys) == name:
                    found[column] = own
        return footer, found
