# SPDX-License-Identifier: Apache-2.0
"""Inputs of a user or another program besides files to decrypt: templates, pairs, candidates,
checkpoints, key files, command lines. Whatever is in them, errors are those that are documented."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc
from click.testing import CliRunner
from fuzz_scenes import KEY, seal
from warpcipher import formats
from warpcipher.cli.app import cli
from warpcipher.keysearch import CheckpointError, Pair, Template, parse_candidates
from warpcipher.keysearch.ranges import RangeSet
from warpcipher.keysearch.session import Checkpoint, Identity, State

TEMPLATE_PIECES = (
    "??", "0?", "?f", "00", "ff", "7F", "[digit]", "[upper]", "[30-39]", "[39-30]", "[00,01,a0-a3]",
    "[]", "[x]", "[[", "{2}", "{0}", "{16}", "{999}", "{", "}", "0b", "01", "1?", ":", "_", " ",
    "\n", "?d", "?a", "é", "\0", "٣", "-",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 255, 256, 1e3, -0.5, 1e308, -1e308, 5e-324, 1 << 70, -(1 << 70), 10**400)
NAMES = ("0", "3", "15", "16", "007", "-1", "x", "", "1e1", "٣", "255", "1000")


def any_json(choose: random.Random, depth: int = 3) -> Any:
    kind = choose.randrange(8)
    if kind < 3 and depth:
        values = [any_json(choose, depth - 1) for _ in range(choose.randrange(4))]
        if kind == 0:
            return values
        names = ("".join(choose.choices("0123456789abcdefF", k=2)) for _ in values)
        entries = zip(names, values, strict=True)
        return {choose.choice((name, choose.choice(NAMES))): value for name, value in entries}
    return choose.choice(
        (None, True, False, "", "3c", "zz", "é3", float("nan"), float("inf"), *NUMBERS)
    )


def any_candidates(choose: random.Random) -> Any:
    """Mostly what is asked for, with something in it that is not."""
    document: dict[str, Any] = {}
    for _ in range(choose.randint(1, 3)):
        values = {f"{choose.randrange(256):02x}": -choose.random() * 9 for _ in range(4)}
        entry: Any = choose.choice((values, list(values)))
        if choose.random() < 0.3:
            entry = any_json(choose)
        elif choose.random() < 0.3 and isinstance(entry, dict):
            entry[choose.choice(("3c", "3C", "zz", "0"))] = choose.choice((any_json(choose), 1))
        document[choose.choice((str(choose.randrange(16)), choose.choice(NAMES)))] = entry
    return choose.choice((document, document, document, any_json(choose)))


def change(choose: random.Random, data: bytes) -> bytes:
    """The data with bytes set, cut, doubled or put in."""
    at = choose.randrange(len(data) + 1)
    end = min(len(data), at + choose.randrange(1, 20))
    middle = choose.choice((b"", data[at:end] * 2, choose.randbytes(end - at), b"\0", b"9", b'"'))
    return choose.choice(
        (data[:at], data[:at] + middle + data[end:], data[:at] + middle + data[at:])
    )


@pytest.mark.cases(300)
def test_candidates(choose: random.Random) -> None:
    text = json.dumps(any_candidates(choose)).encode()
    if choose.random() < 0.3:
        text = change(choose, text)
    if choose.random() < 0.05:
        text = choose.choice((b"[", b'{"3":')) * choose.choice((900, 100_000))
    try:
        found = parse_candidates(text)
        template = Template("aes-128", candidates=found)
    except ValueError:
        return
    assert all(0 <= cost <= 255 for costs in found.values() for cost in dict(costs).values())
    check_numbers(choose, template)


def check_numbers(choose: random.Random, template: Template) -> None:
    assert template.keys > 0
    number = choose.randrange(template.keys)
    key = template.space.key_at(number)
    assert template.space.number_of(key) == number


@pytest.mark.cases(500)
def test_templates(choose: random.Random) -> None:
    cipher = choose.choice(("aes-128", "aes-256", "des", "des-ede2", "des-ede3"))
    size = Template(cipher).key_size
    pieces = choose.choices(TEMPLATE_PIECES, k=choose.randrange(12))
    if choose.random() < 0.5:  # as many bytes as it takes, of pieces that are one
        pieces = choose.choices(TEMPLATE_PIECES[:9], k=size)
    mask = None if choose.random() < 0.7 else choose.randbytes(choose.choice((size, 3)))
    try:
        template = Template(cipher, "".join(pieces), mask=mask)
    except ValueError:
        return
    check_numbers(choose, template)


@pytest.mark.cases(300)
def test_pairs(choose: random.Random) -> None:
    def digits() -> str:
        text = choose.randbytes(choose.choice((0, 1, 8, 16, 32, 33))).hex()
        return "".join("?" if choose.random() < 0.1 else digit for digit in text)

    text = ":".join(digits() for _ in range(choose.randint(1, 4)))
    if choose.random() < 0.3:
        text = change(choose, text.encode()).decode("latin-1")
    algorithm = choose.choice(("aes-128-cbc", "aes-256-ctr", "des", "des-ede3-cfb", "aes-192-gcm"))
    start, count = choose.choice((0, 0, -1, 1 << 300)), choose.choice((1, 1, 0, -5, None))
    shard = choose.choice((None, None, (1, 1), (1, 3), (0, 3), (4, 3), (1, 0), (-1, -1)))
    try:
        pair = Pair.from_text(text)
        search = wc.search(algorithm, [pair], start=start, count=count, shard=shard, engine="cpu")
    except ValueError:
        return
    if search.total < 100:
        search.run()


JUNK: tuple[Any, ...] = (
    None, True, 0, 5, -1, 1.5, float("nan"), 1 << 70, "", "x", b"", b"\0" * 16, (), (1, 2),
    (1.5, 3), ("1", "2"), (1,), [1], {}, {"3": 1}, {3: 5}, {3: {1: 2.5}}, {3: [1, 2]}, {99: [1]},
    {3: {300: 1}}, {3: {1: 300}}, {3: "x"}, [None], [()], [(b"",)],
    [(b"\0" * 16, b"\0" * 16, None, 5)], object(),
)  # fmt: skip


@pytest.mark.cases(300)
def test_arguments_of_a_search(choose: random.Random) -> None:
    """Any values: a search, or the error of a value or a type."""
    arguments: dict[str, Any] = {
        "algorithm": "aes-128", "pairs": [(bytes(16), bytes(16))], "template": "00{15}??",
    }  # fmt: skip
    names = ("algorithm", "pairs", "template", "key_mask", "candidates", "start", "count", "shard")
    for name in choose.sample((*names, "engine", "devices"), choose.randint(1, 2)):
        arguments[name] = choose.choice(JUNK)
    try:
        search = wc.search(**arguments)
    except (ValueError, TypeError, wc.EngineError):
        return
    if search.total <= 1000:
        search.run()


@pytest.mark.cases(100)
def test_checkpoints(choose: random.Random, tmp_path: Path) -> None:
    """A changed one is refused and stays; what is taken says the same as before."""
    path = tmp_path / "c"
    identity = Identity("aes-128-ecb", "00" * 32, "11" * 32, 0, 1 << 130)
    bounds = sorted(choose.randrange(1 << 100) for _ in range(2 * choose.randint(1, 5)))
    done = RangeSet(zip(bounds[::2], bounds[1::2], strict=True))
    state = State(done, [choose.randrange(1 << 130)], choose.randrange(9), 1.5)
    with Checkpoint(path, identity) as checkpoint:
        checkpoint.save(state)
    changed = path.read_bytes()
    for _ in range(choose.randint(1, 3)):
        changed = change(choose, changed)
    path.write_bytes(changed)
    try:
        with Checkpoint(path, identity) as checkpoint:
            assert checkpoint.load() == state
    except CheckpointError:
        pass
    assert path.read_bytes() == changed


@pytest.fixture(scope="module")
def keyset() -> str:
    return formats.Keyset.generate("AES128_GCM_HKDF_4KB").to_json()


def any_key_file(choose: random.Random, keyset: str) -> bytes:
    good = choose.choice((KEY, KEY[:16], KEY.hex().encode() + b"\n", keyset.encode()))
    return choose.choice((good, change(choose, good), choose.randbytes(choose.randrange(70))))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; `search` takes signals over, and here the process is pytest's."""
    monkeypatch.chdir(tmp_path)
    handlers = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


