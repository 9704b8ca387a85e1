# SPDX-License-Identifier: Apache-2.0
"""The vault: every layout and type against a plain gather and pyca, and what must be a miss."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import warpcipher as wc
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from warpcipher import kv
from warpcipher.kv import blocks as blocks_module
from warpcipher.kv import vault as module

KEY = bytes(range(32))
BLOCKS, TOKENS, HEADS, WIDTH = 6, 4, 2, 8
LAYOUTS: dict[str, tuple[int, tuple[int, ...], int]] = {  # tensors, shape, axis
    "layers of [blocks, 2, ...]": (3, (BLOCKS, 2, TOKENS, HEADS, WIDTH), 0),
    "layers of [2, blocks, ...]": (3, (2, BLOCKS, TOKENS, HEADS, WIDTH), 1),
    "one [layers, 2, blocks, ...]": (1, (3, 2, BLOCKS, TOKENS, HEADS, WIDTH), 2),
    "one [layers, blocks, ...]": (1, (3, BLOCKS, TOKENS, WIDTH), 1),
    "one [blocks, width]": (1, (BLOCKS, WIDTH), 0),
    "width of 1": (1, (BLOCKS, 1), 0),
}
NUMPY = ["float16", "float32", "float64", "int8", "bool", "bfloat16", "float8_e4m3fn"]
TORCH = ["float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "int8", "bool"]
# Tensors in host memory also go through the code for those on a GPU.
AS_ON_GPU = "torch as on a GPU"
TYPES = [("numpy", name) for name in NUMPY]
TYPES += [(library, name) for library in ("torch", AS_ON_GPU) for name in TORCH]


@pytest.fixture(params=["numpy", "torch", AS_ON_GPU])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    if name == "numpy":
        return name
    pytest.importorskip("torch")
    monkeypatch.setattr(blocks_module.Blocks, "_host_by_numpy", name != AS_ON_GPU)
    return "torch"


def tensors(layout: str, library: str = "numpy", kind: str = "float16", seed: int = 1) -> Any:
    count, shape, _ = LAYOUTS[layout]
    made = []
    for layer in range(count):
        generator = np.random.default_rng(seed + layer)
        if library == "numpy":
            kind_of = kind
            if kind in ("bfloat16", "float8_e4m3fn"):
                kind_of = getattr(pytest.importorskip("ml_dtypes"), kind)
            size = int(np.prod(shape)) * np.dtype(kind_of).itemsize
            bits = generator.integers(0, 2, size, np.uint8)
            made.append(bits.view(kind_of).reshape(shape))
        else:
            torch = pytest.importorskip("torch")
            item = getattr(torch, kind).itemsize
            bits = generator.integers(0, 2, int(np.prod(shape)) * item, np.uint8)
            made.append(torch.from_numpy(bits).view(getattr(torch, kind)).reshape(shape))
    return made if len(made) > 1 else made[0]


def text_of(blocks: Any, axis: int, number: int) -> bytes:
    """One block by the plainest code there is."""
    text = b""
    for tensor in blocks if isinstance(blocks, list) else [blocks]:
        if not isinstance(tensor, np.ndarray):
            import torch

            tensor = tensor.view(torch.uint8).numpy()
        text += tensor[(slice(None),) * axis + (number,)].tobytes()
    return text


def texts_of(blocks: Any, axis: int) -> list[bytes]:
    return [text_of(blocks, axis, number) for number in range(BLOCKS)]


def identity(count: int, tenant: str = "tenant", start: int = 0) -> kv.Identity:
    hashes = [b"hash %d" % (start + i) for i in range(count)]
    return kv.Identity(tenant, "a-model", hashes, [start + i for i in range(count)])


def opened_by_pyca(algorithm: str, sealed: bytes, who: kv.Identity, number: int) -> bytes:
    assert sealed[:4] == b"wkv\x01"
    size = 16 if algorithm == "aes-128-gcm" else 32
    info = b"warpcipher.kv.vault\x01" + algorithm.encode() + b"\0" + who.tenant.encode()
    key = HKDF(SHA256(), size, sealed[4:20], info).derive(KEY)
    aad = b"warpcipher.kv.vault\x01"
    for name in (who.tenant.encode(), who.model.encode()):
        aad += len(name).to_bytes(4, "big") + name
    assert who.positions is not None
    aad += who.positions[number].to_bytes(8, "big") + who.hashes[number]
    box = (AESGCM if algorithm.startswith("aes") else ChaCha20Poly1305)(key)
    return box.decrypt(sealed[20:32], sealed[32:], aad)


def parts(sealed: Any, count: int) -> list[bytes]:
    data = bytes(memoryview(np.asarray(sealed)).cast("B"))
    size = len(data) // count
    return [data[i * size : (i + 1) * size] for i in range(count)]


@pytest.mark.parametrize("algorithm", ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"])
@pytest.mark.parametrize(("library", "kind"), TYPES, indirect=["library"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_and_types(layout: str, library: str, kind: str, algorithm: Any) -> None:
    axis = LAYOUTS[layout][2]
    blocks = tensors(layout, library, kind)
    before = texts_of(blocks, axis)
    ids, who = [5, 0, 3, 0], identity(4, "ténant", 7)
    vault = kv.Vault(KEY, algorithm)
    sealed = vault.seal(blocks, ids, identity=who, axis=axis)
    assert sealed.shape == (4, vault.sealed_size(blocks, axis))
    for i, one in enumerate(parts(sealed, 4)):
        assert opened_by_pyca(algorithm, one, who, i) == before[ids[i]]
    other = tensors(layout, library, kind, seed=9)
    kept = texts_of(other, axis)
    assert kv.Vault(KEY, algorithm).open(sealed, other, [1, 4, 2, 0], identity=who, axis=axis) == []
    expected = [before[0], before[5], before[3], kept[3], before[0], kept[5]]
    assert texts_of(other, axis) == expected
    assert texts_of(blocks, axis) == before


@pytest.mark.parametrize("part", [1, 400, 1 << 26])
def test_parts(library: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "HOST_PART", part)
    layout = "layers of [2, blocks, ...]"
    blocks, other = tensors(layout, library), tensors(layout, library, seed=5)
    vault, who = kv.Vault(KEY), identity(BLOCKS)
    sealed = bytearray(
        vault.seal(blocks, range(BLOCKS), identity=who, axis=1).tobytes()
        if library == "numpy"
        else vault.seal(blocks, range(BLOCKS), identity=who, axis=1).numpy().tobytes()
    )
    sealed[4 * vault.sealed_size(blocks, 1) + 50] ^= 1
    kept = text_of(other, 1, 4)
    assert vault.open(sealed, other, range(BLOCKS), identity=who, axis=1) == [4]
    assert text_of(other, 1, 4) == kept
    assert [t for i, t in enumerate(texts_of(other, 1)) if i != 4] == [
        t for i, t in enumerate(texts_of(blocks, 1)) if i != 4
    ]


def test_kinds_of_ids_and_memory(library: str) -> None:
    blocks = tensors("one [blocks, width]", library)
    vault, who = kv.Vault(KEY), identity(2)
    size = vault.sealed_size(blocks)
    kinds: list[Any] = [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), np.array([1, 2], np.uint8)]
    outs: list[Callable[[], Any]] = [
        lambda: bytearray(2 * size),
        lambda: np.empty((2, size), np.uint8),
        lambda: memoryview(bytearray(2 * size)),
        lambda: wc.pinned(2 * size),
    ]
    if library == "torch":
        torch = pytest.importorskip("torch")
        kinds.append(torch.tensor([1, 2], dtype=torch.int32))
        outs.append(lambda: torch.empty(size // 2, 4, dtype=torch.uint8))
    for ids in kinds:
        for make in outs:
            out = make()
            assert vault.seal(blocks, ids, out, identity=who) is out
            assert vault.open(out, blocks, ids, identity=who) == []
            for sealed in (bytes(memoryview(np.asarray(out)).cast("B")), parts(out, 2)):
                assert vault.open(sealed, blocks, ids, identity=who) == []


def test_what_does_not_fit(library: str) -> None:
    blocks = tensors("layers of [blocks, 2, ...]", library)
    before = texts_of(blocks, 0)
    vault, who = kv.Vault(KEY), identity(2)
    size = vault.sealed_size(blocks)
    out = bytearray(2 * size)
    for ids in ([0, BLOCKS], [-1, 0], [1 << 70, 0]):
        with pytest.raises(ValueError, match="there are 6 blocks"):
            vault.seal(blocks, ids, out, identity=who)
        with pytest.raises(ValueError, match="there are 6 blocks"):
            vault.open(out, blocks, ids, identity=who)
    for wrong in ([True, False], [0.5, 1], np.array([0.0, 1.0]), ["0", "1"]):
        with pytest.raises(TypeError):
            vault.seal(blocks, wrong, out, identity=who)
    with pytest.raises(ValueError, match="twice"):
        vault.open(out, blocks, [1, 1], identity=who)
    with pytest.raises(ValueError, match="2 hashes and 2 positions: expected one for each of 1"):
        vault.seal(blocks, [1], out[:size], identity=who)
    with pytest.raises(ValueError, match="2 hashes: expected one for each of 1"):
        vault.seal(blocks, [1], out[:size], identity=who._replace(positions=None))
    with pytest.raises(TypeError, match="the identity's tenant is bytes: expected str"):
        vault.seal(blocks, [1, 2], out, identity=who._replace(tenant=b"tenant"))
    assert len(vault.seal(blocks, [1, 2], identity=who._replace(tenant="t" * 2000)))
    with pytest.raises(ValueError, match="tenant has 2001 bytes of UTF-8: expected 2000"):
        vault.seal(blocks, [1, 2], out, identity=who._replace(tenant="t" * 2001))
    with pytest.raises(BufferError, match="blocks is a masked array"):
        vault.seal(np.ma.zeros((6, 4)), [1, 2], out, identity=who)
    with pytest.raises(TypeError, match=r"identity is str: expected a kv\.Identity"):
        vault.seal(blocks, [1, 2], out, identity="tenant")
    with pytest.raises(TypeError):
        vault.seal(blocks, [1, 2], out, identity=who._replace(hashes=[1, 2]))
    for wrong in (bytearray(2 * size - 1), bytearray(2 * size + 1), bytearray()):
        with pytest.raises(ValueError, match="sealed blocks have"):
            vault.seal(blocks, [1, 2], wrong, identity=who)
        with pytest.raises(ValueError, match="sealed blocks have"):
            vault.open(wrong, blocks, [1, 2], identity=who)
    with pytest.raises(ValueError, match="read-only"):
        vault.seal(blocks, [1, 2], bytes(2 * size), identity=who)
    strided = np.zeros((2, 2 * size), np.uint8)[:, ::2]
    with pytest.raises(ValueError, match="out is not contiguous"):
        vault.seal(blocks, [1, 2], strided, identity=who)
    with pytest.raises(ValueError, match="sealed is not contiguous"):
        vault.open(strided, blocks, [1, 2], identity=who)
    with pytest.raises(ValueError, match="sealed has 1 blocks"):
        vault.open([bytes(size)], blocks, [1, 2], identity=who)
    for axis in (-1, 4, 5):
        with pytest.raises(ValueError, match="axis is"):
            vault.seal(blocks, [1, 2], out, identity=who, axis=axis)
    with pytest.raises(ValueError, match="blocks along axis"):
        vault.seal([blocks[0], blocks[1][:4]], [1, 2], out, identity=who)
    with pytest.raises(ValueError, match="empty list"):
        vault.seal([], [1, 2], out, identity=who)
    with pytest.raises(TypeError, match="expected arrays"):
        vault.seal([blocks[0], b"text"], [1, 2], out, identity=who)
    with pytest.raises(ValueError, match="not contiguous"):
        vault.seal([blocks[0][..., ::2]], [1, 2], out, identity=who)
    assert not any(out)
    assert texts_of(blocks, 0) == before
    with pytest.raises(ValueError, match="expected one of"):
        kv.Vault(KEY, "aes-192-gcm")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot be copied"):
        vault.__reduce_ex__(4)


@pytest.mark.parametrize("step", [1, -1])
def test_sealed_blocks_that_overlap_blocks(library: str, step: int) -> None:
    memory = np.zeros(1 << 12, np.uint8)
    array: Any = memory[:1024].reshape(8, 128)
    if library == "torch":
        array, step = pytest.importorskip("torch").from_numpy(array), 1
    blocks, vault = [array[::step]], kv.Vault(KEY)
    size = vault.sealed_size(blocks)
    for first in (0, 1023):
        taken = memory[first : first + size]
        with pytest.raises(ValueError, match="out overlaps blocks"):
            vault.seal(blocks, [1], taken, identity=identity(1))
        with pytest.raises(ValueError, match="sealed overlaps blocks"):
            vault.open(taken, blocks, [1], identity=identity(1))
    assert not memory.any()
    beside = memory[1024 : 1024 + size]
    vault.seal(blocks, [1], beside, identity=identity(1))
    assert vault.open(beside, blocks, [1], identity=identity(1)) == []


def test_no_blocks(library: str) -> None:
    blocks = tensors("one [blocks, width]", library)
    vault = kv.Vault(KEY)
    sealed = vault.seal(blocks, [], identity=identity(0))
    assert sealed.shape == (0, vault.sealed_size(blocks))
    assert vault.open(sealed, blocks, [], identity=identity(0)) == []
    assert vault.enqueue_open(sealed, blocks, [], identity=identity(0))() == []
    assert vault.open([], blocks, [], identity=identity(0)) == []
    assert vault.open(b"", blocks, [], identity=identity(0)) == []


def test_read_only_blocks() -> None:
    blocks = tensors("one [blocks, width]")
    blocks.flags.writeable = False
    vault = kv.Vault(KEY)
    sealed = vault.seal(blocks, [0], identity=identity(1))
    with pytest.raises(ValueError, match="read-only array"):
        vault.open(sealed, blocks, [0], identity=identity(1))


class Exported:
    """An array of a library that is known by DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


