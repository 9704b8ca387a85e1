# SPDX-License-Identifier: Apache-2.0
"""Generators, trees and point functions: children of seeds a second beside AES-128-ECB, all shares
of batches of keys, and answers over a table beside reading it. On a GPU, or on one core
(`taskset -c 0`)."""

from __future__ import annotations

from typing import Any

import warpcipher as wc
from warpcipher import prg
from warpcipher.prg import dpf
from warpcipher_measure.program import Actions, Arrays, Program, by_turns

TREES: tuple[Any, ...] = ("aes-128-mmo", "aes-128-half")
GROUPS: tuple[tuple[Any, int], ...] = (("gf2", 0), ("u32", 0), ("u32", 2))
BITS = 20
RECORD = 256


def main() -> None:
    program = Program(__doc__)
    program.option("--device", default="cpu", help="cpu or cuda:0")
    program.option("--seeds", type=int, default=0, help="log2 of the number of seeds")
    program.option("--table", type=int, default=0, help="MiB of the table")
    options = program.parse()
    arrays = Arrays(options.device)
    on_host, empty = arrays.on_host, arrays.zeros

    def turns(actions: Actions, calls: int = 1) -> Any:
        return by_turns(actions, options.repetitions, calls=calls, wait=arrays.wait)

    count = 1 << (options.seeds or (14 if on_host else 26))
    seeds, children = empty(16 * count), empty(32 * count)
    text, cipher = empty(32 * count), wc.Cipher("aes-128-ecb", bytes(16))
    actions: Actions = {
        f"expand, {name}": lambda name=name: prg.expand(seeds, name, out=children)
        for name in dpf.PRGS
    }
    actions["AES-128-ECB of as many blocks"] = lambda: cipher.encrypt(text, out=children)
    program.rates(turns(actions), 2 * count / 1e9, "G children/s")

    # The last: as many leaves of 16 bytes as the others have points.
    at_once = 16 if on_host else 512
    for group, more in GROUPS:
        width = 1 << (BITS - 3) if group == "gf2" else 4 << (BITS + more)
        shares = empty(at_once * width)
        shares_of: Actions = {}
        for name in TREES:
            keys: Any = dpf.generate(range(at_once), None, BITS + more, group=group, prg=name)[0]
            what = f"all shares of 2^{BITS + more} points, {group}, {at_once} keys, {name}"
            shares_of[what] = lambda k=keys, s=shares: dpf.evaluate_all(k, out=s)
        program.rates(turns(shares_of), at_once, "keys/s")
        del shares

    size = (options.table or (256 if on_host else 1024)) << 20
    table = empty(size)
    bits = (size // RECORD - 1).bit_length()
    answers: Actions = {"reading the table once": table.view(arrays.library.int64).sum}
    for queries, name in ((1, TREES[0]), (8, TREES[0]), (64, TREES[0]), (64, TREES[1])):
        keys = dpf.generate(range(queries), None, bits, prg=name)[0]
        answers[f"answers of {queries}, {name}"] = lambda k=keys: dpf.answer(k, table, RECORD)
    # A GPU's call waits for nothing, so a server enqueues the next batch while one runs.
    program.rates(turns(answers, 1 if on_host else 4), size / 1e9, "GB/s of the table")
    program.finish(seeds=count, table=f"{size >> 20} MiB of {RECORD} bytes in {options.device}")


if __name__ == "__main__":
    main()
