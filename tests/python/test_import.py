# SPDX-License-Identifier: Apache-2.0
"""What an import of the package loads, and what the package offers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import warpcipher as wc

HEAVY = ("numpy", "torch", "cupy", "jax", "click", "tqdm", "cryptography", "asyncio", "inspect")


def loaded_after(statement: str) -> set[str]:
    program = (
        f"import sys; before = set(sys.modules); {statement}; "
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    loaded = loaded_after("import warpcipher")
    assert "warpcipher._native" in loaded
    assert not loaded & set(HEAVY)
    assert not {
        name for name in loaded if name.startswith(("warpcipher.formats", "warpcipher.cli"))
    }


def test_bytes_need_no_array_code() -> None:
    loaded = loaded_after(
        "import warpcipher as wc; wc.Cipher('aes-128-ecb', bytes(16)).encrypt(bytes(16)); "
        "wc.aead.AESGCM(bytes(16)).encrypt(bytes(12), b'', None)"
    )
    assert not loaded & {*HEAVY, "warpcipher.arrays"}


def test_names() -> None:
    for name in wc.__all__:
        assert getattr(wc, name) is not None
    assert wc.formats.__name__ == "warpcipher.formats"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wc.nothing
    assert wc.__version__.count(".") == 2


def test_typed() -> None:
    assert (Path(str(wc.__file__)).parent / "py.typed").exists()


def test_exceptions() -> None:
    assert issubclass(wc.InvalidTag, Exception)
    assert not issubclass(wc.InvalidTag, ValueError)
    assert issubclass(wc.EngineError, RuntimeError)


def test_dir_has_every_name() -> None:
    assert set(wc.__all__) <= set(dir(wc))


def test_signatures_are_found() -> None:
    import inspect

    for name in ("Cipher", "Batch", "Queue", "run_columns", "algorithms", "engines", "search"):
        assert inspect.signature(getattr(wc, name)).parameters or name in ("algorithms", "engines")
    assert str(inspect.signature(wc.Key)) == "(algorithm: 'str', key: 'object') -> 'None'"
    assert list(inspect.signature(wc.aead.AESGCM).parameters) == ["key", "engine"]