def test_blocks_of_another_library_by_dlpack() -> None:
    layout = "layers of [2, blocks, ...]"
    arrays, who = tensors(layout), identity(2)
    others = [Exported(array) for array in arrays]
    before = texts_of(arrays, 1)
    vault = kv.Vault(KEY)
    sealed = vault.seal(others, [4, 1], identity=who, axis=1)
    assert opened_by_pyca("aes-256-gcm", parts(sealed, 2)[0], who, 0) == before[4]
    if np.from_dlpack(others[0]).flags.writeable:  # type: ignore[arg-type]
        assert vault.open(sealed, others, [0, 5], identity=who, axis=1) == []
        assert texts_of(arrays, 1) == [before[4], *before[1:5], before[1]]
    else:  # NumPy before 2.1
        with pytest.raises(ValueError, match="read-only"):
            vault.open(sealed, others, [0, 5], identity=who, axis=1)
    with pytest.raises(TypeError, match=r"unknown dtype: .* Give views of bytes"):
        vault.seal(Exported(np.array([["a"]])), [0], identity=identity(1))
    for array in arrays:
        array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        vault.open(sealed, others, [0, 5], identity=who, axis=1)


def test_forged_exchanged_and_cut_blocks_are_misses(library: str) -> None:
    layout = "layers of [blocks, 2, ...]"
    blocks, target = tensors(layout, library), tensors(layout, library, seed=7)
    vault, who = kv.Vault(KEY), identity(3)
    good = parts(vault.seal(blocks, [0, 1, 2], identity=who), 3)
    kept = texts_of(target, 0)

    def check(sealed: Any, misses: list[int], who: kv.Identity = who, by: Any = vault) -> None:
        assert by.open(sealed, target, [3, 4, 5], identity=who) == misses
        for i in range(3):
            expected = kept[3 + i] if i in misses else text_of(blocks, 0, i)
            assert text_of(target, 0, 3 + i) == expected
            kept[3 + i] = text_of(target, 0, 3 + i)
        assert texts_of(target, 0)[:3] == kept[:3]

    for place in (0, 3, 4, 19, 20, 31, 32, 500, len(good[0]) - 16, len(good[0]) - 1):
        forged = bytearray(good[1])
        forged[place] ^= 1
        check([good[0], forged, good[2]], [1])
        check(b"".join([good[0], forged, good[2]]), [1])
    check([good[1], good[0], good[2]], [0, 1])
    check([good[0][:-1], b"", good[2] + b"x"], [0, 1, 2])
    check([bytes(len(good[0]))] * 3, [0, 1, 2])
    check(good, [0, 1, 2], who._replace(tenant="other"))
    check(good, [0, 1, 2], who._replace(model="other"))
    check(good, [0], who._replace(positions=[9, 1, 2]))
    check(good, [2], who._replace(hashes=[*who.hashes[:2], b"hash 3"]))
    check(good, [0, 1, 2], by=kv.Vault(bytes(32)))
    check(good, [0, 1, 2], by=kv.Vault(KEY, "chacha20-poly1305"))
    # A label that moves from one name to the next is another identity.
    check(good, [0, 1, 2], who._replace(tenant="tenan", model="ta-model"))
    check(good, [])


