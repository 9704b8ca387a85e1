# SPDX-License-Identifier: Apache-2.0
"""The `warpcipher` command; docs/cli.md is its manual.

app          the list of commands: each is a file of its name

errors       exit codes, and which exception means which
keys         key files
jobs         which inputs become which outputs: names, several files, directory trees
files        files read and written: an output appears under its name only when it is whole
transfer     runs the jobs of encrypt and decrypt and reports
"""

from .app import main

__all__ = ["main"]
