# SPDX-License-Identifier: Apache-2.0
"""The format age: keys, hostile headers, armor, streams and random access. Its peers are in
tests/interop, its own vectors in test_format_age_vectors.py, damage in test_format_tamper.py."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats, keys
from warpcipher.formats import FormatError, Options, age
from warpcipher.formats.age import header
from warpcipher.formats.age import keys as age_keys

pytest.importorskip("cryptography")

ME = age.Identity(bytes(range(32)))
YOU = age.Identity(bytes(range(32, 64)))
QUICK = age.Passphrase("correct horse", work_factor=1)


def encrypt(plain: bytes, key: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    count = formats.encrypt_stream(io.BytesIO(plain), out, key, options=Options(**options))
    assert count == len(out.getvalue())
    return out.getvalue()


def decrypt(data: bytes, key: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(data), out, key, format="age", options=Options(**options))
    return out.getvalue()


def test_every_recipient_opens_it_and_nobody_else() -> None:
    data = encrypt(paint(70_000), [ME.recipient, str(YOU.recipient)])
    for key in (ME, YOU, [age.Identity.generate(), YOU], ME.to_text(), ME.to_text().encode()):
        assert decrypt(data, key) == paint(70_000)
    with pytest.raises(InvalidTag, match=r"wrong key: .* for 2 recipients \(X25519: 2\)"):
        decrypt(data, age.Identity.generate())
    with pytest.raises(InvalidTag, match="has no passphrase"):
        decrypt(data, QUICK)
    with pytest.raises(ValueError, match="not with a recipient"):
        decrypt(data, ME.recipient)


def test_two_files_have_nothing_in_common() -> None:
    first, second = (encrypt(paint(1000), ME) for _ in range(2))
    assert first[30:60] != second[30:60]
    assert first[-900:] != second[-900:]


def test_an_identity_encrypts_to_itself() -> None:
    assert decrypt(encrypt(b"x", ME), ME) == b"x"


def test_passphrases() -> None:
    data = encrypt(paint(200), QUICK)
    assert decrypt(data, age.Passphrase(b"correct horse")) == paint(200)
    assert decrypt(data, [ME, QUICK]) == paint(200)
    with pytest.raises(InvalidTag, match="the passphrase is another"):
        decrypt(data, age.Passphrase("wrong"))
    with pytest.raises(InvalidTag, match="encrypted with a passphrase: give it"):
        decrypt(data, ME)
    with pytest.raises(ValueError, match="only without other recipients"):
        encrypt(b"x", [ME, QUICK])
    with pytest.raises(ValueError, match="empty"):
        age.Passphrase("")
    with pytest.raises(TypeError, match="str or bytes"):
        age.Passphrase(7)  # type: ignore[arg-type]
    for factor in (0, -1, 23):
        with pytest.raises(ValueError, match="work_factor"):
            age.Passphrase("x", work_factor=factor)


def test_work_factors_that_ask_for_too_much_are_refused() -> None:
    data = encrypt(b"", age.Passphrase("x", work_factor=4))
    with pytest.raises(FormatError, match="work factor of scrypt is 4, and at most 3"):
        decrypt(data, age.Passphrase("x", work_factor=1, most_work=3))
    for factor in (b"23", b"64", b"999"):
        with pytest.raises(FormatError, match="at most 22 is taken"):
            decrypt(data.replace(b" 4\n", b" " + factor + b"\n"), age.Passphrase("x"))


@pytest.mark.parametrize("size", [0, 1, 47, 48, 49, 65535, 65536, 65537, 200_001])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_armor(size: int, end: bytes) -> None:
    data = encrypt(paint(size), ME, armor=True)
    assert data.isascii()
    assert max(map(len, data.split(b"\n"))) <= 64
    text = b" \n\t" + data.replace(b"\n", end) + b"\n \n"
    assert decrypt(text, ME) == paint(size)
    with formats.open(io.BytesIO(text), ME) as file:
        assert file.raw.size == size
        file.seek(size // 2)
        assert file.read() == paint(size)[size // 2 :]


def test_every_change_of_armor_is_refused() -> None:
    data = encrypt(paint(100), ME, armor=True)
    for at in range(len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises((InvalidTag, FormatError)):
            decrypt(bytes(damaged), ME)
    for size in range(len(data) - 1):
        with pytest.raises((InvalidTag, FormatError)):
            decrypt(data[:size], ME)
    for extra in (b"x", b"\n\nx", data):
        with pytest.raises(FormatError, match="something follows"):
            decrypt(data + extra, ME)


def test_armor_errors_name_the_line() -> None:
    lines = encrypt(paint(300), ME, armor=True).split(b"\n")
    lines[3] = lines[3][:10]
    with pytest.raises(FormatError, match="malformed armor, line 4: a line is not canonical"):
        decrypt(b"\n".join(lines), ME)
    with pytest.raises(FormatError, match="more than 64 characters"):
        decrypt(lines[0] + b"\n" + b"A" * 200_000, ME)


@pytest.mark.parametrize("count", [1, 3, 4, 20, 500, header.MOST_STANZAS])
def test_headers_of_any_length(count: int) -> None:
    key = bytes(16)
    stanza = age_keys.Recipient(YOU.recipient.public).wrap(key)
    mine = ME.wrap(key)
    head = header.build(key, (*[stanza] * (count - 1), mine))
    parsed = header.parse(head)
    assert (len(parsed.stanzas), parsed.size) == (count, len(head))
    assert age_keys.unwrap(parsed.stanzas, [ME]) == key
    parsed.check(key)


def stanza(name: str, *arguments: str, body: bytes = bytes(32)) -> header.Stanza:
    return header.Stanza(name, arguments, body)


def test_more_recipients_than_a_file_may_have() -> None:
    with pytest.raises(ValueError, match="1 to 4096 recipients, got 4097"):
        header.build(bytes(16), (stanza("x"),) * 4097)
    data = header.MAGIC + stanza("x", body=b"").to_bytes() * 4097 + b"--- "
    with pytest.raises(FormatError, match="more than 4096 recipients"):
        decrypt(data, ME)


def test_a_header_without_end_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        count = 0

        def readinto(self, buffer: Any) -> int:
            view = memoryview(buffer).cast("B")
            line = b"-> x y\n" + (b"A" * 64 + b"\n") * 20
            start = header.MAGIC if self.count == 0 else b""
            data = (start + line * (len(view) // len(line) + 1))[: len(view)]
            view[:] = data
            self.count += len(view)
            return len(view)

    endless = Endless()
    with pytest.raises(FormatError, match=r"longer than|malformed"):
        formats.decrypt_stream(endless, io.BytesIO(), ME, format="age")
    assert endless.count <= 2 * header.LONGEST
    one = header.MAGIC + b"-> x " + b"a" * header.LONGEST
    with pytest.raises(FormatError, match="header is longer than 1048576 bytes"):
        decrypt(one, ME)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated: 0 bytes"),
        (b"age-enc", "truncated: 7 bytes"),
        (b"age-encryption.org/v2\n", "of version 'v2' are not read"),
        (b"something else, of some length", "not an age file"),
        (header.MAGIC, "ends in its header"),
        (header.MAGIC + b"--- " + b"A" * 43 + b"\n", "has no recipient"),
        (header.MAGIC + b"hello\n", r"expected a stanza \(->\) or the MAC"),
    ],
)
def test_headers_that_are_none(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        decrypt(data, ME)


def test_stanzas_of_other_kinds_are_passed_over() -> None:
    key = os.urandom(16)
    others = (stanza("ssh-rsa", "abc", body=bytes(512)), stanza("x-grease", body=b""))
    parsed = header.parse(header.build(key, (*others, ME.wrap(key))))
    assert age_keys.unwrap(parsed.stanzas, [ME]) == key
    only = header.parse(header.build(key, others))
    with pytest.raises(InvalidTag, match=r"2 recipients \(ssh-rsa: 1, x-grease: 1\)"):
        age_keys.unwrap(only.stanzas, [ME])


def test_terminal_controls_in_a_header_are_not_shown() -> None:
    evil = header.parse(header.build(bytes(16), (stanza("\x5b31m|" * 20, body=b""),)))
    assert header.recipients_text(evil.stanzas) == f"1 recipient ({'?31m?' * 6})"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 131072, 1_000_003])
def test_ranges(tmp_path: Path, size: int) -> None:
    plain = paint(size)
    path = tmp_path / "file.age"
    path.write_bytes(encrypt(plain, ME))
    with formats.open(path, ME) as file:
        for start in {0, 1, 65530, 65536, size // 2, max(size - 1, 0)}:
            for length in (0, 1, 20, 65536, 200_000):
                file.seek(start)
                assert file.read(length) == plain[start : start + length]
        out = bytearray(size)
        file.seek(0)
        assert file.readinto(out) == size
        assert out == plain


def test_an_empty_last_chunk_is_that_of_an_empty_file_alone() -> None:
    """age: "the final chunk MAY be empty only if it is the only one"."""
    from warpcipher.formats.age.format import _layout, _sealing

    file_key, nonce = os.urandom(16), os.urandom(16)
    head = header.build(file_key, (ME.wrap(file_key),))
    how = _sealing(_layout(len(head)), file_key, nonce, "auto")
    full, empty = bytearray((1 << 16) + 16), bytearray(16)
    how.seal(0, 1, False, bytes(1 << 16), full)
    how.seal(1, 1, True, b"", empty)
    with pytest.raises(FormatError, match="truncated"):
        decrypt(head + nonce + full + empty, ME)
    how.seal(0, 1, True, b"", empty)
    assert decrypt(head + nonce + empty, ME) == b""


def test_texts_of_keys() -> None:
    assert age.Recipient.parse(str(ME.recipient)) == ME.recipient
    assert age.Identity.parse(ME.to_text()) == ME
    for text, says in (
        (ME.to_text(), "identity was given for a recipient"),
        ("AGE-SECRET-KEY-PQ-1QQQQ", "identity was given for a recipient"),
        (str(ME.recipient)[:-1], "checksum"),
        (str(ME.recipient).upper(), "58 lower-case"),
        ("age1pq1" + "q" * 60, "post-quantum key was given"),
        ("age1tag1" + "q" * 60, "recipient of a hardware token"),
        ("ssh-ed25519 AAAA", "an SSH public key"),
        ("age1yubikey1qqqq", "of a plugin"),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "58 lower-case"),
        ("", "58 lower-case"),
    ):
        with pytest.raises(ValueError, match=says):
            age.Recipient.parse(text)
    for text, says in (
        (str(ME.recipient), "a recipient was given for an identity"),
        ("age1pq1qqqq", "a recipient was given for an identity"),
        (ME.to_text().lower(), "58 upper-case"),
        (ME.to_text()[:-2], "checksum"),
        ("AGE-SECRET-KEY-PQ-1QQQQ", "post-quantum key was given"),
        ("AGE-PLUGIN-YUBIKEY-1QQQ", "identity of a plugin"),
    ):
        with pytest.raises(ValueError, match=says) as failure:
            age.Identity.parse(text)
        assert ME.to_text()[16:40].lower() not in str(failure.value).lower()


def test_no_key_shows_itself() -> None:
    for key in (ME, QUICK, age.Passphrase(b"correct horse")):
        for shown in (repr(key), str(key), f"{[key]}"):
            assert "correct horse" not in shown
            assert repr(ME.secret)[2:-1] not in shown
            assert ME.to_text()[16:] not in shown


def test_files_of_keys() -> None:
    text = f"# created: now\n\n{ME.to_text()}\r\n  {YOU.to_text()}  \n"
    assert age.identities(text) == [ME, YOU]
    assert age.recipients(f"{ME.recipient}\n#x\n{YOU.recipient}") == [ME.recipient, YOU.recipient]
    with pytest.raises(ValueError, match="line 2: not an identity of age: its checksum"):
        age.identities("# x\n" + ME.to_text()[:-1] + "Q")
    with pytest.raises(ValueError, match="no identity"):
        age.identities("# nothing\n")
    with pytest.raises(ValueError, match="no recipient"):
        age.recipients(b"")
    with pytest.raises(ValueError, match="characters that are not ASCII"):
        age.recipients("ä".encode())


@pytest.mark.parametrize("beginning", ["age1tag", "age1pq"])
def test_a_recipient_that_begins_like_another_kind_by_chance(beginning: str) -> None:
    """age1tag1... is a hardware token's; no X25519 recipient has a second 1."""
    groups = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(c) for c in beginning[4:]]
    bits = "".join(f"{group:05b}" for group in groups).ljust(16, "0")
    public = int(bits, 2).to_bytes(2, "big") + bytes(range(30))
    recipient = age.Recipient(public)
    assert str(recipient).startswith(beginning)
    assert age.Recipient.parse(str(recipient)) == recipient
    assert age.recipients(str(recipient)) == [recipient]
    assert formats.resolve("auto", str(recipient)).name == "age"
    assert encrypt(b"x", str(recipient)).startswith(header.MAGIC)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: b"Hello,\n\n" + text, "other text stands before its armor"),
        (lambda text: b"> " + text.replace(b"\n", b"\n> "), "its armor is quoted"),
        (lambda text: b'"' + text + b'"', "its armor is quoted"),
        (lambda text: text.decode().encode("utf-16"), "it is text in UTF-16, as `>` of PowerShell"),
    ],
)
def test_armor_that_was_changed_on_its_way_is_named(change: Any, says: str) -> None:
    with pytest.raises(FormatError, match=f"not an age file: {says}"):
        decrypt(change(encrypt(b"x", ME, armor=True)), ME)


