# SPDX-License-Identifier: Apache-2.0
"""The serde for LMCache beside LMCache's own classes."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
serde = pytest.importorskip("lmcache.v1.distributed.serde", exc_type=ImportError)

from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: E402
from lmcache.v1 import memory_management as memory  # noqa: E402
from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey  # noqa: E402
from lmcache.v1.distributed.error import L1Error  # noqa: E402
from lmcache.v1.distributed.l2_adapters import config as adapter_config  # noqa: E402
from lmcache.v1.distributed.l2_adapters import create_l2_adapter  # noqa: E402
from lmcache.v1.distributed.l2_adapters.serde_wrapper import SerdeL2AdapterWrapper  # noqa: E402
from lmcache.v1.platform import consume_fd  # noqa: E402
from warpcipher.kv import lmcache as ours  # noqa: E402

SHAPE = torch.Size([2, 4, 16, 40])


class Free:
    """An allocator: the objects are freed with their tensors."""

    def free(self, *arguments: Any) -> None: ...


def memory_object(size_or_shape: Any, dtype: Any = torch.uint8) -> Any:
    shape = torch.Size(size_or_shape)
    size = shape.numel() * dtype.itemsize
    metadata = memory.MemoryObjMetadata(shape, dtype, 0, size, 0)
    return memory.TensorMemoryObj(torch.zeros(size, dtype=torch.uint8), metadata, Free())


def kv_objects(count: int, dtype: Any = torch.bfloat16) -> list[Any]:
    objects = [memory_object(SHAPE, dtype) for _ in range(count)]
    for made in objects:
        made.raw_data.copy_(torch.randint(256, made.raw_data.shape, dtype=torch.uint8))
    return objects


def object_key(number: int, salt: str = "tenant") -> Any:
    return ObjectKey(number.to_bytes(32, "big"), "meta/llama", 0x04010401, 0, salt)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "master").write_bytes(bytes(range(40)))
    made = []

    def one(kind: str = "warpcipher", **options: Any) -> Any:
        options = {"master_key_path": str(tmp_path / "master"), **options}
        made.append(serde.create_serde_processor(serde.SerdeConfig(kind, options)))
        return made[-1]

    yield one
    for processor in made:
        processor.close()


def run(processor: Any, way: str, *objects: Any) -> bool:
    task = getattr(processor, f"submit_{way}")(*objects)
    poll = select.poll()
    poll.register(getattr(processor, f"get_{way}_event_fd")(), select.POLLIN)
    assert poll.poll(60_000)
    consume_fd(getattr(processor, f"get_{way}_event_fd")())
    result = getattr(processor, f"query_{way}_result")(task)
    assert getattr(processor, f"query_{way}_result")(task) is None
    assert isinstance(result, bool)
    return result


def store(processor: Any, objects: list[Any], keys: list[Any], padding: int = 0) -> list[Any]:
    layout = MemoryLayoutDesc(shapes=[SHAPE], dtypes=[objects[0].get_dtype()])
    size = processor.estimate_serialized_size(layout)
    assert size == objects[0].get_size() + 29
    frames = [memory_object([size + padding]) for _ in objects]
    assert run(processor, "serialize", objects, frames, keys)
    assert [frame.get_size() for frame in frames] == [size] * len(frames)
    return frames


def texts(objects: list[Any]) -> list[bytes]:
    return [bytes(made.byte_array) for made in objects]


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize(("writer", "reader"), [("aesgcm", "warpcipher"), ("warpcipher", "aesgcm")])
def test_each_loads_what_the_other_stored(make: Any, bits: int, writer: str, reader: str) -> None:
    objects, keys = kv_objects(5), [object_key(i, f"t{i % 2}") for i in range(5)]
    frames = store(make(writer, aes_bits=bits), objects, keys)
    targets = [memory_object(SHAPE, torch.bfloat16) for _ in objects]
    assert run(make(reader, aes_bits=bits), "deserialize", frames, targets, keys)
    assert texts(targets) == texts(objects)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float8_e4m3fn, torch.uint8])
def test_dtypes_and_padded_frames(make: Any, dtype: Any) -> None:
    processor = make()
    objects, keys = kv_objects(3, dtype), [object_key(i) for i in range(3)]
    frames = store(processor, objects, keys, padding=99)
    for frame in frames:
        frame.set_used_size(len(frame.raw_data))
    targets = [memory_object(SHAPE, dtype) for _ in objects]
    assert run(processor, "deserialize", frames, targets, keys)
    assert texts(targets) == texts(objects)


def test_frame_with_identity_to_the_byte(make: Any) -> None:
    objects, key = kv_objects(1), ObjectKey(b"\1\2\3", "meta/llama", 0x01020304, 5, "sält")
    frames = store(make(identity=True), objects, [key])
    frame = bytes(frames[0].byte_array)
    provider = serde.HkdfKeyProvider(bytes(range(40)), 16, b"lmcache-l2-aesgcm-v1")
    aad = b"warpcipher.kv.lmcache\x81" + b"\0\0\0\5s\xc3\xa4lt" + b"\0\0\0\x0ameta/llama"
    aad += b"\0\0\0\3\1\2\3" + bytes(4) + b"\1\2\3\4" + bytes(7) + b"\5"
    assert frame[0] == 0x81
    text = AESGCM(provider.get_key("sält")).decrypt(frame[1:13], frame[13:], aad)
    assert text == texts(objects)[0]


def test_identity_binds_a_frame_to_its_object(make: Any) -> None:
    bound, plain = make(identity=True), make()
    objects, keys = kv_objects(2), [object_key(1), object_key(2)]
    frames = store(bound, objects, keys)
    targets = kv_objects(2)
    assert run(bound, "deserialize", frames, targets, keys)
    assert texts(targets) == texts(objects)
    assert run(plain, "deserialize", frames, targets, keys), "the frame says that it is bound"
    assert not run(bound, "deserialize", frames, targets, keys[::-1])
    assert not any(map(any, texts(targets)))
    for field, value in (("model_name", "x"), ("kv_rank", 7), ("object_group_id", 1)):
        other = ObjectKey(**{**vars(keys[0]), field: value})
        assert not run(bound, "deserialize", frames[:1], targets[:1], [other])
    unbound = store(plain, objects, keys)
    assert run(plain, "deserialize", unbound, targets, keys[::-1]), "as aesgcm"
    assert not run(bound, "deserialize", unbound, targets, keys), "no way back to version 1"
    for frame in unbound:
        frame.byte_array.cast("B")[0] = 0x81
    assert not run(bound, "deserialize", unbound, targets, keys)


@pytest.mark.parametrize("place", [0, 1, 12, 13, 2000, -1])
def test_changed_frames_are_misses(make: Any, place: int) -> None:
    processor = make()
    objects, keys = kv_objects(3), [object_key(i) for i in range(3)]
    frames = store(processor, objects, keys)
    frames[1].byte_array.cast("B")[place] ^= 0x40
    targets = [memory_object(SHAPE, torch.bfloat16) for _ in objects]
    assert not run(processor, "deserialize", frames, targets, keys)
    assert not any(texts(targets)[1])
    frames[1].byte_array.cast("B")[place] ^= 0x40
    assert run(processor, "deserialize", frames, targets, keys)
    frames[2].set_used_size(frames[2].get_size() - 1)
    assert not run(processor, "deserialize", frames, targets, keys)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("writer", ["aesgcm", "warpcipher"])
def test_frames_open_where_they_lie(make: Any, writer: str, device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    objects, keys = kv_objects(6), [object_key(i, f"t{i % 2}") for i in range(6)]
    stored = [made.raw_data.to(device) for made in store(make(writer), objects, keys, padding=7)]
    targets = [torch.zeros(SHAPE, dtype=torch.bfloat16, device=device) for _ in objects]
    stored[1][0] = 9
    stored[2][40] ^= 1
    stored[4] = stored[4][:-8]
    assert make().open_tensors(stored, targets, keys) == [1, 2, 4]
    for i, (target, made) in enumerate(zip(targets, objects, strict=True)):
        text = bytes(target.view(-1).view(torch.uint8).cpu().numpy())
        assert text == (bytes(len(text)) if i in (1, 2, 4) else bytes(made.byte_array))
    assert make(identity=True).open_tensors(stored, targets, keys) == list(range(6))
    assert make().open_tensors([], [], []) == []
    with pytest.raises(ValueError, match="1 frames, 1 targets and 6 keys"):
        make().open_tensors(stored[:1], targets[:1], keys)


def test_tenants_have_their_own_keys(make: Any) -> None:
    processor = make()
    objects = kv_objects(1)
    frames = store(processor, objects, [object_key(1, "a")])
    targets = [memory_object(SHAPE, torch.bfloat16)]
    assert not run(processor, "deserialize", frames, targets, [object_key(1, "b")])
    assert not any(texts(targets)[0])


def test_frames_that_are_too_small_fail_the_task(make: Any) -> None:
    objects = kv_objects(1)
    frames = [memory_object([objects[0].get_size()])]
    assert not run(make(), "serialize", objects, frames, [object_key(1)])
    assert not run(make(), "serialize", objects, frames, [])


def test_many_tasks_at_once(make: Any) -> None:
    processor = make(max_workers=3)
    objects, keys = kv_objects(40), [object_key(i, f"t{i % 7}") for i in range(40)]
    frames = [memory_object([made.get_size() + 29]) for made in objects]
    tasks = [
        processor.submit_serialize(objects[i : i + 4], frames[i : i + 4], keys[i : i + 4])
        for i in range(0, 40, 4)
    ]
    processor._pool.shutdown(wait=True)
    assert all(processor.query_serialize_result(task) for task in tasks)
    ivs = {bytes(frame.byte_array[1:13]) for frame in frames}
    assert len(ivs) == 40
    targets = [memory_object(SHAPE, torch.bfloat16) for _ in objects]
    assert run(make("aesgcm"), "deserialize", frames, targets, keys)
    assert texts(targets) == texts(objects)


def test_options(make: Any, tmp_path: Path) -> None:
    for wrong, error, message in (
        ({"aes_bits": 192}, ValueError, "128 or 256"),
        ({"engine": "gpu"}, ValueError, "engine is 'gpu': expected one of auto"),
        ({"key_provider": "keyring"}, ValueError, "hkdf"),
        ({"identity": "yes"}, ValueError, "true or false"),
        ({"master_key_path": ""}, ValueError, "master_key_path"),
        ({"master_key_path": str(tmp_path / "none")}, OSError, "none"),
        ({"identify": True}, ValueError, "no option identify"),
    ):
        with pytest.raises(error, match=message):
            make(**wrong)


class Memory:
    """The calls of LMCache's wrapper to its manager of host memory."""

    def reserve_write(self, keys: list[Any], is_temporary: Any, layout_desc: Any, tag: str) -> Any:
        made = [memory_object(layout_desc.shapes[0]) for _ in keys]
        return {key: (L1Error.SUCCESS, one) for key, one in zip(keys, made, strict=True)}

    def finish_write_and_reserve_read(self, keys: list[Any], tag: str) -> None: ...

    def finish_write_and_delete(self, keys: list[Any], tag: str) -> None: ...

    def finish_read(self, keys: list[Any]) -> None: ...


