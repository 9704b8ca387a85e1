# SPDX-License-Identifier: Apache-2.0
"""What the host does for one short message in GPU memory: `Cipher.encrypt` of a PyTorch tensor,
enqueued. The device's own time is not part of it: calls come in bursts that fit the stream, and
each burst is waited for after its end was taken."""

from __future__ import annotations

import os
from functools import partial

import torch
import warpcipher
from warpcipher_measure.program import Program, by_turns

BURST = 200


def main() -> None:
    program = Program(__doc__, repetitions=25)
    program.option("--size", type=int, default=4096)
    options = program.parse()
    actions = {}
    for name in ("aes-128-ctr", "aes-128-gcm", "aes-128-cbc"):
        cipher = warpcipher.Cipher(name, os.urandom(16))
        text = torch.randint(0, 256, (options.size,), dtype=torch.uint8, device="cuda")
        room = 16 if name.endswith("gcm") else 0
        out = torch.empty(options.size + room, dtype=torch.uint8, device="cuda")
        call = partial(cipher.encrypt, text, iv=os.urandom(12 if room else 16))
        actions |= {f"{name} out=": partial(call, out=out), f"{name} new array": call}
    waited = {"before": torch.cuda.synchronize, "calls": BURST}
    program.times(by_turns(actions, options.repetitions, **waited), "us")
    program.finish(size=f"{options.size} bytes in device memory")


if __name__ == "__main__":
    main()
