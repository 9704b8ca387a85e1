# SPDX-License-Identifier: Apache-2.0
"""`warpcipher check`."""

from __future__ import annotations

from typing import Any

import click

from .errors import ENGINE, NOT_AUTHENTIC, Command, epilog
from .settings import Settings, check_options
from .transfer import Transfer


@click.command(cls=Command, epilog=epilog(NOT_AUTHENTIC, ENGINE))
@check_options
def check(**given: Any) -> None:
    """Tell whether encrypted files and trees are whole and authentic; nothing is written.

    Reads and decrypts all of each file. A tree must match its manifest: what was exchanged,
    renamed, missing or added is named.

    \b
    warpcipher check --key my.key report.pdf.cobblestone photos.cobblestone
    """
    Transfer(Settings.of(given, decrypts=True), "check").run()