def test_binary_files_that_were_changed_as_text_are_named() -> None:
    data = encrypt(b"x", ME)
    with pytest.raises(FormatError, match="its line ends were changed to CR LF"):
        decrypt(data.replace(b"\n", b"\r\n"), ME)
    with pytest.raises(FormatError, match="it is text in UTF-16"):
        decrypt(data.decode("latin-1").encode("utf-16"), ME)


def test_a_byte_order_mark_before_armor() -> None:
    data = b"\xef\xbb\xbf" + encrypt(paint(1000), ME, armor=True)
    assert decrypt(data, ME) == paint(1000)


@pytest.mark.parametrize("armor", [False, True])
def test_files_of_identities_under_a_passphrase(armor: bool) -> None:
    text = f"# a comment\n{ME.to_text()}\n"
    data = encrypt(text.encode(), QUICK, armor=armor)
    assert age.is_encrypted(data)
    assert not age.is_encrypted(text.encode())
    assert age.identities(data, "correct horse") == [ME]
    with pytest.raises(ValueError, match="encrypted with a passphrase: give it"):
        age.identities(data)
    with pytest.raises(InvalidTag):
        age.identities(data, "wrong")
    with pytest.raises((InvalidTag, FormatError)):
        age.identities(data[:-5], "correct horse")


