# SPDX-License-Identifier: Apache-2.0
"""Checks that includes and imports follow the layers of docs/architecture.md.

The table under "## Layers" names each layer, its files and the layers that it may use. Fails on
an include or import that runs upwards, on a file that belongs to no layer, and on files that
include or import each other in a circle. Imports for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "architecture.md"
SOURCES = ("src", "bindings", "python/warpcipher", "measure")
PACKAGES = {"warpcipher": "python", "warpcipher_measure": "measure/python"}
EXTENSIONS = {"_native"}


class Layers:
    """The table: which layer a file belongs to, and what that may use."""

    def __init__(self, text: str) -> None:
        section = text.split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
        self.uses: dict[str, set[str]] = {}
        self._places: list[tuple[str, str]] = []
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not line.startswith("|") or len(cells) != 3 or cells[0] in ("layer", "---"):
                continue
            name = cells[0]
            self.uses[name] = {used.strip() for used in cells[2].split(",") if used.strip()}
            self._places += [(place, name) for place in re.findall(r"`([^`]+)`", cells[1])]
        self._places.sort(key=lambda entry: -len(entry[0]))
        for name, used in self.uses.items():
            for other in used - self.uses.keys():
                sys.exit(f"{TABLE.name}: layer {name} uses {other}, which is no layer")
        self._close()

    def _close(self) -> None:
        """What a layer may use, what that uses comes with it."""
        changed = True
        while changed:
            changed = False
            for used in self.uses.values():
                more = set().union(*(self.uses[other] for other in used)) - used
                used |= more
                changed = changed or bool(more)
        for name, used in self.uses.items():
            if name in used:
                sys.exit(f"{TABLE.name}: layer {name} uses itself, by way of others")

    def of(self, path: str) -> str | None:
        for place, name in self._places:
            if path == place or path.startswith(place.rstrip("/") + "/"):
                return name
        return None


def includes(path: Path) -> Iterator[str]:
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
        for base in (ROOT / "src", path.parent):
            if (base / name).is_file():
                yield (base / name).relative_to(ROOT).as_posix()
                break


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _runtime_nodes(node)


def imports(path: Path) -> Iterator[str]:
    roots = [ROOT / folder for folder in PACKAGES.values() if ROOT / folder in path.parents]
    parts = list(path.relative_to(*roots or [path.parent]).with_suffix("").parts)
    package = parts[:-1]
    for node in _runtime_nodes(ast.parse(path.read_text())):
        names: list[list[str]] = []
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        for name in names:
            found = find_module(name)
            if found is not None and found != path:
                yield found.relative_to(ROOT).as_posix()


def find_module(name: list[str]) -> Path | None:
    """The file of a module, or of what a module holds; None for others' and for extensions."""
    if name[0] not in PACKAGES or any(part in EXTENSIONS for part in name):
        return None
    base = ROOT / PACKAGES[name[0]]
    for parts in (name, name[:-1]):
        for candidate in (
            base.joinpath(*parts).with_suffix(".py"),
            base.joinpath(*parts, "__init__.py"),
        ):
            if parts and candidate.is_file():
                return candidate
    return None


def find_circle(graph: dict[str, list[str]]) -> list[str]:
    """A path from a file back to itself, or an empty list."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for other in graph.get(node, []):
            circle = visit(other, [*path, node])
            if circle:
                return circle
        done.add(node)
        return []

    for start in graph:
        circle = visit(start, [])
        if circle:
            return circle
    return []


def main() -> None:
    layers = Layers(TABLE.read_text())
    faults: list[str] = []
    graph: dict[str, list[str]] = {}
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh", ".py"}:
                continue
            name = path.relative_to(ROOT).as_posix()
            layer = layers.of(name)
            if layer is None:
                faults.append(f"{name} belongs to no layer")
                continue
            graph[name] = list(
                dict.fromkeys(imports(path) if path.suffix == ".py" else includes(path))
            )
            for other in graph[name]:
                used = layers.of(other)
                if used is not None and used != layer and used not in layers.uses[layer]:
                    faults.append(f"{name} ({layer}) uses {other} ({used}), which lies above it")
    circle = find_circle(graph)
    if circle:
        faults.append("files use each other in a circle: " + " -> ".join(circle))
    if faults:
        sys.exit(
            "\n".join(faults) + f"\nThe layers are those of docs/{TABLE.name}, section Layers."
        )


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
