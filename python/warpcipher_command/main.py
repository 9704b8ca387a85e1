# SPDX-License-Identifier: Apache-2.0
"""The console script `warpcipher`. Apart from `end_on_sigint`, which the package itself uses."""

import gc

from . import end_on_sigint


def main() -> None:
    """Runs the command line of this process; never returns."""
    end_on_sigint()
    # Imports make no garbage, and looking for it takes 3 ms of them; commands turn it on again.
    gc.disable()
    from warpcipher.cli import main as run

    run()
