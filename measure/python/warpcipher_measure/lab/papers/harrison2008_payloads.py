# SPDX-License-Identifier: Apache-2.0
"""Payloads of Harrison 2008: many messages in one run, through the paper's mapping of threads and
through the product's batches. Each is checked and timed here, for the figures."""

from __future__ import annotations

import os
import struct
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import warpcipher as wc

from ...bench.results import Spread
from ..session import CHECKED, Session

if TYPE_CHECKING:
    from warpcipher._types import AlgorithmName

NAME = "harrison2008"
ENGINE = "cuda"  # of the product
DIRECT, STRIPED, PRODUCT = "payload-direct", "payload-striped", "warpcipher"
HARD_CODED = "ctr-quad-shared"


@dataclass(frozen=True)
class Message:
    """blocks: of 16 bytes, with padding. serial: CBC encryption, else CTR. key: its number.
    padding: bytes of it, which the GPU adds; the text lacks a block where they fill one."""

    blocks: int
    serial: bool = False
    key: int = 0
    padding: int = 0

    @property
    def text_size(self) -> int:
        """Bytes of a payload's text that are the message's: whole blocks."""
        return 16 * (self.blocks - (self.padding == 16))


def described(messages: Sequence[Message]) -> bytes:
    """As the jobs take messages (lab/harrison2008_payload.hpp), each with a random IV."""
    ivs = os.urandom(16 * len(messages))
    header = cache(
        lambda message: struct.pack(
            "=4I", message.blocks, message.serial, message.key, message.padding
        )
    )
    return b"".join(
        header(message) + ivs[16 * i : 16 * i + 16] for i, message in enumerate(messages)
    )


def streams_size(messages: int, keys: int) -> int:
    """Bytes of a payload's streams: descriptors, key schedules, logical thread index."""
    return 44 * messages + 176 * keys


def check(session: Session, variant: str) -> str:
    """A payload of both modes, many lengths and some keys, against the reference engine."""
    keys = [os.urandom(16) for _ in range(3)]
    messages = [Message(1 + 37 * i % 70, i % 3 == 0, i % 3, i % 17) for i in range(50)]
    payload = described(messages)
    text = os.urandom(sum(message.text_size for message in messages))
    job = session.job(variant, b"".join(keys), payload, multiprocessors=2)
    got = session.result(variant, job, text, 16 * sum(message.blocks for message in messages))
    start = start_there = 0
    for i, message in enumerate(messages):
        end, end_there = start + message.text_size, start_there + 16 * message.blocks
        padding = bytes([message.padding]) * message.padding
        whole = text[start:end][: 16 * message.blocks - message.padding] + padding
        algorithm: AlgorithmName = "aes-128-cbc" if message.serial else "aes-128-ctr"
        cipher = wc.Cipher(algorithm, keys[message.key], engine="reference")
        expected = cipher.encrypt(whole, iv=payload[32 * i + 16 : 32 * i + 32])
        if got[start_there:end_there] != expected:
            raise wc.EngineError(f"variant {variant!r} of {NAME} is wrong for message {i}")
        start, start_there = end, end_there
    return CHECKED


