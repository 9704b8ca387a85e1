# SPDX-License-Identifier: Apache-2.0
"""Both ways between warpcipher's cobblestone formats and `cryptography.cobblestone`."""

from __future__ import annotations

import io
from typing import Any

import pytest
from format_cases import COBBLESTONES, Case, paint
from warpcipher import formats
from warpcipher.formats import layout

peer = pytest.importorskip("cryptography.cobblestone", reason="needs cryptography 50 or later")

every_case = pytest.mark.parametrize("case", COBBLESTONES, ids=lambda case: case.name)
SIZES = (0, 1, 15, 16, 17, 16383, 16384, 16385, 5 * 16384, 5 * 16384 + 1, 2_000_003)


def class_of(case: Case, kind: str) -> Any:
    return getattr(peer, f"Cobblestone{case.name[-3:]}{kind}")


@every_case
@pytest.mark.parametrize("piece_size", [1 << 15, layout.PIECE_SIZE])
def test_the_peer_reads_what_is_written(
    case: Case, piece_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", piece_size)
    for size in SIZES:
        decryptor = class_of(case, "Decryptor")(case.key, case.context)
        plain = decryptor.update(case.encrypt(paint(size))) + decryptor.finalize()
        assert plain == paint(size), size


@every_case
@pytest.mark.parametrize("piece_size", [1 << 15, layout.PIECE_SIZE])
def test_what_the_peer_writes_is_read(
    case: Case, piece_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "PIECE_SIZE", piece_size)
    for size in SIZES:
        encryptor = class_of(case, "Encryptor")(case.key, case.context)
        sealed = encryptor.update(paint(size)) + encryptor.finalize()
        assert case.decrypt(sealed) == paint(size), size
        with formats.open(io.BytesIO(sealed), case.key, options=case.options) as file:
            file.seek(size // 3)
            assert file.read() == paint(size)[size // 3 :]


@every_case
@pytest.mark.parametrize("context", [b"", b"\0", b"a context", bytes(1000)])
def test_contexts_agree(case: Case, context: bytes) -> None:
    options = formats.Options(context=context)
    encryptor = class_of(case, "Encryptor")(case.key, context)
    sealed = encryptor.update(b"text") + encryptor.finalize()
    assert case.decrypt(sealed, options=options) == b"text"
