"""Sorting, and what follows from an order: unique, searchsorted, quantiles.

All elements are sorted by a sample sort. Each rank sorts its share, and regular samples of all shares
give the splitters, which are elements with their rank and place, so equal elements are spread over
the ranks, too. Each rank gets one bucket from all ranks and merges its parts. Equal elements keep their
row-major order. Lines along an axis are sorted by the rank that has the whole line; if no rank has it,
the array is redistributed for the time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from ._blocks import apply, check_group, get_flat, is_distributed, make, offsets, on_own, put_flat, shares
from ._gather import gathered
from ._reductions import axes_of, result
from ._shapes import reshape

#: Samples of each rank for each bucket.
_SAMPLES = 32


class Bucket:
    """The elements of this rank in the order of all elements, and their row-major positions."""

    def __init__(self, values: Any, positions: Any, first: int) -> None:
        self.values, self.positions, self.first = values, positions, first


def sorted_bucket(array: Any, with_positions: bool = False) -> Bucket:
    """Return this rank's part of the sorted elements of an array. Collective."""
    array.sync()
    group, every = array.group, shares(array)
    begin, end = every[group.rank]
    values = get_flat(array, begin, end)
    positions = None
    if with_positions:
        order = np.argsort(values, kind="stable")
        values, positions = values[order], order + begin
    else:
        values = np.sort(values)
    cuts = _cuts(group, values, int(array.size))
    all_cuts = group.all_gather(cuts)
    longest = max(last - first for first, last in every)
    rank = group.rank
    own = [(of[rank], of[rank + 1]) for of in all_cuts]
    first = sum(of[rank] for of in all_cuts)
    parts = [_exchanged(array, longest, values, own)]
    if positions is not None:
        parts.append(_exchanged(array, longest, positions, own))
        order = np.argsort(parts[0], kind="stable")
        return Bucket(parts[0][order], parts[1][order], first)
    return Bucket(np.sort(parts[0]), None, first)


