# SPDX-License-Identifier: Apache-2.0
"""Searches that are killed, interrupted or cancelled at random places and go on, until they end:
they find what one run finds, and leave nothing behind but their checkpoint."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import warpcipher as wc
from cli_support import names
from fuzz_scenes import FAULTY
from warpcipher.keysearch import Algorithm, Pair, Search, Template
from warpcipher.keysearch import Test as PairTest

CIPHERS = ("aes-128", "aes-192", "aes-256", "des", "des-ede2", "des-ede3")
KEYS = 1 << 14
"""Keys of a search at most, so that one takes milliseconds."""
TRIES = 40


@dataclass
class Case:
    """A search, and the numbers of the keys that pass: several, as the pair says little."""

    algorithm: str
    text: str
    pair: str
    part: tuple[int, int]
    found: set[str]


def any_template(choose: random.Random, cipher: str) -> str:
    """A template of at most KEYS keys, with unknown bits anywhere."""
    size = Template(cipher).key_size
    bits = [str(choose.randrange(2)) for _ in range(8 * size)]
    usable = [i for i in range(8 * size) if cipher.startswith("aes") or i % 8 != 7]
    for position in choose.sample(usable, choose.randint(8, KEYS.bit_length() - 1)):
        bits[position] = "?"
    return "0b" + "".join(bits)


def any_case(choose: random.Random) -> Case:
    cipher = choose.choice(CIPHERS)
    text = any_template(choose, cipher)
    template = Template(cipher, text)
    key = template.space.key_at(choose.randrange(template.keys))
    block = 16 if cipher.startswith("aes") else 8
    plaintext = choose.randbytes(block)
    sealed = wc.Cipher(f"{cipher}-ecb", key).encrypt(plaintext)
    known = choose.choice((1, 1, 2, block))  # bytes: one lets a key in 256 pass
    pair = f"{plaintext[:known].hex()}{'??' * (block - known)}:{sealed.hex()}"
    start = choose.choice((0, choose.randrange(template.keys)))
    part = start, choose.randint(1, template.keys - start)
    return Case(f"{cipher}-ecb", text, pair, part, found_by(cipher, text, pair, part))


def found_by(cipher: str, text: str, pair: str, part: tuple[int, int]) -> set[str]:
    """The keys of the part that pass, tested one by one."""
    space = Template(cipher, text).space
    test = PairTest(Algorithm.named(cipher), [Pair.from_text(pair)])
    start, count = part
    keys = (space.key_at(number) for number in range(start, start + count))
    return {key.hex() for key in keys if test.native.passes(key)}


def make_search(case: Case, path: Path, engine: str) -> Search:
    start, count = case.part
    return wc.search(
        case.algorithm, [Pair.from_text(case.pair)], case.text, start=start, count=count,
        find_all=True, engine=engine, checkpoint=path, interval=0,
    )  # fmt: skip


@pytest.mark.cases(6)
def test_cancelled_and_resumed(choose: random.Random, tmp_path: Path) -> None:
    """In one process, each session with another engine."""
    case = any_case(choose)
    path = tmp_path / "checkpoint"
    tested = 0
    for session in range(TRIES):
        search = make_search(case, path, choose.choice(("cpu", "reference")))
        patience = choose.randrange(6) if session < TRIES - 1 else 1 << 60
        last = None
        for step, progress in enumerate(search):
            last = progress
            if step >= patience:
                search.cancel()
        assert last is not None
        assert search.resumed + last.tested == last.done
        tested += last.tested
        if search.result != "cancelled":
            break
    assert search.result == ("found" if case.found else "exhausted")
    assert sorted(key.hex() for key in search.keys) == sorted(case.found)
    assert tested == last.done == case.part[1]
    assert names(tmp_path) == {"checkpoint"}


@pytest.mark.cases(2)
def test_killed_and_resumed(choose: random.Random, tmp_path: Path) -> None:
    """Signals before random lines of the command, SIGKILL among them."""
    case = any_case(choose)
    start, count = case.part
    arguments = ["search", "--algorithm", case.algorithm, "--template", case.text, "--all"]
    arguments += ["--pair", case.pair, "--start", str(start), "--count", str(count), "--json"]
    arguments += ["--checkpoint", "checkpoint"]
    known = 0
    for session in range(TRIES):
        number = choose.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
        fault = {"signal": number, "at": choose.randint(1, 2500)} if session < 6 else {}
        done = subprocess.run(
            [*FAULTY, json.dumps(fault), *arguments],
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 6, 7, -number), done.stderr.decode()
        assert b"Traceback" not in done.stderr
        if number != signal.SIGKILL:
            assert not list(tmp_path.glob(".*.part"))
        if (tmp_path / "checkpoint").exists():
            ranges = json.loads((tmp_path / "checkpoint").read_text())["done"]
            before, known = known, sum(int(end) - int(first) for first, end in ranges)
            assert known >= before
        if done.returncode in (0, 6):
            break
        for path in tmp_path.glob(".*.part"):
            path.unlink()
    assert done.returncode == (0 if case.found else 6)
    last = json.loads(done.stdout.splitlines()[-1])
    assert sorted(last["keys"]) == sorted(case.found)
    assert known == count
