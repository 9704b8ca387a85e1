# SPDX-License-Identifier: Apache-2.0
"""Rows that a filter chooses: row groups by their statistics, then rows by pyarrow.

Only the chosen columns and those of the filter are read, and need keys.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .decode import ArrowDecoder
from .footer import PLAIN_MAGIC
from .image import enclosed
from .plain_metadata import footer_in_place
from .reading import ParquetFile, read_table

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]


class Filter:
    """filters: as `pyarrow.parquet.read_table` takes them: an expression of pyarrow.compute, or
    tuples ("column", "operator", value) in one list, or in lists of which one must hold."""

    def __init__(self, filters: Any) -> None:
        ArrowDecoder()  # which says how to install pyarrow
        self._arrow: Any = importlib.import_module("pyarrow")
        self._dataset: Any = importlib.import_module("pyarrow.dataset")
        parquet = importlib.import_module("pyarrow.parquet")
        self._expression = parquet.filters_to_expression(filters)

    def read(self, file: ParquetFile, names: Sequence[str] | None) -> pyarrow.Table:
        """The rows of a file that pass. names: the columns, as for `read_table`."""
        needed = self._needed(file.schema)
        row_groups = self._row_groups(file, needed)
        table = read_table(file, columns=names, row_groups=row_groups)
        if names is None or set(needed) <= set(names):
            return table.filter(self._expression)
        asked = read_table(file, columns=needed, row_groups=row_groups)
        passed = self._dataset.dataset(asked).to_table(columns={"passed": self._expression})
        return table.filter(passed["passed"])

    def _needed(self, schema: pyarrow.Schema) -> list[str]:
        """The columns that the filter speaks of: it does not hold without them, and an expression
        does not tell them. Raises as pyarrow where the schema does not have them."""
        empty = schema.empty_table()
        empty.filter(self._expression)
        found = []
        for name in schema.names:
            try:
                empty.drop_columns([name]).filter(self._expression)
            except self._arrow.ArrowInvalid:
                found.append(name)
        return found

    def _row_groups(self, file: ParquetFile, needed: Sequence[str]) -> list[int]:
        """The row groups that may have such rows, by the statistics of these columns."""
        groups = file.choose_row_groups(None)
        footer = footer_in_place(file, groups, file.choose_columns(needed))
        reader = self._arrow.BufferReader(PLAIN_MAGIC + enclosed(footer))
        fragment = self._dataset.ParquetFileFormat().make_fragment(reader)
        chosen = fragment.subset(self._expression, schema=fragment.physical_schema)
        return [group.id for group in chosen.row_groups]
