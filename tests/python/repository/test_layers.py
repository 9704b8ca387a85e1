# SPDX-License-Identifier: Apache-2.0
"""The checker of layers in small trees; `make lint` runs it over this one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]

TABLE = """
# Architecture

## Layers

| layer | files | may use |
|---|---|---|
| low | `src/low` | |
| middle | `src/middle`, `python/warpcipher/a.py` | low |
| high | `src/high`, `python/warpcipher` | middle |

## Next
"""


@pytest.fixture
def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, for a tree of its own."""
    spec = importlib.util.spec_from_file_location(
        "check_layers", ROOT / "tools" / "check_layers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "TABLE", tmp_path / "docs" / "architecture.md")
    monkeypatch.setattr(module, "SOURCES", ("src", "python/warpcipher"))
    write(tmp_path, "docs/architecture.md", TABLE)
    write(tmp_path, "src/low/a.hpp", "")
    write(tmp_path, "src/middle/b.hpp", '#include "low/a.hpp"\n')
    write(tmp_path, "src/high/c.cpp", '#include "low/a.hpp"\n#include "middle/b.hpp"\n')
    write(tmp_path, "python/warpcipher/__init__.py", "from . import b\n")
    write(tmp_path, "python/warpcipher/a.py", "import os\n")
    write(tmp_path, "python/warpcipher/b.py", "from .a import x\nfrom ._native import Key\n")
    return module


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def faults(checker: ModuleType) -> str:
    with pytest.raises(SystemExit) as stopped:
        checker.main()
    return str(stopped.value)


def test_a_right_tree_passes(checker: ModuleType) -> None:
    checker.main()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("src/low/a.hpp", '#include "middle/b.hpp"\n', "src/low/a.hpp (low) uses src/middle/b.hpp"),
        ("src/low/x.hpp", '  #  include "c.cpp"\n', ""),
        ("src/new/d.cpp", "", "src/new/d.cpp belongs to no layer"),
        ("python/warpcipher/a.py", "from .b import y\n", "python/warpcipher/a.py (middle) uses"),
        ("python/warpcipher/a.py", "def f():\n    from . import b\n", "(middle) uses"),
        ("python/warpcipher/a.py", "def f():\n    _later.load('b')\n", "(middle) uses"),
        ("python/warpcipher/a.py", "importlib.import_module('.b', __package__)\n", "(middle) uses"),
        ("python/warpcipher/a.py", "import_module('warpcipher.b')\n", "(middle) uses"),
        ("python/warpcipher/a.py", "X = {1: 'b'}\n_later.load(X[1])\n", "(middle) uses"),
        ("python/warpcipher/a.py", "X = 'b'\nimport_module(f'{__package__}.{x}')\n", "(middle)"),
        ("python/warpcipher/a.py", "import_module('b')\n", ""),
        ("src/high/d.hpp", '#include "high/e.hpp"\n', ""),
    ],
)
def test_what_runs_upwards_is_named(
    checker: ModuleType, tmp_path: Path, name: str, text: str, expected: str
) -> None:
    write(tmp_path, name, text)
    if not expected:
        checker.main()
    else:
        assert expected in faults(checker)


LENT = """
| file | lends names of |
|---|---|
| `python/warpcipher/a.py`: `y` | `python/warpcipher/b.py` |

## Next
"""


def test_names_that_are_lent_count_neither_as_upwards_nor_as_circles(
    checker: ModuleType, tmp_path: Path
) -> None:
    write(tmp_path, "python/warpcipher/a.py", "def f():\n    _later.load('b')\n")
    assert "(middle) uses" in faults(checker)
    write(tmp_path, "docs/architecture.md", TABLE.replace("\n## Next\n", LENT))
    checker.main()
    write(tmp_path, "python/warpcipher/a.py", "")
    assert "a.py lends nothing of python/warpcipher/b.py" in faults(checker)


def test_circles_are_named(checker: ModuleType, tmp_path: Path) -> None:
    write(tmp_path, "src/high/d.hpp", '#include "e.hpp"\n')
    write(tmp_path, "src/high/e.hpp", '#include "high/d.hpp"\n')
    assert "src/high/d.hpp -> src/high/e.hpp -> src/high/d.hpp" in faults(checker)


def test_imports_for_type_checkers_do_not_count(checker: ModuleType, tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import y\n"
    write(tmp_path, "python/warpcipher/a.py", text)
    checker.main()


def test_a_table_that_goes_round_is_refused(checker: ModuleType, tmp_path: Path) -> None:
    write(tmp_path, "docs/architecture.md", TABLE.replace("`src/low` | |", "`src/low` | high |"))
    assert "uses itself" in faults(checker)
