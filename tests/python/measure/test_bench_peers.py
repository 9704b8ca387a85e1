# SPDX-License-Identifier: Apache-2.0
"""`warpcipher bench --against`: peers that are measured with the library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import warpcipher as wc
from bench_support import ALGORITHMS, ENGINES, QUICK, run, run_json
from warpcipher_measure import peers
from warpcipher_measure.cases import Case


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_against_openssl(tmp_path: Path) -> None:
    names = ("--algorithm", "aes-256-gcm", "--direction", "decrypt")
    arguments = (*QUICK, *names, "--size", "4096", "--against", "openssl")
    document = run_json(*arguments, cwd=tmp_path)
    (peer,) = document["peers"]
    assert peer["processes"] == len(os.sched_getaffinity(0))
    assert peer["gigabytes_per_second"]["median"] > 0
    assert peer["version"].startswith("OpenSSL 3")
    assert peer["command"].startswith("openssl speed -mr -elapsed -multi ")
    assert peer["command"].endswith("-bytes 4096 -aead -decrypt -evp aes-256-gcm")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_names_of_openssl() -> None:
    """Each that this OpenSSL has without its legacy provider, which holds single DES. GCM-SIV came
    with 3.2; it has no XChaCha20."""
    listed = subprocess.run(
        ["openssl", "list", "-cipher-algorithms"], capture_output=True, text=True, check=True
    ).stdout.lower()
    for name in ALGORITHMS:
        if not name.startswith(("des-", "xchacha20")) and not name.endswith("-siv"):
            assert peers.openssl_name(name) in listed
    assert peers.openssl_name("des-ede2-cbc") == "des-ede-cbc"
    assert peers.openssl_name("des-ede3-cbc") == "des-ede3-cbc"


def test_results_of_openssl_are_parsed() -> None:
    output = "Got: +F:25:AES-256-GCM:100.0 from 0\n+F:25:AES-256-GCM:911546144.95\n"
    assert peers.parse_openssl(output) == 911546144.95
    assert peers.parse_openssl("speed: unknown\n") is None


def test_what_openssl_refuses_is_reported(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    found = peers.measure_openssl("openssl", "", "no-cipher", "encrypt", 16, 1)
    assert isinstance(found, str)
    assert found.startswith("openssl speed: ")


def test_against_openssl_without_openssl(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = run("bench", "--against", "openssl", cwd=tmp_path, expect=2, env=environment)
    assert "no openssl is on PATH" in done.stderr.decode()


COMPARED = [entry for name, entry in ALGORITHMS.items() if name.startswith(("aes-", "chacha20"))]


def case_of(info: wc.AlgorithmInfo, direction: str, size: int, message: int) -> Case:
    return Case(info, direction, size, message, "pageable", ENGINES["cpu"])


def test_against_pyca(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    names = ("--algorithm", "aes-256-xts", "--algorithm", "des-ecb", "--size", "8192")
    document = run_json(*QUICK, *names, "--against", "pyca", cwd=tmp_path)
    bytes_to_bytes, into = document["peers"]
    assert bytes_to_bytes["command"] == "run_columns(...) beside encryptor, update, finalize"
    assert into["command"] == "run_columns(..., out=) beside encryptor, update_into, finalize"
    assert bytes_to_bytes["message"] == 4096
    assert bytes_to_bytes["size"] == 8192
    assert bytes_to_bytes["version"].startswith("cryptography ")
    assert into["gigabytes_per_second"]["median"] > 0
    assert into["ratio"]["count"] >= 3
    assert [e["reason"] for e in document["skipped"] if e["what"].endswith(" pyca")] == [
        "pyca is compared in AES and ChaCha20, and has no XChaCha20"
    ]


@pytest.mark.parametrize("direction", ["encrypt", "decrypt"])
@pytest.mark.parametrize("info", COMPARED, ids=lambda info: info.name)
def test_pyca_makes_the_same(info: wc.AlgorithmInfo, direction: str) -> None:
    """In every mode, of one message and of several: where they differ `measure` raises."""
    pytest.importorskip("cryptography")
    for message in (320, 128):
        case = case_of(info, direction, 320, message)
        rows = peers.measure_pyca(peers.pyca_library(), case, 0.0, 1)
        assert [row.ratio.count for row in rows if row.ratio is not None] == [1, 1]


def test_a_difference_from_pyca_ends_the_run() -> None:
    wrong = SimpleNamespace(encrypt=lambda nonce, data, aad: bytes(len(data) + 16))
    peer = peers.Library(SimpleNamespace(AESGCM=lambda key: wrong), None, "")
    case = case_of(ALGORITHMS["aes-128-gcm"], "encrypt", 64, 64)
    with pytest.raises(wc.EngineError, match="differ in aes-128-gcm encrypt 64 B"):
        peers.measure_pyca(peer, case, 0.0, 1)


def test_against_pyca_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ValueError, match="pip install 'cryptography>=50'"):
        peers.pyca_library()


def test_pyca_is_not_compared_with_a_gpu() -> None:
    device = Case(COMPARED[0], "encrypt", 64, 64, "device", ENGINES["cuda"])
    assert "host memory" in peers.pyca_refusal(device)
    assert peers.pyca_refusal(case_of(COMPARED[0], "encrypt", 64, 64)) == ""
