# SPDX-License-Identifier: Apache-2.0
"""Many messages in one run, each an object."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from . import _later, _native
from ._types import (
    AlgorithmName,
    ArrayT,
    Buffer,
    BufferT,
    Data,
    Direction,
    MessageOptions,
    StreamLike,
    Unpack,
)
from ._uncopied import Uncopied
from .arguments import PLAIN, is_decrypt, is_padded, make_key, require_engine

if TYPE_CHECKING:
    from .batch_run import BatchRun

ResultT = TypeVar("ResultT")


class Handle(Uncopied, Generic[ResultT]):
    """One message of a `Batch`; for type checkers of the type of its result.

    >>> import warpcipher as wc
    >>> batch = wc.Batch()
    >>> handle = batch.add("aes-128-ctr", "encrypt", bytes(16), b"text", iv=bytes(16))
    >>> batch.run()
    >>> len(handle.result())
    4
    """

    __slots__ = ("_finish", "_held", "_index", "_status", "_written")

    def __init__(self, index: int, held: Any, finish: Callable[[int], Any] | None) -> None:
        self._index = index
        self._held = held  # the memory that the run writes to
        self._finish = finish  # makes the result; None: it is bytes, those held
        self._status: _native.Status | None = None
        self._written = 0

    @property
    def status(self) -> str:
        """Before the run "pending"; then "ok", "invalid tag" or "invalid padding"."""
        return "pending" if self._status is None else self._status.name.lower().replace("_", " ")

    def result(self) -> ResultT:
        """The result of `Cipher` for this message, or the exception that it would have
        raised.

        RuntimeError: the batch has not run, or still runs.
        """
        if self._status is None:
            raise RuntimeError(
                f"message {self._index} has no result yet: its batch has not run, or still runs"
            )
        if self._status != _native.Status.OK:
            _native.raise_for_status(self._status, f"message {self._index}: ")
        if self._finish is not None:
            result = self._finish(self._written)
        else:
            result = self._held[: self._written]  # itself where all of it was written
        return result  # type: ignore[no-any-return]  # `Batch.add` says of which type

    def __repr__(self) -> str:
        return f"<warpcipher.Handle of message {self._index}: {self.status}>"


class Batch(Uncopied):
    """Messages that differ in key, algorithm, direction and length, run together, once.

    engine: "auto" or a name of `engines()`.

    >>> import warpcipher as wc
    >>> batch = wc.Batch()
    >>> first = batch.add("aes-128-ecb", "encrypt", bytes(16), bytes(16))
    >>> second = batch.add("des-ecb", "encrypt", bytes(8), bytes(8))
    >>> batch.run()
    >>> first.result().hex(), second.result().hex()
    ('66e94bd4ef8a2c3b884cfa59ca342b2e', '8ca64de9c1b123a7')
    """

    _instead = "add its messages to a new one in the process that runs them"

    def __init__(self, engine: str = "auto") -> None:
        self._engine = require_engine(engine)
        self._messages = _native.Messages()
        self._handles: list[Handle[Any]] = []
        self._keys: dict[tuple[str, bytes], _native.Key] = {}
        self._streams: list[tuple[int, int]] = []  # (stream, device) of arrays on a GPU
        self._done = False

    @overload
    def add(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: ArrayT,
        *,
        out: None = None,
        **more: Unpack[MessageOptions],
    ) -> Handle[ArrayT]: ...

    @overload
    def add(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Buffer,
        *,
        out: None = None,
        **more: Unpack[MessageOptions],
    ) -> Handle[bytes]: ...

    @overload
    def add(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Data,
        *,
        out: ArrayT,
        **more: Unpack[MessageOptions],
    ) -> Handle[ArrayT]: ...

    @overload
    def add(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Data,
        *,
        out: BufferT,
        **more: Unpack[MessageOptions],
    ) -> Handle[BufferT | memoryview]: ...

    def add(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Any,
        *,
        iv: Buffer | None = None,
        aad: Buffer | None = None,
        out: Any = None,
        padding: Literal["pkcs7"] | None = None,
        tag_length: int = 16,
    ) -> Handle[Any]:
        """Takes a message up and checks it; the arguments are as for `Cipher` and its methods.

        Until the batch has run it holds on to data, iv, aad and out, which must not change. All
        messages lie in host memory, or all on one GPU. RuntimeError: the batch has run.
        """
        if self._done:
            raise RuntimeError("this batch has run: make a new one for more messages")
        decrypt, padded = is_decrypt(direction), is_padded(padding)
        shared_key = self._share_key(algorithm, key)
        finish = None
        source, target = data, out
        if out is not None or type(data) not in PLAIN:
            source, target, finish = self._place(shared_key, decrypt, padded, data, out, tag_length)
        held = self._messages.add(shared_key, decrypt, padded, source, target, iv, aad, tag_length)
        handle: Handle[Any] = Handle(len(self._handles), held, finish)
        self._handles.append(handle)
        return handle

    def run(self, stream: StreamLike = None) -> None:
        """Runs the messages. Only the handle of a message says that its tag or padding does not
        match.

        stream: as of `Cipher.encrypt`; None takes the current stream of the first array's library.
        ValueError: an AEAD other than GCM-SIV encrypts two messages with the same key and nonce.
        EngineError: no result is valid.
        RuntimeError: the batch has run.
        """
        messages, pointer = self._begin(stream)
        self._settle(messages.run(self._engine, pointer))

    def start(self, stream: StreamLike = None) -> BatchRun:
        """Runs the messages in the background; others may ask or wait.

        stream: as of `run`; the batch waits for what is on it now. Work of the caller that needs
                the results, or changes the inputs, is put there when the batch is done.
        RuntimeError: the batch has run or been started. MemoryError: there are no more threads.
        """
        messages, pointer = self._begin(stream)
        start = partial(messages.start, self._engine, pointer)
        run: BatchRun = _later.load("batch_run").BatchRun(start, self._settle)
        return run

    def _begin(self, stream: StreamLike) -> tuple[_native.Messages, int]:
        if self._done:
            raise RuntimeError("this batch has run: make a new one")
        self._done = True
        pointer = 0
        if stream is not None or self._streams:
            asked = _later.load("arrays").stream_pointer(stream)
            pointer = asked if asked is not None else self._streams[0][0] if self._streams else 0
            for other, device in set(self._streams):
                _later.load("arrays").wait(pointer, other, device)
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
    ) -> tuple[Any, Any, Any]:
        """Views of data and out, and what makes the result, as `arrays.placed`."""
        arrays = _later.load("arrays")
        library = arrays.library_of(data, "data")
        stream = arrays.choose_stream(library, data, None)
        found = arrays.placed(key, decrypt, padded, library, data, out, tag_length, stream)
        device = library.device(data)
        if device is not None:
            self._streams.append((stream, device))
        return found  # type: ignore[no-any-return]

    def _share_key(self, algorithm: AlgorithmName, key: Buffer | _native.Key) -> _native.Key:
        """One `Key` for equal bytes: schedules are made once, and nonces used twice are found."""
        if isinstance(key, _native.Key) or not isinstance(algorithm, str):
            return make_key(algorithm, key)
        try:
            name = algorithm, key if type(key) is bytes else bytes(memoryview(key))
        except (TypeError, ValueError, BufferError):
            # An array that is not a buffer or has no format for one, or not a key at all.
            return make_key(algorithm, key)
        if name not in self._keys:
            self._keys[name] = _native.Key(algorithm, key)
        return self._keys[name]
