# SPDX-License-Identifier: Apache-2.0
"""`warpcipher search` and `warpcipher verify`."""

from __future__ import annotations

import codecs
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

import warpcipher as wc
from warpcipher.keysearch.pairs import Algorithm, Test
from warpcipher.keysearch.template import is_mask, show_count

from . import errors, names, process
from .errors import as_usage, command, counted, print_json, shown, usage, warn
from .keys import KEY_HEX, Choice, key_options, of_hex
from .options import option, with_options
from .report import DAY, Progress, on_terminal, show_time

if TYPE_CHECKING:
    from warpcipher.keysearch.pace import Progress as Reached

LONGEST_FILE = 1 << 24
MAY_TAKE_DAYS = 1 << 30  # keys: of fewer, the time is not even measured
SAME_SIGNAL = 1.0  # seconds
WORTH_TELLING = 1e-3  # expected false positives from which on a key may well be a wrong one


pair_options = with_options(
    option(
        "--algorithm NAME",
        "A cipher in ECB, CBC, CFB, OFB or CTR: des-ecb, aes-128-cbc.",
        required=True,
        shell_complete=names.searched_algorithms,
        callback=names.of_search,
    ),
    option(
        "--pair pairs PLAINTEXT:CIPHERTEXT[:IV]",
        "A known pair in hex; ? stands for an unknown digit of the plaintext.",
        multiple=True,
    ),
    option("--pairs pair_files FILE", "A file, a pair a line; both may repeat.", multiple=True),
)


