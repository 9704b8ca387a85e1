# SPDX-License-Identifier: Apache-2.0
"""`warpcipher encrypt`."""

from __future__ import annotations

from typing import Any

import click

from .errors import ENGINE, NOT_AUTHENTIC, Command, epilog
from .settings import Settings, transfer_options
from .transfer import Transfer


@click.command(cls=Command, epilog=epilog(NOT_AUTHENTIC, ENGINE))
@transfer_options
@click.option(
    "--delete",
    is_flag=True,
    help="With --update: remove from a tree what its source does not have any more.",
)
def encrypt(**given: Any) -> None:
    """Encrypt files, directory trees or standard input (-).

    FILE becomes FILE.cobblestone, FILE.tink or FILE.enc beside it, after its format; a directory
    becomes a tree of encrypted files. Inputs are not changed, and outputs that exist are kept
    unless --force is given.

    \b
    warpcipher encrypt --key my.key report.pdf
    warpcipher encrypt --key my.key -o backup/ photos notes.txt
    tar c photos | warpcipher encrypt --key my.key - > photos.tar.cobblestone
    """
    Transfer(Settings.of(given), "encrypt").run()
