# SPDX-License-Identifier: Apache-2.0
"""Payloads of Harrison 2008: many messages in one run, through the paper's mapping of threads and
through the product's batches. Each is checked and timed here, for the figures."""

from __future__ import annotations

import os
import random
import struct
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import warpcipher as wc

from .. import published
from ..report import shown_time
from ..results import Cell, Series, Spread, shown
from ..session import Session
from ..settings import shown_size

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

NAME = "harrison2008"
ENGINE = "cuda"  # of the product
DIRECT, STRIPED, PRODUCT = "payload-direct", "payload-striped", "warpcipher"
HARD_CODED = "ctr-quad-shared"


@dataclass(frozen=True)
class Message:
    """blocks: of 16 bytes, with padding. serial: CBC encryption, else CTR. key: its number.
    padding: bytes of it, which the GPU adds; the text lacks a block where they fill one."""

    blocks: int
    serial: bool = False
    key: int = 0
    padding: int = 0

    @property
    def text_size(self) -> int:
        """Bytes of a payload's text that are the message's: whole blocks."""
        return 16 * (self.blocks - (self.padding == 16))

    @property
    def algorithm(self) -> AlgorithmName:
        return "aes-128-cbc" if self.serial else "aes-128-ctr"


def size_of(messages: Sequence[Message]) -> int:
    return 16 * sum(message.blocks for message in messages)


def described(messages: Sequence[Message]) -> bytes:
    """As the jobs take messages (lab/harrison2008_payload.hpp), each with a random IV."""
    ivs = os.urandom(16 * len(messages))
    header = cache(lambda m: struct.pack("=4I", m.blocks, m.serial, m.key, m.padding))
    return b"".join(header(m) + ivs[16 * i : 16 * i + 16] for i, m in enumerate(messages))


def sealed(
    messages: Sequence[Message], keys: Sequence[bytes], ivs: list[bytes], text: bytes
) -> bytes:
    """The reference engine's results for the messages of a payload."""
    found, start = [], 0
    for message, iv in zip(messages, ivs, strict=True):
        whole = text[start : start + message.text_size][: 16 * message.blocks - message.padding]
        start += message.text_size
        cipher = wc.Cipher(message.algorithm, keys[message.key], engine="reference")
        found.append(cipher.encrypt(whole + bytes([message.padding]) * message.padding, iv=iv))
    return b"".join(found)


