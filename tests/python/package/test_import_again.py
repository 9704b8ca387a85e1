# SPDX-License-Identifier: Apache-2.0
"""Imports of the package more than once a process: again, in subinterpreters, without the lock."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INTERPRETERS = (
    "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
)  # the documented module is of Python 3.14

# Of a subinterpreter that shares the lock of the main one.
SHARING = "'legacy'" if sys.version_info >= (3, 13) else "isolated=False"

WORKS = """
def check(wc):
    assert wc.Cipher('aes-128-ctr', bytes(16)).encrypt(b'x', iv=bytes(16)) == SEALED
    with wc.Queue() as queue:
        key = wc.Key('aes-128-ctr', bytes(16))
        assert queue.submit('aes-128-ctr', 'encrypt', key, b'x', iv=bytes(16)).result(10) == SEALED
    try: wc.aead.AESGCM(bytes(16)).decrypt(bytes(12), bytes(16), None)
    except wc.InvalidTag: pass
    else: raise AssertionError
    try: wc.Cipher('none', b'')
    except ValueError: pass
    else: raise AssertionError
SEALED = bytes([0x66 ^ 0x78])
"""

FORGET = """
import sys
def forget():
    for name in list(sys.modules):
        if name.partition('.')[0] == 'warpcipher': del sys.modules[name]
"""

SUB = f"""
import sys, {INTERPRETERS} as interpreters
def refused(*config, **options):
    one = interpreters.create(*config, **options)
    code = (
        f'import sys; sys.path[:] = {{sys.path!r}}\\n'
        'for _ in range(2):\\n'
        '    try: import warpcipher\\n'
        '    except ImportError as error: assert "interpreter" in str(error), error\\n'
        '    else: raise AssertionError("imported")\\n'
    )
    failure = interpreters.run_string(one, code)
    assert failure is None, failure
    interpreters.destroy(one)
"""


def run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_anew() -> None:
    run(
        WORKS + FORGET + "import warpcipher as first\n"
        "check(first)\n"
        "for _ in range(3):\n"
        "    forget()\n"
        "    import warpcipher as again\n"
        "    assert again is not first and again._native is not first._native\n"
        "    check(again); check(first)\n"
        # Each catches the other's errors, and takes the other's objects.
        "    assert again.InvalidTag is first.InvalidTag and again.Key is first.Key\n"
        "    again.Cipher('aes-128-ctr', first.Key('aes-128-ctr', bytes(16)))\n"
        "del again, first; import gc; gc.collect()\n"
    )


def test_the_extension_alone_anew() -> None:
    run(
        WORKS + "import sys, importlib, warpcipher\n"
        "first = sys.modules.pop('warpcipher._native')\n"
        "again = importlib.import_module('warpcipher._native')\n"
        "assert again is not first and vars(again).keys() == vars(first).keys()\n"
        "importlib.reload(again)\n"
        "importlib.reload(warpcipher)\n"
        "check(warpcipher)\n"
    )


def test_a_second_copy_of_the_extension_has_the_same_status(tmp_path: Path) -> None:
    """Of the package in another place, say: nanobind shares types among copies."""
    import warpcipher as wc

    copy = tmp_path / "_native.so"
    shutil.copyfile(str(wc._native.__file__), copy)
    run(
        "import warnings; warnings.simplefilter('ignore')\n"  # types that are registered already
        "import importlib.machinery, importlib.util, warpcipher as wc\n"
        f"loader = importlib.machinery.ExtensionFileLoader('_native', {str(copy)!r})\n"
        "spec = importlib.util.spec_from_loader('_native', loader)\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "loader.exec_module(module)\n"
        "assert module is not wc._native and module.Status is wc.Status\n"
    )


def test_anew_while_calls_are_on_their_way() -> None:
    run(
        WORKS + FORGET + "import warpcipher as first\n"
        "waiting = first.Queue(max_delay_us=3_600_000_000)\n"
        "key = first.Key('aes-128-ctr', bytes(16))\n"
        "future = waiting.submit('aes-128-ctr', 'encrypt', key, b'x', iv=bytes(16))\n"
        "forget()\n"
        "import warpcipher as again\n"
        "waiting.flush()\n"
        "assert future.result(10) == SEALED\n"
        "left = again.Queue(max_delay_us=3_600_000_000)\n"
        "for queue in (waiting, left):\n"
        "    queue.submit('aes-128-ctr', 'encrypt', key, b'x', iv=bytes(16))\n"
    )


@pytest.mark.parametrize("first", ["main", "sub"])
def test_a_subinterpreter_is_refused_and_the_main_one_works(first: str) -> None:
    main = "import warpcipher\ncheck(warpcipher)\n"
    before = main if first == "main" else ""
    refused = f"refused()\nrefused({SHARING})\n"
    run(WORKS + SUB + before + refused + main + refused + main)


def test_exit_with_a_subinterpreter_that_lives() -> None:
    run(
        WORKS + SUB + "import warpcipher\n"
        "one = interpreters.create()\n"
        "interpreters.run_string(one, f'''import sys; sys.path[:] = {sys.path!r}\n"
        "try: import warpcipher\n"
        "except ImportError: pass''')\n"
        "check(warpcipher)\n"
    )


def test_the_lab_too() -> None:
    run(
        FORGET + "import warpcipher_measure._native as first\n"
        "forget()\n"
        "import warpcipher_measure._native as again\n"
        "assert again.Job is first.Job and again.papers() == first.papers()\n"
    )


def test_an_interpreter_without_its_lock_is_refused() -> None:
    """As a free-threaded one is with PYTHON_GIL=0; the question that is asked is its own."""
    run(
        WORKS + "import sys\n"
        "kept = getattr(sys, '_is_gil_enabled', lambda: True)\n"
        "sys._is_gil_enabled = lambda: False\n"
        "try: import warpcipher\n"
        "except ImportError as error: assert 'PYTHON_GIL' in str(error)\n"
        "else: raise AssertionError\n"
        "sys._is_gil_enabled = kept\n"
        "import warpcipher\n"
        "check(warpcipher)\n"
    )


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="before Python 3.13")
def test_a_free_threaded_interpreter_turns_its_lock_on() -> None:
    run(
        "import sys, warnings\n"
        "warnings.simplefilter('ignore', RuntimeWarning)  # which says so\n"
        "import warpcipher\n"
        "assert sys._is_gil_enabled()\n"
    )
