# SPDX-License-Identifier: Apache-2.0
"""SSH keys of the format age: what is read, and what is refused and why. Their peers are in
tests/interop."""

from __future__ import annotations

import base64
import functools
import io
from typing import Any

import pytest
from warpcipher import InvalidTag, formats
from warpcipher.formats import FormatError, age
from warpcipher.formats.age import header
from warpcipher.formats.age import keys as age_keys

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

OPENSSH = serialization.PrivateFormat.OpenSSH
ME = age.Identity(bytes(range(32)))
FILE_KEY = bytes(range(16))
KINDS = ["ssh-ed25519", "ssh-rsa"]


@functools.cache
def key(kind: str) -> Any:
    if kind == "ecdsa":
        return ec.generate_private_key(ec.SECP256R1())
    if kind == "short":
        return rsa.generate_private_key(65537, 1024)  # noqa: S505 - refused
    if kind == "ssh-rsa":
        return rsa.generate_private_key(65537, 2048)
    return ed25519.Ed25519PrivateKey.generate()


def secret(kind: str, form: Any = OPENSSH, phrase: bytes | None = None) -> bytes:
    locked: Any = serialization.NoEncryption()
    if phrase:
        locked = serialization.BestAvailableEncryption(phrase)
    data: bytes = key(kind).private_bytes(serialization.Encoding.PEM, form, locked)
    return data


def public(kind: str) -> str:
    line = (
        key(kind)
        .public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    return f"{line.decode()} me@example.org"


def sealed(*recipients: Any) -> io.BytesIO:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(b"plain"), out, list(recipients))
    return out


def opened(file: io.BytesIO, holder: Any) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(file.getvalue()), out, holder)
    return out.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_keys_in_every_form(kind: str) -> None:
    (recipient,) = age.recipients(f"# a comment\n\n{public(kind)}\r\n")
    file = sealed(ME.recipient, recipient)
    forms = [OPENSSH, serialization.PrivateFormat.PKCS8]
    if kind == "ssh-rsa":
        forms.append(serialization.PrivateFormat.TraditionalOpenSSL)
    for form in forms:
        data = secret(kind, form)
        (identity,) = age.identities(data)
        assert identity.recipient == recipient == age.SshRecipient.parse(str(recipient))  # type: ignore[union-attr]
        assert not age.is_encrypted(data)
        for holder in (identity, data, data.decode(), [ME, data]):
            assert opened(file, holder) == b"plain"
        assert opened(sealed(data), data) == b"plain"
    assert opened(sealed(public(kind)), secret(kind)) == b"plain"
    assert formats.resolve("auto", public(kind)).name == "age"
    (other,) = age.identities(secret("ssh-rsa" if kind == "ssh-ed25519" else "ssh-ed25519"))
    with pytest.raises(InvalidTag, match=f"for 2 recipients \\(X25519: 1, {kind}: 1"):
        opened(file, other)
    assert str(base64.b64encode(data)) not in repr(identity)


@pytest.mark.parametrize("form", [OPENSSH, serialization.PrivateFormat.PKCS8])
def test_keys_under_a_passphrase(form: Any) -> None:
    if form is OPENSSH:
        pytest.importorskip("bcrypt")
    data = secret("ssh-ed25519", form, b"correct horse")
    assert age.is_encrypted(data)
    (identity,) = age.identities(data, "correct horse")
    assert opened(sealed(public("ssh-ed25519")), identity) == b"plain"
    with pytest.raises(InvalidTag, match="the passphrase is another"):
        age.identities(data, "wrong")
    with pytest.raises(ValueError, match="encrypted with a passphrase: give it"):
        age.identities(data)


