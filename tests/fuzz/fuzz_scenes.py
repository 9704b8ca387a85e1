# SPDX-License-Identifier: Apache-2.0
"""Random commands that write files, in folders made for them, and what may be there afterwards."""

from __future__ import annotations

import functools
import io
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import warpcipher as wc
from cli_support import names, run, temporaries
from warpcipher import formats
from warpcipher.formats.trees import JOURNAL, NAME, context_of_file, context_of_manifest

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty_command.py"))]
SUFFIX = ".cobblestone"
MANIFEST = f"out/{NAME}"
KEY = bytes(range(32))
OLD = b"what was there before"


@dataclass
class Scene:
    """A command line, and the names that it makes: each with a check that it is whole."""

    folder: Path
    arguments: list[str] = field(default_factory=list)
    results: dict[str, Callable[[bytes], bool]] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(content)

    def note(self) -> Scene:
        """All that is there now is there before the command."""
        self.before = contents(self.folder)
        return self

    def run(self, fault: dict[str, object]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*FAULTY, json.dumps(fault), *self.arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )

    def check(self, *, finished: bool, leftover: bool = False) -> None:
        """Every name stands for what it did before or for a whole output. finished: all outputs
        are there; leftover: a temporary may be, too."""
        after = contents(self.folder)
        for path in temporaries(self.folder):
            assert leftover, f"{path.name} was left"
            assert path.stat().st_mode & 0o777 == 0o600
            del after[str(path.relative_to(self.folder))]
        assert self.before.keys() <= after.keys(), "something is gone"
        if not finished:  # for a run that goes on
            after.pop(f"out/{JOURNAL}", None)
        for name, content in after.items():
            if name in self.results and (finished or content != self.before.get(name)):
                assert self.results[name](content), f"{name} is not whole"
            else:
                assert content == self.before.get(name), f"{name} was not to be written"
        assert not finished or self.results.keys() <= after.keys(), "an output is missing"

    def check_folders(self) -> None:
        """No folder that the command made is empty."""
        for path in self.folder.rglob("*"):
            known = any(
                name.startswith(f"{path.relative_to(self.folder)}/") for name in self.before
            )
            assert not path.is_dir() or known or any(path.iterdir()), f"{path} is empty"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes() for name in names(folder) if (folder / name).is_file()
    }


def seal(text: bytes) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(text), out, KEY)
    return out.getvalue()


def opens_to(text: bytes | None, context: bytes = b"") -> Callable[[bytes], bool]:
    """text: None for any."""

    def check(sealed: bytes) -> bool:
        out = io.BytesIO()
        try:
            options = formats.Options(context=context)
            formats.decrypt_stream(io.BytesIO(sealed), out, KEY, options=options)
        except (wc.InvalidTag, formats.FormatError):
            return False
        return text is None or out.getvalue() == text

    return check


def is_keyset(content: bytes) -> bool:
    try:
        formats.Keyset.from_json(content.decode())
    except ValueError:
        return False
    return True


def any_text(choose: random.Random) -> bytes:
    return choose.randbytes(choose.choice((0, 1, choose.randrange(40_000), 200_000)))


def encrypt_one(scene: Scene, choose: random.Random) -> None:
    text = any_text(choose)
    scene.add("a", text)
    scene.arguments = ["encrypt", "--key", "key", "a"]
    scene.results = {f"a{SUFFIX}": opens_to(text)}


def decrypt_one(scene: Scene, choose: random.Random) -> None:
    text = any_text(choose)
    scene.add(f"a{SUFFIX}", seal(text))
    scene.arguments = ["decrypt", "--key", "key", f"a{SUFFIX}"]
    scene.results = {"a": lambda content: content == text}


def encrypt_list(scene: Scene, choose: random.Random) -> None:
    scene.arguments = ["encrypt", "--key", "key", "-o", "out"]
    for name in ("a", "b", "c"):
        text = any_text(choose)
        scene.add(name, text)
        scene.arguments.append(name)
        # Of several inputs a tree is made, whose files are bound to their names.
        scene.results[f"out/{name}{SUFFIX}"] = opens_to(text, context_of_file(b"", name))
    scene.results[MANIFEST] = opens_to(None, context_of_manifest(b"", "manifest"))


def decrypt_tree(scene: Scene, choose: random.Random) -> None:
    for name in ("a", "x/b", "x/y/c", "z/d"):
        text = any_text(choose)
        scene.add(f"plain/{name}", text)
        scene.results[f"out/{name}"] = functools.partial(bytes.__eq__, text)
    run("encrypt", "--key", "key", "plain", "-o", "tree", cwd=scene.folder)
    shutil.rmtree(scene.folder / "plain")
    scene.arguments = ["decrypt", "--key", "key", "tree", "-o", "out"]


def keygen(scene: Scene, choose: random.Random) -> None:
    del choose
    scene.arguments = ["keygen", "made"]
    scene.results = {"made": lambda content: len(content) == 32}


def keygen_tink(scene: Scene, choose: random.Random) -> None:
    del choose
    scene.arguments = ["keygen", "--format", "tink", "made"]
    scene.results = {"made": is_keyset}


KINDS = (encrypt_one, decrypt_one, encrypt_list, decrypt_tree, keygen, keygen_tink)


def make_scene(choose: random.Random, folder: Path) -> tuple[str, Scene]:
    """A command of any kind, and the kind's name; some replace outputs that are there."""
    kind = choose.choice(KINDS)
    scene = Scene(folder)
    scene.add("key", KEY)
    kind(scene, choose)
    if choose.random() < 0.3:
        scene.arguments[1:1] = ["--force"]
        for name in scene.results:
            if choose.random() < 0.5 and name != MANIFEST:
                scene.add(name, OLD)
    if choose.random() < 0.2:
        scene.arguments[1:1] = ["--json"]
    return kind.__name__, scene.note()


@functools.cache
def places(kind: str, parent: Path) -> tuple[int, int]:
    """About how many lines and calls a command of this kind has, where a fault may come."""
    folder = parent / kind
    folder.mkdir()
    scene = Scene(folder)
    scene.add("key", KEY)
    globals()[kind](scene, random.Random(kind))
    count = parent / f"{kind}.count"
    done = scene.run({"count": str(count)})
    assert done.returncode == 0, done.stderr.decode()
    lines, calls = json.loads(count.read_text())
    return lines, calls
