# SPDX-License-Identifier: Apache-2.0
"""New readers for a file of Crypt4GH: the header's packets are made again, the segments stay."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from crypt4gh_cases import edit_list, edited, head, packet, segments
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import FormatError, crypt4gh

pytest.importorskip("cryptography")

ME, YOU, OTHER = (crypt4gh.SecretKey(bytes(range(32 * i, 32 * i + 32))) for i in range(3))
SIZE = 200_001


def made(path: Path, *readers: crypt4gh.SecretKey) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(SIZE)), out, [one.public_key for one in readers])
    path.write_bytes(out.getvalue())
    return out.getvalue()


def opened(path: Path, key: Any) -> bytes:
    with formats.open(path, key) as file:
        return file.read()


@pytest.mark.parametrize("keep", [False, True])
def test_others_open_it_and_the_segments_stay(tmp_path: Path, keep: bool) -> None:
    path = tmp_path / "x"
    before = made(path, ME, OTHER)
    formats.rewrap_file(path, ME, [YOU.public_key, ME.public_key], keep=keep)
    after = path.read_bytes()
    assert opened(path, YOU) == opened(path, ME) == paint(SIZE)
    assert after[-SIZE:] == before[-SIZE:]
    assert len(after) == len(before) + (108 if keep else 0), "none for a reader that has one"
    if keep:
        assert opened(path, OTHER) == paint(SIZE)
    else:
        with pytest.raises(InvalidTag, match="opens none of the 2 packets"):
            opened(path, OTHER)


@pytest.mark.parametrize("keep", [False, True])
def test_edit_lists_and_several_data_keys_are_kept(tmp_path: Path, keep: bool) -> None:
    path, plain, lengths = tmp_path / "x", paint(300_000), (5, 70_000, 3, 65_530, 20)
    secrets = [bytes([i]) * 32 for i in range(1, 4)]
    packets = [packet(bytes(8) + secret) for secret in secrets]
    packets += [packet(edit_list(*lengths)), packet(bytes(40), OTHER)]
    path.write_bytes(head(*packets) + segments(plain, *secrets))
    formats.rewrap_file(path, ME, YOU.public_key, keep=keep)
    assert opened(path, YOU) == edited(plain, lengths)
    if keep:
        assert opened(path, ME) == edited(plain, lengths)


def test_peer_reads_it_and_what_the_peer_wrapped(tmp_path: Path) -> None:
    lib = pytest.importorskip("crypt4gh.lib")
    path, secret = tmp_path / "x", bytes(range(7, 39))
    for span in (None, 90_000):
        sealed, out = io.BytesIO(), io.BytesIO()
        lib.encrypt([(0, secret, ME.public_key.public)], io.BytesIO(paint(SIZE)), sealed)
        sealed.seek(0)
        plain = paint(SIZE)
        if span is not None:
            edits, plain = io.BytesIO(), plain[1000:][:span]
            lib.rearrange([(0, ME.secret, ME.public_key.public)], sealed, edits, 1000, span)
            sealed = io.BytesIO(edits.getvalue())
        path.write_bytes(sealed.getvalue())
        formats.rewrap_file(path, ME, YOU.public_key)
        lib.decrypt([(0, YOU.secret, None)], io.BytesIO(path.read_bytes()), out)
        assert out.getvalue() == plain
        again = io.BytesIO()
        recipient = [(0, secret, OTHER.public_key.public)]
        lib.reencrypt([(0, YOU.secret, None)], recipient, io.BytesIO(path.read_bytes()), again)
        path.write_bytes(again.getvalue())
        formats.rewrap_file(path, OTHER, ME.public_key)
        assert opened(path, ME) == plain


def test_what_cannot_be_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    before = made(path, ME)
    refused: list[tuple[Any, Any, type[Exception], str]] = [
        (YOU, YOU.public_key, InvalidTag, "opens none"),
        (ME.public_key, YOU.public_key, ValueError, "not with a public one"),
        (ME, [], ValueError, "empty list"),
        (ME, [YOU.public_key] * 4097, ValueError, "1 to 4096 packets"),
        (ME, formats.age.Identity.generate(), TypeError, "takes a crypt4gh"),
        (formats.age.Identity.generate(), YOU.public_key, FormatError, "not an age file"),
    ]
    for key, new, kind, text in refused:
        with pytest.raises(kind, match=text):
            formats.rewrap_file(path, key, new)
    assert path.read_bytes() == before
    header = len(head(packet(bytes(40))))
    for at in range(header):
        for bad in (before[:at], before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :]):
            path.write_bytes(bad)
            with pytest.raises((InvalidTag, FormatError, ValueError)):
                formats.rewrap_file(path, ME, YOU.public_key)
            assert path.read_bytes() == bad
    path.write_bytes(head(packet(bytes(40)), packet((7).to_bytes(4, "little") + bytes(36))))
    with pytest.raises(FormatError, match="packet of type 7"):
        formats.rewrap_file(path, ME, YOU.public_key)
    assert [one.name for one in tmp_path.iterdir()] == ["x"]
