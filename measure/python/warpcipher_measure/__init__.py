# SPDX-License-Identifier: Apache-2.0
"""Measures: the commands `warpcipher bench` and `warpcipher lab`, and the same for Python."""
