# SPDX-License-Identifier: Apache-2.0
"""Cryptotensors files: read, written, and their keys wrapped again.

A read turns the chunks that it needs into columns for `formats.read_chunks`, which decrypts them to
where the tensors go, in host memory or on a GPU. In a file that is written the header comes first
and holds the tags of all chunks. Its length does not depend on their values, so the data is written
after the header's place, and the header last.
"""

from __future__ import annotations

import bisect
import os
from array import array
from collections.abc import Mapping
from functools import partial
from itertools import accumulate
from typing import IO, Any, BinaryIO

import warpcipher as wc

from .. import stores
from .._types import AlgorithmName, PathLike
from .._uncopied import Uncopied
from ..formats import FormatError
from ..formats.chunks import aes
from ..formats.file_chunks import failure_of, raise_failure
from ..formats.source import open_source, write_changed
from ..formats.whole import write_whole
from ..formats.write_chunks import texts_of, write
from . import cryptotensors_header as head
from .cryptotensors_header import CHUNK_SIZE, IV_SIZE, TAG_SIZE, chunk_count, chunk_ivs
from .cryptotensors_key import CryptotensorsKey
from .entries import Entry, parts_on_gpu
from .frameworks import Framework
from .header import Header, TensorInfo, encode, read_header, shown
from .images import AT_ONCE, ObjectImage, plain_image, read_bytes, written


