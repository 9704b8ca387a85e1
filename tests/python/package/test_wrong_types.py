# SPDX-License-Identifier: Apache-2.0
"""An argument of a wrong type is an error that names it and says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from warpcipher import formats, keys, kv, parquet, prg
from warpcipher.formats import age, crypt4gh

ANY: Any = None
SEED = bytes(16)
NAMES = kv.Identity("", "", [b""])


class Client:
    def unwrap_key(self) -> None: ...


def seal(ids: Any, identity: Any, out: Any = None) -> object:
    numpy = pytest.importorskip("numpy")
    return kv.Vault(SEED).seal(numpy.ones((1, 1, 1), "u1"), ids, out, identity=identity)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: wc.Batch().add(ANY, "encrypt", SEED, SEED), "algorithm is NoneType: expected a name"),
    (lambda: wc.tuning.explain(ANY), "algorithm is NoneType: expected a str"),
    (lambda: prg.expand(SEED, ANY), "prg is NoneType: expected a str"),
    (lambda: prg.tree(SEED, 1, engine=ANY), "engine is NoneType: expected 'auto'"),
    (lambda: wc.random.Generator().random(out=[0.0]), "out is list: expected an array"),
    (lambda: formats.Options(engine=ANY), "engine is NoneType: expected 'auto'"),
    (lambda: formats.detect(ANY, SEED), "header is NoneType: expected bytes-like"),
    (lambda: formats.open("x", SEED, options=object), "expected warpcipher.formats.Options"),
    (lambda: formats.decrypt_file("x", "y", SEED, options=object), "expected warpcipher.formats"),
    (lambda: age.Recipient.parse(b"age1"), "the key is bytes: expected a str"),  # type: ignore[arg-type]
    (lambda: age.HybridIdentity.parse(ANY), "the key is NoneType: expected a str"),
    (lambda: age.SshRecipient.parse(ANY), "the key is NoneType: expected a str"),
    (lambda: age.identities(5), "the content is int: expected bytes-like"),  # type: ignore[arg-type]
    (lambda: crypt4gh.PublicKey.parse(ANY), "the key is NoneType: expected bytes-like"),
    (lambda: formats.Keyset.from_json(ANY), "the keyset is NoneType: expected bytes-like"),
    (lambda: formats.Keyset.from_binary(ANY), "the keyset is NoneType: expected bytes-like"),
    (lambda: keys.from_command("echo", timeout=ANY), "timeout is NoneType: expected a number"),
    (
        lambda: wc.keysearch.verify("aes-128", [(SEED, SEED)], ANY),
        "key is NoneType: expected bytes-like",
    ),
    (lambda: wc.keysearch.parse_candidates(ANY), "text is NoneType: expected bytes"),
    (lambda: wc.weights.save_file({}, "x", metadata=5), "metadata is int: expected a map"),  # type: ignore[arg-type]
    (lambda: seal(5, NAMES), "ids is int: expected numbers"),
    (lambda: seal([0], NAMES, 5), "out is int: expected bytes-like"),
    (lambda: seal([0], kv.Identity("", "", ANY)), "hashes is NoneType: expected bytes for each"),
    (lambda: seal([0], kv.Identity("", "", [ANY])), "a hash of the identity is NoneType"),
    (lambda: seal([0], NAMES._replace(positions=[ANY])), "a position of the identity is"),
    (lambda: parquet.KmsKeys(ANY), "client is NoneType: expected an object with wrap_key"),
    (lambda: parquet.KmsKeys(Client), "Client'>: expected an object with wrap_key"),  # type: ignore[arg-type]
    (lambda: parquet.EncryptionConfig(SEED, column_keys=ANY), "column_keys is NoneType"),
    (lambda: parquet.open(b"", SEED, engine=ANY), "engine is NoneType: expected 'auto'"),
    (lambda: parquet.read_dataset(ANY), "paths is NoneType: expected paths or URLs"),
    (lambda: parquet.read_data_file(b"", ANY), "key_metadata is NoneType: expected bytes-like"),
]


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_the_error_names_the_argument(call: Callable[[], object], says: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert says in str(caught.value)


def test_a_number_is_not_a_path(tmp_path: Path) -> None:
    """Python opens the descriptor of that number, and closes it."""
    with (tmp_path / "file").open("wb") as file:
        for call in (formats.info, lambda path: formats.rewrap_file(path, SEED, SEED)):
            with pytest.raises(TypeError, match="expected a path or a URL"):
                call(file.fileno())  # type: ignore[arg-type]
        file.write(b"open still")
