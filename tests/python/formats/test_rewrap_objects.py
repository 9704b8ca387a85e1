# SPDX-License-Identifier: Apache-2.0
"""Keys of objects at URLs changed: `rewrap_file` and `rekey_file` on a store that copies by itself
and on one that cannot."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crypt4gh_cases import ME as READER
from format_cases import paint
from warpcipher import InvalidTag, formats, stores
from warpcipher.formats import Options, age, crypt4gh, rekey, source

pytest.importorskip("cryptography")
pytest.importorskip("fsspec")

ME, YOU = (age.Identity(bytes(range(32 * i, 32 * i + 32))) for i in range(2))
OTHER = crypt4gh.SecretKey.generate()
SIZE = 300_001


@pytest.fixture
def bucket() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Makes the store one that copies by itself. The copies: from, to, and how many bytes
    travelled."""
    made: list[tuple[str, str, int]] = []

    def replace_beginning(
        url: str,
        old: int,
        beginning: bytes,
        *,
        dest: str | None = None,
        version: str | None = None,
        replaces: str | None = None,
    ) -> bool:
        assert version in (None, stores.stat(url).version)
        assert replaces is None or replaces == stores.stat(dest or url).version
        put(dest or url, beginning + get(url)[old:])
        made.append((url, dest or url, len(beginning)))
        return True

    monkeypatch.setattr(stores, "replace_beginning", replace_beginning)
    return made


def put(url: str, data: bytes) -> None:
    with stores.writing(url) as file:
        file.write(data)


def get(url: str) -> bytes:
    with stores.open_object(url) as file:
        return file.read()


def sealed(url: str, key: Any = ME, **options: Any) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(paint(SIZE)), out, key, options=Options(**options))
    put(url, out.getvalue())
    return out.getvalue()


def opened(url: str, key: Any) -> bytes:
    with formats.open(url, key) as file:
        return file.read()


def names(bucket: str) -> set[str]:
    return {info.url.rpartition("/")[2] for info in stores.listing(bucket)}


@pytest.mark.parametrize("out", [True, False])
@pytest.mark.parametrize("keys", [(ME, YOU), (READER, OTHER)], ids=["age", "crypt4gh"])
def test_only_the_header_travels(
    bucket: str, copies: list[tuple[str, str, int]], out: bool, keys: tuple[Any, Any]
) -> None:
    url = f"{bucket}/a"
    before = sealed(url, keys[0])
    target = f"{bucket}/b" if out else url
    formats.rewrap_file(url, *keys, target if out else None)
    assert opened(target, keys[1]) == paint(SIZE)
    ((source, dest, count),) = copies
    assert (source, dest) == (url, target)
    assert count < 400
    assert not out or get(url) == before
    with pytest.raises(FileExistsError):
        formats.rewrap_file(target, keys[1], keys[0], f"{bucket}/a", replace=False)


