"""Functions that arrange elements in another shape or order: reshape, roll, concatenate, take."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from ._blocks import (
    apply,
    check_group,
    fill,
    fill_flat,
    get_box,
    get_flat,
    is_distributed,
    make,
    put_flat,
    share,
)
from ._gather import gathered
from ._reductions import axes_of


def transposed(array: Any, order: Sequence[int], copy: bool = False) -> Any:
    """Return an array with the axes in another order, or itself if the order is the same. Collective."""
    same = list(order) == list(range(array.ndim))
    return (array.copy() if copy else array) if same else array.transpose(tuple(order))


def reshape(array: Any, shape: Any) -> Any:
    """Return a new array of the same elements in row-major order. Collective.

    Each rank gets its share of the elements and puts it to the new places.
    """
    given = [operator.index(n) for n in (shape if np.ndim(shape) else (shape,))]
    lengths = list(given)
    if lengths.count(-1) == 1:
        rest = math.prod(n for n in lengths if n != -1)
        if rest and array.size % rest == 0:
            lengths[lengths.index(-1)] = int(array.size) // rest
    if math.prod(lengths) != array.size or min(lengths, default=0) < 0:
        raise ValueError(
            f'cannot reshape array "{array.name}" of size {array.size} into shape {tuple(given)}'
        )
    if not lengths:
        raise ValueError(f'array "{array.name}": a distributed array has at least one axis')
    made = make(array, lengths, array.dtype, "reshape")
    array.sync()
    begin, end = share(array)
    if begin < end:
        put_flat(made, begin, get_flat(array, begin, end))
    made.sync()
    return made


def ravel(array: Any) -> Any:
    """Return a new array of one axis, with the elements in row-major order. Collective."""
    return reshape(array, (int(array.size),))


def _np_reshape(a: Any, /, shape: Any = None, order: str = "C", **options: Any) -> Any:
    if "newshape" in options:
        shape = options.pop("newshape")
    if options.pop("copy", None) is False:
        raise ValueError("a distributed array cannot be reshaped without a copy")
    if options or order not in ("C", "A", "K"):
        return gathered(np.reshape, (a, shape), dict(order=order, **options))
    return reshape(a, shape)


def _np_ravel(a: Any, order: str = "C") -> Any:
    return ravel(a) if order in ("C", "A", "K") else gathered(np.ravel, (a,), {"order": order})


def expand_dims(a: Any, axis: Any) -> Any:
    """Return `numpy.expand_dims`, a new array. Collective."""
    number = a.ndim + (len(axis) if np.ndim(axis) else 1)
    new, lengths = axes_of(axis, number), iter(a.shape)
    return reshape(a, [1 if n in new else next(lengths) for n in range(number)])


def squeeze(a: Any, axis: Any = None) -> Any:
    """Return `numpy.squeeze`, a new array. Collective. One axis remains at least."""
    gone = axes_of(axis, a.ndim) if axis is not None else [n for n in range(a.ndim) if a.shape[n] == 1]
    if any(a.shape[n] != 1 for n in gone):
        raise ValueError(f'cannot squeeze array "{a.name}" {a.shape}: an axis has not the length 1')
    return reshape(a, [a.shape[n] for n in range(a.ndim) if n not in gone] or (1,))


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Return `numpy.roll`: the elements moved along axes, or in row-major order. Collective."""
    made = make(a, a.shape, a.dtype, "roll")
    a.sync()
    if axis is None:
        size, by = int(a.size), int(np.sum(shift))

        def moved(begin: int, end: int) -> Any:
            first = (begin - by) % size
            until = first + end - begin
            parts = [get_flat(a, first, min(until, size)), get_flat(a, 0, until - size)]
            return np.concatenate(parts)

        return fill_flat(made, moved)
    pairs = np.broadcast(shift, axis)
    if pairs.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    shifts = [0] * a.ndim
    for by, along in pairs:
        shifts[axes_of(int(along), a.ndim)[0]] += int(by)
    return fill(
        made, lambda *at: get_box(a, [(n - by) % length for n, by, length in zip(at, shifts, a.shape)])
    )