def test_kinds_that_are_not_taken_do_not_stop_those_beside_them() -> None:
    ecdsa = secret("ecdsa")
    plugin = "AGE-PLUGIN-YUBIKEY-1QQQQ"
    assert opened(sealed(ME), [ecdsa, f"{plugin}\n{ME.to_text()}"]) == b"plain"
    for holder, named in ((ecdsa, "ecdsa-sha2-nistp256"), (plugin, "a plugin of age")):
        with pytest.raises(ValueError, match=f"{named} is not taken: "):
            opened(sealed(ME), holder)
        with pytest.raises(ValueError, match=f"{named} is not taken"):
            sealed(holder, ME)  # not a file that leaves one out
        with pytest.raises(InvalidTag, match=f"nothing; .*; .*{named} is not taken"):
            opened(sealed(age.Identity.generate()), [ME, holder])
    assert not age.is_encrypted(ecdsa)
    assert isinstance(age.identities(ecdsa)[0], age.OtherIdentity)
    pkcs8 = secret("ecdsa", serialization.PrivateFormat.PKCS8)
    assert opened(sealed(ME), [pkcs8, ME]) == b"plain"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (lambda: public("ecdsa"), "of kind ecdsa-sha2-nistp256 is not taken: ssh-ed25519 and"),
        (lambda: public("short"), "an RSA key of 1024 bits is not taken: 2048 or more are"),
        (lambda: "ssh-ed25519 !", "its second word is not base64"),
        (lambda: "ssh-ed25519", "it ends too early"),
        (lambda: public("ssh-rsa").replace("ssh-rsa", "ssh-ed25519"), "not of kind ssh-ed25519"),
        (lambda: ed25519_line(bytes([2]) + bytes(31)), "not a point of the curve"),
        (lambda: ed25519_line(bytes([1]) + bytes(31)), "not a point of the curve"),
        (lambda: ed25519_line(bytes(31)), "expected one value of 32 bytes"),
        (lambda: secret("ssh-rsa").decode(), "an SSH secret key was given for a recipient"),
        (lambda: PEM, "a PEM \\(PUBLIC KEY\\): expected a recipient"),
        (lambda: ME.to_text(), "an identity was given for a recipient"),
        (lambda: "github:me", "a user of GitHub is not taken"),
    ],
)
def test_recipients_that_are_refused(text: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        age.recipients(text())
    if not text().startswith("-----"):
        with pytest.raises(ValueError, match=f"line 2: .*{named}"):
            age.recipients(f"{ME.recipient}\n{text()}")


PEM = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"


def ed25519_line(point: bytes) -> str:
    parts = (b"ssh-ed25519", point)
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (lambda: public("ssh-rsa"), "an SSH public key was given for an identity"),
        (lambda: str(ME.recipient), "a recipient was given for an identity"),
        (lambda: PEM, "a PEM \\(PUBLIC KEY\\): expected an identity"),
        (lambda: '{"kty":"oct","k":"AAAA"}', "a JSON Web Key"),
        (lambda: ME.to_text().encode("utf-16"), "text in UTF-16: write it in ASCII"),
        (lambda: b"\x80" + ME.to_text().encode(), "characters that are not ASCII"),
        (lambda: secret("ssh-rsa")[:200], "malformed SSH key"),
        (lambda: secret("ssh-rsa").replace(b"b3BlbnNzaC1r", b"AAAAAAAAAAAA"), "openssh-key-v1"),
        (lambda: secret("ssh-rsa", serialization.PrivateFormat.PKCS8)[:300], "malformed SSH key"),
    ],
)
def test_identities_that_are_refused(text: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named) as raised:
        age.identities(text())
    assert ME.to_text()[16:] not in str(raised.value)


def test_a_byte_order_mark_stands_before_text() -> None:
    assert age.identities(b"\xef\xbb\xbf" + ME.to_text().encode()) == [ME]
    assert age.recipients(f"\ufeff{ME.recipient}") == [ME.recipient]


@pytest.mark.parametrize("kind", KINDS)
def test_stanzas_that_are_refused(kind: str) -> None:
    (recipient,) = age.recipients(public(kind))
    identity = age.SshIdentity.parse(secret(kind))
    good = recipient.wrap(FILE_KEY)
    assert identity.unwrap([good]) == FILE_KEY
    with pytest.raises(FormatError, match=f"{kind} has 3 arguments, expected"):
        identity.unwrap([header.Stanza(kind, ("a", "b", "c"), good.body)])
    # Another key of the same tag, which is 4 bytes, and this key's own stanza after it.
    wrong = header.Stanza(kind, good.arguments, bytes(len(good.body)))
    assert identity.unwrap([wrong]) is None
    assert age_keys.unwrap([wrong, good], [identity]) == FILE_KEY
    if kind == "ssh-rsa":
        long = age.SshRecipient.parse(public(kind)).wrap(bytes(17))
        with pytest.raises(FormatError, match="wraps 17 bytes, expected 16"):
            identity.unwrap([long])
        return
    for share, named in ((bytes(31), "31 bytes, expected 32"), (bytes(32), "low order")):
        arguments = (good.arguments[0], header.encode(share).decode())
        with pytest.raises(FormatError, match=f"a share of ssh-ed25519: .*{named}"):
            identity.unwrap([header.Stanza(kind, arguments, good.body)])
    with pytest.raises(FormatError, match="has 31 bytes, expected 32"):
        identity.unwrap([header.Stanza(kind, good.arguments, good.body[:31])])
