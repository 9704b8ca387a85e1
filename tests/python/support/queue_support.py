# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the queue."""

HOUR = 3_600_000_000  # as max_delay_us: only what a test does launches a payload
IV = bytes(16)
