# SPDX-License-Identifier: Apache-2.0
"""The calls of one case: the package's public ones, on memory or on files, checked first."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warpcipher as wc
from warpcipher import formats

from . import _native
from .cases import TAG_SIZE, Case, any_iv
from .memory import Arena, Slots

if TYPE_CHECKING:
    from warpcipher._types import Direction

CHECKED_SIZE = 16 << 10
FILE_FILLING = 4 << 20


class Call:
    """An algorithm with a key, run on slots of an arena."""

    def __init__(self, case: Case, slots: Slots, stream: _native.WorkStream | None) -> None:
        info = case.algorithm
        self._case = case
        self._slots = slots
        self._key = wc.Key(info.name, os.urandom(info.key_size))
        on_device = case.residence == "device" and stream is not None
        self._stream = stream.pointer if on_device and stream is not None else None
        tag_size = TAG_SIZE if info.is_aead else 0
        lengths = array("Q", case.lengths)
        self._lengths = {
            "encrypt": lengths,
            "decrypt": array("Q", [length + tag_size for length in lengths]),
        }
        self._ivs = b"".join(any_iv(info) for _ in lengths) or None
        self._pairs = [self._places(slot) for slot in range(slots.count)]
        if case.direction == "decrypt" and info.is_aead:
            for slot in range(slots.count):  # texts become ciphertexts with good tags
                sealed, text = self._pairs[slot]
                self._run("encrypt", text, sealed)
        self._cipher = wc.Cipher(info.name, self._key, engine=case.engine.name)
        self._whole = case.message >= case.size

    def _places(self, slot: int) -> tuple[Any, Any]:
        """Where a slot's input and output lie."""
        plain, sealed = self._case.size, self._case.sealed_size
        if self._case.direction == "encrypt":
            return self._slots.text(slot, plain), self._slots.result(slot, sealed)
        return self._slots.text(slot, sealed), self._slots.result(slot, plain)

    def run(self, slot: int) -> object:
        """One call on the buffers of a slot."""
        source, target = self._pairs[slot]
        direction = self._case.direction
        if not self._whole:
            return self._run(direction, source, target)
        method = self._cipher.encrypt if direction == "encrypt" else self._cipher.decrypt
        return method(source, iv=self._ivs, out=target, stream=self._stream)

    def _run(self, direction: Direction, source: Any, target: Any) -> wc.Columns[Any]:
        return wc.run_columns(
            self._case.algorithm.name,
            direction,
            self._key,
            source,
            lengths=self._lengths[direction],
            ivs=self._ivs,
            out=target,
            engine=self._case.engine.name,
            stream=self._stream,
        ).raise_for_status()

    def check(self, arena: Arena) -> None:
        """Runs slot 0 and compares with the `reference` engine. EngineError where they differ."""
        source, target = self._pairs[0]
        text = arena.read(source)
        self.run(0)
        found = arena.read(target)
        expected = wc.run_columns(
            self._case.algorithm.name,
            self._case.direction,
            self._key,
            text,
            lengths=self._lengths[self._case.direction],
            ivs=self._ivs,
            engine="reference",
        ).raise_for_status()
        if found != bytes(expected.out):
            raise wc.EngineError(
                f"engine {self._case.engine.name} gives a wrong result for {self._case.shown} in "
                f"{self._case.residence} memory: nothing of it is worth measuring"
            )


def check(case: Case, arena: Arena, stream: _native.WorkStream | None) -> None:
    """Compares what the engine gives for a short text like the case's with the reference."""
    size = min(case.size, CHECKED_SIZE)
    short = replace(case, size=size, message=min(case.message, size))
    Call(short, arena.slots(short.sealed_size), stream).check(arena)


def on_files(case: Case, folder: str) -> Callable[[], None]:
    """A call that encrypts or decrypts a file to another, in format raw, without padding."""
    info = case.algorithm
    plain, sealed, opened = (Path(folder, name) for name in ("plain", "sealed", "opened"))
    with plain.open("wb") as file:
        for start in range(0, case.size, FILE_FILLING):
            file.write(os.urandom(min(FILE_FILLING, case.size - start)))
    key = os.urandom(info.key_size)
    options = formats.Options(
        engine=case.engine.name,
        algorithm=info.name,
        iv=any_iv(info) or None,
        padding="none" if info.takes_padding else "auto",
    )

    def run(do: Callable[..., object], source: Path, target: Path) -> None:
        with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
            do(reader, writer, key, format="raw", options=options)

    encrypt = partial(run, formats.encrypt_stream, plain, sealed)
    decrypt = partial(run, formats.decrypt_stream, sealed, opened)
    encrypt()
    decrypt()
    if opened.read_bytes() != plain.read_bytes():
        raise wc.EngineError(f"{case.shown}: the file that was encrypted does not come back")
    return encrypt if case.direction == "encrypt" else decrypt
