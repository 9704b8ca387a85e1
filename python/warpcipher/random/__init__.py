# SPDX-License-Identifier: Apache-2.0
"""Random numbers that nobody can predict."""

from __future__ import annotations

from .ctr_drbg import CtrDrbg
from .entropy import HealthTestError

__all__ = ["CtrDrbg", "HealthTestError"]
