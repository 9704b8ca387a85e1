# SPDX-License-Identifier: Apache-2.0
"""The rates that `make demo` shows: files, memory, and a GPU if there is one.

A few runs each, to see where this machine stands against other tools: `warpcipher bench` without
--quick measures with care.
"""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import warpcipher as wc
from warpcipher_measure import bench, peers

Row = tuple[str, float]
MESSAGE = 64 << 20


def table(title: str, rows: list[Row]) -> None:
    """Prints rates in GB/s with bars, relative to the best."""
    print(f"\n   {title}")
    best = max(rate for _, rate in rows)
    for name, rate in rows:
        bar = "#" * max(1, round(24 * rate / best))
        print(f"     {name:44} {rate / 1e9:8.3f} GB/s  {bar}", flush=True)


def show_files(folder: Path) -> None:
    """File to file, whole programs on input.tar in `folder`: the better of two runs each."""
    source, target = folder / "input.tar", folder / "copy"
    size = source.stat().st_size
    command = [sys.executable, "-m", "warpcipher"]
    options = ["--force", "--key", "my.key", "-o", target.name]
    sealed = source.name + ".cobblestone"
    commands = {
        "warpcipher encrypt (AES-256-GCM)": [*command, "encrypt", *options, source.name],
        "warpcipher decrypt (AES-256-GCM)": [*command, "decrypt", *options, sealed],
    }
    if shutil.which("openssl"):
        secret = ["-K", secrets.token_hex(32), "-iv", secrets.token_hex(16)]
        commands["openssl enc -aes-256-ctr (not authenticated)"] = [
            *("openssl", "enc", "-aes-256-ctr", *secret),
            *("-in", source.name, "-out", target.name),
        ]
    commands["cp (no cipher at all)"] = ["cp", source.name, target.name]
    rows: list[Row] = []
    for name, line in commands.items():
        best = 0.0
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(line, cwd=folder, check=True)
            best = max(best, size / (time.perf_counter() - start))
            target.unlink()
        rows.append((name, best))
    table(f"File to file, {size / 1e6:.0f} MB, whole programs", rows)


def show_memory() -> None:
    """One AES-256-GCM message in host memory: each engine, and other libraries."""
    peer = "pyca" if importlib.util.find_spec("cryptography") else None
    rows = measured("aes-256-gcm", residences=("pageable",), sizes=(MESSAGE,), against=peer)
    if shutil.which("openssl"):
        path = peers.openssl_program()
        version = peers.openssl_version(path)
        found = peers.measure_openssl(path, version, "aes-256-gcm", "encrypt", 16384, 1)
        if not isinstance(found, str):
            name = f"openssl speed, 16 KiB, {found.processes} processes"
            rows.append((name, found.gigabytes_per_second.median * 1e9))
    table(f"AES-256-GCM in host memory, one message of {MESSAGE >> 20} MiB", rows)


def show_device() -> None:
    """Data that stays in GPU memory: where a GPU earns its place."""
    if not any(engine.name == "cuda" and engine.usable for engine in wc.engines()):
        print("\n   No GPU that the cuda engine can use: device figures are not shown.")
        return
    names = ("aes-128-ctr", "aes-256-ctr", "aes-256-gcm")
    place: dict[str, Any] = {"engines": ("cuda",), "residences": ("device",), "sizes": (1 << 30,)}
    try:
        table("Data resident in GPU memory, 1 GiB", measured(*names, **place))
    except (MemoryError, wc.EngineError) as error:
        print(f"\n   Device figures are not shown: {error}")


def measured(*algorithms: str, **settings: Any) -> list[Row]:
    """The rates of a quick `warpcipher bench`, and its peers' into a buffer."""
    report = bench.run(bench.Settings(algorithms=algorithms, quick=True, **settings))
    rows = [
        (f"warpcipher, {row.algorithm}, engine {row.engine}", row.gigabytes_per_second.median * 1e9)
        for row in report.rows
    ]
    return rows + [
        (peer.version.partition(",")[0], peer.gigabytes_per_second.median * 1e9)
        for peer in report.peers
        if "into" in peer.command
    ]
