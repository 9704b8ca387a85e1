# SPDX-License-Identifier: Apache-2.0
"""The schemas of the files of one table: equal, or unified."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

PROMOTE_OPTIONS = ("none", "default", "permissive")


class Schemas:
    """Takes the schema of one file after the other.

    promote_options: of `pyarrow.concat_tables`: "none" demands that all are equal.
    """

    def __init__(self, promote_options: str) -> None:
        if promote_options not in PROMOTE_OPTIONS:
            raise ValueError(
                f"promote_options is {promote_options!r}: expected {', '.join(PROMOTE_OPTIONS)}"
            )
        self._promote = promote_options
        self._arrow: Any = importlib.import_module("pyarrow")
        self._known: dict[str, tuple[pyarrow.Field, str]] = {}
        self._first: tuple[str, pyarrow.Schema] | None = None

    def add(self, path: str, schema: pyarrow.Schema) -> None:
        """Raises ValueError, which names two files and the column in which they differ."""
        if self._promote != "none":
            self._unify(path, schema)
        elif self._first is None:
            self._first = path, schema
        elif not schema.equals(self._first[1]):
            difference = _difference(*self._first, path, schema)
            raise ValueError(f'{difference}; promote_options="permissive" unifies schemas')

    def _unify(self, path: str, schema: pyarrow.Schema) -> None:
        for field in schema:
            known, origin = self._known.setdefault(field.name, (field, path))
            if known.equals(field):
                continue
            pair = [self._arrow.schema([known]), self._arrow.schema([field])]
            try:
                unified = self._arrow.unify_schemas(pair, promote_options=self._promote)
            except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError):
                raise ValueError(
                    f"{_types(known, origin, field, path)}, which promote_options="
                    f"{self._promote!r} does not unify"
                ) from None
            self._known[field.name] = unified[0], origin


def _types(known: pyarrow.Field, origin: str, field: pyarrow.Field, path: str) -> str:
    return f"column {field.name} is {_shown(known)} in {origin}, and {_shown(field)} in {path}"


def _shown(field: pyarrow.Field) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _difference(origin: str, known: pyarrow.Schema, path: str, schema: pyarrow.Schema) -> str:
    for has, names, lacks, others in (
        (origin, known.names, path, schema.names),
        (path, schema.names, origin, known.names),
    ):
        for name in names:
            if name not in others:
                return f"column {name} is in {has}, and not in {lacks}"
    for before, now in zip(known, schema, strict=False):
        if before.name != now.name:
            return f"column {now.name} of {path} stands where {origin} has {before.name}"
        if not before.equals(now):
            return _types(before, origin, now, path)
    return f"{origin} and {path} do not have the same columns"
