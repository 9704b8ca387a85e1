# SPDX-License-Identifier: Apache-2.0
"""Objects with a key or a state of their own are neither copied nor pickled: docs/python.md."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import parquet, weights

KEY, IV = bytes(16), bytes(16)
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
MESSAGE = ("aes-128-ctr", "encrypt", KEY, b"text")


def a_run() -> Any:
    batch = wc.Batch()
    batch.add(*MESSAGE, iv=IV)
    run = batch.start()
    run.wait(10)
    return run


def a_future() -> Any:
    with wc.Queue() as q:
        return q.submit(*MESSAGE, iv=IV)


def sealed() -> io.BytesIO:
    out = io.BytesIO()
    wc.formats.encrypt_stream(io.BytesIO(b"text"), out, KEY)
    return out


COBBLESTONE = wc.formats.get("cobblestone-128")
OBJECTS: dict[str, Callable[[], Any]] = {
    "Key": lambda: wc.Key("aes-128-ctr", KEY),
    "Cipher": lambda: wc.Cipher("aes-128-ctr", KEY),
    "AESGCM": lambda: wc.aead.AESGCM(KEY),
    "PinnedBuffer": lambda: wc.pinned(8),
    "Batch": wc.Batch,
    "Handle": lambda: wc.Batch().add(*MESSAGE, iv=IV),
    "BatchRun": a_run,
    "Queue": wc.Queue,
    "QueueFuture": a_future,
    # Two that went on from one place would use its nonces twice.
    "ChunkEncryptor": lambda: COBBLESTONE.encryptor(KEY, wc.formats.Options()),
    "ChunkDecryptor": lambda: COBBLESTONE.decryptor(KEY, sealed().getvalue(), wc.formats.Options()),
    # A pickle would hold the secret in plain.
    "Identity": lambda: wc.formats.age.Identity(bytes(32)),
    "SshIdentity": lambda: wc.formats.age.SshIdentity(
        wc.formats.age.SshRecipient.parse(SSH_KEY), bytes(32)
    ),
    "Passphrase": lambda: wc.formats.age.Passphrase("a secret"),
    "Password": lambda: wc.formats.openssl.Password("a secret"),
    "SecretKey": lambda: wc.formats.crypt4gh.SecretKey(bytes(32)),
    "Keyset": wc.formats.Keyset.generate,
    "StreamingKey": lambda: wc.formats.Keyset.generate().primary,
    "CryptotensorsKey": lambda: weights.CryptotensorsKey(bytes(32), sign=bytes(32)),
    "EncryptionConfig": lambda: parquet.EncryptionConfig(KEY),
    "StandardKeyMetadata": lambda: parquet.StandardKeyMetadata(KEY),
    "DecryptingReader": lambda: wc.formats.open(sealed(), KEY).raw,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_no_copies(name: str) -> None:
    made = OBJECTS[name]()
    assert type(made).__name__ == name
    ways: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
    ways += [lambda x, p=p: pickle.dumps(x, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]  # type: ignore[misc]
    for way in ways:
        with pytest.raises(TypeError, match=name):
            way(made)


def test_what_was_not_copied_works() -> None:
    cipher = wc.Cipher("aes-128-ctr", KEY)
    with pytest.raises(TypeError, match="Cipher objects cannot be copied or pickled"):
        copy.copy(cipher)
    assert cipher.decrypt(cipher.encrypt(b"text", iv=IV), iv=IV) == b"text"


def test_results_and_errors_are_data() -> None:
    columns = wc.run_columns("aes-128-ctr", "encrypt", KEY, bytes(16), lengths=[16], ivs=IV)
    assert copy.copy(columns).out is columns.out
    again = pickle.loads(pickle.dumps(columns))  # noqa: S301 - our own
    assert (again.out, again.written.tolist()) == (columns.out, [16])
    for error in (wc.InvalidTag("no"), wc.EngineError("none")):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert (type(again), again.args) == (type(error), error.args)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        ("Key", "where the key is .warpcipher.keys.from_env"),
        ("AESGCM", "where the key is .warpcipher.keys.from_env"),
        ("Cipher", "where the key is .warpcipher.keys.from_env"),
        ("Batch", "add its messages to a new one in the process that runs them"),
        ("Queue", "make one in each process"),
    ],
)
def test_errors_say_what_to_do_instead(make: str, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        pickle.dumps(OBJECTS[make]())
