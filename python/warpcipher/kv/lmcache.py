# SPDX-License-Identifier: Apache-2.0
"""The serde `warpcipher` for LMCache: its `aesgcm` with many objects in one run, on several cores.

A stored object is a frame, the same as of `aesgcm`:

    version (1) | IV (12) | ciphertext || tag (16)

Version 1 has no AAD and takes the keys of `aesgcm`, so each loads what the other
stored. With `identity` the version is 0x81, and the AAD binds the frame to its object:

    "warpcipher.kv.lmcache" | 0x81 | salt | model name | chunk hash | KV rank (8) | object group (8)

where each of the three in the middle is its length in 4 bytes and its bytes (UTF-8), and integers
are big-endian. LMCache's chunk hash covers all tokens before the chunk, so it is the position too.

Importing this module registers the serde. LMCache imports it for an L2 adapter of type `plugin`:
`Adapter` makes the adapter that its parameters describe.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from ..batch import Batch
from ..engines import engines

_serde: Any = import_module("lmcache.v1.distributed.serde")
_adapters: Any = import_module("lmcache.v1.distributed.l2_adapters")
_log = import_module("lmcache.logging").init_logger(__name__)

PLAIN_VERSION = 1
IDENTITY_VERSION = 0x81
IV_SIZE, TAG_SIZE = 12, 16
HEADER_SIZE = 1 + IV_SIZE
HKDF_INFO = b"lmcache-l2-aesgcm-v1"
OPTIONS = ("key_provider", "aes_bits", "master_key_path", "max_workers", "identity", "engine")


def identity_aad(key: Any) -> bytes:
    """The AAD of a frame with identity, of LMCache's `ObjectKey`."""
    parts = [b"warpcipher.kv.lmcache", bytes([IDENTITY_VERSION])]
    for part in (key.cache_salt.encode(), key.model_name.encode(), key.chunk_hash):
        parts += len(part).to_bytes(4, "big"), part
    parts += key.kv_rank.to_bytes(8, "big"), key.object_group_id.to_bytes(8, "big")
    return b"".join(parts)


class Processor(_serde.SerdeProcessor):  # type: ignore[misc]
    """LMCache's interface of a serde, so that all objects of a task are one run.

    provider: LMCache's `KeyProvider`. bits: of its keys, 128 or 256.
    identity: store frames that are bound to their object, and load no others.
    engine:   "cpu", as the objects lie in host memory and the GPU is the model's; or another.
    """

    def __init__(
        self,
        provider: Any,
        bits: int = 128,
        identity: bool = False,
        engine: str = "cpu",
        max_workers: int = 1,
    ) -> None:
        self._provider = provider
        self._algorithm: Any = f"aes-{bits}-gcm"
        self._version = IDENTITY_VERSION if identity else PLAIN_VERSION
        self._loads = {IDENTITY_VERSION, self._version}
        self._engine = engine
        make = import_module("lmcache.v1.platform").create_event_notifier
        self._stored, self._loaded = make(), make()
        self._lock = threading.Lock()
        self._next_task = 0
        self._results: dict[tuple[Any, int], bool] = {}
        self._pool = ThreadPoolExecutor(max_workers)

    def get_serialize_event_fd(self) -> int:
        return int(self._stored.fileno())

    def get_deserialize_event_fd(self) -> int:
        return int(self._loaded.fileno())

    def submit_serialize(
        self, src_objs: Sequence[Any], dst_objs: Sequence[Any], keys: Sequence[Any]
    ) -> int:
        return self._submit(self._stored, self.encrypt, src_objs, dst_objs, keys)

    def submit_deserialize(
        self, src_objs: Sequence[Any], dst_objs: Sequence[Any], keys: Sequence[Any]
    ) -> int:
        return self._submit(self._loaded, self.decrypt, src_objs, dst_objs, keys)

    def query_serialize_result(self, task_id: int) -> bool | None:
        return self._result(self._stored, task_id)

    def query_deserialize_result(self, task_id: int) -> bool | None:
        return self._result(self._loaded, task_id)

    def estimate_serialized_size(self, layout_desc: Any) -> int:
        """Exact, in bytes."""
        pairs = zip(layout_desc.shapes, layout_desc.dtypes, strict=True)
        text = sum(shape.numel() * dtype.itemsize for shape, dtype in pairs)
        return HEADER_SIZE + int(text) + TAG_SIZE

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        self._stored.close()
        self._loaded.close()

    def encrypt(self, sources: Sequence[Any], frames: Sequence[Any], keys: Sequence[Any]) -> bool:
        """Writes a frame of each source. Raises what a run raises."""
        batch = Batch(self._engine)
        sizes = []
        for source, target, key in zip(sources, frames, keys, strict=True):
            text, frame = _bytes_of(source), _bytes_of(target)
            iv = os.urandom(IV_SIZE)
            end = HEADER_SIZE + len(text) + TAG_SIZE
            frame[0] = self._version
            frame[1:HEADER_SIZE] = iv
            self._add(batch, "encrypt", key, text, iv, self._version, frame[HEADER_SIZE:end])
            sizes.append(end)
        batch.run()
        for target, size in zip(frames, sizes, strict=True):
            target.set_used_size(size)
        return True

    def decrypt(self, frames: Sequence[Any], targets: Sequence[Any], keys: Sequence[Any]) -> bool:
        """Writes the text of each frame; False, and zeros for its text, where one is not of
        its key and (with identity) object. A frame may be longer than its text needs. Where one is
        malformed, nothing is written."""
        batch = Batch(self._engine)
        handles: list[Any] = []
        for source, target, key in zip(frames, targets, keys, strict=True):
            frame, text = _bytes_of(source), _bytes_of(target)
            end = HEADER_SIZE + len(text) + TAG_SIZE
            if len(frame) < end or frame[0] not in self._loads:
                _log.warning("object %d: malformed frame or unknown version", len(handles))
                return False
            iv, sealed = bytes(frame[1:HEADER_SIZE]), frame[HEADER_SIZE:end]
            handles.append(self._add(batch, "decrypt", key, sealed, iv, frame[0], text))
        batch.run()
        bad = [i for i, handle in enumerate(handles) if handle.status != "ok"]
        if bad:
            _log.warning("objects %s: changed, or of another key or object", bad)
        return not bad

    def open_tensors(
        self, frames: Sequence[Any], targets: Sequence[Any], keys: Sequence[Any]
    ) -> list[int]:
        """Opens frames where they lie, such as in GPU memory that GPUDirect Storage has filled;
        returns the misses: which of them (0 for the first) are malformed, changed, or of another
        key or object.

        frames: tensors of bytes, of one GPU; each may be longer than its text needs.
        targets: contiguous tensors there, of any dtype. The target of a miss keeps what it had, or
        is zeros where the tag was wrong. keys: LMCache's `ObjectKey` of each.
        Waits for the frames' first 13 bytes and for the tags.
        """
        if len(frames) != len(keys) or len(frames) != len(targets):
            raise ValueError(f"{len(frames)} frames, {len(targets)} targets and {len(keys)} keys")
        torch: Any = import_module("torch")
        texts = [target.view(-1).view(torch.uint8) for target in targets]
        ends = [HEADER_SIZE + len(text) + TAG_SIZE for text in texts]
        whole = [i for i, frame in enumerate(frames) if len(frame) >= ends[i]]
        batch, handles = Batch(), {}
        heads = torch.stack([frames[i][:HEADER_SIZE] for i in whole]).cpu() if whole else []
        for i, head in zip(whole, map(bytes, heads), strict=True):
            if head[0] in self._loads:
                sealed = frames[i][HEADER_SIZE : ends[i]]
                handles[i] = self._add(
                    batch, "decrypt", keys[i], sealed, head[1:], head[0], texts[i]
                )
        batch.run()
        return [i for i in range(len(frames)) if i not in handles or handles[i].status != "ok"]

    def _add(
        self, batch: Batch, way: Any, key: Any, data: Any, iv: bytes, version: int, out: Any
    ) -> Any:
        secret = self._provider.get_key(key.cache_salt)
        aad = identity_aad(key) if version == IDENTITY_VERSION else None
        return batch.add(self._algorithm, way, secret, data, iv=iv, aad=aad, out=out)

    def _submit(self, event: Any, work: Callable[..., bool], *objects: Sequence[Any]) -> int:
        with self._lock:
            task = self._next_task
            self._next_task += 1
        self._pool.submit(self._run, event, task, work, *objects)
        return task

    def _run(self, event: Any, task: int, work: Callable[..., bool], *objects: Any) -> None:
        try:
            done = work(*objects)
        except Exception:
            _log.exception("task %d of %s failed", task, work.__name__)
            done = False
        with self._lock:
            self._results[event, task] = done
        event.notify()

    def _result(self, event: Any, task: int) -> bool | None:
        with self._lock:
            return self._results.pop((event, task), None)


