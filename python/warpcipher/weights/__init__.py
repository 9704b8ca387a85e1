# SPDX-License-Identifier: Apache-2.0
"""Encrypted models, in the shape that users know from safetensors."""
