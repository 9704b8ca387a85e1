# SPDX-License-Identifier: Apache-2.0
"""The vault with tensors on a GPU: against a plain gather and pyca, and the CPU's vault opens what
it sealed, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from array_libraries import Torch
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from warpcipher import kv
from warpcipher.kv import gpu

KEY = bytes(range(32))
BLOCKS = 20
LAYOUTS: dict[str, tuple[int, tuple[int, ...], int]] = {  # tensors, shape, axis
    "[blocks, 2, ...]": (3, (BLOCKS, 2, 16, 8, 64), 0),
    "[2, blocks, ...]": (3, (2, BLOCKS, 16, 8, 64), 1),
    "[layers, 2, blocks, ...]": (1, (3, 2, BLOCKS, 16, 1, 128), 2),
    "[blocks, latent]": (4, (BLOCKS, 16, 576), 0),
    "gathered by PyTorch": (2, (2, BLOCKS, 3, 5, 7), 1),
    "[blocks, width]": (1, (BLOCKS, 4161), 0),
}
ALGORITHMS = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"]


def blocks(torch: Any, layout: str, dtype: str = "bfloat16", device: str = "cuda") -> list[Any]:
    count, shape, _ = LAYOUTS[layout]
    made = [torch.randint(0, 2, shape, device=device) for _ in range(count)]
    return [tensor.to(getattr(torch, dtype)) for tensor in made]


def texts(torch: Any, tensors: list[Any], axis: int) -> list[bytes]:
    views = [tensor.view(torch.uint8).cpu().numpy() for tensor in tensors]
    before = (slice(None),) * axis
    count = views[0].shape[axis]
    return [b"".join(view[(*before, i)].tobytes() for view in views) for i in range(count)]


def identity(count: int) -> kv.Identity:
    return kv.Identity("tenant", "model", [b"%d" % i for i in range(count)])


def by_pyca(algorithm: str, sealed: bytes, number: int) -> bytes:
    """Opens block `number` of `identity`."""
    info = b"warpcipher.kv.vault\x01" + algorithm.encode() + b"\0tenant"
    key = HKDF(SHA256(), 16 if "128" in algorithm else 32, sealed[4:20], info).derive(KEY)
    names = b"\0\0\0\x06tenant\0\0\0\x05model" + bytes(8)
    box = (AESGCM if algorithm.startswith("aes") else ChaCha20Poly1305)(key)
    return box.decrypt(
        sealed[20:32], sealed[32:], b"warpcipher.kv.vault\x01" + names + b"%d" % number
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("place", ["page-locked", "device", "plain"])
def test_gpu_and_cpu_open_each_other(place: str, algorithm: Any, layout: str, dtype: str) -> None:
    torch = Torch().torch
    axis = LAYOUTS[layout][2]
    on_gpu, vault = blocks(torch, layout, dtype), kv.Vault(KEY, algorithm)
    prepared = kv.Blocks(on_gpu, axis)
    assert (prepared.layout is None) == (layout in ("gathered by PyTorch", "[blocks, width]"))
    before = texts(torch, on_gpu, axis)
    ids, size, who = [19, 0, 7, 7], vault.sealed_size(on_gpu, axis), identity(4)
    out = torch.empty(
        (4, size),
        dtype=torch.uint8,
        device="cuda" if place == "device" else "cpu",
        pin_memory=place == "page-locked",
    )
    numbers = torch.tensor(ids, device="cuda")
    assert vault.seal(on_gpu, numbers, out, identity=who, axis=axis) is out
    torch.cuda.synchronize()
    for i, row in enumerate(out.cpu().numpy()):
        assert by_pyca(algorithm, row.tobytes(), i) == before[ids[i]]
    assert texts(torch, on_gpu, axis) == before

    on_host = blocks(torch, layout, dtype, "cpu")
    other = kv.Vault(KEY, algorithm)
    assert other.open(out, on_host, [1, 2, 3, 4], identity=who, axis=axis) == []
    assert texts(torch, on_host, axis)[1:5] == [before[i] for i in ids]

    sealed = other.seal(on_host, [1, 2, 3, 4], identity=who, axis=axis)
    sealed[2, size // 2] ^= 1
    expected = list(before)
    for target, source in ((10, 1), (11, 2), (13, 4)):
        expected[target] = texts(torch, on_host, axis)[source]
    for given in (sealed, sealed.to("cuda"), [row.numpy() for row in sealed]):
        assert vault.open(given, prepared, [10, 11, 12, 13], identity=who) == [2]
        found = texts(torch, on_gpu, axis)
        if not any(found[12]):
            expected[12] = found[12]
        assert found == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_many_parts(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch().torch
    tensors, who = blocks(torch, "[2, blocks, ...]"), identity(BLOCKS)
    layout = kv.Blocks(tensors, 1)
    vault = kv.Vault(KEY, algorithm)
    size = vault.sealed_size(layout)
    monkeypatch.setattr(gpu, "SLOT", 2 * size)
    before = texts(torch, tensors, 1)
    out = torch.zeros((BLOCKS, size), dtype=torch.uint8, pin_memory=True)
    order = list(reversed(range(BLOCKS)))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        vault.seal(layout, order, out, identity=who)
    stream.synchronize()
    assert [by_pyca(algorithm, row.tobytes(), i) for i, row in enumerate(out.numpy())] == before[
        ::-1
    ]
    out[3, 40] ^= 1
    out[4] = 0
    out[19, -1] ^= 1
    with torch.cuda.stream(stream):
        for tensor in tensors:
            tensor.zero_()
        assert vault.open(out, layout, order, identity=who) == [3, 4, 19]
    kept = [
        bytes(len(text)) if BLOCKS - 1 - i in (3, 4, 19) else text for i, text in enumerate(before)
    ]
    assert texts(torch, tensors, 1) == kept


def test_what_does_not_fit() -> None:
    torch = Torch().torch
    tensors = blocks(torch, "[blocks, 2, ...]")
    vault, before = kv.Vault(KEY), texts(torch, tensors, 0)
    for ids in ([BLOCKS], [-1], torch.tensor([BLOCKS], device="cuda")):
        with pytest.raises(ValueError, match="there are 20 blocks"):
            vault.seal(tensors, ids, identity=identity(1))
    with pytest.raises(TypeError):
        vault.seal(tensors, [1], identity=identity(1)._replace(hashes=[1]))
    empty = vault.seal(tensors, [], identity=identity(0))
    assert empty.shape == (0, vault.sealed_size(tensors))
    assert vault.open(empty, tensors, [], identity=identity(0)) == []
    assert texts(torch, tensors, 0) == before


def test_blocks_of_several_sessions_at_once() -> None:
    torch = Torch().torch
    tensors, who = blocks(torch, "[blocks, 2, ...]"), identity(1)
    before = texts(torch, tensors, 0)
    sealed = torch.cat([kv.Vault(KEY).seal(tensors, [i], identity=who) for i in range(9)])
    all_of_them = kv.Identity("tenant", "model", [b"0"] * 9)
    assert kv.Vault(KEY).open(sealed, tensors, range(10, 19), identity=all_of_them) == []
    assert texts(torch, tensors, 0)[10:19] == before[:9]


def test_sealing_waits_for_nothing() -> None:
    torch = Torch().torch
    tensors, vault, who = blocks(torch, "[blocks, 2, ...]"), kv.Vault(KEY), identity(BLOCKS)
    size = vault.sealed_size(tensors)
    for out in (
        torch.empty((BLOCKS, size), dtype=torch.uint8, pin_memory=True),
        torch.empty((BLOCKS, size), dtype=torch.uint8, device="cuda"),
    ):
        vault.seal(tensors, range(BLOCKS), out, identity=who)  # compiles, allocates
        torch.cuda.synchronize()
        torch.cuda._sleep(4_000_000_000)  # 2 seconds
        vault.seal(tensors, range(BLOCKS), out, identity=who)
        assert not torch.cuda.current_stream().query()
        torch.cuda.synchronize()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_opening_waits_for_headers_only(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Torch().torch
    tensors, vault, who = blocks(torch, "[blocks, 2, ...]"), kv.Vault(KEY, algorithm), identity(3)
    before = texts(torch, tensors, 0)
    out = torch.empty((3, vault.sealed_size(tensors)), dtype=torch.uint8, pin_memory=True)
    vault.seal(tensors, [1, 2, 3], out, identity=who)
    torch.cuda.synchronize()
    out[1, 999] ^= 1
    crypt = kv.Blocks.crypt

    def late(*arguments: Any) -> None:
        torch.cuda._sleep(2_000_000_000)  # 1 second
        crypt(*arguments)

    monkeypatch.setattr(kv.Blocks, "crypt", late)
    misses = vault.enqueue_open(out, tensors, [7, 8, 9], identity=who)
    assert not torch.cuda.current_stream().query()
    with torch.cuda.stream(torch.cuda.Stream()):
        assert misses() == [1]
    found = texts(torch, tensors, 0)
    assert [found[7], found[9]] == [before[1], before[3]]
    assert not any(found[8]) or found[8] == before[8]


@pytest.mark.parametrize("layout", ["[blocks, 2, ...]", "gathered by PyTorch"])
def test_a_graph_takes_no_blocks(layout: str) -> None:
    torch = Torch().torch
    axis = LAYOUTS[layout][2]
    tensors, vault, who = blocks(torch, layout), kv.Vault(KEY), identity(1)
    sealed = vault.seal(tensors, [0], identity=who, axis=axis)
    one = torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        one.add_(1)  # an empty graph is a warning
        with pytest.raises(RuntimeError, match="graph is being captured"):
            vault.seal(tensors, [0], sealed, identity=who, axis=axis)
        with pytest.raises(RuntimeError, match="graph is being captured"):
            vault.open(sealed, tensors, [0], identity=who, axis=axis)
    assert vault.open(sealed, tensors, [1], identity=who, axis=axis) == []


SEARCH = """
import sys
import numpy as np
import torch
from memory_search import count
from warpcipher import kv

