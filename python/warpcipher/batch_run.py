# SPDX-License-Identifier: Apache-2.0
"""A batch that runs in the background: apart from batch.py, as few programs need asyncio."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any

from ._errors import EngineError
from ._uncopied import Uncopied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class BatchRun(Uncopied):
    """A batch on its way, from `Batch.start`: `await` it, `wait` for it, or ask if it is `done`.

    Waiting raises what `Batch.run` would have raised. The results are in the batch's handles. In
    the child of a fork nobody runs a batch that the parent has started: waiting raises EngineError
    unless it was done before.
    """

    __slots__ = ("_future", "_outcome", "_process")

    def __init__(self, work: Callable[[], None]) -> None:
        self._process = os.getpid()
        # What the run raised, if anything; set before the future, whose lock a child may find held.
        self._outcome: tuple[BaseException | None] | None = None
        self._future: futures.Future[None] = futures.Future()
        self._future.set_running_or_notify_cancel()  # cannot be taken back
        threading.Thread(target=self._run, args=(work,), name="warpcipher.Batch").start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._outcome = (error,)
        else:
            self._outcome = (None,)
        self._future.set_result(None)

    def _is_in_child(self) -> bool:
        return os.getpid() != self._process

    def _raise(self) -> None:
        if self._outcome is None:
            raise EngineError(
                "the batch was started before the fork, and a thread of the parent runs it: make a "
                "new one"
            )
        if self._outcome[0] is not None:
            raise self._outcome[0]

    def done(self) -> bool:
        """Whether the batch has ended, well or not."""
        return self._outcome is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the batch has ended, or so many seconds: then False."""
        if not self._is_in_child() and not futures.wait([self._future], timeout).done:
            return False
        self._raise()
        return True

    def __await__(self) -> Generator[Any, None, None]:
        if not self._is_in_child():
            yield from asyncio.wrap_future(self._future).__await__()
        self._raise()

    def __repr__(self) -> str:
        return f"<warpcipher.BatchRun: {'done' if self.done() else 'running'}>"
