# SPDX-License-Identifier: Apache-2.0
"""Memory that streams and random access take: bounded, and for long segments as documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEMORY_SCRIPT = """
import io, sys
from warpcipher import formats

class Zeros(io.RawIOBase):
    left = int(sys.argv[1])
    def readinto(self, buffer):
        count = min(len(memoryview(buffer)), self.left)
        self.left -= count
        return count

class Count(io.RawIOBase):
    def write(self, data):
        return len(memoryview(data))

key = bytes(32) if sys.argv[2] == "cobblestone" else formats.Keyset.generate(sys.argv[2])
formats.encrypt_stream(Zeros(), Count(), key)
# Not ru_maxrss: that counts what the process was before it became Python.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize(
    "kind", ["cobblestone", "AES256_GCM_HKDF_1MB", "AES128_CTR_HMAC_SHA256_1MB"]
)
def test_memory_does_not_grow_with_the_file(kind: str) -> None:
    peaks = []
    for size in (32 << 20, 512 << 20):
        result = subprocess.run(
            [sys.executable, "-c", MEMORY_SCRIPT, str(size), kind],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(result.stdout))
    assert peaks[1] - peaks[0] < 32 << 10, f"KiB resident: {peaks}"
    assert peaks[1] < 512 << 10


@pytest.mark.parametrize("kind", ["AES256_GCM_HKDF_1MB", "AES128_CTR_HMAC_SHA256_1MB"])
@pytest.mark.parametrize("way", ["encrypt", "decrypt", "open"])
def test_long_segments_take_no_more_than_documented(kind: str, way: str, tmp_path: Path) -> None:
    """Eight segments for a stream, three for random access."""
    segment = 32 << 20
    script = f"""
import dataclasses, io, sys
from warpcipher import formats

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)

class Zeros(io.RawIOBase):
    left = {6 * segment}
    def readinto(self, buffer):
        count = min(len(memoryview(buffer)), self.left)
        self.left -= count
        return count

class Count(io.RawIOBase):
    def write(self, data):
        return len(memoryview(data))

key = formats.Keyset.generate({kind!r}).primary
key = dataclasses.replace(key, segment_size={segment}, value=bytes(32))
key = formats.Keyset((key,), key.key_id)
if sys.argv[1] == "make":
    with open(sys.argv[2], "wb") as out:
        formats.encrypt_stream(Zeros(), out, key)
    sys.exit()
before = peak()
if sys.argv[1] == "encrypt":
    formats.encrypt_stream(Zeros(), Count(), key)
elif sys.argv[1] == "decrypt":
    with open(sys.argv[2], "rb") as source:
        formats.decrypt_stream(source, Count(), key)
else:
    with formats.open(sys.argv[2], key) as file:
        for place in (0, {3 * segment}, 5):
            file.seek(place)
            file.read(10)
print(peak() - before)
"""

    def run(what: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, what, str(tmp_path / "sealed")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    if way != "encrypt":
        run("make")
    segments = int(run(way)) / (segment >> 10)
    assert segments < (3.5 if way == "open" else 8.5)
