# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package, by their public names. The native module makes them: a package
that is imported anew catches what calls of the first one raise, and the other way round."""

from ._native import EngineError, InvalidTag

for _error in (EngineError, InvalidTag):
    _error.__module__ = "warpcipher"

__all__ = ["EngineError", "InvalidTag"]
