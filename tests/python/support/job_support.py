# SPDX-License-Identifier: Apache-2.0
"""Jobs over the objects of a `StepStore`: commands on them, and what is there afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from step_store import StepStore
from warpcipher.cli.app import cli

NAMES = ["a0", "a-b", "a.b", "a/1", "a/2.jpg", "b/c/d.jpg", "ä", "z"]


def invoke(*arguments: str, expect: int = 0) -> str:
    """Runs a command in this process; returns what it printed."""
    done = CliRunner().invoke(cli, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == expect, done.output
    return done.output


def do(*arguments: str, expect: int = 0) -> str:
    """The same with --key key."""
    return invoke(*arguments, "--key", "key", expect=expect)


def encrypt(*more: str, expect: int = 0) -> str:
    return do("encrypt", "step://in", "-o", "step://out", *more, expect=expect)


def plain(store: StepStore, prefix: str = "in/") -> dict[str, bytes]:
    return {
        path.removeprefix(prefix): data
        for path, (data, _, _) in store.objects.items()
        if path.startswith(prefix) and "/.warpcipher-" not in path
    }


def reported(path: str = "report") -> dict[str, Any]:
    """The report's lines, by input. Each has one."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert len({line["input"] for line in lines}) == len(lines)
    return {line["input"].removeprefix("step://in/"): line for line in lines}


def decrypted(store: StepStore, source: str = "step://out") -> dict[str, bytes]:
    do("decrypt", source, "-o", "step://back", "--force")
    found = plain(store, "back/")
    for path in list(store.objects):
        if path.startswith("back/"):
            del store.objects[path]
    return found


def damage(store: StepStore) -> None:
    data = bytearray(store.objects["out/z.cobblestone"][0])
    data[1000] ^= 1
    store.put("out/z.cobblestone", bytes(data))
