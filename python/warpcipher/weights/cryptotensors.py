# SPDX-License-Identifier: Apache-2.0
"""The data of a cryptotensors file: its chunks as columns for `formats.read_chunks`, which reads
and decrypts them to where the tensors go, in host memory or on a GPU."""

from __future__ import annotations

import bisect
import os
from array import array
from functools import partial
from typing import Any

import warpcipher as wc

from .._uncopied import Uncopied
from ..formats import FormatError
from ..formats.file_chunks import FileChunksCall, failure_of, raise_failure
from .cryptotensors_header import TAG_SIZE, chunk_ivs, opened, unwrap, user_metadata
from .cryptotensors_key import CryptotensorsKey
from .frameworks import Framework
from .header import TensorInfo, read_header, shown
from .images import PlainImage, read_bytes


class CryptotensorsFile(Uncopied):
    """A cryptotensors file whose signature was checked. A chunk is checked when it is read.

    The policy is not evaluated. Safe for use by several threads.
    """

    def __init__(self, path: str, key: CryptotensorsKey) -> None:
        self.name = os.path.basename(path)  # noqa: PTH119
        self._image = PlainImage(path)
        self._plain_tensors = key.plain_tensors
        try:
            self.header = read_header(partial(read_bytes, self._image), self._image.size)
            scheme, self._wrapped = opened(self.header, key)
            self.metadata: dict[str, str] | None = user_metadata(self.header.metadata or {}) or None
            self.unit = scheme.chunk_size
            self._algorithm = scheme.algorithm
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

    def _check_empty(self) -> None:
        """Checks the one chunk of each tensor that has no bytes: no read will come to it."""
        for name, entry in self._wrapped.items():
            if self.header.tensors[name].size == 0:
                try:
                    wc.run_columns(
                        self._algorithm,
                        "decrypt",
                        self._keys[name],
                        entry.tags,
                        lengths=[TAG_SIZE],
                        ivs=entry.base_iv,
                    ).raise_for_status()
                except wc.InvalidTag:
                    raise _not_authentic(name, 0) from None

    def read(self, framework: Framework, offset: int, block: Any) -> None:
        """See `TensorFile`."""
        end = offset + len(block)
        chunks = _Chunks(self.unit)
        index = max(0, bisect.bisect_right(self._starts, offset) - 1)
        for name in self._names[index:]:
            info = self.header.tensors[name]
            if info.start >= end:
                break
            first, last = max(offset, info.start), min(end, info.end)
            if first >= last:
                continue
            if name in self._wrapped:
                entry = self._wrapped[name]
                place = self.header.data_start + info.start
                taken = (first - info.start, last - info.start)
                chunks.add(name, info, entry.base_iv, entry.tags, place, taken, first - offset)
            else:
                self._read_plain(framework, name, first, block[first - offset : last - offset])
        if chunks.names:
            self._decrypt(chunks, framework.memory(block))

    def _read_plain(self, framework: Framework, name: str, start: int, block: Any) -> None:
        """Reads what nothing protects."""
        if not self._plain_tensors:
            raise FormatError(
                f"the file leaves tensor {shown(name)} unencrypted, so that nothing protects it: "
                "CryptotensorsKey(plain_tensors=True) takes it all the same"
            )
        self._image.read(self.header.data_start + start, framework.memory(block))

    def _decrypt(self, chunks: _Chunks, out: Any) -> None:
        keys = [self._keys.get(name) for name in chunks.names]
        if None in keys:
            raise ValueError("read of a closed file")
        failure = failure_of(
            FileChunksCall(
                source=self._image.fileno(),
                algorithm=self._algorithm,
                keys=keys,
                out=out,
                tag_length=TAG_SIZE,
                offsets=chunks.offsets,
                lengths=chunks.lengths,
                key_index=chunks.key_index,
                ivs=bytes(chunks.ivs),
                tags=bytes(chunks.tags),
                out_offsets=chunks.out_offsets,
                skips=chunks.skips,
                takes=chunks.takes,
            )
        )
        if failure is not None and failure[0] == "tag":
            chunk = failure[1]
            name = chunks.names[chunks.key_index[chunk]]
            place = chunks.offsets[chunk] - self.header.data_start
            raise _not_authentic(name, (place - self.header.tensors[name].start) // self.unit)
        if failure is not None:
            raise_failure(*failure)

    def close(self) -> None:
        """Wipes keys and closes the file."""
        self._keys = {}
        self._image.close()


def _not_authentic(name: str, chunk: int) -> wc.InvalidTag:
    return wc.InvalidTag(
        f"chunk {chunk} of tensor {shown(name)} is not authentic: damaged, or of another file"
    )


class _Chunks:
    """The columns of chunks that one read takes; see `formats.read_chunks`."""

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self.names: list[str] = []
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.key_index = array("I")
        self.out_offsets = array("Q")
        self.skips = array("Q")
        self.takes = array("Q")
        self.ivs = bytearray()
        self.tags = bytearray()

    def add(
        self,
        name: str,
        info: TensorInfo,
        base_iv: bytes,
        tags: bytes,
        place: int,
        taken: tuple[int, int],
        out_offset: int,
    ) -> None:
        """The chunks that hold a range of a tensor. place: of the tensor in the file."""
        unit, (start, end) = self._unit, taken
        first, last = start // unit, (end - 1) // unit
        for index in range(first, last + 1):
            begin = index * unit
            skip = max(start - begin, 0)
            length = min(unit, info.size - begin)
            take = min(end - begin, length) - skip
            self.offsets.append(place + begin)
            self.lengths.append(length)
            self.key_index.append(len(self.names))
            self.out_offsets.append(out_offset)
            self.skips.append(skip)
            self.takes.append(take)
            out_offset += take
        self.ivs += chunk_ivs(base_iv, first, last + 1 - first)
        self.tags += tags[first * TAG_SIZE : (last + 1) * TAG_SIZE]
        self.names.append(name)
