# SPDX-License-Identifier: Apache-2.0
"""KV caches: the vault against the gather that it contains, on the host or, with --device, from a
GPU to page-locked memory; and on the host, where LMCache is installed, the serde against LMCache's
`aesgcm`, whose workers get a task of their own each."""

from __future__ import annotations

import math
import os
import select
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from warpcipher import kv
from warpcipher_measure.program import Program, by_turns, named, ratio

OBJECT = 4 << 20
KEY = bytes(range(32))


def main() -> None:
    program = Program(__doc__, repetitions=15)
    program.option("--mib", type=int, default=64, help="objects of 4 MiB, or blocks, in all")
    program.option("--device", help="of PyTorch, such as cuda:0: where the blocks lie")
    options = program.parse()
    size = options.mib << 20
    if options.device:
        for layers, heads, model in ((32, 8, "8B"), (80, 1, "70B, one rank of 8")):
            actions, wait = device_actions(options.device, size, layers, heads)
            taken = by_turns(actions, options.repetitions, wait=wait)
            program.rates({f"{model}: {name}": times for name, times in taken.items()}, size / 1e9)
        program.finish(size=f"{options.mib} MiB to page-locked memory")
        return
    for algorithm in ("aes-128-gcm", "chacha20-poly1305"):
        taken = by_turns(vault_actions(algorithm, size), options.repetitions)
        program.rates(taken, size / 1e9)
    with named("LMCache"):
        for bits in (128, 256):
            for actions in serde_actions(bits, size // OBJECT):
                taken = by_turns(actions, options.repetitions)
                program.rates(taken, size / 1e9)
                own, *others = taken
                for other in others:
                    ratio(taken, own, other)
    program.finish(size=f"{options.mib} MiB in host memory")


def vault_actions(algorithm: Any, size: int) -> dict[str, Callable[[], object]]:
    """Blocks of an 8B model: 32 layers, 8 heads of 128, 16 tokens, 16 bits; 2 MiB each."""
    count = size >> 21
    layers = [np.ones((2 * count, 2, 16, 8, 128), np.uint16) for _ in range(32)]
    ids = np.random.default_rng(1).permutation(2 * count)[:count].tolist()
    who = kv.Identity("tenant", "model", [b"%d" % i for i in ids])
    vault = kv.Vault(KEY, algorithm)
    out = vault.seal(layers, ids, identity=who)
    plain = np.empty((count, 32, 2, 16, 8, 128), np.uint16)

    def gather() -> None:
        for i, layer in enumerate(layers):
            plain[:, i] = layer[ids]

    def open_all() -> None:
        if vault.open(out, layers, ids, identity=who):
            raise RuntimeError("a block is missing")

    return {
        f"vault, {algorithm}: seal": lambda: vault.seal(layers, ids, out, identity=who),
        f"vault, {algorithm}: open": open_all,
        "gather alone": gather,
    }


def device_actions(
    device: str, size: int, layers: int, heads: int
) -> tuple[dict[str, Callable[[], object]], Callable[[], object]]:
    import torch

    shape = (2, 16, heads, 128)
    block = layers * 2 * math.prod(shape)
    count = size // block
    tensors = [
        torch.ones((count, *shape), dtype=torch.bfloat16, device=device) for _ in range(layers)
    ]
    order = torch.randperm(count)
    index, ids = order.to(device), order.tolist()
    who = kv.Identity("tenant", "model", [b"%d" % i for i in ids])
    plain = torch.empty((count, layers, *shape), dtype=torch.bfloat16, pin_memory=True)
    actions: dict[str, Callable[[], object]] = {
        "gather and copy, not encrypted": lambda: plain.copy_(
            torch.stack([tensor[index] for tensor in tensors], 1), non_blocking=True
        )
    }
    for algorithm in ("aes-128-gcm", "chacha20-poly1305"):
        vault = kv.Vault(KEY, algorithm)  # type: ignore[arg-type]
        out = torch.empty(count * vault.sealed_size(tensors), dtype=torch.uint8, pin_memory=True)
        vault.seal(tensors, ids, out, identity=who)

        def seal(vault: kv.Vault = vault, out: Any = out) -> None:
            vault.seal(tensors, ids, out, identity=who)

        def open_all(vault: kv.Vault = vault, out: Any = out) -> None:
            if vault.open(out, tensors, ids, identity=who):
                raise RuntimeError("a block is missing")

        actions[f"vault, {algorithm}: seal"] = seal
        actions[f"vault, {algorithm}: open"] = open_all
    return actions, torch.cuda.synchronize


def serde_actions(bits: int, count: int) -> list[dict[str, Callable[[], object]]]:
    import torch
    from lmcache.v1 import memory_management as memory
    from lmcache.v1.distributed import serde
    from lmcache.v1.distributed.api import ObjectKey
    from warpcipher.kv import lmcache

    class Free:
        def free(self, *arguments: object) -> None: ...

    def objects(size: int) -> list[Any]:
        metadata = memory.MemoryObjMetadata(torch.Size([size]), torch.uint8, 0, size, 0)
        tensors = [torch.ones(size, dtype=torch.uint8) for _ in range(count)]
        return [memory.TensorMemoryObj(tensor, metadata, Free()) for tensor in tensors]

    texts, frames, back = objects(OBJECT), objects(OBJECT + 29), objects(OBJECT)
    keys = [ObjectKey(i.to_bytes(32, "big"), "model", 1, 0, "tenant") for i in range(count)]
    with tempfile.NamedTemporaryFile() as master:
        master.write(os.urandom(32))
        master.flush()
        common: dict[str, Any] = {"master_key_path": master.name, "aes_bits": bits}
        processors = {f"warpcipher, {bits} bits": (lmcache.create(common), 1)}
        for workers in (1, 2):
            config = serde.SerdeConfig("aesgcm", {**common, "max_workers": workers})
            name = f"aesgcm, {bits} bits, {workers} workers"
            processors[name] = serde.create_serde_processor(config), workers

    def run(processor: Any, way: str, sources: list[Any], targets: list[Any], parts: int) -> None:
        submit = getattr(processor, f"submit_{way}")
        event = getattr(processor, f"get_{way}_event_fd")()
        tasks = [submit(sources[i::parts], targets[i::parts], keys[i::parts]) for i in range(parts)]
        while tasks:
            select.select([event], [], [])
            os.read(event, 8)
            results = {task: getattr(processor, f"query_{way}_result")(task) for task in tasks}
            if False in results.values():
                raise RuntimeError("a task failed")
            tasks = [task for task, result in results.items() if result is None]

    def actions(way: str, sources: list[Any], targets: list[Any]) -> dict[str, Any]:
        return {
            f"{name}: {way}": lambda p=processor, n=parts: run(p, way, sources, targets, n)
            for name, (processor, parts) in processors.items()
        }

    return [actions("serialize", texts, frames), actions("deserialize", frames, back)]


if __name__ == "__main__":
    main()
