# SPDX-License-Identifier: Apache-2.0
"""Parameters of distributions: ranges of integers, numbers, and arrays that broadcast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar

from .. import _later
from .._types import StreamLike
from ..arguments import require_number
from ..arrays.numpy import check_mask
from . import arrays

numpy: Any = _later.Module("numpy")


MethodT = TypeVar("MethodT", bound=Callable[..., Any])

_ANOTHERS = {"size": "shape, the first argument", "loc": "mean", "scale": "std"}
"""Names of arguments of NumPy's methods, and ours."""

_ANOTHERS_OF_INIT = {"seed": "key, 32 secret bytes, or nothing for a seed of the operating system"}


def hinted(method: MethodT) -> MethodT:
    """Where a call has another generator's name of an argument, the error has ours."""
    names = _ANOTHERS_OF_INIT if method.__name__ == "__init__" else _ANOTHERS
    code = method.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    others = {name: ours for name, ours in names.items() if name not in known}

    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        for name in named:
            if name in others:
                title = method.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{title}() has no argument {name!r}: expected {others[name]}")
        return method(*arguments, **named)

    return call  # type: ignore[return-value]


def is_array(x: Any) -> bool:
    """Whether a parameter of a distribution is an array, or a list; and not a number."""
    return not isinstance(x, Real) and (hasattr(x, "shape") or isinstance(x, list | tuple))


def check(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """A parameter that is an array, a list as NumPy's, or a number. ValueError: it would make the
    result larger than `shape`, each part of it of the same random numbers."""
    if not is_array(x):
        return require_number(name, x)
    if isinstance(x, list | tuple):
        x = numpy.asarray(x)
    check_mask(x, name)
    given = tuple(x.shape)
    pairs = zip(reversed(given), reversed(shape), strict=False)
    if len(given) > len(shape) or any(extent not in (1, whole) for extent, whole in pairs):
        raise ValueError(
            f"{name} has the shape {given}: expected one that broadcasts to the result's, {shape}"
        )
    return x


def writable(name: str, out: Any, stream: StreamLike) -> Any:
    """An array that its library writes to, as a parameter is an array."""
    if arrays.module_of(out) is None:
        raise TypeError(
            f"{name} is an array, and out is {type(out).__name__}: expected an array of NumPy, "
            "PyTorch or CuPy"
        )
    if stream is not None:
        raise ValueError(f"{name} is an array: expected stream=None, the library's own")
    return out


def probabilities(p: Any, shape: tuple[int, ...]) -> Any:
    """Parameters of an array that broadcasts to a shape. ValueError: not parameters."""
    p = check("p", p, shape)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ValueError("p is an array with a number that is not a probability: expected 0 to 1")
    return p


def limits(dtype: str, low: int | None, high: int | None) -> tuple[int, int]:
    """The range of integers, within the dtype's."""
    if dtype == "bool":
        least, end = 0, 2
    elif dtype in arrays.INTEGERS:
        bits = 8 * arrays.SIZES[dtype]
        least, end = (0, 1 << bits) if dtype[0] == "u" else (-1 << (bits - 1), 1 << (bits - 1))
    else:
        raise TypeError(f"dtype is {dtype}: expected integers or bool")
    low = least if low is None else low
    high = end if high is None else high
    for name, value in (("low", low), ("high", high)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"{name} is {value!r}: expected an integer")
    if low >= high:
        raise ValueError(f"low is {low} and high {high}: expected low below high")
    if not least <= low < high <= end:
        raise ValueError(
            f"the range is {low} to {high - 1}: expected {least} to {end - 1} or a part ({dtype})"
        )
    return low.__index__(), high.__index__()
