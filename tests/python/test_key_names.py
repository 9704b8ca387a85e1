# SPDX-License-Identifier: Apache-2.0
"""`warpcipher.keys`: names that may be keys are not shown; a command's number is not used once
it is free."""

from __future__ import annotations

import base64
import os

import pytest
from warpcipher import keys
from warpcipher.keys import command as commands
from warpcipher.keys.decode import may_be_key

KEY = bytes(range(100, 132))


@pytest.mark.parametrize("key", [KEY.hex(), "0x" + KEY[:16].hex(), base64.b64encode(KEY).decode()])
def test_a_key_given_for_a_name_is_not_repeated(key: str) -> None:
    for make in (keys.from_env, keys.from_command):
        if "=" in key and make is keys.from_env:
            key = key.rstrip("=")
        source = make(key)
        with pytest.raises((ValueError, OSError)) as raised:
            source.resolve()
        assert key not in str(raised.value) + repr(source)
        assert "not repeated: they may be a key" in str(raised.value)


def test_a_variable_that_is_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "A_NAME_OF_22_CHARACTER"
    assert may_be_key(name)
    monkeypatch.setenv(name, "x")
    with pytest.raises(ValueError, match=name):
        keys.from_env(name).resolve()


def test_a_group_is_ended_before_its_number_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(group: int) -> None:
        ended = os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        seen.append(ended is not None and ended.si_pid == group)

    monkeypatch.setattr(commands, "_end_group", look)
    assert keys.from_command(["printf", KEY.hex()]).resolve() == KEY
    assert seen == [True], "ended, and not yet waited for"
