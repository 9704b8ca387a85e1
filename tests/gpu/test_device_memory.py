# SPDX-License-Identifier: Apache-2.0
"""Device memory and streams: what only a GPU has. The vectors and the differential tests of
tests/python run with the cuda engine too, on host and on device memory."""

from __future__ import annotations

import ctypes

import conformance as c
import conformance_device as device
import conformance_oracle as oracle
import conformance_vectors as vectors
import pytest
import warpcipher as wc

DEVICE = c.Target("cuda", device.DeviceMemory())
every_algorithm = pytest.mark.parametrize("algorithm", c.ALGORITHMS)


def test_device_memory_is_among_the_targets() -> None:
    assert str(DEVICE) in {str(target) for target in c.TARGETS}


@pytest.mark.parametrize("runner", c.RUNNERS)
@every_algorithm
def test_vectors_on_a_stream_of_our_own(algorithm: str, runner: str) -> None:
    """A stream that does not wait for the default one: work put on another would come too late."""
    stream = c.Target("cuda", device.DeviceMemory(device.new_stream()))
    found = vectors.load()[algorithm]
    for placement in (c.PLACEMENTS[0], c.PLACEMENTS[3]):
        c.check(stream, c.sample(found, 300 if runner == "each" else 2300), placement, runner)


@pytest.mark.parametrize("offset", range(1, 16))
@every_algorithm
def test_every_misalignment(algorithm: str, offset: int) -> None:
    sizes = {c.allowed_size(algorithm, size) for size in (1, 16, 17, 31, 100, 4096, 4113)}
    made = [c.make_vector(algorithm, f"{size}", size) for size in sorted(sizes)]
    apart = c.Placement("apart", offset, (offset * 7) % 16)
    in_place = c.Placement("in place", offset, in_place=True)
    for placement in (apart, in_place):
        c.check(DEVICE, made, placement, "batch")
        c.check(DEVICE, made, placement, "each")


@every_algorithm
def test_work_is_in_the_order_of_its_stream(algorithm: str) -> None:
    """Encryption and decryption in place, again and again, with nothing waited for in between."""
    info = c.ALGORITHMS[algorithm]
    size = c.allowed_size(algorithm, 40_000 if info.parallel_encrypt else 4000)
    text = oracle.painted("text", size)
    key = wc.Key(algorithm, oracle.painted("key", info.key_size))
    cipher = wc.Cipher(algorithm, key, engine="cuda")
    options = oracle.options(algorithm, oracle.painted("iv", info.iv_size), b"", 16)
    streams = [device.new_stream() for _ in range(4)]
    tag = 16 if info.is_aead else 0
    buffers = []
    for _ in streams:
        buffer = device.allocate(size + tag)
        buffer.store(text)
        buffers.append(buffer)
    for _ in range(5):
        for stream, buffer in zip(streams, buffers, strict=True):
            cipher.encrypt(buffer[:size], out=buffer, stream=stream, **options)
            cipher.decrypt(buffer, out=buffer[:size], stream=stream, **options)
    for buffer in buffers:
        assert buffer[:size].load() == text


@every_algorithm
def test_results_stay_on_the_device(algorithm: str) -> None:
    """Without out= the result is new memory on the GPU, not a copy that went over the host."""
    v = c.make_vector(algorithm, "stays", c.allowed_size(algorithm, 5000))
    options = oracle.options(algorithm, v.iv, b"", 16)
    cipher = wc.Cipher(algorithm, v.key, engine="cuda")
    source = DEVICE.memory.allocate(v.text)
    sealed = cipher.encrypt(source, **options)
    opened = cipher.decrypt(sealed, **options)
    for result, expected in ((sealed, v.data), (opened, v.text)):
        pointer = result.__cuda_array_interface__["data"][0]
        assert memory_type(pointer) == 2  # CU_MEMORYTYPE_DEVICE
        assert pointer != source.pointer
        assert copied(pointer, len(result)) == expected


def memory_type(pointer: int) -> int:
    kind = ctypes.c_uint()
    attribute = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    device.call(
        "cuPointerGetAttribute",
        ctypes.byref(kind),
        ctypes.c_int(attribute),
        ctypes.c_uint64(pointer),
    )
    return kind.value


def copied(pointer: int, size: int) -> bytes:
    content = ctypes.create_string_buffer(size)
    device.synchronize()
    device.call("cuMemcpyDtoH_v2", content, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
    return content.raw


@pytest.mark.parametrize("algorithm", [name for name, i in c.ALGORITHMS.items() if i.is_aead])
def test_forged_text_never_shows_on_the_device(algorithm: str) -> None:
    v = c.make_vector(algorithm, "forged", 100_000)
    cipher = wc.Cipher(algorithm, v.key, engine="cuda")
    data = DEVICE.memory.allocate(v.data[:-1] + bytes([v.data[-1] ^ 1]))
    out = DEVICE.memory.allocate(b"\xa5" * len(v.text))
    with pytest.raises(wc.InvalidTag):
        cipher.decrypt(data, iv=v.iv, out=out)
    assert out.load() == bytes(len(v.text))
    with pytest.raises(wc.InvalidTag):  # in place too
        cipher.decrypt(data, iv=v.iv, out=data[: len(v.text)])
    assert data.load()[: len(v.text)] == bytes(len(v.text))


def test_mixed_memory_is_refused() -> None:
    cipher = wc.Cipher("aes-128-ctr", bytes(16), engine="cuda")
    here, there = bytearray(64), DEVICE.memory.allocate(bytes(64))
    with pytest.raises(ValueError, match="same place"):
        cipher.encrypt(here, iv=bytes(16), out=there)
    with pytest.raises(ValueError, match="same place"):
        cipher.encrypt(there, iv=bytes(16), out=here)
    assert there.load() == bytes(64)
    assert here == bytes(64)


@pytest.mark.parametrize("engine", [name for name in c.ENGINES if name != "cuda"])
def test_engines_of_the_host_refuse_device_memory(engine: str) -> None:
    there = DEVICE.memory.allocate(bytes(64))
    cipher = wc.Cipher("aes-128-ctr", bytes(16), engine=engine)
    with pytest.raises((ValueError, wc.EngineError), match="memory"):
        cipher.encrypt(there, iv=bytes(16))
    assert there.load() == bytes(64)
