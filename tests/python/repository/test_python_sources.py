# SPDX-License-Identifier: Apache-2.0
"""What no checker says of the package's own sources: imports in a circle, and private names of
other modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PYTHON = Path(__file__).parents[3] / "python"
EXTENSIONS = {"warpcipher._native", "warpcipher._lab"}


def modules(root: Path) -> dict[str, Path]:
    """The modules below a folder, by name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that runs, those in functions too; none for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from statements(other)
        else:
            yield from statements(child)


def imported(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """The module and the name of each import: ("warpcipher.cipher", "Cipher"); an empty name for
    a module as a whole."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for statement in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            yield from ((alias.name, "") for alias in statement.names)
            continue
        base = package[: len(package) - statement.level + 1] if statement.level else []
        source = ".".join([*base, *([statement.module] if statement.module else [])])
        yield from ((source, alias.name) for alias in statement.names)


def circles(root: Path) -> list[list[str]]:
    """Modules that import each other, round in a circle. An import of a package counts as one of
    its __init__.py, but for the submodule that it names."""
    found = modules(root)
    uses: dict[str, set[str]] = {}
    for name, path in found.items():
        uses[name] = set()
        for source, what in imported(name, path):
            inner = f"{source}.{what}" if what else source
            if inner not in EXTENSIONS:
                uses[name].add(inner if inner in found else source)
        uses[name] = {other for other in uses[name] if other in found and other != name}

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for other in uses[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        return seen

    reach = {name: reached(name) for name in found}
    grouped = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in found
        if name in reach[name]
    }
    return sorted(list(group) for group in grouped)


def private_imports(root: Path) -> list[str]:
    """Private names that a module takes from another; modules may be private to the package."""
    found = modules(root)
    return [
        f"{name}: {what} of {source}"
        for name, path in found.items()
        for source, what in imported(name, path)
        if what.startswith("_")
        and not what.startswith("__")
        and f"{source}.{what}" not in {*found, *EXTENSIONS}
    ]


def test_no_module_imports_in_a_circle() -> None:
    assert len(modules(PYTHON)) > 80  # they are read at all
    assert circles(PYTHON) == []


def test_no_module_takes_private_names_of_another() -> None:
    assert private_imports(PYTHON) == []


def test_circles_and_private_names_are_found(tmp_path: Path) -> None:
    sources = {
        "p/__init__.py": "",
        "p/a.py": "def f():\n    from .b import _hidden\n",
        "p/b.py": "import p.c\n",
        "p/c.py": "from . import a\n",
        "p/d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import e\n",
        "p/e.py": "from . import d, _f\nfrom __future__ import annotations\n",
        "p/_f.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(tmp_path) == [["p.a", "p.b", "p.c"]]
    assert private_imports(tmp_path) == ["p.a: _hidden of p.b"]
