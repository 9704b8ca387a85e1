# SPDX-License-Identifier: Apache-2.0
"""A user's type checker sees the type of each result, and no Any."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc

PACKAGE = Path(str(wc.__file__)).parent

# A program of a user. After each reveal_type the type that its result has.
PROGRAM = """
import array
from typing import Any, Final
import warpcipher as wc

class Array:  # of any library that speaks DLPack
    def __dlpack__(self, *, stream: int | None = None) -> object:
        return stream

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

class OnGpu:
    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {}

key = bytes(16)
raw, pinned, x, y = bytearray(4), wc.pinned(4), Array(), OnGpu()

cipher = wc.Cipher("aes-128-ctr", key)
reveal_type(cipher.encrypt(b"", iv=key))  # bytes
reveal_type(cipher.decrypt(raw, iv=key))  # bytes
reveal_type(cipher.encrypt(memoryview(raw), iv=key))  # bytes
reveal_type(cipher.encrypt(array.array("Q"), iv=key))  # bytes
reveal_type(cipher.decrypt(pinned, iv=key))  # bytes
reveal_type(cipher.encrypt(x, iv=key))  # Array
reveal_type(cipher.decrypt(y, iv=key, stream=1))  # OnGpu
reveal_type(cipher.encrypt(b"", iv=key, out=raw))  # bytearray | memoryview[int]
reveal_type(cipher.decrypt(x, iv=key, out=raw))  # bytearray | memoryview[int]
reveal_type(cipher.encrypt(b"", iv=key, out=x))  # Array
reveal_type(cipher.decrypt(y, iv=key, out=y))  # OnGpu

gcm = wc.aead.AESGCM(wc.aead.AESGCM.generate_key(128))
reveal_type(gcm.encrypt(key, b"", None))  # bytes
reveal_type(gcm.decrypt(key, raw, b""))  # bytes
reveal_type(gcm.encrypt(key, x, None))  # Array
reveal_type(gcm.decrypt(key, y, None))  # OnGpu
reveal_type(gcm.encrypt_into(key, x, None, raw))  # int

batch = wc.Batch()
reveal_type(batch.add("aes-128-ecb", "encrypt", key, b"").result())  # bytes
reveal_type(batch.add("aes-128-ecb", "encrypt", key, x).result())  # Array
handle = batch.add("aes-128-ecb", "encrypt", key, x, out=raw)
reveal_type(handle)  # Handle[bytearray | memoryview[int]]
reveal_type(batch.add("aes-128-ecb", "encrypt", key, x, out=y).result())  # OnGpu

reveal_type(wc.run_columns("aes-128-ecb", "encrypt", key, b"", lengths=[]).out)  # bytearray
reveal_type(wc.run_columns("aes-128-ecb", "encrypt", key, x, lengths=[]).out)  # Array
columns = wc.run_columns("aes-128-ecb", "encrypt", key, b"", lengths=[], out=pinned)
reveal_type(columns.raise_for_status())  # Columns[PinnedBuffer]
reveal_type(columns.status)  # memoryview[int]

with wc.Queue() as queue:
    reveal_type(queue.submit("aes-128-ecb", "encrypt", key, b"").result())  # bytes
    reveal_type(queue.submit("aes-128-ecb", "encrypt", key, x))  # QueueFuture[Array]
    reveal_type(queue.submit("aes-128-ecb", "encrypt", key, x, out=y).result())  # OnGpu
    future = queue.submit("aes-128-ecb", "encrypt", key, x, out=raw)
    reveal_type(future.result(1))  # bytearray | memoryview[int]

generator = wc.random.Generator(bytes(32))
reveal_type(generator.bytes(4))  # bytes
reveal_type(generator.normal_(x))  # Array
reveal_type(generator.permutation_(y, stream=1))  # OnGpu
reveal_type(generator.laplace_(x, 0, 2))  # Array

with wc.formats.open("file.tink", wc.keys.from_env("KEY")) as file:
    reveal_type(file.read(4))  # bytes
    reveal_type(file.readinto(raw))  # int
reveal_type(wc.weights.load_file("m", key, framework="np"))  # dict[str, ndarray[Any, Any]]
with wc.weights.safe_open("m", "np", key=key) as model:
    reveal_type(model.keys())  # list[str]
    reveal_type(model.metadata())  # dict[str, str] | None
    reveal_type(model.info("w").shape)  # tuple[int, ...]
reveal_type(wc.parquet.encrypt("a.parquet", "b.parquet", wc.parquet.EncryptionConfig(key)))  # int

algorithm: Final = "aes-128-ctr"
reveal_type(wc.Cipher(algorithm, key).encrypt(b"", iv=key))  # bytes
told = wc.find_algorithm(input())  # a name known only at run time
reveal_type(wc.Cipher(told.name, key).encrypt(b"", iv=key))  # bytes
reveal_type(wc.Cipher(wc.algorithms()[0].name, key).encrypt(b""))  # bytes

def kept(handle: wc.Handle[bytes], future: wc.QueueFuture[Array]) -> wc.Columns[bytearray]:
    reveal_type(handle.result())  # bytes
    reveal_type(future.result())  # Array
    return wc.run_columns("aes-128-ecb", "encrypt", key, b"", lengths=[])
