# SPDX-License-Identifier: Apache-2.0
"""The operating system's random bytes, with the continuous tests that SP 800-90B asks of a source.

The system has conditioned these bytes, so each counts as 8 bits of entropy. The tests find a source
that is stuck or badly biased, such as one that a sandbox replaced by a constant; they cannot find
one that an attacker predicts.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING

from .._not_at_fork import NOT_AT_FORK
from .forks import process

if TYPE_CHECKING:
    from collections.abc import Callable

# SP 800-90B, section 4.4, for 8 bits of entropy a byte. A good source fails either test with
# probability 2^-60 a sample (the standard recommends 2^-20 to 2^-40): below it would fail in use.
REPETITION_CUTOFF = 9
"""1 + ceil(60 / 8) equal bytes in a row (section 4.4.1)."""

WINDOW = 512
"""Samples of the adaptive proportion test (section 4.4.2), for a source that is not binary."""

PROPORTION_CUTOFF = 25
"""1 + critbinom(512, 2^-8, 1 - 2^-60) times the first byte in a window."""

BLOCK = 16
"""Bytes that are compared with those before them: an equal block is an error. A good source has one
with probability 2^-128."""


class HealthTestError(RuntimeError):
    """A source of entropy or a generator failed a test of its health, and gives no more output."""


class Monitor:
    """The continuous tests over what a source gives, piece after piece."""

    def __init__(self) -> None:
        self._last = -1
        self._run = 0
        self._first = -1
        self._seen = 0
        self._equal = 0
        self._digest = b""  # and not the block, which becomes part of a seed

    def check(self, data: bytes) -> None:
        """Tests the next bytes of the source. HealthTestError: they failed."""
        for byte in data:
            self._run = self._run + 1 if byte == self._last else 1
            self._last = byte
            if self._run >= REPETITION_CUTOFF:
                raise HealthTestError(
                    f"the source of entropy repeated a byte {self._run} times: it is stuck"
                )
            if self._seen == 0:
                self._first, self._equal = byte, 0
            self._equal += byte == self._first
            self._seen = (self._seen + 1) % WINDOW
            if self._equal >= PROPORTION_CUTOFF:
                raise HealthTestError(
                    f"the source of entropy gave one byte {self._equal} times in {WINDOW}: it is "
                    "biased"
                )
        for begin in range(0, len(data) - BLOCK + 1, BLOCK):
            digest = hashlib.sha256(data[begin : begin + BLOCK]).digest()
            if digest == self._digest:
                raise HealthTestError(f"the source of entropy repeated a block of {BLOCK} bytes")
            self._digest = digest


class SystemEntropy:
    """Bytes of the operating system, tested. One for the process; threads take turns.

    read: what is read, `os.urandom` unless a test says otherwise. Once a test has failed, every
    further call fails.
    """

    START = 1024
    """Bytes that are tested and thrown away before the first use (SP 800-90B, section 4.3)."""

    def __init__(self, read: Callable[[int], bytes] = os.urandom) -> None:
        self._read = read
        self._failed: HealthTestError | None = None
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._monitor = Monitor()
        self._started = False
        self._process = process()

    def __call__(self, size: int) -> bytes:
        """`size` bytes. HealthTestError: the source failed a test, now or before."""
        if self._process != process():  # the lock may be another thread's, which is not here
            with NOT_AT_FORK:
                if self._process != process():
                    self._begin()
        with self._lock:
            if self._failed is not None:
                raise HealthTestError(str(self._failed))
            try:
                if not self._started:
                    self._take(self.START)
                    self._started = True
                return self._take(size)
            except HealthTestError as error:
                self._failed = error
                raise

    def _take(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) != size:
            raise HealthTestError(
                f"the source of entropy gave {len(data)} bytes, asked for were {size}"
            )
        self._monitor.check(data)
        return data


system = SystemEntropy()
