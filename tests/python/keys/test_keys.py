# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.keys`: every source good and bad; what was found is named, never shown."""

from __future__ import annotations

import base64
import os
import pickle
import re
import secrets
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import formats, keys

DOCS = Path(__file__).parents[3] / "docs"
KEY = bytes(range(100, 132))
FORMS = {
    "raw": KEY,
    "hex": KEY.hex().encode(),
    "HEX": KEY.hex().upper().encode() + b"\n",
    "base64": base64.b64encode(KEY),
    "base64 in lines": base64.encodebytes(KEY),
    "base64url": base64.urlsafe_b64encode(bytes([255]) * 32),
    "without padding": base64.b64encode(KEY).rstrip(b"="),
}


def meant(form: str) -> bytes:
    return bytes([255]) * 32 if form == "base64url" else KEY


@pytest.mark.parametrize("form", FORMS)
def test_forms_by_every_source(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_bytes(FORMS[form])
    with path.open("rb") as file:
        sources = [
            keys.from_file(path),
            keys.from_descriptor(file.fileno()),
            keys.from_command(["cat", str(path)]),
        ]
        if form != "raw":
            monkeypatch.setitem(os.environb, b"K", FORMS[form])
            sources.append(keys.from_env("K"))
        for source in sources:
            assert keys.resolve(source) == meant(form)
            assert keys.resolve(source, sizes=(32,)) == meant(form), "again: a descriptor keeps it"
            with pytest.raises(ValueError, match="expected a key: 16 bytes, raw, in hex"):
                keys.resolve(source, sizes=(16,))


@pytest.mark.parametrize("size", [8, 16, 24, 32, 64])
def test_random_keys_of_every_size_are_told_apart(size: int) -> None:
    for _ in range(200):
        key = secrets.token_bytes(size)
        for data in (key, key.hex().encode(), base64.b64encode(key)):
            assert keys.decode(data, "it") == key
            assert keys.decode(data, "it", sizes=(size,)) == key


def test_named_encodings() -> None:
    text = b"0123456789abcdef" * 2
    assert keys.decode(text, "it") == bytes.fromhex(text.decode())
    assert keys.decode(text, "it", encoding="raw") == text
    assert keys.decode(text, "it", encoding="base64") == base64.b64decode(text)
    assert keys.decode(b"0a0b0c", "it", encoding="hex") == b"\x0a\x0b\x0c", "of any size"
    with pytest.raises(ValueError, match="encoding is 'octal': expected auto, raw, hex, base64"):
        keys.decode(text, "it", encoding="octal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="it holds 32 bytes"):
        keys.decode(KEY, "it", encoding="hex")


def test_a_text_is_raw_where_its_base64_is_no_key() -> None:
    text = b"GHIJKLMNOPQRSTUVWXYZghijklmnopqr"
    assert keys.decode(text, "it", sizes=(16, 32)) == text
    assert keys.decode(text, "it", sizes=(24,)) == base64.b64decode(text)


FOREIGN = {
    "-----BEGIN PRIVATE KEY-----\nMIIE\n": "a PEM (PRIVATE KEY)",
    "-----BEGIN PGP MESSAGE-----\n": "an OpenPGP message or key",
    "# created: x\n# public key: age1q\nAGE-SECRET-KEY-1ABC\n": "an age identity",
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqq": "an age recipient",
    "age-encryption.org/v1\n-> X25519": "a file encrypted by age",
    "ssh-ed25519 AAAAC3 me@host": "an SSH public key",
    "Salted__12345678": "a file encrypted by `openssl enc`",
    "AQICAHhS/abc": "a key that AWS KMS encrypted",
    "vault:v1:abcdef": "a key that Vault encrypted",
    '{"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}': "a JSON Web Key",
    '{"KeyId": "arn", "Plaintext": "QUJD"}': "the JSON of a KMS",
    '{"encryptedKeyset": "AAAA"}': "a Tink keyset that a KMS encrypted",
    '{"other": 1}': "JSON, and no Tink keyset",
    "{not json": "text that begins as JSON and is not",
    "": "nothing",
    " \n": "only white space",
    "\ufeffabc": "text with a byte order mark",
}


@pytest.mark.parametrize("content", FOREIGN)
def test_what_is_no_key_is_named_and_not_shown(content: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} holds {FOREIGN[content]}")) as caught:
        keys.resolve(keys.from_file(path))
    for line in content.splitlines():
        assert len(line) < 8 or line not in str(caught.value)


def test_utf_16_is_named() -> None:
    with pytest.raises(ValueError, match="text in UTF-16"):
        keys.decode(KEY.hex().encode("utf-16"), "it")


@pytest.mark.parametrize("beginning", [b"{", b"\xef\xbb\xbf"])
def test_a_random_key_of_another_length_is_not_called_text(beginning: bytes) -> None:
    key = (beginning + bytes(range(0x80, 0xB0)))[:32]
    with pytest.raises(ValueError, match="it holds 32 bytes; expected a key: 16 bytes"):
        keys.decode(key, "it", sizes=(16,), keyset=False)


def test_keysets_pass_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    keyset = formats.Keyset.generate()
    monkeypatch.setenv("K", keyset.to_json())
    source = keys.from_env("K")
    assert formats.Keyset.from_json(keys.resolve(source)) == keyset
    assert formats.resolve("auto", keys.resolve(keyset.to_json())).name == "tink"
    with pytest.raises(ValueError, match=r"K holds a Tink keyset; expected a key: 32 bytes"):
        keys.resolve(source, sizes=(32,), keyset=False)


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("K", raising=False)
    source = keys.from_env("K")
    with pytest.raises(ValueError, match=r"^environment variable K is not set$"):
        keys.resolve(source)
    monkeypatch.setenv("K", "x" * 32)
    with pytest.raises(ValueError, match="K holds 32 characters, 24 bytes if they are base64"):
        keys.resolve(source, sizes=(32,))
    assert keys.resolve(keys.from_env("K", encoding="raw")) == b"x" * 32
    assert repr(source) == "<key of environment variable K>"
    assert keys.resolve(pickle.loads(pickle.dumps(keys.from_env("K", encoding="raw")))) == b"x" * 32  # noqa: S301
    for bad in ("", "A=B", "A\0"):
        with pytest.raises(ValueError, match="name of an environment variable"):
            keys.from_env(bad)


def test_files_and_descriptors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        keys.resolve(keys.from_file(tmp_path / "none"))
    with pytest.raises(IsADirectoryError):
        keys.resolve(keys.from_file(tmp_path))
    with pytest.raises(ValueError, match="/dev/zero holds more than 1048576 bytes"):
        keys.resolve(keys.from_file("/dev/zero"))
    with pytest.raises(OSError, match="Bad file descriptor: 'descriptor 987'"):
        keys.resolve(keys.from_descriptor(987))
    with pytest.raises(ValueError, match="number of an open descriptor"):
        keys.from_descriptor(-1)
    reader, writer = os.pipe()
    os.write(writer, KEY)
    os.close(writer)
    source = keys.from_descriptor(reader)
    assert [keys.resolve(source), keys.resolve(source)] == [KEY, KEY]
    os.close(reader)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(source)


def test_commands_that_fail() -> None:
    for command, kind, text in (
        (
            ["sh", "-c", "echo no such key >&2; exit 3"],
            ChildProcessError,
            "exit code 3: no such key",
        ),
        (["sh", "-c", "kill -TERM $$"], ChildProcessError, "was ended by SIGTERM"),
        (["/no/such/program"], FileNotFoundError, "the command /no/such/program"),
        ("cat /dev/zero", ValueError, "printed more than 1048576 bytes"),
        (["true"], ValueError, "the command true holds nothing"),
    ):
        with pytest.raises(kind, match=text) as caught:
            keys.resolve(keys.from_command(command))
        assert "$$" not in str(caught.value), "arguments are not shown"
    with pytest.raises(ChildProcessError, match=r"\\x1b\[31mred; two") as caught:
        keys.resolve(keys.from_command(["sh", "-c", r"printf '\033[31mred\ntwo\n' >&2; exit 1"]))
    for bad in ("", [], [1]):
        with pytest.raises(ValueError, match="a program and its arguments"):
            keys.from_command(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout is 0"):
        keys.from_command("true", timeout=0)


def test_a_command_of_which_nothing_says_how_it_ended() -> None:
    """As where the parent ignored SIGCHLD, which programs inherit."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(ChildProcessError, match="nothing says how: SIGCHLD is ignored"):
            keys.resolve(keys.from_command(["sh", "-c", "printf %032d 0; exit 3"]))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_command_out_of_time_ends_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = ["sh", "-c", f"echo waiting >&2; sleep 600 & echo $! > {mark}; wait"]
    with pytest.raises(TimeoutError, match=r"did not end within 0\.5 seconds: waiting"):
        keys.resolve(keys.from_command(command, timeout=0.5))
    assert has_ended(mark)


def has_ended(mark: Path) -> bool:
    """Whether the process whose number a file has ends within a minute."""
    status = Path(f"/proc/{mark.read_text().strip()}/stat")
    for _ in range(1200):
        if not status.exists() or status.read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


IN_A_SESSION = "setsid sh -c 'echo $$ > {mark}; exec sleep 600' & until test -s {mark}; do :; done"


def test_a_command_out_of_time_ends_with_children_in_sessions_of_their_own(tmp_path: Path) -> None:
    mark, bystander = tmp_path / "pid", subprocess.Popen(["/bin/sleep", "600"])
    try:
        command = ["sh", "-c", f"{IN_A_SESSION.format(mark=mark)}; sleep 600"]
        with pytest.raises(TimeoutError, match="did not end within 2 seconds"):
            keys.resolve(keys.from_command(command, timeout=2))
        assert has_ended(mark)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_agent_that_a_command_started_outlives_its_success(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    command = ["sh", "-c", f"{IN_A_SESSION.format(mark=mark)}; echo {KEY.hex()}"]
    assert keys.resolve(keys.from_command(command)) == KEY
    os.kill(int(mark.read_text()), signal.SIGKILL)


def test_a_command_whose_child_keeps_its_output_open() -> None:
    assert keys.resolve(keys.from_command(["sh", "-c", f"sleep 600 & echo {KEY.hex()}"])) == KEY


def test_commands_get_the_id_and_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPCIPHER_KEY_ID", "of somebody else")
    source = keys.from_command(["sh", "-c", 'cat; printf "%-16s" "$WARPCIPHER_KEY_ID"'])
    assert keys.resolve(source, "abc", sizes=(16,)) == b"abc".ljust(16)
    assert keys.resolve(source, b"\xff", sizes=(16,))[:1] == b"\xff"
    assert keys.resolve(source, 7, sizes=(16,)) == b"7".ljust(16)
    with pytest.raises(ValueError, match="only white space"):
        keys.resolve(source)
    with pytest.raises(ValueError, match="zero byte"):
        keys.resolve(source, b"\0")


def test_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def answer(key_id: object) -> object:
        asked.append(key_id)
        return keys.from_env("K")

    monkeypatch.setenv("K", KEY.hex())
    assert keys.resolve(answer, b"metadata") == KEY
    assert asked == [b"metadata"]
    with pytest.raises(ValueError, match="no key for the id 'x': it returned None"):
        keys.resolve({}.get, "x")
    with pytest.raises(TypeError, match="leads to 3 more"):
        keys.resolve(lambda _: answer_for_ever)
    with pytest.raises(TypeError, match="the key is int"):
        keys.resolve(lambda _: 5)


def answer_for_ever(_: object) -> Any:
    return answer_for_ever


def test_bytes_are_taken_as_they_are() -> None:
    text = KEY.hex().encode()
    for given in (text, bytearray(text), memoryview(text)):
        assert keys.resolve(given, sizes=(32,)) == text
    with pytest.raises(TypeError, match=r"the key is str: give bytes, or keys.from_file"):
        keys.resolve(KEY.hex())
    with pytest.raises(TypeError, match="items of 2 bytes"):
        keys.resolve(memoryview(bytes(32)).cast("H"))
    with pytest.raises(TypeError, match="the key is float: expected bytes, a source"):
        keys.resolve(1.5)


def test_formats_take_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", base64.b64encode(KEY).decode())
    key = keys.from_env("K")
    plain, sealed, opened = (tmp_path / name for name in ("plain", "sealed", "opened"))
    plain.write_bytes(b"text" * 10_000)
    for name, options in (
        ("auto", None),
        ("cobblestone-256", None),
        ("raw", formats.Options(algorithm="aes-256-ctr", iv=bytes(16))),
    ):
        with plain.open("rb") as reader, sealed.open("wb") as writer:
            formats.encrypt_stream(reader, writer, key, format=name, options=options)
        with sealed.open("rb") as reader, opened.open("wb") as writer:
            formats.decrypt_stream(reader, writer, KEY, format=name, options=options)
        assert opened.read_bytes() == plain.read_bytes()
        with formats.open(sealed, lambda _: key, format=name, options=options) as file:
            assert file.read() == plain.read_bytes()
    with plain.open("rb") as reader, sealed.open("wb") as writer:
        formats.encrypt_stream(reader, writer, key)
    assert formats.info(sealed, key).certain
    assert formats.detect(sealed.read_bytes()[:56], key) == "cobblestone-256"
    with pytest.raises(ValueError, match="expected a cobblestone-128 key: 16 bytes"):
        formats.open(sealed, key, format="cobblestone-128")
    raw = formats.Options(algorithm="aes-128-ctr", iv=bytes(16))
    with pytest.raises(ValueError, match="expected a key of aes-128-ctr: 16 bytes"):
        formats.open(sealed, key, format="raw", options=raw)
    with pytest.raises(ValueError, match="format raw needs an algorithm"):
        formats.open(sealed, key, format="raw")


@pytest.fixture
def kek() -> Any:
    """The result of a KMS's client: an Aead of Tink."""
    tink = pytest.importorskip("tink")
    from tink import aead

    aead.register()
    return tink.new_keyset_handle(aead.aead_key_templates.AES256_GCM).primitive(aead.Aead)


@pytest.mark.parametrize("kind", ["json", "binary"])
def test_a_keyset_gets_another_wrapping_key(kind: str, kek: Any) -> None:
    import tink
    from tink import aead, secret_key_access

    new = tink.new_keyset_handle(aead.aead_key_templates.AES256_GCM).primitive(aead.Aead)
    keyset = formats.Keyset.generate("AES128_GCM_HKDF_4KB")
    handle = tink.json_proto_keyset_format.parse(keyset.to_json(), secret_key_access.TOKEN)
    if kind == "json":
        old = tink.json_proto_keyset_format.serialize_encrypted(handle, kek, b"ad").encode()
    else:
        old = tink.proto_keyset_format.serialize_encrypted(handle, kek, b"ad")
    for fresh, expected in ((None, b"ad"), (b"", b""), (b"x", b"x")):
        made = keys.rewrap_tink(old, kek, new, associated_data=b"ad", new_associated_data=fresh)
        assert (made[:1] == b"{") == (kind == "json")
        source = keys.from_tink(made, kms=new, associated_data=expected)
        assert formats.Keyset.from_json(keys.resolve(source)).keys == keyset.keys
        with pytest.raises(PermissionError, match="did not decrypt"):
            keys.resolve(keys.from_tink(made, kms=kek, associated_data=expected))
    with pytest.raises(PermissionError, match="did not decrypt"):
        keys.rewrap_tink(old, new, kek, associated_data=b"ad")
    with pytest.raises(ValueError, match="new_kms is 'https://x': expected a URI"):
        keys.rewrap_tink(old, kek, "https://x")
    with pytest.raises(ValueError, match="keyset is not encrypted"):
        keys.rewrap_tink(keyset.to_json().encode(), kek, new)


@pytest.mark.parametrize("kind", ["json", "binary"])
def test_tink_keysets_that_a_kms_encrypted(kind: str, kek: Any, tmp_path: Path) -> None:
    import tink
    from tink import secret_key_access

    keyset = formats.Keyset.generate("AES128_GCM_HKDF_4KB")
    handle = tink.json_proto_keyset_format.parse(keyset.to_json(), secret_key_access.TOKEN)
    path = tmp_path / "keyset"
    if kind == "json":
        text = tink.json_proto_keyset_format.serialize_encrypted(handle, kek, b"ad")
        path.write_text(text)
        contents: list[Any] = [path, str(path), text, text.encode()]
    else:
        data = tink.proto_keyset_format.serialize_encrypted(handle, kek, b"ad")
        path.write_bytes(data)
        contents = [path, data]
    for content in contents:
        source = keys.from_tink(content, kms=kek, associated_data=b"ad")
        assert formats.Keyset.from_json(keys.resolve(source)).keys == keyset.keys
    with pytest.raises(PermissionError, match="the KMS did not decrypt it: TinkError"):
        keys.resolve(keys.from_tink(path, kms=kek, associated_data=b"other"))
    with pytest.raises(
        ValueError,
        match="a Tink keyset that a KMS encrypted" if kind == "json" else "expected a key",
    ):
        keys.resolve(keys.from_tink(path))


def test_registered_kms_clients_come_first(kek: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import tink
    from tink import secret_key_access

    class Client(tink.KmsClient):  # type: ignore[misc]
        def does_support(self, key_uri: str) -> bool:
            return key_uri == "gcp-kms://mine"

        def get_aead(self, key_uri: str) -> Any:
            return kek

    monkeypatch.setattr("tink._kms_clients._kms_clients", [Client()])
    keyset = formats.Keyset.generate()
    handle = tink.json_proto_keyset_format.parse(keyset.to_json(), secret_key_access.TOKEN)
    text = tink.json_proto_keyset_format.serialize_encrypted(handle, kek, b"")
    assert (
        formats.Keyset.from_json(keys.resolve(keys.from_tink(text, kms="gcp-kms://mine"))) == keyset
    )


def test_bad_tink_sources(kek: Any) -> None:
    with pytest.raises(ValueError, match="kms is 'https://x': expected a URI of aws-kms://"):
        keys.from_tink("k", kms="https://x")
    with pytest.raises(TypeError, match="kms is int"):
        keys.from_tink("k", kms=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not encrypted: give it without a KMS"):
        keys.resolve(keys.from_tink(formats.Keyset.generate().to_json(), kms=kek))
    with pytest.raises(FileNotFoundError):
        keys.resolve(keys.from_tink("/no/such", kms=kek))


def test_errors_never_show_the_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for data in (KEY.hex()[:-2], base64.b64encode(KEY[:-1]).decode(), KEY.hex() + "0g", "k" * 20):
        path.write_text(data)
        with pytest.raises(ValueError, match="raw, in hex digits or in base64") as caught:
            keys.resolve(keys.from_file(path))
        assert data[:6] not in str(caught.value)


def test_hex_digits_with_something_between_them_are_named(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for text, named in (
        (f"0x{KEY.hex()}", f"{2 * len(KEY)} hex digits after 0x: leave 0x out"),
        (KEY.hex(":"), f"{2 * len(KEY)} hex digits with separators: leave them out"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"holds {named}; expected a key"):
            keys.resolve(keys.from_file(path))


def test_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACKUP_KEY", raising=False)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "keys.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/keys.md", "exec"), names)  # noqa: S102


def test_the_package_names_it() -> None:
    assert wc.keys is keys
