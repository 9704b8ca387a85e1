# SPDX-License-Identifier: Apache-2.0
"""Shared by long runs: how long they go on, threads whose faults count, and what is in use."""

from __future__ import annotations

import gc
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

SECONDS = float(os.environ.get("WARPCIPHER_TEST_SOAK_SECONDS", "2"))


def run(works: Iterable[Callable[[float], object]], seconds: float = SECONDS) -> None:
    """Each work in a thread of its own, with the time.monotonic() at which it is to end; raises
    the first fault."""
    faults: list[BaseException] = []
    end = time.monotonic() + seconds

    def guarded(work: Callable[[float], object]) -> None:
        try:
            work(end)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=guarded, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    if faults:
        raise faults[0]


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def has_torch_gpu() -> bool:
    try:
        return bool(importlib.import_module("torch").cuda.is_available())
    except ImportError:
        return False


def used_device_memory() -> int:
    """Bytes in use on the first GPU, PyTorch's cache left out; 0 where PyTorch sees none."""
    if not has_torch_gpu():
        return 0
    torch = importlib.import_module("torch")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return int(total - free)