def test_a_store_that_cannot_copy(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/a"
    for armor in (False, True):
        before = sealed(url, ME, armor=armor)
        with pytest.raises(ValueError, match="--copy"):
            formats.rewrap_file(url, ME, YOU)
        assert get(url) == before
        formats.rewrap_file(url, ME, YOU, copy=True)
        assert opened(url, YOU) == paint(SIZE)
        formats.rewrap_file(url, YOU, ME, f"{bucket}/b")
        formats.rewrap_file(url, YOU, ME, tmp_path / "c")
        formats.rewrap_file(tmp_path / "c", ME, YOU, f"{bucket}/d")
        assert opened(f"{bucket}/b", ME) == opened(f"{bucket}/d", YOU) == paint(SIZE)
        assert opened(str(tmp_path / "c"), ME) == paint(SIZE)
        assert get(url).startswith(b"-----BEGIN") is armor
    assert names(bucket) == {"a", "b", "d"}


@pytest.mark.usefixtures("copies")
def test_what_cannot_be_leaves_the_object(bucket: str) -> None:
    url = f"{bucket}/t/b/a"
    before = sealed(url)
    for change, kind in (
        (lambda: formats.rewrap_file(url, YOU, ME), InvalidTag),
        (lambda: formats.rewrap_file(url, bytes(32), ME), ValueError),
        (lambda: formats.rewrap_file(f"{bucket}/absent", ME, YOU), FileNotFoundError),
        (lambda: formats.rekey_file(url, None, YOU, ME), InvalidTag),
        (lambda: formats.rekey_file(url, url, ME, [YOU, bytes(32)]), ValueError),
    ):
        with pytest.raises(kind):
            change()
    put(f"{bucket}/t/MANIFEST.warpcipher", b"")
    for out in (None, url, f"{bucket}/t/new"):
        with pytest.raises(ValueError, match="part of the tree"):
            formats.rewrap_file(url, ME, YOU, out)
        with pytest.raises(ValueError, match="part of the tree"):
            formats.rekey_file(url, out, ME, YOU)
    formats.rewrap_file(url, ME, YOU, f"{bucket}/elsewhere")
    assert get(url) == before
    assert names(bucket) == {"MANIFEST.warpcipher", "a", "elsewhere"}


@pytest.mark.parametrize("by_store", [True, False])
def test_rekey(bucket: str, tmp_path: Path, by_store: bool, request: pytest.FixtureRequest) -> None:
    if by_store:
        request.getfixturevalue("copies")
    url, key, new = f"{bucket}/a", bytes(32), bytes(range(16))
    sealed(url, key)
    assert formats.rekey_file(url, f"{bucket}/b", key, new) == stores.stat(f"{bucket}/b").size
    assert opened(f"{bucket}/b", new) == opened(url, key) == paint(SIZE)
    formats.rekey_file(url, None, key, YOU.recipient)
    formats.rekey_file(url, tmp_path / "c", YOU, new)
    formats.rekey_file(tmp_path / "c", f"{bucket}/d", new, key)
    assert opened(url, YOU) == opened(str(tmp_path / "c"), new) == paint(SIZE)
    assert opened(f"{bucket}/d", key) == paint(SIZE)
    with pytest.raises(FileExistsError):
        formats.rekey_file(url, f"{bucket}/d", YOU, new, replace=False)
    assert names(bucket) == {"a", "b", "d"}


@pytest.mark.parametrize("new", [bytes(range(16)), YOU.recipient])
@pytest.mark.parametrize("target", ["a", "b"])
def test_what_reads_back_as_something_else(
    bucket: str, monkeypatch: pytest.MonkeyPatch, new: Any, target: str
) -> None:
    url, key = f"{bucket}/a", bytes(32)
    before = sealed(url, key)
    prove = rekey.Rekeyed.prove

    def damaged(self: rekey.Rekeyed, file: Any) -> None:
        put(file.name, bytes(SIZE + 1000))
        with stores.open_object(file.name) as again:
            prove(self, again)

    monkeypatch.setattr(rekey.Rekeyed, "prove", damaged)
    with pytest.raises((OSError, InvalidTag, ValueError)):
        formats.rekey_file(url, f"{bucket}/{target}", key, new)
    assert get(url) == before
    assert names(bucket) == {"a"}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_object_that_changes_meanwhile(
    bucket: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    url, key = f"{bucket}/a", bytes(32)
    sealed(url, key)
    other = sealed(f"{bucket}/b", bytes(32))
    kind, name = (rekey.Rekeyed, "prove") if moment == "after" else (rekey, "encrypt_stream")
    original: Callable[..., Any] = getattr(kind, name)

    def and_change(*arguments: Any, **options: Any) -> Any:
        put(url, other)
        return original(*arguments, **options)

    monkeypatch.setattr(kind, name, and_change)
    with pytest.raises(OSError, match="change"):
        formats.rekey_file(url, None, key, bytes(range(16)))
    assert get(url) == other
    assert names(bucket) == {"a", "b"}


def test_a_file_that_changes_while_it_becomes_an_object(
    bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sealed(f"{bucket}/a")
    (tmp_path / "a").write_bytes(get(f"{bucket}/a"))
    write = source.write_whole

    def and_change(target: Any, data: memoryview) -> None:
        write(target, data)
        with (tmp_path / "a").open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(source, "write_whole", and_change)
    with pytest.raises(OSError, match="changed while it was read"):
        formats.rewrap_file(tmp_path / "a", ME, YOU, f"{bucket}/b")
    assert names(bucket) == {"a"}


def test_the_command(bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In this process, where the objects are."""
    import json

    from click.testing import CliRunner
    from warpcipher.cli.app import cli

    for name, text in (("me", ME.to_text()), ("you", YOU.to_text()), ("new", "11" * 16)):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(text)
    (tmp_path / "team").write_text(str(YOU.recipient))
    monkeypatch.chdir(tmp_path)
    url = f"{bucket}/a.age"
    sealed(url)

    def call(*arguments: str) -> Any:
        done = CliRunner().invoke(cli, arguments)
        return done.exit_code, done.output

    code, text = call("rewrap", "-i", "me", "-R", "team", url)
    assert (code, "--copy" in text) == (2, True)
    assert call("rewrap", "-i", "me", "-R", "team", "--copy", url)[0] == 0
    assert opened(url, YOU) == paint(SIZE)
    rekey_it = ("rekey", "-i", "you", "--new-key", "new")
    code, text = call(*rekey_it, "--json", "-o", f"{bucket}/b", url)
    assert code == 0, text
    assert json.loads(text)["objects"] == 1
    assert opened(f"{bucket}/b", bytes([17]) * 16) == paint(SIZE)
    assert call(*rekey_it, "-o", f"{bucket}/b", url)[0] == 2
    assert call(*rekey_it, "-o", f"{bucket}/c/", url)[0] == 0
    assert opened(f"{bucket}/c/a.cobblestone", bytes([17]) * 16) == paint(SIZE)
    assert call(*rekey_it, "-o", "local", url)[0] == 0
    assert (tmp_path / "local").is_file()
    assert call("rekey", "-i", "me", "--new-key", "new", "--in-place", url)[0] in (2, 3)
