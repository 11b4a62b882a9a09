"""Reductions of distributed arrays, along some axes or all of them.

Each rank reduces its own elements, and one all-reduce combines the parts. The result is a numpy
array that all ranks have, because it is small compared with the array.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._alignment import broadcast_to, mask
from ._start import _native
from ._warnings import reported

try:
    from numpy.lib.array_utils import normalize_axis_tuple
except ImportError:  # NumPy 1
    from numpy.core.numeric import normalize_axis_tuple  # type: ignore[no-redef,import-not-found,unused-ignore]


class Reduction(NamedTuple):
    """A function of NumPy, and the operator that combines the parts of the ranks."""

    ufunc: np.ufunc
    op: str


SUM = Reduction(np.add, "sum")
PRODUCT = Reduction(np.multiply, "prod")
MIN = Reduction(np.minimum, "min")
MAX = Reduction(np.maximum, "max")
# These ignore NaNs.
FMIN = Reduction(np.fmin, "min")
FMAX = Reduction(np.fmax, "max")
ANY = Reduction(np.logical_or, "or")
ALL = Reduction(np.logical_and, "and")
# Reductions without a neutral value.
EXTREMA = (MIN, MAX, FMIN, FMAX)
# The reductions that `ufunc.reduce` means.
BY_UFUNC = {how.ufunc: how for how in (SUM, PRODUCT, *EXTREMA, ANY, ALL)}


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that an argument `axis` means. Raises AxisError or ValueError as NumPy does."""
    return tuple(range(ndim)) if axis is None else tuple(normalize_axis_tuple(axis, ndim))


