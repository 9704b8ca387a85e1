# SPDX-License-Identifier: Apache-2.0
"""The data of a cryptotensors file: ciphertext is read into slots with each chunk's tag behind it,
and decrypted from there to where the tensors go."""

from __future__ import annotations

import bisect
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import warpcipher as wc

from .._uncopied import Uncopied
from ..formats import FormatError
from .cryptotensors_header import (
    TAG_SIZE,
    chunk_ivs,
    opened,
    unwrap,
    user_metadata,
)
from .cryptotensors_key import CryptotensorsKey
from .frameworks import Framework
from .header import read_header, shown
from .images import PlainImage
from .memory import allocate

SLOT = 4 << 20
"""Bytes of ciphertext that one call reads and decrypts; a chunk longer than that is a slot."""
CACHED = 8 << 20
"""Bytes of decrypted chunks that are kept for reads of parts."""


class _Run(NamedTuple):
    """Consecutive chunks of a tensor that are decrypted to one place.

    first, chunks: number of the first, and how many. start: where the first begins in the data.
    size: bytes of all.
    """

    name: str
    first: int
    chunks: int
    start: int
    size: int


class CryptotensorsFile(Uncopied):
    """A cryptotensors file whose signature was checked. A chunk is checked when it is read.

    The policy is not evaluated. Safe for use by several threads.
    """

    def __init__(self, path: str, key: CryptotensorsKey) -> None:
        self._image = PlainImage(path)
        self._plain_tensors = key.plain_tensors
        self._cache: OrderedDict[tuple[str, int], bytearray] = OrderedDict()
        self._slots: list[bytearray] = []  # of ciphertext, one for each thread that reads
        self._lock = threading.Lock()
        try:
            self.header = read_header(self._bytes, self._image.size)
            scheme, self._wrapped = opened(self.header, key)
            self.metadata: dict[str, str] | None = user_metadata(self.header.metadata or {}) or None
            self._algorithm = scheme.algorithm
            self._chunk = scheme.chunk_size
            wrapping = key.wrapping_key(scheme.key_id, (scheme.key_size,))
            self._keys = {
                name: wc.Key(scheme.algorithm, found)
                for name, found in unwrap(self._wrapped, wrapping, scheme).items()
            }
            self._names = list(self.header.tensors)
            self._starts = [info.start for info in self.header.tensors.values()]
            self._check_empty()
        except BaseException:
            self.close()
            raise

    def _bytes(self, offset: int, length: int) -> bytes:
        found = bytearray(length)
        self._image.scatter(offset, [memoryview(found)])
        return bytes(found)

    def _check_empty(self) -> None:
        """Checks the one chunk of each tensor that has no bytes: no read will come to it."""
        for name in self._wrapped:
            info = self.header.tensors[name]
            if not info.size:
                self._decrypt(_Run(name, 0, 1, info.start, 0), memoryview(b""))

    def read(self, framework: Framework, offset: int, block: Any) -> None:
        """See `TensorFile`."""
        if framework.host:
            self._read(offset, framework.memory(block))
            return
        host = allocate(len(block))
        try:
            self._read(offset, host)
            framework.copy_in(block, host)
        finally:
            _wipe(host)

    def _read(self, offset: int, out: memoryview) -> None:
        runs: list[tuple[_Run, memoryview]] = []
        end = offset + len(out)
        index = max(0, bisect.bisect_right(self._starts, offset) - 1)
        for name in self._names[index:]:
            info = self.header.tensors[name]
            if info.start >= end:
                break
            first, last = max(offset, info.start), min(end, info.end)
            if first >= last:
                continue
            part = out[first - offset : last - offset]
            if name in self._wrapped:
                runs += self._runs(name, first - info.start, part)
            elif self._plain_tensors:
                self._image.read(self.header.data_start + first, part)
            else:
                raise FormatError(
                    f"the file leaves tensor {shown(name)} unencrypted, so that nothing protects "
                    "it: CryptotensorsKey(plain_tensors=True) takes it all the same"
                )
        if len(runs) < 2:
            for run, part in runs:
                self._decrypt(run, part)
            return
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for done in [pool.submit(self._decrypt, run, part) for run, part in runs]:
                done.result()

    def _runs(self, name: str, offset: int, out: memoryview) -> Iterator[tuple[_Run, memoryview]]:
        """Runs of whole chunks; parts of chunks are copied from the cache."""
        info, chunk = self.header.tensors[name], self._chunk
        most = max(1, SLOT // chunk)
        done = 0
        while done < len(out):
            index, within = divmod(offset + done, chunk)
            left = len(out) - done
            size = min(chunk, info.size - index * chunk)
            if within or left < size:
                part = memoryview(self._cached(name, index))[within : within + left]
                out[done : done + len(part)] = part
                done += len(part)
                continue
            count = min(most, left // chunk)
            taken = count * chunk
            if (
                count < most
                and left > taken
                and left - taken == info.size - (index + count) * chunk
            ):
                count, taken = count + 1, left  # the last chunk of the tensor, which is shorter
            yield (
                _Run(name, index, count, info.start + index * chunk, taken),
                out[done : done + taken],
            )
            done += taken

    def _cached(self, name: str, index: int) -> bytearray:
        """The plaintext of one chunk."""
        with self._lock:
            if (name, index) in self._cache:
                self._cache.move_to_end((name, index))
                return self._cache[name, index]
        info = self.header.tensors[name]
        start = index * self._chunk
        plain = bytearray(min(self._chunk, info.size - start))
        run = _Run(name, index, 1, info.start + start, len(plain))
        self._decrypt(run, memoryview(plain))
        with self._lock:
            # What falls out is left to those who still copy of it, and not wiped.
            while len(self._cache) >= max(1, CACHED // self._chunk):
                self._cache.popitem(last=False)
            self._cache[name, index] = plain
        return plain

    def _decrypt(self, run: _Run, out: memoryview) -> None:
        """Reads and decrypts chunks. Raises InvalidTag; `out` then holds no plaintext."""
        entry, chunk = self._wrapped[run.name], self._chunk
        needed = run.size + run.chunks * TAG_SIZE
        held = self._slots.pop() if self._slots else bytearray()
        if len(held) < needed:
            held = bytearray(needed)
        slot = memoryview(held)[:needed]
        parts, lengths, at = [], [], 0
        for i in range(run.chunks):
            size = min(chunk, run.size - i * chunk)
            parts.append(slot[at : at + size])
            tag = (run.first + i) * TAG_SIZE
            slot[at + size : at + size + TAG_SIZE] = entry.tags[tag : tag + TAG_SIZE]
            lengths.append(size + TAG_SIZE)
            at += size + TAG_SIZE
        if run.size:
            self._image.scatter(self.header.data_start + run.start, parts)
        key = self._keys.get(run.name)
        if key is None:
            raise ValueError("read of a closed file")
        columns = wc.run_columns(
            self._algorithm,
            "decrypt",
            key,
            slot,
            lengths=lengths,
            ivs=chunk_ivs(entry.base_iv, run.first, run.chunks),
            out=out if run.size else bytearray(),
            engine="auto",
        )
        self._slots.append(held)
        if any(columns.status):
            bad = next(i for i, status in enumerate(columns.status) if status != wc.Status.OK)
            _wipe(out)
            raise wc.InvalidTag(
                f"chunk {run.first + bad} of tensor {shown(run.name)} is not authentic: damaged, "
                "or of another file"
            )

    def close(self) -> None:
        """Wipes keys and what was decrypted for parts, and closes the file."""
        self._keys = {}
        self._slots.clear()
        with self._lock:
            for plain in self._cache.values():
                _wipe(memoryview(plain))
            self._cache.clear()
        self._image.close()


def _wipe(view: memoryview) -> None:
    from ..formats.base import wipe

    if not view.readonly:
        wipe(view)
