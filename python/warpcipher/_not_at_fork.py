# SPDX-License-Identifier: Apache-2.0
"""Short work during which no other thread may fork: it holds a lock that is not ours, such as one
of libcrypto or of the interpreter's imports. In the child that lock would stay locked, and whoever
needs it there would wait for ever. `src/core/fork.hpp` does the same below Python.

    with NOT_AT_FORK:
        ...

A fork by another thread waits for the end. The work must not wait for a thread, or register
handlers of forks: those for the end of the fork would run without those for its beginning.
"""

from __future__ import annotations

import os
from _thread import RLock

NOT_AT_FORK = RLock()

os.register_at_fork(
    before=NOT_AT_FORK.acquire,
    after_in_parent=NOT_AT_FORK.release,
    after_in_child=NOT_AT_FORK.release,
)
