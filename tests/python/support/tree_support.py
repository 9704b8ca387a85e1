# SPDX-License-Identifier: Apache-2.0
"""An encrypted tree, for tests of the command."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cli_support import make_key, run

FILES = {"a": b"1", "b": b"2" * 50_000, "sub/a": b"3", "sub/deep/c": b"", "tä\n": b"5"}


def make_tree(tmp_path: Path) -> Path:
    """A folder with a key, a tree t of FILES, and t.cobblestone."""
    make_key(tmp_path)
    for name, content in FILES.items():
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(content)
    (tmp_path / "t/empty").mkdir()
    (tmp_path / "t/link").symlink_to("sub/a")
    os.utime(tmp_path / "t/a", ns=(10**18, 10**18 + 123456789))
    (tmp_path / "t/sub").chmod(0o750)
    os.utime(tmp_path / "t/sub", ns=(10**18, 10**18 + 5))
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    return tmp_path


def sealed(tree: Path, name: str = "") -> Path:
    return tree / "t.cobblestone" / (name + ".cobblestone" if name else "")


def content_of(root: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Mode, time and content of all below a folder; links have neither mode nor time here."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(root))] = 0, 0, str(path.readlink())
            continue
        content = path.read_bytes() if path.is_file() else ""
        name = str(path.relative_to(root))
        found[name] = stat.S_IMODE(status.st_mode), status.st_mtime_ns, content
    return found
