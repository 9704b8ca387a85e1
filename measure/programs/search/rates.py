# SPDX-License-Identifier: Apache-2.0
"""Keys a second of `wc.search`: each kind of search on one device, and on all of them.

A rate is wall clock over a whole search that finds nothing, from the first range handed out on:
preparing it, with its self-test, is not part of it. With several devices the last rows are what the
search makes of all of them, and that in per cent of as many times one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import warpcipher as wc
from warpcipher_measure.program import Row, parser, report

KEY_LENGTHS = {
    "des": 8,
    "des-ede2": 16,
    "des-ede3": 24,
    "aes-128": 16,
    "aes-192": 24,
    "aes-256": 32,
}
FEWEST_BITS = 43  # of random templates: half a minute of DES at 300 G keys/s


@dataclass(frozen=True)
class Kind:
    """A kind of search: that many bits unknown, at random among some bytes of the key."""

    algorithm: str
    unknown: int
    within: tuple[int, int] = (0, 32)  # first byte, and the one after the last
    known_text: int = 0xFF  # the bits of each byte of the plaintext that are known
    note: str = ""

    @property
    def cipher(self) -> str:
        return self.algorithm.rpartition("-")[0]

    def search(
        self, seed: int, devices: Sequence[int], engine: str, unknown: int | None = None
    ) -> wc.keysearch.Search:
        chance = random.Random(seed)  # the same templates each time
        length = KEY_LENGTHS[self.cipher]
        des = self.cipher.startswith("des")
        positions = [
            8 * byte + bit
            for byte in range(length)[slice(*self.within)]
            for bit in range(7 if des else 8)
        ]
        bits = [chance.choice("01") for _ in range(8 * length)]
        for position in chance.sample(positions, self.unknown if unknown is None else unknown):
            bits[position] = "?"
        blocks = 32  # bytes: more than one block, so that no wrong key passes all
        pair = wc.keysearch.Pair(
            chance.randbytes(blocks),
            chance.randbytes(blocks),
            iv=None if self.algorithm.endswith("ecb") else chance.randbytes(8 if des else 16),
            mask=bytes([self.known_text]) * blocks,
        )
        template = "0b" + "".join(bits)
        return wc.search(self.algorithm, [pair], template, engine=engine, devices=devices)


KINDS = {
    "des": Kind("des-ecb", 56),
    "des-ede3": Kind("des-ede3-ecb", 56, (8, 16), note="middle key unknown"),
    "des-ede3-two": Kind("des-ede3-ecb", 84, (8, 24), note="84 bits of two keys unknown"),
    "des-ede3-spread": Kind("des-ede3-ecb", 60, note="60 bits of three keys unknown"),
    "des-ede2": Kind("des-ede2-ecb", 112, note="both keys unknown"),
    "des-ede2-outer": Kind("des-ede2-ecb", 44, (0, 8), note="outer key unknown"),
    "aes-128": Kind("aes-128-ecb", 60),
    "aes-192": Kind("aes-192-ecb", 60),
    "aes-256": Kind("aes-256-ecb", 60),
    "aes-128-ctr-part": Kind("aes-128-ctr", 60, known_text=0xE0, note="3 bits a byte known"),
    "aes-128-part": Kind("aes-128-ecb", 60, known_text=0xE0, note="3 bits a byte known"),
    "aes-192-part": Kind("aes-192-ecb", 60, known_text=0xE0, note="3 bits a byte known"),
    "aes-256-part": Kind("aes-256-ecb", 60, known_text=0xE0, note="3 bits a byte known"),
}


def rate(search: wc.keysearch.Search, seconds: float) -> float:
    """G keys a second, over that many seconds or the whole range."""
    for progress in search:
        if progress.seconds >= seconds:
            search.cancel()
    return progress.rate / 1e9


def measure(kind: Kind, name: str, arguments: argparse.Namespace, devices: int) -> Iterable[Row]:
    engine, repetitions = arguments.engine, range(arguments.repetitions)

    def row(what: str, values: list[float], note: str = kind.note) -> Row:
        return Row(f"{name}, {what}", "G/s", values, note)

    text = f"{kind.unknown} unknown bits"
    one = row(text, [rate(kind.search(0, [0], engine), arguments.rate) for _ in repetitions])
    yield one
    if arguments.templates:
        values = [
            rate(kind.search(1 + i, [0], engine, FEWEST_BITS + i % 14), arguments.template_rate)
            for i in range(arguments.templates)
        ]
        yield row(f"{arguments.templates} templates of {FEWEST_BITS} bits and more", values)
    if devices > 1:
        every = range(devices)
        together = row(
            f"{text}, {devices} devices",
            [rate(kind.search(0, every, engine), arguments.rate) for _ in repetitions],
        )
        yield together
        share = together.median / (devices * one.median)
        print(f"{name}: {share:.1%} of {devices} times one device", file=sys.stderr, flush=True)


def main() -> None:
    made = parser("Rates of key searches through wc.search.")
    made.set_defaults(repetitions=1)
    made.add_argument("--rate", type=float, default=30, metavar="SECONDS", help="of each search")
    made.add_argument("--templates", type=int, default=0, help="random ones")
    made.add_argument("--template-rate", type=float, default=0.5, metavar="SECONDS", help="of each")
    made.add_argument("--devices", type=int, metavar="N", help="only the first N; default: all")
    made.add_argument("--engine", default="cuda", choices=["cuda", "cpu"])
    made.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all if none"
    )
    arguments = made.parse_args()
    unknown = [name for name in arguments.kinds if name not in KINDS]
    if unknown:
        made.error(f"no such kind: {', '.join(unknown)}")
    found = {info.name: info for info in wc.keysearch.searchers()}[arguments.engine]
    devices = min(arguments.devices or len(found.devices), len(found.devices))
    rows: list[Row] = []
    for name in arguments.kinds or KINDS:
        for row in measure(KINDS[name], name, arguments, devices):
            print(f"{row.name}: {row.median:.4g} G keys/s ({row.spread})", file=sys.stderr)
            sys.stderr.flush()
            rows.append(row)
    report(rows, arguments, seconds=arguments.rate, devices=", ".join(found.devices))


if __name__ == "__main__":
    main()
