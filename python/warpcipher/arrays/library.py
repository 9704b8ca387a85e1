# SPDX-License-Identifier: Apache-2.0
"""What is asked of an array library, and the words in which its arrays are refused."""

from __future__ import annotations

from typing import Any, Protocol


class Library(Protocol):
    """What this package needs of an array library.

    owns_types: whether `owns` depends on the type of x alone.
    one_stream: whether all arrays of a device have the same current stream.
    """

    owns_types: bool
    one_stream: bool

    def owns(self, x: Any) -> bool:
        """Whether x is an array of this library."""

    def device(self, x: Any) -> int | None:
        """The CUDA ordinal of x, or None for host memory."""

    def current_stream(self, x: Any) -> int:
        """The stream on which the library works on x now; 0 for arrays in host memory."""

    def view(self, x: Any, name: str, stream: int | None, write: bool) -> Any:
        """x as a buffer or a `Span`, ready on `stream` (None: on the library's current stream).

        BufferError when it is not contiguous.
        """

    def empty(self, size: int, like: Any, stream: int | None) -> Any:
        """An array of `size` bytes where `like` lies; `stream` is the one asked for, if any."""

    def head(self, x: Any, size: int) -> Any:
        """The first `size` bytes of x as a flat array, sharing its memory."""

    def finish(self, x: Any) -> Any:
        """What the user gets for an array that `empty` made."""


def refuse_layout(name: str, what: str) -> BufferError:
    return BufferError(f"{name} is not C-contiguous ({what}): copy it first")


def refuse_content(name: str, what: str, given: str) -> TypeError:
    return TypeError(f"{name} holds {what} ({given}): expected bytes or an array of numbers")
