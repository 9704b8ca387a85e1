# SPDX-License-Identifier: Apache-2.0
"""Chunks of a file, read and decrypted into host memory: against pyca/cryptography's AESGCM."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import warpcipher as wc
from chunk_cases import GCM, Chunks, make_chunks
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from format_cases import paint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warpcipher import formats


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Callable[[bytes], BinaryIO]]:
    opened: list[BinaryIO] = []

    def write(data: bytes) -> BinaryIO:
        path = tmp_path / f"file{len(opened)}"
        path.write_bytes(data)
        opened.append(path.open("rb"))
        return opened[-1]

    yield write
    for one in opened:
        one.close()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_layout(file: Callable[[bytes], BinaryIO], data: st.DataObject) -> None:
    flags = {
        name: data.draw(st.booleans(), label=name)
        for name in ("iv_in_file", "tags_given", "aad", "gaps", "parts")
    }
    made = make_chunks(
        data.draw(st.integers(0, 1 << 30)),
        data.draw(st.lists(st.sampled_from([0, 1, 15, 16, 17, 300, 5000]), min_size=1)),
        keys=data.draw(st.sampled_from([1, 1, 3])),
        **flags,
    )
    expected = made.expected()
    source: Any = bytes(made.data)
    if data.draw(st.booleans(), label="a file"):
        source = file(source).fileno()
    out = bytearray(b"\xa5" * (len(expected) + 9))
    made.read(
        source,
        out,
        threads=data.draw(st.sampled_from([0, 1, 4])),
        piece_size=data.draw(st.sampled_from([0, 1, 100, 6000])),
    )
    assert out[: len(expected)] == expected
    assert out[len(expected) :] == b"\xa5" * 9, "nothing else is written"


def test_places_of_their_own(file: Callable[[bytes], BinaryIO]) -> None:
    made = make_chunks(1, [100, 0, 50, 7])
    out = bytearray(b"\xa5" * 300)
    made.read(file(made.data).fileno(), out, out_offsets=[200, 0, 10, 100])
    wanted = bytearray(b"\xa5" * 300)
    for place, text in zip([200, 0, 10, 100], made.plain, strict=True):
        wanted[place : place + len(text)] = text
    assert out == wanted


@pytest.mark.parametrize("tags_given", [False, True])
@pytest.mark.parametrize("parts", [False, True])
def test_the_first_bad_chunk_is_named_and_all_is_wiped(
    file: Callable[[bytes], BinaryIO], tags_given: bool, parts: bool
) -> None:
    made = make_chunks(2, [700] * 40, tags_given=tags_given, parts=parts)
    places = [1000 * i + 5 for i in range(40)]
    for bad in (0, 13, 39):
        data = bytearray(made.data)
        for chunk in range(bad, 40):
            data[made.columns["offsets"][chunk] + 3] ^= 1
        out = bytearray(b"\xa5" * 40000)
        with pytest.raises(wc.InvalidTag, match=f"chunk {bad} failed authentication"):
            made.read(file(data).fileno(), out, out_offsets=places, threads=4, piece_size=1500)
        wanted = bytearray(b"\xa5" * 40000)
        takes = made.columns.get("takes") or made.columns["lengths"]
        for place, take in zip(places, takes, strict=True):
            wanted[place : place + take] = bytes(take)
        assert out == wanted


def test_a_given_tag_that_is_wrong() -> None:
    made = make_chunks(3, [10, 20], tags_given=True)
    tags = bytearray(made.columns["tags"])
    tags[17] ^= 128
    out = bytearray(30)
    with pytest.raises(wc.InvalidTag, match="chunk 1 failed"):
        made.read(made.data, out, tags=tags)
    assert not any(out)


def test_a_file_that_ends_too_early(file: Callable[[bytes], BinaryIO]) -> None:
    made = make_chunks(4, [1000] * 8)
    end = made.columns["offsets"][6] + 1015  # in the tag
    out = bytearray(b"\xa5" * 8000)
    with pytest.raises(formats.FormatError, match=f"ended at byte {end} .* in chunk 6"):
        made.read(file(made.data[:end]).fileno(), out, piece_size=2500)
    assert not any(out)


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("tags_given", [False, True])
def test_a_bad_chunk_before_the_end_of_the_file(
    file: Callable[[bytes], BinaryIO], parts: bool, tags_given: bool
) -> None:
    """The first that failed is named, though the end is noticed before any tag is checked."""
    made = make_chunks(14, [1000] * 8, parts=parts, tags_given=tags_given)
    data = bytearray(made.data)
    for bad in (4, 2):
        data[made.columns["offsets"][bad]] ^= 1
    out = bytearray(b"\xa5" * 8000)
    total = len(made.expected())
    with pytest.raises(wc.InvalidTag, match="chunk 2 failed"):
        made.read(file(data[: made.columns["offsets"][6] + 9]).fileno(), out, piece_size=1 << 20)
    assert out == bytes(total) + b"\xa5" * (8000 - total)


def test_the_same_chunk_twice_of_a_file_that_ends(file: Callable[[bytes], BinaryIO]) -> None:
    made = make_chunks(15, [1000])
    part = {name: value * 2 for name, value in made.columns.items()}
    end = made.columns["offsets"][0] + 500
    with pytest.raises(formats.FormatError, match=f"ended at byte {end} .* in chunk 0"):
        made.read(file(made.data[:end]).fileno(), bytearray(2000), **part)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    made = make_chunks(5, [10])
    out = bytearray(b"\xa5" * 10)
    with (tmp_path / "file").open("wb") as writable:
        with pytest.raises(OSError, match="Bad file descriptor"):
            made.read(writable.fileno(), out)
        number = writable.fileno()
    assert not any(out)
    with pytest.raises(OSError, match="Bad file descriptor"):
        made.read(number, out)
    read_end, write_end = os.pipe()
    with pytest.raises(OSError, match="Illegal seek"):
        made.read(read_end, out)
    os.close(read_end)
    os.close(write_end)


WRONG = [
    ({"lengths": [10]}, "file_offsets has 2 entries|offsets has 2 entries"),
    ({"ivs": bytes(23)}, "ivs has 23 bytes, expected 12 for each of 2 chunks"),
    ({"tags": bytes(31)}, "tags has 31 bytes, expected 16 for each of 2"),
    ({"tag_length": 5}, "takes a tag of 4, 8 or 12 to 16 bytes, got 5"),
    ({"skips": [0, 5]}, "skips and takes go together"),
    ({"skips": [0, 5], "takes": [10, 6]}, "chunk 1: wanted range"),
    ({"out_offsets": [0, 13]}, "chunk 1: out range"),
    ({"out_offsets": [5, 0]}, "chunk 0: writes where chunk 1 does"),
    ({"out_offsets": [9, 0]}, "chunk 0: writes where chunk 1 does"),
    ({"key_index": [0, 1]}, "chunk 1: key index 1, but there are 1 keys"),
    ({"key_index": [0]}, "key_index has 1 entries"),
    ({"aad": b"xy", "aad_offsets": [0, 1], "aad_lengths": [1, 2]}, "chunk 1: aad range"),
    ({"offsets": [0, 1 << 63]}, "chunk 1: lies at byte 9223372036854775808"),
    ({"lengths": [10, 1 << 60]}, "chunk 1: has 1152921504606846976 bytes"),
    ({"ivs": None, "iv_length": 0}, "takes an IV"),
]


@pytest.mark.parametrize(("changes", "text"), WRONG)
def test_what_cannot_be_right(
    changes: dict[str, Any], text: str, file: Callable[[bytes], BinaryIO]
) -> None:
    made = make_chunks(6, [10, 10])
    out = bytearray(b"\xa5" * 22)
    with pytest.raises(ValueError, match=text):
        made.read(file(made.data).fileno(), out, **changes)
    assert out == b"\xa5" * 22, "nothing was written"


def test_other_arguments_that_are_wrong() -> None:
    made = make_chunks(7, [10])
    with pytest.raises(ValueError, match="authenticates nothing"):
        formats.read_chunks(b"", "aes-256-ctr", bytes(32), bytearray(9), offsets=[], lengths=[])
    with pytest.raises(ValueError, match="chunk 0: in range"):
        made.read(made.data[:-1], bytearray(10))
    with pytest.raises(BufferError, match="read-only"):
        made.read(made.data, bytes(10))
    with pytest.raises(ValueError, match="2 keys and no key_index"):
        formats.read_chunks(made.data, GCM, [bytes(32), bytes(32)], bytearray(10), **made.columns)
    with pytest.raises(wc.EngineError, match="unknown engine"):
        made.read(made.data, bytearray(10), engine="nope")


@pytest.mark.parametrize("name", ["source", "ivs", "tags", "aad"])
def test_what_is_read_is_apart_from_out(name: str) -> None:
    """A failure would wipe the caller's only copy."""
    made = make_chunks(11, [40, 60], tags_given=True, aad=True)
    given = bytes(made.data) if name == "source" else made.columns[name]
    memory = bytearray(given + b"\xa5" * 150)
    before = bytes(memory)
    shared = memoryview(memory)[: len(given)]
    out = memoryview(memory)[len(given) - 1 :]
    source = shared if name == "source" else made.data
    changes = {} if name == "source" else {name: shared}
    with pytest.raises(ValueError, match=f"{name} overlaps out"):
        made.read(source, out, **changes)
    assert memory == before
    made.read(source, out[1:], **changes)
    assert out[1:101] == made.expected()