half, other = (word.encode() for word in sys.argv[1:])
needle = half + other
one = torch.from_numpy(np.frombuffer(needle, np.uint8).copy()).cuda()
layers = [one.repeat(8 * 4096 // len(one)).view(8, 4096) for _ in range(64)]
torch.cuda.synchronize()
for algorithm in ("aes-128-gcm", "chacha20-poly1305"):
    vault, who = kv.Vault(bytes(32), algorithm), kv.Identity("", "", [b"a hash"] * 8)
    out = torch.empty((8, vault.sealed_size(layers)), dtype=torch.uint8, pin_memory=True)
    vault.seal(layers, range(8), out, identity=who)
    assert vault.open(out, layers, range(8), identity=who) == []
assert all(torch.equal(layer.view(-1), one.repeat(8 * 4096 // len(one))) for layer in layers)
control = needle[::-1]
held = torch.from_numpy(np.frombuffer(control, np.uint8).copy()).repeat(1000)
pinned = held.pin_memory()
print(count(needle * 4), count(control * 4), len(pinned))
"""


def test_no_plaintext_in_host_memory() -> None:
    """As of test_file_device.py: the search itself holds the needle, the control is repeated."""
    Torch()
    run = subprocess.run(
        [sys.executable, "-c", SEARCH, "no text of a cache is here;", "never"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found, controls, size = map(int, run.stdout.split())
    assert size == 1000 * 32
    assert controls > 400, "in pageable and in page-locked memory"
    assert found < 100
