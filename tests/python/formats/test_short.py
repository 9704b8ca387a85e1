# SPDX-License-Identifier: Apache-2.0
"""Short files from memory to memory are those that streams write and read."""

from __future__ import annotations

import io

import pytest
from format_cases import CASES, Case, paint
from warpcipher import InvalidTag, formats
from warpcipher.formats.sealed import Sealed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_short_files(case: Case) -> None:
    chosen, options = formats.get(case.format), case.options
    for size in (*case.sizes(), 3 << 20):  # the last is more than a piece
        text = paint(size)
        whole = Sealed(case.key, chosen, options)
        made = bytes(whole.encrypt_short(memoryview(text), options))
        assert case.decrypt(made) == text
        sealed = memoryview(case.encrypt(text))
        assert whole.decrypt_short(sealed, options) == text
        for key, file in ((case.wrong_key, sealed), (case.key, sealed[:-1])):
            with pytest.raises((InvalidTag, formats.FormatError)):
                Sealed(key, chosen, options).decrypt_short(file, options)


def test_files_of_text() -> None:
    age = pytest.importorskip("warpcipher.formats.age")
    key, armored = age.Identity.generate(), formats.Options(armor=True)
    whole = Sealed(key, formats.get("age"), armored)
    made = whole.encrypt_short(memoryview(b"text"), armored)
    assert bytes(made).startswith(b"-----BEGIN AGE")
    assert whole.decrypt_short(made, formats.Options()) == b"text"


def test_one_message() -> None:
    """Format raw has no chunks."""
    chosen, options = formats.get("raw"), formats.Options(algorithm="aes-128-gcm", iv=bytes(12))
    whole = Sealed(bytes(16), chosen, options)
    made = whole.encrypt_short(memoryview(b"text"), options)
    assert whole.decrypt_short(made, options) == b"text"
    plain = io.BytesIO()
    arguments = {"format": "raw", "options": options}
    formats.decrypt_stream(io.BytesIO(made), plain, bytes(16), **arguments)  # type: ignore[arg-type]
    assert plain.getvalue() == b"text"
