# SPDX-License-Identifier: Apache-2.0
"""The driver of a job over the files of a folder on a Ray cluster: run by test_nodes.py, in a
process of its own. Prints the names that are done, and whether the key was in what tasks carry."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ray.cloudpickle
import warpcipher as wc
from warpcipher import formats, keys
from warpcipher.cluster import objects
from warpcipher.fleet.filters import Filter
from warpcipher.fleet.job import Job
from warpcipher.fleet.journal import Journal
from warpcipher.fleet.places import Items, Target
from warpcipher.fleet.work import Work
from warpcipher.formats.sealed import Sealed


def main() -> None:
    folder = Path(sys.argv[1])
    objects.OBJECTS = 5
    key, source = (folder / "key").read_bytes(), keys.from_file(folder / "key")
    chosen, options = formats.get("cobblestone-256"), formats.Options()
    items = Items({"": str(folder / "in")}, frozenset({""}))
    work = Work(
        "encrypt",
        items,
        Target(str(folder / "out")),
        chosen.name,
        chosen.extension,
        options,
        True,
    )
    sealed = Sealed(key, chosen, options)
    done: list[str] = []

    def said(state: str, about: Any) -> None:
        if about.error is not None:
            raise about.error
        done.append(about.item.name)

    runner = objects.Nodes("auto", work, source, 2)
    task = objects.ObjectTask(work, objects.portable_keys(source), 2, 0, wc.__version__)
    carried = ray.cloudpickle.dumps(task)
    Job(work, sealed, Journal(None, sealed, "job"), Filter(), True, said).run(runner, print)
    print(json.dumps({"done": done, "leaks": key in carried or key.hex().encode() in carried}))


if __name__ == "__main__":
    main()