class Runner:
    """Payloads on the GPU, the same text again and again. All times are the host's."""

    def __init__(self, session: Session, size: int) -> None:
        self._session = session
        self.source, self.target = session.buffers(STRIPED, size)
        for variant in (DIRECT, STRIPED):
            self._check(variant)
        for serial in (False, True):
            self._check_product(serial=serial)

    def _check(self, variant: str) -> None:
        """A payload of both modes, many lengths and some keys."""
        keys = [os.urandom(16) for _ in range(3)]
        messages = [Message(1 + 37 * i % 70, i % 3 == 0, i % 3, i % 17) for i in range(50)]
        payload = described(messages)
        ivs = [payload[i + 16 : i + 32] for i in range(0, len(payload), 32)]
        text = os.urandom(sum(message.text_size for message in messages))
        job = self._session.job(variant, b"".join(keys), payload, multiprocessors=2)
        self._session.expect(variant, job, text, sealed(messages, keys, ivs, text))

    def paper(self, messages: Sequence[Message], keys: int = 1, variant: str = STRIPED) -> Spread:
        """Seconds of serialisation, its copy to the GPU and the kernel."""
        text_size = sum(message.text_size for message in messages)
        size, session = size_of(messages), self._session
        made = os.urandom(16 * keys), described(messages)
        job = session.job(variant, *made, multiprocessors=session.multiprocessors)
        call = partial(session.run, job, self.source, text_size, self.target, size)
        return self._add(variant, messages, keys, session.time(call, on_device=False))

    def product(self, message: Message, count: int, keys: int = 1) -> Spread:
        """Seconds of `run_columns`, for messages of one kind."""
        secrets = [os.urandom(16) for _ in range(keys)]
        call = self._columns(message, secrets, os.urandom(16 * count))
        seconds = self._session.time(call, on_device=False)
        return self._add(PRODUCT, [message] * count, keys, seconds)

    def _columns(self, message: Message, keys: list[bytes], ivs: bytes) -> Callable[[], object]:
        count = len(ivs) // 16
        size = 16 * message.blocks * count
        return partial(
            wc.run_columns,
            *(message.algorithm, "encrypt"),
            [wc.Key(message.algorithm, key) for key in keys],
            self.source.view(0, size),
            lengths=array("Q", [16 * message.blocks]) * count,
            key_index=array("Q", (i % len(keys) for i in range(count))),
            ivs=ivs,
            out=self.target.view(0, size),
            engine=ENGINE,
            stream=self._session.need_stream().pointer or None,
        )

    def _check_product(self, *, serial: bool) -> None:
        count = 7
        keys, ivs = [os.urandom(16) for _ in range(3)], os.urandom(16 * count)
        messages = [Message(5, serial, i % 3) for i in range(count)]
        text = os.urandom(size_of(messages))
        self.source.write(text)
        self._columns(messages[0], keys, ivs)()
        self._session.wait()
        cut = [ivs[i : i + 16] for i in range(0, len(ivs), 16)]
        if self.target.read(len(text)) != sealed(messages, keys, cut, text):
            raise self._session.wrong(PRODUCT)

    def batch(self, messages: Sequence[Message], repetitions: int) -> Spread:
        """Seconds of `Batch.run`, for messages of both modes under one key."""
        keys = {m.algorithm: wc.Key(m.algorithm, os.urandom(16)) for m in messages}
        stream = self._session.need_stream().pointer or None
        times = []
        for _ in range(repetitions + 1):
            batch, start = wc.Batch(ENGINE), 0
            for message in messages:
                name, length = message.algorithm, 16 * message.blocks
                text, out = (it.view(start, length) for it in (self.source, self.target))
                batch.add(name, "encrypt", keys[name], text, iv=os.urandom(16), out=out)
                start += length
            begin = time.perf_counter()
            batch.run(stream=stream)
            self._session.wait()
            times.append(time.perf_counter() - begin)
        # The first makes what later ones find.
        return self._add(PRODUCT, messages, 1, Spread.of(times[1:]))

    def _add(self, name: str, messages: Sequence[Message], keys: int, seconds: Spread) -> Spread:
        counts: Any = {"messages": len(messages), "keys": keys}
        counts |= {it: max(getattr(each, it) for each in messages) for it in ("blocks", "padding")}
        self._session.measure(name, seconds, size_of(messages), residence="device", **counts)
        return seconds


def serialisation(session: Session, messages: Sequence[Message]) -> Spread:
    """Section 6.1: what the streams of a payload (descriptors, a key schedule, logical thread
    index) cost one CPU thread before the GPU sees it."""
    job = session.job("serialise", os.urandom(16), described(messages))
    call = session.writer("serialise", job, 44 * len(messages) + 176)
    checked = "what payloads make of it"
    return session.measure("serialise", call, len(messages), checked, unit="messages").seconds


def run(session: Session) -> None:
    runner = Runner(session, max(1 << session.values["payload"], size_of(mixed_payloads(7)[0])))
    _figures4and5(session, runner)
    _overhead(session, runner)
    _padding(session, runner)
    _figure7(session, runner)


# --- Figures 4 and 5, and what the generic model, rekeying and padding cost -----------------------

PARALLEL_BLOCKS = (16, 512, 2048, 16384)
SERIAL_BLOCKS = (16, 128, 512, 2048)
MOST_MESSAGES = 16384
REKEYED = 512  # blocks of the messages that are also measured with a key each
OVERHEAD_BLOCKS = (16384, 512, 16)
PADDED_BLOCKS = (16, 512)
INCLUDED = "serialisation or planning"


