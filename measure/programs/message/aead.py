# SPDX-License-Identifier: Apache-2.0
"""One message at a time on a CPU: the classes of `warpcipher.aead` against pyca/cryptography's, and
XChaCha20Poly1305, which it lacks, against PyNaCl (libsodium). By turns, from bytes to bytes."""

from __future__ import annotations

import os
import sys
import timeit
from collections.abc import Callable
from functools import partial

import warpcipher
from warpcipher_measure.program import Row, by_turns, named, parser, report

CLASSES = ("AESGCM", "AESGCMSIV", "ChaCha20Poly1305", "XChaCha20Poly1305")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 1024, 16384, 1 << 20])
    arguments.add_argument("--classes", nargs="+", default=CLASSES, choices=CLASSES)
    arguments.add_argument("--decrypt", action="store_true", help="decrypt instead")
    options = arguments.parse_args()
    rows = []
    for name in options.classes:
        for size in options.sizes:
            rows += measure(name, size, options.repetitions, options.decrypt)
    report(rows, options, algorithm="keys of 256 bits, kept; no AAD")


def measure(name: str, size: int, repetitions: int, decrypts: bool) -> list[Row]:
    key = os.urandom(32)
    nonce = os.urandom(24 if name == "XChaCha20Poly1305" else 12)
    own = getattr(warpcipher.aead, name)(key)
    boxes = {"warpcipher": (own.encrypt, own.decrypt)}
    with named("the peer of " + name):
        boxes |= peer(name, key)
    text = os.urandom(size)
    sealed = own.encrypt(nonce, text, None)
    actions, calls = {}, 1
    for library, (encrypt, decrypt) in boxes.items():
        if encrypt(nonce, text, None) != sealed:
            sys.exit(f"{library} encrypts to other bytes")
        call, given = (decrypt, sealed) if decrypts else (encrypt, text)
        what = f"{library} {name}.{'decrypt' if decrypts else 'encrypt'} {size} B"
        actions[what] = partial(call, nonce, given, None)
        calls = max(calls, int(0.002 / timeit.timeit(actions[what], number=3) * 3))
    taken = by_turns(actions, repetitions, calls=calls)
    return [Row(what, "ns", [1e9 * each for each in of.wall]) for what, of in taken.items()]


def peer(name: str, key: bytes) -> dict[str, tuple[Callable[..., bytes], Callable[..., bytes]]]:
    """Raises ImportError."""
    if name != "XChaCha20Poly1305":
        from cryptography.hazmat.primitives.ciphers import aead

        box = getattr(aead, name)(key)
        return {"pyca": (box.encrypt, box.decrypt)}
    from nacl import bindings as sodium

    def encrypt(nonce: bytes, text: bytes, aad: bytes | None) -> bytes:
        return sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(text, aad, nonce, key)

    def decrypt(nonce: bytes, sealed: bytes, aad: bytes | None) -> bytes:
        return sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, aad, nonce, key)

    return {"PyNaCl": (encrypt, decrypt)}


if __name__ == "__main__":
    main()
