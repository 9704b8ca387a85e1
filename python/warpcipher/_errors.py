# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package. The native module looks them up here."""


class InvalidTag(Exception):  # noqa: N818 - the name that its users know
    """An authentication tag did not match: wrong key, nonce or associated data, or altered data.

    Not a subclass of cryptography.exceptions.InvalidTag: catch `warpcipher.InvalidTag`.
    """


class EngineError(RuntimeError):
    """The engine asked for is unknown, cannot run here, or failed. The text says why."""
