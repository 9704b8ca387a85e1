# SPDX-License-Identifier: Apache-2.0
"""Texts that start and end in host memory: to the GPU, through a job, and back."""

from __future__ import annotations

from .. import _native
from ..bench.memory import DeviceMemory, HostMemory, fill
from .session import Session


class RoundTrip:
    """Memory of `size` bytes on both sides, twice: for a text and for its result. Page-locked on
    the host, as only that can be copied while a kernel runs.

    `extra`: bytes of device memory after each.
    """

    def __init__(self, session: Session, size: int, *, extra: int = 0) -> None:
        self._stream = session.need_stream()
        self.size = size
        self.host_source = HostMemory(size, pinned=True)
        self.host_target = HostMemory(size, pinned=True)
        self.source = DeviceMemory(size + extra, self._stream)
        self.target = DeviceMemory(size + extra, self._stream)
        fill(self.host_source, None)
        fill(self.source, self._stream)

    def to_device(self, size: int) -> None:
        """Enqueues the copy of the text."""
        self._stream.copy(self.source.pointer, self.host_source.pointer, size)

    def to_host(self, size: int) -> None:
        """Enqueues the copy of the result."""
        self._stream.copy(self.host_target.pointer, self.target.pointer, size)

    def one_after_another(self, job: _native.Job, size: int) -> None:
        """Enqueues the copy of the text, the kernel, the copy of the result."""
        self.to_device(size)
        job.run(self.source.pointer, size, self.target.pointer, size, self._stream.pointer)
        self.to_host(size)

    def overlapped(
        self, job: _native.Job, size: int, streams: list[_native.WorkStream], unit: int
    ) -> None:
        """The same in as many parts as there are streams, each on its own; waits for all. Parts
        start at multiples of `unit` bytes, and must not depend on each other."""
        part = -(-size // (len(streams) * unit)) * unit
        for index, stream in enumerate(streams):
            start = min(index * part, size)
            length = min(part, size - start)
            if length == 0:
                continue
            source, target = self.source.pointer + start, self.target.pointer + start
            stream.copy(source, self.host_source.pointer + start, length)
            job.run(source, length, target, length, stream.pointer)
            stream.copy(self.host_target.pointer + start, target, length)
        for stream in streams:
            stream.wait()
