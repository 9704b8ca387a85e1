# SPDX-License-Identifier: Apache-2.0
"""The modules that an import of the package loads, and the names it offers."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import get_origin

import pytest
import warpcipher as wc

HEAVY = ("numpy", "torch", "cupy", "jax", "click", "tqdm", "cryptography", "asyncio", "inspect")


def loaded_after(statement: str) -> set[str]:
    program = (
        f"import sys; before = set(sys.modules)\n{statement}\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{program}"],
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


def test_a_command_imports_its_own_format_alone(tmp_path: Path) -> None:
    """A short run is mostly imports."""
    key, plain, sealed = (str(tmp_path / name) for name in ("key", "plain", "sealed"))
    Path(key).write_bytes(bytes(range(32)))
    Path(key).chmod(0o600)
    Path(plain).write_bytes(b"text")
    back = str(tmp_path / "back")
    for arguments in (
        ["encrypt", "--key", key, "-o", sealed, plain],
        ["decrypt", "--key", key, "-o", back, sealed],
    ):
        loaded = loaded_after(
            f"sys.argv = {['warpcipher', *arguments]!r}\n"
            "from warpcipher_command.main import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        )
        assert "warpcipher.formats.cobblestone" in loaded
        others = ("age", "ags1", "crypt4gh", "raw", "tink", "tink_keyset", "foreign")
        assert not loaded & {f"warpcipher.formats.{name}" for name in others}
        assert not loaded & {"concurrent.futures", "logging", "pathlib", "subprocess", "json"}
        assert not loaded & {"warpcipher.cli.trees", "warpcipher.formats.write_chunks"}
    assert Path(back).read_bytes() == b"text"


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


PUBLIC = ("", "aead", "formats", "keys", "keysearch", "parquet", "tuning", "weights")


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_are_found(name: str) -> None:
    """Of what a user calls: functions, classes and their methods, native ones too."""
    import inspect

    module = importlib.import_module("warpcipher" + ("." + name if name else ""))
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for thing in (getattr(module, public) for public in names):
        if not callable(thing) or get_origin(thing) is not None:  # a type alias
            continue
        if inspect.isclass(thing) and issubclass(thing, Exception):  # Python's own have none
            continue
        if thing is not wc.PinnedBuffer:  # `pinned` makes them
            inspect.signature(thing)
        for method, member in vars(thing).items() if inspect.isclass(thing) else ():
            is_private = method.startswith("_") or "Private to" in (member.__doc__ or "")
            if callable(member) and not is_private:
                inspect.signature(getattr(thing, method))


def test_signatures_of_native_code_are_right() -> None:
    import inspect

    assert str(inspect.signature(wc.Key)) == "(algorithm: 'str', key: 'object') -> 'None'"
    assert str(inspect.signature(wc.pinned)) == "(size: 'int') -> 'PinnedBuffer'"
    for kind in (getattr(wc.aead, name) for name in wc.aead.__all__):
        key = inspect.signature(kind).parameters["engine"]
        assert (key.kind, key.default) == (inspect.Parameter.KEYWORD_ONLY, "auto")
        arguments = ["nonce", "data", "associated_data"]
        assert list(inspect.signature(kind.encrypt).parameters) == ["self", *arguments]
        box = kind(bytes(range(32)))
        assert list(inspect.signature(box.decrypt).parameters) == arguments
        nonce = bytes(24 if kind is wc.aead.XChaCha20Poly1305 else 12)
        kept = box.encrypt  # bound, and called later
        assert box.decrypt(nonce, kept(nonce, data=b"text", associated_data=None), None) == b"text"
        with pytest.raises(TypeError, match="missing a required argument: 'data'"):
            kept(nonce)


def test_help_shows_native_functions() -> None:
    import pydoc

    box = wc.aead.AESGCM
    assert "The ciphertext and its tag" in pydoc.plain(pydoc.render_doc(box.encrypt))
    page = pydoc.plain(pydoc.render_doc(box))
    assert "A random key of 128, 192 or 256 bits" in page
    assert "SignedFunction object" not in page
    assert "page-locked memory" in pydoc.plain(pydoc.render_doc(wc.pinned))
    assert len(box.generate_key(128)) == len(box(bytes(16)).generate_key(128)) == 16
