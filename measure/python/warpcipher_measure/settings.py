# SPDX-License-Identifier: Apache-2.0
"""The settings of `bench` and of `lab`, their defaults, how sizes are written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

import warpcipher as wc
from warpcipher.arguments import parse_size

DIRECTIONS = ("encrypt", "decrypt")
RESIDENCES = ("device", "pinned", "pageable", "file")
"""Where text and result lie. pinned: page-locked host memory."""
PEERS = ("openssl", "pyca")
AUTO = "auto"
"""The engine that the library would choose. It is measured only when it is asked for."""

ALGORITHMS = ("aes-128-ctr", "aes-256-gcm", "aes-256-xts", "des-ede3-ecb")
"""The default algorithms: a stream, an AEAD, a disk, and the legacy of archives."""
SIZES = (16, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30)
QUICK_SIZES = (16, 64 << 10)
RANGE_STEP = 4
LARGEST_SIZE = 8 << 30

MESSAGE = 4096
"""Where one message cannot fill an engine the text is cut: XTS in disk sectors, and directions
whose blocks wait for each other, into messages of this size."""


@dataclass(frozen=True)
class Settings:
    """One run. Empty tuples stand for the defaults.

    algorithms:  names of `warpcipher.algorithms()`; () for ALGORITHMS.
    directions:  of DIRECTIONS.
    sizes:       bytes of text; () for SIZES, or QUICK_SIZES when quick.
    residences:  of RESIDENCES; () for each engine the memories that it is made for.
    engines:     names of `warpcipher.engines()`, or "auto"; () for all that run but `reference`.
    message:     bytes of a message, of which the text is made; None: one message where the blocks
                 of one run in parallel, else MESSAGE.
    repetitions: timed repetitions of each row; fewer, but three, when they take too long.
    row_seconds: the time of a row. Sizes that would take longer, judged by the size before, are
                 left out and reported.
    device:      the GPU's number.
    folder:      for files; None: the system's folder for temporary files.
    against:     of PEERS, or None.
    quick:       small sizes, three short repetitions: to try the command, not to quote.
    """

    algorithms: tuple[str, ...] = ()
    directions: tuple[str, ...] = ("encrypt",)
    sizes: tuple[int, ...] = ()
    residences: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    message: int | None = None
    repetitions: int | None = None
    row_seconds: float | None = None
    device: int = 0
    folder: str | None = None
    against: str | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        against = () if self.against is None else (self.against,)
        for what, given, known in (
            ("direction", self.directions, DIRECTIONS),
            ("residence", self.residences, RESIDENCES),
            ("against", against, PEERS),
        ):
            for name in given:
                if name not in known:
                    raise ValueError(f"{what} is {name!r}: expected {' or '.join(known)}")
        if not self.directions:
            raise ValueError("no direction: give encrypt or decrypt")
        for size in self.sizes:
            if not 1 <= size <= LARGEST_SIZE:
                raise ValueError(f"size is {size} bytes: expected 1 to 8GiB")
        if self.message is not None and self.message < 1:
            raise ValueError(f"message is {self.message} bytes: expected 1 or more")
        _check_run(self.repetitions, self.device)
        if self.row_seconds is not None and not self.row_seconds > 0:
            raise ValueError(f"row-seconds is {self.row_seconds}: expected more than 0")

    def effective(self) -> Effective:
        """These settings with defaults filled in. ValueError: an unknown algorithm. EngineError: an
        engine that was asked for is unknown or cannot run."""
        for name in self.algorithms:
            wc.find_algorithm(name)
        quick = self.quick
        filled = {
            "algorithms": tuple(dict.fromkeys(self.algorithms or ALGORITHMS)),
            "directions": tuple(dict.fromkeys(self.directions)),
            "sizes": tuple(sorted(set(self.sizes or (QUICK_SIZES if quick else SIZES)))),
            "residences": tuple(dict.fromkeys(self.residences)),
            "engines": _usable(self.engines),
            "repetitions": repetitions_of(self.repetitions, quick),
            "row_seconds": self.row_seconds or (0.2 if quick else 1.5),
            "folder": self.folder or tempfile.gettempdir(),
        }
        return Effective(**{**vars(self), **filled}, least_seconds=0.0005 if quick else 0.005)


@dataclass(frozen=True, kw_only=True)
class Effective(Settings):
    """The settings with every default filled in; a report holds them.

    least_seconds: a repetition is as many calls as take this long.
    """

    repetitions: int
    row_seconds: float
    folder: str
    least_seconds: float


@dataclass(frozen=True)
class LabSettings:
    """One run of a paper.

    quick:       small sizes and few repetitions: to try the command, not to quote.
    device:      the GPU's number.
    repetitions: timed repetitions of each figure; None: 7, or 3 when quick.
    values:      of the paper's parameters, by name.
    """

    quick: bool = False
    device: int = 0
    repetitions: int | None = None
    values: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_run(self.repetitions, self.device)


def _check_run(repetitions: int | None, device: int) -> None:
    if repetitions is not None and repetitions < 1:
        raise ValueError(f"repetitions is {repetitions}: expected 1 or more")
    if device < 0:
        raise ValueError(f"device is {device}: GPUs are numbered from 0")


def repetitions_of(asked: int | None, quick: bool) -> int:
    """Timed repetitions of a figure."""
    return asked or (3 if quick else 7)


def _usable(asked: tuple[str, ...]) -> tuple[str, ...]:
    engines = {entry.name: entry for entry in wc.engines()}
    for name in asked:
        if name != AUTO and name not in engines:
            raise wc.EngineError(f"no engine {name!r}: there are {', '.join((*engines, AUTO))}")
        if name != AUTO and not engines[name].usable:
            raise wc.EngineError(f"engine {name!r} cannot run here: {engines[name].reason}")
    usable = (it.name for it in engines.values() if it.usable and it.name != "reference")
    return tuple(dict.fromkeys(asked or usable))


def parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes as the command takes them: "16", "64KiB", "1.5GB", or a range in steps of 4, such as
    "16..1GiB". ValueError for anything else."""
    first, dots, last = text.partition("..")
    if not dots:
        return (parse_size(text),)
    size, end = parse_size(first), parse_size(last)
    if size > end:
        raise ValueError(f"size is {text!r}: a range goes from the smaller to the larger")
    sizes = []
    while size < end:
        sizes.append(size)
        size *= RANGE_STEP
    return (*sizes, end)


def shown_size(size: int) -> str:
    """A size in the largest binary unit that it is a whole number of: 16 B, 64 KiB, 1 GiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size % 1024**power == 0:
            return f"{size // 1024**power} {unit}"
    return f"{size} B"