def _most(session: Session, blocks: int) -> int:
    """Messages in a payload: up to MOST_MESSAGES and the text that `payload` allows."""
    return min(MOST_MESSAGES, (1 << session.values["payload"]) // (16 * blocks))


def _line(
    session: Session, runner: Runner, way: str, message: Message, *, rekeyed: bool = False
) -> dict[int, float]:
    """GB/s over the number of messages. rekeyed: a key each."""
    most, count = _most(session, message.blocks), 1
    found: dict[int, float] = {}
    while most not in found:
        keys = count if rekeyed else 1
        if way == STRIPED:
            messages = [Message(message.blocks, message.serial, i % keys) for i in range(count)]
            seconds = runner.paper(messages, keys)
        else:
            seconds = runner.product(message, count, keys)
        found[count] = 16 * message.blocks * count / seconds.median / 1e9
        count = min(count * (16 if session.quick else 4), most)
    return found


def _figures4and5(session: Session, runner: Runner) -> None:
    """GB/s over message count, and what section 7 says of rekeying and of serial modes."""
    lines: dict[bool, dict[str, dict[int, float]]] = {False: {}, True: {}}
    for serial, lengths in ((False, PARALLEL_BLOCKS), (True, SERIAL_BLOCKS)):
        for blocks in lengths:
            for way in (STRIPED, PRODUCT):
                message, label = Message(blocks, serial), f"{blocks} blocks, {way}"
                lines[serial][label] = _line(session, runner, way, message)
                if blocks == REKEYED and not serial:
                    line = _line(session, runner, way, message, rekeyed=True)
                    lines[serial][f"{label}, a key each"] = line
    known = published.load(NAME)["generic_gb_per_s"]["value"]
    level = Series.level("published maximum, with transfers", (1, MOST_MESSAGES), known, True)
    header = ("messages of", "fewest messages", "GB/s", "most messages", "GB/s")
    for figure, kind, serial, levels in (
        ("4", "parallel", False, [level]),
        ("5", "serial", True, []),
    ):
        title = f"Messages of a {kind} mode (Figure {figure})"
        found = lines[serial]
        session.lines(f"figure{figure}", title, ("messages", "GB/s"), found, *levels)
        session.table(
            f"{kind.title()} messages, GB/s in device memory",
            f"Figure {figure}: the least and the largest payload; {INCLUDED} included",
            header,
            ((label, *min(it.items()), *max(it.items())) for label, it in found.items()),
        )
    same = lines[False][f"{REKEYED} blocks, {STRIPED}"]
    rekeyed = lines[False][f"{REKEYED} blocks, {STRIPED}, a key each"]
    parallel, chained = (lines[serial][f"2048 blocks, {STRIPED}"] for serial in (False, True))
    product = lines[True][f"2048 blocks, {PRODUCT}"]
    few, many = min(chained), max(chained)
    session.conclude(
        "a key for each message costs more the more messages there are",
        f"{max(same)} messages: {1 - rekeyed[max(same)] / same[max(same)]:.0%} slower",
        rekeyed[max(same)] < same[max(same)],
    )
    session.conclude(
        "serial modes need many messages: few leave the GPU empty",
        f"2048 blocks, {few} message: {shown(chained[few])} GB/s serial, "
        f"{shown(parallel[few])} parallel; {many} messages: {shown(chained[many])} and "
        f"{shown(parallel[many])} (the product's serial: {shown(product[many])})",
        chained[few] < parallel[few] / 4 and chained[many] > 4 * chained[few],
    )


def _overhead(session: Session, runner: Runner) -> None:
    """The generic model against the hard-coded kernel, over as much text."""
    size = 1 << session.values["payload"]
    known = published.load(NAME)["overhead"]
    job = session.job(HARD_CODED, os.urandom(16), os.urandom(16))
    call = partial(session.run, job, runner.source, size, runner.target, size)
    base = session.time(call, on_device=False)
    rows: list[tuple[Cell, ...]] = []
    found: dict[int, float] = {}
    mapping: list[float] = []
    for blocks in OVERHEAD_BLOCKS:
        count = size // (16 * blocks)
        messages = [Message(blocks)] * count
        striped, direct = (runner.paper(messages, variant=way) for way in (STRIPED, DIRECT))
        product = runner.product(messages[0], count)
        streams = serialisation(session, messages)
        costs = [1 - base.median / way.median for way in (striped, direct, product)]
        found[blocks] = costs[0]
        mapping.append(striped.median / direct.median - 1)
        shares = (known[str(blocks)], *costs, streams.median / striped.median)
        rows.append((blocks, count, *(f"{share:.0%}" for share in shares)))
    header = ("blocks a message", "messages", "published", "striped, here", "direct, here")
    session.table(
        f"What the generic model costs against {HARD_CODED}, {shown_size(size)}",
        f"section 7.1. Device memory; {HARD_CODED} takes {shown_time(base.median)}. Negative: "
        "the product is faster than the paper's hard-coded kernel",
        (*header, "product, here", "serialisation's share of striped"),
        rows,
    )
    session.conclude(
        "the generic model costs 16% with large messages, 22% with medium, 45% with small",
        ", ".join(f"{blocks} blocks: {share:.0%}" for blocks, share in found.items()),
        found[16] > found[512] > 0 and found[16] > found[16384],
    )
    said = "the striped mapping costs next to nothing over the direct one (0.25%)"
    session.conclude(said, f"{OVERHEAD_BLOCKS[0]} blocks: {mapping[0]:.1%}", mapping[0] < 0.03)


def _padding(session: Session, runner: Runner) -> None:
    """Section 6.3: the padding that threads add, as the descriptor says, against none."""
    costs: list[float] = []
    for blocks in PADDED_BLOCKS:
        count = _most(session, blocks)
        for serial in (False, True):
            without, *others = (
                runner.paper([Message(blocks, serial, padding=added)] * count).median
                for added in (0, 5, 16)
            )
            costs += [padded / without - 1 for padded in others]
    said = "padding costs very little: threads diverge for one block of the cipher"
    session.conclude(said, f"{min(costs):.1%} to {max(costs):.1%}", max(costs) < 0.05)


# --- Figure 7: payloads that mix parallel and serial messages -------------------------------------

SERIAL_COUNT, LARGE, LARGE_COUNT, SMALL, SMALL_COUNT = 1024, 512, 960, 32, 992
GROUP = 32  # threads


def mixed_payloads(seed: int) -> list[list[Message]]:
    """The seven orders of section 7.3 of the same messages. The paper says what each is for; where
    the messages have to stand for that follows from the striped mapping, which gives blocks of 256
    threads, 2048 here, the groups of 32 logical threads in turn."""
    shuffled = random.Random(seed)  # noqa: S311 - an order
    serial = [Message(16 << i % 8, serial=True) for i in range(SERIAL_COUNT)]
    large, small = [Message(LARGE)] * LARGE_COUNT, [Message(SMALL)] * SMALL_COUNT
    by_size = sorted(serial, key=lambda message: message.blocks)
    shuffled.shuffle(serial)
    groups = [serial[i : i + GROUP] for i in range(0, SERIAL_COUNT, GROUP)]

    def one_by_one(between: list[Message]) -> list[Message]:
        pairs = zip(serial, between, strict=False)
        return [*chain.from_iterable(pairs), *between[SERIAL_COUNT:]]

    # 3: a block of threads takes 8 groups, which are 2048 groups apart: 4 blocks hold all 32.
    gaps = -(-len(groups) // 4)
    gap = [*large[: LARGE_COUNT // gaps], *small[: SMALL_COUNT // gaps]]
    third = [
        message
        for i in range(0, len(groups), 4)
        for message in (*chain.from_iterable(groups[i : i + 4]), *gap)
    ]
    fourth = [*serial, *large, *small]
    shuffled.shuffle(fourth)
    pieces: list[list[Message]] = [*groups, *([message] for message in (*large, *small))]
    shuffled.shuffle(pieces)
    return [
        one_by_one([*large, *small]),  # 16 groups apart: the same of 16 multiprocessors
        one_by_one([*small, *large]),
        third,
        fourth,
        list(chain.from_iterable(pieces)),
        [*serial, *large, *small],
        [*by_size, *large, *small],
    ]


ORDERS = (
    "one serial message a group of 32 threads, 16 groups apart",
    "one serial message a group, groups in a row",
    "serial messages in as few blocks of threads as hold them",
    "random",
    "random, serial messages in groups of 32",
    "serial messages first, in groups of 32",
    "the same, in order of their size",
)


def _figure7(session: Session, runner: Runner) -> None:
    orders = mixed_payloads(7)
    size = size_of(orders[0])
    names = tuple(f"payload {i + 1}" for i in range(len(orders)))
    paper = [size / runner.paper(order).median / 1e9 for order in orders]
    batches = [runner.batch(order, session.report.repetitions) for order in orders]
    product = [size / seconds.median / 1e9 for seconds in batches]
    series = Series(STRIPED, names, tuple(paper)), Series(PRODUCT, names, tuple(product))
    title = "The same messages of both modes in seven orders (Figure 7)"
    session.bars("figure7", title, ("order", "GB/s"), *series)
    rows = tuple(zip(names, ORDERS, paper, product, strict=True))
    header = ("order", "what it is", STRIPED, PRODUCT)
    session.table(
        "Seven orders of the same messages, GB/s", "Figure 7 and section 7.3", header, rows
    )
    session.conclude(
        "serial messages belong in full groups of 32, spread evenly, in order of their size: 7 "
        "is the best order, and 3 beats 1 and 2",
        ", ".join(f"{i + 1}: {shown(rate)}" for i, rate in enumerate(paper))
        + f" GB/s; the product, which sorts by itself, {shown(min(product))} to "
        f"{shown(max(product))}",
        paper[6] == max(paper) and paper[2] > max(paper[0], paper[1]),
    )
