# SPDX-License-Identifier: Apache-2.0
"""Follows secrets through the machine code of a kernel, as sass.py reads it.

Secret are

- what comes from shared memory: AES tables, by the state (counts that are kept there are public);
- text: what comes from global memory in single bytes, or in 16 from a pointer that was loaded
  itself (kernels of one message: from any pointer); narrower loads are lengths, pointers, verdicts;
  and none is what comes from a MessageView, found by the number of a message from a parameter;
- first tweaks: 16 bytes at their place in a MessageView (counters and IVs are public);
- round keys: 16 bytes by LDG.CONSTANT, or among the kernel's parameters.

A register has a bit for each of its bytes that may depend on them: permutes, logic and shifts by
whole bytes are followed byte by byte, and so are the products of a byte and 128 that lane tables
take as addresses; everything else spreads to the whole register. All paths are followed to a fixed
point. Reported is what would let the time tell:

- a branch, exit, vote or lane of a shuffle that a secret chooses;
- an access to global, local or constant memory at a secret address or under a secret predicate;
- an access to shared memory whose bank a secret chooses: the lowest byte of its address, but for
  its highest bit, which a product has (banks are 4 bytes wide, and there are 32).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sass import CONSTANT, REGISTER, Instruction, constants, registers

ALL = 0b1111  # all bytes of a register
LOADED = 0b10000  # and: made of something public in global memory
OTHER = 0b100000  # and: not known to be one of TIMES_128
ELSEWHERE = 0b1000000  # and: not known to be the address of a MessageView
UNKNOWN = OTHER | ELSEWHERE
VIEW_LEN = "0x50"
START = "+0x30"  # of MessageView::start
# With these a dot product of four bytes is one of them times 128.
TIMES_128 = {f"{0x80 << 8 * byte:#x}" for byte in range(4)} | {"-0x80000000"}
MOVES = ("MOV", "UMOV", "IMAD.MOV.U32")
LAST_MOVES = ("IMAD.MOV.U32 RZ, RZ", "IMAD.U32 RZ, RZ")
COPY = re.compile(r"PT, PT, PT, U?P\d, 0x80, 0x0")  # what PLOP3 does to its first predicate
ADDRESS = re.compile(r"\[(U?R\d+)(?:\.64)?(?:\+0x[0-9a-f]+)?\]$")
BRANCHES = ("BRA", "BRX", "JMP", "JMX", "EXIT", "RET", "CALL", "BREAK", "KILL", "WARPSYNC")
WITHOUT_RESULT = (*BRANCHES, "STG", "STS", "BSSY", "BSYNC", "BAR", "NOP")
OUTER_MEMORY = ("LDG", "STG", "LDL", "STL", "LDC", "ULDC", "LD", "ST")
OUTER_MEMORY += ("ATOM", "ATOMG", "RED", "LDGSTS", "CCTL")
SHARED_MEMORY = ("LDS", "STS", "ATOMS", "LDSM")

# The number of an instruction; inside a subroutine, of the one it returns to.
Place = tuple[int, int | None]
State = dict[str, int]  # secret bytes by register ("R5", "UR4", "P0") or stack slot ("[R1+0x8]")


def opposite(guard: str | None) -> str:
    """Of P0 !P0, and the reverse."""
    guard = guard or ""
    return guard[1:] if guard.startswith("!") else f"!{guard}"


@dataclass
class Flow:
    """The secrets of one kernel. keys: offsets of round keys among the constants, in bytes. views:
    that of the pointer to MessageViews."""

    code: list[Instruction]
    keys: range
    views: int | None = None
    one_message: bool = False
    secret_start: bool = False  # MessageView::start is a tweak, not an IV or counter
    findings: set[str] = field(default_factory=set)
    secret_lookups: set[int] = field(
        default_factory=set
    )  # loads from shared memory, secret address

    # The value written under a guard, as an instruction under the same guard finds it, on a
    # straight piece of code; and there, predicates of which one is a copy of the other.
    _guarded: dict[tuple[str, str], int] = field(default_factory=dict)
    _copies: set[frozenset[str]] = field(default_factory=set)

    def run(self) -> Flow:
        index = {instruction.at: i for i, instruction in enumerate(self.code)}
        start: Place = (0, None)
        before: dict[Place, State] = {start: {}}
        work = [start]
        while work:
            place = work.pop()
            state = dict(before[place])
            self._guarded.clear()
            self._copies.clear()
            following = [(place, None)]
            while len(following) == 1:  # straight on
                place = following[0][0]
                instruction = self.code[place[0]]
                self.check(instruction, state)
                self.step(instruction, state)
                if instruction.base in BRANCHES:
                    following = list(self.successors(place, index))
                    break
                here = place[0] + 1 < len(self.code)
                following = [((place[0] + 1, place[1]), None)] if here else []
            for to, under in following:
                known = before.get(to)
                found = self.seen_under(under, state)
                joined = {
                    r: (known or {}).get(r, 0) | found.get(r, 0) for r in {*(known or {}), *found}
                }
                if joined != known:
                    before[to] = joined
                    work.append(to)
        return self

    def successors(self, place: Place, index: dict[int, int]) -> Iterator[tuple[Place, str | None]]:
        """Where a branch leads, and the guard that then holds."""
        at, back = place
        instruction = self.code[at]
        if instruction.base in ("BRA", "CALL", "JMP"):
            target = index[int(instruction.operands[-1].split()[-1].strip("`()"), 16)]
            yield (target, at + 1 if instruction.base == "CALL" else back), instruction.guard
        if instruction.base == "RET" and back is not None:
            yield (back, None), instruction.guard
        leaves = instruction.base in ("BRA", "JMP", "EXIT", "RET", "BRX", "JMX", "KILL", "CALL")
        alone = len(instruction.operands) < 2  # no second condition
        if not (leaves and alone and instruction.guard is None) and at + 1 < len(self.code):
            stays = leaves and alone and instruction.guard is not None
            yield (at + 1, back), opposite(instruction.guard) if stays else None

    @property
    def keys_seen(self) -> int:
        """Words of round keys that instructions name."""
        named = {
            offset + 4 * word
            for i in self.code
            for operand in i.operands
            for offset in constants(operand)
            for word in range(i.words)
        }
        return len(named & set(self.keys))

    def secret_of(self, operand: str, state: State, word: int = 0) -> int:
        return self.state_of(operand, state, word) & ALL

    def state_of(self, operand: str, state: State, word: int = 0) -> int:
        """The sources of an operand, or of the word-th register after it."""
        result = 0
        for offset in constants(operand):
            result |= ALL if offset + 4 * word in self.keys else 0
        if word == 0:
            for name in registers(operand):
                result |= state.get(name, 0) & ~UNKNOWN
        elif (m := REGISTER.match(operand.lstrip("-~|"))) is not None and m[2] not in ("Z", "T"):
            result |= state.get(f"{m[1]}{int(m[2]) + word}", 0) & ~UNKNOWN
        return result

    def check(self, i: Instruction, state: State) -> None:
        def report(what: str) -> None:
            self.findings.add(f"{i.at:#06x} {i.name} {', '.join(i.operands)}: {what}")

        guard = state.get(i.guard.lstrip("!"), 0) & ALL if i.guard else 0
        state = self.seen_under(i.guard, state)
        if i.base in BRANCHES:
            if guard or any(self.secret_of(operand, state) for operand in i.operands):
                report("a secret chooses the way")
            if i.base in ("BRX", "JMX"):
                report("its target is computed")
        elif i.base in ("VOTE", "VOTEU") and any(self.secret_of(o, state) for o in i.operands[1:]):
            report("lanes vote on a secret")
        elif i.base == "SHFL" and (guard or any(self.secret_of(o, state) for o in i.operands[3:])):
            report("a secret chooses the lane")
        elif i.base in OUTER_MEMORY + SHARED_MEMORY:
            if guard:
                report("a secret decides whether memory is touched")
            address = [operand for operand in i.operands if "[" in operand]
            secret = 0
            for operand in address:
                plain = CONSTANT.sub("", operand)
                secret |= self.secret_of(plain, state)
            if i.base in SHARED_MEMORY:
                if secret & 1:
                    report("a secret chooses the bank")
                if secret:
                    self.secret_lookups.add(i.at)
            elif secret:
                report("a secret address")

    def seen_under(self, guard: str | None, state: State) -> State:
        """The state as an instruction under a guard finds it."""
        own = {name: secret for (name, under), secret in self._guarded.items() if under == guard}
        return {**state, **own} if own else state

    def copies_of(self, guard: str) -> set[str]:
        """The guards that are what this one is, itself among them."""
        name = guard.lstrip("!")
        sign = guard.removesuffix(name)
        return {guard} | {sign + other for pair in self._copies if name in pair for other in pair}

    @staticmethod
    def compared_under(i: Instruction) -> str | None:
        """The guard but for which a comparison does not matter: that of `a < b and P`, or of
        `a < b or not P`."""
        if i.base not in ("ISETP", "UISETP") or ".EX" in i.name:
            return None
        last = i.operands[-1]
        if ".AND" in i.name and last not in ("PT", "UPT"):
            return last
        return last[1:] if ".OR" in i.name and last.startswith("!") else None

    def step(self, i: Instruction, state: State) -> None:
        if i.base in ("STL",):
            for word in range(i.words):
                state[self.slot(i.operands[0], word)] = self.state_of(i.operands[1], state, word)
            return
        if not i.operands or i.base in WITHOUT_RESULT:
            return
        targets, sources = self.split(i)
        # All before any is written: a load may write the registers of its own address.
        seen = self.seen_under(i.guard or self.compared_under(i), state)
        results = [self.result(i, sources, seen, word) for _, word in targets]
        is_view = self.makes_view(i, seen)
        for (name, word), secret in zip(targets, results, strict=True):
            if name.lstrip("U")[0] == "P":
                secret &= ALL
            else:
                if i.operands[-1] not in TIMES_128 or not i.name.startswith(MOVES):
                    secret |= OTHER
                if word != 0 or not is_view:
                    secret |= ELSEWHERE
            # The value that stays where the guard does not hold.
            other = self._guarded.get((name, opposite(i.guard))) if i.guard else None
            for known in [key for key in self._guarded if name in (key[0], key[1].lstrip("!"))]:
                del self._guarded[known]
            self._copies = {pair for pair in self._copies if name not in pair}
            if i.guard:
                for guard in self.copies_of(i.guard):
                    self._guarded[name, guard] = secret
                    if other is not None:
                        self._guarded[name, opposite(guard)] = other
                secret |= state.get(name, 0) if other is None else other
                secret |= ALL if state.get(i.guard.lstrip("!"), 0) else 0
            state[name] = secret
        if i.base == "PLOP3" and not i.guard and COPY.fullmatch(", ".join(i.operands[1:])):
            self._copies.add(frozenset((i.operands[0], i.operands[4])))

    def makes_view(self, i: Instruction, state: State) -> bool:
        """Whether the first register written is the lower half of a view's address: moved there, or
        its number times its length added to that of the first."""
        if self.views is None:
            return False
        if i.name in ("LDC.64", "ULDC.64"):
            return i.operands[1] == f"c[0x0][{self.views:#x}]"
        if i.name in ("IMAD.WIDE.U32", "UIMAD.WIDE.U32"):
            return i.operands[2] == VIEW_LEN and self.is_view(i.operands[3], state)
        if i.name in ("MOV", "UMOV", "R2UR"):
            return self.is_view(i.operands[1], state)
        is_move = f"{i.name} {', '.join(i.operands[1:3])}" in LAST_MOVES
        return is_move and self.is_view(i.operands[3], state)

    @staticmethod
    def is_view(register: str, state: State) -> bool:
        return state.get(register.removesuffix(".reuse"), ELSEWHERE) & ELSEWHERE == 0

    @staticmethod
    def slot(operand: str, word: int) -> str:
        m = re.search(r"\[R1(?:\+0x([0-9a-f]+))?\]", operand)
        return f"[R1+{int(m[1] or '0', 16) + 4 * word:#x}]" if m else "[elsewhere]"

    @staticmethod
    def split(i: Instruction) -> tuple[list[tuple[str, int]], list[str]]:
        """The registers that an instruction writes, each with its place, and its sources."""
        if i.base == "R2P":
            return [(f"P{n}", 0) for n in range(7)], list(i.operands[1:])
        predicate = re.compile(r"U?P[\dT]")
        n = 0
        while n < len(i.operands) and predicate.fullmatch(i.operands[n]):
            n += 1
        if i.base not in (
            "ISETP",
            "UISETP",
            "PLOP3",
            "UPLOP3",
            "FSETP",
            "FCHK",
            "VOTE",
            "VOTEU",
            "R2UR",
        ):
            n += 1
            while (
                n < len(i.operands) - 1
                and predicate.fullmatch(i.operands[n])
                and "SEL" not in i.base
            ):
                n += 1  # carries out
        elif i.base in ("VOTE", "VOTEU", "R2UR"):
            n = 1
        elif i.base.endswith("LOP3"):
            n = 2
        targets = []
        for operand in i.operands[:n]:
            m = re.fullmatch(r"(U?[RP])(\d+|Z|T)", operand)
            if m is None or m[2] in ("Z", "T"):
                continue
            for word in range(i.words if m[1] in ("R", "UR") else 1):
                targets.append((f"{m[1]}{int(m[2]) + word}", word))
        return targets, list(i.operands[n:])

    def result(self, i: Instruction, sources: Iterable[str], state: State, word: int) -> int:
        sources = list(sources)
        if i.base in ("LDS", "LDSM"):
            return ALL
        if i.base == "ATOMS":
            return 0
        if i.base in ("LDG", "LD"):
            wide = ".128" in i.name
            m = ADDRESS.search(sources[0])
            if m is not None and self.is_view(m[1], state):
                return ALL if wide and self.secret_start and START in sources[0] else LOADED
            indirect = self.one_message or self.state_of(sources[0], state) & LOADED
            is_secret = ".U8" in i.name or (
                wide
                and (
                    indirect or ".CONSTANT" in i.name or (self.secret_start and START in sources[0])
                )
            )
            return ALL if is_secret else LOADED
        if i.base == "LDL":
            return state.get(self.slot(sources[0], word), 0)
        if i.base in ("LDC", "ULDC") and re.search(r"\]\[U?R\d", sources[0]):
            return ALL  # round keys, by the number of the round
        if i.base in ("LDC", "ULDC", "MOV", "UMOV"):
            return self.state_of(sources[0], state, word if "[" in sources[0] else 0)
        if i.base == "SHFL":
            return self.state_of(sources[0], state)
        if i.name == "IDP.4A.U8.U8":
            for factor in (source.removesuffix(".reuse") for source in sources[:2]):
                if factor in TIMES_128 or state.get(factor, OTHER) & OTHER == 0:
                    return self.state_of(sources[2], state) | 0b1110
        of = [self.state_of(source, state) for source in sources]
        if any(secret & LOADED for secret in of):
            return LOADED | self.computed(i, sources, [secret & ALL for secret in of])
        return self.computed(i, sources, of)

    def computed(self, i: Instruction, sources: list[str], of: list[int]) -> int:
        """The secret bytes of what arithmetic makes of sources with those of `of`."""
        if not any(of):
            return 0
        if i.base in ("PRMT", "UPRMT") and sources[1].startswith("0x"):
            selector = int(sources[1], 16)
            bytes_ = [of[0] >> n & 1 for n in range(4)] + [of[2] >> n & 1 for n in range(4)]
            return sum(bytes_[selector >> 4 * n & 7] << n for n in range(4))
        if i.base in ("LOP3", "ULOP3"):
            return self.logic(sources, of)
        if i.base in ("SEL", "USEL"):
            return ALL if of[2] else of[0] | of[1]
        if i.name.startswith(("IMAD.MOV", "IMAD.U32")):
            return of[2] if sources[0] == "RZ" or sources[1] == "RZ" else ALL
        if i.name.startswith(("IMAD.IADD", "IADD3", "VIADD", "UIADD3")):
            lowest = [secret & -secret for secret in of if secret]
            return -min(lowest) & ALL  # carries go upwards
        if i.name.startswith("IMAD.SHL") and re.fullmatch(r"0x1(00)+", sources[1]):
            return of[0] << (len(sources[1]) - 3) // 2 & ALL
        if (
            i.base in ("SHF", "USHF")
            and re.fullmatch(r"0x(8|10|18)", sources[1])
            and "U64" not in i.name
        ):
            n = int(sources[1], 16) // 8
            if ".L." in i.name and sources[2] == "RZ":
                return of[0] << n & ALL
            if ".R." in i.name and ".S32" not in i.name and sources[0] == "RZ":
                return of[2] >> n
        return ALL

    @staticmethod
    def logic(sources: list[str], of: list[int]) -> int:
        """A byte of LOP3 is secret if, its known inputs given, a secret one can change it."""
        table = int(sources[3], 16)
        result = 0
        for byte in range(4):
            choices: list[tuple[int, ...]] = []
            for source in sources[:3]:
                if source in ("RZ", "URZ"):
                    choices.append((0,))
                elif source.startswith("0x"):
                    value = int(source, 16) >> 8 * byte & 0xFF
                    choices.append({0: (0,), 0xFF: (1,)}.get(value, (0, 1)))
                else:
                    choices.append((0, 1))
            for n in range(3):
                if not of[n] >> byte & 1:
                    continue
                others = [c if m != n else (0,) for m, c in enumerate(choices)]
                bit = 4 >> n
                rows = [4 * a | 2 * b | c for a in others[0] for b in others[1] for c in others[2]]
                if any((table >> row ^ table >> (row | bit)) & 1 for row in rows):
                    result |= 1 << byte
        return result
