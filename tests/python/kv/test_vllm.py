# SPDX-License-Identifier: Apache-2.0
"""The spec for vLLM's `OffloadingConnector`: by vLLM's classes where they are installed, else by a
stand-in of those few that it extends."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warpcipher as wc
from warpcipher import kv

IS_REAL = importlib.util.find_spec("vllm") is not None
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # by vLLM
WIDE, NARROW, GPU_BLOCKS, PER_CHUNK, CHUNKS = 96, 40, 10, 2, 4


def stand_in() -> dict[str, ModuleType]:
    """The names that warpcipher.kv.vllm takes from vLLM, as vLLM has them."""

    class BlockIds:
        def __init__(self, block_ids: list[int]) -> None:
            self.block_ids = np.array(block_ids, np.int32)

    class Manager:
        def __init__(self, **options: Any) -> None:
            self.chunks: dict[bytes, int] = {}

        def prepare_load(self, keys: list[bytes], req_context: Any) -> Any:
            return BlockIds([self.chunks[key] for key in keys])

        def prepare_store(self, keys: list[bytes], req_context: Any) -> Any:
            new = [key for key in keys if key not in self.chunks]
            if len(self.chunks) + len(new) > CHUNKS:
                return None
            for key in new:
                self.chunks[key] = len(self.chunks)
            return Stored(new, BlockIds([self.chunks[key] for key in new]))

    @dataclass
    class Stored:
        keys_to_store: list[bytes]
        store_spec: Any

    @dataclass
    class TransferResult:
        job_id: int
        success: bool
        transfer_size: int
        transfer_time: float

    class Spec:
        def __init__(self, config: Any) -> None:
            self.config, self.extra_config = config, config.extra_config
            self.num_chunks, self.blocks_per_chunk = CHUNKS, config.cache.blocks_per_chunk
            self.eviction_policy, self.cache_policy_module_path = "lru", None
            self.kv_events_config = SimpleNamespace(enable_kv_cache_events=False)
            self.cpu_info = self._manager = self._worker = None

    members = {
        "base": {"OffloadingWorker": object, "TransferResult": TransferResult},
        "cpu.common": {"CPULoadStoreSpec": BlockIds},
        "cpu.manager": {"CPUOffloadingManager": Manager},
        "cpu.spec": {"CPUOffloadingSpec": Spec},
    }
    made = {}
    for name, values in members.items():
        made[f"vllm.v1.kv_offload.{name}"] = module = ModuleType(name)
        module.__dict__.update(values)
    return made


@pytest.fixture(scope="module")
def ours() -> Iterator[Any]:
    name = "warpcipher.kv.vllm"
    with pytest.MonkeyPatch.context() as patch:
        if not IS_REAL:
            print("vllm is not installed: a stand-in of its classes")
            for place, made in stand_in().items():
                patch.setitem(sys.modules, place, made)
        yield importlib.import_module(name)
    if not IS_REAL:
        sys.modules.pop(name)


@dataclass(frozen=True)
class Config:
    """Of vLLM's OffloadingConfig the part that a spec reads."""

    extra_config: dict[str, Any]
    canonical_layout: bool = False
    worker_kv_bytes_per_block: int = WIDE + NARROW
    replicated_layout: bool = False
    enable_kv_cache_events: bool = False
    groups: tuple[Any, ...] = ()
    engine_id: str = "engine"
    cache: Any = field(
        default_factory=lambda: SimpleNamespace(blocks_per_chunk=PER_CHUNK, tokens_per_hash=16)
    )
    model: Any = field(
        default_factory=lambda: SimpleNamespace(name="llama", dtype="bfloat16", max_model_len=0)
    )
    parallel: Any = field(default_factory=lambda: SimpleNamespace(rank=0, world_size=1))


