# SPDX-License-Identifier: Apache-2.0
"""Many messages in one run: as objects (`Batch`), or as columns (`run_columns`) for very many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _later, _native
from ._uncopied import Uncopied
from .arguments import PLAIN, is_decrypt, is_padded, make_key
from .engines import algorithms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from ._types import Buffer, StreamLike
    from .batch_run import BatchRun


def _arrays() -> ModuleType:
    return _later.load("arrays")


class Handle(Uncopied):
    """One message of a `Batch`."""

    __slots__ = ("_array", "_index", "_library", "_out", "_status", "_view", "_written")

    def __init__(self, index: int, library: Any, array: Any, view: Any, out: Any) -> None:
        self._index = index
        self._library = library  # of out, or of the array made; None for bytes
        self._array = array  # what the batch made for the result
        self._view = view  # the memory that the run writes to
        self._out = out  # what the caller gave
        self._status: _native.Status | None = None
        self._written = 0

    @property
    def status(self) -> str:
        """Before the run "pending"; then "ok", "invalid tag" or "invalid padding"."""
        return "pending" if self._status is None else self._status.name.lower().replace("_", " ")

    def result(self) -> Any:
        """What `Cipher` would have returned for this message, or the exception it would have
        raised.

        RuntimeError: the batch has not run, or still runs.
        """
        if self._status is None:
            raise RuntimeError(
                f"message {self._index} has no result yet: its batch has not run, or still runs"
            )
        if self._status != _native.Status.OK:
            _native.raise_for_status(self._status, f"message {self._index}: ")
        if self._out is not None:
            return _arrays().written_part(self._library, self._out, self._view, self._written)
        if self._library is None:
            data: bytes = self._array
            return data if len(data) == self._written else data[: self._written]
        return _arrays().finished(self._library, self._array, self._written)

    def __repr__(self) -> str:
        return f"<warpcipher.Handle of message {self._index}: {self.status}>"


class Batch(Uncopied):
    """Messages that differ in key, algorithm, direction and length, run together, once.

    engine: "auto" or a name of `engines()`.
    """

    def __init__(self, engine: str = "auto") -> None:
        self._engine = engine
        self._messages = _native.Messages()
        self._handles: list[Handle] = []
        self._keys: dict[tuple[str, bytes], _native.Key] = {}
        self._streams: list[tuple[int, int]] = []  # (stream, device) of arrays on a GPU
        self._done = False

    def add(
        self,
        algorithm: str,
        direction: str,
        key: Buffer | _native.Key,
        data: Any,
        *,
        iv: Buffer | None = None,
        aad: Buffer | None = None,
        out: Any = None,
        padding: Literal["pkcs7"] | None = None,
        tag_length: int = 16,
    ) -> Handle:
        """Takes a message up and checks it; the arguments are those of `Cipher` and its methods.

        Until the batch has run it holds on to data, iv, aad and out, which must not change. All
        messages lie in host memory, or all on one GPU. RuntimeError: the batch has run.
        """
        if self._done:
            raise RuntimeError("this batch has run: make a new one for more messages")
        decrypt, padded = is_decrypt(direction), is_padded(padding)
        shared_key = self._share_key(algorithm, key)
        library = made = None
        source, target = data, out
        if out is not None or type(data) not in PLAIN:
            library, source, target, made = self._place(
                shared_key, decrypt, padded, data, out, tag_length
            )
        held = self._messages.add(shared_key, decrypt, padded, source, target, iv, aad, tag_length)
        handle = Handle(len(self._handles), library, held if made is None else made, held, out)
        self._handles.append(handle)
        return handle

    def run(self, stream: StreamLike = None) -> None:
        """Runs the messages. A tag or padding that does not match is told by that message's handle
        alone.

        stream: as of `Cipher.encrypt`; None takes the current stream of the first array's library.
        ValueError: two messages encrypt with the same GCM key and nonce. EngineError: no result is
                    valid.
        RuntimeError: the batch has run.
        """
        messages, pointer = self._begin(stream)
        self._settle(messages.run(self._engine, pointer))

    def start(self, stream: StreamLike = None) -> BatchRun:
        """Runs the messages in the background, and says so to whoever asks or waits.

        stream: as of `run`; the batch waits for what is on it now. Work of the caller that needs
                the results, or changes the inputs, is put there when the batch is done.
        RuntimeError: the batch has run or been started.
        """
        messages, pointer = self._begin(stream)
        devices = {device for _, device in self._streams}

        def work() -> None:
            outcomes = messages.run(self._engine, pointer)
            for device in devices:
                _native.wait_for_stream(pointer, device)
            self._settle(outcomes)

        run: BatchRun = _later.load("batch_run").BatchRun(work)
        return run

    def _begin(self, stream: StreamLike) -> tuple[_native.Messages, int]:
        if self._done:
            raise RuntimeError("this batch has run: make a new one")
        self._done = True
        pointer = 0
        if stream is not None or self._streams:
            asked = _arrays().stream_pointer(stream)
            pointer = asked if asked is not None else self._streams[0][0] if self._streams else 0
            for other, device in set(self._streams):
                _arrays().wait(pointer, other, device)
        messages, self._messages = self._messages, _native.Messages()
        self._keys.clear()
        return messages, pointer

    def _settle(self, outcomes: list[tuple[_native.Status, int]]) -> None:
        for handle, (status, written) in zip(self._handles, outcomes, strict=True):
            handle._status, handle._written = status, written

    def __len__(self) -> int:
        return len(self._handles)

    def __repr__(self) -> str:
        state = "done" if self._done else "not run"
        return f"<warpcipher.Batch of {len(self)} messages, {state}>"

    def _place(
        self, key: _native.Key, decrypt: bool, padded: bool, data: Any, out: Any, tag_length: int
    ) -> tuple[Any, Any, Any, Any]:
        """Views of data and out, and the array made for the result if out was not given."""
        arrays = _arrays()
        library = arrays.library_of(data, "data")
        stream = arrays.choose_stream(library, data, None)
        source = library.view(data, "data", stream, False)
        device = library.device(data)
        if device is not None:
            self._streams.append((stream, device))
        if out is not None:
            library = arrays.library_of(out, "out")
            return library, source, library.view(out, "out", stream, True), None
        if library is arrays.BUFFERS:
            return None, source, None, None
        size = _native.output_size(key, decrypt, padded, arrays.size_of(source), tag_length)
        made = library.empty(size, data, None)
        return library, source, library.view(made, "out", stream, True), made

    def _share_key(self, algorithm: str, key: Buffer | _native.Key) -> _native.Key:
        """One `Key` for equal bytes: schedules are made once, and nonces used twice are found."""
        if isinstance(key, _native.Key):
            return make_key(algorithm, key)
        try:
            name = algorithm, key if type(key) is bytes else bytes(memoryview(key))
        except (TypeError, ValueError, BufferError):
            # An array that is no buffer or has no format for one, or what is no key at all.
            return make_key(algorithm, key)
        if name not in self._keys:
            self._keys[name] = _native.Key(algorithm, key)
        return self._keys[name]


class Columns:
    """What came of `run_columns`.

    out:     the output buffer or array.
    written: bytes written for each message, a memoryview of 64-bit unsigned integers; 0 for a
             failed one. Of columns on a GPU this and status are fetched when first asked for.
    status:  a memoryview of one byte for each message: the number of a `Status`, which is OK,
             INVALID_TAG or INVALID_PADDING. The output of a failed message is zeros.
    """

    __slots__ = ("_fetch", "_outcome", "out")

    def __init__(self, out: Any, fetch: Callable[[], tuple[bytes, bytes]]) -> None:
        self.out = out
        self._fetch = fetch
        self._outcome: tuple[bytes, bytes] | None = None

    def _fetched(self) -> tuple[bytes, bytes]:
        """Written and status; from a GPU the first who asks copies them, and waits for that."""
        if self._outcome is None:
            self._outcome = self._fetch()
        return self._outcome

    @property
    def written(self) -> memoryview:
        """Bytes written for each message, as 64-bit unsigned integers; 0 for a failed one."""
        return memoryview(self._fetched()[0]).cast("Q")

    @property
    def status(self) -> memoryview:
        """One byte for each message, the number of its `Status`; 0 is OK."""
        return memoryview(self._fetched()[1])

    def raise_for_status(self) -> Columns:
        """Raises what the first failed message would have raised; else returns self."""
        failed = self._failed()
        if failed:
            status = _native.Status(self.status[failed[0]])
            _native.raise_for_status(status, f"message {failed[0]}: ")
        return self

    def _failed(self) -> list[int]:
        """The numbers of the failed messages."""
        all_status = self._fetched()[1]
        if all_status.count(_native.Status.OK) == len(all_status):
            return []
        return [i for i, status in enumerate(all_status) if status != _native.Status.OK]

    def __repr__(self) -> str:
        return f"<warpcipher.Columns of {len(self.status)} messages, {len(self._failed())} failed>"


def run_columns(
    algorithm: str,
    direction: str,
    keys: Buffer | _native.Key | Sequence[Buffer | _native.Key],
    data: Any,
    *,
    lengths: Buffer | Sequence[int],
    offsets: Buffer | Sequence[int] | None = None,
    key_index: Buffer | Sequence[int] | None = None,
    ivs: Buffer | None = None,
    aad: Buffer | None = None,
    aad_offsets: Buffer | Sequence[int] | None = None,
    aad_lengths: Buffer | Sequence[int] | None = None,
    tag_length: int = 16,
    out: Any = None,
    out_offsets: Buffer | Sequence[int] | None = None,
    engine: str = "auto",
    stream: StreamLike = None,
    padding: Literal["pkcs7"] | None = None,
) -> Columns:
    """Runs len(lengths) messages of one algorithm and direction, described by columns.

    keys:        bytes or a `Key` for all messages, or a sequence of them with key_index.
    data:        one buffer or array that holds all inputs.
    lengths:     bytes of input of each message; an AEAD's input to decrypt counts its tag.
    offsets:     where each begins in data; None: back to back.
    key_index:   the key of each message, from 0; None where there is one key.
    ivs:         the IVs of all messages, one behind the other, of one length, which is that of ivs
                 over the number of messages. 12 bytes for several messages are refused to encrypt
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
    bits, key_index of 32, and keys may be an array there too, their bytes one behind the other; out
    must then be given. Large batches of AES (GCM: nonces of 12 bytes) on a GPU are then
    checked and planned there: the host does nothing for each message.

    A message that fails is told by `status`, or by `raise_for_status()`; the others are
    not disturbed. ValueError, before anything is written: a length, offset or index is wrong, or
    two messages encrypt with the same GCM key and nonce.
    """
    operation = (algorithm, is_decrypt(direction), is_padded(padding))
    for name, value in (("keys", keys), ("lengths", lengths)):
        if value is None:
            raise TypeError(f"{name} is None: run_columns needs it")
    if key_index is None and isinstance(keys, list | tuple) and len(keys) > 1:
        raise _no_key_index(len(keys))
    columns = (lengths, offsets, key_index, ivs, aad, aad_offsets, aad_lengths)
    if type(lengths) not in PLAIN and _arrays().is_on_device(lengths):
        return _run_device_columns(
            operation,
            keys,
            data,
            columns,
            tag_length,
            out,
            out_offsets,
            engine,
            stream,
        )
    pointer = 0
    source, target = data, out
    library: Any = None
    made: Any = None
    if (
        stream is not None
        or type(data) not in PLAIN
        or (out is not None and type(out) not in PLAIN)
    ):
        arrays = _arrays()
        library = arrays.library_of(data, "data")
        asked = arrays.stream_pointer(stream)
        pointer = arrays.choose_stream(library, data, asked)
        source = library.view(data, "data", pointer, False)
        if out is not None:
            target = arrays.library_of(out, "out").view(out, "out", pointer, True)
        elif library is not arrays.BUFFERS:
            size = _native.columns_output_size(*operation, lengths, out_offsets, tag_length)
            made = library.empty(size, data, asked)
            target = library.view(made, "out", pointer, True)
    held, written, status = _native.run_columns(
        *operation, keys, source, *columns, tag_length, target, out_offsets, engine, pointer
    )
    if made is not None:
        return Columns(library.finish(made), lambda: (written, status))
    return Columns(held if out is None else out, lambda: (written, status))


def _no_key_index(count: int) -> ValueError:
    return ValueError(
        f"keys has {count} keys, and there is no key_index: it says which message takes which key"
    )


def _run_device_columns(
    operation: tuple[str, bool, bool],
    keys: Any,
    data: Any,
    columns: tuple[Any, ...],
    tag_length: int,
    out: Any,
    out_offsets: Any,
    engine: str,
    stream: StreamLike,
) -> Columns:
    """`run_columns` when lengths is an array on a GPU."""
    arrays = _arrays()
    if out is None:
        raise ValueError("out is needed for columns on a GPU: their sum is not known on the host")
    library = arrays.library_of(data, "data")
    asked = arrays.stream_pointer(stream)
    pointer = arrays.choose_stream(library, data, asked)
    source = library.view(data, "data", pointer, False)
    target = arrays.library_of(out, "out").view(out, "out", pointer, True)
    device = library.device(data)
    if device is None:
        raise ValueError(
            "data lies in host memory, but lengths on a GPU: columns lie with the data"
        )
    names = ("lengths", "offsets", "key_index", "ivs", "aad", "aad_offsets", "aad_lengths")
    sizes = (8, 8, 4, 1, 1, 8, 8)
    spans = tuple(
        arrays.device_column(x, name, pointer, size)
        for x, name, size in zip(columns, names, sizes, strict=True)
    )
    starts = arrays.device_column(out_offsets, "out_offsets", pointer, 8)
    held = arrays.device_column(keys, "keys", pointer, 1) if arrays.is_on_device(keys) else keys
    if held is not keys and columns[2] is None:
        key_size = {entry.name: entry.key_size for entry in algorithms()}.get(operation[0], 0)
        if key_size and len(held) > key_size:
            raise _no_key_index(len(held) // key_size)
    room = len(spans[0]) // 8 * _native.RESULT_SIZE
    results = _native.DeviceArray(room, device, pointer)
    results_view = arrays.library_of(results, "results").view(results, "results", pointer, True)
    outputs = (target, starts, results_view)
    arguments = (*operation, held, source, *spans, tag_length, *outputs, engine, pointer)
    _native.run_device_columns(*arguments)
    return Columns(out, lambda: _native.fetch_results(results_view, pointer))
