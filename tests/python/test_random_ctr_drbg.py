# SPDX-License-Identifier: Apache-2.0
"""CTR_DRBG against the vectors of NIST (ACVP and CAVP), its limits, its tests of health, forks."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from warpcipher.random import CtrDrbg, HealthTestError
from warpcipher.random import ctr_drbg as module
from warpcipher.random import entropy as entropy_module

POINTERS = np.array([object() for _ in range(4)])
VECTORS = Path(__file__).parents[1] / "vectors/drbg"


def pieces(*given: bytes) -> Callable[[int], bytes]:
    """A source of entropy that gives these, one a call, and then nothing."""
    rest = list(given)
    return lambda size: rest.pop(0)


def counting() -> Callable[[int], bytes]:
    """A source that never repeats."""
    count = iter(range(1 << 30))
    return lambda size: bytes(f"{next(count):{size}}", "ascii")


def acvp_cases() -> Iterator[Any]:
    text = (VECTORS / "acvp-ctrdrbg-aes256.json").read_text(encoding="ascii")
    for group in json.loads(text)["testGroups"]:
        assert group["mode"] == "AES-256"
        assert group["reSeed"]
        for case in group["tests"]:
            yield pytest.param(group, case, id=f"{group['tgId']}-{case['tcId']}")


@pytest.mark.parametrize(("group", "case"), list(acvp_cases()))
def test_acvp(group: dict[str, Any], case: dict[str, Any]) -> None:
    def field(owner: dict[str, Any], name: str, bits: str) -> bytes:
        value = bytes.fromhex(owner[name])
        assert 8 * len(value) == group[bits]
        return value

    entropy = [field(case, "entropyInput", "entropyInputLen")]
    entropy += [bytes.fromhex(other["entropyInput"]) for other in case["otherInput"]]
    drbg = CtrDrbg(
        field(case, "persoString", "persoStringLen"),
        derivation_function=group["derFunc"],
        prediction_resistance=group["predResistance"],
        entropy=pieces(*[text for text in entropy if text]),
        nonce=field(case, "nonce", "nonceLen") or None,
    )
    out = b""
    for other in case["otherInput"]:
        additional = field(other, "additionalInput", "additionalInputLen")
        if other["intendedUse"] == "reSeed":
            drbg.reseed(additional)
        else:
            assert other["intendedUse"] == "generate"
            out = drbg.generate(group["returnedBitsLen"] // 8, additional)
    assert out == bytes.fromhex(case["returnedBits"])


def cavp_cases(name: str) -> Iterator[Any]:
    """Records as lists of (field, value), since fields repeat in the order of the calls."""
    group: dict[str, str] = {}
    text = (VECTORS / f"cavp-{name}.rsp").read_text(encoding="ascii")
    for block in text.split("\n\n"):
        if block.startswith("["):
            group = dict(re.findall(r"^\[([^=\]]+?)(?: = (\w+))?\]$", block, re.MULTILINE))
        elif block.startswith("COUNT"):
            lines = [line.partition(" =")[::2] for line in block.splitlines()]
            yield group, [(field, value.strip()) for field, value in lines]


@pytest.mark.parametrize("name", ["no_reseed", "pr_false", "pr_true"])
def test_cavp(name: str) -> None:
    ran = 0
    for group, record in cavp_cases(name):
        found = {field: bytes.fromhex(value) for field, value in record[1:]}
        assert 8 * len(found["Nonce"]) == int(group["NonceLen"])
        assert 8 * len(found["PersonalizationString"]) == int(group["PersonalizationStringLen"])
        entropy = [bytes.fromhex(v) for f, v in record if f.startswith("EntropyInput")]
        drbg = CtrDrbg(
            found["PersonalizationString"],
            derivation_function="AES-256 use df" in group,
            prediction_resistance=group["PredictionResistance"] == "True",
            entropy=pieces(*entropy),
            nonce=found["Nonce"] or None,
        )
        out = b""
        for field, value in record:
            if field == "AdditionalInputReseed":
                drbg.reseed(bytes.fromhex(value))
            elif field == "AdditionalInput":
                assert 4 * len(value) == int(group["AdditionalInputLen"])
                out = drbg.generate(int(group["ReturnedBitsLen"]) // 8, bytes.fromhex(value))
        assert out == found["ReturnedBits"]
        ran += 1
    assert ran == 96


def test_additional_input_of_zeros_is_not_none() -> None:
    """Section 10.2.1.5.1 updates with it; nothing given is no update."""
    drbgs = [CtrDrbg(derivation_function=False, entropy=counting()) for _ in range(2)]
    assert drbgs[0].generate(32) == drbgs[1].generate(32)
    assert drbgs[0].generate(32) != drbgs[1].generate(32, b"\0")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reseed_interval": 0}, "reseed_interval is 0: expected 1 to 2\\^48"),
        ({"reseed_interval": (1 << 48) + 1}, "expected 1 to 2\\^48"),
        ({"nonce": b"short"}, "nonce has 5 bytes: expected at least 16"),
        ({"nonce": bytes(16), "derivation_function": False}, "without derivation function"),
        ({"personalization": bytes(49), "derivation_function": False}, "has 49 bytes"),
    ],
)
def test_what_the_standard_does_not_allow(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CtrDrbg(**options)


@pytest.mark.parametrize("size", [-1, 65537])
def test_requests_have_a_limit(size: int) -> None:
    drbg = CtrDrbg()
    with pytest.raises(ValueError, match="expected 0 to 65536"):
        drbg.generate(size)
    assert len(drbg.generate(65536)) == 65536
    assert drbg.generate(0) == b""


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: CtrDrbg(POINTERS), "personalization holds Python objects"),
        (lambda: CtrDrbg(nonce=POINTERS), "nonce holds Python objects"),
        (lambda: CtrDrbg(entropy=lambda size: POINTERS), "the entropy holds Python objects"),
        (lambda: CtrDrbg().generate(1, POINTERS), "additional_input holds Python objects"),
        (lambda: CtrDrbg().reseed(POINTERS), "additional_input holds Python objects"),
        (lambda: CtrDrbg("text"), "personalization is str: expected bytes-like"),
        (lambda: CtrDrbg(reseed_interval=1.5), "reseed_interval is float: expected an int"),
        (lambda: CtrDrbg().generate(1.5), "size is float: expected an int"),
    ],
)
def test_what_holds_no_bytes_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        call()


def test_it_reseeds_after_the_interval() -> None:
    taken: list[int] = []

    def source(size: int) -> bytes:
        taken.append(size)
        return os.urandom(size)

    drbg = CtrDrbg(reseed_interval=2, entropy=source)
    assert taken == [48, 16]
    assert drbg.reseed_counter == 1
    drbg.generate(1)
    drbg.generate(1)
    assert (drbg.reseed_counter, len(taken)) == (3, 2)
    drbg.generate(1)
    assert (drbg.reseed_counter, len(taken)) == (2, 3)
    drbg.generate(1, prediction_resistance=True)
    assert (drbg.reseed_counter, len(taken)) == (2, 4)
    drbg.reseed(b"more")
    assert (drbg.reseed_counter, len(taken)) == (1, 5)


def test_a_source_that_gives_too_little_is_an_error_and_ends_the_generator() -> None:
    with pytest.raises(HealthTestError, match="gave 31 bytes"):
        CtrDrbg(entropy=lambda size: bytes(31))
    drbg = CtrDrbg(entropy=pieces(os.urandom(48), os.urandom(16), b""), prediction_resistance=True)
    with pytest.raises(HealthTestError, match="gave 0 bytes"):
        drbg.generate(16)
    with pytest.raises(HealthTestError, match="make another"):
        drbg.generate(16)
    assert not any(drbg._key)
    assert not any(drbg._counter)


def test_uninstantiate_wipes() -> None:
    drbg = CtrDrbg()
    assert any(drbg._key)
    drbg.uninstantiate()
    assert not any(drbg._key)
    assert not any(drbg._counter)
    with pytest.raises(HealthTestError, match="uninstantiated"):
        drbg.reseed()


def test_copies_are_refused_and_nothing_secret_is_shown() -> None:
    drbg = CtrDrbg()
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            refused(drbg)  # type: ignore[operator]
    assert repr(drbg) == "<warpcipher.random.CtrDrbg AES-256 with derivation function>"


def test_a_wrong_known_answer_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module.run_known_answers.cache_clear()
    wrong = [(*entry[:3], "00" * 64) for entry in module._KNOWN]
    monkeypatch.setattr(module, "_KNOWN", wrong)
    with pytest.raises(HealthTestError, match="known answer"):
        CtrDrbg()
    monkeypatch.undo()
    CtrDrbg()


def test_threads_get_different_bytes() -> None:
    drbg = CtrDrbg()
    found: list[bytes] = []

    def draw() -> None:
        found.extend(drbg.generate(16) for _ in range(200))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 800


def in_a_child(work: Callable[[], bytes]) -> bytes:
    """What `work` gives in a child of a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data


