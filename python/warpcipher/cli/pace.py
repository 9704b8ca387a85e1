# SPDX-License-Identifier: Apache-2.0
"""What `warpcipher search` says when it has become slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpcipher.keysearch import Progress


class PaceWarning:
    """Tells when the rate falls far below what it was: once, until it has recovered."""

    def __init__(self) -> None:
        self._slow = False

    def look(self, progress: Progress, say: Callable[[str], None]) -> None:
        lately = progress.lately
        if lately.slow and not self._slow:
            fallen = (
                f"the rate has fallen to {lately.rate:.3g} keys/s, it was {lately.best:.3g}"
                if lately.best
                else f"no key was tested in {progress.seconds:.0f} seconds"
            )
            say(
                f"warpcipher: warning: {fallen}: see whether something else uses the device; the "
                "search goes on"
            )
        self._slow = lately.slow
