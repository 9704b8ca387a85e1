# SPDX-License-Identifier: Apache-2.0
"""A process in which libcrypto cannot be loaded: own code serves; what needs libcrypto says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Every algorithm there and back, short and long, with a nonce that GCM must hash; a file, and HKDF.
SCRIPT = """
import hashlib, io, sys
import warpcipher as wc

def run():
    for info in wc.algorithms():
        key = bytes(range(1, info.key_size + 1))
        for length in (64, 65536):
            for iv_size in sorted({info.iv_size, 8} if info.iv == "any" else {info.iv_size}):
                iv = {"iv": bytes(iv_size)} if iv_size else {}
                cipher = wc.Cipher(info.name, key, engine="cpu")
                sealed = cipher.encrypt(bytes(length), **iv)
                assert cipher.decrypt(sealed, **iv) == bytes(length), info.name
                yield f"{info.name} {length} {hashlib.sha256(sealed).hexdigest()}"
    file = io.BytesIO()
    wc.formats.encrypt_stream(io.BytesIO(b"text"), file, bytes(32), format="cobblestone-256")
    file.seek(0)
    plain = io.BytesIO()
    wc.formats.decrypt_stream(file, plain, bytes(32))
    yield plain.getvalue().decode()

cpu = next(engine for engine in wc.engines() if engine.name == "cpu")
print("no libcrypto" if "no libcrypto: libcrypto.so.3" in cpu.devices[0] else "libcrypto")
if "no AES" not in cpu.description:
    print(*run(), sep="\\n")
try:
    wc._native.hkdf("sha256", bytes(32), bytes(32), b"", 32)
except wc.EngineError as error:
    print(error, file=sys.stderr)
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_without_libcrypto(tmp_path: Path) -> None:
    with_it = run()
    if not with_it.stdout.startswith("libcrypto\n"):
        pytest.skip("no libcrypto here to compare with")
    assert not with_it.stderr
    (tmp_path / "libcrypto.so.3").write_text("not a library")
    without = run(LD_LIBRARY_PATH=str(tmp_path))
    lines = without.stdout.splitlines()
    assert lines[0] == "no libcrypto"
    assert without.stderr.startswith("HKDF: libcrypto.so.3 cannot be loaded")
    assert "libssl3" in without.stderr
    if len(lines) > 1:  # not on a processor for which there is no own code of AES
        assert lines[1:] == with_it.stdout.splitlines()[1:]
