# SPDX-License-Identifier: Apache-2.0
"""Messages of the AWS Encryption SDK that are damaged, cut or not for this key; random access; the
frames of others, which may end with a full one; keyrings; other keys for the same message."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from click.testing import CliRunner
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.cli.app import cli
from warpcipher.formats import awsesdk
from warpcipher.formats.awsesdk import body, header

pytest.importorskip("cryptography")
SECRET = bytes(range(32))
KEY = awsesdk.RawAES(SECRET, "tests", "one")
OTHER = awsesdk.RawAES(bytes(32), "tests", "one")
SUITES = ("0x0478", "0x0578", "0x0178", "0x0214", "0x0078")
Refused = (InvalidTag, formats.FormatError)


def chosen(algorithm: str, **more: object) -> awsesdk.Options:
    return awsesdk.Options(algorithm=algorithm, **more)  # type: ignore[arg-type]


def sealed_of(plain: bytes, options: formats.Options, key: object = KEY) -> bytes:
    out = io.BytesIO()
    assert formats.encrypt_stream(
        io.BytesIO(plain), out, key, format="awsesdk", options=options
    ) == len(out.getvalue())
    return out.getvalue()


def opened(sealed: bytes, options: formats.Options | None = None, key: object = KEY) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), out, key, options=options)
    return out.getvalue()


@pytest.mark.parametrize("algorithm", SUITES)
def test_any_byte_that_is_changed(algorithm: str) -> None:
    options = chosen(algorithm, frame_length=40, encryption_context={"a": "b"})
    sealed = sealed_of(paint(130), options)
    for at in range(len(sealed)):
        for bit in (1, 0x80):
            damaged = bytearray(sealed)
            damaged[at] ^= bit
            with pytest.raises(Refused):
                opened(bytes(damaged), options)


@pytest.mark.parametrize("algorithm", SUITES)
def test_cut_added_to_and_exchanged(algorithm: str, tmp_path: Path) -> None:
    options = chosen(algorithm, frame_length=40)
    plain = paint(130)
    sealed = sealed_of(plain, options)
    size = header.parse(sealed).size
    frames = [sealed[at : at + 72] for at in range(size, size + 3 * 72, 72)]
    rest, head = sealed[size + 3 * 72 :], sealed[:size]
    for damaged in (
        *(sealed[:end] for end in range(len(sealed))),
        sealed + b"\0",
        sealed + bytes(200),
        head + frames[1] + frames[0] + frames[2] + rest,
        head + frames[0] + frames[2] + rest,
        head + b"".join(frames) + frames[2] + rest,
        head + rest,
        sealed_of(plain, options)[:size] + sealed[size:],
    ):
        with pytest.raises(Refused):
            opened(damaged, options)
        with (
            pytest.raises(Refused),
            formats.open(io.BytesIO(damaged), KEY, options=options) as file,
        ):
            file.read()
    # From file to file, where chunks are copied past Python.
    big = paint(40 * 30_000)
    (tmp_path / "sealed").write_bytes(sealed_of(big, options))
    formats.decrypt_file(tmp_path / "sealed", tmp_path / "plain", KEY, options=options)
    assert (tmp_path / "plain").read_bytes() == big
    formats.encrypt_file(
        tmp_path / "plain", tmp_path / "again", KEY, format="awsesdk", options=options
    )
    damaged = bytearray((tmp_path / "again").read_bytes())
    assert opened(bytes(damaged), options) == big
    for field in (0, 9, 20, 60):  # number, IV, text, tag
        at = size + 72 * 29_000 + field
        damaged[at] ^= 1
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(InvalidTag, match="chunk 29000 "):
            formats.decrypt_file(tmp_path / "damaged", tmp_path / "no", KEY, options=options)
        with formats.open(tmp_path / "damaged", KEY, options=options) as file:
            assert file.read(40) == big[:40]
            file.seek(40 * 29_000)
            with pytest.raises(InvalidTag, match="chunk 29000 "):
                file.read(1)
        damaged[at] ^= 1
    assert not (tmp_path / "no").exists()


def test_a_signature_is_checked_when_all_is_read() -> None:
    plain = paint(20_000)
    sealed = bytearray(sealed_of(plain, formats.Options()))
    sealed[-1] ^= 1
    with pytest.raises(InvalidTag, match="the signature does not match"):
        opened(bytes(sealed))
    with formats.open(io.BytesIO(sealed), KEY) as file:  # frames have tags of their own
        assert file.read() == plain


def test_a_final_frame_that_is_full() -> None:
    """Other SDKs write it."""
    options = chosen("0x0478", frame_length=64)
    sealed = sealed_of(paint(3 * 64), options)
    parsed = header.parse(sealed)
    data_key = bytearray(KEY.unwrap(parsed.keys[0], parsed.context))
    key = header.content_key(parsed.suite, data_key, parsed.message_id)
    number = (3).to_bytes(4, "big")
    aad = parsed.message_id + b"AWSKMSEncryptionClient Final Frame" + number
    text = paint(3 * 64)[128:]
    tail = wc.aead.AESGCM(key).encrypt(bytes(8) + number, text, aad + (64).to_bytes(8, "big"))
    final = body.FINAL + number + bytes(8) + number + (64).to_bytes(4, "big") + tail
    message = sealed[: parsed.size + 2 * (64 + 32)] + final
    assert opened(message) == paint(3 * 64)
    with formats.open(io.BytesIO(message), KEY) as file:
        assert file.raw.size == 3 * 64
        assert file.read() == paint(3 * 64)
        file.seek(130)
        assert file.read(5) == paint(3 * 64)[130:135]


def test_random_access() -> None:
    plain = paint(300_000)
    draw = random.Random(3)
    for options in (awsesdk.Options(), chosen("0x0478", frame_length=1000)):
        with formats.open(io.BytesIO(sealed_of(plain, options)), KEY) as file:
            assert file.raw.size == len(plain)
            for _ in range(50):
                begin, count = draw.randrange(len(plain)), draw.randrange(20_000)
                file.seek(begin)
                assert file.read(count) == plain[begin : begin + count]
            out = bytearray(len(plain))
            file.seek(0)
            assert file.readinto(out) == len(plain)
            assert out == plain


def test_the_wrong_key_context_or_suite() -> None:
    options = awsesdk.Options(encryption_context={"tenant": "a"})
    sealed = sealed_of(b"text", options)
    assert opened(sealed) == b"text"
    for given in ({"tenant": "b"}, {"other": "a"}):
        with pytest.raises(InvalidTag, match="encryption context does not have"):
            opened(sealed, awsesdk.Options(encryption_context=given))
    with pytest.raises(InvalidTag, match="none opens: another key"):
        opened(sealed, key=OTHER)
    with pytest.raises(InvalidTag, match="none for a key that was given"):
        opened(sealed, key=awsesdk.RawAES(SECRET, "tests", "two"))
    with pytest.raises(formats.FormatError, match="0x0478 was asked for"):
        opened(sealed, chosen("0x0478"))
    old = sealed_of(b"text", chosen("0x0378"))
    with pytest.raises(formats.FormatError, match="without key commitment"):
        opened(old)
    assert opened(old, chosen("0x0378")) == b"text"
    with pytest.raises(ValueError, match="takes no context"):
        opened(sealed, formats.Options(context=b"x"))
    with pytest.raises(ValueError, match="frame_length is 0"):
        awsesdk.Options(frame_length=0)
    with pytest.raises(ValueError, match="aws-crypto- is reserved"):
        awsesdk.Options(encryption_context={"aws-crypto-public-key": ""})
    with pytest.raises(ValueError, match="it belongs to format awsesdk"):
        formats.encrypt_stream(
            io.BytesIO(), io.BytesIO(), bytes(32), options=awsesdk.Options(frame_length=9)
        )


@pytest.mark.parametrize("algorithm", SUITES)
def test_pairs_that_a_message_requires_and_does_not_store(algorithm: str) -> None:
    pairs = {"tenant": "a", "stored": "b"}
    how = chosen(algorithm, encryption_context=pairs, required_context=["tenant"])
    sealed = sealed_of(b"text", how)
    assert "tenant" not in header.parse(sealed).context
    assert header.parse(sealed).context["stored"] == "b"
    assert opened(sealed, how) == b"text"
    assert opened(sealed, chosen(algorithm, encryption_context={"tenant": "a"})) == b"text"
    for given in ({}, {"stored": "b"}):
        with pytest.raises(InvalidTag, match="none opens"):
            opened(sealed, chosen(algorithm, encryption_context=given))
    for given in ({"tenant": "c"}, {**pairs, "more": ""}):
        with pytest.raises(InvalidTag, match="and was not made with it"):
            opened(sealed, chosen(algorithm, encryption_context=given))
    with pytest.raises(InvalidTag, match="does not have 'stored' as it was given"):
        opened(sealed, chosen(algorithm, encryption_context={"tenant": "a", "stored": "c"}))


def test_required_pairs_are_in_the_context() -> None:
    with pytest.raises(ValueError, match="has no 'tenant', which is required"):
        awsesdk.Options(encryption_context={"a": "b"}, required_context=["a", "tenant"])
    with pytest.raises(TypeError, match="expected a sequence of keys"):
        awsesdk.Options(encryption_context={"a": "b"}, required_context="a")


def test_a_commitment_that_does_not_match() -> None:
    """A header whose tag is right under another data key than it commits to."""
    sealed = sealed_of(b"text", chosen("0x0478"))
    parsed = header.parse(sealed)
    data_key = bytearray(32)
    wrapped = [KEY.wrap(data_key, parsed.context)]
    text = header.build(
        parsed.suite, parsed.message_id, {}, wrapped, parsed.frame_length, parsed.commitment
    )
    forged = header.sealed(
        parsed.suite, header.content_key(parsed.suite, data_key, parsed.message_id), text, {}
    )
    with pytest.raises(InvalidTag, match="key commitment does not match"):
        opened(forged + sealed[parsed.size :])


def test_lengths_that_lie() -> None:
    sealed = sealed_of(b"text", chosen("0x0478"))
    parsed = header.parse(sealed)
    for keys in (b"\0\0", b"\1\1", b"\xff\xff"):
        at = sealed.index(b"\0\1\0\5tests")
        with pytest.raises(formats.FormatError, match="encrypted data keys, expected 1 to 256"):
            opened(sealed[:at] + keys + sealed[at + 2 :])
    with pytest.raises(formats.FormatError, match="truncated"):
        opened(sealed[: at + 2] + b"\xff\xff" + sealed[at + 4 :])
    with pytest.raises(formats.FormatError, match="the header is longer than"):
        header.parse(sealed[:at] + b"\1\0" + (b"\xff\xff" + bytes(65535)) * 20)
    with pytest.raises(ValueError, match="takes 1 to 256 keys, got 257"):
        sealed_of(b"", chosen("0x0478"), [KEY] * 257)
    final = parsed.size + 20
    with pytest.raises(formats.FormatError, match="the final frame says"):
        opened(sealed[:final] + b"\xff" + sealed[final + 1 :])


def test_a_keyring_in_json(tmp_path: Path) -> None:
    made = formats.get("awsesdk").make_key("", None).data
    (key,) = awsesdk.keyring(made)
    assert formats.resolve("auto", made).name == "awsesdk"
    plain = tmp_path / "plain"
    plain.write_bytes(b"text")
    formats.encrypt_file(plain, tmp_path / "sealed", made)
    with formats.open(tmp_path / "sealed", key) as file:
        assert file.read() == b"text"
    found = formats.info(tmp_path / "sealed", made)
    assert (found.certain, found.candidates[0].plaintext_size) == (True, 4)
    assert formats.detect((tmp_path / "sealed").read_bytes(), made) == "awsesdk"
    for entry in (
        {},
        {"type": "raw-aes", "namespace": "a", "name": "b"},
        {"type": "raw-aes", "namespace": "a", "name": "b", "key": "?"},
        {"type": "raw-aes", "namespace": "a", "name": "b", "key": "c2VjcmV0"},
        {"type": "raw-aes", "namespace": "aws-kms", "name": "b", "key": ""},
        {"type": "raw-rsa", "namespace": "a", "name": "b", "key": "c2VjcmV0"},
        {"type": "aws-kms", "key": "c2VjcmV0"},
        {"type": "aws-kms", "key": "arn:aws:kms:eu-west-1:1:key/2", "more": ""},
        {"type": "aws-kms-discovery", "accounts": ["c2VjcmV0"], "partition": "aws"},
        {"type": "aws-kms-discovery", "accounts": "111122223333", "partition": "aws"},
        {"type": "aws-kms-discovery", "accounts": [1], "partition": "aws"},
        {"type": "aws-kms-discovery", "accounts": ["111122223333"]},
        {"type": "aws-kms-discovery", "partition": "aws"},
    ):
        with pytest.raises(ValueError, match="key 0 of the keyring") as error:
            awsesdk.keyring(json.dumps({"keyring": [entry]}))
        assert "c2VjcmV0" not in str(error.value)
    for text in ("", "{", "[]", '{"keyring": []}', '{"keyring": 1}'):
        with pytest.raises(ValueError, match="keyring"):
            awsesdk.keyring(text)


def test_other_keys_for_a_message(tmp_path: Path) -> None:
    path, plain = tmp_path / "sealed", paint(10_000)
    how = chosen("0x0478", encryption_context={"a": "b", "c": "d"}, required_context=["c"])
    path.write_bytes(sealed_of(plain, how))
    formats.rewrap_file(path, KEY, OTHER, keep=True, options=how)
    assert opened(path.read_bytes(), how) == opened(path.read_bytes(), how, OTHER) == plain
    formats.rewrap_file(path, OTHER, awsesdk.RawAES(SECRET, "tests", "new"), options=how)
    assert opened(path.read_bytes(), how, awsesdk.RawAES(SECRET, "tests", "new")) == plain
    with pytest.raises(InvalidTag):
        opened(path.read_bytes(), how)
    path.write_bytes(sealed_of(plain, awsesdk.Options()))
    with pytest.raises(ValueError, match="its key is gone"):
        formats.rewrap_file(path, KEY, OTHER)


class _Kms:
    """One key in every Region: its data key is zeros. asked: for these keys."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate_data_key(self, **asked: Any) -> dict[str, Any]:
        return {**self.decrypt(**asked), "CiphertextBlob": b"sealed"}

    def decrypt(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked["KeyId"])
        return {"KeyId": asked["KeyId"], "Plaintext": bytes(32)}


