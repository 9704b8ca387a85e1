# SPDX-License-Identifier: Apache-2.0
"""Encrypted files read straight into GPU memory."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from array_libraries import LIBRARIES
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from format_cases import CASES, Case, paint, tink_case
from warpcipher import formats

every_case = pytest.mark.parametrize(
    "case",
    [
        *CASES,
        tink_case("tink-gcm-1MB", segment_size=1 << 20),
        tink_case("tink-ctr-1MB", segment_size=1 << 20, mac_hash="sha256"),
    ],
    ids=lambda case: case.name,
)


@pytest.fixture(scope="module", params=[name for name in LIBRARIES if LIBRARIES[name].writable])
def library(request: pytest.FixtureRequest) -> Any:
    return LIBRARIES[request.param]()


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[Case, bytes], Path]:
    def store(case: Case, plain: bytes) -> Path:
        path = tmp_path / case.name
        path.write_bytes(case.encrypt(plain))
        return path

    return store


@every_case
@pytest.mark.parametrize("as_file", [True, False])
def test_readinto(
    library: Any, case: Case, as_file: bool, stored: Callable[[Case, bytes], Path]
) -> None:
    plain = paint(40 * min(case.chunk, 100_000) + 3)
    path = stored(case, plain)
    source: Any = path if as_file else io.BytesIO(path.read_bytes())
    with formats.open(source, case.key, options=case.options) as file:
        for position in (0, 1, case.first_chunk, len(plain) // 2, len(plain) - 3, len(plain) + 9):
            array = library.put(b"\xa5" * (len(plain) // 2))
            file.seek(position)
            count = file.readinto(array)
            wanted = plain[position:][: len(plain) // 2]
            assert count == len(wanted)
            assert library.get(array) == wanted + b"\xa5" * (len(plain) // 2 - count)
            assert file.tell() == position + count


def to_host(array: wc.DeviceArray) -> bytes:
    """A DeviceArray's bytes, by a library that copies."""
    for name in ("torch", "cupy"):
        if importlib.util.find_spec(name) is not None:
            library = importlib.import_module(name)
            if name == "cupy":
                return bytes(library.asarray(array).get().tobytes())
            if library.cuda.is_available():
                return bytes(library.from_dlpack(array).cpu().numpy().tobytes())
    pytest.skip("neither PyTorch nor CuPy is installed")


