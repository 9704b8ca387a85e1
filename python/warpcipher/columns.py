# SPDX-License-Identifier: Apache-2.0
"""Very many messages in one run, described by columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from . import _later, _native
from ._types import (
    AlgorithmName,
    ArrayT,
    Buffer,
    ColumnOptions,
    Data,
    DataT,
    Direction,
    Integers,
    Keys,
    Self,
    StreamLike,
    Unpack,
)
from .arguments import PLAIN, is_decrypt, is_padded
from .engines import algorithms

OutT = TypeVar("OutT")


class ColumnsCall(NamedTuple):
    """The arguments of one `run_columns`, which travel together: bindings/columns.cpp reads them by
    these names. Arrays become views of their memory on the way.

    Not a dataclass: that would have every import of the package import `inspect`.
    """

    algorithm: AlgorithmName
    decrypt: bool
    padded: bool
    keys: Any
    data: Any
    lengths: Any
    offsets: Any
    key_index: Any
    ivs: Any
    aad: Any
    aad_offsets: Any
    aad_lengths: Any
    tag_length: int
    out: Any
    out_offsets: Any
    engine: str
    stream: int


class Columns(Generic[OutT]):
    """The result of `run_columns`; for type checkers of the type of `out`.

    out:     the output buffer or array.
    written: bytes written for each message, a memoryview of 64-bit unsigned integers; 0 for a
             failed one. Of columns on a GPU this and status are fetched when first asked for.
    status:  a memoryview of one byte for each message: the number of a `Status`, which is OK,
             INVALID_TAG or INVALID_PADDING. The output of a failed message is zeros.
    """

    __slots__ = ("_are_good", "_outcome", "_results", "out")

    def __init__(self, out: OutT, results: bytes | Callable[[], bytes], are_good: bool) -> None:
        self.out = out
        self._results = results
        self._are_good = are_good  # known without the results of each message
        self._outcome: tuple[bytes, bytes] | None = None

    def _fetched(self) -> tuple[bytes, bytes]:
        """Written and status; from a GPU the first call copies them, and waits for that."""
        if self._outcome is None:
            results = self._results
            self._outcome = _native.split_results(results() if callable(results) else results)
        return self._outcome

    @property
    def written(self) -> memoryview:
        """Bytes written for each message, as 64-bit unsigned integers; 0 for a failed one."""
        return memoryview(self._fetched()[0]).cast("Q")

    @property
    def status(self) -> memoryview:
        """One byte for each message, the number of its `Status`; 0 is OK."""
        return memoryview(self._fetched()[1])

    def raise_for_status(self) -> Self:
        """Raises the error of the first failed message; else returns self."""
        failed = self._failed()
        if failed:
            status = _native.Status(self.status[failed[0]])
            _native.raise_for_status(status, f"message {failed[0]}: ")
        return self

    def _failed(self) -> list[int]:
        """The numbers of the failed messages."""
        if self._are_good:
            return []
        return [i for i, status in enumerate(self._fetched()[1]) if status != _native.Status.OK]

    def __repr__(self) -> str:
        return f"<warpcipher.Columns of {len(self.status)} messages, {len(self._failed())} failed>"


@overload
def run_columns(
    algorithm: AlgorithmName,
    direction: Direction,
    keys: Keys,
    data: ArrayT,
    *,
    lengths: Integers,
    out: None = None,
    **more: Unpack[ColumnOptions],
) -> Columns[ArrayT]: ...


@overload
def run_columns(
    algorithm: AlgorithmName,
    direction: Direction,
    keys: Keys,
    data: Buffer,
    *,
    lengths: Integers,
    out: None = None,
    **more: Unpack[ColumnOptions],
) -> Columns[bytearray]: ...


@overload
def run_columns(
    algorithm: AlgorithmName,
    direction: Direction,
    keys: Keys,
    data: Data,
    *,
    lengths: Integers,
    out: DataT,
    **more: Unpack[ColumnOptions],
) -> Columns[DataT]: ...


def run_columns(
    algorithm: AlgorithmName,
    direction: Direction,
    keys: Keys,
    data: Any,
    *,
    lengths: Integers,
    offsets: Integers | None = None,
    key_index: Integers | None = None,
    ivs: Buffer | None = None,
    aad: Buffer | None = None,
    aad_offsets: Integers | None = None,
    aad_lengths: Integers | None = None,
    tag_length: int = 16,
    out: Any = None,
    out_offsets: Integers | None = None,
    engine: str = "auto",
    stream: StreamLike = None,
    padding: Literal["pkcs7"] | None = None,
) -> Columns[Any]:
    """Runs len(lengths) messages of one algorithm and direction, described by columns.

    keys:        bytes or a `Key` for all messages, or a sequence of them with key_index.
    data:        one buffer or array that holds all inputs.
    lengths:     bytes of input of each message; an AEAD's input to decrypt counts its tag.
    offsets:     where each begins in data; None: back to back, and in host memory they are all of
                 data: ValueError where some is left.
    key_index:   the key of each message, from 0; None if there is one key.
    ivs:         the IVs of all messages, one after the other, of one length: len(ivs) divided
                 by the number of messages. 12 bytes for several messages are refused to encrypt
                 by an AEAD: they look like one nonce for all.
    aad:         only for AEADs: associated data; without aad_offsets and aad_lengths all of it for
                 every message, else those ranges of it.
    out:         one buffer or array for all outputs; None makes a bytearray, or an array where data
                 is one.
    out_offsets: where each output begins in out; None: back to back. An AEAD's output to encrypt
                 counts its tag.

    Columns of integers are sequences of int, or buffers of integers (array('Q'), NumPy), of which
    64-bit ones are used where they lie. Data and out lie anywhere; IVs, AAD and integers in host
    memory, or, when lengths is an array on a GPU, all on the GPU of data and out: integers of 64
    bits, key_index of 32, and keys may be an array there too, their bytes one after the other; out
    must then be given. Large batches of AES (GCM: nonces of 12 bytes) on a GPU are then
    checked and planned there: the host does nothing for each message.

    `status` and `raise_for_status()` say which messages fail; the others are
    not disturbed. ValueError, before anything is written: a length, offset or index is wrong, or
    an AEAD other than GCM-SIV encrypts two messages with the same key and nonce. IVs of other
    algorithms are not compared.

    >>> import warpcipher as wc
    >>> ivs = bytes(12) + b"another iv !"
    >>> done = wc.run_columns(
    ...     "aes-128-gcm", "encrypt", bytes(16), b"two texts", lengths=[4, 5], ivs=ivs
    ... )
    >>> len(done.raise_for_status().out)  # a tag of 16 bytes after each
    41
    """
    for name, value in (("keys", keys), ("lengths", lengths)):
        if value is None:
            raise TypeError(f"{name} is None: run_columns needs it")
    call = ColumnsCall(
        algorithm=algorithm,
        decrypt=is_decrypt(direction),
        padded=is_padded(padding),
        keys=keys,
        data=data,
        lengths=lengths,
        offsets=offsets,
        key_index=key_index,
        ivs=ivs,
        aad=aad,
        aad_offsets=aad_offsets,
        aad_lengths=aad_lengths,
        tag_length=tag_length,
        out=out,
        out_offsets=out_offsets,
        engine=engine,
        stream=0,
    )
    if key_index is None and isinstance(keys, list | tuple) and len(keys) > 1:
        raise _no_key_index(len(keys))
    if type(lengths) not in PLAIN and _later.load("arrays").is_on_device(lengths):
        return _run_on_device(call, stream)
    if stream is None and type(data) in PLAIN and (out is None or type(out) in PLAIN):
        made, results, are_good = _native.run_columns(call)
        return Columns(made if out is None else out, results, are_good)
    return _run_arrays(call, stream)


def _no_key_index(count: int) -> ValueError:
    return ValueError(
        f"keys has {count} keys, and there is no key_index: it says which message takes which key"
    )


def _run_arrays(call: ColumnsCall, stream: StreamLike) -> Columns[Any]:
    """`run_columns` when data or out is an array, or a stream was given."""
    arrays = _later.load("arrays")
    library = arrays.library_of(call.data, "data")
    asked = arrays.stream_pointer(stream)
    pointer = arrays.choose_stream(library, call.data, asked)
    source = library.view(call.data, "data", pointer, False)
    target = made = None
    if call.out is not None:
        target = arrays.library_of(call.out, "out").view(call.out, "out", pointer, True)
    elif library is not arrays.BUFFERS:
        made = library.empty(_native.columns_output_size(call), call.data, asked)
        target = library.view(made, "out", pointer, True)
    viewed = call._replace(data=source, out=target, stream=pointer)
    held, results, are_good = _native.run_columns(viewed)
    if made is not None:
        return Columns(library.finish(made), results, are_good)
    return Columns(held if call.out is None else call.out, results, are_good)


# The columns that may lie on a GPU, and the bytes of an integer in each; 1: anything as bytes.
_DEVICE_COLUMNS = {
    "lengths": 8, "offsets": 8, "key_index": 4, "ivs": 1, "aad": 1, "aad_offsets": 8,
    "aad_lengths": 8, "out_offsets": 8,
}  # fmt: skip


def _run_on_device(call: ColumnsCall, stream: StreamLike) -> Columns[Any]:
    """`run_columns` when lengths is an array on a GPU."""
    arrays = _later.load("arrays")
    if call.out is None:
        raise ValueError("out is needed for columns on a GPU: their sum is not known on the host")
    library = arrays.library_of(call.data, "data")
    asked = arrays.stream_pointer(stream)
    pointer = arrays.choose_stream(library, call.data, asked)
    source = library.view(call.data, "data", pointer, False)
    target = arrays.library_of(call.out, "out").view(call.out, "out", pointer, True)
    device = library.device(call.data)
    if device is None:
        raise ValueError("data lies in host memory, and lengths on a GPU: columns lie where it is")
    columns = {
        name: arrays.device_column(getattr(call, name), name, pointer, size)
        for name, size in _DEVICE_COLUMNS.items()
    }
    viewed = call._replace(data=source, out=target, stream=pointer, **columns)
    if arrays.is_on_device(call.keys):
        viewed = viewed._replace(keys=arrays.device_column(call.keys, "keys", pointer, 1))
        key_size = {entry.name: entry.key_size for entry in algorithms()}.get(call.algorithm, 0)
        if call.key_index is None and key_size and len(viewed.keys) > key_size:
            raise _no_key_index(len(viewed.keys) // key_size)
    room = len(viewed.lengths) // 8 * _native.RESULT_SIZE
    results = _native.DeviceArray(room, device, pointer)
    view = arrays.library_of(results, "results").view(results, "results", pointer, True)
    are_good = _native.run_device_columns(viewed, view)
    return Columns(call.out, lambda: _native.fetch_results(view, pointer), are_good)