def test_a_replayed_block_opens_for_its_own_identity_only() -> None:
    vault, blocks = kv.Vault(KEY), tensors("one [blocks, width]")
    old = vault.seal(blocks, [0], identity=identity(1))
    text = text_of(blocks, 0, 0)
    blocks[0] = 0
    vault.seal(blocks, [0], identity=identity(1))
    assert vault.open(old, blocks, [1], identity=identity(1, start=1)) == [0]
    assert vault.open(old, blocks, [1], identity=identity(1)) == []
    assert text_of(blocks, 0, 1) == text


def test_tenants_have_their_own_keys() -> None:
    asked = []

    def key_of(tenant: Any) -> bytes:
        asked.append(tenant)
        return KEY if tenant == "a" else bytes(32)

    vault, blocks = kv.Vault(key_of), tensors("one [blocks, width]")
    a, b = (vault.seal(blocks, [0], identity=identity(1, tenant)) for tenant in "ab")
    assert bytes(a[0][:20]) == bytes(b[0][:20]), "one session"
    assert asked == ["a", "b"]
    assert vault.open(a, blocks, [1], identity=identity(1, "b")) == [0]
    assert vault.open(b, blocks, [1], identity=identity(1, "a")) == [0]
    assert vault.open(a, blocks, [1], identity=identity(1, "a")) == []
    assert kv.Vault(KEY).open(a, blocks, [1], identity=identity(1, "a")) == []
    assert asked == ["a", "b"]
    forged = bytearray(a)
    for session in range(3):  # a forged block costs no question
        forged[4:20] = bytes([session]) * 16
        assert vault.open(forged, blocks, [1], identity=identity(1, "a")) == [0]
    assert asked == ["a", "b"]