@every_case
def test_read_device(case: Case, stored: Callable[[Case, bytes], Path]) -> None:
    plain = paint(40 * min(case.chunk, 100_000))
    with formats.open(stored(case, plain), case.key, options=case.options) as file:
        for offset, length in ((0, len(plain)), (17, len(plain) // 3), (len(plain) - 1, 1)):
            array = file.read_device(offset, length)
            assert len(array) == length
            assert to_host(array) == plain[offset:][:length]
        assert len(file.read_device(5, 0)) == 0
        assert file.tell() == 0


@every_case
def test_a_bad_tag_wipes_the_array(
    library: Any, case: Case, stored: Callable[[Case, bytes], Path]
) -> None:
    plain = paint(40 * min(case.chunk, 100_000))
    path = stored(case, plain)
    sealed = bytearray(path.read_bytes())
    starts = case.chunk_starts(bytes(sealed))
    sealed[starts[len(starts) // 2]] ^= 1
    path.write_bytes(sealed)
    array = library.put(b"\xa5" * len(plain))
    with formats.open(path, case.key, options=case.options) as file:
        with pytest.raises(wc.InvalidTag, match=f"chunk {len(starts) // 2} failed"):
            file.readinto(array)
        assert file.tell() == 0
        with pytest.raises(wc.InvalidTag):
            file.read_device(0, len(plain))
    assert library.get(array) == bytes(len(plain))


def test_a_file_that_shrinks(library: Any, stored: Callable[[Case, bytes], Path]) -> None:
    case = CASES[1]
    path = stored(case, paint(1 << 20))
    array = library.put(b"\xa5" * (1 << 20))
    with formats.open(path, case.key, options=case.options) as file:
        with path.open("r+b") as writable:
            writable.truncate(1 << 19)
        with pytest.raises(formats.FormatError, match=f"ended at byte {1 << 19}"):
            file.readinto(array)
    assert library.get(array) == bytes(1 << 20)


def test_columns(library: Any, tmp_path: Path) -> None:
    key, count, size = bytes(range(32)), 300, 5000
    texts = [i.to_bytes(4, "little") * (size // 4) for i in range(count)]
    ivs = b"".join(i.to_bytes(12, "little") for i in range(count))
    sealed = [
        AESGCM(key).encrypt(ivs[12 * i : 12 * i + 12], text, b"aad") for i, text in enumerate(texts)
    ]
    path = tmp_path / "chunks"
    path.write_bytes(b"".join(text[:-16] for text in sealed))
    array = library.put(b"\xa5" * (count * size))
    with path.open("rb") as file:
        for threads, piece_size in ((0, 0), (1, 20_000), (3, 1)):
            formats.read_chunks(
                file.fileno(),
                "aes-256-gcm",
                key,
                array,
                offsets=[size * i for i in range(count)],
                lengths=[size] * count,
                ivs=ivs,
                tags=b"".join(text[-16:] for text in sealed),
                aad=b"aad",
                threads=threads,
                piece_size=piece_size,
            )
            assert library.get(array) == b"".join(texts)


def test_raw_files_are_refused(library: Any) -> None:
    options = formats.Options(algorithm="aes-128-ctr", iv=bytes(16))
    with (
        formats.open(io.BytesIO(bytes(99)), bytes(16), format="raw", options=options) as file,
        pytest.raises(ValueError, match="does not authenticate its parts"),
    ):
        file.readinto(library.put(bytes(99)))


def test_several_threads(stored: Callable[[Case, bytes], Path]) -> None:
    case = CASES[0]
    plain = paint(2 << 20)
    with formats.open(stored(case, plain), case.key, options=case.options) as file:
        arrays: dict[int, Any] = {}

        def read(i: int) -> None:
            arrays[i] = file.read_device(1000 * i, 1 << 20)

        threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i in range(8):
        assert to_host(arrays[i]) == plain[1000 * i :][: 1 << 20]


SEARCH = """
import sys
import warpcipher as wc
from memory_search import count
from warpcipher import formats

key, path, halves = bytes(range(32)), sys.argv[1], sys.argv[2:]
with formats.open(path, key) as file:
    array = file.read_device(100, file.raw.size - 100)
needle = b"".join(half.encode() for half in halves)
# The control, which must be found: memory as that of the slots. Written copy by copy: no other
# memory has two in a row.
other = needle[::-1]
control = wc.pinned(1000 * len(other))
with memoryview(control) as view:
    for place in range(0, len(view), len(other)):
        view[place : place + len(other)] = other
print(count(needle * 4), count(other * 4), int(control.page_locked), len(array))
"""


def test_no_plaintext_in_host_memory(tmp_path: Path) -> None:
    """A search of the whole memory of a process that read a file, page-locked slots included. The
    search itself holds the needle once; the file repeats it."""
    halves = ("no memory of the host ", "holds this plaintext; ")
    plain = "".join(halves).encode() * 50_000
    path = tmp_path / "file"
    with path.open("wb") as out:
        formats.encrypt_stream(io.BytesIO(plain), out, bytes(range(32)))
    run = subprocess.run(
        [sys.executable, "-c", SEARCH, str(path), *halves],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found, controls, page_locked, size = map(int, run.stdout.split())
    assert size == len(plain) - 100
    assert page_locked
    assert controls > 200, "the search reaches page-locked memory: 250, apart from its own edges"
    assert found < 100, "the search itself; the file would be thousands"


EXIT = """
import sys, threading, time
from array import array
import warpcipher as wc
from warpcipher import formats
key, nonce, size, count = bytes(16), bytes(12), 1 << 20, 1 << 10
begun = threading.Event()
sealed = wc.aead.AESGCM(key, engine="cpu").encrypt(nonce, bytes(size), None)
out = LIBRARY
def read():
    while True:
        formats.read_chunks(sealed, "aes-128-gcm", key, out, offsets=array("Q", bytes(8 * count)),
                            lengths=array("Q", [size]) * count, ivs=nonce * count)
        begun.set()
threading.Thread(target=read, daemon=True).start()
assert begun.wait(100)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="takes memory from PyTorch")
def test_the_interpreter_does_not_wait_for_a_daemon_that_reads_to_a_device() -> None:
    """The thread that reads is stopped with a piece that others wait for. Processes side by side,
    each at another moment of one of its calls: to import PyTorch takes most of the time."""
    code = EXIT.replace("LIBRARY", 'torch.empty(size * count, dtype=torch.uint8, device="cuda")')
    started = [
        subprocess.Popen(
            [sys.executable, "-c", "import torch" + code, str(seconds)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seconds in (0.2, 0.21, 0.23)
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=120)
            assert (process.returncode, errors) == (0, "")
    finally:
        for process in started:
            process.kill()
            process.wait()
