# SPDX-License-Identifier: Apache-2.0
"""A queue that makes batches of messages which many threads submit one by one: docs/queue.md."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Hashable
from concurrent import futures
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, overload

from . import _later, _native
from ._types import AlgorithmName, ArrayT, Buffer, BufferT, Data, Direction, SubmitOptions, Unpack
from ._uncopied import Closed, Uncopied
from .arguments import PLAIN, is_decrypt, is_padded, make_key, require_engine, require_int

# Every native queue whose workers may still be at work. They need the interpreter to settle
# futures, so all is finished before it goes; a queue that is dropped stays here until it is done.
_at_work: set[_native.Queue] = set()


_ANY = (1 << 64) - 1


def _microseconds(timeout: float | None) -> int:
    """The native queue's form: -1 waits as long as it takes."""
    if timeout is None:
        return -1
    if not isinstance(timeout, int | float):
        raise TypeError(f"timeout is {type(timeout).__name__}: expected seconds, or None")
    if not timeout >= 0:
        raise ValueError(f"timeout is {timeout}: expected 0 seconds or more, or None")
    return int(min(timeout, 1 << 42) * 1e6)  # no int is too large


def _finish_all() -> None:
    for queue in list(_at_work):
        queue.close(False)
    _at_work.clear()


atexit.register(_finish_all)


ResultT = TypeVar("ResultT")


class QueueFuture(Uncopied, futures.Future[ResultT]):
    """The result of one message: a `concurrent.futures.Future`. `asyncio.wrap_future` awaits it.

    result() is the result of `Cipher`, or raises its error; EngineError
    when the payload failed. Callbacks run in the queue's threads: they must not wait for other
    messages, and a `submit` in one raises `queue.Full` rather than wait for memory.
    """

    def __init__(self, queue: _native.Queue) -> None:
        super().__init__()
        self._queue = queue
        self._job: _native.QueueJob | None = None

    def cancel(self) -> bool:
        """Takes the message back. False when it has been launched or is done."""
        if self._job is not None and self._queue.cancel(self._job):
            return self._take_back()
        return self.cancelled()

    def running(self) -> bool:
        """Whether the message has been launched and is not done."""
        return self._job is not None and self._job.launched and not self.done()

    def add_done_callback(self, fn: Callable[[futures.Future[ResultT]], object]) -> None:
        """Has `fn(future)` called when the future is done, or now if it is. An error in it is
        logged, as by `concurrent.futures`."""
        super().add_done_callback(partial(_call_back, fn))

    def _take_back(self) -> bool:
        try:
            super().cancel()  # calls back
        finally:
            self.set_running_or_notify_cancel()
        return True

    def _ended_before(self) -> None:
        """Its user ended it without the queue. Waiting threads learn of a cancellation here."""
        if self.cancelled():
            self.set_running_or_notify_cancel()

    def _fail(self, status: _native.Status, text: str) -> None:
        try:
            _native.raise_failure(status, text)
        except Exception as error:
            # A traceback would refer to this frame, and so to the future.
            self.set_exception(error.with_traceback(None))

    def _break(self, error: BaseException) -> None:
        """The error of making the result becomes the outcome."""
        if isinstance(error, StopIteration):  # a future of asyncio takes none, and would never end
            outcome = RuntimeError("making the result raised StopIteration")
            outcome.__cause__ = error
            error = outcome
        self.set_exception(error)


def _call_back(fn: Callable[[futures.Future[Any]], object], future: futures.Future[Any]) -> None:
    """Calls a callback. SystemExit and the like would end a worker's round of callbacks, and those
    that come after would never be called. In the main thread they are for its user."""
    try:
        fn(future)
    except Exception:
        raise  # concurrent.futures logs it
    except BaseException:
        if threading.current_thread() is threading.main_thread():
            raise
        logging.getLogger("concurrent.futures").exception("a callback of %r raised", future)


@dataclass(frozen=True)
class QueueStatistics:
    """The work of a queue since it was made.

    reasons: payloads by the reason of their launch: "bytes", "messages" (that many were waiting),
             "delay" (the oldest was that old), "memory" (a submitter waited for memory), "flush",
             "close".
    failed:  messages whose payload failed, or that could not run with others of their payload. A
             bad tag is not counted.
    """

    payloads: int
    messages: int
    bytes: int
    reasons: dict[str, int]
    failed: int
    cancelled: int
    refused: int
    waiting: int
    memory_used: int
    most_memory_used: int


