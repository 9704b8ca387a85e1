# SPDX-License-Identifier: Apache-2.0
"""The console script `warpcipher`. Apart from `end_on_sigint`, which the package itself uses."""

from . import end_on_sigint


def main() -> None:
    """Runs the command line of this process; never returns."""
    end_on_sigint()
    from warpcipher.cli import main as run

    run()
