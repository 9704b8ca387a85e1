# SPDX-License-Identifier: Apache-2.0
"""Keys a second of `wc.search`: each kind of search on one device, and on all of them.

A rate is wall clock over a whole search that finds nothing, from the first range handed out on:
preparing it, with its self-test, is not part of it. With several devices the note says the rate in
per cent of as many times one.
"""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import warpcipher as wc
from warpcipher_measure.program import Program

LENGTHS = {"des": 8, "des-ede2": 16, "des-ede3": 24, "aes-128": 16, "aes-192": 24, "aes-256": 32}
FEWEST_BITS = 43  # of random templates: half a minute of DES at 300 G keys/s


@dataclass(frozen=True)
class Kind:
    """A kind of search: that many bits unknown, at random among some bytes of the key."""

    algorithm: str
    unknown: int
    within: tuple[int, int] = (0, 32)  # first byte, and the one after the last
    known_text: int = 0xFF  # the bits of each byte of the plaintext that are known
    note: str = ""

    def search(
        self, seed: int, devices: Sequence[int], engine: str, unknown: int | None = None
    ) -> wc.keysearch.Search:
        chance = random.Random(seed)  # the same templates each time
        cipher = self.algorithm.rpartition("-")[0]
        length, des = LENGTHS[cipher], cipher.startswith("des")
        known_bytes, used = range(length)[slice(*self.within)], range(7 if des else 8)
        positions = [8 * byte + bit for byte in known_bytes for bit in used]
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


PART = Kind("", 60, known_text=0xE0, note="3 bits a byte known")
KINDS = {
    "des": Kind("des-ecb", 56),
    "des-ede3": Kind("des-ede3-ecb", 56, (8, 16), note="middle key unknown"),
    "des-ede3-two": Kind("des-ede3-ecb", 84, (8, 24), note="84 bits of two keys unknown"),
    "des-ede3-spread": Kind("des-ede3-ecb", 60, note="60 bits of three keys unknown"),
    "des-ede2": Kind("des-ede2-ecb", 112, note="both keys unknown"),
    "des-ede2-outer": Kind("des-ede2-ecb", 44, (0, 8), note="outer key unknown"),
    **{f"aes-{bits}": Kind(f"aes-{bits}-ecb", 60) for bits in (128, 192, 256)},
    "aes-128-ctr-part": replace(PART, algorithm="aes-128-ctr"),
    **{f"aes-{bits}-part": replace(PART, algorithm=f"aes-{bits}-ecb") for bits in (128, 192, 256)},
}


def rate(search: wc.keysearch.Search, seconds: float) -> float:
    """G keys a second, over that many seconds or the whole range."""
    for progress in search:
        if progress.seconds >= seconds:
            search.cancel()
    return progress.rate / 1e9


def measure(program: Program, name: str, options: Namespace, devices: int) -> None:
    kind, engine = KINDS[name], options.engine
    text = f"{name}, {kind.unknown} unknown bits"

    def rates(of: Sequence[int]) -> list[float]:
        searches = (kind.search(0, of, engine) for _ in range(options.repetitions))
        return [rate(search, options.rate) for search in searches]

    one = program.add(text, "G/s", rates([0]), kind.note)
    if options.templates:
        values = [
            rate(kind.search(1 + i, [0], engine, FEWEST_BITS + i % 14), options.template_rate)
            for i in range(options.templates)
        ]
        what = f"{name}, {options.templates} templates of {FEWEST_BITS} bits and more"
        program.add(what, "G/s", values, kind.note)
    if devices > 1:
        values = rates(range(devices))
        share = median(values) / (devices * one.median)
        program.add(f"{text}, {devices} devices", "G/s", values, f"{share:.1%} of {devices} times")


def main() -> None:
    program = Program(__doc__, repetitions=1)
    program.option("--rate", type=float, default=30, metavar="SECONDS", help="of each search")
    program.option("--templates", type=int, default=0, help="random ones")
    program.option("--template-rate", type=float, default=0.5, metavar="SECONDS", help="of each")
    program.option("--devices", type=int, metavar="N", help="only the first N; default: all")
    program.option("--engine", default="cuda", choices=["cuda", "cpu"])
    program.option("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all if none")
    options = program.parse()
    unknown = [name for name in options.kinds if name not in KINDS]
    if unknown:
        program.parser.error(f"no such kind: {', '.join(unknown)}")
    found = {info.name: info for info in wc.keysearch.searchers()}[options.engine]
    devices = min(options.devices or len(found.devices), len(found.devices))
    for name in options.kinds or KINDS:
        measure(program, name, options, devices)
    program.finish(seconds=options.rate, devices=", ".join(found.devices))


if __name__ == "__main__":
    main()