class CryptotensorsFile(Uncopied):
    """A cryptotensors file whose signature was checked. A chunk is checked when it is read.

    The policy is not evaluated. Safe for use by several threads.
    """

    def __init__(self, path: str, key: CryptotensorsKey) -> None:
        self.name = os.path.basename(path)  # noqa: PTH119
        self._image = plain_image(path)
        self._plain_tensors = key.plain_tensors
        try:
            self.header = read_header(partial(read_bytes, self._image), self._image.size)
            scheme, self._wrapped = head.opened(self.header, key)
            metadata = head.user_metadata(self.header.metadata or {})
            self.metadata: dict[str, str] | None = metadata or None
            self.unit = scheme.chunk_size
            self._algorithm = scheme.algorithm
            wrapping = key.wrapping_key(scheme.key_id, (scheme.key_size,))
            self._keys = {
                name: wc.Key(scheme.algorithm, found)
                for name, found in head.unwrap(self._wrapped, wrapping, scheme).items()
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
        step = AT_ONCE if isinstance(self._image, ObjectImage) else max(len(block), 1)
        for at in range(0, len(block), step):
            self._read(framework, offset + at, block[at : at + step])

    def _read(self, framework: Framework, offset: int, block: Any) -> None:
        end = offset + len(block)
        chunks = _Chunks(self.unit, self.header.data_start)
        index = max(0, bisect.bisect_right(self._starts, offset) - 1)
        for name in self._names[index:]:
            info = self.header.tensors[name]
            if info.start >= end:
                break
            first, last = max(offset, info.start), min(end, info.end)
            if first >= last:
                continue
            if name in self._wrapped:
                taken = (first - info.start, last - info.start)
                chunks.add(name, info, self._wrapped[name], taken, first - offset)
            else:
                self._read_plain(framework, name, first, block[first - offset : last - offset])
        if chunks.names:
            self._decrypt(chunks, framework.memory(block))

    def _read_plain(self, framework: Framework, name: str, start: int, block: Any) -> None:
        """Reads unprotected bytes."""
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
        begin, end = chunks.offsets[0], chunks.offsets[-1] + chunks.lengths[-1]
        with self._image.in_file(begin, end - begin) as (descriptor, start):
            offsets = array("Q", (at - start for at in chunks.offsets)) if start else chunks.offsets
            failure = failure_of(
                descriptor,
                self._algorithm,
                keys,
                out,
                None,
                tag_length=TAG_SIZE,
                offsets=offsets,
                lengths=chunks.lengths,
                key_index=chunks.key_index,
                ivs=bytes(chunks.ivs),
                tags=bytes(chunks.tags),
                out_offsets=chunks.out_offsets,
                skips=chunks.skips,
                takes=chunks.takes,
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

    def __init__(self, unit: int, data_start: int) -> None:
        self._unit = unit
        self._data_start = data_start
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
        self, name: str, info: TensorInfo, entry: head.Wrapped, taken: tuple[int, int], out: int
    ) -> None:
        """The chunks that hold a range of a tensor, which goes to byte number `out`."""
        unit, (start, end) = self._unit, taken
        place = self._data_start + info.start
        first, last = start // unit, (end - 1) // unit
        count = last + 1 - first
        lengths, skips = [unit] * count, [0] * count
        lengths[-1] = min(unit, info.size - last * unit)
        skips[0] = start - first * unit
        takes = lengths.copy()
        takes[-1] = end - last * unit
        takes[0] -= skips[0]
        self.offsets.extend(range(place + first * unit, place + (last + 1) * unit, unit))
        self.lengths.extend(lengths)
        self.key_index.extend([len(self.names)] * count)
        self.out_offsets.extend(list(accumulate(takes, initial=out))[:-1])
        self.skips.extend(skips)
        self.takes.extend(takes)
        self.ivs += chunk_ivs(entry.base_iv, first, count)
        self.tags += entry.tags[first * TAG_SIZE : (last + 1) * TAG_SIZE]
        self.names.append(name)


PIECE = 8 << 20
"""Bytes of plaintext that one call encrypts."""


def write_file(
    path: PathLike | BinaryIO,
    entries: Mapping[str, Entry],
    placed: Mapping[str, TensorInfo],
    metadata: Mapping[str, str] | None,
    key: CryptotensorsKey,
) -> None:
    """Writes a file of version 2. placed: where each tensor's bytes go."""
    user = dict(metadata or {})
    taken = [name for name in head.RESERVED if name in user]
    if taken:
        raise ValueError(f"metadata has {taken[0]}, which is a name of the format")
    wrapping = key.wrapping_key(key.key_id, (16, 32))
    private = key.checked_signing_key()
    algorithm = aes("gcm", wrapping)
    scheme = head.Scheme(algorithm, len(wrapping), CHUNK_SIZE, key.key_id, key.sign_key_id)
    tensor_keys = {name: os.urandom(len(wrapping)) for name in placed}
    counts = {name: chunk_count(info.size, CHUNK_SIZE) for name, info in placed.items()}
    ivs = {name: _base_iv(count) for name, count in counts.items()}
    wrapped = head.wrap(tensor_keys, wrapping, scheme)
    tags = {name: bytes(TAG_SIZE * count) for name, count in counts.items()}

    def header() -> bytes:
        encryption = {
            name: {**fields, "base_iv": head.encoded(ivs[name]), "tags": head.encoded(tags[name])}
            for name, fields in wrapped.items()
        }
        unsigned = head.write_metadata(user, scheme, encryption, head.DEFAULT_POLICY)
        return encode(placed, head.sign(placed, unsigned, private))

    length = len(header())
    with written(path) as file:
        texts = parts_on_gpu(entries[name] for name in placed)
        if texts is not None:
            tags = _write_from_gpu(file, length, texts, placed, algorithm, tensor_keys, ivs)
        else:
            file.seek(length)
            for name in placed:
                data = entries[name].data()
                tags[name] = _write_tensor(file, data, algorithm, tensor_keys[name], ivs[name])
        made = header()
        if len(made) != length:
            raise RuntimeError("the header's length depends on its tags")
        file.seek(0)
        write_whole(file, memoryview(made))


def _base_iv(chunks: int) -> bytes:
    """Random, and with room for the numbers of all chunks."""
    while True:
        found = os.urandom(IV_SIZE)
        if head.counter_of(found) + chunks <= 1 << 32:
            return found


def _write_tensor(
    file: IO[bytes], data: memoryview, algorithm: AlgorithmName, key: bytes, base_iv: bytes
) -> bytes:
    """Writes the ciphertext; returns the tags."""
    native = wc.Key(algorithm, key)
    tags = bytearray()
    step = PIECE // CHUNK_SIZE
    for first in range(0, chunk_count(len(data), CHUNK_SIZE), step):
        part = data[first * CHUNK_SIZE : (first + step) * CHUNK_SIZE]
        count = chunk_count(len(part), CHUNK_SIZE)
        lengths = [min(CHUNK_SIZE, len(part) - i * CHUNK_SIZE) for i in range(count)]
        sealed = wc.run_columns(
            algorithm,
            "encrypt",
            [native],
            part,
            lengths=lengths,
            key_index=[0] * count,
            ivs=chunk_ivs(base_iv, first, count),
        ).raise_for_status()
        view, at = memoryview(sealed.out), 0
        for length in lengths:
            write_whole(file, view[at : at + length])
            tags += view[at + length : at + length + TAG_SIZE]
            at += length + TAG_SIZE
    return bytes(tags)


def _write_from_gpu(
    file: IO[bytes],
    start: int,
    parts: list[Any],
    placed: Mapping[str, TensorInfo],
    algorithm: str,
    keys: Mapping[str, bytes],
    base_ivs: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Writes the ciphertext of all tensors, which begins at `start`; returns their tags. parts: the
    tensors' bytes, at least one of them on a GPU, which encrypts."""
    offsets, lengths, numbers, ivs = array("Q"), array("Q"), array("I"), bytearray()
    counts = [chunk_count(info.size, CHUNK_SIZE) for info in placed.values()]
    for number, (name, count) in enumerate(zip(placed, counts, strict=True)):
        info = placed[name]
        places = range(0, count * CHUNK_SIZE, CHUNK_SIZE)
        offsets.extend(start + info.start + place for place in places)
        lengths.extend(min(CHUNK_SIZE, info.size - place) for place in places)
        numbers.extend([number] * count)
        ivs += chunk_ivs(base_ivs[name], 0, count)
    tags = bytearray(TAG_SIZE * len(lengths))
    texts = texts_of(parts)
    write(
        file.fileno(),
        algorithm,
        [wc.Key(algorithm, keys[name]) for name in placed],
        texts,
        tag_length=TAG_SIZE,
        offsets=offsets,
        lengths=lengths,
        key_index=numbers,
        ivs=bytes(ivs),
        tags=tags,
    )
    found = {}
    view = memoryview(tags)
    for name, count in zip(placed, counts, strict=True):
        found[name], view = bytes(view[: TAG_SIZE * count]), view[TAG_SIZE * count :]
    return found


def rewrap(
    path: PathLike,
    key: CryptotensorsKey,
    new_key: CryptotensorsKey,
    out: PathLike | None = None,
    *,
    replace: bool = True,
    copy: bool = False,
) -> None:
    """Changes the wrapping key and the signing key of a cryptotensors file; its data stays.

    key:     of the file as it is: wraps and verifies.
    new_key: of the file as it shall be: wraps, with a key of the same size, and signs.
    out:     the file that is written; None replaces the file at `path` in one step, where that is
             a symbolic link the file that it points to. A file that is replaced keeps its
             permissions.
    replace: whether a file that is there is replaced by `out`; else FileExistsError.
    copy:    a file at a URL is read and written, all of it, where its store cannot copy the data.

    `path` and `out` may be URLs. Only the header is decrypted and made again: the data is copied,
    by the file system where it can share it. Keys of tensors stay the same, so anyone who kept the
    old wrapping key and header can still read the data. Raises InvalidTag, FormatError, ValueError,
    OSError; then nothing was written.
    """
    path, out = stores.local_path(path), stores.local_path(out)
    if out is None:
        out, replace = path, True
    with open_source(path) as file:
        header = read_header(file.read_at, file.size)
        kept, made = (header.data_start, file.size), _rewrapped(header, key, new_key)
        write_changed(path, file, out, kept, beginning=made, replace=replace, copy=copy)


def _rewrapped(header: Header, key: CryptotensorsKey, new_key: CryptotensorsKey) -> bytes:
    """The header with keys wrapped again."""
    scheme, wrapped = head.opened(header, key)
    metadata = header.metadata or {}
    sizes = (scheme.key_size,)
    tensor_keys = head.unwrap(wrapped, key.wrapping_key(scheme.key_id, sizes), scheme)
    changed = scheme._replace(key_id=new_key.key_id, sign_key_id=new_key.sign_key_id)
    fresh = head.wrap(tensor_keys, new_key.wrapping_key(new_key.key_id, sizes), scheme)
    encryption = {}
    for name, fields in fresh.items():
        kept = {"base_iv": wrapped[name].base_iv, "tags": wrapped[name].tags}
        encryption[name] = {**fields, **{part: head.encoded(kept[part]) for part in kept}}
    user = head.user_metadata(metadata)
    unsigned = head.write_metadata(user, changed, encryption, metadata[head.POLICY])
    signed = head.sign(header.tensors, unsigned, new_key.checked_signing_key())
    return encode(header.tensors, signed)
