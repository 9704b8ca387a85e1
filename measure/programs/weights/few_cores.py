# SPDX-License-Identifier: Apache-2.0
"""Loads an encrypted model to a GPU in a process that has few cores: load.py starts it. The library
asks for the cores of the process when it is imported, so they are taken away before.

few_cores.py FILE DEVICE CORES REPETITIONS; the key comes in on standard input, and the seconds of
each load go out."""

from __future__ import annotations

import os
import sys
import time


def main() -> None:
    path, device, cores, repetitions = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    import torch
    from warpcipher import weights

    key = sys.stdin.buffer.read()
    for turn in range(int(repetitions) + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        tensors = weights.load_file(path, key, device)
        torch.cuda.synchronize()
        taken = time.perf_counter() - start
        del tensors
        if turn != 0:
            print(taken)


if __name__ == "__main__":
    main()
