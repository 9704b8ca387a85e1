# SPDX-License-Identifier: Apache-2.0
"""Which objects a job takes: by name, size and age, with rclone's names and patterns."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from .places import Item

_UNITS_OF_SIZE = {unit: 1024**power for power, unit in enumerate("BKMGTP")}
_UNITS_OF_AGE = {
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "w": 7 * 86400,
    "M": 30 * 86400,
    "y": 365 * 86400,
}


def parse_size(text: str) -> int:
    """Bytes of `10M`, `1.5G`, `0B`: powers of 1024. Raises ValueError.

    >>> parse_size("64K")
    65536
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([BKMGTP])(?:iB)?", text, re.IGNORECASE)
    if match is None:
        raise ValueError(
            f"{text!r} is not a size: expected a number with a unit, such as 64K or 1G"
        )
    return int(float(match[1]) * _UNITS_OF_SIZE[match[2].upper()])


def parse_age(text: str) -> float:
    """Seconds of `90s`, `1h30m`, `7d`, `2w`, `3M`, `1y`. Raises ValueError.

    >>> parse_age("1h30m")
    5400.0
    """
    if not re.fullmatch(r"(\d+(\.\d+)?[smhdwMy])+", text):
        raise ValueError(
            f"{text!r} is not an age: expected numbers with their units, such as 12h, 7d or 1h30m"
        )
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhdwMy])", text)
    return sum(float(number) * _UNITS_OF_AGE[unit] for number, unit in parts)


def pattern(glob: str) -> re.Pattern[str]:
    """The names that a pattern matches: `*` and `?` stand for no "/", `**` for anything, `{a,b}`
    for one of several, `[a-z]` for one character. A pattern that begins with "/" matches from the
    first part of a name on, another one from any part on; one that ends in "/" takes all below.
    Raises ValueError.

    >>> bool(pattern("*.jpg").search("2024/a.jpg")), bool(pattern("/*.jpg").search("2024/a.jpg"))
    (True, False)
    """
    text = glob + "**" if glob.endswith("/") else glob
    made, depth, at = "", 0, 1 if text.startswith("/") else 0
    signs = re.compile(r"\*\*|\\.|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
    for sign in signs.findall(text[at:]):
        if sign == "**":
            made += ".*"
        elif sign == "*":
            made += "[^/]*"
        elif sign == "?":
            made += "[^/]"
        elif len(sign) > 1 and sign[0] == "[":
            inside = sign[1:-1].replace("\\", "\\\\")
            made += f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
        elif sign == "{":
            made, depth = made + "(?:", depth + 1
        elif sign == "}" and depth:
            made, depth = made + ")", depth - 1
        elif sign == "," and depth:
            made += "|"
        else:
            made += re.escape(sign[-1])
    try:
        return re.compile((r"\A" if at else r"(?:\A|/)") + f"(?:{made})" + r"\Z", re.DOTALL)
    except re.error as error:
        raise ValueError(f"{glob!r} is not a pattern of names: {error}") from None


@dataclass(frozen=True)
class Filter:
    """include: patterns of which a name must match one, if any are given; exclude: of which it
    must match none. min_size, max_size: bytes; min_age, max_age: seconds since the object was
    modified, at the time `now`, nanoseconds since 1970."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    min_size: int | None = None
    max_size: int | None = None
    min_age: float | None = None
    max_age: float | None = None
    now: int = field(default_factory=time.time_ns)

    def takes(self, item: Item) -> bool:
        """Whether the job takes an object."""
        age = (self.now - item.modified) / 1e9
        return (
            (not self.include or any(one.search(item.name) for one in self.include))
            and not any(one.search(item.name) for one in self.exclude)
            and (self.min_size is None or item.size >= self.min_size)
            and (self.max_size is None or item.size <= self.max_size)
            and (self.min_age is None or age >= self.min_age)
            and (self.max_age is None or age <= self.max_age)
        )
