# SPDX-License-Identifier: Apache-2.0
"""A batch that runs in the background: apart from batch.py, as few programs need asyncio."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
from concurrent import futures
from functools import partial
from typing import TYPE_CHECKING, Any

from ._uncopied import Uncopied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from . import _native

    Outcomes = list[tuple[_native.Status, int]]

# The interpreter waits for these at its exit: their threads write to memory of the caller.
_running: set[BatchRun] = set()


@atexit.register
def _finish_all() -> None:
    for run in list(_running):
        with contextlib.suppress(Exception):  # a thread of the parent runs it, or the run failed
            run._started.wait()


class BatchRun(Uncopied):
    """A batch on its way, from `Batch.start`: `await` it, `wait` for it, or ask if it is `done`.

    Waiting raises the error of `Batch.run`. The results are in the batch's handles. In
    the child of a fork nobody runs a batch that the parent has started: waiting raises EngineError
    unless it was done before.

    >>> import warpcipher as wc
    >>> batch = wc.Batch()
    >>> handle = batch.add("aes-128-ctr", "encrypt", bytes(16), b"text", iv=bytes(16))
    >>> run = batch.start()  # the program continues
    >>> done = run.wait()
    >>> len(handle.result())
    4
    """

    __slots__ = ("_future", "_started")

    def __init__(
        self,
        start: Callable[[Callable[[Outcomes | None], None]], _native.StartedBatch],
        settle: Callable[[Outcomes], None],
    ) -> None:
        self._future: futures.Future[None] = futures.Future()
        self._future.set_running_or_notify_cancel()  # cannot be taken back
        self._started = start(partial(self._end, settle))
        _running.add(self)
        if self._future.done():
            _running.discard(self)

    def _end(self, settle: Callable[[Outcomes], None], outcomes: Outcomes | None) -> None:
        """Called by the thread of the batch, before the batch says that it is done."""
        try:
            if outcomes is not None:
                settle(outcomes)
        finally:
            self._future.set_result(None)
            _running.discard(self)

    def done(self) -> bool:
        """Whether the batch has ended, well or not."""
        return self._started.done

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the batch has ended, or that many seconds: then False."""
        # A child must not touch the future: at the fork another thread may have held its lock.
        if not self._started.in_child and not futures.wait([self._future], timeout).done:
            return False
        self._started.wait()
        return True

    def __await__(self) -> Generator[Any, None, None]:
        if not self._started.in_child:
            yield from asyncio.wrap_future(self._future).__await__()
        self._started.wait()

    def __repr__(self) -> str:
        return f"<warpcipher.BatchRun: {'done' if self.done() else 'running'}>"
