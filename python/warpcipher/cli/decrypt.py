# SPDX-License-Identifier: Apache-2.0
"""`warpcipher decrypt`."""

from __future__ import annotations

from typing import Any

import click

from .errors import ENGINE, NOT_AUTHENTIC, Command, epilog
from .settings import Settings, transfer_options
from .transfer import Transfer


@click.command(cls=Command, epilog=epilog(NOT_AUTHENTIC, ENGINE))
@transfer_options
def decrypt(**given: Any) -> None:
    """Decrypt files, directory trees or standard input (-).

    Takes the suffix that `encrypt` gave away from the name. A file appears only when all of it is
    authentic; on standard output each chunk is authentic before it is written, and a failure later
    on ends with exit code 3.

    \b
    warpcipher decrypt --key my.key report.pdf.cobblestone
    warpcipher decrypt --key my.key -o - photos.tar.cobblestone | tar x
    """
    Transfer(Settings.of(given, decrypts=True), "decrypt").run()
