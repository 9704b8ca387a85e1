# SPDX-License-Identifier: Apache-2.0
"""`python -m warpcipher.cli`, for where the command is not on the path."""

from . import main

main()