@pytest.mark.parametrize("name", ["offsets", "lengths", "out_offsets", "skips", "takes"])
def test_columns_that_out_overwrites(name: str) -> None:
    made = make_chunks(12, [16] * 8, parts=True)
    made.columns["out_offsets"] = [16 * i for i in range(8)]
    out = bytearray(128)
    column = memoryview(out)[:64].cast("Q")
    for i, value in enumerate(made.columns[name]):
        column[i] = value
    expected = bytearray(out)
    skips, takes = made.columns["skips"], made.columns["takes"]
    for i, text in enumerate(made.plain):
        expected[16 * i : 16 * i + takes[i]] = text[skips[i] : skips[i] + takes[i]]
    made.read(made.data, out, threads=1, piece_size=1, **{name: column})
    assert out == expected


@pytest.mark.parametrize("name", ["threads", "piece_size", "tag_length", "iv_length", "source"])
def test_numbers_that_are_none(name: str) -> None:
    made = make_chunks(13, [10])
    wrong = [(-1, ValueError), (1 << 64, ValueError)]
    if name != "source":
        wrong += [("3", TypeError), (1.5, TypeError), (None, TypeError)]
    for value, error in wrong:
        out = bytearray(b"\xa5" * 10)
        arguments = {"source": made.data, name: value}
        with pytest.raises(error, match=f"^{name} is "):
            made.read(arguments.pop("source"), out, **arguments)
        assert out == b"\xa5" * 10


