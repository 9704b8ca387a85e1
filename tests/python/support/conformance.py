# SPDX-License-Identifier: Apache-2.0
"""The one checker that every engine, kind of memory and way of calling goes through.

Messages are laid out in one painted buffer: apart or in place, at offsets that are aligned or not.
After the run the whole buffer is compared with what it must be, so a byte written too far, an input
that changed or an output that is shifted all show. A test's subject is a `Target`: an engine with a
kind of memory that it takes.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import gcd
from typing import Any, Protocol

import conformance_oracle as oracle
import warpcipher as wc
from conformance_device import DeviceMemory
from conformance_vectors import Vector

ALGORITHMS = {info.name: info for info in wc.algorithms()}
ENGINES = [info.name for info in wc.engines() if info.usable]
DEVICE_ENGINES = {info.name for info in wc.engines() if info.usable and info.memory == "device"}
DIRECTIONS = ("encrypt", "decrypt")
PAINT = 0xA5
GUARD = 24
"""Painted bytes that follow each input and output."""
MAX_SIZE = 1 << 20


class Memory(Protocol):
    """Where messages lie. A buffer is bytes that the library can be given parts of."""

    name: str
    stream: Any

    def allocate(self, content: bytes) -> Any:
        """A new buffer, aligned to 64 bytes or more."""

    def view(self, buffer: Any, start: int, size: int) -> Any:
        """Part of a buffer, sharing its memory."""

    def read(self, buffer: Any) -> bytes:
        """The content, after all work on it."""


class HostMemory:
    """A bytearray behind memoryviews."""

    name = "host"
    stream = None

    def allocate(self, content: bytes) -> memoryview:
        store = bytearray(len(content) + 64)
        address = ctypes.addressof(ctypes.c_char.from_buffer(store))
        start = -address % 64
        buffer = memoryview(store)[start : start + len(content)]
        buffer[:] = content
        return buffer

    def view(self, buffer: memoryview, start: int, size: int) -> memoryview:
        return buffer[start : start + size]

    def read(self, buffer: memoryview) -> bytes:
        return bytes(buffer)


HOST = HostMemory()


@dataclass(frozen=True)
class Target:
    """An engine, and where its messages lie."""

    engine: str
    memory: Memory = HOST

    def __str__(self) -> str:
        return f"{self.engine}-{self.memory.name}"


TARGETS = [Target(name) for name in ENGINES]
TARGETS += [Target(name, DeviceMemory()) for name in sorted(DEVICE_ENGINES)]


@dataclass(frozen=True)
class Placement:
    """Where input and output begin, in bytes past a multiple of 64."""

    name: str
    in_offset: int = 0
    out_offset: int = 0
    in_place: bool = False


PLACEMENTS = (
    Placement("apart"),
    Placement("in-place", in_place=True),
    Placement("misaligned", 1, 3),
    Placement("misaligned-in-place", 7, in_place=True),
    Placement("aligned-to-4-and-8", 4, 8),
)


@dataclass
class Slot:
    """One message in the buffer: its place, and what must be there afterwards."""

    vector: Vector
    direction: str
    in_start: int
    in_size: int
    out_start: int
    out_size: int
    status: str = "not run"
    buffer_size: int = 0

    @property
    def expected(self) -> bytes:
        v = self.vector
        if self.direction == "encrypt":
            return v.data
        return v.text if v.valid else bytes(self.out_size)

    @property
    def options(self) -> dict[str, Any]:
        v = self.vector
        return oracle.options(v.algorithm, v.iv, v.aad, v.tag_length)

    def describe(self) -> str:
        v = self.vector
        return f"{v.algorithm} {self.direction} of {v.source}, {len(v.text)} bytes"


class Image:
    """The buffer that holds a set of messages, before and after."""

    def __init__(self, vectors: Iterable[Vector], direction: str, placement: Placement) -> None:
        self.slots: list[Slot] = []
        parts: list[bytes] = []
        size = 0

        def place(content: bytes, offset: int) -> int:
            nonlocal size
            gap = -size % 64 + offset
            parts.extend((bytes([PAINT]) * gap, content, bytes([PAINT]) * GUARD))
            start = size + gap
            size = start + len(content) + GUARD
            return start

        for v in vectors:
            if direction == "encrypt" and not v.valid:
                continue
            source = v.text if direction == "encrypt" else v.data
            tag = v.tag_length if ALGORITHMS[v.algorithm].is_aead else 0
            room = len(v.data) if direction == "encrypt" else len(v.data) - tag
            if placement.in_place:
                rest = bytes([PAINT]) * max(0, room - len(source))
                start = target = place(source + rest, placement.in_offset)
            else:
                start = place(source, placement.in_offset)
                target = place(bytes([PAINT]) * room, placement.out_offset)
            self.slots.append(Slot(v, direction, start, len(source), target, room))
        self.before = b"".join(parts)
        for slot in self.slots:
            slot.buffer_size = len(self.before)

    def after(self, found: bytes) -> bytes:
        """The expected content. After a text whose padding was taken off anything may lie."""
        image = bytearray(self.before)
        for slot in self.slots:
            start, want = slot.out_start, slot.expected
            image[start : start + len(want)] = want
            end = start + slot.out_size
            image[start + len(want) : end] = found[start + len(want) : end]
        return bytes(image)

    def check(self, found: bytes) -> None:
        for slot in self.slots:
            want = "ok" if slot.vector.valid or slot.direction == "encrypt" else "InvalidTag"
            assert slot.status == want, f"{slot.describe()}: {slot.status}, expected {want}"
        expected = self.after(found)
        if found == expected:
            return
        at = next(i for i, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
        for slot in self.slots:
            if slot.out_start <= at < slot.out_start + slot.out_size:
                got = found[slot.out_start : slot.out_start + slot.out_size]
                raise AssertionError(
                    f"{slot.describe()}: byte {at - slot.out_start} is wrong\n"
                    f"got      {got[:96].hex()}\nexpected {slot.expected[:96].hex()}"
                )
        near = [slot.describe() for slot in self.slots if slot.in_start <= at][-1:]
        raise AssertionError(f"byte {at} of the buffer changed and is not output; near {near}")


Runner = Callable[[Target, Any, list[Slot]], None]


def run_each(target: Target, buffer: Any, slots: list[Slot]) -> None:
    """A call of Cipher for each message."""
    ciphers: dict[tuple[str, bytes, str | None], wc.Cipher] = {}
    for slot in slots:
        v = slot.vector
        identity = (v.algorithm, v.key, v.padding)
        if identity not in ciphers:
            ciphers[identity] = wc.Cipher(
                v.algorithm, v.key, padding=v.padding, engine=target.engine
            )
        call = getattr(ciphers[identity], slot.direction)
        data = target.memory.view(buffer, slot.in_start, slot.in_size)
        out = target.memory.view(buffer, slot.out_start, slot.out_size)
        try:
            result = call(data, out=out, stream=target.memory.stream, **slot.options)
        except wc.InvalidTag:
            slot.status = "InvalidTag"
        else:
            slot.status = "ok"
            assert len(result) == len(slot.expected), slot.describe()


def distinct_nonces(slots: Iterable[Slot]) -> list[list[Slot]]:
    """The messages in as few sets as go without a nonce used twice under one key, which a batch
    refuses. Published vectors do use one again."""
    sets: list[list[Slot]] = []
    seen: Counter[tuple[str, bytes, bytes]] = Counter()
    for slot in slots:
        v = slot.vector
        index = 0
        if ALGORITHMS[v.algorithm].is_aead and not v.algorithm.endswith("-siv"):
            index = seen[v.algorithm, v.key, v.iv]
            seen[v.algorithm, v.key, v.iv] += 1
        if index == len(sets):
            sets.append([])
        sets[index].append(slot)
    return sets


def run_batch(target: Target, buffer: Any, slots: list[Slot]) -> None:
    """One Batch with all messages, whatever their algorithms and directions."""
    for members in distinct_nonces(slots):
        batch = wc.Batch(engine=target.engine)
        handles = []
        for slot in members:
            v = slot.vector
            data = target.memory.view(buffer, slot.in_start, slot.in_size)
            out = target.memory.view(buffer, slot.out_start, slot.out_size)
            handle = batch.add(
                v.algorithm, slot.direction, v.key, data, out=out, padding=v.padding, **slot.options
            )
            handles.append(handle)
        batch.run(target.memory.stream)
        for slot, handle in zip(members, handles, strict=True):
            slot.status = "InvalidTag" if handle.status == "invalid tag" else handle.status
            if slot.status == "ok":
                assert len(handle.result()) == len(slot.expected), slot.describe()


def run_columns(target: Target, buffer: Any, slots: list[Slot]) -> None:
    """A columnar call for each set of messages that can share one."""

    def shared(slot: Slot) -> tuple[Any, ...]:
        v = slot.vector
        return (v.algorithm, slot.direction, len(v.iv), v.tag_length, v.padding or "")

    for members in distinct_nonces(slots):
        for _, group in groupby(sorted(members, key=shared), key=shared):
            run_one_columns(target, buffer, list(group))


def run_one_columns(target: Target, buffer: Any, slots: list[Slot]) -> None:
    v = slots[0].vector
    info = ALGORITHMS[v.algorithm]
    numbers: dict[bytes, int] = {}
    key_index = [numbers.setdefault(slot.vector.key, len(numbers)) for slot in slots]
    whole = target.memory.view(buffer, 0, slots[-1].buffer_size)
    options: dict[str, Any] = {}
    if info.iv != "none":
        options["ivs"] = b"".join(slot.vector.iv for slot in slots)
    if info.is_aead:
        lengths = [len(slot.vector.aad) for slot in slots]
        options |= {
            "aad": b"".join(slot.vector.aad for slot in slots),
            "aad_lengths": lengths,
            "aad_offsets": list(accumulate(lengths, initial=0))[:-1],
            "tag_length": v.tag_length,
        }
    columns = wc.run_columns(
        v.algorithm,
        slots[0].direction,
        list(numbers),
        whole,
        lengths=[slot.in_size for slot in slots],
        offsets=[slot.in_start for slot in slots],
        key_index=key_index,
        out=whole,
        out_offsets=[slot.out_start for slot in slots],
        padding=v.padding,
        engine=target.engine,
        stream=target.memory.stream,
        **options,
    )
    for slot, status, written in zip(slots, columns.status, columns.written, strict=True):
        slot.status = {0: "ok", 2: "InvalidTag"}.get(status, f"status {status}")
        assert written == (0 if status else len(slot.expected)), slot.describe()


RUNNERS: dict[str, Runner] = {"each": run_each, "batch": run_batch, "columns": run_columns}


def check(
    target: Target,
    vectors: Iterable[Vector],
    placement: Placement = PLACEMENTS[0],
    runner: str = "each",
) -> None:
    """Runs every vector in both directions, and compares every byte of the buffer."""
    chosen = list(vectors)
    for direction in DIRECTIONS:
        image = Image(chosen, direction, placement)
        buffer = target.memory.allocate(image.before)
        RUNNERS[runner](target, buffer, image.slots)
        image.check(target.memory.read(buffer))


def sample(vectors: Sequence[Vector], most: int) -> Sequence[Vector]:
    """All of them, or about `most` spread evenly. CAVP's GCM files have 15 for each set of lengths:
    a step that shares no factor with 15 takes another one of them from each set."""
    step = -(-len(vectors) // most)
    while gcd(step, 15) > 1:
        step += 1
    return vectors[::step]


def make_vector(
    algorithm: str,
    label: str,
    size: int,
    *,
    iv: bytes | None = None,
    aad: bytes = b"",
    tag_length: int = 16,
    padding: str | None = None,
) -> Vector:
    """A message with painted key, IV and text; the oracle says what must come of it."""
    info = ALGORITHMS[algorithm]
    key = oracle.painted(f"key {label}", info.key_size)
    if iv is None:
        iv = oracle.painted(f"iv {label}", info.iv_size)
    text = oracle.painted(f"text {label}", size)
    data = oracle.encrypt(algorithm, key, text, iv, aad, tag_length=tag_length, padding=padding)
    return Vector(label, algorithm, key, iv, aad, text, data, tag_length, padding)


def allowed_size(algorithm: str, size: int) -> int:
    """The size that the algorithm takes without padding, near `size`."""
    info = ALGORITHMS[algorithm]
    if info.whole_blocks:
        return size - size % info.block_size
    return max(size, info.least_size)


def longest(engine: str, algorithm: str) -> int:
    """The longest message that is worth its time: 1 MiB, less where every byte is slow."""
    info = ALGORITHMS[algorithm]
    by_bytes = algorithm.endswith("-cfb8")
    if engine == "reference":
        return 2100 if by_bytes else 9000
    if by_bytes:
        return 10_000
    return MAX_SIZE if info.parallel_encrypt or algorithm.startswith("aes") else 20_000
