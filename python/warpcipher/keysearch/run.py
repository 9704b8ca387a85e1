# SPDX-License-Identifier: Apache-2.0
"""The search itself: gives ranges to devices, notes finished ones, stops at a key.

Each device has a thread, which takes the next range that nobody has, runs it with the interpreter
lock released, and reports. The thread that iterates notes the reports and saves the checkpoint. A
range is about a second of work, aligned to its own length where that is possible.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from .. import _later
from .._types import PathLike
from ..arguments import kind, require_seconds
from .devices import LocalPool, Pool, Worker, WorkerLostError, choose
from .pace import UNKNOWN, Estimate, Pace, Progress
from .pairs import Algorithm, Pair, Test
from .ranges import Range, RangeSet, select
from .session import Checkpoint, CheckpointError, Identity, State
from .template import Candidates, Template

MOST_FALSE_POSITIVES = 1 << 20
SHORT_RUN = 0.5  # seconds: a range that took less is followed by one of twice its length
LONGEST_WAIT = 60.0  # seconds, for a report: a lock takes no wait of any length
FIRST_SAVE = 1.0  # seconds: a search that ends sooner leaves no checkpoint, unless one was named


@dataclass(frozen=True)
class _Report:
    """A range that a device has run; tested is less than its length when it was stopped."""

    first: int
    tested: int
    hits: Sequence[int]
    false_positives: int


@dataclass(frozen=True)
class _Ended:
    """A worker found nothing left to take, or is gone with the range that it had taken."""

    worker: Worker
    lost: Range | None


class Search:
    """A search for the key under which the pairs belong together; `warpcipher.search` is its short
    name. Iterate over it to run it, once; `cancel` stops it from any thread or signal handler.

    algorithm:  "aes-128-ecb", or another cipher of `warpcipher.algorithms()` in ECB, CBC, CFB, OFB
                or CTR.
    pairs:      `Pair`s, or tuples (plaintext, ciphertext[, iv[, mask]]).
    template:   the known part of the key; None: nothing. key_mask, candidates: see `Template`.
    start, count, shard: the part of the keys, by number, that is searched: `count` from `start` on,
                and of these the part (i, n), i from 1 to n. Numbers depend only on the template.
    find_all:   continue after the first key.
    engine:     "auto", or a name of `searchers()`; devices: some of its devices, by number.
    checkpoint: a file that records the tested ranges; a search whose file exists continues there.
    cluster:    the address of a Ray cluster whose nodes search; "auto": this machine's. They see
                template and pairs.
    interval:   seconds between two reports of progress.

    The attribute `keys` has the keys that pass all pairs so far, in the order they were found, DES
    keys with odd parity; `result` is None before the end, then "found", "exhausted" (no key in the
    range) or "cancelled".

    Raises ValueError for wrong arguments, CheckpointError (a ValueError) for a checkpoint that
    is damaged, in use or another search's, EngineError where a device cannot run or fails its
    self-test.

    >>> import warpcipher as wc
    >>> key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    >>> sealed = wc.Cipher("aes-128-ctr", key).encrypt(b"attack at dawn", iv=bytes(16))
    >>> pair = b"attack at dawn", sealed, bytes(16)
    >>> wc.search("aes-128-ctr", [pair], key.hex()[:-1] + "?", engine="cpu").run() == [key]
    True
    """

    def __init__(
        self,
        algorithm: str,
        pairs: Iterable[Pair | Sequence[bytes]],
        template: Template | str | None = None,
        *,
        key_mask: bytes | None = None,
        candidates: Candidates | None = None,
        start: int = 0,
        count: int | None = None,
        shard: tuple[int, int] | None = None,
        find_all: bool = False,
        engine: str = "auto",
        devices: Sequence[int] | None = None,
        checkpoint: PathLike | None = None,
        cluster: str | None = None,
        interval: float = 0.5,
    ) -> None:
        self.algorithm = Algorithm.named(algorithm)
        require_seconds("interval", interval)
        if checkpoint is not None and not isinstance(os.fspath(checkpoint), str):
            raise TypeError(f"the checkpoint is {kind(checkpoint)}: expected a path as text")
        if not isinstance(template, Template):
            template = Template(
                self.algorithm.cipher, template, mask=key_mask, candidates=candidates
            )
        elif key_mask is not None or candidates is not None:
            raise ValueError("a Template has its mask and candidates already")
        elif template.cipher != self.algorithm.cipher:
            raise ValueError(f"the template is for {template.cipher}, not {self.algorithm.cipher}")
        self.template = template
        self.test = Test(self.algorithm, pairs)
        self.start, self.end = select(template.keys, start, count, shard)
        self.find_all = find_all
        self.keys: list[bytes] = []
        self.result: Literal["found", "exhausted", "cancelled"] | None = None
        self.resumed = 0
        if self.false_positives_expected > MOST_FALSE_POSITIVES:
            raise ValueError(
                f"the pairs do not determine the key: {self.test.native.bits} known bits leave "
                f"about {self.false_positives_expected:.2g} wrong keys. "
                "Give more pairs or plaintext"
            )
        self._pool: Pool
        if cluster is None:
            self._pool = LocalPool(choose(engine, devices), template.space, self.test.native)
        elif devices is not None:
            raise ValueError("devices are numbers on this machine: a cluster uses all its devices")
        else:
            self._pool = _later.load("cluster.search").RayPool(
                cluster, template, self.test.blocks, engine
            )
        name = f"{self.algorithm.cipher}-{self.algorithm.mode}"
        digests = template.digest, self.test.digest
        self.identity = Identity(name, *digests, self.start, self.end)
        self._checkpoint_path = checkpoint
        self._interval = interval
        self._early_save = True
        self._state = State()
        self._lock = threading.Lock()
        self._taken = RangeSet()
        self._workers: list[Worker] = []
        self._threads: list[threading.Thread] = []
        self._reports: queue.SimpleQueue[_Report | _Ended | BaseException] = queue.SimpleQueue()
        self._working = 0  # threads whose last report has not come
        self._idle: list[Worker] = []
        self._stopped = threading.Event()
        self._began: float | None = None
        self._pace: Pace | None = None
        self._tested = 0
        self._progress: Iterator[Progress] | None = None

    @property
    def total(self) -> int:
        """Keys of the range."""
        return self.end - self.start

    @property
    def false_positives_expected(self) -> float:
        """Wrong keys of the range that pass all pairs, on average."""
        bits = self.test.native.bits
        return self.total / (1 << bits) if bits < 1000 else 0.0

    def use_checkpoint(self, path: PathLike) -> None:
        """As the argument, but a search that is over within a second leaves no file."""
        self._checkpoint_path = path
        self._early_save = False

    def estimate(self) -> Estimate:
        """Measures the rate of each device, for about a second, and searches nothing. What the
        checkpoint has as done is taken off."""
        saved = None
        if self._checkpoint_path is not None:
            saved = Checkpoint(self._checkpoint_path, self.identity).peek()
        done = 0 if saved is None else saved.done.count
        return Estimate(self.total - done, self._pool.estimate(self.start, self.end))

    @property
    def devices(self) -> list[str]:
        """A line for each device, or for the cluster."""
        return self._pool.describe()

    def cancel(self) -> None:
        """Ends the iteration soon. The checkpoint has the keys that were tested."""
        self._stopped.set()
        for worker in list(self._workers):
            worker.cancel()

    def run(self) -> list[bytes]:
        """Searches to the end, and returns the keys."""
        for _ in self:
            pass
        return self.keys

    def __iter__(self) -> Iterator[Progress]:
        if self._progress is None:
            self._progress = self._run()
        return self._progress

    def __next__(self) -> Progress:
        return next(iter(self))

    # --- the thread that iterates ---------------------------------------------------------------

    def _run(self) -> Iterator[Progress]:
        with contextlib.ExitStack() as stack:
            checkpoint = None
            if self._checkpoint_path is not None:
                checkpoint = stack.enter_context(Checkpoint(self._checkpoint_path, self.identity))
                self._load(checkpoint)
            if not self._is_over():
                stack.callback(self._pool.close)
                yield from self._search(checkpoint)
            yield self._now()
            if self._is_over():
                self.result = "found" if self.keys else "exhausted"
            else:
                self.result = "cancelled"

    def _load(self, checkpoint: Checkpoint) -> None:
        loaded = checkpoint.load()
        if loaded is None:
            return
        self._early_save = True
        self._state = loaded
        self.resumed = loaded.done.count
        self._taken = RangeSet(loaded.done)
        for number in loaded.found:
            key = self.template.space.key_at(number)
            if not self.test.native.passes(key):
                raise CheckpointError(
                    f"{checkpoint.path} is damaged: it names a key that does not pass the pairs"
                )
            self.keys.append(key)

    def _is_over(self) -> bool:
        if self.keys and not self.find_all:
            return True
        return self._state.done.first_gap(self.start, self.end) is None

    def _search(self, checkpoint: Checkpoint | None) -> Iterator[Progress]:
        self._workers = list(self._pool.start(self.start, self.end))
        if self._stopped.is_set():  # cancelled before there was a worker to cancel
            return
        self._began = saved = time.monotonic()
        self._pace = Pace(self._began)
        before = self._state.seconds
        for worker in self._workers:
            self._set_to_work(worker)
        try:
            shown = self._began
            while self._working or self._pool_may_help():
                waited = shown + self._interval - time.monotonic()
                with contextlib.suppress(queue.Empty):
                    self._note(self._reports.get(timeout=min(max(waited, 0.001), LONGEST_WAIT)))
                    now = time.monotonic()
                    if (
                        checkpoint is not None
                        and self._reports.empty()
                        and (self._early_save or now - saved > FIRST_SAVE)
                    ):
                        self._state.seconds = before + now - self._began
                        checkpoint.save(self._state)
                        saved, self._early_save = now, True
                if time.monotonic() - shown >= self._interval:
                    shown = time.monotonic()
                    yield self._now()
                    if self._pool_may_help():
                        for worker in self._pool.joined():
                            self._workers.append(worker)
                            self._set_to_work(worker)
        finally:
            self.cancel()
            for thread in self._threads:
                thread.join()
            while not self._reports.empty():
                report = self._reports.get()
                if isinstance(report, _Report):
                    self._note(report)
            self._state.seconds = before + time.monotonic() - self._began
            if checkpoint is not None and (self._early_save or not self._is_over()):
                checkpoint.save(self._state)

    def _pool_may_help(self) -> bool:
        return self._pool.waits and not self._stopped.is_set() and not self._is_over()

    def _set_to_work(self, worker: Worker) -> None:
        thread = threading.Thread(target=self._work, args=(worker,), daemon=True)
        self._threads.append(thread)
        self._working += 1
        thread.start()

    def _note(self, report: _Report | _Ended | BaseException) -> None:
        """Takes a report in."""
        if isinstance(report, BaseException):
            raise report
        if isinstance(report, _Ended):
            self._working -= 1
            if report.lost is None:
                self._idle.append(report.worker)
                return
            # Its range is free again, and those who found nothing left may have gone idle.
            self._workers.remove(report.worker)
            self._pool.lost(report.worker)
            with self._lock:
                self._taken.remove(*report.lost)
            idle, self._idle = self._idle, []
            for worker in idle:
                self._set_to_work(worker)
            return
        self._tested += report.tested
        if self._pace is not None:
            self._pace.note(time.monotonic(), report.tested)
        self._state.done.add(report.first, report.first + report.tested)
        self._state.false_positives += report.false_positives
        for number in report.hits:
            self._state.found.append(number)
            self.keys.append(self.template.space.key_at(number))
        if self.keys and not self.find_all:
            self.cancel()

    def _now(self) -> Progress:
        now = time.monotonic()
        return Progress(
            done=self._state.done.count,
            total=self.total,
            tested=self._tested,
            seconds=0.0 if self._began is None else now - self._began,
            keys_found=len(self.keys),
            false_positives=self._state.false_positives,
            lately=UNKNOWN if self._pace is None or self._is_over() else self._pace.lately(now),
        )

    # --- the threads of the devices -------------------------------------------------------------

    def _work(self, worker: Worker) -> None:
        lost: Range | None = None
        try:
            length = worker.preferred_count
            while lost is None and (taken := self._take(length)) is not None:
                first, count = taken
                began = time.monotonic()
                try:
                    tested, hits, false_positives = worker.run(first, count)
                except WorkerLostError:
                    lost = first, first + count
                    continue
                self._reports.put(_Report(first, tested, hits, false_positives))
                if tested < count:
                    break
                if time.monotonic() - began < SHORT_RUN and count == length < 1 << 62:
                    length *= 2
            self._reports.put(_Ended(worker, lost))
        except BaseException as error:  # continues in the thread that iterates
            self._reports.put(error)

    def _take(self, length: int) -> tuple[int, int] | None:
        """The next range, up to a multiple of `length`: its first number and count."""
        with self._lock:
            gap = None if self._stopped.is_set() else self._taken.first_gap(self.start, self.end)
            if gap is None:
                return None
            first, end = gap
            count = min(end - first, length - first % length)
            self._taken.add(first, first + count)
            return first, count
