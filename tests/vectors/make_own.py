#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the vector files beside it that have no publisher: warpcipher-*.rsp.

Inputs are SHAKE-128 of a label; outputs come from pyca/cryptography (OpenSSL), never from this
library. Run it without arguments to write the files, with --check to fail if they differ from what
it would write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python" / "support"))

import conformance_oracle as oracle  # noqa: E402
import warpcipher as wc  # noqa: E402

BANNER = """# {purpose}
# Made by make_own.py beside this file: inputs are SHAKE-128 of a label, outputs are OpenSSL's.
"""


def record(
    count: str,
    algorithm: str,
    text: bytes,
    *,
    iv: bytes | None = None,
    counter: bytes | None = None,
    aad: bytes = b"",
    tag_length: int = 16,
    padding: str | None = None,
) -> str:
    info = wc.find_algorithm(algorithm)
    key = oracle.painted(f"{algorithm} key {count}", info.key_size)
    if counter is not None:
        iv = oracle.iv_for_counter(key, counter)
    elif iv is None and info.iv != "none":
        iv = oracle.painted(f"{algorithm} iv {count}", info.iv_size)
    data = oracle.encrypt(
        algorithm, key, text, iv or b"", aad, tag_length=tag_length, padding=padding
    )
    fields = {"KEY": key, "IV": iv, "AAD": aad or None, "PLAINTEXT": text}
    lines = [f"[ALGORITHM = {algorithm}]", "", f"COUNT = {count}"]
    lines += [f"{name} = {value.hex()}" for name, value in fields.items() if value is not None]
    if info.is_aead:
        lines += [f"CIPHERTEXT = {data[: len(text)].hex()}", f"TAG = {data[len(text) :].hex()}"]
    else:
        lines += [f"CIPHERTEXT = {data.hex()}"]
    if padding:
        lines += [f"PADDING = {padding.upper()}"]
    return "\n".join(lines) + "\n"


def des() -> Iterator[str]:
    """Keys with parity bits of every kind, and texts that are not a number of blocks."""
    for cipher in ("des", "des-ede2", "des-ede3"):
        for mode in ("ecb", "cbc", "cfb", "cfb8", "ofb"):
            for size in (8, 40, 64) if mode in ("ecb", "cbc") else (1, 7, 13, 64):
                algorithm = f"{cipher}-{mode}"
                yield record(str(size), algorithm, oracle.painted(f"{algorithm} {size}", size))


def xts() -> Iterator[str]:
    """Every length of the stolen block."""
    for bits in (128, 256):
        for size in (*range(16, 33), 47, 64):
            algorithm = f"aes-{bits}-xts"
            yield record(str(size), algorithm, oracle.painted(f"{algorithm} {size}", size))


def ctr_wrap() -> Iterator[str]:
    """Counters that carry out of 8, 16, 32, 64 and all 128 bits within the message."""
    for bits in (128, 192, 256):
        for width in (8, 16, 32, 64, 128):
            algorithm = f"aes-{bits}-ctr"
            low = ((1 << width) - 2).to_bytes(width // 8, "big")
            iv = oracle.painted(f"{algorithm} iv {width}", 16)[: 16 - len(low)] + low
            yield record(str(width), algorithm, oracle.painted(algorithm, 75), iv=iv)


def gcm_wrap() -> Iterator[str]:
    """IVs whose J0 ends in ffffffff or one or two less: inc32 wraps and must not carry further."""
    for bits in (128, 192, 256):
        for below in (0, 1, 2):
            algorithm = f"aes-{bits}-gcm"
            counter = oracle.painted(algorithm, 12) + (0xFFFFFFFF - below).to_bytes(4, "big")
            text = oracle.painted(f"{algorithm} {below}", 75)
            yield record(str(below), algorithm, text, counter=counter, aad=b"inc32")


def chacha() -> Iterator[str]:
    """Lengths around blocks of 16 and 64 bytes, and the last block that the counter can number."""
    for algorithm in ("chacha20", "chacha20-poly1305", "xchacha20-poly1305"):
        for size in (0, 1, 15, 16, 17, 63, 64, 65, 128, 200, 1000):
            text = oracle.painted(f"{algorithm} {size}", size)
            aad = b"" if algorithm == "chacha20" else oracle.painted("aad", size % 33)
            yield record(str(size), algorithm, text, aad=aad)
    for size in (1, 64, 129):
        first = 2**32 - -(-size // 64)
        iv = first.to_bytes(4, "little") + oracle.painted("last", 12)
        yield record(f"last {size}", "chacha20", oracle.painted(f"last {size}", size), iv=iv)


def gcm_siv() -> Iterator[str]:
    """Lengths around blocks and around the groups of vectors that processors take."""
    for bits in (128, 256):
        for size in (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 257, 511, 512, 513, 1200):
            algorithm = f"aes-{bits}-gcm-siv"
            text, aad = oracle.painted(f"{algorithm} {size}", size), oracle.painted("a", size % 49)
            yield record(str(size), algorithm, text, aad=aad)


def ccm() -> Iterator[str]:
    """Nonces and tags of every length, and associated data with a longer length before them."""
    for bits in (128, 192, 256):
        for i, size in enumerate((0, 1, 15, 16, 17, 32, 33, 63, 64, 65, 127, 128, 1000)):
            algorithm, label = f"aes-{bits}-ccm", f"ccm {bits} {size}"
            aad = oracle.painted("aad", 65280 if size == 65 else (7 * i) % 40)
            iv = oracle.painted(label, 7 + i % 7)
            text, tag_length = oracle.painted(label, size), 4 + 2 * (i % 7)
            yield record(str(size), algorithm, text, iv=iv, aad=aad, tag_length=tag_length)


def padded() -> Iterator[str]:
    """Every length of PKCS#7 padding (RFC 5652, section 6.3)."""
    for info in wc.algorithms():
        for size in range(2 * info.block_size + 1 if info.takes_padding else 0):
            text = oracle.painted(f"{info.name} {size}", size)
            yield record(str(size), info.name, text, padding="pkcs7")


FILES = {
    "warpcipher-des.rsp": ("DES and triple DES in every mode", des),
    "warpcipher-xts.rsp": ("XTS with ciphertext stealing", xts),
    "warpcipher-ctr-wrap.rsp": ("CTR with carries out of 8 to 128 counter bits", ctr_wrap),
    "warpcipher-gcm-wrap.rsp": ("GCM with a 32-bit counter that wraps", gcm_wrap),
    "warpcipher-chacha.rsp": ("ChaCha20, alone and with Poly1305, and XChaCha20", chacha),
    "warpcipher-gcm-siv.rsp": ("AES-GCM-SIV", gcm_siv),
    "warpcipher-ccm.rsp": ("AES-CCM", ccm),
    "warpcipher-pkcs7.rsp": ("ECB and CBC with PKCS#7 padding", padded),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file is out of date"
    )
    arguments = parser.parse_args()
    if not oracle.HAVE_PYCA:
        print("cryptography is not installed: nothing to make vectors with", file=sys.stderr)
        return 2
    stale = False
    for name, (purpose, records) in FILES.items():
        text = BANNER.format(purpose=purpose) + "\n" + "\n".join(records())
        path = HERE / name
        if not arguments.check:
            path.write_text(text, encoding="ascii")
        elif not path.exists() or path.read_text(encoding="ascii") != text:
            print(f"{path} is out of date: run {__file__}", file=sys.stderr)
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
