# SPDX-License-Identifier: Apache-2.0
"""`warpcipher encrypt`, `decrypt` and `check`."""

from __future__ import annotations

from typing import Any, Literal

from .errors import ENGINE, NOT_AUTHENTIC, command
from .settings import Settings, check_options, decrypt_options, encrypt_options


def _run(settings: Settings, task: Literal["encrypt", "decrypt", "check"]) -> None:
    if settings.is_job:
        from .object_run import ObjectRun as Kind
    else:
        from .transfer import Transfer as Kind  # type: ignore[assignment]
    Kind(settings, task).run()


@command(NOT_AUTHENTIC, ENGINE)
@encrypt_options
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
    _run(Settings.of(given), "encrypt")


@command(NOT_AUTHENTIC, ENGINE)
@decrypt_options
def decrypt(**given: Any) -> None:
    """Decrypt files, directory trees or standard input (-).

    Takes the suffix that `encrypt` gave away from the name. A file appears only when all of it is
    authentic; on standard output each chunk is authentic before it is written, and a failure later
    on ends with exit code 3.

    \b
    warpcipher decrypt --key my.key report.pdf.cobblestone
    warpcipher decrypt --key my.key -o - photos.tar.cobblestone | tar x
    """
    _run(Settings.of(given, decrypts=True), "decrypt")


@command(NOT_AUTHENTIC, ENGINE)
@check_options
def check(**given: Any) -> None:
    """Check that encrypted files and trees are whole and authentic; nothing is written.

    Reads and decrypts all of each file. A tree must match its manifest: files that were exchanged,
    renamed, missing or added are named.

    \b
    warpcipher check --key my.key report.pdf.cobblestone photos.cobblestone
    """
    _run(Settings.of(given, decrypts=True), "check")
