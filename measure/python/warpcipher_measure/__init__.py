# SPDX-License-Identifier: Apache-2.0
"""What measures: the commands `warpcipher bench` and `warpcipher lab`, and the same for Python."""