def _parse_shard(_context: object, _parameter: object, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, _, parts = text.partition("/")
    if not (index.isdecimal() and parts.isdecimal()):
        raise usage(f"--shard takes I/N, such as 1/8, got {text!r}")
    return int(index), int(parts)


@command(errors.ENGINE, errors.NOT_FOUND, errors.INTERRUPTED, who="search")
@pair_options
@option("--template TEXT", "The known part: 2b7e??{14}, [digit]{8}, 0b01...  [default: none]")
@option("--key-mask HEX", "Mask: a 1 says that the template's bit is known.", callback=of_hex)
@option("--candidates FILE", "Values that bytes may have, with scores, in JSON: likely keys first.")
@option("--start N", "The number of the first key.  [default: 0]", type=int, default=0)
@option("--count N", "How many keys.  [default: all that follow]", type=int)
@option("--shard I/N", "The part I, 1 to N, of N equal parts.", callback=_parse_shard)
@option("--all find_all", "Go on after the first key.")
@option(
    "--engine NAME",
    "The engine: auto is the fastest that can run here.  [default: auto]",
    default="auto",
    shell_complete=names.searchers,
)
@option(
    "--device devices N",
    "A device of the engine, by number; may be repeated.  [default: all]",
    type=int,
    multiple=True,
)
@option(
    "--cluster [ADDRESS]",
    "Search on all nodes of a Ray cluster; needs warpcipher[cluster].",
    is_flag=False,
    flag_value="auto",
)
@option("--checkpoint FILE", "The checkpoint.  [default: a name for this search, in this folder]")
@option("--no-checkpoint", "Do not write a checkpoint.")
@option("--dry-run", "Print keys, rate and time, and search nothing.")
@option("--yes", "Do not ask before a search of more than a day.")
@option("--json as_json", "Print events as lines of JSON.")
def search(
    pairs: tuple[str, ...],
    pair_files: tuple[str, ...],
    candidates: str | None,
    devices: tuple[int, ...],
    checkpoint: str | None,
    no_checkpoint: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Recover a lost or partly known key of your own from plaintext and ciphertext.

    Prints the key in hex. The search records its progress in a file, and the same command continues
    from there. docs/search.md explains templates, pairs and ranges.

    \b
    warpcipher search --algorithm des-ecb --template '[digit]{8}' --pair 43757374...:14cae4fc...
    warpcipher search --algorithm aes-128-cbc --template 2b7e??{14} --pair 2550:b147...:0001...
    """
    output = sys.stdout
    if given["cluster"] is not None:
        sys.stdout = sys.stderr  # where Ray reports on its workers
    if checkpoint is not None and no_checkpoint:
        raise usage("--checkpoint and --no-checkpoint contradict each other: give one")
    made = wc.keysearch.search(
        pairs=read_pairs(pairs, pair_files),
        candidates=None if candidates is None else _read_candidates(candidates),
        devices=devices or None,
        checkpoint=checkpoint,
        **given,
    )
    if checkpoint is None and not no_checkpoint:
        made.use_checkpoint(made.identity.name)
    if is_mask(given["template"] or ""):
        warn(
            "?d, ?a and ?b are read as an unknown digit and a known one; what hashcat means by "
            "them is [digit], [print] and ?? here"
        )
    if dry_run:
        _print_estimate(made, as_json, output)
        return
    if made.false_positives_expected > WORTH_TELLING:
        expected = f"{made.false_positives_expected:.2g}"
        keys = "1 wrong key is" if expected == "1" else f"{expected} wrong keys are"
        warn(f"about {keys} expected to pass: check what is found, or give more pairs")
    if made.total >= MAY_TAKE_DAYS:
        _tell_of_days(made, yes)
    _stop_on_signals(made)
    where = None if no_checkpoint else checkpoint or made.identity.name
    if code := _run(made, output, where, as_json):
        raise click.exceptions.Exit(code)


def read_pairs(texts: tuple[str, ...], paths: tuple[str, ...]) -> list[wc.keysearch.Pair]:
    """The pairs of --pair and --pairs."""
    numbered = len(texts) > 1
    lines = [(f"--pair {i}" if numbered else "--pair", text) for i, text in enumerate(texts, 1)]
    for path in paths:
        data = _read(path)
        for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                lines.append((f"{shown(path)}, line {number}", line))
    if not lines:
        raise usage("no pair was given: --pair PLAINTEXT:CIPHERTEXT, or --pairs FILE")
    found = []
    for where, text in lines:
        with as_usage(where):
            found.append(wc.keysearch.Pair.from_text(text, where))
    return found


def _read(path: str) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(LONGEST_FILE + 1).removeprefix(codecs.BOM_UTF8)
    if len(data) > LONGEST_FILE:
        raise usage(f"{shown(path)} holds more than {LONGEST_FILE} bytes, which is too much")
    return data


def _read_candidates(path: str) -> wc.keysearch.Candidates:
    with as_usage(shown(path)):
        return wc.keysearch.parse_candidates(_read(path))


def _stop_on_signals(made: wc.keysearch.Search) -> None:
    """The first signal ends the search in good order, a later one at once. timeout(1) and batch
    systems send the same to the process and to its group, so that it comes twice."""
    first: list[float] = []

    def stop(number: int, _frame: object) -> None:
        now = time.monotonic()
        if first and now - first[0] > SAME_SIGNAL:
            process.die(number)
        first.append(now)
        made.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, stop)


def _facts(made: wc.keysearch.Search) -> dict[str, Any]:
    space = made.template.space
    return {
        "algorithm": made.identity.algorithm,
        "keys": made.total,
        "range": [made.start, made.end],
        "unknown_bits": space.free_bits,
        "candidate_lists": space.lists,
        "equivalents": 1 << space.log2_equivalents,
        "blocks": len(made.test.blocks),
        "known_bits": made.test.native.bits,
        "false_positives_expected": made.false_positives_expected,
        "devices": made.devices,
    }


def _print_estimate(made: wc.keysearch.Search, as_json: bool, output: IO[str]) -> None:
    estimate, facts = made.estimate(), _facts(made)
    if as_json:
        more = {"keys_left": estimate.keys, "rate": estimate.rate, "seconds": estimate.seconds}
        _emit("estimate", facts | more, output)
        return
    lists = f", {facts['candidate_lists']} lists of candidates" if facts["candidate_lists"] else ""
    left = f"{show_count(estimate.keys)}: the checkpoint has the others"
    known = f"{counted(facts['known_bits'], 'known bit')} in {counted(facts['blocks'], 'block')}"
    rows = [
        ("algorithm", facts["algorithm"]),
        ("unknown", f"{facts['unknown_bits']} bits{lists}"),
        ("keys", show_count(made.total)),
        ("range", f"{made.start} to {made.end - 1}"),
        *([("left", left)] if estimate.keys < made.total else []),
        ("pairs", known),
        ("false keys", f"{made.false_positives_expected:.2g} expected"),
        *(("device", device) for device in facts["devices"]),
        ("rate", f"{estimate.rate:.3g} keys/s"),
        ("time", f"{show_time(estimate.seconds)}; half of it until a key is found, on average"),
    ]
    for name, value in rows:
        click.echo(f"{name:<10} {value}", file=output)


def _tell_of_days(made: wc.keysearch.Search, yes: bool) -> None:
    """Says how long a search of more than a day takes, and asks whether to begin it."""
    estimate = made.estimate()
    if estimate.seconds < DAY:
        return
    warn(
        f"{show_count(estimate.keys)} keys at {estimate.rate:.3g} keys/s take "
        f"{show_time(estimate.seconds)}, half of it on average until a key is found: what is known "
        "of the key (--template) makes it less"
    )
    if yes or estimate.keys < made.total:  # begun before
        return
    if not (sys.stdin is not None and sys.stdin.isatty() and on_terminal()):
        raise usage("nothing was searched: --yes begins a search of more than a day")
    try:
        agreed = click.confirm("Begin?", err=True)
    except click.Abort:
        agreed = False
    if not agreed:
        raise usage("nothing was searched")


def _run(made: wc.keysearch.Search, output: IO[str], checkpoint: str | None, as_json: bool) -> int:
    printed = 0
    pace = PaceWarning()
    if as_json:
        _emit("start", _facts(made), output)
    visible = on_terminal() and not as_json
    with Progress(made.total, visible=visible, unit="key") as bar:
        for progress in made:
            bar.begin_at(made.resumed)
            bar.at(progress.done)
            pace.look(progress, bar.say)
            for key in made.keys[printed:]:
                if as_json:
                    number = made.template.space.number_of(key)
                    _emit("found", {"key": key.hex(), "number": number}, output)
                else:
                    click.echo(key.hex(), file=output)
            printed = len(made.keys)
            if as_json:
                lately = {"recent_rate": progress.lately.rate, "slow": progress.lately.slow}
                facts = {name: getattr(progress, name) for name in _REACHED}
                _emit("progress", facts | lately, output)
        last = progress
        if not as_json and (visible or not made.keys):
            for line in _summary(made, last):
                bar.say(f"warpcipher: {line}")
            if made.result == "cancelled" and checkpoint is not None:
                bar.say(f"warpcipher: {_going_on(checkpoint)}")
    if as_json:
        found = [key.hex() for key in made.keys]
        noted = checkpoint if checkpoint and Path(checkpoint).exists() else None
        _emit("end", {"result": made.result, "keys": found, "checkpoint": noted}, output)
    if made.result == "cancelled":
        return errors.INTERRUPTED
    return 0 if made.keys else errors.NOT_FOUND


_REACHED = ("done", "total", "fraction", "rate", "eta", "seconds", "false_positives")


def _going_on(checkpoint: str) -> str:
    if not Path(checkpoint).exists():
        return "no progress is recorded yet: run the same command again to start again"
    return f"{shown(checkpoint)} has the progress: run the same command again to continue"


def _summary(made: wc.keysearch.Search, last: Reached) -> list[str]:
    lines = []
    done = last.done
    equivalents = made.template.space.log2_equivalents
    if made.keys and equivalents:
        lines.append(f"2^{equivalents} keys are equivalent: they differ only in parity bits")
    total = show_count(made.total)
    state = {
        "found": f"found after {show_count(done)} of {total} keys",
        "exhausted": f"not found: all {total} keys of the range were tested",
        "cancelled": f"interrupted: {show_count(done)} of {total} keys were tested",
    }[made.result or "cancelled"]
    own = f"{show_count(last.tested)} of them now, in " if made.resumed else ""
    return [*lines, f"{state}, {own}{show_time(last.seconds)}"]


def _emit(event: str, fields: dict[str, Any], output: IO[str]) -> None:
    click.echo(json.dumps({"event": event, **fields}), file=output)
    output.flush()


class PaceWarning:
    """Warns when the rate falls far below its former value: once, until it has recovered."""

    def __init__(self) -> None:
        self._slow = False

    def look(self, progress: Reached, say: Callable[[str], None]) -> None:
        lately = progress.lately
        if lately.slow and not self._slow:
            fallen = (
                f"the rate has fallen to {lately.rate:.3g} keys/s, it was {lately.best:.3g}"
                if lately.best
                else f"no key was tested in {progress.seconds:.0f} seconds"
            )
            say(
                f"warpcipher: warning: {fallen}: see whether something else uses the device; the "
                "search continues"
            )
        self._slow = lately.slow


@command(errors.NOT_FOUND, who="verify")
@pair_options
@key_options
@KEY_HEX
@option("--json as_json", "Print the answer as JSON.")
def verify(
    algorithm: str,
    pairs: tuple[str, ...],
    pair_files: tuple[str, ...],
    key_hex: bytes | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Check whether a key turns the plaintext of every pair into its ciphertext.

    Exit code 0 means that it does, 6 that it does not. Parity bits of DES keys are ignored.

    \b
    warpcipher verify --algorithm aes-128-ecb --key my.key --pair 6bc1bee2...:3ad77bb4...
    """
    choice = Choice.take(given)
    if bool(choice) == (key_hex is not None):
        raise usage("give the key: either --key FILE or --key-hex HEX")
    named = Algorithm.named(algorithm)
    test = Test(named, read_pairs(pairs, pair_files))
    if key_hex is not None:
        key = bytearray(key_hex)
    else:
        # Not every cipher and mode that can be searched is an algorithm: all have ECB.
        key = cast("bytearray", choice.read("raw", f"{named.cipher}-ecb", named=named.cipher))
    passes = test.native.passes(key)
    if as_json:
        print_json({"passes": passes, "blocks": len(test.blocks), "known_bits": test.native.bits})
    elif passes:
        blocks = counted(len(test.blocks), "block")
        click.echo(f"the key passes: {counted(test.native.bits, 'known bit')} in {blocks}")
    else:
        click.echo("the key does not pass")
    if not passes:
        raise click.exceptions.Exit(errors.NOT_FOUND)
