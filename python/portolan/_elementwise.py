"""Functions of single elements and their places, and counts of elements."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._alignment import apply, into, on_parts
from ._blocks import fill, get_box, is_distributed, make, on_own
from ._gather import gathered
from ._reductions import SUM, axes_of, reduce
from ._shapes import concatenate
from ._sorting import nonzero


def sample(x: Any) -> Any:
    """Return an object of the dtype of an operand, by which NumPy finds the dtype of a result."""
    return np.ones(1, x.dtype) if is_distributed(x) or np.ndim(x) else x


def each(function: Any, number: int = 1) -> Callable[..., Any]:
    """Return a function of NumPy that computes each element from those of its first operands.

    The other operands are the same on all ranks.
    """
    name, signature = function.__name__, inspect.signature(function)

    def call(*inputs: Any, **options: Any) -> Any:
        given = signature.bind(*inputs, **options).arguments
        own = [given.pop(key) for key in list(given)[:number]]
        if any(map(is_distributed, given.values())) or not any(map(is_distributed, own)):
            return gathered(function, inputs, options)
        if given.get("copy") is False:
            raise TypeError(f"{name} of a distributed array is a new array; assign the result")
        dtype = function(*map(sample, own), **given).dtype
        # Arrays cannot have the dtype float16.
        dtype = "f4" if dtype == "f2" else dtype
        return apply(name, lambda *own: function(*own, **given), own, dtype)

    call.__doc__ = f"Return `numpy.{name}`, a new array. Collective."
    return call


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return `numpy.where`, a distributed array. Collective.

    The operands broadcast, as for ufuncs. With a condition only, it is `nonzero`.
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    dtype = np.where(*[sample(z) for z in (condition, x, y)]).dtype
    return apply("where", np.where, (condition, x, y), dtype)


_round = each(np.round)


def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Return `numpy.round`, a new array or the distributed array `out`. Collective."""
    return into("round", out, _round(a, operator.index(decimals)))


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return `numpy.select`, a new array. Collective."""
    count = len(condlist)

    def chosen(*own: Any) -> Any:
        return np.select(own[:count], own[count:-1], own[-1])

    operands = [*condlist, *choicelist, default]
    return apply("select", chosen, operands, chosen(*map(sample, operands)).dtype)


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Return `numpy.choose`, a new array. Collective."""
    dtype = np.result_type(*choices)
    function: Any = np.choose
    found = apply("choose", lambda at, *own: function(at, own, mode=mode), [a, *choices], dtype)
    return into("choose", out, found)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any) -> Any:
    """Return `numpy.piecewise`, a new array. Collective."""

    def own(values: Any, *conditions: Any) -> Any:
        return np.piecewise(values, list(conditions), funclist, *args, **options)

    return apply("piecewise", own, [x, *condlist], x.dtype)


def tril(m: Any, k: int = 0) -> Any:
    """Return `numpy.tril`: zeros above a diagonal of the last two axes. Collective."""
    return _triangle("tril", m, k, np.greater_equal)


def triu(m: Any, k: int = 0) -> Any:
    """Return `numpy.triu`: zeros below a diagonal of the last two axes. Collective."""
    return _triangle("triu", m, k, np.less_equal)


def _triangle(name: str, m: Any, k: int, is_kept: np.ufunc) -> Any:
    if m.ndim < 2:
        raise ValueError(f'{name} needs two axes, and array "{m.name}" has the shape {m.shape}')
    made, offset = m.copy(), operator.index(k)

    def clear(mine: Any) -> None:
        rows, columns = mine.indices(m.ndim - 2), mine.indices(m.ndim - 1)
        mine.local[..., ~is_kept(rows[:, np.newaxis], columns - offset)] = 0

    on_own(made, clear)
    return made


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue
) -> Any:
    """Return `numpy.diff`, a distributed array. Collective."""
    times, along = operator.index(n), axes_of(operator.index(axis), a.ndim)[0]
    if times < 0:
        raise ValueError(f"order must be non-negative but got {times}")
    if times == 0:
        return a
    parts = [_edge(a, along, prepend), [a], _edge(a, along, append)]
    if parts[0] or parts[2]:
        a = concatenate([x for part in parts for x in part], along)
    function = np.not_equal if a.dtype == np.bool_ else np.subtract
    for _ in range(times):
        a = _diff(a, along, function)
    return a


def _edge(a: Any, axis: int, value: Any) -> list[Any]:
    """Return the operand of `concatenate` for an argument of `diff`."""
    if value is np._NoValue:
        return []
    if is_distributed(value):
        return [value]
    shape = [1 if n == axis else length for n, length in enumerate(a.shape)]
    return [np.broadcast_to(value, shape) if np.ndim(value) == 0 else np.asarray(value)]


