# SPDX-License-Identifier: Apache-2.0
"""Settings of all tests, made before one of them imports a library."""

from __future__ import annotations

import os

# Else JAX takes three quarters of the memory of a GPU, on which other processes test too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    from hypothesis import settings
except ImportError:  # tests that need it skip
    pass
else:  # Else an example that takes 200 ms fails, as the first may on a machine that is at work.
    settings.register_profile("untimed", settings.default, deadline=None)
    settings.load_profile("untimed")
