# SPDX-License-Identifier: Apache-2.0
"""Checks of the sources, and of what names them, that no compiler and no other linter makes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = {".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".md", ".yml"}
MOST_LINES = 600  # CONTRIBUTING.md asks for about 500

NAMESPACE = re.compile(r"(?:inline )?namespace ([A-Za-z0-9_:]+) \{")
END = re.compile(r"\}  // namespace ([A-Za-z0-9_:]+)")
UNSTABLE = re.compile(r"\bPy(?:Sequence_Fast|\w+_(?:GET|SET)_(?:ITEM|SIZE))\w*")
TYPE = re.compile(r"(?:struct|class|enum class) ([A-Za-z0-9_]+)(?: final)?(?: : .*)? \{")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = (ROOT / name for name in listed.stdout.decode().split("\0"))
    return [path for path in paths if path.suffix in WRITTEN and path.is_file()]


def lengths() -> Iterator[str]:
    for path in tracked():
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MOST_LINES:
            yield f"{path.relative_to(ROOT)} has {lines} lines, more than {MOST_LINES}"


def types() -> Iterator[str]:
    """Two types of one name, in headers that no source includes together, are one to the linker,
    and each runs the other's destructor."""
    where: dict[str, list[str]] = defaultdict(list)
    for header in sorted([*(ROOT / "src").rglob("*.hpp"), *(ROOT / "src").rglob("*.cuh")]):
        open_now: list[str] = []
        for line in header.read_text(encoding="utf-8").splitlines():
            if found := NAMESPACE.match(line):
                open_now.append(found[1])
            elif END.match(line):
                open_now.pop()
            elif open_now and (found := TYPE.match(line)):
                name = "::".join((*open_now, found[1]))
                where[name].append(str(header.relative_to(ROOT)))
    if "src/message/message.hpp" not in where["warpcipher::Message"]:
        yield "the types of src are not found: is it formatted as before?"
    for name, files in where.items():
        if len(files) > 1:
            yield f"{name} is in {' and in '.join(files)}"


def bindings() -> Iterator[str]:
    """bindings/gil.hpp says why nanobind's own way to the interpreter's lock is not taken. From
    Python 3.12 on a wheel uses the stable ABI, which an older Python does not check."""
    for path in [*(ROOT / "bindings").rglob("*pp"), *(ROOT / "measure/bindings").rglob("*pp")]:
        text = path.read_text(encoding="utf-8")
        if "gil_scoped" in text:
            yield f"{path.relative_to(ROOT)} takes the interpreter's lock in nanobind's way"
        for name in UNSTABLE.findall(text):
            yield f"{path.relative_to(ROOT)} uses {name}, which is not in the stable ABI"


def private_names() -> Iterator[str]:
    """Private names that a module takes from another; modules may be private to the package."""
    for path in [*(ROOT / "python").rglob("*.py"), *(ROOT / "measure/python").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            root = ROOT / ("python" if path.is_relative_to(ROOT / "python") else "measure/python")
            base = path.parents[node.level - 1] if node.level else root
            source = base.joinpath(*(node.module or "").split("."))
            for name in (alias.name for alias in node.names):
                is_module = any(source.glob(f"{name}.*")) or (source / name).is_dir()
                is_private = name.startswith("_") and not name.startswith("__")
                if is_private and not is_module and name not in ("_native", "_timing", "_lab"):
                    yield f"{path.relative_to(ROOT)} takes {name} of {node.module or base.name}"


def workflows() -> Iterator[str]:
    """They call programs of this repository, and build with each release of the compiler that can
    be chosen."""
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        for tool in re.findall(r"(?:- run:|&&) ((?:tools|\.ci)/[\w.]+)", text):
            if not (ROOT / tool).is_file() or not (ROOT / tool).stat().st_mode & 0o100:
                yield f"{path.name}: {tool} cannot be run"
        for target in re.findall(r"\bmake ([a-z-]+)", text):
            if target not in targets:
                yield f"{path.name}: the Makefile has no {target}"
        for called in re.findall(r"uses: \$/(\S+)", text):
            if not (ROOT / called).is_file():
                yield f"{path.name}: no file {called}"
    used = set(re.findall(r'cuda: \[?"([\d.]+)"', read(".github/workflows/ci.yml")))
    backend = read("build_backend/warpcipher_build.py")
    if used != (known := set(re.findall(r'^    "([\d.]+)": \[', backend, re.MULTILINE))):
        yield f"ci.yml builds with the compilers {sorted(used)}, the backend has {sorted(known)}"


def versions() -> Iterator[str]:
    """CMakeLists.txt has the version; the C header says the same, and the changelog no later."""
    found = re.search(r"project\(warpcipher VERSION (\d+)\.(\d+)\.(\d+)", read("CMakeLists.txt"))
    version = found.groups() if found else ()
    header = read("include/warpcipher/core.h")
    said = re.findall(r"^#define WC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.MULTILINE)
    if tuple(said) != version or f'#define WC_VERSION "{".".join(version)}"\n' not in header:
        yield f"include/warpcipher/core.h has another version than {'.'.join(version)}"
    headings = re.findall(r"^## \[(.+?)\](.*)$", read("CHANGELOG.md"), re.MULTILINE)
    numbers = [tuple(map(int, name.split("."))) for name, _ in headings[1:]]
    in_order = numbers == sorted(numbers, reverse=True)
    dated = all(re.fullmatch(r" - \d{4}-\d{2}-\d{2}", rest) for _, rest in headings[1:])
    too_late = any(number > tuple(map(int, version)) for number in numbers)
    if headings[:1] != [("Unreleased", "")] or not in_order or not dated or too_late:
        yield "CHANGELOG.md: [Unreleased] first, then [X.Y.Z] - YYYY-MM-DD, the newest first"


def address() -> Iterator[str]:
    """pyproject.toml has the address of the repository; few files repeat it."""
    urls = read("pyproject.toml").partition("[project.urls]")[2].partition("[")[0]
    home, *others = re.findall(r'= "(.*)"', urls)
    places = {"packaging/conda-forge/recipe.yaml", "share/warpcipher.1"}
    for url in others:
        if not url.startswith(f"{home}/"):
            yield f"pyproject.toml: {url} is not below {home}"
    for name in places:
        if set(re.findall(r"(?:homepage: |(?=https://github))(\S+)", read(name))) != {home}:
            yield f"{name}: another address than {home}"
    command = ["git", "grep", "-lF", home.removeprefix("https://")]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in set(listed.stdout.split()) - places - {"pyproject.toml"}:
        yield f"{name} repeats the address of the repository"


def main() -> None:
    checks = (lengths, types, bindings, private_names, workflows, versions, address)
    if faults := [fault for check in checks for fault in check()]:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
