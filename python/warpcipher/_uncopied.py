# SPDX-License-Identifier: Apache-2.0
"""Objects that are never copied: a copy would share keys, messages or a place in a stream with the
first, and neither would know of the other; and a pickle would hold a secret in plain."""

from __future__ import annotations

from typing import ClassVar, NoReturn, SupportsIndex

from ._types import Self


class Uncopied:
    """A base whose objects `copy.copy`, `copy.deepcopy` and `pickle` refuse with TypeError.

    _instead: what to do instead, for the error.
    """

    __slots__ = ()
    _instead: ClassVar[str] = "make a new one"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects cannot be copied or pickled: {self._instead}"
        )


class Closed(Uncopied):
    """A base of what a `with` closes at its end."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


INSTEAD_OF_A_KEY = (
    "pickle the algorithm's name and where the key is (warpcipher.keys.from_env, from_file, "
    "from_command), and make one in each process"
)


def refuse_key(key: object) -> NoReturn:
    """The reducer of native objects that hold a key, for `copyreg`."""
    raise TypeError(
        f"{type(key).__name__} objects cannot be copied or pickled, as a pickle would hold the "
        f"key: {INSTEAD_OF_A_KEY}"
    )
