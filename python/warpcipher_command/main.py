# SPDX-License-Identifier: Apache-2.0
"""The console script `warpcipher`. Apart from `end_on_sigint`, which the package itself uses."""

import atexit
import gc
import os
import sys

from . import end_on_sigint


def main() -> None:
    """Runs the command line of this process; never returns."""
    end_on_sigint()
    # Imports make no garbage, and what looks for it takes 3 ms of them; commands turn it on again.
    gc.disable()
    from warpcipher.cli import main as run

    try:
        run()
    except SystemExit as end:
        if not end.code:
            _end_well()
        raise


def _end_well() -> None:
    """Ends a run that nothing went wrong in without the interpreter's own end, which frees module
    after module: 3 ms. Where output cannot be written, that one says so."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    atexit._run_exitfuncs()
    os._exit(0)
