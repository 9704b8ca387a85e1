# SPDX-License-Identifier: Apache-2.0
"""Parts of lists and of arrays, in random order or some of them, for `Generator.permutation`,
`shuffle` and `choice` do."""

from __future__ import annotations

import math
from collections.abc import MutableSequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from .. import _later
from ..arguments import require_int
from . import arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .generator import Generator


numpy: Any = _later.Module("numpy")


def as_number(made: Any, size: object) -> Any:
    """NumPy's number of an array without dimensions, where no size was asked for."""
    return made[()] if size is None and arrays.module_of(made) == "numpy" else made


def permute(generator: Generator, x: Any, axis: int) -> Any:
    """A copy of a list or an array, its parts in random order."""
    x, axis = _population("x", x, axis)
    order = generator.permutation_(arrays.empty_like(x, (x.shape[axis],), "int64"))
    return x[(slice(None),) * axis + (order,)]


def shuffle(generator: Generator, x: Any, axis: int) -> None:
    """The same in place."""
    if isinstance(x, MutableSequence):
        if axis != 0:
            raise ValueError(f"axis is {axis}, and x is a {type(x).__name__}: expected 0")
        order = generator.permutation_(numpy.empty(len(x), "int64"))
        for place, part in enumerate([x[i] for i in order.tolist()]):
            x[place] = part
        return
    if arrays.module_of(x) is None:
        raise TypeError(f"x is {type(x).__name__}, which cannot be written to: use permutation()")
    x[...] = generator.permutation(x, axis=axis)


def choose(
    generator: Generator, a: Any, size: int | Sequence[int] | None, replace: bool, p: Any, axis: int
) -> Any:
    """As `Generator.choice`."""
    shape = () if size is None else arrays.parse_shape(size)
    count = math.prod(shape)
    of = None
    if isinstance(a, Integral):
        n = int(a)
    else:
        of, axis = _population("a", a, axis)
        n = of.shape[axis]
    if n < (1 if replace else count) and count > 0:
        raise ValueError(f"a has {n} parts: expected {1 if replace else count} or more")
    if p is not None:
        chosen = _weighted(generator, _weights(p, n), count, replace)
        index = _indices(
            generator, of, shape, lambda out: arrays.store(out, "int64", [chosen]), True
        )
    elif replace:
        index = _indices(generator, of, shape, lambda out: generator.random_(out, 0, max(n, 1)))
    else:
        index = _indices(generator, of, (n,), generator.permutation_)[:count].reshape(shape)
    if of is None:
        return as_number(index, size)
    return of[(slice(None),) * axis + (index,)]


def _indices(
    generator: Generator,
    of: Any,
    shape: tuple[int, ...],
    fill: Callable[[Any], Any],
    by_host: bool = False,
) -> Any:
    """A filled array of int64: one that can index `of`; None: of the generator's library."""
    if of is None:
        new = generator._new(shape, "int64", None, by_host)
        fill(new.to_fill)
        return new.finish()
    index = arrays.empty_like(of, shape, "int64")
    fill(index)
    return index


def _weighted(generator: Generator, p: Any, count: int, replace: bool) -> Any:
    """Numbers of parts, by NumPy."""
    if replace:
        sums = p.cumsum()
        return (sums / sums[-1]).searchsorted(generator.uniform_(numpy.empty(count)), side="right")
    # Those whose exponential number over p is least: as if drawn one after the other, each by
    # its share of the rest (P. Efraimidis, P. Spirakis, "Weighted random sampling with a
    # reservoir", 2006).
    possible = numpy.flatnonzero(p)
    if len(possible) < count:
        raise ValueError(f"p has {len(possible)} probabilities above 0: expected {count} or more")
    return possible[
        numpy.argsort(generator.exponential_(numpy.empty(len(possible))) / p[possible])[:count]
    ]


def _population(name: str, x: Any, axis: int) -> tuple[Any, int]:
    """The array of an array or a list, with parts along an axis."""
    if isinstance(x, list | tuple):
        x = numpy.asarray(x)
    dimensions = len(getattr(x, "shape", ()))
    if dimensions == 0:
        raise TypeError(f"{name} is {x!r:.60}: expected an integer, a list or an array")
    axis = require_int("axis", axis)
    if not -dimensions <= axis < dimensions:
        raise ValueError(f"axis is {axis}, and {name} has {dimensions} dimensions")
    return x, axis % dimensions


def _weights(p: Any, n: int) -> Any:
    """Probabilities, checked, as an array of the host."""
    found = numpy.array(p.tolist() if hasattr(p, "tolist") else p, float)
    if found.shape != (n,):
        raise ValueError(f"p has the shape {found.shape}: expected ({n},), one for each part of a")
    total = found.sum()
    if not (found >= 0).all() or not abs(total - 1) < 1e-7:
        raise ValueError(f"p sums to {total:.9g}: expected probabilities from 0 to 1 that sum to 1")
    return found
