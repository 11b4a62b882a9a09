"""Reductions of distributed arrays, along some axes or all of them.

Each rank reduces its own elements, and one all-reduce combines the parts. The result is a numpy
array that all ranks have, because it is small compared with the array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

try:
    from numpy.lib.array_utils import normalize_axis_tuple
except ImportError:  # NumPy 1
    from numpy.core.numeric import normalize_axis_tuple  # type: ignore[no-redef,import-not-found,unused-ignore]


class Reduction(NamedTuple):
    """A function of NumPy, and the operator that combines the parts of the ranks."""

    ufunc: np.ufunc
    op: str


SUM = Reduction(np.add, "sum")
MIN = Reduction(np.fmin, "min")
MAX = Reduction(np.fmax, "max")
ANY = Reduction(np.logical_or, "or")
ALL = Reduction(np.logical_and, "and")


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that an argument `axis` means. Raises AxisError or ValueError as NumPy does."""
    return tuple(range(ndim)) if axis is None else tuple(normalize_axis_tuple(axis, ndim))


def reduce(array: Any, how: Reduction, axis: Any, keepdims: bool, dtype: Any = None) -> Any:
    """Return the reduction of an array along axes. Collective."""
    axes = axes_of(axis, array.ndim)
    kept = [n for n in range(array.ndim) if n not in axes]
    options: dict[str, Any] = {} if dtype is None else {"dtype": np.dtype(dtype)}
    options |= _initial(how, array)
    # NumPy finds the neutral value, whose dtype is that of the result.
    neutral = how.ufunc.reduce(np.empty(0, array.dtype), **options)
    shape = tuple(array.shape[n] for n in kept)
    if how in (MIN, MAX):
        _has_elements(array, axes, shape)
    part = np.full(shape, neutral)
    _place(array, part, kept, functools.partial(how.ufunc.reduce, axis=axes, **options))
    total = array.group.all_reduce(part, how.op)
    if how in (MIN, MAX) and array.dtype.kind == "f" and np.any(total == neutral):
        # The neutral value is the result for NaNs only, too.
        numbers = np.zeros(shape, bool)
        _place(array, numbers, kept, functools.partial(_has_numbers, axes))
        total = np.where(array.group.all_reduce(numbers, "or"), total, array.dtype.type(np.nan))
    if keepdims:
        total = np.reshape(total, [1 if n in axes else array.shape[n] for n in range(array.ndim)])
    return total[()]


def _initial(how: Reduction, array: Any) -> dict[str, Any]:
    """Return the argument `initial` for a function without a neutral value."""
    if how not in (MIN, MAX):
        return {}
    kind, least = array.dtype.kind, how is MAX
    if kind == "b":
        return {"initial": not least}
    if kind in "iu":
        bounds = np.iinfo(array.dtype)
        return {"initial": bounds.min if least else bounds.max}
    if kind == "f":
        return {"initial": -np.inf if least else np.inf}
    raise TypeError(f"elements of type {array.dtype} have no order")


def _has_elements(array: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if 0 in (array.shape[n] for n in axes) and 0 not in shape:
        raise ValueError(f'array "{array.name}" is empty and has no least or largest element')


def _place(array: Any, part: Any, kept: list[int], function: Callable[[Any], Any]) -> None:
    """Store a function of this rank's elements in `part`, which has the kept axes. Collective."""
    bounds = array.bounds()
    mine = array.access()
    try:
        if bounds is not None:
            box: Any = tuple(bounds[n] for n in kept)
        else:
            box = np.ix_(*[mine.indices(n) for n in kept])
        # The view dies with the call, before the release.
        part[box] = function(mine.local)
    finally:
        mine.release()


def _has_numbers(axes: tuple[int, ...], local: Any) -> Any:
    return np.logical_or.reduce(np.equal(local, local), axis=axes)
