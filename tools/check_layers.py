# SPDX-License-Identifier: Apache-2.0
"""Checks that includes and imports follow the layers of docs/architecture.md.

The table under "## Layers" names each layer, its files and the layers that it may use. Fails on
an include or import that runs upwards, on a file that belongs to no layer, and on files that
include or import each other in a circle. Imports inside functions count, those by
`importlib.import_module` and `_later.load` too; imports that only type checkers see do not. A
second table names the files that lend names of a layer above, loaded when a caller asks for one.
"""

from __future__ import annotations

import ast
import graphlib
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
    """The table: the layer of a file, and the layers that it may use."""

    def __init__(self, text: str) -> None:
        section = text.split("\n## Layers\n", 1)[1].split("\n## ", 1)[0]
        self.uses: dict[str, set[str]] = {}
        self._places: list[tuple[str, str]] = []
        self.lent: set[tuple[str, str]] = set()
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| `") and len(cells) == 2:
                lender = cells[0].split("`")[1]
                self.lent.update((lender, name) for name in re.findall(r"`([^`]+)`", cells[1]))
            if not line.startswith("|") or len(cells) != 3 or cells[0] in ("layer", "---"):
                continue
            name = cells[0]
            self.uses[name] = {used.strip() for used in cells[2].split(",") if used.strip()}
            self._places += [(place, name) for place in re.findall(r"`([^`]+)`", cells[1])]
        self._places.sort(key=lambda entry: -len(entry[0]))
        for name, used in self.uses.items():
            for other in used - self.uses.keys():
                sys.exit(f"{TABLE.name}: layer {name} uses {other}, which is not a layer")
        self._close()

    def _close(self) -> None:
        """The layers that a layer may use, and theirs."""
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
            for other in node.orelse:
                yield other
                yield from _runtime_nodes(other)
            continue
        yield node
        yield from _runtime_nodes(node)


def imports(path: Path) -> Iterator[str]:
    roots = [ROOT / folder for folder in PACKAGES.values() if ROOT / folder in path.parents]
    package = list(path.relative_to(*roots or [path.parent]).parts[:-1])
    tree = ast.parse(path.read_text())
    for node in _runtime_nodes(tree):
        names: list[list[str]] = []
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.Call) and node.args:
            names = [name.split(".") for name in loaded(node, package, tree)]
        for name in names:
            found = find_module(name)
            if found is not None and found != path:
                yield found.relative_to(ROOT).as_posix()


def loaded(call: ast.Call, package: list[str], tree: ast.AST) -> Iterator[str]:
    """The modules that a call may import. A part of the name that is known only when the call runs
    may be any text of the file."""
    function = ast.unparse(call.func)
    if function != "_later.load" and function.split(".")[-1] not in ("import_module", "__import__"):
        return
    texts = [str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    name = call.args[0]
    names = [f"{package[0]}." if function == "_later.load" else ""]
    for part in name.values if isinstance(name, ast.JoinedStr) else [name]:
        if isinstance(part, ast.Constant):
            options = [str(part.value)]
        elif isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "__package__":
            options = [".".join(package)]
        else:
            options = texts
        names = [start + option for start in names for option in options]
    for each in names:
        full = ".".join(package) + each if each.startswith(".") else each
        if module_file(full.split(".")) is not None:
            yield full


def module_file(name: list[str]) -> Path | None:
    """The file of a module of these packages; None for others'."""
    if name[0] not in PACKAGES or not all(part.isidentifier() for part in name):
        return None
    path = (ROOT / PACKAGES[name[0]]).joinpath(*name)
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def find_module(name: list[str]) -> Path | None:
    """The file of a module, or of the module that holds a name; None for extensions."""
    if EXTENSIONS.intersection(name):
        return None
    return module_file(name) or (module_file(name[:-1]) if len(name) > 1 else None)


def main() -> None:
    layers = Layers(TABLE.read_text())
    faults: list[str] = []
    graph: dict[str, list[str]] = {}
    lent_in_use: set[tuple[str, str]] = set()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".cpp", ".hpp", ".cu", ".cuh", ".py"}:
                continue
            name = path.relative_to(ROOT).as_posix()
            layer = layers.of(name)
            if layer is None:
                faults.append(f"{name} belongs to no layer")
                continue
            uses = dict.fromkeys(imports(path) if path.suffix == ".py" else includes(path))
            lent = {other for other in uses if (name, other) in layers.lent}
            lent_in_use |= {(name, other) for other in lent}
            graph[name] = [other for other in uses if other not in lent]
            for other in graph[name]:
                used = layers.of(other)
                if used is not None and used != layer and used not in layers.uses[layer]:
                    faults.append(f"{name} ({layer}) uses {other} ({used}), which lies above it")
    for name, other in sorted(layers.lent - lent_in_use):
        faults.append(f"{name} lends nothing of {other}, which the table says")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        faults.append("files use each other in a circle: " + " -> ".join(error.args[1][::-1]))
    if faults:
        sys.exit("\n".join(faults) + f"\nThe layers are in docs/{TABLE.name}, section Layers.")


if __name__ == "__main__":
    main()
