# SPDX-License-Identifier: Apache-2.0
"""vLLM's `OffloadingConnector` with its blocks in host memory sealed by a vault: vLLM 0.33.

    --kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both",
      "kv_connector_extra_config": {"spec_name": "VaultOffloadingSpec",
        "spec_module_path": "warpcipher.kv.vllm", "cpu_bytes_to_use": 64000000000,
        "master_key_path": "/run/secrets/kv.key"}}'

`VaultOffloadingSpec` is vLLM's `CPUOffloadingSpec` with other memory. The manager in the scheduler
hands the key of each chunk (hash of the tokens, number of the group) to the workers, which seal
each block of the chunk for that identity. The connector has no way to report a failed load: a
block that was changed in host memory is not loaded, and stops the engine with an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from .. import keys
from .._errors import InvalidTag
from .blocks import Blocks
from .vault import OVERHEAD, Identity, Vault

_base: Any = import_module("vllm.v1.kv_offload.base")
_common: Any = import_module("vllm.v1.kv_offload.cpu.common")
_manager: Any = import_module("vllm.v1.kv_offload.cpu.manager")
_spec: Any = import_module("vllm.v1.kv_offload.cpu.spec")


class Chunks(_common.CPULoadStoreSpec):  # type: ignore[misc]
    """Chunks in host memory, with the key of each."""

    def __init__(self, numbers: Collection[int], keys: Collection[bytes]) -> None:
        super().__init__([int(number) for number in numbers])
        self.keys = list(keys)


class KeyedManager(_manager.CPUOffloadingManager):  # type: ignore[misc]
    """vLLM's manager; workers learn the keys of the chunks that they move."""

    def prepare_load(self, keys: Collection[bytes], req_context: Any) -> Chunks:
        return Chunks(super().prepare_load(keys, req_context).block_ids, keys)

    def prepare_store(self, keys: Collection[bytes], req_context: Any) -> Any:
        found = super().prepare_store(keys, req_context)
        if found is None:
            return None
        return replace(found, store_spec=Chunks(found.store_spec.block_ids, found.keys_to_store))


class VaultOffloadingSpec(_spec.CPUOffloadingSpec):  # type: ignore[misc]
    """The options of `CPUOffloadingSpec` in `kv_connector_extra_config`, and

    master_key_path: the file of the vault's key, 16 bytes or more; workers read it.
    algorithm:       as of `Vault` [default: aes-256-gcm].
    tenant:          whose blocks these are [default: the empty string].

    Each worker has page-locked memory of its own. ValueError: an option is wrong, or the canonical
    layout was asked for, in which workers write parts of one block.
    """

    _manager: Any
    _worker: Any

    def __init__(self, config: Any) -> None:
        if config.canonical_layout:
            raise ValueError("sealed blocks belong to one worker: leave out the canonical layout")
        size = config.worker_kv_bytes_per_block
        super().__init__(replace(config, worker_kv_bytes_per_block=size + OVERHEAD if size else 0))
        self._path = self.extra_config.get("master_key_path")
        if not isinstance(self._path, str) or not self._path:
            raise ValueError("VaultOffloadingSpec needs master_key_path, the name of a file")

    def _uses_shared_region(self) -> bool:
        return False

    def get_manager(self) -> KeyedManager:
        if self._manager is None:
            option = self.extra_config.get
            self._manager = KeyedManager(
                num_chunks=self.num_chunks,
                cache_policy=self.eviction_policy,
                cache_policy_module_path=self.cache_policy_module_path,
                enable_events=self.kv_events_config.enable_kv_cache_events,
                store_threshold=int(option("store_threshold", 0)),
                max_tracker_size=int(option("max_tracker_size", 64_000)),
                info=self.cpu_info,
            )
        found: KeyedManager = self._manager
        return found

    def get_worker(self, kv_caches: Any) -> VaultWorker:
        if self._worker is None:
            option, parallel, model = self.extra_config.get, self.config.parallel, self.config.model
            self._worker = VaultWorker(
                kv_caches,
                Vault(keys.from_file(self._path), option("algorithm", "aes-256-gcm")),
                option("tenant", ""),
                f"{model.name}/{model.dtype}/rank {parallel.rank} of {parallel.world_size}",
                self.num_chunks,
                self.blocks_per_chunk,
            )
        found: VaultWorker = self._worker
        return found


class Move(NamedTuple):
    """The blocks of one group of layers in one transfer."""

    layers: Blocks
    ids: list[int]  # of blocks in the tensors
    rows: list[int]  # of the same blocks in host memory
    identity: Identity
    size: int  # of a sealed block


