# SPDX-License-Identifier: Apache-2.0
"""KV caches: the vault against a gather and a copy, on the host or, with --device, from a GPU to
page-locked memory and within its own, with the latency of a block and what products of matrices at
the same time lose; and on the host, where LMCache is installed, the serde against LMCache's
`aesgcm`, whose workers get a task of their own each."""

from __future__ import annotations

import math
import os
import select
import tempfile
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import warpcipher as wc
from warpcipher import kv
from warpcipher_measure.program import Actions, Program, by_turns, named, ratio

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
            gpu = OnGpu(options.device, size, layers, heads)
            # Sealing waits for nothing: four calls one after another, as a server makes them.
            taken = by_turns(gpu.actions(), options.repetitions, calls=4, wait=gpu.wait)
            program.rates({f"{model}: {name}": times for name, times in taken.items()}, size / 1e9)
            taken = by_turns(gpu.one_block(), 9 * options.repetitions, wait=gpu.wait)
            program.times({f"{model}: {name}": times for name, times in taken.items()}, "us")
            program.add(f"{model}: products beside 20 GB/s of sealing", "%", gpu.slower_by())
        program.finish(size=f"{options.mib} MiB of blocks of 16 tokens, bfloat16")
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


def vault_actions(algorithm: Any, size: int) -> Actions:
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


class OnGpu:
    """Blocks of a model on a GPU, in any order."""

    def __init__(self, device: str, size: int, layers: int, heads: int) -> None:
        import torch

        self.torch: Any = torch
        self.wait = torch.cuda.synchronize
        shape = (2, 16, heads, 128)
        self.count = max(1, size // (layers * 2 * math.prod(shape)))
        self.tensors = [
            torch.ones((self.count, *shape), dtype=torch.bfloat16, device=device)
            for _ in range(layers)
        ]
        self.blocks = kv.Blocks(self.tensors)
        order = torch.randperm(self.count)
        self.index, self.ids = order.to(device), order.tolist()
        self.who = kv.Identity("tenant", "model", [b"%032d" % i for i in self.ids])
        self.plain = torch.empty((self.count, self.blocks.size), dtype=torch.uint8, pin_memory=True)
        self.gathered = torch.empty_like(self.plain, device=device)
        self.vaults = [kv.Vault(KEY, "aes-128-gcm"), kv.Vault(KEY, "chacha20-poly1305")]
        size = self.count * self.vaults[0].sealed_size(self.blocks)
        self.host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.device = torch.empty_like(self.host, device=device)

    def actions(self) -> Actions:
        def gather() -> None:
            parts = [tensor[self.index].view(self.count, -1) for tensor in self.tensors]
            found = self.torch.cat(parts, 1).view(self.torch.uint8)
            self.plain.copy_(found, non_blocking=True)

        def seal(vault: kv.Vault, out: Any) -> None:
            vault.seal(self.blocks, self.ids, out, identity=self.who)

        def open_all(vault: kv.Vault, sealed: Any) -> None:
            if vault.open(sealed, self.blocks, self.ids, identity=self.who):
                raise RuntimeError("a block is missing")

        actions: Actions = {
            "gather and copy, not encrypted": gather,
            "copy alone": partial(self.plain.copy_, self.gathered, non_blocking=True),
        }
        lengths = np.full(self.count, self.blocks.size, np.uint64)
        places = np.arange(self.count, dtype=np.uint64) * np.uint64(len(self.device) // self.count)
        ivs = np.arange(3 * self.count, dtype=np.uint32).tobytes()
        for vault in self.vaults:
            key = wc.Key(vault.algorithm, KEY[: 16 if "128" in vault.algorithm else 32])
            actions[f"gathered before, {vault.algorithm}, device memory"] = partial(
                wc.run_columns,
                *(key.algorithm, "encrypt", key, self.gathered),
                **{"lengths": lengths, "ivs": ivs, "out": self.device, "out_offsets": places},
            )
            for where, out in (("page-locked memory", self.host), ("device memory", self.device)):
                name = f"{vault.algorithm}, {where}"
                actions[f"seal {name}"] = partial(seal, vault, out)
                own = out.clone() if where == "device memory" else out.clone().pin_memory()
                seal(vault, own)
                self.wait()
                actions[f"open {name}"] = partial(open_all, vault, own)
        return actions

    def one_block(self) -> Actions:
        """Latency, from the call until it is in page-locked memory, or back."""
        who = self.who._replace(hashes=self.who.hashes[:1])
        size = self.vaults[0].sealed_size(self.blocks)
        copy = partial(self.plain[:1].copy_, self.gathered[:1], non_blocking=True)
        actions: Actions = {"one block, copy alone": copy}
        for vault in self.vaults:
            out = self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)
            vault.seal(self.blocks, [1], out, identity=who)
            self.wait()
            other = out.clone().pin_memory()
            seal = partial(vault.seal, self.blocks, [0], other, identity=who)
            actions[f"one block, seal {vault.algorithm}"] = seal
            open_one = partial(vault.open, out, self.blocks, [0], identity=who)
            actions[f"one block, open {vault.algorithm}"] = open_one
        return actions

    def slower_by(self) -> list[float]:
        """How much longer a product of matrices takes while another thread seals 20 GB/s."""
        torch = self.torch
        a = torch.randn((8192, 8192), dtype=torch.bfloat16, device=self.device.device)
        part = max(1, (64 << 20) // self.blocks.size)
        who = self.who._replace(hashes=self.who.hashes[:part])
        out = self.host[: part * self.vaults[0].sealed_size(self.blocks)]
        period = part * self.blocks.size / 20e9
        stopped = threading.Event()

        def seal() -> None:
            with torch.cuda.stream(torch.cuda.Stream(priority=0)):
                due = time.perf_counter()
                while not stopped.is_set():
                    self.vaults[0].seal(self.blocks, self.ids[:part], out, identity=who)
                    torch.cuda.current_stream().synchronize()
                    due += period
                    time.sleep(max(0.0, due - time.perf_counter()))

        def products() -> float:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(200):
                torch.mm(a, a)
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end))

        found = []
        for _ in range(5):
            with torch.cuda.stream(torch.cuda.Stream(priority=-1)):
                alone = products()
                stopped.clear()
                thread = threading.Thread(target=seal)
                thread.start()
                time.sleep(0.05)
                beside = products()
                stopped.set()
                thread.join()
            found.append(100 * (beside / alone - 1))
        return found


def serde_actions(bits: int, count: int) -> list[Actions]:
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