def test_a_multi_region_key_opens_in_another_region() -> None:
    def arn(region: str, identity: str) -> str:
        return f"arn:aws:kms:{region}:1:key/{identity}"

    made = sealed_of(b"text", awsesdk.Options(), awsesdk.KMS(arn("eu-west-1", "mrk-1"), _Kms()))
    assert opened(made, key=awsesdk.KMS(arn("us-east-1", "mrk-1"), _Kms())) == b"text"
    for identity in ("mrk-2", "1"):
        with pytest.raises(InvalidTag, match="none for a key"):
            opened(made, key=awsesdk.KMS(arn("eu-west-1", identity), _Kms()))
    made = sealed_of(b"text", awsesdk.Options(), awsesdk.KMS(arn("eu-west-1", "1"), _Kms()))
    with pytest.raises(InvalidTag, match="none for a key"):
        opened(made, key=awsesdk.KMS(arn("us-east-1", "1"), _Kms()))


def test_discovery_asks_for_the_keys_of_its_filter() -> None:
    account, mrk = "111122223333", "arn:aws:kms:eu-west-1:111122223333:key/mrk-1"
    arn = mrk.replace("mrk-", "")
    trusted = {"accounts": (account,), "partition": "aws"}
    for name, found, asked in (
        (arn, awsesdk.Discovery(client=_Kms()), arn),
        (arn, awsesdk.Discovery(**trusted, client=_Kms()), arn),
        (arn, awsesdk.Discovery(**trusted, region="eu-west-1", client=_Kms()), arn),
        (mrk, awsesdk.Discovery(region="eu-north-1", client=_Kms()), mrk.replace("west", "north")),
        (arn, awsesdk.Discovery(region="eu-north-1", client=_Kms()), ""),
        (arn, awsesdk.Discovery(("444455556666",), "aws", client=_Kms()), ""),
        (arn, awsesdk.Discovery((account,), "aws-cn", client=_Kms()), ""),
    ):
        sealed = sealed_of(b"text", chosen("0x0478"), [awsesdk.KMS(name, _Kms()), KEY])
        if asked:
            assert opened(sealed, key=found) == b"text"
        else:
            with pytest.raises(InvalidTag, match="none for a key"):
                opened(sealed, key=found)
        assert found.client.asked == [asked] * bool(asked)
    with pytest.raises(ValueError, match="Discovery only decrypts"):
        sealed_of(b"", chosen("0x0478"), found)
    (read,) = awsesdk.keyring(json.dumps({"keyring": [{"type": "aws-kms-discovery", **trusted}]}))
    with pytest.raises(ValueError, match="accounts a list, the others text"):
        awsesdk.keyring('{"keyring": [{"type": "aws-kms-discovery", "accounts": "1"}]}')
    assert isinstance(read, awsesdk.Discovery)
    assert (tuple(read.accounts), read.partition, read.region) == ((account,), "aws", "")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == code, done.output
        return done.output

    Path("plain").write_bytes(paint(9000))
    run("keygen", "--format", "awsesdk", "key")
    context = ("--encryption-context", "tenant=a=b")
    run("encrypt", "--key", "key", *context, "--frame-length", "512", "plain")
    message = header.parse(Path("plain.awsesdk").read_bytes())
    assert (message.context["tenant"], message.frame_length) == ("a=b", 512)
    run("check", "--key", "key", *context, "plain.awsesdk")
    run("decrypt", "--key", "key", "-o", "again", "plain.awsesdk")
    assert Path("again").read_bytes() == paint(9000)
    other = ("--encryption-context", "tenant=c")
    assert "encryption context" in run("check", "--key", "key", *other, "plain.awsesdk", code=3)
    assert "awsesdk" in run("info", "plain.awsesdk")
    run("encrypt", "--key", "key", "--suite", "0x0378", "-f", "plain")
    assert "without key commitment" in run("check", "--key", "key", "plain.awsesdk", code=3)
    run("check", "--key", "key", "--suite", "0x0378", "plain.awsesdk")
    for wrong in (("--suite", "x"), ("--encryption-context", "a"), (*context, *context)):
        run("encrypt", "--key", "key", *wrong, "-f", "plain", code=2)
    run("encrypt", "--key", "key", "--suite", "0x0478", "-f", "plain")
    required = (*context, "--required-context", "tenant")
    run("encrypt", "--key", "key", *required, "-o", "required", "plain")
    run("check", "--key", "key", *context, "required")
    assert "none opens" in run("check", "--key", "key", "required", code=3)
    wrong = ("--required-context", "tenant", "-o", "no", "plain")
    assert "which is required" in run("encrypt", "--key", "key", *wrong, code=2)
    run("keygen", "--format", "awsesdk", "new")
    run("rewrap", "--key", "key", "--new-key", "new", "plain.awsesdk")
    assert "none for a key" in run("check", "--key", "key", "plain.awsesdk", code=3)
    run("check", "--key", "new", "plain.awsesdk")
    run("keygen", "--format", "cobblestone-256", "bytes")
    run("rekey", "--key", "new", "--new-key", "bytes", "-o", "plain.cobblestone", "plain.awsesdk")
    run("rekey", "--key", "bytes", "--new-key", "key", "-o", "back.awsesdk", "plain.cobblestone")
    run("decrypt", "--key", "key", "-o", "again", "-f", "back.awsesdk")
    assert Path("again").read_bytes() == paint(9000)
    assert "its key is gone" in run(
        *("rewrap", "--key", "key", "--new-key", "new", "back.awsesdk"), code=2
    )