def waited(query: Any) -> Any:
    end = time.monotonic() + 60
    while not (found := query()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("identity", [False, True])
def test_lmcache_stores_and_loads_by_the_plugin(tmp_path: Path, identity: bool) -> None:
    """As its storage manager does it: the adapter first, whose import registers the serde."""
    pytest.importorskip("aiofiles")
    (tmp_path / "master").write_bytes(bytes(range(40)))
    folder = tmp_path / "cache"
    config = adapter_config.get_l2_adapter_config_class("plugin").from_dict(
        {
            "type": "plugin",
            "module_path": ours.__name__,
            "class_name": "Adapter",
            "adapter_params": {"type": "fs", "base_path": str(folder)},
        }
    )
    adapter = create_l2_adapter(config)
    assert type(adapter).__name__ == "FSL2Adapter"
    options = {"master_key_path": str(tmp_path / "master"), "identity": identity}
    processor = serde.create_serde_processor(serde.SerdeConfig("warpcipher", options))
    wrapped = SerdeL2AdapterWrapper(inner=adapter, serde=processor, l1_manager=Memory())
    objects, keys = kv_objects(3), [object_key(i) for i in range(3)]
    for made in objects:
        made.meta.shapes, made.meta.dtypes = [SHAPE], [torch.bfloat16]
    task = wrapped.submit_store_task(keys, objects)
    assert waited(wrapped.pop_completed_store_tasks)[task].is_successful()

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 3
    stored = [path.read_bytes() for path in files]
    assert {data[0] for data in stored} == {0x81 if identity else 1}
    assert not any(text[:64] in data for text in texts(objects) for data in stored)

    def load() -> tuple[list[bool], list[bytes]]:
        targets = [memory_object(SHAPE, torch.bfloat16) for _ in keys]
        for made in targets:
            made.meta.shapes, made.meta.dtypes = [SHAPE], [torch.bfloat16]
        task = wrapped.submit_load_task(keys, targets)
        found = waited(lambda: wrapped.query_load_result(task))
        return [found.test(i) for i in range(3)], texts(targets)

    assert load() == ([True] * 3, texts(objects))
    for path, data in zip(files, stored[1:] + stored[:1], strict=True):
        path.write_bytes(data)  # exchanged
    found, _ = load()
    assert found == [not identity] * 3
    wrapped.close()
