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
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import warpcipher as wc

from .. import published
from ..report import shown_time
from ..results import Cell, Conclusion, Series, Spread, shown
from ..session import CHECKED, Session
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


def described(messages: Sequence[Message]) -> bytes:
    """As the jobs take messages (lab/harrison2008_payload.hpp), each with a random IV."""
    ivs = os.urandom(16 * len(messages))
    header = cache(
        lambda message: struct.pack(
            "=4I", message.blocks, message.serial, message.key, message.padding
        )
    )
    return b"".join(
        header(message) + ivs[16 * i : 16 * i + 16] for i, message in enumerate(messages)
    )


def streams_size(messages: int, keys: int) -> int:
    """Bytes of a payload's streams: descriptors, key schedules, logical thread index."""
    return 44 * messages + 176 * keys


def check(session: Session, variant: str) -> str:
    """A payload of both modes, many lengths and some keys, against the reference engine."""
    keys = [os.urandom(16) for _ in range(3)]
    messages = [Message(1 + 37 * i % 70, i % 3 == 0, i % 3, i % 17) for i in range(50)]
    payload = described(messages)
    text = os.urandom(sum(message.text_size for message in messages))
    job = session.job(variant, b"".join(keys), payload, multiprocessors=2)
    got = session.result(variant, job, text, 16 * sum(message.blocks for message in messages))
    start = start_there = 0
    for i, message in enumerate(messages):
        end, end_there = start + message.text_size, start_there + 16 * message.blocks
        padding = bytes([message.padding]) * message.padding
        whole = text[start:end][: 16 * message.blocks - message.padding] + padding
        algorithm: AlgorithmName = "aes-128-cbc" if message.serial else "aes-128-ctr"
        cipher = wc.Cipher(algorithm, keys[message.key], engine="reference")
        expected = cipher.encrypt(whole, iv=payload[32 * i + 16 : 32 * i + 32])
        if got[start_there:end_there] != expected:
            raise wc.EngineError(f"variant {variant!r} of {NAME} is wrong for message {i}")
        start, start_there = end, end_there
    return CHECKED