def test_a_child_reseeds_even_where_a_thread_held_the_lock() -> None:
    drbg = CtrDrbg()
    drbg.generate(16)
    with drbg._lock:
        child = in_a_child(lambda: drbg.generate(16))
    other = in_a_child(lambda: drbg.generate(16))
    assert len(child) == len(other) == 16
    assert len({child, other, drbg.generate(16)}) == 3


# ---- the source of entropy


def test_the_cutoffs_are_those_of_sp_800_90b() -> None:
    p, alpha = Fraction(1, 256), Fraction(1, 1 << 60)
    below, count = Fraction(0), 0
    while True:
        below += comb(entropy_module.WINDOW, count) * p**count * (1 - p) ** (512 - count)
        if below >= 1 - alpha:
            break
        count += 1
    assert count + 1 == entropy_module.PROPORTION_CUTOFF
    assert entropy_module.REPETITION_CUTOFF == 1 + -(-60 // 8)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda size: bytes(size), "repeated a byte 9 times: it is stuck"),
        (lambda size: os.urandom(16) * 2 + os.urandom(size - 32), "repeated a block of 16 bytes"),
        (lambda size: bytes(b & 3 for b in os.urandom(size)), "it is biased"),
        (lambda size: os.urandom(size - 1), "gave 1023 bytes, asked for were 1024"),
    ],
    ids=["stuck", "repeats", "biased", "short"],
)
def test_a_bad_source_is_found_and_stays_refused(read: Callable[[int], bytes], says: str) -> None:
    source = entropy_module.SystemEntropy(read)
    for _ in range(2):
        with pytest.raises(HealthTestError, match=says):
            source(48)


def test_a_block_that_repeats_between_two_calls_is_found() -> None:
    block = os.urandom(16)
    source = entropy_module.SystemEntropy(pieces(os.urandom(1024), block, block))
    assert source(16) == block
    with pytest.raises(HealthTestError, match="repeated a block"):
        source(16)


def test_a_good_source_passes() -> None:
    source = entropy_module.SystemEntropy()
    assert len({source(48) for _ in range(1000)}) == 1000
