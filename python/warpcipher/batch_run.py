# SPDX-License-Identifier: Apache-2.0
"""A batch that runs in the background: apart from batch.py, as few programs need asyncio."""

from __future__ import annotations

import asyncio
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any

from ._uncopied import Uncopied

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class BatchRun(Uncopied):
    """A batch on its way, from `Batch.start`: `await` it, `wait` for it, or ask if it is `done`.

    Waiting raises what `Batch.run` would have raised. The results are in the batch's handles.
    """

    __slots__ = ("_future",)

    def __init__(self, work: Callable[[], None]) -> None:
        self._future: futures.Future[None] = futures.Future()
        self._future.set_running_or_notify_cancel()  # cannot be taken back
        threading.Thread(target=self._run, args=(work,), name="warpcipher.Batch").start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(None)

    def done(self) -> bool:
        """Whether the batch has ended, well or not."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the batch has ended, or so many seconds: then False."""
        if not futures.wait([self._future], timeout).done:
            return False
        self._future.result()
        return True

    def __await__(self) -> Generator[Any, None, None]:
        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        return f"<warpcipher.BatchRun: {'done' if self.done() else 'running'}>"
