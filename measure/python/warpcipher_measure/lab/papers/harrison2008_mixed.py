# SPDX-License-Identifier: Apache-2.0
"""Payloads of Harrison 2008 that mix parallel and serial messages: the seven orders of Figure 7."""

from __future__ import annotations

import random
from itertools import chain

from ..results import Conclusion, Plot, Series, Table, shown
from ..session import Session
from .harrison2008_payloads import PRODUCT, STRIPED, Message, Runner

SERIAL_COUNT, LARGE, LARGE_COUNT, SMALL, SMALL_COUNT = 1024, 512, 960, 32, 992
GROUP = 32  # threads


def mixed_payloads(seed: int) -> list[list[Message]]:
    """The seven orders of section 7.3 of the same messages. The paper tells what each is for; where
    the messages have to stand for that follows from the striped mapping, which gives blocks of 256
    threads, 2048 here, the groups of 32 logical threads in turn."""
    shuffled = random.Random(seed)  # noqa: S311 - for the order of messages alone
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
    session.plots.append(
        Plot(
            "figure7",
            "The same messages of both modes in seven orders (Figure 7)",
            "order",
            "GB/s",
            (Series(STRIPED, names, tuple(paper)), Series(PRODUCT, names, tuple(product))),
            kind="bars",
        )
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
    session.tables.append(
        Table(
            "Seven orders of the same messages, GB/s",
            "Figure 7 and section 7.3",
            ("order", "what it is", STRIPED, PRODUCT),
            tuple(zip(names, meaning, paper, product, strict=True)),
        )
    )
    session.conclusions.append(
        Conclusion(
            "serial messages belong in full groups of 32, spread evenly, in order of their size: 7 "
            "is the best order, and 3 beats 1 and 2",
            ", ".join(f"{i + 1}: {shown(rate)}" for i, rate in enumerate(paper))
            + f" GB/s; the product, which sorts by itself, {shown(min(product))} to "
            f"{shown(max(product))}",
            paper[6] == max(paper) and paper[2] > max(paper[0], paper[1]),
        )
    )
