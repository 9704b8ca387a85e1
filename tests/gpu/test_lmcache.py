# SPDX-License-Identifier: Apache-2.0
"""LMCache's frames open where they lie on a GPU. By a stand-in of the few classes that the serde
extends, as LMCache is not needed for that; tests/python/kv/test_lmcache.py has LMCache itself."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from array_libraries import Torch
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    names = ["", ".logging", ".v1", ".v1.distributed"]
    names += [f".v1.distributed.{name}" for name in ("serde", "l2_adapters")]
    made: dict[str, Any] = {f"lmcache{name}": ModuleType(f"lmcache{name}") for name in names}
    made["lmcache.logging"].init_logger = logging.getLogger
    serde = made["lmcache.v1.distributed.serde"]
    serde.SerdeProcessor = object
    serde.get_registered_serde_types = list
    serde.register_serde_factory = lambda *arguments: None
    made["lmcache.v1.distributed.l2_adapters"].L2AdapterInterface = object
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "warpcipher.kv.lmcache", raising=False)
    from warpcipher.kv import lmcache

    yield lmcache
    sys.modules.pop("warpcipher.kv.lmcache", None)


class Provider:
    def get_key(self, salt: str) -> bytes:
        return salt.encode() * 16


def key_of(number: int) -> Any:
    names = {"cache_salt": "ab"[number % 2], "model_name": "llama", "chunk_hash": bytes([number])}
    return SimpleNamespace(**names, kv_rank=1, object_group_id=0)


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("size", [1, 1000, 4 << 20])
def test_frames_open_where_they_lie(ours: Any, identity: bool, size: int, monkeypatch: Any) -> None:
    torch = Torch().torch
    monkeypatch.setattr(ours, "import_module", lambda name: {"torch": torch}.get(name, _Platform))
    processor = ours.Processor(Provider(), 128, identity)
    texts = [os.urandom(size) for _ in range(6)]
    frames = []
    for number, text in enumerate(texts):
        key, iv = key_of(number), os.urandom(12)
        aad = ours.identity_aad(key) if identity else None
        sealed = AESGCM(Provider().get_key(key.cache_salt)).encrypt(iv, text, aad)
        frame = bytes([0x81 if identity else 1]) + iv + sealed + bytes(7)
        frames.append(torch.frombuffer(bytearray(frame), dtype=torch.uint8).cuda())
    frames[1][0] = 9
    frames[2][13] ^= 1
    frames[4] = frames[4][:-8]
    targets = [torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in texts]
    keys = [key_of(number) for number in range(6)]
    assert processor.open_tensors(frames, targets, keys) == [1, 2, 4]
    for number, (target, text) in enumerate(zip(targets, texts, strict=True)):
        expected = bytes(size) if number in (1, 2, 4) else text
        assert target.cpu().numpy().tobytes() == expected
    assert processor.open_tensors(frames[:1], targets[:1], [key_of(1)]) == [0]


class _Platform:
    @staticmethod
    def create_event_notifier() -> Any:
        return None