def flip(m: Any, axis: Any = None) -> Any:
    """Return `numpy.flip`: the elements in reverse order along axes. Collective."""
    axes = axes_of(axis, m.ndim)
    made = make(m, m.shape, m.dtype, "flip")
    m.sync()

    def reversed_(*at: Any) -> Any:
        box = [m.shape[n] - 1 - at[n][::-1] if n in axes else at[n] for n in range(m.ndim)]
        return np.flip(get_box(m, box), axes)

    return fill(made, reversed_)


def _alike(name: str, arrays: Any) -> tuple[list[Any], Any]:
    """Return operands, distributed or numpy arrays, and a distributed one. All are complete."""
    found: list[Any] = [x if is_distributed(x) else np.asarray(x) for x in arrays]
    check_group(name, *found)
    distributed = [x for x in found if is_distributed(x)]
    for x in distributed:
        x.sync()
    return found, distributed[0]


def _box_of(x: Any, indices: Any) -> Any:
    return get_box(x, indices) if is_distributed(x) else x[np.ix_(*indices)]


def concatenate(
    arrays: Any, axis: Optional[int] = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Return `numpy.concatenate`, a distributed array. Collective.

    The arrays may be numpy arrays that all ranks have.
    """
    if out is not None:
        raise TypeError("concatenate of distributed arrays has no `out`; assign the result")
    parts, model = _alike("concatenate", arrays)
    dtype = np.concatenate([np.empty(0, x.dtype) for x in parts], dtype=dtype, casting=casting).dtype
    if axis is None:
        parts = [ravel(x) if is_distributed(x) else x.ravel() for x in parts]
        axis = 0
    along = axes_of(operator.index(axis), parts[0].ndim)[0]
    shapes = [tuple(x.shape[:along]) + tuple(x.shape[along + 1 :]) for x in parts]
    if len(set(shapes)) > 1 or len({x.ndim for x in parts}) > 1:
        raise ValueError(
            f"concatenate: the shapes {[tuple(x.shape) for x in parts]} differ in an axis other than {along}"
        )
    ends = np.cumsum([0] + [x.shape[along] for x in parts]).tolist()
    shape = list(parts[0].shape)
    shape[along] = ends[-1]

    def joined(*at: Any) -> Any:
        found = np.empty([len(n) for n in at], dtype)
        for x, begin, end in zip(parts, ends, ends[1:]):
            first, last = np.searchsorted(at[along], (begin, end))
            if first < last:
                box = list(at)
                box[along] = at[along][first:last] - begin
                found[(slice(None),) * along + (slice(first, last),)] = _box_of(x, box)
        return found

    return fill(make(model, shape, dtype, "concatenate"), joined)


def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Return `numpy.stack`, a distributed array. Collective; see `concatenate`."""
    if out is not None:
        raise TypeError("stack of distributed arrays has no `out`; assign the result")
    parts, model = _alike("stack", arrays)
    if len({tuple(x.shape) for x in parts}) > 1:
        raise ValueError("all input arrays must have the same shape")
    dtype = np.concatenate([np.empty(0, x.dtype) for x in parts], dtype=dtype, casting=casting).dtype
    along = axes_of(operator.index(axis), model.ndim + 1)[0]
    shape = (*model.shape[:along], len(parts), *model.shape[along:])

    def stacked(*at: Any) -> Any:
        found = np.empty([len(n) for n in at], dtype)
        box = at[:along] + at[along + 1 :]
        for position, n in enumerate(at[along]):
            found[(slice(None),) * along + (position,)] = _box_of(parts[n], box)
        return found

    return fill(make(model, shape, dtype, "stack"), stacked)


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return `numpy.vstack`, a distributed array. Collective; see `concatenate`."""
    parts = list(tup)
    if all(np.ndim(x) == 1 for x in parts):
        return stack(parts, dtype=dtype, casting=casting)
    rows = [
        reshape(x, (1, int(x.size))) if is_distributed(x) and x.ndim == 1 else x for x in parts
    ]
    rows = [x if is_distributed(x) else np.atleast_2d(x) for x in rows]
    return concatenate(rows, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return `numpy.hstack`, a distributed array. Collective; see `concatenate`."""
    parts = [x if np.ndim(x) else np.atleast_1d(x) for x in tup]
    return concatenate(parts, int(np.ndim(parts[0]) > 1), dtype=dtype, casting=casting)


def _positions(indices: Any, length: int, mode: str) -> Any:
    """Return indices from 0 on. Raises IndexError as numpy.take does."""
    if mode == "wrap":
        return indices % max(length, 1)
    if mode == "clip":
        return np.clip(indices, 0, max(length - 1, 0))
    if mode != "raise":
        raise ValueError(f"the mode {mode!r} is none of 'raise', 'wrap' and 'clip'")
    wrong = (indices < -length) | (indices >= length)
    if wrong.any():
        raise IndexError(f"index {indices[wrong][0]} is out of bounds for axis with size {length}")
    return np.where(indices < 0, indices + length, indices)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Return `numpy.take`, a distributed array. Collective.

    All ranks have the same indices, or the indices are a distributed array. A single index along the
    only axis gives the element.
    """
    if out is not None:
        raise TypeError("take of distributed arrays has no `out`; assign the result")
    if is_distributed(indices):
        if axis is None or a.ndim == 1:
            return _take_each(a, indices, mode)
        indices.sync()
    chosen = np.asarray(indices)
    if not chosen.size and not hasattr(indices, "dtype"):
        chosen = chosen.astype(np.intp)
    if chosen.dtype.kind not in "iu":
        raise TypeError(f"take needs integers as indices, not {chosen.dtype}")
    if axis is None and a.ndim > 1:
        a = ravel(a)
    along = axes_of(0 if axis is None else operator.index(axis), a.ndim)[0]
    length = a.shape[along]
    if length == 0 and chosen.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    chosen = _positions(chosen.astype(np.intp), length, mode)
    flat = chosen.reshape(-1)
    shape = (*a.shape[:along], len(flat), *a.shape[along + 1 :])
    a.sync()
    found = fill(
        make(a, shape, a.dtype, "take"),
        lambda *at: get_box(a, [flat[at[n]] if n == along else at[n] for n in range(a.ndim)]),
    )
    shape = (*a.shape[:along], *chosen.shape, *a.shape[along + 1 :])
    if not shape:
        return found[0]
    return found if shape == found.shape else reshape(found, shape)


def _take_each(a: Any, indices: Any, mode: str) -> Any:
    """Return the elements at distributed positions in row-major order, distributed like these."""
    if indices.dtype.kind not in "iu":
        raise TypeError(f"take needs integers as indices, not {indices.dtype}")
    check_group("take", a, indices)
    a.sync()

    def each(own: Any) -> Any:
        if not own.size:
            return np.empty(own.shape, a.dtype)
        if a.size == 0:
            raise IndexError("cannot do a non-empty take from an empty axes.")
        at = _positions(own.astype(np.intp), int(a.size), mode)
        return a[np.unravel_index(at, a.shape)]

    return apply("take", each, [indices], a.dtype)


FUNCTIONS = {
    np.reshape: _np_reshape,
    np.ravel: _np_ravel,
    np.expand_dims: expand_dims,
    np.squeeze: squeeze,
    np.roll: roll,
    np.flip: flip,
    np.flipud: lambda m: flip(m, 0),
    np.fliplr: lambda m: flip(m, 1),
    np.concatenate: concatenate,
    np.stack: stack,
    np.vstack: vstack,
    np.hstack: hstack,
    np.take: take,
}
