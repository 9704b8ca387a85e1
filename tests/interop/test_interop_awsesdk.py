# SPDX-License-Identifier: Apache-2.0
"""Messages of the AWS Encryption SDK (PyPI aws-encryption-sdk), both ways: every suite, frames and
one block, raw AES and RSA keys, and keys of a KMS, which moto plays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from format_cases import paint
from warpcipher import InvalidTag, formats
from warpcipher.formats import awsesdk

sdk = pytest.importorskip("aws_encryption_sdk")
from aws_encryption_sdk.identifiers import (  # noqa: E402
    AlgorithmSuite,
    CommitmentPolicy,
    EncryptionKeyType,
    WrappingAlgorithm,
)
from aws_encryption_sdk.key_providers.kms import DiscoveryFilter  # noqa: E402
from aws_encryption_sdk.key_providers.raw import RawMasterKey, WrappingKey  # noqa: E402

SECRET = bytes(range(32))
KEY = awsesdk.RawAES(SECRET, "tests", "one")
CONTEXT = {"purpose": "tests", "ä": "ö"}
SIZES = (0, 1, 127, 128, 129, 1000, 4095, 4096, 4097, 8192)


def client(suite: Any) -> Any:
    policy = (
        CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT
        if suite.is_committing()
        else CommitmentPolicy.FORBID_ENCRYPT_ALLOW_DECRYPT
    )
    return sdk.EncryptionSDKClient(commitment_policy=policy)


def raw_aes(secret: bytes, name: bytes = b"one") -> Any:
    algorithm = WrappingAlgorithm[f"AES_{8 * len(secret)}_GCM_IV12_TAG16_NO_PADDING"]
    wrapping = WrappingKey(algorithm, secret, EncryptionKeyType.SYMMETRIC)
    return RawMasterKey(provider_id="tests", key_id=name, wrapping_key=wrapping)


def options(suite: Any, **more: Any) -> awsesdk.Options:
    return awsesdk.Options(algorithm=f"0x{suite.algorithm_id:04x}", **more)


def opened(sealed: bytes, key: object, chosen: formats.Options | None = None) -> bytes:
    out = io.BytesIO()
    formats.decrypt_stream(io.BytesIO(sealed), out, key, options=chosen)
    return out.getvalue()


def sealed_of(plain: bytes, key: object, chosen: formats.Options | None = None) -> bytes:
    out = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(plain), out, key, options=chosen)
    return out.getvalue()


@pytest.mark.parametrize("suite", list(AlgorithmSuite), ids=lambda suite: suite.name)
@pytest.mark.parametrize("frame_length", [0, 128, 4096])
def test_every_suite(suite: Any, frame_length: int, tmp_path: Path) -> None:
    peer, chosen = client(suite), options(suite, encryption_context=CONTEXT)
    for size in SIZES:
        plain = paint(size)
        sealed, _ = peer.encrypt(
            source=plain,
            key_provider=raw_aes(SECRET),
            algorithm=suite,
            frame_length=frame_length,
            encryption_context=CONTEXT,
        )
        assert opened(sealed, KEY, chosen) == plain
        with formats.open(io.BytesIO(sealed), KEY, options=chosen) as file:
            assert file.raw.size == size
            assert file.seek(size // 2) == size // 2
            assert file.read() == plain[size // 2 :]
        (tmp_path / "sealed").write_bytes(sealed)
        formats.decrypt_file(tmp_path / "sealed", tmp_path / "plain", KEY, options=chosen)
        assert (tmp_path / "plain").read_bytes() == plain
        (tmp_path / "plain").unlink()
        shapes = formats.info(tmp_path / "sealed").candidates
        shape = next(one for one in shapes if one.format == "awsesdk")
        assert shape.plaintext_size == (size if frame_length else None)


@pytest.mark.parametrize("suite", list(AlgorithmSuite), ids=lambda suite: suite.name)
@pytest.mark.parametrize("frame_length", [1, 100, 4096])
def test_the_peer_reads_every_suite(suite: Any, frame_length: int) -> None:
    chosen = options(suite, encryption_context=CONTEXT, frame_length=frame_length)
    for size in SIZES if frame_length > 1 else (0, 1, 2, 200):
        plain = paint(size)
        sealed = sealed_of(plain, KEY, chosen)
        text, header = client(suite).decrypt(source=sealed, key_provider=raw_aes(SECRET))
        assert text == plain
        assert CONTEXT.items() <= header.encryption_context.items()
        assert header.algorithm is suite
        assert opened(sealed, KEY, chosen) == plain


@pytest.mark.parametrize("size", [16, 24, 32])
def test_raw_aes_keys(size: int) -> None:
    key, suite = awsesdk.RawAES(bytes(size), "tests", "one"), AlgorithmSuite.get_by_id(0x0478)
    peer = client(suite)
    sealed, _ = peer.encrypt(source=b"text", key_provider=raw_aes(bytes(size)), algorithm=suite)
    assert opened(sealed, key) == b"text"
    sealed = sealed_of(b"text", key)
    assert peer.decrypt(source=sealed, key_provider=raw_aes(bytes(size)))[0] == b"text"


@pytest.mark.parametrize(
    "padding", ["oaep-sha1", "oaep-sha256", "oaep-sha384", "oaep-sha512", "pkcs1"]
)
def test_raw_rsa_keys(padding: Any) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(65537, 2048)
    secret = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    name = "RSA_PKCS1" if padding == "pkcs1" else f"RSA_{padding.upper().replace('-', '_')}_MGF1"
    theirs = RawMasterKey(
        provider_id="tests",
        key_id=b"pair",
        wrapping_key=WrappingKey(WrappingAlgorithm[name], secret, EncryptionKeyType.PRIVATE),
    )
    suite = AlgorithmSuite.get_by_id(0x0578)
    ours = awsesdk.RawRSA(secret, "tests", "pair", padding)
    sealed, _ = client(suite).encrypt(source=b"text", key_provider=theirs, algorithm=suite)
    assert opened(sealed, ours) == b"text"
    sealed = sealed_of(b"text", awsesdk.RawRSA(public, "tests", "pair", padding))
    assert client(suite).decrypt(source=sealed, key_provider=theirs)[0] == b"text"
    with pytest.raises(InvalidTag, match="none for a key"):
        opened(sealed, awsesdk.RawRSA(public, "tests", "pair", padding))


def test_keys_of_a_kms(monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with moto.mock_aws():
        kms = boto3.client("kms", region_name="eu-west-1")
        arns = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]
        suite = AlgorithmSuite.get_by_id(0x0578)
        theirs = sdk.StrictAwsKmsMasterKeyProvider(key_ids=arns[:1])
        sealed, _ = client(suite).encrypt(
            source=b"text", key_provider=theirs, encryption_context=CONTEXT
        )
        assert opened(sealed, awsesdk.KMS(arns[0])) == b"text"
        with pytest.raises(InvalidTag, match="none for a key"):
            opened(sealed, awsesdk.KMS(arns[1]))
        account = arns[0].split(":")[4]
        trusted = awsesdk.Discovery([account], "aws")
        for discovery in (awsesdk.Discovery(), trusted, awsesdk.Discovery(region="eu-west-1")):
            assert opened(sealed, discovery) == b"text"
        for discovery in (
            awsesdk.Discovery([account[::-1]], "aws"),
            awsesdk.Discovery([account], "aws-cn"),
            awsesdk.Discovery(region="eu-north-1"),
        ):
            with pytest.raises(InvalidTag, match="none for a key"):
                opened(sealed, discovery)
        found = sdk.DiscoveryAwsKmsMasterKeyProvider(
            discovery_filter=DiscoveryFilter(account_ids=[account], partition="aws")
        )
        sealed = sealed_of(b"ours", awsesdk.KMS(arns[1]))
        assert client(suite).decrypt(source=sealed, key_provider=found)[0] == b"ours"
        assert opened(sealed, trusted) == b"ours"
        # Several keys: any opens it.
        sealed = sealed_of(
            b"more",
            [awsesdk.KMS(arns[0]), awsesdk.KMS(arns[1]), KEY],
            awsesdk.Options(encryption_context=CONTEXT),
        )
        assert client(suite).decrypt(source=sealed, key_provider=theirs)[0] == b"more"
        assert client(suite).decrypt(source=sealed, key_provider=raw_aes(SECRET))[0] == b"more"
        for key in (awsesdk.KMS(arns[0], kms), awsesdk.KMS(arns[1]), KEY, [KEY]):
            assert opened(sealed, key) == b"more"
        with pytest.raises(PermissionError, match="the KMS did not generate_data_key"):
            sealed_of(b"", awsesdk.KMS(arns[0][:-1] + ("0" if arns[0][-1] != "0" else "1")))


@pytest.mark.parametrize("suite", list(AlgorithmSuite), ids=lambda suite: suite.name)
def test_a_required_encryption_context(suite: Any) -> None:
    """Its pairs are authenticated and not stored."""
    pytest.importorskip("aws_cryptographic_material_providers")
    from aws_cryptographic_material_providers.mpl import AwsCryptographicMaterialProviders
    from aws_cryptographic_material_providers.mpl.config import MaterialProvidersConfig
    from aws_cryptographic_material_providers.mpl.models import (
        AesWrappingAlg,
        CreateDefaultCryptographicMaterialsManagerInput,
        CreateRawAesKeyringInput,
        CreateRequiredEncryptionContextCMMInput,
    )

    providers = AwsCryptographicMaterialProviders(config=MaterialProvidersConfig())
    ring = providers.create_raw_aes_keyring(
        CreateRawAesKeyringInput(
            key_namespace="tests",
            key_name="one",
            wrapping_key=SECRET,
            wrapping_alg=AesWrappingAlg.ALG_AES256_GCM_IV12_TAG16,
        )
    )
    manager = providers.create_required_encryption_context_cmm(
        CreateRequiredEncryptionContextCMMInput(
            required_encryption_context_keys=["purpose"],
            underlying_cmm=providers.create_default_cryptographic_materials_manager(
                CreateDefaultCryptographicMaterialsManagerInput(keyring=ring)
            ),
        )
    )
    how = {"materials_manager": manager, "encryption_context": CONTEXT}
    sealed, header = client(suite).encrypt(source=b"text", algorithm=suite, **how)
    assert set(header.encryption_context) - {"aws-crypto-public-key"} == {"ä"}
    assert opened(sealed, KEY, options(suite, encryption_context=CONTEXT)) == b"text"
    for less in ({}, {"ä": "ö"}, {**CONTEXT, "purpose": "x"}):
        with pytest.raises(InvalidTag):
            opened(sealed, KEY, options(suite, encryption_context=less))
    chosen = options(suite, encryption_context=CONTEXT, required_context=["purpose"])
    sealed = sealed_of(b"ours", KEY, chosen)
    assert client(suite).decrypt(source=sealed, **how)[0] == b"ours"
    with pytest.raises(Exception, match="ncryption"):
        client(suite).decrypt(source=sealed, materials_manager=manager)
