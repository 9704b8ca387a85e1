# SPDX-License-Identifier: Apache-2.0
"""PyTorch and CuPy on a GPU: types, streams, and results that go from one library to the other."""

from __future__ import annotations

import gc

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from array_libraries import CTR, IV, KEY, CuPy, InterfaceOnly, Torch


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float32", "complex64", "bool", "int64", "float8_e4m3fn"]
)
def test_torch_types(dtype: str) -> None:
    torch = Torch().torch
    array = torch.randint(0, 2, (10, 33), device="cuda").to(getattr(torch, dtype))
    before = array.reshape(-1).view(torch.uint8).cpu().numpy().tobytes()
    data = wc.Cipher(CTR, KEY).encrypt(array, iv=IV)
    assert data.cpu().numpy().tobytes() == oracle.encrypt(CTR, KEY, before, IV)
    back = torch.empty_like(array)
    assert wc.Cipher(CTR, KEY).decrypt(data, iv=IV, out=back) is back
    assert back.reshape(-1).view(torch.uint8).cpu().numpy().tobytes() == before


def test_torch_refusals() -> None:
    torch = Torch().torch
    cipher = wc.Cipher(CTR, KEY)
    array = torch.zeros(8, 8, device="cuda")
    for view in (array[:, ::2], array.T, array.to_sparse()):
        with pytest.raises(BufferError, match="C-contiguous"):
            cipher.encrypt(view, iv=IV)
    with pytest.raises(BufferError, match="conjugated"):
        cipher.encrypt(torch.zeros(4, dtype=torch.complex64, device="cuda").conj(), iv=IV)
    with pytest.raises(BufferError, match="meta"):
        cipher.encrypt(torch.zeros(4, device="meta"), iv=IV)
    with pytest.raises(TypeError, match="iv is"):
        cipher.encrypt(array, iv=array)


@pytest.mark.parametrize("form", ["object", "int", "current"])
def test_torch_streams(form: str) -> None:
    """The work waits for what fills its input on the current stream, on whatever stream it runs."""
    torch = Torch().torch
    text = oracle.painted("text", 1 << 22)
    wanted = oracle.encrypt(CTR, KEY, text, IV)
    source = torch.frombuffer(bytearray(text), dtype=torch.uint8).cuda()
    cipher = wc.Cipher(CTR, KEY)
    side = torch.cuda.Stream()
    for _ in range(5):
        late = torch.zeros_like(source)
        torch.cuda._sleep(20_000_000)
        if form == "current":
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                late.copy_(source)
                data = cipher.encrypt(late, iv=IV)
        else:
            late.copy_(source)
            data = cipher.encrypt(
                late, iv=IV, stream=side if form == "object" else side.cuda_stream
            )
        side.synchronize()
        assert data.cpu().numpy().tobytes() == wanted


def test_torch_does_not_wait() -> None:
    torch = Torch().torch
    cipher = wc.Cipher(CTR, KEY)
    array = torch.zeros(1 << 20, dtype=torch.uint8, device="cuda")
    cipher.encrypt(array, iv=IV)  # self-test, tables
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)  # about a second
    data = cipher.encrypt(array, iv=IV)
    assert not torch.cuda.current_stream().query()
    assert data.cpu().numpy().tobytes() == oracle.encrypt(CTR, KEY, bytes(1 << 20), IV)


def test_cupy_streams() -> None:
    cupy = CuPy().cupy
    text = oracle.painted("text", 1 << 20)
    wanted = oracle.encrypt(CTR, KEY, text, IV)
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        data = wc.Cipher(CTR, KEY).encrypt(cupy.frombuffer(text, "u1"), iv=IV)
        assert data.get().tobytes() == wanted
    array = cupy.frombuffer(text, "u1")
    for stream in (side, side.ptr, 1, 2):
        data = wc.Cipher(CTR, KEY).encrypt(array, iv=IV, stream=stream)
        cupy.cuda.runtime.deviceSynchronize()
        assert data.get().tobytes() == wanted


def test_device_array_goes_to_any_library() -> None:
    cupy, torch = CuPy().cupy, Torch().torch
    text = oracle.painted("text", 5000)
    array = InterfaceOnly.Array(cupy.frombuffer(text, "u1"))
    data = wc.Cipher(CTR, KEY).encrypt(array, iv=IV)
    assert isinstance(data, wc.DeviceArray)
    wanted = oracle.encrypt(CTR, KEY, text, IV)
    assert torch.from_dlpack(data).cpu().numpy().tobytes() == wanted
    assert cupy.from_dlpack(data).get().tobytes() == wanted
    tensor = torch.as_tensor(data, device="cuda")
    del data
    gc.collect()
    assert tensor.cpu().numpy().tobytes() == wanted
