# SPDX-License-Identifier: Apache-2.0
"""Batches of short messages in GPU memory, with one key and with a key each: as columns there
(keys, too), as columns on the host, and with --objects as messages of a `Batch`. GB/s from the
call until the device is done. Without CuPy: in host memory.

Without an algorithm: the cases of docs/performance.md and docs/design/batches.md. For the kernels'
time run one under a profiler: `ncu --metrics gpu__time_duration.sum`.
"""

from __future__ import annotations

import os
import time
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import warpcipher as wc
from warpcipher_measure.program import Actions, Program, by_turns

try:
    import cupy as arrays

    ENGINE, wait = "cuda", arrays.cuda.Device().synchronize
except ImportError:
    arrays, ENGINE, wait = np, "cpu", lambda: None

MIB = 1 << 20
CASES = (
    ("aes-128-ctr", MIB, 256),
    ("aes-128-ctr", 131072, 8192),
    *((f"aes-128-{mode}", count, 65536) for mode in ("ctr", "gcm") for count in (16384, 65536)),
    *((name, 65536, 65536) for name in ("aes-128-gcm-siv", "chacha20-poly1305")),
    *((name, 1_000_000, 1024) for name in ("aes-256-gcm", "chacha20-poly1305")),
    ("chacha20-poly1305", MIB, 256),
    *((f"aes-{bits}-{mode}", 262144, 4096) for mode in ("xts", "cbc") for bits in (128, 256)),
    *((f"des-ede3-{mode}", 262144, 4096) for mode in ("cbc", "ecb")),
)
TAG, AAD = 16, bytes(range(13))


class Texts:
    """Messages of one length: each begins at a block, and its tag follows its text. IVs are zeros
    except for the message's number."""

    def __init__(self, algorithm: Any, count: int, size: int, own_keys: bool) -> None:
        self.info = info = wc.find_algorithm(algorithm)
        self.count, self.size = count, size
        self.written = size + (TAG if info.is_aead else 0)
        step = -(-self.written // 16) * 16
        keys = os.urandom(info.key_size * (count if own_keys else 1))
        self.keys = np.frombuffer(keys, "u1").reshape(-1, info.key_size)
        self.ivs = np.zeros((count, info.iv_size), "u1")
        if info.iv_size:
            self.ivs[:, :8] = np.arange(count, dtype=">u8").view("u1").reshape(count, 8)
        self.offsets = np.arange(count, dtype="u8") * np.uint64(step)
        self.source = arrays.random.randint(0, 256, step * count, dtype="uint8")
        self.target = arrays.zeros_like(self.source)
        self.columns = {
            "lengths": np.full(count, size, "u8"),
            "offsets": self.offsets,
            "out_offsets": self.offsets,
            "ivs": self.ivs.reshape(-1) if info.iv_size else None,
            "aad": np.frombuffer(AAD, "u1") if info.is_aead else None,
            "key_index": np.arange(count, dtype="u4") if own_keys else None,
        }

    def actions(self) -> Actions:
        keys: Any = [wc.Key(self.info.name, key.tobytes()) for key in self.keys]
        keys = keys if len(keys) > 1 else keys[0]
        run = partial(wc.run_columns, self.info.name, "encrypt", out=self.target, engine=ENGINE)
        actions = {"columns on the host": partial(run, keys, self.source, **self.columns)}
        if arrays is not np:
            there = {k: v if v is None else arrays.asarray(v) for k, v in self.columns.items()}
            own = arrays.asarray(self.keys.reshape(-1)) if len(self.keys) > 1 else keys
            actions["columns on the GPU"] = partial(run, own, self.source, **there)
        return actions

    def message(self, i: int) -> dict[str, Any]:
        """The fields that differ between messages, besides key and text."""
        aad = AAD if self.info.is_aead else None
        return {"iv": self.ivs[i].tobytes() or None, "aad": aad}

    def key(self, i: int) -> bytes:
        return bytes(self.keys[i % len(self.keys)])

    def text(self, array: Any, i: int, size: int) -> Any:
        return array[int(self.offsets[i]) :][:size]

    def as_messages(self) -> float:
        """Seconds of `Batch.run`."""
        batch, name, keys = wc.Batch(ENGINE), self.info.name, list(map(self.key, range(self.count)))
        shared = wc.Key(name, keys[0]) if len(self.keys) == 1 else None
        for i in range(self.count):
            source = self.text(self.source, i, self.size)
            out = self.text(self.target, i, self.written)
            batch.add(name, "encrypt", shared or keys[i], source, out=out, **self.message(i))
        begin = time.perf_counter()
        batch.run()
        wait()
        return time.perf_counter() - begin

    def check(self) -> None:
        """The first message, one in the middle and the last, by the reference engine."""
        for i in (0, self.count // 2, self.count - 1):
            text = bytes(self.text(self.source, i, self.size).tolist())
            found = bytes(self.text(self.target, i, self.written).tolist())
            batch = wc.Batch("reference")
            made = batch.add(self.info.name, "encrypt", self.key(i), text, **self.message(i))
            batch.run()
            if found != bytes(made.result()):
                raise SystemExit(f"{self.info.name}: message {i} is wrong")


def main() -> None:
    program = Program(__doc__, repetitions=7)
    program.option("algorithms", nargs="*", metavar="ALGORITHM", help="in each number and size")
    program.option("--messages", type=int, nargs="+", default=[MIB], help="4 GiB at most")
    program.option("--size", type=int, nargs="+", default=[1024], help="bytes of a message")
    program.option("--objects", action="store_true", help="as messages of a Batch, too")
    options = program.parse()
    asked = list(product(options.algorithms, options.messages, options.size))
    for (name, most, size), own in product(asked or CASES, (False, True)):
        count = min(most, 4096 * MIB // size)
        texts = Texts(name, count, size, own)
        what = f"{name}, {count} of {size}, {'a key each' if own else 'one key'}"
        # Not by turns: what a call on host columns keeps, such as a million keys, the next lets go.
        for form, action in texts.actions().items():
            taken = by_turns({f"{what}, {form}": action}, options.repetitions, wait=wait)
            program.rates(taken, count * size / 1e9)
        texts.check()
        if options.objects:
            seconds = [texts.as_messages() for _ in range(options.repetitions + 1)][1:]
            rates = [count * size / 1e9 / each for each in seconds]
            program.add(f"{what}, messages", "GB/s", rates)
            texts.check()
        del texts, action
    program.finish(memory="the GPU's" if arrays is not np else "the host's")


if __name__ == "__main__":
    main()
