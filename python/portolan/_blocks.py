"""Own elements of arrays, and transfers of boxes and row-major intervals.

A function that makes a new array computes the own elements of each rank from elements that it gets
from the sources, so it works for all distributions. A sync of the sources comes before the gets,
and a collective call on the result after them: no rank changes a source that another one reads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ._operands import Agreement
from ._start import _native

Indices = Sequence[np.ndarray[Any, Any]]
#: Gets of boxes with fewer elements cost more than a get by an index array.
_SMALL = 8


def is_distributed(x: Any) -> bool:
    return isinstance(x, _native.ArrayBase)


def check_group(name: str, *arrays: Any) -> None:
    """Raise ValueError unless all distributed arrays belong to one group."""
    found = [x for x in arrays if is_distributed(x)]
    for x in found[1:]:
        if x.group != found[0].group:
            raise ValueError(
                f'{name}: "{found[0].name}" and "{x.name}" belong to different groups; use '
                "redistribute() with group="
            )


def make(model: Any, shape: Sequence[int], dtype: Any, name: str = "", **options: Any) -> Any:
    """Create an array whose elements are not set, distributed like another one if the shape permits.

    Collective. It has no ghost cells.
    """
    kind = model._spec[0]
    fits = kind in ("block", "rows") or kind in ("grid", "cyclic") and len(shape) == model.ndim
    options.setdefault("distribution", model._spec if fits else "block")
    options.setdefault("group", model._group)
    return type(model)(tuple(shape), dtype, name=name, _unfilled=True, **options)


def on_own(array: Any, function: Callable[[Any], Any]) -> Any:
    """Return the result of a function of an access, which must not be a view. Collective.

    If the function raises on one rank, all raise.
    """
    with Agreement(array.group):
        mine = array.access()
        try:
            return function(mine)
        finally:
            mine.release()


def fill(made: Any, function: Callable[..., Any]) -> Any:
    """Set the own elements of an array to a function of the global indices of each axis. Collective.

    The function is called by ranks that own elements. If it raises on one of them, all raise.
    """

    def set_own(mine: Any) -> None:
        indices = [mine.indices(axis) for axis in range(made.ndim)]
        if all(len(along) for along in indices):
            mine.local[...] = function(*indices)

    on_own(made, set_own)
    return made


def _pieces(indices: np.ndarray[Any, Any]) -> list[tuple[slice, slice]]:
    """Return the runs of indices: the slices of the indices, and of their positions."""
    steps = np.diff(indices)
    if len(steps) and steps[0] and (steps == steps[0]).all():
        # Indices at equal distances are one slice.
        first, step, end = int(indices[0]), int(steps[0]), int(indices[-1] + np.sign(steps[0]))
        return [(slice(first, end if end >= 0 else None, step), slice(0, len(indices)))]
    cuts = [0, *(np.flatnonzero(steps != 1) + 1).tolist(), len(indices)]
    return [
        (slice(int(indices[begin]), int(indices[begin]) + end - begin), slice(begin, end))
        for begin, end in zip(cuts, cuts[1:])
        if begin < end
    ]


def _boxes(indices: Indices) -> Any:
    """Return the boxes of consecutive indices, or None if index arrays are better."""
    pieces = [_pieces(along) for along in indices]
    count = math.prod(len(along) for along in pieces)
    if count > 1 and math.prod(len(along) for along in indices) < _SMALL * count:
        return None
    return [tuple(zip(*box)) for box in itertools.product(*pieces)]


def get_box(array: Any, indices: Indices) -> np.ndarray[Any, Any]:
    """Return the elements at the combinations of indices of each axis. Not collective."""
    found: np.ndarray[Any, Any]
    boxes = _boxes(indices)
    if boxes is None:
        found = array[np.ix_(*indices)]
        return found
    if len(boxes) == 1:
        found = array[boxes[0][0]]
        return found
    found = np.empty([len(along) for along in indices], array.dtype)
    for source, target in boxes:
        found[target] = array[source]
    return found


def put_box(array: Any, indices: Indices, values: np.ndarray[Any, Any]) -> None:
    """Store elements at the combinations of indices of each axis. Not collective."""
    boxes = _boxes(indices)
    if boxes is None:
        array[np.ix_(*indices)] = values
        return
    for target, source in boxes:
        array[target] = values[source]


def flat_boxes(shape: Sequence[int], begin: int, end: int) -> Iterator[tuple[slice, ...]]:
    """Yield the boxes whose elements are an interval of an array in row-major order."""
    if begin >= end:
        return
    if len(shape) == 1:
        yield (slice(begin, end),)
        return
    row = math.prod(shape[1:])
    while begin < end:
        first = begin // row
        if begin % row or end - begin < row:
            until = min(end, (first + 1) * row)
            for box in flat_boxes(shape[1:], begin - first * row, until - first * row):
                yield (slice(first, first + 1), *box)
        else:
            until = end // row * row
            yield (slice(first, end // row), *[slice(0, n) for n in shape[1:]])
        begin = until


def get_flat(array: Any, begin: int, end: int) -> np.ndarray[Any, Any]:
    """Return the elements of an interval in row-major order. Not collective."""
    parts = [array[box].reshape(-1) for box in flat_boxes(array.shape, begin, end)]
    if len(parts) == 1:
        one: np.ndarray[Any, Any] = parts[0]
        return one
    return np.concatenate(parts) if parts else np.empty(0, array.dtype)


def put_flat(array: Any, begin: int, values: np.ndarray[Any, Any]) -> None:
    """Store elements in row-major order from a position on. Not collective."""
    done = 0
    for box in flat_boxes(array.shape, begin, begin + len(values)):
        shape = [along.stop - along.start for along in box]
        count = math.prod(shape)
        array[box] = values[done : done + count].reshape(shape)
        done += count


def shares(array: Any) -> list[tuple[int, int]]:
    """Return the row-major intervals of elements that the ranks of the group work on.

    They are the own elements, if these are intervals and do not differ much in number.
    """
    ranks, size = array.group.size, int(array.size)
    equal = [(size * n // ranks, size * (n + 1) // ranks) for n in range(ranks)]
    if array.bounds() is None or any(n > 1 for n in array.grid[1:]):
        return equal
    row = math.prod(array.shape[1:])
    rows = [array.bounds(rank)[0] for rank in range(ranks)]
    own = [(along.start * row, along.stop * row) for along in rows]
    most = max(end - begin for begin, end in own)
    ascends = all(a[1] == b[0] for a, b in zip(own, own[1:]))
    is_all = own[0][0] == 0 and own[-1][1] == size
    return own if ascends and is_all and most <= 2 * (size // ranks + row) else equal


def share(array: Any) -> tuple[int, int]:
    """Return the interval of `shares` of this rank."""
    found: tuple[int, int] = shares(array)[array.group.rank]
    return found


def fill_flat(made: Any, function: Callable[[int, int], Any]) -> Any:
    """Set the elements of an array by a function of intervals in row-major order. Collective.

    Each rank calls it for its share. If it raises on one of them, all raise.
    """
    with Agreement(made.group):
        begin, end = share(made)
        if begin < end:
            put_flat(made, begin, function(begin, end))
    made.sync()
    return made


def offsets(group: Any, count: int) -> tuple[int, int]:
    """Return the sum of the counts of the ranks before this one, and the sum of all. Collective."""
    counts = group.all_gather(int(count))
    return int(sum(counts[: group.rank])), int(sum(counts))
