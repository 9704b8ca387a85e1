# SPDX-License-Identifier: Apache-2.0
"""Reads machine code as `cuobjdump -sass` prints it, for whoever counts or follows instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

LINE = re.compile(
    r"/\*(?P<at>[0-9a-f]{4,6})\*/\s+(?:@(?P<guard>!?U?P[\dT]+)\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<rest>[^;]*);"
)
REGISTER = re.compile(r"(?<![\w])(U?[RP])(\d+|Z|T)(?:\.(64|H\d|B\d|X\d+|reuse|U\w+|F\d+))*")
CONSTANT = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]")


@dataclass(frozen=True)
class Instruction:
    at: int
    guard: str | None  # with its ! if it has one
    name: str
    operands: tuple[str, ...]

    @property
    def base(self) -> str:
        return self.name.split(".")[0]

    @property
    def words(self) -> int:
        """Registers that the first operand stands for."""
        if self.base == "CS2R" and ".32" not in self.name:
            return 2
        wide = ("LDG", "LDS", "LDL", "LDC", "ULDC", "STG", "STS", "STL")
        if ".128" in self.name and self.base in wide:
            return 4
        return 2 if (".64" in self.name and self.base in wide) or ".WIDE" in self.name else 1


def parse(code: str) -> list[Instruction]:
    return [
        Instruction(
            int(m["at"], 16),
            None if m["guard"] in ("PT", "UPT") else m["guard"],
            m["name"],
            tuple(part.strip() for part in m["rest"].split(",")) if m["rest"].strip() else (),
        )
        for m in LINE.finditer(code)
    ]


@cache
def registers(operand: str) -> tuple[str, ...]:
    """All that an operand reads: of a pair, both."""
    found = []
    for m in REGISTER.finditer(operand):
        if m[2] not in ("Z", "T"):
            found.append(m[1] + m[2])
            if ".64" in m[0]:
                found.append(f"{m[1]}{int(m[2]) + 1}")
    return tuple(found)


@cache
def constants(operand: str) -> tuple[int, ...]:
    return tuple(int(m[1], 16) for m in CONSTANT.finditer(operand))