VALUES: dict[str, Callable[[random.Random], str]] = {
    "--format": lambda c: c.choice(("auto", "raw", "tink", "cobblestone-128", "zip", "")),
    "--engine": lambda c: c.choice(("auto", "cpu", "reference", "abacus", "")),
    "--algorithm": lambda c: c.choice((*(info.name for info in wc.algorithms()), "rot13", "")),
    "--key-hex": lambda c: c.randbytes(c.choice((0, 8, 16, 24, 32, 64))).hex()[c.randrange(2) :],
    "--iv-hex": lambda c: c.randbytes(c.choice((0, 8, 12, 16, 300))).hex()[c.randrange(2) :],
    "--context": lambda c: c.choice(("", "x", "\udcff", "ä")),
    "--context-hex": lambda c: c.choice(("", "00", "0", "xx")),
    "--key": lambda c: c.choice(("key", "key", "key", "missing", "folder", "", "-")),
    "-o": lambda c: c.choice(("out", "folder", "a", "missing/out", "", ".", "/dev/null", "-")),
    "--template": lambda c: c.choice(("AES256_GCM_HKDF_1MB", "00??{15}", "", "x")),
    "--pair": lambda c: c.choice(("00:00", f"{'00' * 16}:{'11' * 16}", "::", "?")),
    "--shard": lambda c: c.choice(("1/2", "0/2", "3/2", "1/0", "x", "1/", "²/3")),
    "--start": lambda c: c.choice(("0", "-1", str(1 << 300), "x")),
    "--count": lambda c: c.choice(("1", "0", "-1", "999")),
    "--device": lambda c: c.choice(("0", "-1", "99", str(1 << 70))),
}
FLAGS = (
    "--force",
    "--json",
    "--quiet",
    "--no-padding",
    "--all",
    "--dry-run",
    "--engines",
    "--help",
)
COMMANDS = (
    "encrypt",
    "decrypt",
    "raw encrypt",
    "raw decrypt",
    "info",
    "keygen",
    "verify",
    "search",
    "completion",
)