class Queue(Closed):
    """Combines messages that many threads submit into payloads, and runs those as batches.

    engine:        "auto" or a name of `engines()`.
    max_bytes:     text of one payload; a longer message makes one by itself.
    max_messages:  messages of one payload.
    max_delay_us:  microseconds that a message may wait for company.
    memory_limit:  bytes that all messages together may keep busy, text in and out; `submit` waits
                   when it is reached.
    max_in_flight: payloads running at once. None: 8 if they are to run on a GPU (engine "cuda",
                   or "auto" on a tuned machine with a GPU), else 4. The attribute has the number.

    Safe to use from several threads; a context manager that closes at its end. In the child of a
    fork a queue of the parent refuses messages: make a new one. TypeError, ValueError: a limit is
    no number, or not in its range. EngineError: the engine cannot run here.

    >>> import os
    >>> import warpcipher as wc
    >>> key = wc.Key("aes-128-gcm", bytes(16))
    >>> with wc.Queue() as queue:
    ...     future = queue.submit("aes-128-gcm", "encrypt", key, b"text", iv=os.urandom(12))
    >>> len(future.result())
    20
    """

    _instead = "make one in each process; pickle the messages instead"

    def __init__(
        self,
        engine: str = "auto",
        *,
        max_bytes: int = 8 << 20,
        max_messages: int = 4096,
        max_delay_us: int = 200,
        memory_limit: int = 256 << 20,
        max_in_flight: int | None = None,
    ) -> None:
        for name, value, least, most in (
            ("max_bytes", max_bytes, 1, _ANY),
            ("max_messages", max_messages, 1, (1 << 32) - 1),
            ("max_delay_us", max_delay_us, 0, 3_600_000_000),
            ("memory_limit", memory_limit, 1, _ANY),
        ):
            require_int(name, value, least, most)
        if max_in_flight is None:
            max_in_flight = 0  # as the native queue says it
        else:
            require_int("max_in_flight", max_in_flight, 1, 64)
        self._native = _native.Queue(
            require_engine(engine),
            max_bytes,
            max_messages,
            max_delay_us,
            memory_limit,
            max_in_flight,
        )
        self._engine = engine
        self._closed = False
        _at_work.difference_update([queue for queue in list(_at_work) if queue.ended])
        _at_work.add(self._native)
        # Dropped without close(): submitted messages are done all the same.
        weakref.finalize(self, self._native.stop).atexit = False

    @overload
    def submit(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: ArrayT,
        *,
        out: None = None,
        **more: Unpack[SubmitOptions],
    ) -> QueueFuture[ArrayT]: ...

    @overload
    def submit(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Buffer,
        *,
        out: None = None,
        **more: Unpack[SubmitOptions],
    ) -> QueueFuture[bytes]: ...

    @overload
    def submit(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Data,
        *,
        out: ArrayT,
        **more: Unpack[SubmitOptions],
    ) -> QueueFuture[ArrayT]: ...

    @overload
    def submit(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Data,
        *,
        out: BufferT,
        **more: Unpack[SubmitOptions],
    ) -> QueueFuture[BufferT | memoryview]: ...

    def submit(
        self,
        algorithm: AlgorithmName,
        direction: Direction,
        key: Buffer | _native.Key,
        data: Any,
        *,
        iv: Buffer | None = None,
        aad: Buffer | None = None,
        tag_length: int = 16,
        padding: Literal["pkcs7"] | None = None,
        out: Any = None,
        submitter: Hashable = None,
        timeout: float | None = None,
    ) -> QueueFuture[Any]:
        """Hands a message over; the arguments up to `out` are as for `Batch.add`.

        Until the message is done the queue holds on to data, iv, aad and out, which must not
        change. Arrays lie in host memory. Keys that many messages share should be a `Key`: bytes
        become one for each message.

        submitter: names the client, each of whom gets a fair share; None: the thread.
        timeout:   seconds to wait for memory; None: as long as it takes; 0: not at all.

        queue.Full: there was no memory in time. RuntimeError: the queue is closed. ValueError,
        TypeError, BufferError, InvalidTag (too short for a tag): the message cannot be right.
        """
        decrypt, padded = is_decrypt(direction), is_padded(padding)
        shared_key = make_key(algorithm, key)
        finish = None
        source, target = data, out
        if out is not None or type(data) not in PLAIN:
            source, target, finish = _place(shared_key, decrypt, padded, data, out, tag_length)
        future: QueueFuture[Any] = QueueFuture(self._native)
        future._job = self._native.submit(
            future,
            shared_key,
            decrypt,
            padded,
            source,
            target,
            iv,
            aad,
            tag_length,
            finish,
            None if submitter is None else hash(submitter) & 0xFFFF_FFFF_FFFF_FFFF,
            _microseconds(timeout),
        )
        return future

    @property
    def max_in_flight(self) -> int:
        """Payloads running at once."""
        return self._native.max_in_flight

    def flush(self) -> None:
        """Launches the waiting messages without further delay."""
        self._native.flush()

    def close(self, *, cancel: bool = False) -> None:
        """Takes no more messages, and waits until all are done. May be called again.

        cancel: cancels the messages that have not been launched. ValueError: called from a
                callback of a future, which would wait for itself.
        """
        self._closed = True
        self._native.close(cancel)
        _at_work.discard(self._native)

    def statistics(self) -> QueueStatistics:
        """Counts of the queue's work."""
        return QueueStatistics(**self._native.statistics())

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<warpcipher.Queue, engine={self._engine!r}, {state}>"


def _place(
    key: _native.Key, decrypt: bool, padded: bool, data: Any, out: Any, tag_length: int
) -> tuple[Any, Any, Any]:
    """Views of data and out, and the maker of the result from the number of bytes written."""
    arrays = _later.load("arrays")
    library = arrays.library_of(data, "data")
    if library.device(data) is not None:
        raise ValueError("data lies on a GPU, where a queue takes host memory: use a Batch")
    if out is not None and arrays.library_of(out, "out").device(out) is not None:
        raise ValueError("data lies in host memory and out on a GPU: both must lie in the host")
    return arrays.placed(key, decrypt, padded, library, data, out, tag_length, 0)  # type: ignore[no-any-return]
