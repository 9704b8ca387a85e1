# SPDX-License-Identifier: Apache-2.0
"""Damaged files: every change to an authenticated format is an error; nothing false is written."""

from __future__ import annotations

import io
import random
from itertools import pairwise

import pytest
from format_cases import CASES, SMALL_SEGMENTS, Case, paint
from warpcipher import InvalidTag, formats

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

REFUSED = (InvalidTag, formats.FormatError)


def refuse(case: Case, plain: bytes, damaged: bytes, **changes: object) -> str:
    """Both readers refuse; what the stream wrote is a prefix. Returns the error's text."""
    out = io.BytesIO()
    with pytest.raises(REFUSED) as failure:
        case.decrypt_to(out, damaged, **changes)
    assert plain.startswith(out.getvalue())
    assert len(out.getvalue()) < max(1, len(plain))
    arguments = {"key": case.key, "options": case.options, **changes}
    with (
        pytest.raises(REFUSED),
        formats.open(io.BytesIO(damaged), format=case.format, **arguments) as file,
    ):
        file.read()
    return str(failure.value)


@every_case
@pytest.mark.parametrize("size", [0, 1, 16, 40])
def test_every_truncation_of_a_small_file(case: Case, size: int) -> None:
    plain = paint(size)
    sealed = case.encrypt(plain)
    for length in range(len(sealed)):
        refuse(case, plain, sealed[:length])


@pytest.mark.parametrize("case", SMALL_SEGMENTS, ids=lambda case: case.name)
def test_every_truncation_of_many_small_chunks(case: Case) -> None:
    plain = paint(case.first_chunk + 3 * case.chunk)
    sealed = case.encrypt(plain)
    for length in range(len(sealed)):
        refuse(case, plain, sealed[:length])


@every_case
@pytest.mark.parametrize("extra", [0, 1, 100])
def test_sampled_truncations_and_chunk_edges(case: Case, extra: int) -> None:
    plain = paint(case.first_chunk + 4 * case.chunk + min(extra, case.chunk - 1))
    sealed = case.encrypt(plain)
    edges = case.chunk_starts(sealed)[:-1]
    lengths = {edge + step for edge in edges for step in (-1, 0, 1, 15, 16, 17)}
    lengths |= {random.Random(1).randrange(len(sealed)) for _ in range(40)}
    for length in sorted(lengths):
        if length < len(sealed):
            refuse(case, plain, sealed[:length])


@every_case
def test_a_file_cut_at_a_chunk_edge_is_called_truncated(case: Case) -> None:
    plain = paint(case.first_chunk + 2 * case.chunk + 1)
    sealed = case.encrypt(plain)
    message = refuse(case, plain, sealed[: case.chunk_starts(sealed)[2]])
    assert "truncated" in message or "cut" in message


@every_case
def test_every_bit_of_the_header(case: Case) -> None:
    plain = paint(case.first_chunk + case.chunk + 3)
    sealed = case.encrypt(plain)
    for position in range(case.header):
        for bit in range(8):
            damaged = bytearray(sealed)
            damaged[position] ^= 1 << bit
            refuse(case, plain, bytes(damaged))


@every_case
def test_every_byte_of_a_small_body(case: Case) -> None:
    plain = paint(50)
    sealed = case.encrypt(plain)
    for position in range(case.header, len(sealed)):
        damaged = bytearray(sealed)
        damaged[position] ^= 0x80
        assert "chunk 0" in (message := refuse(case, plain, bytes(damaged))) or "first" in message


@every_case
def test_the_failing_chunk_is_named(case: Case) -> None:
    plain = paint(case.first_chunk + 7 * case.chunk + 1)
    sealed = case.encrypt(plain)
    for index, start in enumerate(case.chunk_starts(sealed)[1:-1], start=1):
        damaged = bytearray(sealed)
        damaged[start] ^= 1
        assert f"chunk {index} failed authentication" in refuse(case, plain, bytes(damaged))


def chunks_of(case: Case, sealed: bytes) -> tuple[bytes, list[bytes]]:
    starts = case.chunk_starts(sealed)
    return sealed[: case.header], [sealed[start:end] for start, end in pairwise(starts)]


@every_case
def test_swapped_dropped_and_repeated_chunks(case: Case) -> None:
    plain = paint(case.first_chunk + 4 * case.chunk + 8)
    header, chunks = chunks_of(case, case.encrypt(plain))
    count = len(chunks)
    assert count == 6
    for i in range(count):
        refuse(case, plain, header + b"".join(chunks[:i] + chunks[i + 1 :]))
        refuse(case, plain, header + b"".join(chunks[: i + 1] + chunks[i:]))
        for j in range(i):
            swapped = list(chunks)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            refuse(case, plain, header + b"".join(swapped))


@every_case
def test_chunks_and_headers_of_another_file_under_the_same_key(case: Case) -> None:
    plain = paint(case.first_chunk + 2 * case.chunk + 8)
    header, chunks = chunks_of(case, case.encrypt(plain))
    other_header, other_chunks = chunks_of(case, case.encrypt(plain))
    refuse(case, plain, other_header + b"".join(chunks))
    for i in range(len(chunks)):
        refuse(case, plain, header + b"".join([*chunks[:i], other_chunks[i], *chunks[i + 1 :]]))


@every_case
@pytest.mark.parametrize("size", [0, 5, "edge", "many"])
def test_trailing_garbage(case: Case, size: int | str) -> None:
    named = {"edge": case.first_chunk, "many": case.first_chunk + 3 * case.chunk + 2}
    plain = paint(named[size] if isinstance(size, str) else size)
    sealed = case.encrypt(plain)
    full = case.chunk + case.overhead
    for extra in (1, 15, 16, 17, case.overhead, full - 1, full, full + 1):
        refuse(case, plain, sealed + bytes(extra))
    refuse(case, plain, sealed + sealed)


@every_case
def test_wrong_key_and_wrong_context(case: Case) -> None:
    plain = paint(case.chunk * 2)
    sealed = case.encrypt(plain)
    assert "wrong key" in refuse(case, plain, sealed, key=case.wrong_key)
    if case.context:
        refuse(case, plain, sealed, options=formats.Options(context=b"other"))
        refuse(case, plain, sealed, options=formats.Options())


@every_case
def test_no_error_shows_the_key(case: Case) -> None:
    plain = paint(100)
    secret = case.secret
    message = refuse(case, plain, case.encrypt(plain)[:-1])
    for shown in (message, repr(case.key) if not isinstance(case.key, bytes) else ""):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown


@every_case
def test_random_bytes_are_refused(case: Case) -> None:
    noise = random.Random(2)
    for size in [*range(120), 5000, 40000]:
        with pytest.raises(REFUSED):
            case.decrypt(noise.randbytes(size))


def test_the_reader_refuses_a_file_that_shrinks_while_it_is_read() -> None:
    case = CASES[0]
    file = io.BytesIO(case.encrypt(paint(200_000)))
    with formats.open(file, case.key, options=case.options) as reader:
        assert reader.read(4) == paint(4)
        file.truncate(100_000)
        reader.seek(150_000)
        with pytest.raises(formats.FormatError, match="ended at byte 147656"):
            reader.read(10)
