# SPDX-License-Identifier: Apache-2.0
"""What is never copied: a copy would share keys, messages or a place in a stream with the first,
and neither would know of the other."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Uncopied:
    """A base whose objects `copy.copy`, `copy.deepcopy` and `pickle` refuse with TypeError."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects cannot be copied or pickled: make a new one"
        )
