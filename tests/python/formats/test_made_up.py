# SPDX-License-Identifier: Apache-2.0
"""A format that no other file knows: the one that docs/formats.md adds, with an option of its own
and without. Every call and the command take it once it is registered."""

from __future__ import annotations

import io
import json
import os
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from click.testing import CliRunner, Result
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.cli.app import cli
from warpcipher.formats import registry, stream

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
KEY = bytes(range(40))
HEADER_SIZE, CHUNK, OVERHEAD = 24, 4096, 28
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK, 300_001]
has_gpu = any(engine.name == "cuda" and engine.usable for engine in wc.engines())


@pytest.fixture(autouse=True)
def notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> formats.Format:
    """Registers the format as the page does, until the test ends."""
    monkeypatch.setattr(registry._FORMATS, "made", dict(registry._FORMATS.made))
    monkeypatch.chdir(tmp_path)
    Path("plain").write_bytes(paint(300_001))
    Path("key").write_bytes(KEY)
    Path("key").chmod(0o600)
    (block,) = re.findall(r"```python\n([^`]*?formats\.register.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/formats.md", "exec"), {"formats": formats, "os": os})  # noqa: S102
    Path("plain.notebook").unlink()
    return formats.get("notebook")


def sealed_of(plain: bytes, **arguments: Any) -> bytes:
    out = io.BytesIO()
    assert formats.encrypt_stream(io.BytesIO(plain), out, KEY, **arguments) == len(out.getvalue())
    return out.getvalue()


def opened(sealed: bytes, key: object = KEY, **arguments: Any) -> bytes:
    out = io.BytesIO()
    assert formats.decrypt_stream(io.BytesIO(sealed), out, key, **arguments) == len(out.getvalue())
    return out.getvalue()


