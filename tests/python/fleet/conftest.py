# SPDX-License-Identifier: Apache-2.0
"""A store with objects, and a folder with keys."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_support import NAMES
from step_store import StepStore, step_store
from warpcipher.fleet import work


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[StepStore]:
    """With objects of some sizes below step://in."""
    monkeypatch.setattr(work, "FIRST_DELAY", 0.0)
    with step_store() as made:
        for number, name in enumerate(NAMES):
            made.put(f"in/{name}", secrets.token_bytes((number + 1) * 900))
        yield made


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("key", "other"):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_bytes(secrets.token_bytes(32))
    return tmp_path