def test_sources_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "id.txt"
    path.write_text(f"# created: now\n# public key: {ME.recipient}\n{ME.to_text()}\n")
    monkeypatch.setenv("MY_IDENTITY", ME.to_text())
    data = encrypt(b"text", ME)
    for source in (
        keys.from_file(path),
        keys.from_env("MY_IDENTITY"),
        lambda _: ME.to_text().encode(),
    ):
        with formats.open(io.BytesIO(data), source, format="age") as file:
            assert file.read() == b"text"
    with formats.open(io.BytesIO(data), keys.from_file(path)) as file:
        assert file.read() == b"text"
    monkeypatch.setenv("MY_IDENTITY", "00" * 32)
    with pytest.raises(ValueError, match="64 hex digits; expected identities of age"):
        formats.open(io.BytesIO(data), keys.from_env("MY_IDENTITY"), format="age")


@pytest.mark.parametrize(
    ("key", "options", "says"),
    [
        (ME, {"context": b"x"}, "takes no context"),
        (ME, {"iv": bytes(12)}, "takes no iv"),
        ([], {}, "empty list"),
        (7, {}, "takes a recipient, an identity or a Pass"),
        (bytes(32), {}, "not ASCII|not an identity"),
    ],
)
def test_what_it_does_not_take(key: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        formats.encrypt_stream(
            io.BytesIO(), io.BytesIO(), key, format="age", options=Options(**options)
        )


def test_other_formats_take_no_armor() -> None:
    for name, key in (("cobblestone-256", bytes(32)), ("ags1", bytes(16))):
        with pytest.raises(ValueError, match="takes no armor: it belongs to format age"):
            formats.encrypt_stream(
                io.BytesIO(), io.BytesIO(), key, format=name, options=Options(armor=True)
            )


def test_info_and_detect_of_armor(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(encrypt(paint(100_000), ME, armor=True))
    (blind,) = formats.info(path).candidates
    assert (blind.format, blind.plaintext_size) == ("age", None)
    (known,) = formats.info(path, ME).candidates
    assert (known.plaintext_size, known.chunks) == (100_000, 2)
    assert formats.detect(path.read_bytes(), ME) == "age"
    assert formats.detect(path.read_bytes(), YOU) is None
    assert formats.detect(path.read_bytes()[:300], ME) is None


def test_info_of_a_long_header(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(encrypt(paint(10), [ME] * 30))
    (blind,) = formats.info(path).candidates
    assert blind.plaintext_size == 10
    assert "30 recipients" in blind.reason


def test_without_the_package_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.x25519", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.kdf.scrypt", None)
    for key in (age.Recipient(bytes(32)), age.Passphrase("x")):
        with pytest.raises(ValueError, match=r"pip install 'warpcipher\[age\]'"):
            encrypt(b"", key)
