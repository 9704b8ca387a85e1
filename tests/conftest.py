# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests, made before one of them imports a library."""

from __future__ import annotations

import os

# Else JAX takes three quarters of the memory of a GPU, on which other processes test too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