def _cuts(group: Any, values: Any, total: int) -> list[int]:
    """Return the places in this rank's sorted values at which the buckets begin, and their end."""
    ranks, rank = group.size, group.rank
    step = max(1, total // (ranks * _SAMPLES))
    places = np.arange(step // 2, len(values), step)
    samples = group.all_gather((values[places], places))
    found = np.concatenate([of[0] for of in samples])
    origin = np.repeat(np.arange(ranks), [len(of[1]) for of in samples])
    place = np.concatenate([of[1] for of in samples])
    order = np.argsort(found, kind="stable")
    cuts = [0]
    for bucket in range(1, ranks):
        if not len(order):
            cuts.append(0)
            continue
        splitter = order[bucket * len(order) // ranks]
        if origin[splitter] == rank:
            cuts.append(int(place[splitter]))
        else:
            side: Any = "right" if rank < origin[splitter] else "left"
            cuts.append(int(np.searchsorted(values, found[splitter], side)))
    return [*cuts, len(values)]


def _exchanged(array: Any, longest: int, values: Any, own: list[tuple[int, int]]) -> Any:
    """Return the intervals of the values of all ranks, one after the other. Collective."""
    rows = (len(own), max(longest, 1))
    room = type(array)(
        rows, values.dtype, distribution="rows", group=array._group, _unfilled=True
    )
    if len(values):
        room[array.group.rank, : len(values)] = values
    room.sync()
    found = [room[rank, begin:end] for rank, (begin, end) in enumerate(own) if begin < end]
    room.sync()
    return np.concatenate(found) if found else np.empty(0, values.dtype)


def stored(model: Any, values: Any, first: int, size: int, name: str) -> Any:
    """Create an array of one axis of the parts of all ranks, which begin at positions. Collective."""
    made = make(model, (size,), values.dtype, name)
    if len(values):
        put_flat(made, first, values)
    made.sync()
    return made


def along(array: Any, axis: int, function: Callable[[Any], Any], dtype: Any, name: str) -> Any:
    """Create an array of equal distribution by a function of the lines along an axis. Collective.

    The function gets blocks of whole lines.
    """
    lines, whole = array, array.grid[axis] == 1
    if not whole:
        lines = array.redistribute(_whole(array, axis))
    found = apply(name, function, [lines], dtype)
    if whole:
        return found
    made = array._like(dtype, name)
    made.copy_from(found)
    return made


def _whole(array: Any, axis: int) -> Any:
    """Return a distribution in which each line along an axis belongs to one rank."""
    others = [n for n in range(array.ndim) if n != axis]
    longest = max(others, key=lambda n: array.shape[n], default=None)
    ranks = [array.group.size if n == longest else 1 for n in range(array.ndim)]
    return ("grid", ranks)


def _axis(array: Any, axis: Any) -> int:
    return axes_of(operator.index(axis), array.ndim)[0]


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Return `numpy.sort`, a distributed array. Collective."""
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if axis is None or a.ndim == 1:
        if axis is not None:
            _axis(a, axis)
        bucket = sorted_bucket(a)
        return _as(a, axis, bucket.values, bucket.first, "sort")
    n = _axis(a, axis)
    return along(a, n, lambda x: np.sort(x, n), a.dtype, "sort")


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Return `numpy.argsort`, a distributed array. Collective. The sort is stable."""
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if axis is None or a.ndim == 1:
        if axis is not None:
            _axis(a, axis)
        bucket = sorted_bucket(a, True)
        return _as(a, axis, bucket.positions, bucket.first, "argsort")
    n = _axis(a, axis)
    return along(a, n, lambda x: np.argsort(x, n, kind="stable"), np.intp, "argsort")


def _as(a: Any, axis: Any, values: Any, first: int, name: str) -> Any:
    if axis is None:
        return stored(a, values, first, int(a.size), name)
    made = a._like(values.dtype, name)
    if len(values):
        put_flat(made, first, values)
    made.sync()
    return made


def accumulate(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, name: str) -> Any:
    """Return the sums or products of the elements up to each one, along an axis. Collective."""
    options: dict[str, Any] = {} if dtype is None else {"dtype": np.dtype(dtype)}
    empty = (np.cumsum if ufunc is np.add else np.cumprod)(np.empty(0, a.dtype), **options)
    options["dtype"] = empty.dtype
    if axis is not None and a.ndim > 1:
        n = _axis(a, axis)
        return along(a, n, lambda x: ufunc.accumulate(x, n, **options), empty.dtype, name)
    if axis is not None:
        _axis(a, axis)
    a.sync()
    begin, end = shares(a)[a.group.rank]
    own = ufunc.accumulate(get_flat(a, begin, end), **options)
    # A rank without elements has no last one.
    lasts = a.group.all_gather(own[-1:])
    before = np.concatenate(lasts[: a.group.rank] or [own[:0]])
    if len(before) and len(own):
        with np.errstate(all="ignore"):
            own = ufunc(ufunc.reduce(before, **options), own, **options)
    return _as(a, axis, own, begin, name)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return `numpy.cumsum`, a distributed array. Collective."""
    _no_out("cumsum", out)
    return accumulate(np.add, a, axis, dtype, "cumsum")


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return `numpy.cumprod`, a distributed array. Collective."""
    _no_out("cumprod", out)
    return accumulate(np.multiply, a, axis, dtype, "cumprod")


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise TypeError(f"{name} of distributed arrays has no `out`; assign the result")


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    **options: Any,
) -> Any:
    """Return `numpy.unique`, distributed arrays of one axis. Collective.

    With `axis`, the calling rank gets all elements.
    """
    if axis is not None or not options.pop("sorted", True) or options:
        # NumPy 1.23 has no `equal_nan`.
        more = dict(axis=axis, **options) | ({} if equal_nan else {"equal_nan": False})
        return gathered(np.unique, (ar, return_index, return_inverse, return_counts), more)
    bucket = sorted_bucket(ar, return_index or return_inverse)
    values, group = bucket.values, ar.group
    lasts = group.all_gather(values[-1:])
    before = np.concatenate(lasts[: group.rank] or [values[:0]])[-1:]
    extended = np.concatenate([before, values])
    is_new = extended[1:] != extended[:-1]
    if equal_nan and values.dtype.kind in "fc":
        is_new &= ~(np.isnan(extended[1:]) & np.isnan(extended[:-1]))
    if not len(before) and len(values):
        is_new = np.concatenate([[True], is_new])
    places = np.flatnonzero(is_new)
    first, total = offsets(group, len(places))

    def listed(part: Any, name: str) -> Any:
        return stored(ar, part, first, total, name)

    found = [listed(values[places], "unique")]
    if return_index:
        found.append(listed(bucket.positions[places], "index"))
    if return_inverse:
        inverse = make(ar, (int(ar.size),), np.intp, "inverse")
        if len(values):
            inverse[bucket.positions] = first - 1 + np.cumsum(is_new)
        inverse.sync()
        found.append(_inverse(inverse, ar.shape))
    if return_counts:
        starts = bucket.first + places
        following = group.all_gather(starts[:1])[group.rank + 1 :]
        after = np.concatenate([*following, [int(ar.size)]])[:1]
        counts = np.diff(np.concatenate([starts, after])) if len(starts) else starts
        found.append(listed(counts.astype(np.intp), "counts"))
    return found[0] if len(found) == 1 else tuple(found)


def _inverse(inverse: Any, shape: tuple[int, ...]) -> Any:
    """Return the inverse in the shape that this version of NumPy gives it."""
    sample = np.unique(np.zeros((1,) * len(shape)), return_inverse=True)[1]
    return inverse if sample.ndim == 1 else reshape(inverse, shape)


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return `numpy.searchsorted`. Collective.

    The result is distributed like `v`, or a numpy array if `v` is none.
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if a.ndim != 1:
        raise ValueError(f'searchsorted needs an array of one axis, not "{a.name}" {a.shape}')
    if sorter is not None:
        return gathered(np.searchsorted, (a, v, side, sorter), {})
    dtype = np.promote_types(a.dtype, v.dtype if hasattr(v, "dtype") else np.asarray(v).dtype)
    if not is_distributed(v):
        # Own elements of a sorted array are sorted, for all distributions.
        keys = np.asarray(v).astype(dtype)
        own = on_own(a, lambda mine: np.searchsorted(mine.local.astype(dtype), keys, side))
        return a.group.all_reduce(np.asarray(own, np.intp), "sum")
    check_group("searchsorted", a, v)
    a.sync()
    size, ranks = int(a.size), a.group.size

    def places(own: Any) -> Any:
        found, keys = np.zeros(own.shape, np.intp), own.astype(dtype)
        for rank in range(ranks if own.size else 0):
            some = a[size * rank // ranks : size * (rank + 1) // ranks]
            found += np.searchsorted(some.astype(dtype), keys, side)
        return found

    return apply("searchsorted", places, [v], np.intp)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """Return `numpy.quantile`. Collective. All ranks get the result, a numpy array or a scalar.

    For several axes, weights and uncommon methods, the calling rank gets all elements.
    """
    return _quantile(np.quantile, 1, a, q, axis, out, method, keepdims, options)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """Return `numpy.percentile`; see `quantile`. Collective."""
    return _quantile(np.percentile, 100, a, q, axis, out, method, keepdims, options)


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """Return `numpy.median`; see `quantile`. Collective."""
    function: Any = lambda x, q, axis=None, **_: np.median(x, axis)  # noqa: E731
    return _quantile(function, 1, a, 0.5, axis, out, "linear", keepdims, {}, np.median)


def _quantile(
    function: Any,
    whole: float,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    method: str,
    keepdims: bool,
    options: dict[str, Any],
    original: Any = None,
) -> Any:
    given = {k: x for k, x in options.items() if x is not None}
    method = given.pop("interpolation", method)
    axes = axes_of(axis, a.ndim)
    common = method in ("linear", "lower", "higher", "midpoint") and a.dtype.kind in "iuf"
    if given or not common or a.size == 0 or len(axes) not in (1, a.ndim):
        if original is not None:
            return gathered(original, (a,), dict(axis=axis, out=out, keepdims=keepdims))
        more = dict(axis=axis, out=out, method=method, keepdims=keepdims, **options)
        return gathered(function, (a, q), more)
    if len(axes) == a.ndim:
        found = _of_all(function, whole, a, q, method)
    else:
        found = _of_lines(function, a, q, axes[0], method)
    if keepdims:
        kept = [1 if n in axes else a.shape[n] for n in range(a.ndim)]
        found = np.reshape(found, [*np.shape(found)[: np.ndim(q)], *kept])
    return result(a, np.asarray(found), axes, False, out)


def _of_all(function: Any, whole: float, a: Any, q: Any, method: str) -> Any:
    """Return quantiles of all elements, of the two elements around each."""
    with np.errstate(all="ignore"):
        fractions = np.asarray(q, np.float64) / whole
    if not np.all((fractions >= 0) & (fractions <= 1)):
        raise ValueError("quantiles must be in the range [0, 1], and percentiles in [0, 100]")
    bucket = sorted_bucket(a)
    size = int(a.size)
    at = fractions.reshape(-1) * (size - 1)
    low = np.floor(at).astype(np.intp)
    # NaNs are the last ones, and then all results are NaN.
    wanted = np.stack([low, np.minimum(low + 1, size - 1), np.full_like(low, size - 1)])
    parts = np.zeros(wanted.shape, a.dtype)
    mine = (wanted >= bucket.first) & (wanted < bucket.first + len(bucket.values))
    parts[mine] = bucket.values[wanted[mine] - bucket.first]
    # Only one rank has each of them, and the other parts are zero.
    parts = _sum_of_parts(a.group, parts, mine)
    found = [
        function(pair if x > n else pair[:1], (x - n) * whole, method=method)
        if last == last
        else last
        for *pair, last, x, n in zip(*parts, at, low)
    ]
    dtype = function(np.zeros(2, a.dtype), q, method=method).dtype
    return np.asarray(found, dtype).reshape(np.shape(q))


def _sum_of_parts(group: Any, parts: Any, mine: Any) -> Any:
    every = group.all_gather((parts[mine], mine))
    for values, where in every:
        parts[where] = values
    return parts


def _of_lines(function: Any, a: Any, q: Any, axis: int, method: str) -> Any:
    """Return quantiles of the lines along an axis."""
    lines = a if a.grid[axis] == 1 else a.redistribute(_whole(a, axis))
    kept = [n for n in range(a.ndim) if n != axis]
    shape = [a.shape[n] for n in kept]
    dtype = function(np.zeros(2, a.dtype), q, method=method).dtype
    found = np.zeros((*np.shape(q), *shape), dtype)

    def set_own(mine: Any) -> None:
        box = np.ix_(*[np.arange(n) for n in np.shape(q)], *[mine.indices(n) for n in kept])
        if mine.local.size:
            found[box] = function(mine.local, q, axis=axis, method=method)

    on_own(lines, set_own)
    # Of the parts of the ranks, all but one are zero. NaNs remain NaN.
    return a.group.all_reduce(found, "sum")


def nonzero(a: Any) -> Any:
    """Return `numpy.nonzero`: a distributed array of indices for each axis. Collective."""
    flat, first, total = _nonzero(a)
    return tuple(
        stored(a, np.asarray(along, np.intp), first, total, "nonzero")
        for along in np.unravel_index(flat, a.shape)
    )


def flatnonzero(a: Any) -> Any:
    """Return `numpy.flatnonzero`, a distributed array. Collective."""
    flat, first, total = _nonzero(a)
    return stored(a, flat, first, total, "flatnonzero")


def argwhere(a: Any) -> Any:
    """Return `numpy.argwhere`, a distributed array. Collective."""
    flat, first, total = _nonzero(a)
    made = make(a, (total, a.ndim), np.intp, "argwhere", distribution="rows")
    if len(flat):
        made[first : first + len(flat)] = np.stack(np.unravel_index(flat, a.shape), axis=1)
    made.sync()
    return made


def _nonzero(a: Any) -> tuple[Any, int, int]:
    """Return the positions of this rank's share that are not zero, their place, and their number."""
    a.sync()
    begin, end = shares(a)[a.group.rank]
    flat = np.flatnonzero(get_flat(a, begin, end)) + begin
    return (flat, *offsets(a.group, len(flat)))


def extract(condition: Any, arr: Any) -> Any:
    """Return `numpy.extract`: the elements at which a condition holds. Collective."""
    if not (is_distributed(condition) and is_distributed(arr) and condition.shape == arr.shape):
        return gathered(np.extract, (condition, arr), {})
    check_group("extract", condition, arr)
    condition.sync()
    arr.sync()
    begin, end = shares(arr)[arr.group.rank]
    chosen = get_flat(arr, begin, end)[get_flat(condition, begin, end).astype(bool)]
    return stored(arr, chosen, *offsets(arr.group, len(chosen)), "extract")


FUNCTIONS: dict[Any, Optional[Callable[..., Any]]] = {
    np.sort: sort,
    np.argsort: argsort,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.unique: unique,
    np.searchsorted: searchsorted,
    np.quantile: quantile,
    np.percentile: percentile,
    np.median: median,
    np.nonzero: nonzero,
    np.flatnonzero: flatnonzero,
    np.argwhere: argwhere,
    np.extract: extract,
}
