# SPDX-License-Identifier: Apache-2.0
"""Which rows a run has: the product of its settings, less what makes no sense or does not fit. And
their calls: the package's public ones, on memory or on files, checked first."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import warpcipher as wc
from warpcipher import formats
from warpcipher.formats.raw import whole_limit

from . import _native, memory
from .machine import available_memory
from .results import LeftOut, Machine
from .settings import AUTO, MESSAGE, Effective, shown_size

if TYPE_CHECKING:
    from warpcipher._types import Direction

TAG_SIZE = 16
PLACES = {"device": ("device", "pinned", "pageable"), "host": ("pageable",)}
"""Where data lie unless that is said, for engines of each memory."""
CHECKED_SIZE = 16 << 10
FILE_FILLING = 4 << 20


@dataclass(frozen=True)
class Case:
    """One row to be. message: bytes of each message, the last may be shorter."""

    algorithm: wc.AlgorithmInfo
    direction: Direction
    size: int
    message: int
    residence: str
    engine: wc.EngineInfo

    @property
    def lengths(self) -> list[int]:
        """Bytes of text of each message."""
        whole, rest = divmod(self.size, self.message)
        return [self.message] * whole + ([rest] if rest else [])

    @property
    def sealed_size(self) -> int:
        """Bytes of all ciphertexts, tags included."""
        return self.size + (TAG_SIZE * len(self.lengths) if self.algorithm.is_aead else 0)

    @property
    def shown(self) -> str:
        return f"{self.algorithm.name} {self.direction} {shown_size(self.size)}"

    def left_out(self, reason: str) -> LeftOut:
        return LeftOut(f"{self.shown} {self.residence} {self.engine.name}", reason)


Group = list[Case]
"""Cases that differ only in size, the smallest first."""


def make(settings: Effective, machine: Machine) -> tuple[list[Group], list[LeftOut]]:
    """The cases in groups, one engine and residence after the other; and cases left out."""
    engines = {entry.name: entry for entry in wc.engines()}
    engines[AUTO] = _automatic(engines)
    groups: list[Group] = []
    skipped: list[LeftOut] = []

    def leave_out(reason: str, *what: str) -> bool:
        """Whether there is a reason."""
        if reason:
            skipped.append(LeftOut(" ".join(what), reason))
        return reason != ""

    if "cuda" not in settings.engines and not engines["cuda"].usable:
        leave_out(f"needs a GPU: {machine.without_gpu}", "cuda")
    for engine in (engines[name] for name in settings.engines):
        for residence in settings.residences or PLACES[engine.memory]:
            place = residence, engine.name
            if leave_out(_refuse_place(engine, residence, machine), *place):
                continue
            offered = engines["cuda"] if residence == "device" else engine
            for name in settings.algorithms:
                lacking = "" if name in offered.algorithms else f"the engine does not offer {name}"
                if leave_out(lacking, name, *place):
                    continue
                info = wc.find_algorithm(name)
                for direction in cast("tuple[Direction, ...]", settings.directions):
                    group: Group = []
                    for size in settings.sizes:
                        message = message_size(info, direction, size, settings.message)
                        case = Case(info, direction, size, message, residence, engine)
                        if not leave_out(_refuse_size(case, settings, machine), case.shown, *place):
                            group.append(case)
                    groups.append(group)
    return [group for group in groups if group], skipped


def _automatic(engines: dict[str, wc.EngineInfo]) -> wc.EngineInfo:
    """`auto` as a run sees it: an engine that takes data wherever one of the others does."""
    device = engines["cuda"].usable
    offered = engines["cpu"].algorithms
    return wc.EngineInfo(AUTO, "as chosen", True, "", "device" if device else "host", (), offered)


def works_on_gpu(engine: wc.EngineInfo, residence: str) -> bool:
    """Whether the GPU does the work. Where `auto` takes data of the host is its own affair."""
    return engine.memory == "device" and (engine.name != AUTO or residence == "device")


def message_size(info: wc.AlgorithmInfo, direction: str, size: int, asked: int | None) -> int:
    """Bytes of each message of a text: as asked, else the whole where its blocks run in parallel;
    but XTS is cut into sectors. In files it is always whole."""
    parallel = getattr(info, f"parallel_{direction}")
    if asked is None:
        asked = size if parallel and not info.name.endswith("-xts") else MESSAGE
    return min(asked, size)


def any_iv(info: wc.AlgorithmInfo) -> bytes:
    """A random IV, empty for algorithms that take none. ChaCha20 begins with its first block: its
    counter does not wrap."""
    iv = os.urandom(info.iv_size)
    return bytes(4) + iv[4:] if info.name == "chacha20" else iv


def cache_bytes(residence: str, machine: Machine) -> int:
    """The cache that slots have to exceed."""
    if residence == "device" and machine.gpu is not None:
        return machine.gpu.l2_bytes
    return machine.cpu.cache_bytes


def _refuse_place(engine: wc.EngineInfo, residence: str, machine: Machine) -> str:
    """Why an engine cannot work on data there; empty when it can."""
    if residence == "device" and engine.memory == "host":
        return f"engine {engine.name} runs on host memory"
    if residence == "pinned" and machine.gpu is None:
        return f"page-locked memory needs a GPU: {machine.without_gpu}"
    return ""


def _refuse_size(case: Case, settings: Effective, machine: Machine) -> str:
    """Why the case cannot be measured here; empty when it can."""
    info = case.algorithm
    if info.whole_blocks and any(length % info.block_size for length in set(case.lengths)):
        return f"{info.name} takes whole blocks of {info.block_size} bytes"
    if min(case.lengths) < info.least_size:
        return f"{info.name} takes messages of {info.least_size} bytes or more"
    if max(case.lengths) > info.most_size:
        return f"{info.name} takes messages of {shown_size(info.most_size)} at most"
    if case.residence == "file":
        return _refuse_file(case, settings)
    needed = 2 * memory.capacity_of(case.sealed_size, cache_bytes(case.residence, machine))
    free, where = available_memory(), "host"
    if case.residence == "device":
        free, where = machine.gpu.free_bytes if machine.gpu else 0, "GPU"
    # The rest is for descriptors, for what the engine stages, and for everybody else.
    if needed > 0.8 * free:
        return f"needs {needed} bytes of {where} memory, {free} are free"
    return ""


def _refuse_file(case: Case, settings: Effective) -> str:
    limit = whole_limit(case.algorithm)
    if limit is not None and case.size > limit:
        return f"format raw takes up to {shown_size(limit)} of {case.algorithm.name}"
    if settings.message is not None and settings.message < case.size:
        return "a file is one message: leave --message out"
    free = shutil.disk_usage(settings.folder).free
    if 3 * case.size > 0.9 * free:
        return f"needs {3 * case.size} bytes in {settings.folder}, {free} are free"
    return ""


# --- calls ----------------------------------------------------------------------------------------


class Call:
    """An algorithm with a key, run on slots of an arena."""

    def __init__(self, case: Case, slots: memory.Slots, stream: _native.WorkStream | None) -> None:
        info = case.algorithm
        self._case = case
        self._key = wc.Key(info.name, os.urandom(info.key_size))
        self._cipher = wc.Cipher(info.name, self._key, engine=case.engine.name)
        self._stream = stream.pointer if stream and case.residence == "device" else None
        self._ivs = b"".join(any_iv(info) for _ in case.lengths) or None
        tag_size = TAG_SIZE if info.is_aead else 0
        self._lengths = {
            "encrypt": array("Q", case.lengths),
            "decrypt": array("Q", [length + tag_size for length in case.lengths]),
        }
        self.sizes = case.size, case.sealed_size  # of source and target
        if case.direction == "decrypt":
            self.sizes = case.sealed_size, case.size
        source, target = self.sizes
        self._pairs = [(slots.text(i, source), slots.result(i, target)) for i in range(slots.count)]
        if case.direction == "decrypt" and info.is_aead:
            for sealed, text in self._pairs:  # texts become ciphertexts with good tags
                self._columns("encrypt", text, sealed)

    def run(self, slot: int) -> object:
        """One call on the buffers of a slot."""
        source, target = self._pairs[slot]
        case = self._case
        if case.message < case.size:
            return self._columns(case.direction, source, target)
        method = self._cipher.encrypt if case.direction == "encrypt" else self._cipher.decrypt
        return method(source, iv=self._ivs, out=target, stream=self._stream)

    def _columns(self, direction: Direction, source: Any, target: Any) -> wc.Columns[Any]:
        return wc.run_columns(
            self._case.algorithm.name,
            direction,
            self._key,
            source,
            lengths=self._lengths[direction],
            ivs=self._ivs,
            out=target,
            engine="reference" if target is None else self._case.engine.name,
            stream=None if target is None else self._stream,
        ).raise_for_status()

    def of_reference(self, text: bytes) -> bytes:
        """The `reference` engine's result for the text of a slot."""
        return bytes(self._columns(self._case.direction, text, None).out)