def test_positions_are_integers() -> None:
    vault, blocks = kv.Vault(KEY), tensors("one [blocks, width]")
    who = kv.Identity("tenant", "a-model", [b"one", b"two"], np.arange(2))
    sealed = vault.seal(blocks, [0, 1], identity=who)
    assert vault.open(sealed, blocks, [0, 1], identity=who._replace(positions=[0, 1])) == []
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match=f"position {wrong}: expected 0 to"):
            vault.seal(blocks, [0, 1], identity=who._replace(positions=[0, wrong]))


def test_key_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KV_KEY", KEY.hex())
    blocks = tensors("one [blocks, width]")
    sealed = kv.Vault(wc.keys.from_env("KV_KEY")).seal(blocks, [0], identity=identity(1))
    assert kv.Vault(KEY).open(sealed, blocks, [0], identity=identity(1)) == []
    out = bytearray(len(sealed[0]))
    with pytest.raises(ValueError, match="16 or more") as caught:
        kv.Vault(b"short secret").seal(blocks, [0], out, identity=identity(1))
    assert "secret" not in str(caught.value)
    assert not any(out), "no text stays where a run fails"


def nonces(sealed: Any, count: int) -> list[bytes]:
    return [part[4:32] for part in parts(sealed, count)]


def test_nonces_of_threads_vaults_and_restarts() -> None:
    blocks, used = tensors("one [blocks, width]"), []
    vault = kv.Vault(KEY)

    def work() -> None:
        for _ in range(50):
            used.extend(nonces(vault.seal(blocks, [0, 1, 2], identity=identity(3)), 3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {nonce[:16] for nonce in used} == {used[0][:16]}
    assert sorted(int.from_bytes(nonce[16:], "big") for nonce in used) == list(range(600))
    for _ in range(20):
        used += nonces(kv.Vault(KEY).seal(blocks, [0], identity=identity(1)), 1)
    assert len(set(used)) == 620


def test_nonces_of_forks() -> None:
    blocks = tensors("one [blocks, width]")
    vault = kv.Vault(KEY)
    used = nonces(vault.seal(blocks, [0], identity=identity(1)), 1)
    for depth in range(3):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                signal.alarm(60)
                made = nonces(vault.seal(blocks, [0], identity=identity(1)), 1)
                if depth:  # a grandchild
                    grandchild = os.fork()
                    if grandchild:
                        os.waitpid(grandchild, 0)
                    made = nonces(vault.seal(blocks, [0], identity=identity(1)), 1)
                os.write(write, b"".join(made))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        used += [data[i : i + 28] for i in range(0, len(data), 28)]
        used += nonces(vault.seal(blocks, [0], identity=identity(1)), 1)
    assert len(used) == 1 + 3 + 5
    assert len(set(used)) == len(used)


def test_a_session_ends_at_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = tensors("one [blocks, width]")
    monkeypatch.setattr(module, "SESSION_BLOCKS", 5)
    vault = kv.Vault(KEY)
    sealed = [vault.seal(blocks, [0, 1], identity=identity(2)) for _ in range(3)]
    sessions = [bytes(one[0][4:20]) for one in sealed]
    assert sessions[0] == sessions[1] != sessions[2]
    monkeypatch.setattr(module, "SESSION_BYTES", 16)
    sealed += [vault.seal(blocks, [0], identity=identity(1)) for _ in range(2)]
    assert len({bytes(one[0][4:20]) for one in sealed}) == 4
    rows = np.concatenate(sealed[:3])
    who = [identity(2)] * 3
    hashes = [h for one in who for h in one.hashes]
    both = kv.Identity("tenant", "a-model", hashes, [0, 1] * 3)
    assert vault.open(rows, blocks, range(6), identity=both) == [], "of several sessions at once"
