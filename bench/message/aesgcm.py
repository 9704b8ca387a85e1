# SPDX-License-Identifier: Apache-2.0
"""One short message at a time on a CPU: `AESGCM.encrypt` against pyca/cryptography's."""

from __future__ import annotations

import os
import sys
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import warpcipher
from common import Row, parser, report


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 1024, 16384])
    options = arguments.parse_args()
    libraries = {"warpcipher": warpcipher.aead.AESGCM}
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        libraries["pyca"] = AESGCM
    except ImportError:
        print("cryptography is not installed: left out", file=sys.stderr)
    rows = []
    for size in options.sizes:
        key, nonce, text = os.urandom(32), os.urandom(12), os.urandom(size)
        for name, library in libraries.items():
            encrypt = library(key).encrypt
            timer = timeit.Timer(lambda: encrypt(nonce, text, None))  # noqa: B023
            calls = max(1000, timer.autorange()[0])
            taken = [t / calls * 1e9 for t in timer.repeat(options.repetitions, calls)]
            rows.append(Row(f"{name} AESGCM.encrypt {size} B", "ns", taken))
    report(rows, options, algorithm="aes-256-gcm, key kept, no AAD")


if __name__ == "__main__":
    main()