"""
WANTED = {
    number: line.rsplit("  # ", 1)[1]
    for number, line in enumerate(PROGRAM.splitlines(), 1)
    if "reveal_type(" in line
}
REFUSED = (
    'wc.Cipher("aes-128-ctr", bytes(16)).encrypt("text")',
    'wc.Cipher("aes-128-ctr", bytes(16)).decrypt([1, 2])',
    "wc.aead.AESGCM(bytes(16)).encrypt(bytes(12), 3, None)",
    'wc.Batch().add("aes-128-ctr", "encrypt", bytes(16), "text")',
    'wc.Batch().add("aes-128-ctr", "encrpyt", bytes(16), b"text")',
    'wc.run_columns("aes-128-ctr", "decypt", bytes(16), b"text", lengths=[4])',
    'wc.Queue().submit("aes-128-ctr", "ENCRYPT", bytes(16), b"text")',
    'wc.Cipher("aes-128-gmc", bytes(16))',
    'wc.Batch().add("aes-128-gmc", "encrypt", bytes(16), b"text")',
    'wc.run_columns("aes_128_gcm", "encrypt", bytes(16), b"text", lengths=[4])',
    'wc.Queue().submit("AES-128-GCM", "encrypt", bytes(16), b"text")',
)


def check(program: str, folder: Path) -> list[tuple[int, str, str]]:
    """Messages of `mypy --strict` about a user's program: line, kind and text."""
    pytest.importorskip("mypy", reason="mypy is not installed: it is in the extra 'lint'")
    path = folder / "program.py"
    path.write_text(program)
    # An installed package is found by itself, and mypy refuses site-packages as a path.
    places = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", path.name],
        cwd=folder,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    found = re.findall(r"^program\.py:(\d+): (error|note): (.*)$", run.stdout, re.MULTILINE)
    assert len(found) == len(run.stdout.splitlines()), run.stdout
    return [(int(line), kind, text) for line, kind, text in found]


def test_a_user_sees_the_type_of_each_result(tmp_path: Path) -> None:
    lines = PROGRAM.splitlines()
    assert len(WANTED) == PROGRAM.count("reveal_type(") > 20
    shown = {}
    for number, kind, text in check(PROGRAM, tmp_path):
        assert kind == "note", (lines[number - 1], text)
        revealed = re.fullmatch(r'Revealed type is "(.*)"', text)
        assert revealed, text
        # Names without their modules.
        shown[number] = re.sub(r"[\w.]+\.(?=\w)", "", revealed[1])
    assert shown == WANTED


def test_what_is_no_data_is_refused(tmp_path: Path) -> None:
    program = "import warpcipher as wc\n" + "".join(f"{line}\n" for line in REFUSED)
    errors = {number for number, kind, _ in check(program, tmp_path) if kind == "error"}
    assert errors == set(range(2, 2 + len(REFUSED)))


def test_the_names_that_a_checker_knows_are_those_of_the_library() -> None:
    """A new algorithm is missing here until _types.py has it."""
    tree = ast.parse((PACKAGE / "_types.py").read_text(encoding="utf-8"))
    (listed,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "AlgorithmName"
    )
    assert isinstance(listed, ast.Subscript)
    known = ast.literal_eval(listed.slice)
    wanted = tuple(entry.name for entry in wc.algorithms())
    assert known == wanted, "python/warpcipher/_types.py: AlgorithmName has other names"


def test_pyright_sees_the_same(tmp_path: Path) -> None:
    """The other checker that people use. It keeps the literal types of results that mypy widens."""
    # That of the extra 'lint' is the same program in a package that fetches nothing when it runs.
    pytest.importorskip("basedpyright", reason="basedpyright is not installed: extra 'lint'")
    refused = "import warpcipher as wc\n" + "".join(f"{line}\n" for line in REFUSED)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "refused.py").write_text(refused)
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(PACKAGE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stderr
    told: dict[str, dict[int, tuple[str, str]]] = {"program.py": {}, "refused.py": {}}
    for entry in json.loads(run.stdout)["generalDiagnostics"]:
        line = entry["range"]["start"]["line"] + 1
        told[Path(entry["file"]).name][line] = entry["severity"], entry["message"]
    errors = {line for line, (kind, _) in told["refused.py"].items() if kind == "error"}
    assert errors == set(range(2, 2 + len(REFUSED)))
    shown = {}
    for number, (kind, text) in told["program.py"].items():
        assert kind == "information", (number, text)
        revealed = re.fullmatch(r'Type of ".*" is "(.*)"', text, re.DOTALL)
        assert revealed, text
        shown[number] = revealed[1].replace("memoryview[int]", "memoryview")
    wanted = {
        number: text.replace("memoryview[int]", "memoryview") for number, text in WANTED.items()
    }
    assert shown == wanted


def arguments(definition: str) -> list[str]:
    (function,) = ast.parse(f"{definition}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return [entry.arg for entry in (*function.args.args, *function.args.kwonlyargs)]


@pytest.mark.parametrize("name", wc.aead.__all__)
def test_the_types_of_aeads_are_of_their_methods(name: str) -> None:
    shared, stub = (
        node.body
        for node in ast.parse((PACKAGE / "aead.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name in ("_Methods", name)
    )
    typed: dict[str, list[list[str]]] = {}
    for body in (shared, stub):  # what a class says itself is in place of what it shares
        forms: dict[str, list[list[str]]] = {}
        for node in body:
            assert isinstance(node, ast.FunctionDef)
            names = [entry.arg for entry in (*node.args.args, *node.args.kwonlyargs)]
            forms.setdefault(node.name, []).append(names)
        typed |= forms
    native_class = getattr(wc.aead, name)
    native = {
        method: arguments(found.__nb_signature__[0][0])
        for method, found in vars(native_class).items()
        if hasattr(found, "__nb_signature__") and method != "__repr__"
    }
    native["generate_key"] = arguments(native_class.generate_key.__nb_signature__[0][0])
    assert native == {method: given[0] for method, given in typed.items()}
    assert all(names == given[0] for given in typed.values() for names in given)


def test_types_of_results_may_be_written_where_they_are_evaluated() -> None:
    for generic in (wc.Handle, wc.QueueFuture, wc.Columns):
        assert generic[bytes].__origin__ is generic
