# SPDX-License-Identifier: Apache-2.0
"""Numbered random cases: a test marked `cases(n)` gets a `choose` for each of n cases.

A case depends on the seed, its test and its number alone. WARPCIPHER_TEST_LONG=100 runs a hundred
times as many, WARPCIPHER_TEST_SEED repeats a run, with WARPCIPHER_TEST_CASE one case of it.
"""

from __future__ import annotations

import os
import random

import pytest

LONG = int(os.environ.get("WARPCIPHER_TEST_LONG", "1"))
SEED = os.environ.get("WARPCIPHER_TEST_SEED") or str(int.from_bytes(os.urandom(4), "big"))
CASE = os.environ.get("WARPCIPHER_TEST_CASE")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cases(n): n random cases, each with its own `choose`")


def pytest_report_header() -> str:
    return f"fuzz: WARPCIPHER_TEST_SEED={SEED} WARPCIPHER_TEST_LONG={LONG}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "choose" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("cases")
    assert marker is not None, "a test that takes `choose` says how many cases it has"
    (count,) = marker.args
    numbers = range(count * LONG) if CASE is None else [int(CASE)]
    metafunc.parametrize("choose", numbers, indirect=True, ids=str)


@pytest.fixture
def choose(request: pytest.FixtureRequest) -> random.Random:
    """The random numbers of a case. A failure shows how to run the case again."""
    again = f"WARPCIPHER_TEST_SEED={SEED} WARPCIPHER_TEST_CASE={request.param}"
    name = request.node.originalname
    request.node.add_report_section("setup", "again", f"{again} pytest {request.path} -k {name}")
    return random.Random(f"{SEED} {name} {request.param}")
