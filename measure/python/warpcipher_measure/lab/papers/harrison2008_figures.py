# SPDX-License-Identifier: Apache-2.0
"""Figures 4 and 5 of Harrison 2008: payloads of one mode and length; and what the generic model of
payloads, rekeying and padding cost."""

from __future__ import annotations

import os

from ...bench.report import shown_time
from ...bench.settings import shown_size
from .. import published
from ..results import Cell, Conclusion, Plot, Series, Table, shown
from ..session import Session
from .harrison2008_payloads import (
    DIRECT,
    HARD_CODED,
    NAME,
    PRODUCT,
    STRIPED,
    Message,
    Runner,
    serialisation,
)

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
        session.plots.append(
            Plot(
                figure,
                f"Messages of a {'serial' if serial else 'parallel'} mode (Figure {figure[-1]})",
                "messages",
                "GB/s",
                tuple(series),
                log_x=True,
                log_y=True,
            )
        )
        session.tables.append(
            Table(
                f"{'Serial' if serial else 'Parallel'} messages, GB/s in device memory",
                f"Figure {figure[-1]}: the least and the largest payload; serialisation or "
                "planning included",
                ("messages of", "fewest messages", "GB/s", "most messages", "GB/s"),
                tuple(
                    (label, min(line), line[min(line)], max(line), line[max(line)])
                    for label, line in lines.items()
                ),
            )
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
    session.tables.append(
        Table(
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
    session.tables.append(
        Table(
            "What padding by the GPU costs",
            "section 6.3, which has no figures. Times over messages as long with their padding as "
            "others without",
            ("messages of", "messages", "GB/s without", "5 bytes", "a whole block"),
            tuple(rows),
        )
    )
    session.conclusions.append(
        Conclusion(
            "padding costs very little: threads diverge for one block of the cipher",
            f"{min(costs):.1%} to {max(costs):.1%}",
            max(costs) < 0.05,
        )
    )
