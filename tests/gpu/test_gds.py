# SPDX-License-Identifier: Apache-2.0
"""Encrypted files read to a GPU by kvikio. Runs where kvikio is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from format_cases import CASES, Case, paint
from test_file_device import to_host
from warpcipher import InvalidTag, formats
from warpcipher.formats import gds

pytest.importorskip("kvikio", reason="kvikio is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_as_without(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gds, "PIECE", 100_000)
    plain = paint(40 * case.chunk)
    path = tmp_path / "x"
    path.write_bytes(case.encrypt(plain))
    with formats.open(path, case.key, options=case.options) as file:
        if "ctr" in case.name:
            with pytest.raises(ValueError, match="does not authenticate this format"):
                gds.read_device(file, path, 0, 1)
            return
        for offset, length in ((0, len(plain)), (17, len(plain) // 3), (len(plain) - 1, 1)):
            found = gds.read_device(file, path, offset, length)
            assert to_host(found) == plain[offset:][:length]
            array = torch.empty(length, dtype=torch.uint8, device="cuda:0")
            gds.read_into(file, path, offset, length, array)
            assert array.cpu().numpy().tobytes() == plain[offset:][:length]
        sealed = bytearray(path.read_bytes())
        sealed[len(sealed) // 2] ^= 1
        path.write_bytes(sealed)
        with pytest.raises(InvalidTag):
            gds.read_device(file, path, 0, len(plain))