@pytest.mark.cases(150)
def test_command_lines(choose: random.Random, folder: Path, keyset: str) -> None:
    """Random options and operands end with an exit code that is documented, never with a bug, and
    leave all that was there."""
    (folder / "key").touch(0o600)
    (folder / "key").write_bytes(any_key_file(choose, keyset))
    (folder / "a").write_bytes(choose.choice((b"", b"text", seal(b"text"), choose.randbytes(80))))
    (folder / "a.cobblestone").write_bytes(seal(b"text"))
    (folder / "folder").mkdir()
    (folder / "folder/b").write_bytes(b"b")
    before = {name: (folder / name).read_bytes() for name in ("key", "a", "a.cobblestone")}
    command = choose.choice(COMMANDS)
    group, _, task = command.rpartition(" ")
    made = cli.get_command(None, group or task)
    made = made.commands[task] if group else made
    taken = {option for part in made.params for option in part.opts}
    options = [option for option in VALUES if option in taken or choose.random() < 0.05]
    flags = [flag for flag in FLAGS if flag in taken]
    line = command.split()
    for option in choose.sample(options, min(len(options), choose.randrange(5))):
        line += [option, VALUES[option](choose)]
    line += choose.sample(flags, min(len(flags), choose.choice((0, 0, 1, 2))))
    if command in ("search", "verify") and choose.random() < 0.8:
        line += ["--algorithm", "aes-128", "--pair", f"{'00' * 16}:{'11' * 16}"]
    if command == "search":  # few keys, so that none is long
        line += ["--count", "300"]
    operands = ("a", "key", "folder", "a.cobblestone", "missing", "-", "", "bash", "made")
    given = choose.choices(operands, k=choose.choice((0, 1, 1, 1, 2, 3)))
    line += given
    done = CliRunner().invoke(cli, line, input=b"piped")
    told = f"{line}\n{done.output}"
    assert done.exception is None or isinstance(done.exception, SystemExit), told
    assert done.exit_code in (0, 2, 3, 4, 5, 6), told
    assert done.exit_code == 0 or done.output, told
    assert "Traceback" not in done.output, told
    changed = {name for name, old in before.items() if (folder / name).read_bytes() != old}
    if task in ("encrypt", "decrypt"):
        used = {value for option, value in pairwise(line) if option == "--key"}
        assert not changed & {*given, *used}, told  # --force or not
        if task == "encrypt" and "--iv-hex" in line:
            files = [path for path in folder.rglob("*.enc") if path.is_file()]
            assert len(files) + len(changed) <= 1, told
    else:
        assert changed <= set(given), told
    assert not changed or "--force" in line, told
    assert not list(folder.rglob(".*.part")), told
