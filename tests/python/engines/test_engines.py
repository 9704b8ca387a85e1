# SPDX-License-Identifier: Apache-2.0
"""The lists of algorithms and engines, and how an engine is forced or refused."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable

import conformance_oracle as oracle
import pytest
import warpcipher as wc
from warpcipher import formats

USABLE = [info.name for info in wc.engines() if info.usable]


def test_algorithms() -> None:
    infos = wc.algorithms()
    names = [info.name for info in infos]
    assert len(set(names)) == len(names)
    by_name = dict(zip(names, infos, strict=True))
    assert by_name["aes-256-gcm"].is_aead
    assert by_name["aes-256-xts"].key_size == 64
    assert [by_name[name].iv_size for name in names if by_name[name].iv == "fixed"] == [
        *(12, 12),  # GCM-SIV
        *(16, 12, 24),  # ChaCha20, ChaCha20-Poly1305, XChaCha20-Poly1305
    ]
    assert by_name["des-ede3-cbc"].block_size == 8
    for info in infos:
        sizes = {"none": 0, "block": info.block_size, "any": 12}
        assert info.iv_size == sizes.get(info.iv, info.iv_size)
        assert wc.Cipher(info.name, oracle.painted("key", info.key_size)).algorithm == info.name
    assert repr(infos[0]).startswith("AlgorithmInfo(name='")


def test_engines() -> None:
    infos = wc.engines()
    assert {"cpu", "reference"} <= {info.name for info in infos if info.usable}
    for info in infos:
        assert set(info.algorithms) <= {entry.name for entry in wc.algorithms()}
        assert info.usable == (info.reason == "") == (info.devices != ())
        assert info.memory in ("host", "device")
        assert info.description
    assert all(
        info.constant_time(a.name) for info in infos if info.name == "cpu" for a in wc.algorithms()
    )


def test_the_reference_engine_says_that_it_is_not_constant_time() -> None:
    reference = next(info for info in wc.engines() if info.name == "reference")
    assert not reference.constant_time("aes-256-ecb")
    with pytest.raises(ValueError, match="unknown algorithm"):
        reference.constant_time("aes-1")


@pytest.mark.parametrize(
    "spell", [str.upper, lambda name: name.replace("-", "_"), lambda name: name.replace("-", "")]
)
def test_names_of_algorithms_in_any_case(spell: Callable[[str], str]) -> None:
    for entry in wc.algorithms():
        assert wc.find_algorithm(spell(entry.name)) is wc.find_algorithm(entry.name)
    assert wc.Cipher(spell("aes-256-gcm"), bytes(32)).algorithm == "aes-256-gcm"
    options = formats.Options(algorithm=spell("aes-256-ctr"), iv=bytes(16))
    made = io.BytesIO()
    formats.encrypt_stream(io.BytesIO(b"text"), made, bytes(32), format="raw", options=options)
    assert made.getvalue() == wc.Cipher("aes-256-ctr", bytes(32)).encrypt(b"text", iv=bytes(16))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("aes-256-gmc", "did you mean aes-256-gcm?"),
        ("AES-GCM", "did you mean aes-128-gcm or aes-192-gcm or aes-256-gcm?"),
        ("chacha-poly1305", "did you mean chacha20-poly1305?"),
        ("3DES-CBC", "did you mean des-ede3-cbc?"),
        ("rot13", "'rot13': expected a cipher and a mode, such as aes-256-gcm"),
        ("", "'': expected a cipher and a mode, such as aes-256-gcm"),
        ("a" * 5000, f"'{'a' * 64}': expected a cipher and a mode, such as aes-256-gcm"),
    ],
)
def test_a_wrong_name_is_answered_by_the_nearest(name: str, hint: str) -> None:
    """It listed all 43."""
    for call in (lambda: wc.find_algorithm(name), lambda: wc.Cipher(name, bytes(16))):
        with pytest.raises(ValueError, match="unknown algorithm") as raised:
            call()
        assert hint in str(raised.value)
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize("engine", USABLE)
def test_forced_by_name(engine: str) -> None:
    text = oracle.painted("text", 1000)
    data = wc.Cipher("aes-192-ctr", bytes(24), engine=engine).encrypt(text, iv=bytes(16))
    assert data == oracle.encrypt("aes-192-ctr", bytes(24), text, bytes(16))


@pytest.mark.parametrize("engine", [info.name for info in wc.engines() if not info.usable])
def test_an_engine_that_cannot_run_says_why(engine: str) -> None:
    reason = next(info.reason for info in wc.engines() if info.name == engine)
    with pytest.raises(wc.EngineError) as caught:
        wc.Cipher("aes-128-ecb", bytes(16), engine=engine).encrypt(bytes(16))
    assert reason in str(caught.value)


def test_unknown_engine() -> None:
    with pytest.raises(wc.EngineError, match="unknown engine 'warp': expected one of auto, cpu"):
        wc.Cipher("aes-128-ecb", bytes(16), engine="warp").encrypt(bytes(16))


PROGRAM = """
import warpcipher as wc
from warpcipher import formats
try:
    print(wc.Cipher("aes-128-ecb", bytes(16), engine={engine!r}).encrypt(bytes(16)).hex())
except wc.EngineError as error:
    print("EngineError", error)
"""
ZERO_BLOCK = "66e94bd4ef8a2c3b884cfa59ca342b2e"  # AES-128 of zeros under the key of zeros


def run_with(environment: str, engine: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(engine=engine)],
        env={**os.environ, "WARPCIPHER_ENGINE": environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.parametrize("environment", ["", "auto", *USABLE])
def test_the_environment_forces_an_engine(environment: str) -> None:
    assert run_with(environment, "auto") == ZERO_BLOCK


def test_an_unknown_engine_in_the_environment_is_an_error() -> None:
    assert "EngineError WARPCIPHER_ENGINE: unknown engine 'warp'" in run_with("warp", "auto")


def test_an_argument_goes_before_the_environment() -> None:
    assert run_with("warp", "cpu") == ZERO_BLOCK
