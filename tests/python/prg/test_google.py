# SPDX-License-Identifier: Apache-2.0
"""Keys of Google's distributed_point_functions: those that it made and evaluated, keys of ours as
protobuf's own parser reads them, and damaged ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpcipher.prg import dpf

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "google_dpf.txt"
LINES = [line.split() for line in VECTORS.read_text().splitlines() if not line.startswith("#")]
CASES = [(first, second) for first, second in zip(LINES[::2], LINES[1::2], strict=True)]
BETA = {"gf2": 1, "u32": 0x12345678, "u64": 0x123456789ABCDEF0}


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0][0]}-{case[0][1]}")
def test_keys_that_google_made(case: Any, engine: str) -> None:
    group, blocks = case[0][0], int(case[0][1])
    bits = blocks + (7 if group == "gf2" else 0)
    shares = []
    for party, (_, _, key, digest) in enumerate(case):
        keys = dpf.Keys.from_google([bytes.fromhex(key)], bits, group)
        assert keys.party == party
        assert keys.to_google() == [bytes.fromhex(key)]
        assert dpf.Keys.from_bytes(keys.to_bytes()).to_google() == keys.to_google()
        shares.append(dpf.evaluate_all(keys, engine=engine))
        assert hashlib.sha256(shares[-1].tobytes()).hexdigest() == digest
        points = [0, (1 << bits) - 1]
        ends = dpf.evaluate(keys, points, engine=engine)
        if group != "gf2":
            assert (ends == shares[-1][:, points]).all()
    point = (1 << blocks) - 1 - blocks // 3
    total = shares[0] ^ shares[1] if group == "gf2" else shares[0] + shares[1]
    if group == "gf2":
        total, point = np.unpackbits(total, axis=1, bitorder="little"), 128 * point + 77
    assert np.flatnonzero(total[0]).tolist() == [point]
    assert total[0, point] == BETA[group]


def messages() -> Any:
    """DpfKey of protobuf's own library, from the field numbers of the .proto."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="dpf.proto", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in {
        "Block": [("high", 1, kinds.TYPE_UINT64, ""), ("low", 2, kinds.TYPE_UINT64, "")],
        "Word": [
            ("seed", 1, kinds.TYPE_MESSAGE, "Block"),
            ("left", 2, kinds.TYPE_BOOL, ""),
            ("right", 3, kinds.TYPE_BOOL, ""),
        ],
        "Integer": [("short", 1, kinds.TYPE_UINT64, ""), ("long", 2, kinds.TYPE_MESSAGE, "Block")],
        "Value": [
            ("integer", 1, kinds.TYPE_MESSAGE, "Integer"),
            ("xor", 4, kinds.TYPE_MESSAGE, "Integer"),
        ],
        "Key": [
            ("seed", 1, kinds.TYPE_MESSAGE, "Block"),
            ("words", 2, kinds.TYPE_MESSAGE, "Word"),
            ("party", 3, kinds.TYPE_INT32, ""),
            ("values", 5, kinds.TYPE_MESSAGE, "Value"),
        ],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            repeated = field in ("words", "values")
            message.field.add(
                name=field,
                number=number,
                type=kind,
                type_name=f".{of}" if of else None,
                label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Key"))


@pytest.mark.parametrize("group", ["gf2", "u32", "u64"])
def test_keys_of_ours_as_protobuf_reads_them(group: Any) -> None:
    key_class = messages()
    both = dpf.generate([700, 3], [1, 0], 12, group=group)
    for party, keys in enumerate(both):
        written = keys.to_google()
        depth = keys.key_size // 16 - 3
        for i, text in enumerate(written):
            record = keys[i].to_bytes()[16:]
            key = key_class.FromString(text)
            root = key.seed.high << 64 | key.seed.low
            assert root | party == int.from_bytes(record[:16], "little")
            assert key.party == party
            assert len(key.words) == depth
            assert len(key.values) == {"gf2": 1, "u32": 4, "u64": 2}[group]
            assert [w.left for w in key.words] == [
                bool(record[16 * n] & 1) for n in range(1, depth + 1)
            ]
        again = dpf.Keys.from_google(written, 12, group)
        assert again.to_bytes() == keys.to_bytes()


def test_what_is_refused() -> None:
    mine, theirs = dpf.generate([700], None, 12)
    text = mine.to_google()[0]
    for given, bits, group in (
        ([text[:-1]], 12, "gf2"),
        ([text], 13, "gf2"),
        ([text], 12, "u32"),
        ([text + b"\x20\x01"], 12, "gf2"),  # a field that is reserved
        ([text + b"\x19" + bytes(8)], 12, "gf2"),  # a type that no field has
        ([text + b"\x18\x02"], 12, "gf2"),
        ([b"\xff" * 11], 12, "gf2"),
        ([b""], 12, "gf2"),
        ([], 12, "gf2"),
        ([text, theirs.to_google()[0]], 12, "gf2"),
    ):
        with pytest.raises(ValueError, match="key"):
            dpf.Keys.from_google(given, bits, group)  # type: ignore[arg-type]
    for bits in (-1, 64, 1 << 64):
        with pytest.raises(ValueError, match=r"bits is .*: expected 0 to 63"):
            dpf.Keys.from_google([text], bits)
    for wrong in (text, [5], "text"):  # one key and no list of them
        with pytest.raises(TypeError):
            dpf.Keys.from_google(wrong, 12)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="aes-128-half"):
        dpf.generate([1], None, 12, prg="aes-128-half")[0].to_google()
