# SPDX-License-Identifier: Apache-2.0
"""The writes of a GPU where tensors lie on one. A stand-in for it encrypts on the host;
tests/gpu has the same with a GPU."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from format_cases import streaming_key
from test_cryptotensors import KEY as OWNER
from test_cryptotensors import READER
from warpcipher import formats, weights
from warpcipher.formats import chunks, write_chunks
from warpcipher.formats.write_chunks import Texts
from warpcipher.weights import cryptotensors, saving
from weights_cases import assert_same, tensors

np = pytest.importorskip("numpy", reason="NumPy is not installed")
AESGCM = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead").AESGCM

KEY = bytes(range(32))
GCM = formats.Keyset((streaming_key(7, segment_size=4096),), 7)
CTR = formats.Keyset((streaming_key(7, segment_size=4096, mac_hash="sha256"),), 7)


class StandIn:
    """Does what a GPU does in `_native.write_chunks` and `Sealing.write`. failure: what it returns
    after the first chunk."""

    def __init__(self) -> None:
        self.calls = 0
        self.failure: tuple[int, int] | None = None

    def write(
        self, target: int, texts: list[Any], chunks: Iterable[tuple[int, int, bytes, bytes]]
    ) -> tuple[bytes, tuple[int, int] | None]:
        """The chunks: offset, length, key, nonce. Writes ciphertexts and tags; returns the tags."""
        self.calls += 1
        text, tags = b"".join(bytes(part) for part in texts), b""
        for offset, length, key, nonce in chunks:
            sealed = AESGCM(key).encrypt(nonce, text[:length], None)
            text = text[length:]
            os.pwrite(target, sealed if self.tags_follow else sealed[:-16], offset)
            tags += sealed[-16:]
            if self.failure:
                return tags, self.failure
        assert text == b""
        return tags, None

    tags_follow = True

    def write_chunks(
        self, target: int, algorithm: str, keys: Any, texts: Any, *_: Any, **columns: Any
    ) -> tuple[int, int] | None:
        ivs = [columns["ivs"][at : at + 12] for at in range(0, len(columns["ivs"]), 12)]
        of = [keys[number] for number in columns["key_index"]]
        chunks = zip(columns["offsets"], columns["lengths"], of, ivs, strict=True)
        self.tags_follow = False
        tags, failure = self.write(target, texts, chunks)
        columns["tags"][: len(tags)] = tags
        return failure

    def sealing(self, algorithm: str, keys: list[bytes], **rules: Any) -> Any:
        """In place of a `_native.Sealing`."""
        (key,) = keys

        def nonce(i: int, final: bool) -> bytes:
            number = int.from_bytes(rules["nonce"], "big") ^ i << rules["counter_shift"]
            if final and rules["final_shift"] >= 0:
                number ^= 1 << rules["final_shift"]
            return number.to_bytes(12, "big")

        def chunks(size: int, count: int) -> Iterator[tuple[int, int, bytes, bytes]]:
            begin, offset = 0, rules["header"]
            for i in range(count):
                length = min(rules["chunk"] - (rules["first_lacks"] if i == 0 else 0), size - begin)
                if length:  # no range of plaintext has an empty one
                    yield offset, length, key, nonce(i, i == count - 1)
                begin, offset = begin + length, offset + length + 16

        def write(target: int, texts: Any, streams: Any, device: Any, size: int, count: int) -> Any:
            return self.write(target, texts, chunks(size, count))[1]

        def seal(first: int, count: int, final: bool, data: bytes, out: Any) -> None:
            assert (count, final, data) == (1, True, b"")
            out[:16] = AESGCM(key).encrypt(nonce(first, True), b"", None)

        return SimpleNamespace(write=write, seal=seal, seals_on_gpu=True)


@contextlib.contextmanager
def stand_in() -> Iterator[StandIn]:
    """Meanwhile all tensors pass for ones on a GPU, and keys for their bytes."""
    made = StandIn()

    def texts_of(parts: list[Any]) -> Texts:
        return Texts(list(parts), [], 0, sum(map(len, parts)))

    def parts_on_gpu(entries: Any) -> list[Any]:
        return [part for part in (entry.data() for entry in entries) if len(part)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_chunks, "_native", made)
        patch.setattr(chunks, "native_key", lambda algorithm, key: bytes(key))
        patch.setattr(chunks, "_native", SimpleNamespace(Sealing=made.sealing))
        patch.setattr(cryptotensors, "wc", SimpleNamespace(Key=lambda algorithm, key: bytes(key)))
        for module in (write_chunks, cryptotensors):
            patch.setattr(module, "texts_of", texts_of)
        for module in (saving, cryptotensors):
            patch.setattr(module, "parts_on_gpu", parts_on_gpu)
        yield made


@pytest.mark.parametrize("key", [KEY, KEY[:16], GCM], ids=["cobblestone", "128", "tink"])
@pytest.mark.parametrize("size", [0, 1, 4000, 16384, 100_000])
def test_files_read_back(key: Any, size: int, tmp_path: Path) -> None:
    model = {"x": np.arange(size).astype(np.uint8), **tensors()}
    with stand_in() as gpu:
        weights.save_file(model, tmp_path / "x", key, {"format": "pt"}, context=b"c")
    assert gpu.calls == 1
    assert_same(weights.load_file(tmp_path / "x", key, framework="np", context=b"c"), model)


@pytest.mark.parametrize("spare", range(-2, 3))
def test_a_file_that_ends_with_a_full_chunk(spare: int, tmp_path: Path) -> None:
    model = {"x": np.zeros(2 * 16384, np.uint8)}
    weights.save_file(model, tmp_path / "x")
    header = (tmp_path / "x").stat().st_size - 2 * 16384
    model = {"x": np.ones(2 * 16384 - header + spare, np.uint8)}
    with stand_in():
        weights.save_file(model, tmp_path / "x", KEY)
    assert_same(weights.load_file(tmp_path / "x", KEY, framework="np"), model)


def test_a_plain_file(tmp_path: Path) -> None:
    """Its texts are written as they are, a GPU's and others."""
    model = {"x": np.arange(9 << 20).astype(np.uint8), **tensors()}
    weights.save_file(model, tmp_path / "host", metadata={"format": "pt"})
    taken: list[int] = []

    def texts_of(parts: list[Any]) -> Texts:
        taken.append(len(parts))
        return Texts(parts, [], None, sum(map(len, parts)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "parts_on_gpu", lambda entries: [entry.data() for entry in entries])
        patch.setattr(saving, "texts_of", texts_of)
        weights.save_file(model, tmp_path / "x", metadata={"format": "pt"})
    assert taken == [1 + len(model)]
    assert (tmp_path / "x").read_bytes() == (tmp_path / "host").read_bytes()


def test_cryptotensors(tmp_path: Path) -> None:
    """A tensor of three chunks, and empty ones."""
    model = {"x": np.arange(5 << 20).astype(np.uint8), **tensors()}
    with stand_in() as gpu:
        weights.save_file(model, tmp_path / "x", OWNER)
    assert gpu.calls == 1
    assert_same(weights.load_file(tmp_path / "x", READER, framework="np"), model)


def test_tinks_ctr_hmac_is_encrypted_on_the_host(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "parts_on_gpu", lambda entries: [entry.data() for entry in entries])
        patch.setattr(write_chunks, "texts_of", lambda parts: Texts(list(parts), [], 0, 0))
        weights.save_file(tensors(), tmp_path / "x", CTR)
    assert_same(weights.load_file(tmp_path / "x", CTR, framework="np"), tensors())


def test_a_full_disk(tmp_path: Path) -> None:
    with stand_in() as gpu:
        gpu.failure = (56, errno.ENOSPC)
        with pytest.raises(OSError, match="No space left on device: at byte 56") as caught:
            weights.save_file(tensors(), tmp_path / "x", KEY)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