def check(case: Case, arena: memory.Arena, stream: _native.WorkStream | None) -> None:
    """Compares what the engine gives for a short text like the case's with the reference.
    EngineError where they differ."""
    size = min(case.size, CHECKED_SIZE)
    short = replace(case, size=size, message=min(case.message, size))
    one = memory.Slots(arena.texts, arena.results, short.sealed_size, 0)
    call = Call(short, one, stream)
    text = arena.texts.read(call.sizes[0])
    call.run(0)
    if arena.results.read(call.sizes[1]) != call.of_reference(text):
        raise wc.EngineError(
            f"engine {case.engine.name} gives a wrong result for {short.shown} in "
            f"{case.residence} memory: nothing of it is worth measuring"
        )


def on_files(case: Case, folder: str) -> Callable[[], None]:
    """A call that encrypts or decrypts a file to another, in format raw, without padding."""
    info = case.algorithm
    plain, sealed, opened = (Path(folder, name) for name in ("plain", "sealed", "opened"))
    with plain.open("wb") as file:
        for start in range(0, case.size, FILE_FILLING):
            file.write(os.urandom(min(FILE_FILLING, case.size - start)))
    key = os.urandom(info.key_size)
    how: Any = {"algorithm": info.name, "padding": "none" if info.takes_padding else "auto"}
    options = formats.Options(engine=case.engine.name, iv=any_iv(info) or None, **how)

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
