# SPDX-License-Identifier: Apache-2.0
"""A table decoded on a GPU by pylibcudf, of an image that was decrypted there."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .device import Device
from .image import Image, enclosed
from .modules import wipe_any


class Decoder:
    """pylibcudf on a GPU. device: as for `Device`. Raises ImportError where it is not installed."""

    def __init__(self, device: int | str) -> None:
        try:
            self._cudf: Any = importlib.import_module("pylibcudf")
            self._rmm: Any = importlib.import_module("rmm")
        except ImportError as error:
            raise ImportError(
                f"read_table(device=) needs pylibcudf, whose import failed: {error}; "
                "pip install pylibcudf-cu13"
            ) from error
        self._device = Device(device)

    def table(self, image: Image, columns: Sequence[str] | None) -> Any:
        """A `pylibcudf.io.types.TableWithMetadata` of these columns, None: all, of an image that
        has them."""
        memory = image.on_device(self._device)
        parts = [memory]
        try:
            parts.append(self._device.send(bytearray(enclosed(image.footer()))))
            parts.append(self._device.join(parts))
            file = self._cudf.io.SourceInfo([self._device.as_buffer(parts[-1], self._rmm)])
            options = self._cudf.io.parquet.ParquetReaderOptions.builder(file).build()
            if columns is not None:
                # Its older name is set_columns.
                choose = getattr(options, "set_column_names", None) or options.set_columns
                choose(list(columns))
            return self._device.within(lambda: self._cudf.io.parquet.read_parquet(options))
        finally:
            for part in parts:
                wipe_any(part)
