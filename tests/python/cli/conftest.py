# SPDX-License-Identifier: Apache-2.0
"""An encrypted tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import tree_support


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a key, a tree t of FILES, and t.cobblestone."""
    return tree_support.make_tree(tmp_path)
