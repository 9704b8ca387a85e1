# SPDX-License-Identifier: Apache-2.0
"""What no compiler says of the sources."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
BINDINGS = SOURCES.parent / "bindings"
NAMESPACE = re.compile(r"(?:inline )?namespace ([A-Za-z0-9_:]+) \{")
END = re.compile(r"\}  // namespace ([A-Za-z0-9_:]+)")
TYPE = re.compile(r"(?:struct|class|enum class) ([A-Za-z0-9_]+)(?: final)?(?: : .*)? \{")


def types_of(header: Path) -> list[str]:
    """The qualified names of the types that a header defines, as clang-format lays them out."""
    names: list[str] = []
    open_now: list[str] = []
    for line in header.read_text().splitlines():
        if found := NAMESPACE.match(line):
            open_now.append(found[1])
        elif END.match(line):
            open_now.pop()
        elif open_now and (found := TYPE.match(line)):
            names.append("::".join((*open_now, found[1])))
    return names


def test_no_two_types_have_one_name() -> None:
    """In headers that no source includes together they are one to the linker, and each runs the
    other's destructor."""
    where: dict[str, list[str]] = defaultdict(list)
    headers = [path for end in ("*.hpp", "*.cuh") for path in sorted(SOURCES.rglob(end))]
    for header in headers:
        for name in types_of(header):
            where[name].append(str(header.relative_to(SOURCES)))
    assert len(where) > 100  # they are read at all
    assert where["warpcipher::Message"] == ["message/message.hpp"]
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_bindings_take_the_interpreter_lock_in_one_way() -> None:
    """bindings/gil.hpp says why not in nanobind's."""
    sources = [*BINDINGS.rglob("*.cpp"), *BINDINGS.rglob("*.hpp")]
    assert any("GilReleased" in path.read_text() for path in sources)  # they are read at all
    assert [path.name for path in sources if "gil_scoped" in path.read_text()] == []


def test_no_written_file_is_far_over_500_lines() -> None:
    """CONTRIBUTING.md asks for about that."""
    root = SOURCES.parent
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    kinds = {".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".md", ".yml"}
    paths = [root / name for name in listed.stdout.decode().split("\0")]
    texts = {path: path.read_text() for path in paths if path.suffix in kinds and path.is_file()}
    assert SOURCES / "message/message.hpp" in texts  # they are read at all
    long = {path for path, text in texts.items() if text.count("\n") > 600}
    assert {str(path.relative_to(root)) for path in long} == set()