def command(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["auto", "notebook"])
def test_streams(size: int, name: str) -> None:
    plain = paint(size)
    sealed = sealed_of(plain, format=name, options=formats.Options(context=b"shelf"))
    assert sealed.startswith(b"NOTEBOOK")
    assert len(sealed) == HEADER_SIZE + size + (size // CHUNK + 1) * OVERHEAD
    assert sealed != sealed_of(plain, format=name), "salt and nonces are random"
    assert opened(sealed, format=name, options=formats.Options(context=b"shelf")) == plain
    with pytest.raises(InvalidTag):
        opened(sealed, format=name)


def test_a_changed_file_is_refused() -> None:
    plain = paint(3 * CHUNK + 5)
    sealed = sealed_of(plain)
    pieces = [sealed[i : i + CHUNK + OVERHEAD] for i in range(HEADER_SIZE, len(sealed), CHUNK + 28)]
    head = sealed[:HEADER_SIZE]
    for damaged in (
        *(sealed[:size] for size in range(0, len(sealed), 501)),
        sealed[:-1],
        head + pieces[1] + pieces[0] + pieces[2] + pieces[3],
        head + b"".join(pieces[:3]),
        head + b"".join(pieces[1:]),
        sealed + b"x",
        sealed[:30] + bytes([sealed[30] ^ 1]) + sealed[31:],
    ):
        with pytest.raises((InvalidTag, formats.FormatError)):
            opened(damaged)
        with (
            pytest.raises((InvalidTag, formats.FormatError)),
            formats.open(io.BytesIO(damaged), KEY) as file,
        ):
            file.read()


@pytest.mark.parametrize("as_path", [True, False])
def test_random_reads(as_path: bool) -> None:
    plain = Path("plain").read_bytes()
    formats.encrypt_file("plain", "sealed", KEY)
    source: Any = "sealed" if as_path else io.BytesIO(Path("sealed").read_bytes())
    draw = random.Random(5)
    with formats.open(source, KEY) as file:
        assert (file.raw.format, file.raw.size) == ("notebook", len(plain))
        for _ in range(60):
            begin, count = draw.randrange(len(plain)), draw.randrange(4 * CHUNK)
            file.seek(begin)
            assert file.read(count) == plain[begin : begin + count]
        out = bytearray(2 * len(plain))
        file.seek(0)
        assert file.readinto(out) == len(plain)
        assert out[: len(plain)] == plain
    assert formats.decrypt_file("sealed", "again", KEY) == len(plain)
    assert Path("again").read_bytes() == plain


@pytest.mark.skipif(not has_gpu, reason="no GPU")
def test_to_a_gpu() -> None:
    plain = Path("plain").read_bytes()
    formats.encrypt_file("plain", "sealed", KEY)
    with formats.open("sealed", KEY) as file:
        array = file.read_device(5000, 250_000)
    torch = pytest.importorskip("torch")
    assert bytes(torch.from_dlpack(array).cpu().numpy().tobytes()) == plain[5000:255_000]


def test_what_a_file_is() -> None:
    formats.encrypt_file("plain", "sealed", KEY)
    (shape,) = formats.info("sealed").candidates
    assert (shape.format, shape.plaintext_size, shape.chunks) == ("notebook", 300_001, 74)
    known = formats.info("sealed", KEY)
    assert known.certain
    assert known.candidates[0].format == "notebook"
    assert formats.detect(Path("sealed").read_bytes(), KEY) == "notebook"
    assert formats.detect(Path("sealed").read_bytes(), bytes(40)) is None or known.certain
    assert 40 in formats.key_sizes("auto", None)
    assert list(formats.FORMATS)[-1] == "notebook"
    with pytest.raises(ValueError, match="there is a format 'notebook'"):
        formats.register(formats.get("notebook"))
    with pytest.raises(ValueError, match="takes no armor: it belongs to format age"):
        sealed_of(b"", options=formats.Options(armor=True))


def test_the_command() -> None:
    plain = Path("plain").read_bytes()
    command("keygen", "--format", "notebook", "other")
    assert len(Path("other").read_bytes()) == 40
    command("encrypt", "--key", "key", "--context", "shelf", "plain")
    assert opened(
        Path("plain.notebook").read_bytes(), options=formats.Options(context=b"shelf")
    ) == plain  # fmt: skip
    command("check", "--key", "key", "--context", "shelf", "plain.notebook")
    command("check", "--key", "other", "--context", "shelf", "plain.notebook", code=3)
    command("decrypt", "--key", "key", "--context", "shelf", "-o", "back", "plain.notebook")
    assert Path("back").read_bytes() == plain
    (entry,) = json.loads(command("info", "--json", "plain.notebook").stdout)["files"]
    (candidate,) = entry["candidates"]
    assert (candidate["format"], candidate["name_fits"]) == ("notebook", True)
    assert "notebook " in command("info", "--formats").stdout
    refused = command("decrypt", "--key", "key", "--passphrase-env", "X", "plain", code=2)
    assert "give one key" in refused.output


def test_the_command_takes_a_tree() -> None:
    Path("tree").mkdir()
    for number in range(3):
        Path("tree", str(number)).write_bytes(paint(number * 5000))
    command("encrypt", "--key", "key", "tree")
    command("check", "--key", "key", "tree.notebook")
    command("decrypt", "--key", "key", "-o", "back", "tree.notebook")
    assert sorted(path.name for path in Path("back").iterdir()) == ["0", "1", "2"]
    assert Path("back", "2").read_bytes() == paint(10_000)


@dataclass(frozen=True)
class Peppered(formats.Options):
    """pepper: an option that only the format below takes."""

    pepper: bytes = b""


def test_an_option_of_its_own(notebook: Any) -> None:
    class Other(type(notebook)):  # type: ignore[misc]
        name = "peppered"
        takes = ("context", "pepper")
        found_by_key = False

        def _how(self, key: bytes, salt: bytes, options: Peppered) -> Any:
            return super()._how(key, salt + options.pepper, options)

    formats.register(Other())
    how: dict[str, Any] = {"format": "peppered", "options": Peppered(pepper=b"salty")}
    sealed = sealed_of(b"text", **how)
    assert opened(sealed, **how) == b"text"
    with pytest.raises(InvalidTag):
        opened(sealed, format="peppered", options=Peppered())
    with pytest.raises(ValueError, match=r"^format notebook takes no pepper$"):
        sealed_of(b"text", format="notebook", options=how["options"])


def test_an_option_without_a_plain_default(notebook: Any) -> None:
    @dataclass(frozen=True)
    class Listed(formats.Options):
        shelves: tuple[str, ...] = field(default_factory=tuple)

    assert opened(sealed_of(b"text", options=Listed()), options=Listed()) == b"text"
    with pytest.raises(ValueError, match="notebook takes no shelves"):
        sealed_of(b"text", options=Listed(shelves=("upper",)))


def test_a_format_that_authenticates_nothing_opens_its_own_files(notebook: Any) -> None:
    notebook.authenticated = False  # says only so: the text is that of the page
    assert opened(sealed_of(b"text"), format="notebook") == b"text"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"name": "auto"}, "there is a format 'auto'"),
        ({"name": "other", "magic": bytes(65)}, "magic has 65 bytes: expected 64 at most"),
        ({"name": "other", "key_sizes": (8, 16)}, "keys of 16 bytes belong to another format"),
        ({"name": "other"}, "keys of 40 bytes belong to another format"),
    ],
)
def test_register_refuses(notebook: Any, said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        formats.register(type("Other", (type(notebook),), said)())


def test_long_streams_use_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = paint(
        5 * stream.SLOTS * formats.get("notebook").encryptor(KEY, formats.Options()).piece
    )
    assert opened(sealed_of(plain)) == plain
