# SPDX-License-Identifier: Apache-2.0
"""Random messages through every engine and way of calling against somebody else's code (see
conformance_oracle), and what may not be computed: texts that lie partly over their results."""

from __future__ import annotations

import io
import random
from typing import Any

import conformance as c
import conformance_oracle as oracle
import conformance_pieces as pieces
import pytest
import warpcipher as wc
from conformance_vectors import Vector
from format_cases import COBBLESTONES
from warpcipher import formats

AEADS = [name for name, info in c.ALGORITHMS.items() if info.is_aead]
every_target = pytest.mark.parametrize("target", c.TARGETS, ids=str)


def any_size(choose: random.Random, engine: str, algorithm: str) -> int:
    largest = c.longest(engine, algorithm)
    size = choose.randrange(1 + min(largest, choose.choice((64, 64, 5000, 5000, 5000, largest))))
    return c.allowed_size(algorithm, size)


def any_vector(choose: random.Random, engine: str) -> Vector:
    algorithm = choose.choice(list(c.ALGORITHMS))
    info = c.ALGORITHMS[algorithm]
    size = any_size(choose, engine, algorithm)
    options: dict[str, Any] = {}
    if info.is_aead:
        options = {
            "iv": choose.randbytes(info.iv_size),
            "aad": choose.randbytes(choose.randrange(choose.choice((1, 40, 300, 5000)))),
        }
        if algorithm.endswith("-ccm"):  # the nonce and the text's length share 15 bytes
            most = 13 if size < 1 << 16 else 12 if size < 1 << 24 else 11
            options["iv"] = choose.randbytes(choose.randint(7, most))
            options["tag_length"] = choose.choice((4, 6, 8, 10, 12, 14, 16, 16))
        elif info.iv == "any":
            options["iv"] = choose.randbytes(choose.choice((12, 12, choose.randint(1, 70))))
            options["tag_length"] = choose.choice((4, 8, 12, 13, 14, 15, 16, 16))
    elif algorithm == "chacha20":
        # Some texts end with the last block that the counter can number; it does not wrap.
        last = (1 << 32) - -(-size // info.block_size)
        first = choose.choice((last, choose.randint(0, last)))
        options = {"iv": min(first, (1 << 32) - 1).to_bytes(4, "little") + choose.randbytes(12)}
    elif info.iv != "none":
        # Some counters wrap within the text.
        high = choose.choice((b"", b"", b"\xff" * choose.randint(1, info.iv_size - 1)))
        options = {"iv": choose.randbytes(info.iv_size - len(high)) + high}
        options["iv"] = options["iv"][: info.iv_size]
    if info.takes_padding and choose.random() < 0.5:
        options["padding"] = "pkcs7"
        size = max(0, size - choose.randrange(info.block_size))
    # Few keys, so that messages share them.
    return c.make_vector(algorithm, f"{choose.randrange(3)}", size, **options)


@pytest.mark.cases(60)
@every_target
def test_batches(target: c.Target, choose: random.Random) -> None:
    vectors = [any_vector(choose, target.engine) for _ in range(choose.randint(1, 12))]
    placement = choose.choice(c.PLACEMENTS)
    offsets = choose.randrange(16), choose.randrange(16)
    shifted = c.Placement(placement.name, *offsets, in_place=placement.in_place)
    c.check(target, vectors, shifted, choose.choice(list(c.RUNNERS)))


@pytest.mark.cases(1)
@every_target
def test_lengths_to_1_mib(target: c.Target, choose: random.Random) -> None:
    """One message of a random length for every algorithm."""
    for algorithm in c.ALGORITHMS:
        size = c.allowed_size(algorithm, choose.randrange(c.longest(target.engine, algorithm) + 1))
        v = c.make_vector(algorithm, f"of {size} bytes", size)
        c.check(target, [v], choose.choice(c.PLACEMENTS), "each")


@pytest.mark.cases(20)
@pytest.mark.parametrize("engine", c.ENGINES)
def test_messages_in_pieces(engine: str, choose: random.Random) -> None:
    """Each piece has the IV that the one before left."""
    algorithm = choose.choice(pieces.CHAINED)
    size = choose.randrange(1, min(c.longest(engine, algorithm), 30_000))
    unit = c.ALGORITHMS[algorithm].block_size
    v = c.make_vector(algorithm, "pieces", c.allowed_size(algorithm, size))
    piece = max(size // choose.randint(1, 20), unit)
    pieces.check_pieces(engine, v, piece - piece % unit)


@pytest.mark.cases(40)
@pytest.mark.parametrize("engine", c.ENGINES)
def test_texts_over_their_results(engine: str, choose: random.Random) -> None:
    """Input and output in one buffer, anywhere: either both at the same place or apart, and right,
    or an error that leaves the buffer alone."""
    v = any_vector(choose, "reference")
    room = max(len(v.text), len(v.data))
    before = bytearray(choose.randbytes(3 * room + 100))
    places = [choose.randrange(len(before) - room + 1) for _ in range(2)]
    if choose.random() < 0.3:
        places[1] = places[0]
    start, end = places
    before[start : start + len(v.text)] = v.text
    buffer = bytearray(before)
    source = memoryview(buffer)[start : start + len(v.text)]
    out = memoryview(buffer)[end : end + len(v.data)]
    cipher = wc.Cipher(v.algorithm, v.key, padding=v.padding, engine=engine)
    options = oracle.options(v.algorithm, v.iv, v.aad, v.tag_length)
    apart = start + len(v.text) <= end or end + len(v.data) <= start or not v.text or not v.data
    try:
        cipher.encrypt(source, out=out, **options)
    except ValueError:
        assert start != end
        assert not apart
        assert buffer == before
    else:
        assert start == end or apart
        before[end : end + len(v.data)] = v.data
        assert buffer == before


@pytest.mark.cases(40)
def test_aesgcm_class(choose: random.Random) -> None:
    """`wc.aead.AESGCM` and the class of pyca/cryptography that it stands in for."""
    peers = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    key = choose.randbytes(choose.choice((16, 24, 32)))
    mine, theirs = wc.aead.AESGCM(key), peers.AESGCM(key)
    nonce = choose.randbytes(choose.choice((12, choose.randint(8, 128))))
    aad = choose.choice((None, b"", choose.randbytes(choose.randrange(2000))))
    text = choose.randbytes(choose.randrange(choose.choice((1, 50, 3000, 300_000))))
    sealed = theirs.encrypt(nonce, text, aad)
    assert mine.encrypt(nonce, text, aad) == sealed
    assert mine.decrypt(nonce, sealed, aad) == text
    if choose.random() < 0.5:
        sealed = sealed[: choose.randrange(len(sealed))]
    else:
        at = choose.randrange(len(sealed))
        sealed = sealed[:at] + bytes([sealed[at] ^ 1 << choose.randrange(8)]) + sealed[at + 1 :]
    with pytest.raises(wc.InvalidTag):
        mine.decrypt(nonce, sealed, aad)


@pytest.mark.cases(6)
@pytest.mark.parametrize("bits", [128, 256])
def test_cobblestone(bits: int, choose: random.Random) -> None:
    """Files of any size and context, both ways; any part of them."""
    peer = pytest.importorskip("cryptography.cobblestone", reason="needs cryptography 50 or later")
    case = next(case for case in COBBLESTONES if case.name.endswith(str(bits)))
    key, context = choose.randbytes(bits // 8), choose.randbytes(choose.randrange(200))
    options = formats.Options(context=context, engine=choose.choice(("auto", "cpu")))
    text = choose.randbytes(choose.randrange(choose.choice((1, 20_000, 300_000))))
    encryptor = getattr(peer, f"Cobblestone{bits}Encryptor")(key, context)
    sealed = encryptor.update(text) + encryptor.finalize()
    assert case.decrypt(sealed, key=key, options=options) == text
    with formats.open(io.BytesIO(sealed), key, options=options) as file:
        for _ in range(5):
            at, size = choose.randrange(len(text) + 9), choose.randrange(40_000)
            file.seek(at)
            assert file.read(size) == text[at : at + size]
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(text), out, key, options=options)
    decryptor = getattr(peer, f"Cobblestone{bits}Decryptor")(key, context)
    assert decryptor.update(out.getvalue()) + decryptor.finalize() == text