def test_nothing_to_read() -> None:
    formats.read_chunks(b"", GCM, bytes(32), bytearray(), offsets=[], lengths=[], ivs=b"")


@pytest.mark.parametrize("threads", [1 << 61, 1 << 62, (1 << 64) - 1])
@pytest.mark.parametrize("piece_size", [0, 1 << 40, (1 << 64) - 1])
def test_more_threads_and_longer_pieces_than_there_can_be(threads: int, piece_size: int) -> None:
    made = make_chunks(10, [100])
    out = bytearray(100)
    made.read(made.data, out, threads=threads, piece_size=piece_size)
    assert out == made.expected()


def test_beyond_4_gib(tmp_path: Path) -> None:
    plain, nonce, key = paint(40000), bytes(range(12)), bytes(32)
    offset = (5 << 30) + 3
    with (tmp_path / "sparse").open("w+b") as sparse:
        sparse.seek(offset)
        sparse.write(AESGCM(key).encrypt(nonce, plain, None))
        sparse.flush()
        out = bytearray(40000)
        formats.read_chunks(
            sparse.fileno(), GCM, key, out, offsets=[offset], lengths=[40000], ivs=nonce
        )
    assert out == plain


def test_arrays() -> None:
    numpy = pytest.importorskip("numpy")
    made = make_chunks(8, [400, 800])
    out = numpy.zeros(300, numpy.float32)
    made.read(made.data, out)
    assert out.tobytes() == made.expected()


