"""Sorting, searches in sorted arrays, running sums, and the places of elements that are not zero.

All elements are sorted by a sample sort. Each rank sorts its share, and regular samples of all shares
give the splitters, which are elements with their rank and place, so equal elements are spread over
the ranks, too. Each rank gets one bucket from all ranks and merges its parts. Equal elements keep their
row-major order. Lines along an axis are sorted by the rank that has the whole line; if no rank has it,
the array is redistributed for the time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._alignment import apply, into
from ._blocks import check_group, get_flat, is_distributed, make, offsets, on_own, put_flat, shares
from ._gather import gathered
from ._reductions import axes_of
from ._shapes import concatenate, take, unstack

#: Samples of each rank for each bucket.
_SAMPLES = 32


class Bucket:
    """The elements of this rank in the order of all elements, and their row-major positions.

    The elements of a matrix may be its rows.
    """

    def __init__(self, values: Any, positions: Any, first: int) -> None:
        self.values, self.positions, self.first = values, positions, first


def keys(values: Any) -> Any:
    """Return what orders elements, or rows in lexicographic order."""
    if values.ndim == 1:
        return values
    fields = [(f"f{n}", values.dtype) for n in range(values.shape[1])]
    return np.ascontiguousarray(values).view(fields).reshape(-1)


def sorted_bucket(array: Any, with_positions: bool = False, rows: bool = False) -> Bucket:
    """Return this rank's part of the sorted elements of an array, or rows of a matrix. Collective."""
    array.sync()
    group = array.group
    if rows:
        total = array.shape[0]
        every = [(total * n // group.size, total * (n + 1) // group.size) for n in range(group.size)]
    else:
        total, every = int(array.size), shares(array)
    begin, end = every[group.rank]
    values = array[begin:end] if rows else get_flat(array, begin, end)
    positions = None
    if with_positions or rows:
        order = np.argsort(keys(values), kind="stable")
        values, positions = values[order], order + begin
    else:
        values = np.sort(values)
    cuts = _cuts(group, keys(values), total)
    all_cuts = group.all_gather(cuts)
    longest = max(last - first for first, last in every)
    rank = group.rank
    own = [(of[rank], of[rank + 1]) for of in all_cuts]
    first = sum(of[rank] for of in all_cuts)
    parts = [_exchanged(array, longest, values, own)]
    if positions is not None:
        parts.append(_exchanged(array, longest, positions, own))
        order = np.argsort(keys(parts[0]), kind="stable")
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
    shape = (len(own), max(longest, 1), *values.shape[1:])
    room = type(array)(
        shape, values.dtype, distribution="rows", group=array._group, _unfilled=True
    )
    if len(values):
        room[array.group.rank, : len(values)] = values
    room.sync()
    found = [room[rank, begin:end] for rank, (begin, end) in enumerate(own) if begin < end]
    room.sync()
    return np.concatenate([values[:0], *found])


def stored(model: Any, values: Any, first: int, size: int, name: str) -> Any:
    """Create an array of the parts of all ranks, which begin at positions of the first axis. Collective."""
    made = make(model, (size, *values.shape[1:]), values.dtype, name)
    if len(values):
        made[first : first + len(values)] = values
    made.sync()
    return made


def along(array: Any, axis: int, function: Callable[[Any], Any], dtype: Any, name: str) -> Any:
    """Create an array of equal distribution by a function of the lines along an axis. Collective.

    The function gets blocks of whole lines.
    """
    lines, whole = array, array.grid[axis] == 1
    if not whole:
        lines = array.redistribute(whole_lines(array, axis))
    found = apply(name, function, [lines], dtype)
    if whole:
        return found
    made = array._like(dtype, name)
    made.copy_from(found)
    return made


def whole_lines(array: Any, axis: int) -> Any:
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
    return into("cumsum", out, accumulate(np.add, a, axis, dtype, "cumsum"))


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return `numpy.cumprod`, a distributed array. Collective."""
    return into("cumprod", out, accumulate(np.multiply, a, axis, dtype, "cumprod"))


def _cumulative(ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    def call(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        if axis is None and x.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        n = _axis(x, 0 if axis is None else axis)
        found = accumulate(ufunc, x, n, dtype, name)
        if include_initial:
            shape = [1 if k == n else length for k, length in enumerate(x.shape)]
            found = concatenate([np.full(shape, ufunc.identity, found.dtype), found], n)
        return into(name, out, found)

    return call


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return `numpy.lexsort` of keys of one axis, a distributed array. Collective."""
    every = unstack(keys) if is_distributed(keys) else list(keys)
    if any(np.ndim(key) != 1 for key in every):
        raise TypeError("lexsort of distributed arrays takes keys of one axis")
    order = np.argsort(every[0], kind="stable")
    for key in every[1:]:
        order = np.take(order, np.argsort(np.take(key, order), kind="stable"))
    return order


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Return `numpy.searchsorted`. Collective.

    The result is distributed like `v`, or a numpy array if `v` is none.
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if not is_distributed(a):
        if sorter is not None:
            a = np.take(a, sorter)  # NumPy's, if the sorter is none
        if not is_distributed(a):
            return apply("searchsorted", lambda own: np.searchsorted(a, own, side), [v], np.intp)
    if a.ndim != 1:
        raise ValueError(f'searchsorted needs an array of one axis, not "{a.name}" {a.shape}')
    if sorter is not None:
        a = take(a, sorter)
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


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sort: sort,
    np.argsort: argsort,
    # A sorted array is partitioned at all places.
    np.partition: lambda a, kth, axis=-1, kind=None, order=None: sort(a, axis, kind, order),
    np.argpartition: lambda a, kth, axis=-1, kind=None, order=None: argsort(a, axis, kind, order),
    np.lexsort: lexsort,
    np.cumsum: cumsum,
    np.cumprod: cumprod,
    np.searchsorted: searchsorted,
    np.nonzero: nonzero,
    np.flatnonzero: flatnonzero,
    np.argwhere: argwhere,
    np.extract: extract,
}
if hasattr(np, "cumulative_sum"):  # NumPy 2.1
    FUNCTIONS[np.cumulative_sum] = _cumulative(np.add, "cumulative_sum")
    FUNCTIONS[np.cumulative_prod] = _cumulative(np.multiply, "cumulative_prod")
