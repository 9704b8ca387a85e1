# SPDX-License-Identifier: Apache-2.0
"""What the host does for one short message in GPU memory: `Cipher.encrypt` of a PyTorch tensor,
enqueued. The device's own time is not part of it: calls come in bursts that fit the stream, and
each burst is waited for after its end was taken."""

from __future__ import annotations

import os
import time

import torch
import warpcipher
from warpcipher_measure.program import Row, parser, report

BURST = 200


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--size", type=int, default=4096)
    options = arguments.parse_args()
    rows = []
    for name in ("aes-128-ctr", "aes-128-gcm", "aes-128-cbc"):
        cipher = warpcipher.Cipher(name, os.urandom(16))
        text = torch.randint(0, 256, (options.size,), dtype=torch.uint8, device="cuda")
        room = 16 if name.endswith("gcm") else 0
        out = torch.empty(options.size + room, dtype=torch.uint8, device="cuda")
        iv = os.urandom(12 if room else 16)
        for label, arguments_of_call in (("out=", {"out": out}), ("new array", {})):
            taken = []
            for _ in range(5 * options.repetitions):
                start = time.perf_counter()
                for _ in range(BURST):
                    cipher.encrypt(text, iv=iv, **arguments_of_call)
                taken.append((time.perf_counter() - start) / BURST * 1e6)
                torch.cuda.synchronize()
            rows.append(Row(f"{name} {label}", "us", taken))
    report(rows, options, size=f"{options.size} bytes in device memory")


if __name__ == "__main__":
    main()
