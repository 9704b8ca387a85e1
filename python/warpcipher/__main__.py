# SPDX-License-Identifier: Apache-2.0
"""`python -m warpcipher`: the command, if it is not on the path."""

from .cli import main

main()
