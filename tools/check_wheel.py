# SPDX-License-Identifier: Apache-2.0
"""Checks an installed wheel, wherever it came to lie: extensions, engines, every algorithm, files.

Needs nothing but the package and its requirements. An argument, `libcrypto` or `no-libcrypto`,
says what the system has; `warpcipher` must then find the same.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import files, version
from pathlib import Path

import warpcipher as wc
from warpcipher_command.main import main as command


def needs(condition: bool, what: object) -> None:
    if not condition:
        sys.exit(f"check_wheel: {what}")


def refusal(action: Callable[[], object]) -> str:
    try:
        action()
    except wc.EngineError as error:
        return str(error)
    return ""


def check_algorithms(names: list[str]) -> None:
    """The engines agree, back and forth, on short texts and on long ones."""
    for info in wc.algorithms():
        if info.name not in names:
            continue
        key = bytes(range(1, info.key_size + 1))
        iv = {"iv": bytes(range(info.iv_size))} if info.iv_size else {}
        for length in (64, 12288):  # own code takes up to 8192 bytes, else the faster does
            text = bytes(length)
            ours = wc.Cipher(info.name, key, engine="cpu")
            sealed = ours.encrypt(text, **iv)
            reference = wc.Cipher(info.name, key, engine="reference")
            needs(sealed == reference.encrypt(text, **iv), f"{info.name} encrypts wrongly")
            needs(ours.decrypt(sealed, **iv) == text, f"{info.name} decrypts wrongly")


def check_command() -> None:
    """A file encrypted and decrypted by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        names = {name: str(Path(folder) / name) for name in ("key", "text", "sealed", "back")}
        Path(names["text"]).write_bytes(b"text" * 1000)
        for arguments in (
            ["keygen", names["key"]],
            ["encrypt", "--key", names["key"], "-o", names["sealed"], names["text"]],
            ["decrypt", "--key", names["key"], "-o", names["back"], names["sealed"]],
        ):
            sys.argv = ["warpcipher", *arguments]
            try:
                status = command()
            except SystemExit as end:
                status = end.code
            needs(not status, f"warpcipher {arguments[0]} ends with {status}")
        needs(Path(names["back"]).read_bytes() == b"text" * 1000, "decrypt gives another text")


def check_materials() -> None:
    """The bill of materials in the wheel (PEP 770) is of this version."""
    found = [file for file in files("warpcipher") or [] if file.parent.name == "sboms"]
    bills = [json.loads(file.read_text()) for file in found if file.name == "warpcipher.cdx.json"]
    needs(len(bills) == 1, "no bill of materials in .dist-info/sboms")
    needs(
        bills[0]["metadata"]["component"]["version"] == wc.__version__, "a bill of another version"
    )
    names = {part["name"] for part in bills[0]["components"]}
    needs(names >= {"nanobind", "nvidia-cuda-runtime"}, f"the bill of materials names {names}")


def main() -> None:
    needs(wc.__version__ == version("warpcipher"), "the extension is of another version")
    check_materials()
    strangers = [str(file) for file in files("warpcipher") or [] if "measure" in str(file)]
    needs(not strangers, f"the wheel holds files of warpcipher-measure: {strangers}")
    engines = {engine.name: engine for engine in wc.engines()}
    for engine in engines.values():
        needs(engine.usable or engine.reason, f"{engine.name} does not say why it cannot run")
        print(f"{engine.name}: {engine.reason or engine.devices[0]}")
    has_libcrypto = "no libcrypto" not in engines["cpu"].devices[0]
    for wanted in sys.argv[1:]:
        needs((wanted == "libcrypto") == has_libcrypto, f"expected {wanted}")

    names = [info.name for info in wc.algorithms()]
    if "no AES" in engines["cpu"].description:
        cipher = wc.Cipher("aes-128-gcm", bytes(16), engine="cpu")
        said = refusal(lambda: cipher.encrypt(b"text", iv=bytes(12)))
        needs("libcrypto.so.3" in said, f"AES without libcrypto says {said!r}")
        names = [name for name in names if not name.startswith("aes")]
    check_algorithms(names)
    if "aes-256-gcm" in names:
        check_command()
    print(f"warpcipher {wc.__version__}: {len(names)} algorithms are right")


main()
