# SPDX-License-Identifier: Apache-2.0
"""A store in this process, at step://, whose every call is a step: it dies at one, or fails."""

from __future__ import annotations

import contextlib
import errno
import io
import threading
import unittest.mock
from collections.abc import Callable, Iterator

from warpcipher import stores
from warpcipher.stores import ObjectInfo
from warpcipher.stores.store import Store, changed, exists

SECOND = 10**9


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the store works from here on."""


class StepStore(Store):
    """objects: path to content, time and version. dies_at: the step at which everything ends.
    hook: called with the name of each call and the path; what it raises fails that call."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int, str]] = {}
        self.steps = self._puts = 0
        self.dies_at: int | None = None
        self.hook: Callable[[str, str], None] = lambda call, path: None
        self._lock = threading.Lock()

    def put(self, path: str, data: bytes) -> None:
        version = str(int(self.objects.get(path, (b"", 0, "0"))[2]) + 1)
        self._puts += 1
        self.objects[path] = data, self._puts * SECOND, version

    def _step(self, call: str, path: str) -> None:
        with self._lock:
            self.steps += 1
            if self.dies_at is not None and self.steps >= self.dies_at:
                raise Killed
        self.hook(call, path)

    def _info(self, path: str) -> ObjectInfo:
        try:
            data, modified, version = self.objects[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such object", f"step://{path}") from None
        return ObjectInfo(f"step://{path}", len(data), modified, version)

    def stat(self, path: str) -> ObjectInfo:
        self._step("stat", path)
        return self._info(path)

    def listing(self, folder: str) -> Iterator[ObjectInfo]:
        for path in sorted(self.objects, key=str.encode):
            if path.startswith(folder):
                self._step("list", path)
                with contextlib.suppress(FileNotFoundError):
                    yield self._info(path)

    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> bytes:
        self._step("read", path)
        if self._info(path).version != info.version:
            raise changed(info.url)
        return self.objects[path][0][offset : offset + length]

    @contextlib.contextmanager
    def writing(self, path: str, *, replace: bool, **_: object) -> Iterator[io.BytesIO]:
        self._step("begin", path)
        if not replace and path in self.objects:
            raise exists(f"step://{path}")
        data = io.BytesIO()
        yield data
        self._step("end", path)
        self.put(path, data.getvalue())

    def remove(self, path: str) -> None:
        self._step("remove", path)
        self.objects.pop(path, None)


@contextlib.contextmanager
def step_store() -> Iterator[StepStore]:
    """The store, for the length of a block."""
    made, other = StepStore(), stores.store_of

    def store_of(url: str) -> tuple[Store, str]:
        return (made, url.removeprefix("step://")) if url.startswith("step://") else other(url)

    with unittest.mock.patch.object(stores, "store_of", store_of):
        yield made
