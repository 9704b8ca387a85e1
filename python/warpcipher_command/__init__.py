# SPDX-License-Identifier: Apache-2.0
"""The start of the console script `warpcipher`, before the package loads: it sees to signals.

Until `warpcipher.cli` has its own handlers nothing is there to clean up, and SIGINT ends the
process as SIGTERM does, without a traceback from the middle of an import.
"""

# Not `signal`, which imports `enum` first: that takes milliseconds, in which SIGINT may come.
import _signal  # type: ignore[import-not-found]

_runs = False


def is_running() -> bool:
    """Whether this process is the command's."""
    return _runs


def end_on_sigint() -> None:
    """Lets SIGINT end the process at once, unless it is ignored, as under nohup."""
    global _runs
    _runs = True
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