def _diff(a: Any, axis: int, function: np.ufunc) -> Any:
    shape = [max(length - (n == axis), 0) for n, length in enumerate(a.shape)]
    made = make(a, shape, a.dtype, "diff")
    a.sync()

    def differences(*at: Any) -> Any:
        # Each run of consecutive indices needs one more element.
        along = at[axis]
        is_end = np.append(np.diff(along) != 1, True)
        places = np.arange(len(along)) + np.cumsum(is_end) - is_end
        needed = np.empty(places[-1] + 2, np.intp)
        needed[places] = along
        needed[places + 1] = along + 1
        box = list(at)
        box[axis] = needed
        found = get_box(a, box)
        if len(needed) > len(along) + 1:
            return function(found.take(places + 1, axis), found.take(places, axis))
        before = (slice(None),) * axis
        return function(found[(*before, slice(1, None))], found[(*before, slice(-1))])

    return fill(made, differences)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return `numpy.count_nonzero`. Collective. All ranks get the result."""
    found = reduce(a if a.dtype == np.bool_ else a != 0, SUM, axis, keepdims)
    return int(found) if axis is None and not keepdims else found


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Return `numpy.histogram`. Collective. All ranks get the result, two numpy arrays.

    If NumPy chooses the number of bins, the calling rank gets all elements.
    """
    if not is_distributed(a) or isinstance(bins, str):
        return gathered(np.histogram, (a, bins, range, density, weights), {})
    if a.dtype == np.bool_:
        a = a.astype(np.uint8)
    bins = np.asarray(bins) if is_distributed(bins) else bins
    if range is None and np.ndim(bins) == 0 and a.size:
        range = (a.min(), a.max())
    # NumPy checks the arguments and finds the dtypes and the edges.
    none = None if weights is None else np.empty(0, np.asarray(sample(weights)).dtype)
    total, edges = np.histogram(np.empty(0, a.dtype), bins, range, weights=none)
    if weights is not None and np.shape(weights) != a.shape:
        raise ValueError("weights should have the same shape as a.")

    def counts(own: Any, weights: Any = None) -> Any:
        return np.histogram(own, bins, range, weights=weights)[0]

    # The group adds bools as integers.
    total = a.group.all_reduce(_of_both("histogram", counts, a, weights), "sum").astype(total.dtype)
    if density:
        return total / np.array(np.diff(edges), float) / total.sum(), edges
    return total, edges


def _of_both(name: str, function: Any, a: Any, weights: Any) -> Any:
    """Return a function of this rank's elements of an array and, if there are any, of their weights."""
    return on_parts(name, function, (a,) if weights is None else (a, weights), a)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Return `numpy.bincount`. Collective. All ranks get the result, a numpy array."""
    if not is_distributed(x):
        return gathered(np.bincount, (x, weights, minlength), {})
    if x.ndim != 1:
        raise ValueError("object too deep for desired array")
    if x.dtype.kind not in "iub" or x.dtype == np.uint64:
        raise TypeError(f"bincount needs integers that fit int64, not {x.dtype}")
    length = operator.index(minlength)
    if length < 0:
        raise ValueError("'minlength' must not be negative")
    if x.size:
        if x.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        length = max(length, int(x.max()) + 1)
    if weights is not None and np.shape(weights) != x.shape:
        raise ValueError("The weights and list don't have the same length.")

    def counts(own: Any, weights: Any = None) -> Any:
        return np.bincount(own, weights, length)

    # Without elements, NumPy counts with integers.
    dtype = np.intp if weights is None or x.size == 0 else np.float64
    return x.group.all_reduce(_of_both("bincount", counts, x, weights).astype(dtype), "sum")


#: Functions that compute each element from those of one or two operands.
_EACH = {
    1: (
        *(np.real, np.imag, np.angle, np.nan_to_num, np.interp, np.digitize, np.i0, np.sinc),
        *(np.iscomplex, np.isreal, np.isneginf, np.isposinf, np.fix),
    ),
    2: (np.isclose,),
}
FUNCTIONS: dict[Any, Any] = {
    **{function: each(function, number) for number, some in _EACH.items() for function in some},
    np.where: where,
    np.result_type: lambda *inputs: np.result_type(*[x.dtype if is_distributed(x) else x for x in inputs]),
    np.round: round_,
    np.around: round_,
    np.select: select,
    np.choose: choose,
    np.piecewise: piecewise,
    np.tril: tril,
    np.triu: triu,
    np.diff: diff,
    np.count_nonzero: count_nonzero,
    np.histogram: histogram,
    np.bincount: bincount,
}
