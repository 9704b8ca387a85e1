# SPDX-License-Identifier: Apache-2.0
"""Types of arguments, for checkers alone: nothing imports this file at run time."""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import Buffer as Buffer

StreamLike: TypeAlias = object
"""None, an int as DLPack has it, or a stream object of an array library: docs/python.md."""