def test_an_interrupt_wipes(tmp_path: Path) -> None:
    """A signal is noticed between pieces, though the call never comes back to Python meanwhile."""
    size, key = 64 << 20, bytes(32)
    path = tmp_path / "file"
    path.write_bytes(AESGCM(key).encrypt(bytes(12), bytes(size), None))

    class AlarmError(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise AlarmError

    # The same chunk over and over: as long as it takes.
    count = 400
    out = bytearray(b"\xa5" * 64)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with path.open("rb") as file, pytest.raises(AlarmError):
            formats.read_chunks(
                file.fileno(),
                GCM,
                key,
                out,
                offsets=[0] * count,
                lengths=[size] * count,
                ivs=bytes(12 * count),
                skips=[0] * count,
                takes=[64] + [0] * (count - 1),
            )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not any(out)


@pytest.mark.parametrize("from_file", [True, False])
def test_ctrl_c_in_the_middle_of_a_read(tmp_path: Path, from_file: bool) -> None:
    """SIGINT, sent when the first chunks have been written: KeyboardInterrupt comes out of the
    call, nothing of the plaintext stays, and the next call works."""
    length, count, key = 1 << 20, 30_000, bytes(32)
    sealed = AESGCM(key).encrypt(bytes(12), b"p" * length, None)
    (tmp_path / "file").write_bytes(sealed)
    out = bytearray(b"\xa5" * (64 * count))
    columns = {
        "offsets": [0] * count,  # the same chunk: half a minute if nobody stops it
        "lengths": [length] * count,
        "ivs": bytes(12 * count),
        "skips": [0] * count,
        "takes": [64] * count,
    }
    ended = threading.Event()

    def press() -> None:
        while out[0] == 0xA5 and not ended.wait(0.01):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    finger = threading.Thread(target=press)
    try:
        with (tmp_path / "file").open("rb") as opened:
            source: Any = opened.fileno() if from_file else sealed
            finger.start()
            with pytest.raises(KeyboardInterrupt):
                formats.read_chunks(source, GCM, key, out, **columns)
            assert not any(out)
            one = {name: value[: len(value) // count] for name, value in columns.items()}
            formats.read_chunks(source, GCM, key, out, **one)
            assert out[:64] == b"p" * 64
    finally:
        ended.set()
        finger.join()
        signal.signal(signal.SIGINT, before)


def _read_or_not(made: Chunks, descriptor: int, out: bytearray) -> None:
    with contextlib.suppress(OSError):
        made.read(descriptor, out)


def test_a_file_that_is_closed_meanwhile(tmp_path: Path) -> None:
    """The call has a descriptor of its own: no file that is opened meanwhile takes its place."""
    made = make_chunks(9, [1 << 16] * 200)
    path = tmp_path / "file"
    path.write_bytes(made.data)
    expected = made.expected()
    for _ in range(5):
        file = path.open("rb")
        out = bytearray(len(expected))
        thread = threading.Thread(target=_read_or_not, args=(made, file.fileno(), out))
        thread.start()
        time.sleep(0.001)
        file.close()
        thread.join()
        assert out in (expected, bytes(len(out)))