class Runner:
    """Payloads on the GPU, the same text again and again."""

    def __init__(self, session: Session, size: int) -> None:
        self._session = session
        self.source = session.memory(STRIPED, size)
        self.target = session.memory(STRIPED, size)
        gpu = session.machine.gpu
        self._multiprocessors = gpu.multiprocessors if gpu is not None else 1
        for variant in (DIRECT, STRIPED):
            check(session, variant)
        for serial in (False, True):
            self._check_product(serial=serial)

    def paper(self, messages: Sequence[Message], keys: int, variant: str = STRIPED) -> Spread:
        """Seconds of serialisation, its copy to the GPU and the kernel."""
        text_size = sum(message.text_size for message in messages)
        size = 16 * sum(message.blocks for message in messages)
        job = self._session.job(
            variant,
            os.urandom(16 * keys),
            described(messages),
            multiprocessors=self._multiprocessors,
        )
        seconds = self._session.time(
            lambda: self._session.run(job, self.source, text_size, self.target, size),
            on_device=False,
        )
        self._add(variant, messages, keys, seconds)
        return seconds

    def product(self, blocks: int, count: int, keys: int, *, serial: bool) -> Spread:
        """Seconds of `run_columns`, for messages of one length."""
        call = self._columns(
            blocks, [os.urandom(16) for _ in range(keys)], os.urandom(16 * count), serial=serial
        )
        seconds = self._session.time(call, on_device=False)
        self._add(PRODUCT, [Message(blocks, serial)] * count, keys, seconds)
        return seconds

    def _columns(
        self, blocks: int, keys: list[bytes], ivs: bytes, *, serial: bool
    ) -> Callable[[], object]:
        count = len(ivs) // 16
        algorithm: AlgorithmName = "aes-128-cbc" if serial else "aes-128-ctr"
        size = 16 * blocks * count
        made = [wc.Key(algorithm, key) for key in keys]
        lengths = array("Q", [16 * blocks]) * count
        key_index = array("Q", (i % len(keys) for i in range(count)))
        source, target = self.source.view(0, size), self.target.view(0, size)
        stream = self._session.need_stream().pointer
        return lambda: wc.run_columns(
            algorithm,
            "encrypt",
            made,
            source,
            lengths=lengths,
            key_index=key_index,
            ivs=ivs,
            out=target,
            engine=ENGINE,
            stream=stream or None,
        )

    def _check_product(self, *, serial: bool) -> None:
        blocks, count = 5, 7
        keys, ivs = [os.urandom(16) for _ in range(3)], os.urandom(16 * count)
        text = os.urandom(16 * blocks * count)
        self._session.write(self.source, text)
        self._columns(blocks, keys, ivs, serial=serial)()
        self._session.wait()
        got = self._session.read(self.target, len(text))
        for i in range(count):
            part = slice(16 * blocks * i, 16 * blocks * (i + 1))
            cipher = wc.Cipher(
                "aes-128-cbc" if serial else "aes-128-ctr", keys[i % 3], engine="reference"
            )
            if got[part] != cipher.encrypt(text[part], iv=ivs[16 * i : 16 * i + 16]):
                raise wc.EngineError(f"{PRODUCT} is wrong for message {i}")

    def batch(self, messages: Sequence[Message], repetitions: int) -> Spread:
        """Seconds of `Batch.run`, for messages of both modes under one key."""
        keys = {name: wc.Key(name, os.urandom(16)) for name in ("aes-128-cbc", "aes-128-ctr")}
        stream = self._session.need_stream().pointer
        times = []
        for _ in range(repetitions + 1):
            batch = wc.Batch(ENGINE)
            start = 0
            for message in messages:
                name: AlgorithmName = "aes-128-cbc" if message.serial else "aes-128-ctr"
                length = 16 * message.blocks
                batch.add(
                    name,
                    "encrypt",
                    keys[name],
                    self.source.view(start, length),
                    iv=os.urandom(16),
                    out=self.target.view(start, length),
                )
                start += length
            begin = time.perf_counter()
            batch.run(stream=stream or None)
            self._session.wait()
            times.append(time.perf_counter() - begin)
        seconds = Spread.of(times[1:])  # the first makes what later ones find
        self._add(PRODUCT, messages, 1, seconds)
        return seconds

    def _add(self, name: str, messages: Sequence[Message], keys: int, seconds: Spread) -> None:
        self._session.add(
            name,
            16 * sum(message.blocks for message in messages),
            seconds,
            CHECKED,
            residence="device",
            messages=len(messages),
            keys=keys,
            blocks=max(message.blocks for message in messages),
            padding=max(message.padding for message in messages),
        )


def serialisation(
    session: Session, messages: Sequence[Message], keys: int = 1, /, **parameters: int
) -> Spread:
    """Times the streams of a payload on one CPU thread; `parameters` tell the measurement apart."""
    size = streams_size(len(messages), keys)
    job = session.job("serialise", os.urandom(16 * keys), described(messages))
    target = session.memory("serialise", size)
    seconds = session.time(lambda: session.run(job, target, 0, target, size), on_device=False)
    session.add(
        "serialise",
        len(messages),
        seconds,
        "what payloads make of it",
        residence="host",
        unit="messages",
        **parameters,
    )
    return seconds
