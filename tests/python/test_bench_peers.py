# SPDX-License-Identifier: Apache-2.0
"""`warpcipher bench --against`: peers that are measured beside the library."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bench_support import ALGORITHMS, QUICK
from cli_support import run, run_json
from warpcipher.bench import openssl


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
    """Each that this OpenSSL has without its legacy provider, which holds single DES."""
    listed = subprocess.run(
        ["openssl", "list", "-cipher-algorithms"], capture_output=True, text=True, check=True
    ).stdout.lower()
    for name in ALGORITHMS:
        if not name.startswith("des-ede2-cfb8") and "des-" not in name:
            assert openssl.name_of(name) in listed
    assert openssl.name_of("des-ede2-cbc") == "des-ede-cbc"
    assert openssl.name_of("des-ede3-cbc") == "des-ede3-cbc"


def test_results_of_openssl_are_parsed() -> None:
    output = "Got: +F:25:AES-256-GCM:100.0 from 0\n+F:25:AES-256-GCM:911546144.95\n"
    assert openssl.parse(output) == 911546144.95
    assert openssl.parse("speed: unknown\n") is None


def test_what_openssl_refuses_is_reported(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    found = openssl.measure("openssl", "", "no-cipher", "encrypt", 16, 1)
    assert isinstance(found, str)
    assert found.startswith("openssl speed: ")


def test_against_openssl_without_openssl(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = run("bench", "--against", "openssl", cwd=tmp_path, expect=2, env=environment)
    assert "no openssl is on PATH" in done.stderr.decode()
