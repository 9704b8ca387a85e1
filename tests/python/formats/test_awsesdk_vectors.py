# SPDX-License-Identifier: Apache-2.0
"""Messages of the AWS Encryption SDK that its authors published (tests/vectors/SOURCES.md)."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from warpcipher import formats
from warpcipher.formats import awsesdk

pytest.importorskip("cryptography")

FOLDER = Path(__file__).parents[2] / "vectors" / "awsesdk"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.name != "small")
KEYS = [  # of the publisher's manifest
    awsesdk.RawAES(bytes.fromhex(key), "static-aws-xcompat", f"AES.{bits}..")
    for bits, key in (
        (128, "bf70b57de36cce324260fa2504c56091"),
        (192, "95e4447d1b71622eae20a528e66a6f9e45039870e4f4dea7"),
        (256, "0d4c5b3b8335e40dcc1ecf776da53031458ff2dc4ccc052140c7ef3745a5ea5e"),
    )
]


@pytest.mark.parametrize("name", NAMES)
def test_a_published_message(name: str) -> None:
    """name: its suite, and the length of its frames, 0 of one block."""
    message, text = (FOLDER / name).read_bytes(), (FOLDER / "small").read_bytes()
    suite, _, frame_length = name.partition("-")
    options = awsesdk.Options(algorithm=f"0x{suite}")
    plain = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(message), plain, KEYS, options=options)
    assert plain.getvalue() == text
    with formats.open(io.BytesIO(message), KEYS, options=options) as file:
        file.seek(5000)
        assert file.read(700) == text[5000:5700]
    found = next(c for c in formats.info(FOLDER / name).candidates if c.format == "awsesdk")
    assert f"suite 0x{suite}" in found.reason
    assert found.chunk_size == (int(frame_length) or None)


def test_every_suite_has_one() -> None:
    suites = {name[:4] for name in NAMES}
    assert len(suites) == len(NAMES) == 9