def _bytes_of(memory: Any) -> memoryview:
    # Of LMCache's format "<B", to which Python cannot write.
    return memoryview(memory.byte_array).cast("B")


class Adapter(_adapters.L2AdapterInterface):  # type: ignore[misc]
    """For `{"type": "plugin", "module_path": "warpcipher.kv.lmcache", "class_name": "Adapter"}`:
    the adapter that `adapter_params` describes, as LMCache makes it."""

    def __new__(cls, params: dict[str, Any], l1_memory_desc: Any = None) -> Any:
        config = import_module("lmcache.v1.distributed.l2_adapters.config")
        made = config.get_l2_adapter_config_class(params["type"]).from_dict(params)
        return _adapters.create_l2_adapter(made, l1_memory_desc)


def create(options: dict[str, Any]) -> Processor:
    """The serde of an adapter's `"serde"`: the options of `aesgcm` (key_provider, aes_bits,
    master_key_path, max_workers), identity and engine. Raises ValueError, OSError."""
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise ValueError(f"serde warpcipher has no option {unknown[0]}: it has {OPTIONS}")
    bits = options.get("aes_bits", 128)
    if str(bits) not in ("128", "256"):
        raise ValueError(f"aes_bits is {bits!r}: expected 128 or 256")
    bits = int(bits)
    if options.get("key_provider", "hkdf") != "hkdf":
        raise ValueError(f"key_provider is {options['key_provider']!r}: expected 'hkdf'")
    identity = options.get("identity", False)
    if not isinstance(identity, bool):
        raise ValueError(f"identity is {identity!r}: expected true or false")
    path = options.get("master_key_path")
    if not isinstance(path, str) or not path:
        raise ValueError("serde warpcipher needs master_key_path, the name of a file")
    provider = _serde.HkdfKeyProvider(Path(path).read_bytes(), bits // 8, HKDF_INFO)
    engine, workers = options.get("engine", "cpu"), options.get("max_workers", 1)
    names = ["auto", *(one.name for one in engines())]
    if engine not in names:
        raise ValueError(f"engine is {engine!r}: expected one of {', '.join(names)}")
    return Processor(provider, bits, identity, engine, int(workers))


if "warpcipher" not in _serde.get_registered_serde_types():
    _serde.register_serde_factory("warpcipher", create)