class Runner:
    """Payloads on the GPU, the same text again and again."""

    def __init__(self, session: Session, size: int) -> None:
        self._session = session
        self.source = session.memory(STRIPED, size)
        self.target = session.memory(STRIPED, size)
        gpu = session.machine.gpu
        self._multiprocessors = gpu.multiprocessors if gpu is not None else 1
        for variant in (DIRECT, STRIPED):
            check(session, variant)
        for serial in (False, True):
            self._check_product(serial=serial)

    def paper(self, messages: Sequence[Message], keys: int, variant: str = STRIPED) -> Spread:
        """Seconds of serialisation, its copy to the GPU and the kernel."""
        text_size = sum(message.text_size for message in messages)
        size = 16 * sum(message.blocks for message in messages)
        job = self._session.job(
            variant,
            os.urandom(16 * keys),
            described(messages),
            multiprocessors=self._multiprocessors,
        )
        seconds = self._session.time(
            lambda: self._session.run(job, self.source, text_size, self.target, size),
            on_device=False,
        )
        self._add(variant, messages, keys, seconds)
        return seconds

    def product(self, blocks: int, count: int, keys: int, *, serial: bool) -> Spread:
        """Seconds of `run_columns`, for messages of one length."""
        call = self._columns(
            blocks, [os.urandom(16) for _ in range(keys)], os.urandom(16 * count), serial=serial
        )
        seconds = self._session.time(call, on_device=False)
        self._add(PRODUCT, [Message(blocks, serial)] * count, keys, seconds)
        return seconds

    def _columns(
        self, blocks: int, keys: list[bytes], ivs: bytes, *, serial: bool
    ) -> Callable[[], object]:
        count = len(ivs) // 16
        algorithm: AlgorithmName = "aes-128-cbc" if serial else "aes-128-ctr"
        size = 16 * blocks * count
        made = [wc.Key(algorithm, key) for key in keys]
        lengths = array("Q", [16 * blocks]) * count
        key_index = array("Q", (i % len(keys) for i in range(count)))
        source, target = self.source.view(0, size), self.target.view(0, size)
        stream = self._session.need_stream().pointer
        return lambda: wc.run_columns(
            algorithm,
            "encrypt",
            made,
            source,
            lengths=lengths,
            key_index=key_index,
            ivs=ivs,
            out=target,
            engine=ENGINE,
            stream=stream or None,
        )

    def _check_product(self, *, serial: bool) -> None:
        blocks, count = 5, 7
        keys, ivs = [os.urandom(16) for _ in range(3)], os.urandom(16 * count)
        text = os.urandom(16 * blocks * count)
        self._session.write(self.source, text)
        self._columns(blocks, keys, ivs, serial=serial)()
        self._session.wait()
        got = self._session.read(self.target, len(text))
        for i in range(count):
            part = slice(16 * blocks * i, 16 * blocks * (i + 1))
            cipher = wc.Cipher(
                "aes-128-cbc" if serial else "aes-128-ctr", keys[i % 3], engine="reference"
            )
            if got[part] != cipher.encrypt(text[part], iv=ivs[16 * i : 16 * i + 16]):
                raise wc.EngineError(f"{PRODUCT} is wrong for message {i}")

    def batch(self, messages: Sequence[Message], repetitions: int) -> Spread:
        """Seconds of `Batch.run`, for messages of both modes under one key."""
        keys = {name: wc.Key(name, os.urandom(16)) for name in ("aes-128-cbc", "aes-128-ctr")}
        stream = self._session.need_stream().pointer
        times = []
        for _ in range(repetitions + 1):
            batch = wc.Batch(ENGINE)
            start = 0
            for message in messages:
                name: AlgorithmName = "aes-128-cbc" if message.serial else "aes-128-ctr"
                length = 16 * message.blocks
                batch.add(
                    name,
                    "encrypt",
                    keys[name],
                    self.source.view(start, length),
                    iv=os.urandom(16),
                    out=self.target.view(start, length),
                )
                start += length
            begin = time.perf_counter()
            batch.run(stream=stream or None)
            self._session.wait()
            times.append(time.perf_counter() - begin)
        seconds = Spread.of(times[1:])  # the first makes what later ones find
        self._add(PRODUCT, messages, 1, seconds)
        return seconds

    def _add(self, name: str, messages: Sequence[Message], keys: int, seconds: Spread) -> None:
        self._session.add(
            name,
            16 * sum(message.blocks for message in messages),
            seconds,
            CHECKED,
            residence="device",
            messages=len(messages),
            keys=keys,
            blocks=max(message.blocks for message in messages),
            padding=max(message.padding for message in messages),
        )


def serialisation(
    session: Session, messages: Sequence[Message], keys: int = 1, /, **parameters: int
) -> Spread:
    """Times the streams of a payload on one CPU thread; `parameters` name the measurement."""
    size = streams_size(len(messages), keys)
    job = session.job("serialise", os.urandom(16 * keys), described(messages))
    target = session.memory("serialise", size)
    seconds = session.time(lambda: session.run(job, target, 0, target, size), on_device=False)
    session.add(
        "serialise",
        len(messages),
        seconds,
        "what payloads make of it",
        residence="host",
        unit="messages",
        **parameters,
    )
    return seconds


# --- Figures 4 and 5, and what the generic model, rekeying and padding cost -----------------------

PARALLEL_BLOCKS = (16, 512, 2048, 16384)
SERIAL_BLOCKS = (16, 128, 512, 2048)
MOST_MESSAGES = 16384
REKEYED = 512  # blocks of the messages that are also measured with a key each
OVERHEAD_BLOCKS = (16384, 512, 16)
PADDED_BLOCKS = (16, 512)


