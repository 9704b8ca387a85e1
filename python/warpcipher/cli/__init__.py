# SPDX-License-Identifier: Apache-2.0
"""The `warpcipher` command; docs/cli.md is its manual.

app          the list of commands, and the module of each

errors       exit codes, and which exception means which
options      options of commands
process      standard output and error; how an error or a signal ends the process
keys         key files; recipients: keys of people
jobs         which inputs become which outputs: names, several files, directory trees
conflicts    refuses outputs that would replace the key, an input or another output
folders      folders opened and made
files        inputs and outputs: an output gets its name only when it is whole
run          one run over files, of any command
tree_run     a run with trees; trees: their manifests
report       the messages of a run
"""

from .app import main

__all__ = ["main"]
