# SPDX-License-Identifier: Apache-2.0
"""Distributed point functions of E. Boyle, N. Gilboa and Y. Ishai (2016), with early termination:
two keys, of which neither reveals the point or the value, and whose shares at each point add up to
the value at the point and to 0 elsewhere. With prg="aes-128-half" the half-trees of X. Guo and
others, 2023: half the work for all points, by a stronger assumption.

Keys as bytes:

    "wdpf" | version: 1 | prg | group | bits | party | 3 zeros | 4: count, little-endian | records

src/prg/point_keys.hpp draws a record, of 16 (depth + 3) bytes. docs/guides/private-computation.md
has the numbers.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any, Literal, get_args

from .. import _native
from .._uncopied import Uncopied
from ..arguments import parse_device, require_int, view_bytes
from ..arrays import choose_stream, finished, library_of, size_of, stream_pointer
from ..random.arrays import NewArray, choose_library, open_target
from . import google
from .generators import Prg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from .._types import Buffer, StreamLike

Group = Literal["gf2", "u32", "u64"]

PRGS: tuple[Prg, ...] = get_args(Prg)
GROUPS: tuple[Group, ...] = ("gf2", "u32", "u64")
DTYPES = {"gf2": "uint8", "u32": "uint32", "u64": "uint64"}
MOST_BITS = 63
HEADER = struct.Struct("<4sBBBBB3xI")
MAGIC, VERSION = b"wdpf", 1


class Keys(Uncopied):
    """Keys of one party for a batch of point functions, made by `generate` or `from_bytes`. They
    are secrets: wiped at the end, by `wipe` or `with`; `repr` shows none, `pickle` refuses them.
    A slice has its own copy of its keys.
    """

    __slots__ = ("_bits", "_group", "_party", "_prg", "_records")
    _instead = "send to_bytes() over a channel that keeps secrets"

    def __init__(self, prg: Prg, group: Group, bits: int, party: int, records: bytearray) -> None:
        self._prg, self._group, self._bits, self._party = prg, group, bits, party
        self._records = records

    @property
    def prg(self) -> Prg:
        """The generator."""
        return self._prg

    @property
    def group(self) -> Group:
        """Where values are: "gf2", "u32" (integers mod 2^32) or "u64"."""
        return self._group

    @property
    def bits(self) -> int:
        """Points are below 2^bits."""
        return self._bits

    @property
    def party(self) -> int:
        """0 or 1."""
        return self._party

    @property
    def key_size(self) -> int:
        """Bytes of one key, without the header of `to_bytes`."""
        return _native.dpf_record_size(self._prg, self._group, self._bits)

    def __len__(self) -> int:
        return len(self._records) // self.key_size

    def __getitem__(self, some: int | slice) -> Keys:
        chosen = range(len(self))[some]
        numbers = (chosen,) if isinstance(chosen, int) else chosen
        size = self.key_size
        records = bytearray(size * len(numbers))
        for i, k in enumerate(numbers):
            records[size * i : size * (i + 1)] = self._records[size * k : size * (k + 1)]
        return Keys(self._prg, self._group, self._bits, self._party, records)

    def __repr__(self) -> str:
        return (
            f"<warpcipher.prg.dpf.Keys: {len(self)} of party {self._party}, {self._bits} bits to "
            f"{self._group}, {self._prg}>"
        )

    def to_bytes(self) -> bytes:
        """The keys, in plain: whoever has both parties' keys has the points and values."""
        head = (MAGIC, VERSION, PRGS.index(self._prg), GROUPS.index(self._group))
        return HEADER.pack(*head, self._bits, self._party, len(self)) + self._records

    @classmethod
    def from_bytes(cls, data: Buffer) -> Keys:
        """The keys that `to_bytes` wrote. ValueError: anything else, as far as that can be seen:
        a key has no redundancy, so most changes to one give another that is valid."""
        text = view_bytes("data", data)
        if len(text) < HEADER.size or text[:4] != MAGIC:
            raise ValueError(
                "the bytes are not keys of point functions: they do not begin with wdpf"
            )
        _, version, prg, group, bits, party, count = HEADER.unpack_from(text)
        if version != VERSION:
            raise ValueError(f"the keys are of version {version}: expected {VERSION}")
        if prg >= len(PRGS) or group >= len(GROUPS) or bits > MOST_BITS or any(text[9:12]):
            raise ValueError("the header of the keys is damaged")
        size = _native.dpf_record_size(PRGS[prg], GROUPS[group], bits)
        if len(text) != HEADER.size + count * size:
            raise ValueError(
                f"{count} keys of {bits} bits have {HEADER.size + count * size} bytes, and there "
                f"are {len(text)}"
            )
        keys = cls(PRGS[prg], GROUPS[group], bits, party, bytearray(text[HEADER.size :]))
        _native.dpf_check(keys._held())
        return keys

    def to_google(self) -> list[bytes]:
        """Each key as a serialized DpfKey of Google's distributed_point_functions, of one hierarchy
        level: of integers of 32 or 64 bits and 2^bits points; gf2 as XorWrapper<uint128> and
        2^(bits - 7) points, as its PIR has it. ValueError: the keys are not of "aes-128-mmo".
        """
        if self._prg != "aes-128-mmo":
            raise ValueError(f"the keys are of {self._prg}: Google's library has aes-128-mmo")
        size, text = self.key_size, memoryview(self._records)
        return [
            google.encode(text[at : at + size], size // 16 - 3, self._group)
            for at in range(0, len(text), size)
        ]

    @classmethod
    def from_google(cls, keys: Sequence[bytes], bits: int, group: Group = "gf2") -> Keys:
        """Keys of one party that Google's library, or `to_google`, has serialized.

        bits, group: as of `generate`; the keys do not say them. ValueError: damaged, of another
        domain or group, of several hierarchy levels, or of both parties.

        >>> from warpcipher.prg import dpf
        >>> mine, theirs = dpf.generate([3], bits=9)
        >>> dpf.Keys.from_google(mine.to_google(), 9).to_bytes() == mine.to_bytes()
        True
        """
        width = require_int("bits", bits, 0, MOST_BITS)
        depth = _native.dpf_record_size("aes-128-mmo", group, width) // 16 - 3
        decoded = [google.decode(bytes(view_bytes("a key", key)), depth, group) for key in keys]
        if len({party for party, _ in decoded}) != 1:
            raise ValueError("the keys are not of one party, or there are none")
        records = bytearray(b"".join(record for _, record in decoded))
        made = cls("aes-128-mmo", group, width, decoded[0][0], records)
        _native.dpf_check(made._held())
        return made

    def wipe(self) -> None:
        """Overwrites the keys with zeros, and forgets them."""
        self._records[:] = bytes(len(self._records))
        self._records = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()

    def __del__(self) -> None:
        if hasattr(self, "_records"):
            self.wipe()

    def _held(self) -> tuple[str, str, int, int, bytearray]:
        return self._prg, self._group, self._bits, self._party, self._records


def generate(
    points: Any,
    values: Any = None,
    bits: int = 32,
    *,
    group: Group = "gf2",
    prg: Prg = "aes-128-mmo",
) -> tuple[Keys, Keys]:
    """Keys of both parties for a batch of functions: f(points[i]) = values[i], and 0 elsewhere.

    points: integers below 2^bits, one for each function: any sequence, or an array of 64 bits.
    values: integers of the group; None: 1 for all.
    bits:   0 to 63.
    group:  "gf2" (a bit; the sum is XOR), "u32" or "u64" (integers mod 2^32 or 2^64).
    prg:    as of `prg.expand`; "aes-128-half" makes half-trees.
    ValueError: out of range; the text does not say the number. Time does not depend on points and
    values.

    >>> from warpcipher.prg import dpf
    >>> mine, theirs = dpf.generate([5], [100], bits=4, group="u32")
    >>> dpf.evaluate(mine, [4, 5]) + dpf.evaluate(theirs, [4, 5])
    array([[  0, 100]], dtype=uint32)
    """
    width = require_int("bits", bits, 0, MOST_BITS)
    if not hasattr(points, "__len__"):
        raise TypeError(f"points is {type(points).__name__}: expected a sequence of integers")
    count = len(points)
    values = [1] * count if values is None else values
    random = bytearray(os.urandom(32 * count))
    try:
        made = _native.dpf_generate(prg, group, width, points, values, random)
    finally:
        random[:] = bytes(len(random))
    return Keys(prg, group, width, 0, made[0]), Keys(prg, group, width, 1, made[1])


def evaluate(
    keys: Keys,
    at: Any,
    *,
    out: Any = None,
    device: object = "cpu",
    library: str | None = None,
    engine: str = "auto",
    stream: StreamLike = None,
) -> Any:
    """The shares of each key at some points: an array of (keys, points).

    at:     integers: points for all keys; or for each key its own, as an array of (keys, points).
    out:    a writable array of so many values: uint8 of 0 and 1 (gf2), uint32 or uint64. None: a
            new one of `library`, on `device`, as of `warpcipher.random.Generator`.
    engine, stream: as for `prg.expand`.
    ValueError: a point is out of range.
    """
    shape: Any = getattr(at, "shape", None)
    same = shape is None or len(shape) == 1
    if not same and (len(shape) != 2 or shape[0] != len(keys)):
        raise ValueError(
            f"at has the shape {tuple(shape)}: expected (points,) or ({len(keys)}, points)"
        )
    each = len(at) if same else shape[1]
    points = at if same else at.reshape(-1)

    def call(target: Any, pointer: int) -> None:
        _native.dpf_evaluate(keys._held(), points, same, target, engine, pointer)

    return _fill((len(keys), each), keys, out, device, library, stream, call)


def evaluate_all(
    keys: Keys,
    *,
    out: Any = None,
    device: object = "cpu",
    library: str | None = None,
    engine: str = "auto",
    stream: StreamLike = None,
) -> Any:
    """The shares of each key at all points: an array of (keys, 2^bits) of uint32 or uint64. Of
    gf2 (keys, 2^bits / 8), at least a byte, of uint8: point p is bit p % 8 of byte p // 8.

    Arguments as for `evaluate`.

    >>> from warpcipher.prg import dpf
    >>> mine, theirs = dpf.generate([9], bits=4)
    >>> dpf.evaluate_all(mine) ^ dpf.evaluate_all(theirs)
    array([[0, 2]], dtype=uint8)
    """
    each = 1 << keys.bits
    if keys.group == "gf2":
        each = max(1, each // 8)

    def call(target: Any, pointer: int) -> None:
        _native.dpf_evaluate_all(keys._held(), target, engine, pointer)

    return _fill((len(keys), each), keys, out, device, library, stream, call)


def _fill(
    shape: tuple[int, int],
    keys: Keys,
    out: Any,
    device: object,
    library: str | None,
    stream: StreamLike,
    call: Any,
) -> Any:
    ordinal = None if device is None else parse_device(device)
    new = None
    if out is None:
        new = NewArray(choose_library(library, ordinal), ordinal, shape, DTYPES[keys.group])
    view, _, _, pointer = open_target(out if new is None else new.to_fill, stream)
    call(view, pointer)
    return out if new is None else new.finish()


def answer(
    keys: Keys,
    table: Any,
    record_size: int | None = None,
    *,
    out: Any = None,
    engine: str = "auto",
    stream: StreamLike = None,
) -> Any:
    """The sum of all records of a table, each times the share of its number: a server's part of
    private information retrieval. The sum of both servers' answers is the record at the point,
    times the value.

    table:       an array of (records, ...), at most 2^bits records; bytes of any dtype for gf2, and
                 integers mod 2^32 or 2^64 otherwise.
    record_size: bytes of a record; None: by the first dimension of the array.
    out:         an array of len(keys) records where the table is; None: a new one of the table's
                 library, of (keys, record) and uint8, uint32 or uint64.
    engine, stream: as for `prg.expand`.

    >>> import numpy as np
    >>> from warpcipher.prg import dpf
    >>> table = np.arange(20, dtype=np.uint8).reshape(10, 2)
    >>> mine, theirs = dpf.generate([3], bits=4)
    >>> dpf.answer(mine, table) ^ dpf.answer(theirs, table)
    array([[6, 7]], dtype=uint8)
    """
    where = library_of(table, "table")
    asked = None if stream is None else stream_pointer(stream)
    pointer = choose_stream(where, table, asked)
    source = where.view(table, "table", None if asked is None else pointer, False)
    if record_size is None:
        shape = getattr(table, "shape", None) or (0,)
        if len(shape) < 2 or 0 in shape:
            raise ValueError("record_size is not given: expected it, or a table of (records, ...)")
        record_size = size_of(source) // shape[0]
    size = require_int("record_size", record_size, 1)
    made = where.empty(size * len(keys), table, asked) if out is None else out
    target = (where if out is None else library_of(out, "out")).view(made, "out", pointer, True)
    _native.dpf_answer(keys._held(), source, size, target, engine, pointer)
    if out is not None:
        return out
    found = finished(where, made, size * len(keys))
    if not hasattr(found, "reshape"):
        return found
    return found.reshape(len(keys), size).view(_dtype(found, DTYPES[keys.group]))


def _dtype(like: Any, name: str) -> Any:
    """A dtype as the library of an array takes it."""
    return getattr(__import__("torch"), name) if type(like).__module__ == "torch" else name