def _counts(session: Session, blocks: int) -> list[int]:
    """Messages in a payload: up to MOST_MESSAGES and the text that `payload` allows."""
    most = min(MOST_MESSAGES, (1 << session.values["payload"]) // (16 * blocks))
    step = 16 if session.quick else 4
    found = [1]
    while found[-1] * step <= most:
        found.append(found[-1] * step)
    return found if found[-1] == most else [*found, most]


def figures4and5(session: Session, runner: Runner) -> dict[str, dict[int, float]]:
    """GB/s over message count: of Figure 4, and of Figure 5 for the serial mode."""
    kept: dict[str, dict[int, float]] = {}
    for figure, serial, lengths in (
        ("figure4", False, PARALLEL_BLOCKS),
        ("figure5", True, SERIAL_BLOCKS),
    ):
        lines: dict[str, dict[int, float]] = {}
        for blocks in lengths:
            for rekeyed in (False, True) if blocks == REKEYED and not serial else (False,):
                for way in (STRIPED, PRODUCT):
                    line: dict[int, float] = {}
                    for count in _counts(session, blocks):
                        keys = count if rekeyed else 1
                        seconds = (
                            runner.paper(
                                [Message(blocks, serial, i % keys) for i in range(count)], keys
                            )
                            if way == STRIPED
                            else runner.product(blocks, count, keys, serial=serial)
                        )
                        line[count] = blocks * count * 16 / seconds.median / 1e9
                    label = f"{blocks} blocks, {way}" + (", a key each" if rekeyed else "")
                    lines[label] = line
        series = [Series(label, tuple(line), tuple(line.values())) for label, line in lines.items()]
        if not serial:
            known = published.load(NAME)["generic_gb_per_s"]["value"]
            ends = (1.0, float(MOST_MESSAGES))
            series.append(
                Series("published maximum, with transfers", ends, (known, known), published=True)
            )
        session.plot(
            figure,
            f"Messages of a {'serial' if serial else 'parallel'} mode (Figure {figure[-1]})",
            "messages",
            "GB/s",
            tuple(series),
            log_x=True,
            log_y=True,
        )
        session.table(
            f"{'Serial' if serial else 'Parallel'} messages, GB/s in device memory",
            f"Figure {figure[-1]}: the least and the largest payload; serialisation or "
            "planning included",
            ("messages of", "fewest messages", "GB/s", "most messages", "GB/s"),
            tuple(
                (label, min(line), line[min(line)], max(line), line[max(line)])
                for label, line in lines.items()
            ),
        )
        kept |= {f"{figure} {label}": line for label, line in lines.items()}
    return kept


def judge45(session: Session, lines: dict[str, dict[int, float]]) -> None:
    """What section 7 says of rekeying and of serial modes."""
    same = lines[f"figure4 {REKEYED} blocks, {STRIPED}"]
    rekeyed = lines[f"figure4 {REKEYED} blocks, {STRIPED}, a key each"]
    parallel = lines[f"figure4 2048 blocks, {STRIPED}"]
    serial = lines[f"figure5 2048 blocks, {STRIPED}"]
    product = lines[f"figure5 2048 blocks, {PRODUCT}"]
    few, many = min(serial), max(serial)
    session.conclusions += [
        Conclusion(
            "a key for each message costs more the more messages there are",
            f"{max(same)} messages: {1 - rekeyed[max(same)] / same[max(same)]:.0%} slower",
            rekeyed[max(same)] < same[max(same)],
        ),
        Conclusion(
            "serial modes need many messages: few leave the GPU empty",
            f"2048 blocks, {few} message: {shown(serial[few])} GB/s serial, "
            f"{shown(parallel[few])} parallel; {many} messages: {shown(serial[many])} and "
            f"{shown(parallel[many])} (the product's serial: {shown(product[many])})",
            serial[few] < parallel[few] / 4 and serial[many] > 4 * serial[few],
        ),
    ]


def overhead(session: Session, runner: Runner) -> None:
    """The generic model against the hard-coded kernel, over as much text."""
    size = 1 << session.values["payload"]
    known = published.load(NAME)["overhead"]
    job = session.job(HARD_CODED, os.urandom(16), os.urandom(16))
    base = session.time(
        lambda: session.run(job, runner.source, size, runner.target, size), on_device=False
    )
    rows = []
    found: dict[int, float] = {}
    mapping = 0.0
    for blocks in OVERHEAD_BLOCKS:
        count = size // (16 * blocks)
        messages = [Message(blocks)] * count
        striped = runner.paper(messages, 1)
        direct = runner.paper(messages, 1, DIRECT)
        product = runner.product(blocks, count, 1, serial=False)
        found[blocks] = 1 - base.median / striped.median
        if blocks == OVERHEAD_BLOCKS[0]:
            mapping = striped.median / direct.median - 1
        streams = serialisation(session, messages)
        rows.append(
            (
                blocks,
                count,
                f"{known[str(blocks)]:.0%}",
                f"{found[blocks]:.0%}",
                f"{1 - base.median / direct.median:.0%}",
                f"{1 - base.median / product.median:.0%}",
                f"{streams.median / striped.median:.0%}",
            )
        )
    session.table(
        f"What the generic model costs against {HARD_CODED}, {shown_size(size)}",
        f"section 7.1. Device memory; {HARD_CODED} takes {shown_time(base.median)}. Negative: "
        "the product is faster than the paper's hard-coded kernel",
        (
            "blocks a message",
            "messages",
            "published",
            "striped, here",
            "direct, here",
            "product, here",
            "serialisation's share of striped",
        ),
        tuple(rows),
    )
    session.conclusions += [
        Conclusion(
            "the generic model costs 16% with large messages, 22% with medium, 45% with small",
            ", ".join(f"{blocks} blocks: {share:.0%}" for blocks, share in found.items()),
            found[16] > found[512] > 0 and found[16] > found[16384],
        ),
        Conclusion(
            "the striped mapping costs next to nothing over the direct one (0.25%)",
            f"16384 blocks: {mapping:.1%}",
            mapping < 0.03,
        ),
    ]


def padding(session: Session, runner: Runner) -> None:
    """Section 6.3: the padding that threads add, as the descriptor says, against none."""
    rows: list[tuple[Cell, ...]] = []
    costs: list[float] = []
    for blocks in PADDED_BLOCKS:
        count = min(MOST_MESSAGES, (1 << session.values["payload"]) // (16 * blocks))
        for serial in (False, True):
            without, part, whole = (
                runner.paper([Message(blocks, serial, padding=added)] * count, 1).median
                for added in (0, 5, 16)
            )
            costs += [part / without - 1, whole / without - 1]
            rows.append(
                (
                    f"{'serial' if serial else 'parallel'}, {blocks} blocks",
                    count,
                    blocks * count * 16 / without / 1e9,
                    *(f"{cost:.1%}" for cost in costs[-2:]),
                )
            )
    session.table(
        "What padding by the GPU costs",
        "section 6.3, which has no figures. Times over messages as long with their padding as "
        "others without",
        ("messages of", "messages", "GB/s without", "5 bytes", "a whole block"),
        tuple(rows),
    )
    session.conclude(
        "padding costs very little: threads diverge for one block of the cipher",
        f"{min(costs):.1%} to {max(costs):.1%}",
        max(costs) < 0.05,
    )


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


def figure7(session: Session, runner: Runner) -> None:
    orders = mixed_payloads(7)
    size = 16 * sum(message.blocks for message in orders[0])
    names = tuple(f"payload {i + 1}" for i in range(len(orders)))
    paper = [size / runner.paper(order, 1).median / 1e9 for order in orders]
    product = [size / runner.batch(order, session.repetitions).median / 1e9 for order in orders]
    session.plot(
        "figure7",
        "The same messages of both modes in seven orders (Figure 7)",
        "order",
        "GB/s",
        (Series(STRIPED, names, tuple(paper)), Series(PRODUCT, names, tuple(product))),
        kind="bars",
    )
    meaning = (
        "one serial message a group of 32 threads, 16 groups apart",
        "one serial message a group, groups in a row",
        "serial messages in as few blocks of threads as hold them",
        "random",
        "random, serial messages in groups of 32",
        "serial messages first, in groups of 32",
        "the same, in order of their size",
    )
    session.table(
        "Seven orders of the same messages, GB/s",
        "Figure 7 and section 7.3",
        ("order", "what it is", STRIPED, PRODUCT),
        tuple(zip(names, meaning, paper, product, strict=True)),
    )
    session.conclude(
        "serial messages belong in full groups of 32, spread evenly, in order of their size: 7 "
        "is the best order, and 3 beats 1 and 2",
        ", ".join(f"{i + 1}: {shown(rate)}" for i, rate in enumerate(paper))
        + f" GB/s; the product, which sorts by itself, {shown(min(product))} to "
        f"{shown(max(product))}",
        paper[6] == max(paper) and paper[2] > max(paper[0], paper[1]),
    )
