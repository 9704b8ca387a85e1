# SPDX-License-Identifier: Apache-2.0
"""Short files from memory to memory are those that streams write and read."""

from __future__ import annotations

import io

import pytest
from format_cases import CASES, Case, paint
from warpcipher import InvalidTag, formats
from warpcipher.formats.short import decrypt_short, encrypt_short


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_short_files(case: Case) -> None:
    chosen, options = formats.get(case.format), case.options
    for size in (*case.sizes(), 3 << 20):  # the last is more than a piece
        text = paint(size)
        made = bytes(encrypt_short(memoryview(text), case.key, chosen, options))
        assert case.decrypt(made) == text
        sealed = memoryview(case.encrypt(text))
        assert decrypt_short(sealed, case.key, chosen, options) == text
        for key, file in ((case.wrong_key, sealed), (case.key, sealed[:-1])):
            with pytest.raises((InvalidTag, formats.FormatError)):
                decrypt_short(file, key, chosen, options)


def test_files_of_text() -> None:
    age = pytest.importorskip("warpcipher.formats.age")
    key, armored = age.Identity.generate(), formats.Options(armor=True)
    made = encrypt_short(memoryview(b"text"), key, formats.get("age"), armored)
    assert bytes(made).startswith(b"-----BEGIN AGE")
    assert decrypt_short(made, key, formats.get("age"), formats.Options()) == b"text"


def test_one_message() -> None:
    """Format raw has no chunks."""
    chosen, options = formats.get("raw"), formats.Options(algorithm="aes-128-gcm", iv=bytes(12))
    made = encrypt_short(memoryview(b"text"), bytes(16), chosen, options)
    assert decrypt_short(made, bytes(16), chosen, options) == b"text"
    plain = io.BytesIO()
    arguments = {"format": "raw", "options": options}
    formats.decrypt_stream(io.BytesIO(made), plain, bytes(16), **arguments)  # type: ignore[arg-type]
    assert plain.getvalue() == b"text"
