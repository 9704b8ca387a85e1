# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster of this machine that reads encrypted tables: run by test_parquet_ray.py, in a
process of its own. Prints what it saw as JSON."""

from __future__ import annotations

import functools
import json
import os
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import ray
import ray.cloudpickle
import ray.data
import ray_keys
from warpcipher import keys, parquet

CONTROL = b"a control that the search must find " + os.urandom(8)


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ[ray_keys.FOLDER] = str(folder)
    ray.init(
        num_cpus=2,
        object_store_memory=80 << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    key = bytes.fromhex((folder / "key").read_text())
    source = keys.from_file(folder / "key")
    table = folder / "table"
    seen: dict[str, Any] = {}

    found = parquet.read_ray(table, source, ["s", "a"], tasks=3)
    rows = found.take_all()
    seen["columns"] = found.columns()
    seen["rows"] = sorted(row["a"] for row in rows)

    (folder / "die").touch()
    seen["after death"] = sorted(
        row["a"] for row in parquet.read_ray(table, ray_keys.find_key, ["a"], tasks=2).take_all()
    )
    seen["died"] = not (folder / "die").exists()

    given: list[Any] = []
    read_datasource = ray.data.read_datasource

    @functools.wraps(read_datasource)  # whose parameters are looked at
    def note(*args: Any, **options: Any) -> None:
        given.append((args, options))

    ray.data.read_datasource = note
    parquet.read_ray(table, {b"": source, "a": ray_keys.find_key})
    resources = ray.cluster_resources
    ray.cluster_resources = lambda: {"CPU": 2, "GPU": 1}
    parquet.read_ray(table, source, cpus=2, concurrency=5)
    parquet.read_ray(table, source, gpus=1)
    ray.cluster_resources, ray.data.read_datasource = resources, read_datasource
    seen["declared"] = [
        {name: options[name] for name in ("num_cpus", "num_gpus", "concurrency")}
        for _, options in given
    ]
    tasks = [task for (datasource,), _ in given for task in datasource.get_read_tasks(4)]
    seen["tasks"] = len(tasks)
    seen["paths"] = [list(task.metadata.input_files) for task in tasks[:4]]
    (made,) = given[0][0]
    seen["sizes"] = [
        made.estimate_inmemory_data_size(),
        sum(t.metadata.size_bytes for t in tasks[:4]),
    ]

    kept = ray.put(CONTROL)
    places = {
        "tasks": ray.cloudpickle.dumps(tasks),
        **{str(path): path.read_bytes() for path in logs()},
        **{f"memory of {name}": memory(process) for name, process in processes()},
    }
    forms = [key, key.hex().encode(), key.hex().upper().encode(), b64encode(key)]
    seen["places"] = sorted(places)
    seen["leaks"] = [name for name, data in places.items() if any(form in data for form in forms)]
    seen["control"] = [name for name, data in places.items() if CONTROL in data]
    del kept

    (folder / "key").write_text(bytes(16).hex())
    try:
        parquet.read_ray(table, source, tasks=1).take_all()
    except Exception as error:
        seen["error"] = f"{error}"
    print(json.dumps(seen))


def logs() -> list[Path]:
    session = Path(ray._private.worker.global_worker.node.get_logs_dir_path())
    return [path for path in session.rglob("*") if path.is_file()]


def processes() -> list[tuple[str, int]]:
    """The raylet, whose memory holds the object store, and the cluster's control store."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "comm").read_text().strip()
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if name in ("raylet", "gcs_server") and int(parent) == os.getpid():
            found.append((name, int(folder.name)))
    return found


def memory(process: int) -> bytes:
    """The memory that a process may write to."""
    parts = []
    folder = Path(f"/proc/{process}")
    with (folder / "maps").open() as maps, (folder / "mem").open("rb", 0) as content:
        for line in maps:
            edges, rights, *_ = line.split()
            start, end = (int(edge, 16) for edge in edges.split("-"))
            if not rights.startswith("rw") or end - start > 512 << 20:
                continue
            try:
                content.seek(start)
                parts.append(content.read(end - start))
            except OSError:
                continue
    return b"".join(parts)


if __name__ == "__main__":
    main()
