# SPDX-License-Identifier: Apache-2.0
"""Arrays in host memory: NumPy, and whatever speaks DLPack. GPUs: tests/gpu/test_arrays_gpu.py."""

from __future__ import annotations

import gc
import os
import sys
import types
from typing import Any

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from warpcipher.arrays.jax import Jax

np = pytest.importorskip("numpy", reason="NumPy is not installed")

KEY, IV = oracle.painted("key", 32), oracle.painted("iv", 16)
CTR = "aes-256-ctr"


def expected(data: bytes) -> bytes:
    return oracle.encrypt(CTR, KEY, data, IV)


@pytest.mark.parametrize(
    "dtype", ["u1", "i2", "f4", "c16", "?", ">u4", "M8[s]", "S5", "V7", [("a", "u1"), ("b", "f8")]]
)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3)])
def test_any_type_and_shape(dtype: Any, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = (
        np.frombuffer(oracle.painted("data", size), "u1").view(dtype).reshape(shape)
        if size
        else np.zeros(shape, dtype)
    )
    result = wc.Cipher(CTR, KEY).encrypt(array, iv=IV)
    assert isinstance(result, np.ndarray)
    assert (result.dtype, result.shape) == (np.uint8, (size,))
    assert result.tobytes() == expected(array.tobytes())
    back = np.zeros_like(array)
    assert wc.Cipher(CTR, KEY).decrypt(result, iv=IV, out=back) is back
    assert back.tobytes() == array.tobytes()


def test_in_place() -> None:
    array = np.arange(1000, dtype=np.float64)
    before = array.tobytes()
    assert wc.Cipher(CTR, KEY).encrypt(array, iv=IV, out=array) is array
    assert array.tobytes() == expected(before)


def test_larger_out_returns_the_written_part() -> None:
    out = np.full(10, -1, np.int32)
    result = wc.Cipher(CTR, KEY).encrypt(bytes(12), iv=IV, out=out)
    assert result.tobytes() == expected(bytes(12))
    assert np.shares_memory(result, out)
    assert out[3:].tolist() == [-1] * 7


def test_a_matrix_is_an_array_of_two_dimensions_always() -> None:
    out = np.full((4, 8), 0xFF, "u1").view(np.matrix)
    wanted = expected(bytes(5))
    made = [wc.Cipher(CTR, KEY).encrypt(bytes(5), iv=IV, out=out)]
    batch = wc.Batch()
    handle = batch.add(CTR, "encrypt", KEY, bytes(5), iv=IV, out=out)
    batch.run()
    made.append(handle.result())
    with wc.Queue() as q:
        made.append(q.submit(CTR, "encrypt", KEY, bytes(5), iv=IV, out=out).result(10))
    for part in made:
        assert (part.shape, part.tobytes()) == ((5,), wanted)
        assert np.shares_memory(part, out)
    assert np.asarray(out).tobytes() == wanted + b"\xff" * 27
    data = np.frombuffer(oracle.painted("data", 32), "u1").reshape(4, 8).view(np.matrix)
    sealed = wc.Cipher(CTR, KEY).encrypt(data, iv=IV)
    assert (type(sealed), sealed.tobytes()) == (np.ndarray, expected(data.tobytes()))


def test_padding() -> None:
    cipher = wc.Cipher("aes-256-cbc", KEY, padding="pkcs7")
    array = np.arange(5, dtype=np.uint8)
    data = cipher.encrypt(array, iv=IV)
    assert (type(data), len(data)) == (np.ndarray, 16)
    assert cipher.decrypt(data, iv=IV).tolist() == [0, 1, 2, 3, 4]


def test_refusals() -> None:
    cipher = wc.Cipher(CTR, KEY)
    array = np.zeros((8, 8))
    for view in (array[:, ::2], array.T, array[::-1]):
        with pytest.raises(BufferError, match="data is not C-contiguous"):
            cipher.encrypt(view, iv=IV)
    with pytest.raises(BufferError, match="out is not C-contiguous"):
        cipher.encrypt(bytes(8), iv=IV, out=array[:, 0])
    array.flags.writeable = False
    with pytest.raises(BufferError, match="out is a read-only"):
        cipher.encrypt(bytes(8), iv=IV, out=array)
    with pytest.raises(TypeError, match="Python objects"):
        cipher.encrypt(np.array([None]), iv=IV)
    with pytest.raises(ValueError, match="room for 8 bytes, 9 are needed"):
        cipher.encrypt(bytes(9), iv=IV, out=np.zeros(8, "u1"))
    both = np.zeros(32, "u1")
    with pytest.raises(ValueError, match="overlap"):
        cipher.encrypt(both[:16], iv=IV, out=both[1:17])


def test_aead() -> None:
    aead = wc.aead.AESGCM(KEY)
    array = np.arange(10, dtype=np.int64)
    sealed = aead.encrypt(IV, array, b"aad")
    assert sealed.tobytes() == aead.encrypt(IV, array.tobytes(), b"aad")
    assert aead.decrypt(IV, sealed, b"aad").tobytes() == array.tobytes()
    back = np.zeros_like(array)
    assert aead.decrypt_into(IV, sealed, b"aad", back) == 80
    assert (back == array).all()
    out = np.zeros(96, "u1")
    assert aead.encrypt_into(IV, array.tobytes(), b"aad", out) == 96
    assert (out == sealed).all()
    with pytest.raises(ValueError, match="buffer must be 96 bytes"):
        aead.encrypt_into(IV, array, b"aad", np.zeros(97, "u1"))
    sealed[3] ^= 1
    with pytest.raises(wc.InvalidTag):
        aead.decrypt(IV, sealed, b"aad")


def test_batch() -> None:
    batch = wc.Batch()
    array, out = np.arange(4, dtype=np.float32), np.zeros(40, np.uint8)
    handles = [
        batch.add(CTR, "encrypt", KEY, array, iv=IV),
        batch.add(CTR, "encrypt", KEY, bytes(3), iv=IV, out=out),
        batch.add(
            "aes-256-cbc",
            "decrypt",
            KEY,
            np.frombuffer(oracle.encrypt("aes-256-cbc", KEY, b"ab", IV, padding="pkcs7"), "u1"),
            iv=IV,
            padding="pkcs7",
        ),
    ]
    batch.run()
    assert handles[0].result().tobytes() == expected(array.tobytes())
    assert handles[1].result().tobytes() == expected(bytes(3))
    assert np.shares_memory(handles[1].result(), out)
    assert handles[2].result().tobytes() == b"ab"


class HostTensor:
    """A library of its own, seen only through DLPack."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0), versions: bool = True) -> None:
        self.array, self.device, self.versions = array, device, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versions:
            if options:
                raise TypeError("unexpected keyword argument")
            return self.array.__dlpack__()
        assert options == {"max_version": (1, 0)}
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versions", [True, False])
def test_dlpack(versions: bool) -> None:
    cipher = wc.Cipher(CTR, KEY)
    array = np.arange(100, dtype=np.int16)
    before = array.tobytes()
    tensor = HostTensor(array, versions=versions)
    with pytest.raises(TypeError, match="give out="):
        cipher.encrypt(tensor, iv=IV)
    out = bytearray(200)
    assert cipher.encrypt(tensor, iv=IV, out=out) is out
    assert out == expected(before)
    assert cipher.encrypt(tensor, iv=IV, out=tensor) is tensor
    assert array.tobytes() == expected(before)
    with pytest.raises(BufferError, match="not C-contiguous"):
        cipher.encrypt(HostTensor(array[::2], versions=versions), iv=IV, out=out)
    with pytest.raises(BufferError, match="device of DLPack type 8"):
        cipher.encrypt(HostTensor(array, (8, 0)), iv=IV, out=out)


def test_read_only_dlpack() -> None:
    array = np.zeros(8, "u1")
    array.flags.writeable = False
    cipher = wc.Cipher(CTR, KEY)
    out = bytearray(8)
    assert cipher.encrypt(HostTensor(array), iv=IV, out=out) == expected(bytes(8))
    with pytest.raises(BufferError, match="read-only"):
        cipher.encrypt(bytes(8), iv=IV, out=HostTensor(array))


class DeviceArray:
    """Claims to lie on a GPU. The pointer is never followed: every use below is refused before."""

    def __init__(self, **changes: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (4, 4),
            "typestr": "<f4",
            "data": (0x1000, False),
            "strides": None,
            "version": 3,
            **changes,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_host_and_device_do_not_mix() -> None:
    cipher = wc.Cipher(CTR, KEY)
    out = bytearray(64)
    with pytest.raises(ValueError, match="GPU 0 and out in host memory"):
        cipher.encrypt(DeviceArray(), iv=IV, out=out)
    with pytest.raises(ValueError, match="host memory and out in GPU 0"):
        cipher.encrypt(bytes(64), iv=IV, out=DeviceArray())
    with pytest.raises(TypeError, match=r"iv is .*DeviceArray"):
        cipher.encrypt(bytes(16), iv=DeviceArray())  # type: ignore[arg-type]
    batch = wc.Batch()
    batch.add(CTR, "encrypt", KEY, bytes(64), iv=IV)
    with pytest.raises(ValueError, match="separate batches"):
        batch.add(CTR, "encrypt", KEY, DeviceArray(), iv=IV, out=DeviceArray())
    with pytest.raises(ValueError, match="same place"):
        wc.run_columns(CTR, "encrypt", KEY, DeviceArray(), lengths=[64], ivs=IV, out=out)


def test_several_keys_on_a_gpu_need_a_key_index() -> None:
    lengths = DeviceArray(shape=(2,), typestr="<u8")
    with pytest.raises(ValueError, match="keys has 2 keys, and there is no key_index"):
        wc.run_columns(
            CTR,
            "encrypt",
            DeviceArray(),  # type: ignore[arg-type]
            DeviceArray(),
            lengths=lengths,  # type: ignore[arg-type]
            ivs=DeviceArray(shape=(8,)),  # type: ignore[arg-type]
            out=DeviceArray(data=(0x2000, False)),
        )


def test_cuda_array_interface_is_checked() -> None:
    cipher = wc.Cipher(CTR, KEY)
    with pytest.raises(BufferError, match="not C-contiguous"):
        cipher.encrypt(DeviceArray(strides=(32, 4)), iv=IV, out=DeviceArray())
    with pytest.raises(BufferError, match="masked"):
        cipher.encrypt(DeviceArray(mask=object()), iv=IV, out=DeviceArray())
    with pytest.raises(BufferError, match="out is read-only"):
        cipher.encrypt(DeviceArray(), iv=IV, out=DeviceArray(data=(0x1000, True)))
    with pytest.raises(ValueError, match="null"):
        cipher.encrypt(DeviceArray(data=(None, False)), iv=IV, out=DeviceArray())


@pytest.mark.skipif(
    any(e.usable for e in wc.engines() if e.name == "cuda"), reason="a GPU is present"
)
def test_device_data_without_a_gpu() -> None:
    with pytest.raises(wc.EngineError, match=r"CUDA|cuda|GPU"):
        wc.Cipher(CTR, KEY).encrypt(DeviceArray(), iv=IV)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_other_libraries_on_the_host(name: str) -> None:
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    values = list(range(50))
    if name == "torch":
        array = library.tensor(values, dtype=library.int32)
    else:
        array = library.numpy.asarray(values, dtype="int32", device=library.devices("cpu")[0])
    plain = np.array(values, "i4").tobytes()
    result = wc.Cipher(CTR, KEY).encrypt(array, iv=IV)
    assert type(result) is type(array)
    assert result.device == array.device
    assert np.asarray(result).tobytes() == expected(plain)
    assert np.asarray(wc.Cipher(CTR, KEY).decrypt(result, iv=IV)).tobytes() == plain
    cipher = wc.Cipher("aes-256-cbc", KEY, padding="pkcs7")
    assert np.asarray(cipher.decrypt(cipher.encrypt(array, iv=IV), iv=IV)).tobytes() == plain


def test_keys_of_jax_are_no_numbers() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    key, cipher = jax.random.key(0), wc.Cipher(CTR, KEY)
    with pytest.raises(TypeError, match=r"data is a jax\.Array of key<fry>: .*key_data"):
        cipher.encrypt(key, iv=IV)
    numbers = jax.random.key_data(key)
    assert np.asarray(cipher.encrypt(numbers, iv=IV)).tobytes() == expected(
        np.asarray(numbers).tobytes()
    )


@pytest.mark.parametrize("copies", [True, False])
def test_memory_that_jax_copied_is_wiped(monkeypatch: pytest.MonkeyPatch, copies: bool) -> None:
    """A stand-in for JAX: it copies memory, or takes it as it is where that lies well."""

    class Taken:
        def __init__(self, array: Any, _device: object) -> None:
            self.array = array.copy() if copies else array

        def block_until_ready(self) -> None:
            self.is_ready = True

        def unsafe_buffer_pointer(self) -> int:
            assert self.is_ready, "it may still be copied"
            return int(self.array.ctypes.data)

    jax = types.SimpleNamespace(device_put=Taken, devices=lambda _kind: ["cpu"])
    monkeypatch.setitem(sys.modules, "jax", jax)
    memory = bytearray(b"plaintext")
    found = Jax().finish(memory)
    assert found.array.tobytes() == b"plaintext"
    assert memory == (bytes(9) if copies else b"plaintext")


def test_memory_that_jax_refused_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    def device_put(_array: object, _device: object) -> None:
        raise MemoryError

    jax = types.SimpleNamespace(device_put=device_put, devices=lambda _kind: ["cpu"])
    monkeypatch.setitem(sys.modules, "jax", jax)
    memory = bytearray(b"plaintext")
    with pytest.raises(MemoryError):
        Jax().finish(memory)
    assert memory == bytes(9)


def test_no_leaks() -> None:
    array = np.zeros(1000, "u1")
    tensor = HostTensor(array)
    out = bytearray(1000)
    cipher = wc.Cipher(CTR, KEY)

    def work() -> None:
        cipher.encrypt(array, iv=IV)
        cipher.encrypt(tensor, iv=IV, out=out)
        with pytest.raises(BufferError):
            cipher.encrypt(HostTensor(array[::2]), iv=IV, out=out)

    work()
    gc.collect()
    before = sys.getrefcount(array), sys.getrefcount(out)
    for _ in range(50):
        work()
    gc.collect()
    assert (sys.getrefcount(array), sys.getrefcount(out)) == before


def test_jax_leaves_the_memory_of_a_gpu_to_other_processes() -> None:
    """By what tests/conftest.py sets: several run tests on one GPU at a time."""
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