def reduce(
    array: Any,
    how: Reduction,
    axis: Any,
    keepdims: bool,
    dtype: Any = None,
    out: Any = None,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the reduction of an array along axes. Collective."""
    axes = axes_of(axis, array.ndim)
    _check_out(out)
    where = mask(how.ufunc.__name__, where, array)
    given = initial is not None and initial is not np._NoValue
    if how in EXTREMA and where is not True and not given:
        raise ValueError(f"{how.ufunc.__name__} with `where` needs `initial`")
    if dtype is None and how in (SUM, PRODUCT) and out is not None:
        dtype = np.result_type(array.dtype, out.dtype)
    kept = [n for n in range(array.ndim) if n not in axes]
    options: dict[str, Any] = {}
    if dtype is not None:
        options["dtype"] = np.dtype(dtype).newbyteorder("=")
    options |= _initial(how, array)
    # NumPy finds the neutral value, whose dtype is that of the result.
    neutral = how.ufunc.reduce(np.empty(0, array.dtype), **options)
    shape = tuple(array.shape[n] for n in kept)
    if how in EXTREMA and not given:
        has_elements(array, axes)
    part = np.full(shape, neutral)

    def own(mine: Any, _: Any, chosen: Any) -> Any:
        return how.ufunc.reduce(mine.local, axis=axes, where=chosen, **options)

    place(array, part, kept, own, where)
    # The group adds bools as integers.
    call = f'{how.ufunc.__name__} along axes {axes} of "{array.name}"'
    if given:
        call += f", initial {initial!r}"
    total = array.group.all_reduce(part, how.op, _call=call).astype(part.dtype, copy=False)
    if how in (FMIN, FMAX) and array.dtype.kind == "f" and np.any(total == neutral):
        # The neutral value is the result for NaNs only, too.
        numbers = np.zeros(shape, bool)
        place(array, numbers, kept, lambda mine, _, chosen: _has_numbers(mine.local, axes, chosen), where)
        nans = ~array.group.all_reduce(numbers, "or")
        total = np.where(nans, array.dtype.type(np.nan), total)
    if given:
        total = np.asarray(total)[np.newaxis]
        total = how.ufunc.reduce(total, axis=0, dtype=total.dtype, initial=initial)
    return result(array, np.asarray(total), axes, keepdims, out)


def count(array: Any, axis: Any, keepdims: bool = False, where: Any = True) -> Any:
    """Return the number of elements that a reduction along axes combines.

    Collective if `where` is a distributed array.
    """
    if isinstance(where, _native.ArrayBase):
        if where.shape != array.shape:
            where = broadcast_to(where, array.shape)
        return reduce(where, SUM, axis, keepdims)
    axes = axes_of(axis, array.ndim)
    if np.ndim(where) == 0:
        return math.prod(array.shape[n] for n in axes) if where else 0
    return np.sum(np.broadcast_to(where, array.shape), axes, np.intp, keepdims=keepdims)


def variance(
    array: Any,
    root: bool,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: float,
    keepdims: bool,
    where: Any = True,
) -> Any:
    """Return the variance or its square root, of all elements or along axes. Collective.

    The mean is found first, and then the mean of the squared distances to it, as in NumPy.
    """
    axes = axes_of(axis, array.ndim)
    _check_out(out)
    if dtype is None and array.dtype.kind in "biu":
        dtype = np.float64
    mean = np.asarray(array.mean(axis, dtype, where=where))
    kept = [n for n in range(array.ndim) if n not in axes]
    part = np.zeros(mean.shape, mean.real.dtype if dtype is None else mean.dtype)

    def squares(mine: Any, box: Any, chosen: Any) -> Any:
        distance = mine.local - np.expand_dims(mean[box], axes)
        squared = (distance * distance.conj()).real
        return np.sum(squared, axis=axes, dtype=part.dtype, where=chosen)

    place(array, part, kept, squares, mask("var", where, array))
    total = array.group.all_reduce(part, SUM.op)
    freedom = np.maximum(count(array, axis, where=where) - ddof, 0)
    with reported("var"):
        found = np.true_divide(total, freedom).astype(part.dtype)  # NumPy 1 may give float64
    return result(array, np.asarray(np.sqrt(found) if root else found), axes, keepdims, out)


def position(array: Any, how: Reduction, axis: Any, keepdims: bool, out: Any) -> Any:
    """Return the position of the least or largest element, of all or along one axis. Collective."""
    axes = axes_of(None if axis is None else operator.index(axis), array.ndim)
    _check_out(out)
    if out is not None and not np.can_cast(out.dtype, np.intp):
        raise TypeError(f"cannot store positions in `out` of {out.dtype!r} (safe)")
    first = array._extremum_position(how is MAX) if axis is None else _along(array, how, axes[0])
    return result(array, np.asarray(first), axes, keepdims, out)


def _along(array: Any, how: Reduction, axis: int) -> Any:
    """Return the first positions of the least or largest elements along an axis. Collective."""
    kept = [n for n in range(array.ndim) if n != axis]
    end = array.shape[axis]
    if end == 0:
        raise ValueError(f'array "{array.name}" has no elements along axis {axis}')
    best = reduce(array, how, axis, False)
    first = np.full([array.shape[n] for n in kept], end, np.intp)
    place(
        array,
        first,
        kept,
        lambda mine, box, _: _first(mine.local, best[box], mine.indices(axis), axis, end),
    )
    return array.group.all_reduce(first, "min")


def _initial(how: Reduction, array: Any) -> dict[str, Any]:
    """Return the argument `initial` for a function without a neutral value."""
    if how not in EXTREMA:
        return {}
    kind, least = array.dtype.kind, how.op == "max"
    if kind == "b":
        return {"initial": not least}
    if kind in "iu":
        bounds = np.iinfo(array.dtype)
        return {"initial": bounds.min if least else bounds.max}
    if kind == "f":
        return {"initial": -np.inf if least else np.inf}
    raise TypeError(f"elements of type {array.dtype} have no order")


def has_elements(array: Any, axes: tuple[int, ...]) -> None:
    if 0 in (array.shape[n] for n in axes):
        raise ValueError(f'array "{array.name}" is empty and has no least or largest element')


def _check_out(out: Any) -> None:
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError("`out` of a reduction is not a numpy array; every rank gets the result")


def result(array: Any, total: Any, axes: tuple[int, ...], keepdims: bool, out: Any) -> Any:
    """Return a result, or store it in `out` with any cast, as NumPy does.

    Kept axes have length one. All ranks have communicated, so they stay in step if one raises.
    """
    if keepdims:
        total = np.reshape(total, [1 if n in axes else array.shape[n] for n in range(array.ndim)])
    if out is None:
        return total[()]
    if out.shape != total.shape:
        raise ValueError(f"`out` of shape {out.shape} for a result of shape {total.shape}")
    np.copyto(out, total, casting="unsafe")
    return out


def place(
    array: Any, part: Any, kept: list[int], function: Callable[[Any, Any, Any], Any], where: Any = True
) -> None:
    """Store a function of this rank's elements in `part`, which has the kept axes. Collective.

    The function gets the access, the index in `part` of this rank's elements, and their mask. It
    raises no floating-point errors, because the other ranks continue.
    """
    bounds = array.bounds()
    is_array = isinstance(where, _native.ArrayBase)
    mine = its = array.access()
    try:
        if is_array and where is not array:
            its = where.access()
        if bounds is not None:
            box: Any = tuple(bounds[n] for n in kept)
        else:
            box = np.ix_(*[mine.indices(n) for n in kept])
        # The views of the function die with the call, before the release.
        with np.errstate(all="ignore"):
            part[box] = function(mine, box, its.local if is_array else where)
    finally:
        its.release()
        mine.release()


def _has_numbers(local: Any, axes: tuple[int, ...], chosen: Any) -> Any:
    return np.logical_or.reduce(np.equal(local, local), axis=axes, where=chosen)


def _first(local: Any, best: Any, indices: Any, axis: int, end: int) -> Any:
    """Return the first of the indices along an axis at which an element is the best one, or `end`.

    A NaN is the best one.
    """
    best = np.expand_dims(best, axis)
    places = np.reshape(indices, [-1 if n == axis else 1 for n in range(local.ndim)])
    found = (local == best) | (best != best) & (local != local)
    return np.min(np.broadcast_to(places, local.shape), axis=axis, initial=end, where=found)