class VaultWorker(_base.OffloadingWorker):  # type: ignore[misc]
    """Moves blocks by three threads, for stores, loads and expedited loads, as a vault waits.

    A row of host memory is one sealed block; rows of a chunk follow each other. On a GPU work
    starts when the caller's stream has come as far, and a transfer has ended when the GPU has.
    """

    def __init__(
        self,
        kv_caches: Any,
        vault: Vault,
        tenant: str,
        model: str,
        chunk_count: int,
        blocks_per_chunk: int,
    ) -> None:
        tensors = [one.tensor for one in kv_caches.tensors]
        groups = (
            [tensors[ref.tensor_idx][:, : ref.page_size_bytes] for ref in refs]
            for refs in kv_caches.group_data_refs
        )
        self._groups: list[Any] = [Blocks(layers) if layers else None for layers in groups]
        self._vault, self._tenant, self._model = vault, tenant, model
        self._blocks_per_chunk = blocks_per_chunk
        self._sizes = [vault.sealed_size(layers) if layers else 0 for layers in self._groups]
        is_on_gpu = getattr(tensors[0], "is_cuda", False)
        self._torch: Any = None
        self._device: Any = tensors[0].device if is_on_gpu else None
        shape = chunk_count * blocks_per_chunk, max(self._sizes)
        self._host: Any
        if is_on_gpu:
            self._torch = import_module("torch")
            self._host = self._torch.zeros(shape, dtype=self._torch.uint8, pin_memory=True)
        else:
            self._host = import_module("numpy").zeros(shape, "uint8")
        self._threads = {
            name: ThreadPoolExecutor(1, f"warpcipher {name}")
            for name in ("store", "load", "expedited")
        }
        self._local = threading.local()
        self._jobs: dict[int, Future[Any]] = {}

    def submit_store(self, job_id: int, src_spec: Any, dst_spec: Any) -> bool:
        return self._submit("store", job_id, self._store, src_spec, dst_spec)

    def submit_load(
        self, job_id: int, src_spec: Any, dst_spec: Any, expedited: bool = False
    ) -> bool:
        name = "expedited" if expedited else "load"
        return self._submit(name, job_id, self._load, dst_spec, src_spec)

    def get_finished(self) -> list[Any]:
        """The transfers that have ended. InvalidTag: a block in host memory was changed."""
        done = [job_id for job_id, future in self._jobs.items() if future.done()]
        return [self._jobs.pop(job_id).result() for job_id in done]

    def wait(self, job_ids: Collection[int]) -> None:
        """Until these have ended. InvalidTag: as of `get_finished`."""
        for job_id in job_ids:
            if job_id in self._jobs:
                self._jobs[job_id].result()

    def shutdown(self) -> None:
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _submit(
        self, name: str, job_id: int, move: Callable[[Move], None], gpu: Any, chunks: Any
    ) -> bool:
        moves = list(self._moves(gpu, chunks))
        event = None
        if self._torch is not None:
            event = self._torch.cuda.current_stream(self._device).record_event()
        future = self._threads[name].submit(self._run, job_id, move, moves, event)
        self._jobs[job_id] = future
        return True

    def _moves(self, gpu: Any, chunks: Any) -> Iterator[Move]:
        """A transfer by groups. The first chunk of a group may be entered in its middle."""
        per, ids = self._blocks_per_chunk, iter(gpu.block_ids.tolist())
        numbers, first = chunks.block_ids.tolist(), 0
        for layers, size, count, index in zip(
            self._groups, self._sizes, gpu.group_sizes, gpu.block_indices, strict=True
        ):
            if count == 0:
                continue
            places = [divmod(index % per + i, per) for i in range(count)]
            yield Move(
                layers,
                list(islice(ids, count)),
                [numbers[first + chunk] * per + block for chunk, block in places],
                Identity(
                    self._tenant,
                    self._model,
                    [chunks.keys[first + chunk] for chunk, _ in places],
                    [block for _, block in places],
                ),
                size,
            )
            first += places[-1][0] + 1
        if first != len(numbers):
            raise ValueError(f"a transfer names {len(numbers)} chunks, and blocks of {first}")

    def _run(self, job_id: int, move: Callable[[Move], None], moves: list[Move], event: Any) -> Any:
        start = time.monotonic()
        if event is None:
            for one in moves:
                move(one)
        else:
            if not hasattr(self._local, "stream"):
                self._local.stream = self._torch.cuda.Stream(self._device)
            stream = self._local.stream
            with self._torch.cuda.stream(stream):
                stream.wait_event(event)
                for one in moves:
                    move(one)
                stream.synchronize()
        size = sum(len(one.ids) * (one.size - OVERHEAD) for one in moves)
        return _base.TransferResult(job_id, True, size, time.monotonic() - start)

    def _store(self, move: Move) -> None:
        sealed = self._vault.seal(move.layers, move.ids, identity=move.identity)
        if self._torch is None:
            self._host[move.rows, : move.size] = sealed
            return
        for row, one in zip(move.rows, sealed, strict=True):
            self._host[row, : move.size].copy_(one, non_blocking=True)

    def _load(self, move: Move) -> None:
        if self._torch is None:
            sealed = self._host[move.rows, : move.size]
        else:
            shape = len(move.rows), move.size
            sealed = self._torch.empty(shape, dtype=self._torch.uint8, device=self._device)
            for row, one in zip(move.rows, sealed, strict=True):
                one.copy_(self._host[row, : move.size], non_blocking=True)
        misses = self._vault.open(sealed, move.layers, move.ids, identity=move.identity)
        if misses:
            raise InvalidTag(
                f"{len(misses)} of {len(move.ids)} blocks in host memory are not those that were "
                f"stored: block {move.ids[misses[0]]} of the GPU and others were not loaded"
            )
