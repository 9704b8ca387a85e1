# SPDX-License-Identifier: Apache-2.0
"""The rates that `make demo` shows: files, memory, and a GPU where there is one.

A few runs each, to see where this machine stands against other tools: measure/ measures with care.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import warpcipher as wc

Row = tuple[str, float]
MESSAGE = 64 << 20
SHORT_MESSAGE = 64 << 10
"""For the reference engine, which is slow on purpose."""


def table(title: str, rows: list[Row]) -> None:
    """Prints rates in GB/s with bars, relative to the best."""
    print(f"\n   {title}")
    best = max(rate for _, rate in rows)
    for name, rate in rows:
        bar = "#" * max(1, round(24 * rate / best))
        print(f"     {name:44} {rate / 1e9:8.3f} GB/s  {bar}", flush=True)


def rate_of(work: Callable[[], object], size: int, *, least: float = 0.3) -> float:
    """Bytes a second: the best of at least three runs, and at least `least` seconds of them."""
    best = 0.0
    runs = 0
    end = time.perf_counter() + least
    while runs < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = max(best, size / (time.perf_counter() - start))
        runs += 1
    return best


def show_files(folder: Path) -> None:
    """File to file, whole programs on input.tar in `folder`: the better of two runs each."""
    source, target = folder / "input.tar", folder / "copy"
    size = source.stat().st_size
    command = [sys.executable, "-m", "warpcipher.cli"]
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
    """One AES-256-GCM message in host memory, on each engine, and other libraries."""
    key, nonce = secrets.token_bytes(32), secrets.token_bytes(12)
    data, out = bytearray(MESSAGE), bytearray(MESSAGE + 16)
    rows: list[Row] = []
    for engine in wc.engines():
        if not engine.usable:
            continue
        size = SHORT_MESSAGE if engine.name == "reference" else MESSAGE
        view = memoryview(data)[:size], memoryview(out)[: size + 16]
        aead = wc.aead.AESGCM(key, engine=engine.name)
        rate = rate_of(lambda a=aead, v=view: a.encrypt_into(nonce, v[0], None, v[1]), size)
        note = f", {size >> 10} KiB" if size != MESSAGE else ""
        rows.append((f"warpcipher, engine {engine.name}{note}", rate))
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        pass
    else:
        peer = AESGCM(key)
        rate = rate_of(lambda: peer.encrypt_into(nonce, data, None, out), MESSAGE)
        rows.append(("pyca/cryptography AESGCM", rate))
    if shutil.which("openssl"):
        rows.append(("openssl speed, 16 KiB, one core", openssl_speed(1)))
        cores = len(os.sched_getaffinity(0))
        if cores > 1:
            rows.append((f"openssl speed, 16 KiB, {cores} processes", openssl_speed(cores)))
    table(f"AES-256-GCM in host memory, one message of {MESSAGE >> 20} MiB", rows)


def openssl_speed(processes: int) -> float:
    """Bytes a second of `openssl speed -evp aes-256-gcm`."""
    command = ["openssl", "speed", "-mr", "-seconds", "1", "-bytes", "16384"]
    if processes > 1:
        command += ["-multi", str(processes)]
    done = subprocess.run(
        [*command, "-evp", "aes-256-gcm"], capture_output=True, text=True, check=True
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("+F:"))
    return float(line.split(":")[-1])


def show_device() -> None:
    """Data that stays in GPU memory: where a GPU earns its place."""
    if not any(engine.name == "cuda" and engine.usable for engine in wc.engines()):
        print("\n   No GPU that the cuda engine can use: device figures are not shown.")
        return
    driver = ctypes.CDLL("libcuda.so.1")
    size = 1 << 30
    try:
        data = wc.DeviceArray(size, 0, 0)
        sealed = wc.DeviceArray(size + 16, 0, 0)
    except (MemoryError, wc.EngineError) as error:
        print(f"\n   Device figures are not shown: {error}")
        return
    rows: list[Row] = []
    for bits in (128, 256):
        ctr = wc.Cipher(f"aes-{bits}-ctr", secrets.token_bytes(bits // 8), engine="cuda")
        iv = secrets.token_bytes(16)

        def run(cipher: wc.Cipher = ctr, iv: bytes = iv) -> None:
            for _ in range(10):
                cipher.encrypt(data, iv=iv, out=data)
            if driver.cuCtxSynchronize():
                raise wc.EngineError("the device failed")

        rows.append((f"aes-{bits}-ctr, in place", rate_of(run, 10 * size)))
    aead = wc.aead.AESGCM(secrets.token_bytes(32), engine="cuda")
    nonce = secrets.token_bytes(12)
    aead.encrypt_into(nonce, data, None, sealed)
    # Decryption waits for the tag's verdict, so that it is timed whole.
    rows.append(
        (
            "aes-256-gcm, decrypted and authenticated",
            rate_of(lambda: aead.decrypt_into(nonce, sealed, None, data), size),
        )
    )
    table(f"Data resident in GPU memory, {size >> 30} GiB", rows)
