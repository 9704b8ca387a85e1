# SPDX-License-Identifier: Apache-2.0
"""Many short AES-GCM messages in host memory: `run_columns` and `Batch` on all cores, against
pyca/cryptography in a loop."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import warpcipher
from common import Row, parser, report, seconds


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--messages", type=int, default=16384)
    arguments.add_argument("--size", type=int, default=1024, help="bytes of each message")
    arguments.add_argument("--keys", type=int, default=1, help="keys that the messages share")
    options = arguments.parse_args()
    count, size = options.messages, options.size
    keys = [os.urandom(16) for _ in range(options.keys)]
    key_of = [i % len(keys) for i in range(count)]
    nonces = [os.urandom(4) + i.to_bytes(8, "big") for i in range(count)]
    texts = [os.urandom(size) for _ in range(count)]
    joined, ivs, out = b"".join(texts), b"".join(nonces), bytearray(count * (size + 16))
    lengths, key_index = array("Q", [size]) * count, array("I", key_of)
    handles = [warpcipher.Key("aes-128-gcm", key) for key in keys]
    rows: list[Row] = []

    def measure(name: str, action: Callable[[], None]) -> None:
        taken = seconds(action, options.repetitions)
        rows.append(Row(name, "ns", [t / count * 1e9 for t in taken]))

    def pyca() -> None:
        for key, nonce, text in zip(key_of, nonces, texts, strict=True):
            peers[key].encrypt(nonce, text, None)

    def batch() -> None:
        made = warpcipher.Batch()
        for key, nonce, text in zip(key_of, nonces, texts, strict=True):
            made.add("aes-128-gcm", "encrypt", handles[key], text, iv=nonce)
        made.run()

    def columns(output: bytearray | None) -> None:
        warpcipher.run_columns(
            "aes-128-gcm",
            "encrypt",
            handles,
            joined,
            lengths=lengths,
            key_index=key_index,
            ivs=ivs,
            out=output,
        )

    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        peers = [AESGCM(key) for key in keys]
        measure("pyca AESGCM in a loop", pyca)
    except ImportError:
        print("cryptography is not installed: left out", file=sys.stderr)
    measure("run_columns, out given", lambda: columns(out))
    measure("run_columns, out made", lambda: columns(None))
    measure("Batch", batch)
    peer = next((row for row in rows if row.name.startswith("pyca")), None)
    for row in rows:
        if peer is not None and row is not peer:
            row.note = f"{min(peer.values) / min(row.values):.1f} times pyca (best of each)"
    report(rows, options, messages=count, size=size, keys=len(keys), direction="encrypt")


if __name__ == "__main__":
    main()
