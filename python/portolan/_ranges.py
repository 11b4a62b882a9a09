"""Functions that create arrays whose elements depend on their indices only."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._array import Array, Shape, _tuple
from ._blocks import fill


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **options: Any) -> Any:
    """Create an array of evenly spaced numbers, as `numpy.arange`. Collective.

    `arange(stop)` begins with 0. The options are those of `zeros`.
    """
    if stop is None:
        start, stop = 0, start
    # NumPy finds the dtype, by a short range of the same types.
    kinds = [np.asarray(x).dtype.type for x in (start, stop, step)]
    few = np.arange(kinds[0](0), kinds[1](1), kinds[2](1), dtype=dtype)
    kind = few.dtype.newbyteorder("=")
    if kind.kind not in "iuf":
        raise TypeError(f"arange of {kind}; use one of integers or floats and astype()")
    if step == 0:
        raise ZeroDivisionError("arange with a step of 0")
    length = max(0, math.ceil((stop - start) / step))
    # NumPy computes the numbers from the first two.
    first, second = np.asarray([start, start + step]).astype(kind)
    made = Array(length, kind, _unfilled=True, **options)
    with np.errstate(all="ignore"):
        return fill(made, lambda n: first + n.astype(kind) * (second - first))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    **options: Any,
) -> Any:
    """Create an array of numbers that divide an interval evenly, as `numpy.linspace`. Collective.

    The limits are numbers. The options are those of `zeros`.
    """
    number = operator.index(num)
    if number < 0:
        raise ValueError(f"Number of samples, {number}, must be non-negative.")
    if np.ndim(start) or np.ndim(stop):
        raise TypeError("linspace: the limits are not numbers")
    computed = np.result_type(start, stop, float(number))
    kind = np.dtype(computed if dtype is None else dtype).newbyteorder("=")
    parts = number - 1 if endpoint else number
    low, length = np.asarray(start).astype(computed), np.asarray(stop) * 1.0 - np.asarray(start) * 1.0
    step = length / parts if parts > 0 else np.nan

    def numbers(n: Any) -> Any:
        at = n.astype(computed)
        found = (at * step if step != 0 else at / parts * length) if parts > 0 else at * length
        found = found + low
        if endpoint and number > 1:
            found[n == number - 1] = stop
        return np.floor(found) if kind.kind in "iu" else found

    made = fill(
        Array(number, kind, _unfilled=True, **options),
        lambda n: numbers(n).astype(kind, copy=False),
    )
    return (made, step) if retstep else made


def eye(N: int, M: Any = None, k: int = 0, dtype: Any = float, **options: Any) -> Any:
    """Create a matrix with ones on a diagonal and zeros elsewhere, as `numpy.eye`. Collective.

    The options are those of `zeros`.
    """
    return _compared(N, M, k, dtype, np.equal, options)


def identity(n: int, dtype: Any = float, **options: Any) -> Any:
    """Create a square matrix with ones on the main diagonal. Collective; see `eye`."""
    return eye(n, dtype=dtype, **options)


def tri(N: int, M: Any = None, k: int = 0, dtype: Any = float, **options: Any) -> Any:
    """Create a matrix with ones on and below a diagonal, as `numpy.tri`. Collective.

    The options are those of `zeros`.
    """
    return _compared(N, M, k, dtype, np.greater_equal, options)


def _compared(rows: int, columns: Any, k: int, dtype: Any, function: Any, options: Any) -> Any:
    offset = operator.index(k)
    made = Array((rows, rows if columns is None else columns), dtype, _unfilled=True, **options)
    return fill(made, lambda i, j: function(i[:, np.newaxis], j - offset))


def fromfunction(function: Callable[..., Any], shape: Shape, dtype: Any = float, **options: Any) -> Any:
    """Create an array of a function of the indices, as `numpy.fromfunction`. Collective.

    Each rank calls the function with arrays of the indices of its own elements, one for each axis, of
    type `dtype`. A call with the index 0 gives the dtype of the result. The options are those of
    `zeros`. If the function raises on one rank, all raise.
    """
    lengths = _tuple(shape)
    first = function(*[np.zeros((1,) * len(lengths), dtype) for _ in lengths])
    made = Array(lengths, np.asarray(first).dtype, _unfilled=True, **options)

    def values(*at: Any) -> Any:
        return function(*[n.astype(dtype) for n in np.meshgrid(*at, indexing="ij")])

    return fill(made, values)