@pytest.fixture
def spec(ours: Any, tmp_path: Path) -> Any:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    room = CHUNKS * -(-PER_CHUNK * (WIDE + NARROW + 48) // 4096) * 4096
    options = {"cpu_bytes_to_use": room, "master_key_path": str(tmp_path / "key")}
    return ours.VaultOffloadingSpec(Config(options))


@pytest.fixture(params=["host", "cuda"])
def kv_caches(request: pytest.FixtureRequest) -> Any:
    place = str(request.param)
    if place != "host" and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU")
    return caches(place)


def caches(place: str = "host") -> Any:
    """Two groups: one of two layers, and one of a layer with padded pages."""
    random = np.random.default_rng(1)
    arrays: list[Any] = [
        random.integers(0, 127, (GPU_BLOCKS, size), np.int8) for size in (WIDE, NARROW, WIDE)
    ]
    if IS_REAL or place != "host":
        import torch

        arrays = [torch.from_numpy(array) for array in arrays]
        arrays = arrays if place == "host" else [array.to(place) for array in arrays]
    refs = [[(0, WIDE), (1, NARROW)], [(2, WIDE - 8)]]
    return SimpleNamespace(
        tensors=[SimpleNamespace(tensor=array) for array in arrays],
        group_data_refs=[
            [SimpleNamespace(tensor_idx=i, page_size_bytes=size) for i, size in group]
            for group in refs
        ],
    )


def gpu(*groups: tuple[list[int], int]) -> Any:
    """Blocks of each group, and where the first stands in its request."""
    return SimpleNamespace(
        block_ids=np.array([i for ids, _ in groups for i in ids], np.int32),
        group_sizes=[len(ids) for ids, _ in groups],
        block_indices=[index for _, index in groups],
    )


def request() -> Any:
    if not IS_REAL:
        return None
    from vllm.v1.kv_offload.base import ReqContext

    return ReqContext("request")


def finish(worker: Any, *jobs: int) -> list[Any]:
    worker.wait(set(jobs))
    done = worker.get_finished()
    assert sorted(one.job_id for one in done) == sorted(jobs)
    assert all(one.success for one in done)
    return list(done)


def array_of(kv_caches: Any, tensor: int) -> Any:
    found = kv_caches.tensors[tensor].tensor
    return found if isinstance(found, np.ndarray) else found.cpu().numpy()


def stored(spec: Any, kv_caches: Any) -> tuple[Any, Any, Any]:
    """Manager, worker and keys after a store of blocks 1 to 4 and of 5 of the other group."""
    manager, worker = spec.get_manager(), spec.get_worker(kv_caches)
    assert manager is spec.get_manager()
    assert worker is spec.get_worker(kv_caches)
    keys = [number.to_bytes(36, "big") for number in range(3)]
    found = manager.prepare_store(keys, request())
    assert found.keys_to_store == keys
    chunks = pickle.loads(pickle.dumps(found.store_spec))  # noqa: S301  # to another process
    assert worker.submit_store(1, gpu(([1, 2, 3, 4], 0), ([5], 0)), chunks)
    (result,) = finish(worker, 1)
    assert result.transfer_size == 4 * (WIDE + NARROW) + WIDE - 8
    if IS_REAL:
        manager.complete_store(keys, request())
    return manager, worker, keys


def test_blocks_return_and_are_sealed_meanwhile(kv_caches: Any, spec: Any) -> None:
    before = [array_of(kv_caches, i).copy() for i in range(3)]
    manager, worker, keys = stored(spec, kv_caches)
    memory = np.asarray(worker._host).tobytes()
    assert all(text[i, :32].tobytes() not in memory for text in before for i in range(GPU_BLOCKS))
    # The first chunk is entered in its middle; groups of nothing are skipped.
    load = manager.prepare_load(keys[:2], request())
    worker.submit_load(2, load, gpu(([7, 8, 9], 1), ([], 0)), expedited=True)
    finish(worker, 2)
    for tensor in (0, 1):
        assert (array_of(kv_caches, tensor)[7:10] == before[tensor][2:5]).all()
    worker.submit_load(3, manager.prepare_load(keys[2:], request()), gpu(([], 0), ([6], 0)))
    finish(worker, 3)
    after = array_of(kv_caches, 2)
    assert (after[6, : WIDE - 8] == before[2][5, : WIDE - 8]).all()
    assert (after[6, WIDE - 8 :] == before[2][6, WIDE - 8 :]).all()  # padding stays
    worker.shutdown()


def forge(worker: Any) -> None:
    worker._host[1, 60] ^= 1


def exchange(worker: Any) -> None:
    worker._host[[0, 1]] = worker._host[[1, 0]]


def replay_of_another_chunk(worker: Any) -> None:
    worker._host[1] = worker._host[3]


@pytest.mark.parametrize("change", [forge, exchange, replay_of_another_chunk])
def test_a_changed_block_is_not_loaded(kv_caches: Any, spec: Any, change: Any) -> None:
    manager, worker, keys = stored(spec, kv_caches)
    change(worker)
    before = array_of(kv_caches, 0).copy()
    worker.submit_load(2, manager.prepare_load(keys[:1], request()), gpu(([8], 1), ([], 0)))
    with pytest.raises(wc.InvalidTag, match="1 of 1 blocks in host memory are not those"):
        worker.wait({2})
    with pytest.raises(wc.InvalidTag, match="block 8 of the GPU"):
        worker.get_finished()
    assert (array_of(kv_caches, 0) == before).all()
    worker.shutdown()


def test_another_rank_cannot_load(kv_caches: Any, spec: Any, ours: Any) -> None:
    _manager, worker, keys = stored(spec, kv_caches)
    vault = kv.Vault(bytes(range(32)))
    for tenant, model, is_same in (
        ("", "llama/bfloat16/rank 0 of 1", True),
        ("", "llama/bfloat16/rank 1 of 2", False),
        ("other", "llama/bfloat16/rank 0 of 1", False),
    ):
        other = ours.VaultWorker(kv_caches, vault, tenant, model, CHUNKS, PER_CHUNK)
        other._host[:] = worker._host
        other.submit_load(1, ours.Chunks([0], keys[:1]), gpu(([8, 9], 0), ([], 0)))
        if is_same:
            finish(other, 1)
        else:
            with pytest.raises(wc.InvalidTag):
                other.wait({1})
        other.shutdown()
    worker.shutdown()


def test_submission_does_not_wait_and_order_is_kept(kv_caches: Any, spec: Any, ours: Any) -> None:
    _manager, worker, keys = stored(spec, kv_caches)
    gate = threading.Event()
    worker._threads["load"].submit(gate.wait)
    worker.submit_load(2, ours.Chunks([0], keys[:1]), gpu(([8, 9], 0), ([], 0)))
    assert worker.get_finished() == []
    worker.submit_load(3, ours.Chunks([1], keys[1:2]), gpu(([6, 7], 0), ([], 0)), expedited=True)
    finish(worker, 3)
    gate.set()
    finish(worker, 2)
    worker.shutdown()


def test_what_does_not_fit_is_refused(kv_caches: Any, spec: Any, ours: Any) -> None:
    _, worker, keys = stored(spec, kv_caches)
    with pytest.raises(ValueError, match="names 2 chunks, and blocks of 1"):
        worker.submit_load(2, ours.Chunks([0, 1], keys[:2]), gpu(([8], 1), ([], 0)))
    worker.shutdown()
    options = spec.config.extra_config
    with pytest.raises(ValueError, match="master_key_path"):
        ours.VaultOffloadingSpec(Config({"cpu_bytes_to_use": 1 << 20}))
    with pytest.raises(ValueError, match="canonical layout"):
        ours.VaultOffloadingSpec(Config(options, canonical_layout=True))
    with pytest.raises(ValueError, match="algorithm is 'rot13'"):
        ours.VaultOffloadingSpec(Config({**options, "algorithm": "rot13"})).get_worker(caches())


def test_a_full_tier_stores_nothing(spec: Any) -> None:
    manager, worker, _keys = stored(spec, caches())
    more = [number.to_bytes(36, "big") for number in range(10, 10 + CHUNKS + 1)]
    assert manager.prepare_store(more, request()) is None
    worker.shutdown()


@pytest.mark.skipif(not IS_REAL, reason="vllm is not installed: pip install --no-deps vllm==0.33.0")
def test_vllm_finds_the_spec(ours: Any, spec: Any) -> None:
    from vllm.v1.kv_offload.base import OffloadingManager, OffloadingWorker
    from vllm.v1.kv_offload.config import OffloadingConfig
    from vllm.v1.kv_offload.factory import OffloadingSpecFactory

    assert {one.name for one in fields(Config)} <= {one.name for one in fields(OffloadingConfig)}
    extra = {**spec.extra_config, "spec_name": "VaultOffloadingSpec"}
    extra["spec_module_path"] = "warpcipher.kv.vllm"
    made = OffloadingSpecFactory.create_spec(Config(extra))
    assert isinstance(made, ours.VaultOffloadingSpec)
    assert made.num_chunks == CHUNKS
    assert isinstance(made.get_manager(), OffloadingManager)
    worker = made.get_worker(caches())
    assert isinstance(worker, OffloadingWorker)
    worker.shutdown()


@pytest.mark.skipif(not IS_REAL, reason="vllm is not installed: pip install --no-deps vllm==0.33.0")
def test_vllm_connector_moves_blocks_and_stops_at_a_forged_one(kv_caches: Any, spec: Any) -> None:
    """The connector's worker, with the jobs that its scheduler makes."""
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
        OffloadingConnectorMetadata,
        TransferJob,
    )
    from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import (
        OffloadingConnectorWorker,
    )
    from vllm.v1.kv_offload.base import GPULoadStoreSpec

    def step(load: Any = None, store: Any = None, job: int = 0) -> set[str]:
        metadata = OffloadingConnectorMetadata(
            {job: load} if load else {}, {job: store} if store else {}
        )
        connector.start_kv_transfers(metadata)
        connector.prepare_store_kv(metadata)
        connector.worker.wait({1, 2, 3})
        return set(connector.get_finished(set())[1])

    connector = OffloadingConnectorWorker(spec, None, None)
    connector._init_worker(kv_caches)
    manager, keys = spec.get_manager(), [bytes(36)]
    blocks = GPULoadStoreSpec([1, 2], group_sizes=[2, 0], block_indices=[0, 0])
    output = manager.prepare_store(keys, request())
    assert step(store=TransferJob("a", blocks, output.store_spec), job=1) == set()
    assert step() == set()  # stores begin a step later
    assert connector.build_connector_worker_meta().completed_jobs == {1: 1}
    manager.complete_store(keys, request())

    target = GPULoadStoreSpec([7, 8], group_sizes=[2, 0], block_indices=[0, 0])
    load = TransferJob("b", manager.prepare_load(keys, request()), target)
    assert step(load=load, job=2) == {"b"}
    moved = array_of(kv_caches, 1)
    assert (moved[7:9] == moved[1:3]).all()
    forge(connector.worker)
    with pytest.raises(wc.InvalidTag):
        step(load=load, job=3)
    connector.shutdown()
