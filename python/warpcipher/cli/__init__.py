# SPDX-License-Identifier: Apache-2.0
"""The `warpcipher` command; docs/cli.md is its manual.

app          the list of commands: each is a file of its name

errors       exit codes, and which exception means which
streams      standard output and error, and what a failed write to them means
cleanup      what an error or a signal removes, and how a signal ends the process
keys         key files
jobs         which inputs become which outputs: names, several files, directory trees
conflicts    refuses outputs that would replace the key, an input or another output
folders      folders opened and made
files        what is read, and standard output
outputs      files written: an output appears under its name only when it is whole
transfer     runs the jobs of encrypt and decrypt and reports
"""

from .app import main

__all__ = ["main"]
