# SPDX-License-Identifier: Apache-2.0
"""Further options of a message: encryption context, frame length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..base import Options as AnyOptions
from . import header

FRAME_LENGTH = 4 << 10
_OWNER = {"owner": "format awsesdk"}


@dataclass(frozen=True)
class Options(AnyOptions):
    """Options of format awsesdk, besides the common ones.

    algorithm:          the suite, by its name or number ("0x0478"); see `SUITES`. None: to encrypt,
                        0x0578, as the SDK does: key commitment and a signature. To decrypt: any
                        with key commitment; only a suite that is named is read without.
    encryption_context: texts that are authenticated and stored, not encrypted. To decrypt: pairs
                        that the message must have, stored or required.
    required_context:   keys of these pairs that are authenticated and not stored: who decrypts must
                        give the pairs again (the SDK's required encryption context).
    frame_length:       bytes of plaintext of a frame, 1 to 2^32 - 1.
    """

    encryption_context: Mapping[str, str] = field(default_factory=dict, metadata=_OWNER)
    required_context: Sequence[str] = field(default=(), metadata=_OWNER)
    frame_length: int = field(default=FRAME_LENGTH, metadata=_OWNER)

    def __post_init__(self) -> None:
        super().__post_init__()
        header.check_context(self.encryption_context)
        if isinstance(self.required_context, str):
            raise TypeError("required_context is a str: expected a sequence of keys")
        if absent := [key for key in self.required_context if key not in self.encryption_context]:
            raise ValueError(f"encryption_context has no {absent[0]!r}, which is required")
        if not 0 < self.frame_length <= header.LONGEST_FRAME:
            raise ValueError(
                f"frame_length is {self.frame_length}: expected 1 to {header.LONGEST_FRAME}"
            )
