"""Functions that arrange elements in another shape or order: reshape, roll, concatenate, take."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from ._alignment import apply, broadcast_to, into
from ._blocks import (
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


def reshape(array: Any, shape: Any, order: str = "C") -> Any:
    """Return a new array of the same elements in row-major order, or column-major with 'F'. Collective.

    Each rank gets its share of the elements and puts it to the new places. Without axes, the result is
    the element, a numpy array that all ranks get.
    """
    if order not in ("C", "A", "K", "F"):
        raise ValueError(f"order must be one of 'C', 'F', 'A' and 'K' (got {order!r})")
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
    array.sync()
    if not lengths:
        return np.asarray(array[(0,) * array.ndim])
    if order == "F":
        back = reshape(transposed(array, range(array.ndim)[::-1]), lengths[::-1])
        return transposed(back, range(len(lengths))[::-1])
    made = make(array, lengths, array.dtype, "reshape")
    begin, end = share(array)
    if begin < end:
        put_flat(made, begin, get_flat(array, begin, end))
    made.sync()
    return made


def ravel(a: Any, order: str = "C") -> Any:
    """Return `numpy.ravel`, a new array. Collective; see `reshape`."""
    return reshape(a, (int(a.size),), order)


def _np_reshape(a: Any, /, shape: Any = None, order: str = "C", **options: Any) -> Any:
    if "newshape" in options:
        shape = options.pop("newshape")
    if options.pop("copy", None) is False:
        raise ValueError("a distributed array cannot be reshaped without a copy")
    return reshape(a, shape, order, **options)


def _reshaped(function: Any) -> Callable[..., Any]:
    """Return a function of NumPy that changes the shape only."""

    def call(a: Any, *inputs: Any, **options: Any) -> Any:
        return reshape(a, function(np.broadcast_to(0, a.shape), *inputs, **options).shape)

    return call


def _atleast(function: Any) -> Callable[..., Any]:
    one = _reshaped(function)

    def call(*arys: Any) -> Any:
        found = [one(x) if is_distributed(x) else function(x) for x in arys]
        return found[0] if len(found) == 1 else type(function(0, 0))(found)

    return call


def squeeze(a: Any, axis: Any = None) -> Any:
    """Return `numpy.squeeze`, a new array. Collective."""
    gone = axes_of(axis, a.ndim) if axis is not None else [n for n in range(a.ndim) if a.shape[n] == 1]
    if any(a.shape[n] != 1 for n in gone):
        raise ValueError(f'cannot squeeze array "{a.name}" {a.shape}: an axis has not the length 1')
    return reshape(a, [a.shape[n] for n in range(a.ndim) if n not in gone])


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Return `numpy.moveaxis`, a new array. Collective."""
    given, to = axes_of(source, a.ndim), axes_of(destination, a.ndim)
    if len(given) != len(to):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [n for n in range(a.ndim) if n not in given]
    for at, axis in sorted(zip(to, given)):
        order.insert(at, axis)
    return transposed(a, order, copy=True)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Return `numpy.swapaxes`, a new array. Collective."""
    first, second = (axes_of(operator.index(n), a.ndim)[0] for n in (axis1, axis2))
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return transposed(a, order, copy=True)


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

    return fill(
        made,
        lambda *at: get_box(m, [m.shape[k] - 1 - n if k in axes else n for k, n in enumerate(at)]),
    )


def _alike(name: str, arrays: Any) -> tuple[list[Any], Any]:
    """Return operands, distributed or numpy arrays, and a distributed one. All are complete."""
    arrays = unstack(arrays) if is_distributed(arrays) else arrays
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

    return into("concatenate", out, fill(make(model, shape, dtype, "concatenate"), joined))


def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Return `numpy.stack`, a distributed array. Collective; see `concatenate`."""
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

    return into("stack", out, fill(make(model, shape, dtype, "stack"), stacked))


def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return `numpy.vstack`, a distributed array. Collective; see `concatenate`."""
    parts = unstack(tup) if is_distributed(tup) else list(tup)
    if all(np.ndim(x) == 1 for x in parts):
        return stack(parts, dtype=dtype, casting=casting)
    rows = [
        reshape(x, (1, int(x.size))) if is_distributed(x) and x.ndim == 1 else x for x in parts
    ]
    rows = [x if is_distributed(x) else np.atleast_2d(x) for x in rows]
    return concatenate(rows, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Return `numpy.hstack`, a distributed array. Collective; see `concatenate`."""
    tup = unstack(tup) if is_distributed(tup) else tup
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
        return into("take", out, take(a, indices, axis, mode=mode))
    if not is_distributed(a):
        return gathered(np.take, (a, indices, axis), {"mode": mode})
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


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Return `numpy.take_along_axis`, a new array distributed like distributed indices. Collective."""
    if not (is_distributed(arr) and is_distributed(indices)):
        return gathered(np.take_along_axis, (arr, indices, axis), {})
    if axis is None:
        return _take_each(ravel(arr), ravel(indices), "raise")
    along = axes_of(operator.index(axis), arr.ndim)[0]
    shape = tuple(indices.shape[n] if n == along else arr.shape[n] for n in range(arr.ndim))
    places = indices if indices.shape == shape else broadcast_to(indices, shape)
    arr.sync()

    def each(own: Any, *at: Any) -> Any:
        box = list(np.ix_(*at))
        box[along] = own
        return arr[tuple(box)]

    made = make(places, shape, arr.dtype, "take_along_axis", distribution=places._spec)
    places.sync()
    return fill(made, lambda *at: each(get_box(places, at), *at))


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Return `numpy.repeat`, a new array. Collective."""
    if axis is None:
        a, axis = ravel(a) if a.ndim > 1 else a, 0
    length = a.shape[axes_of(operator.index(axis), a.ndim)[0]]
    return take(a, np.repeat(np.arange(length), repeats), axis)


def tile(A: Any, reps: Any) -> Any:
    """Return `numpy.tile`, a new array. Collective."""
    times = tuple(reps) if np.ndim(reps) else (reps,)
    shape = (1,) * (len(times) - A.ndim) + A.shape
    times = (1,) * (len(shape) - len(times)) + times
    made = make(A, [n * by for n, by in zip(shape, times)], A.dtype, "tile")
    A.sync()
    return fill(
        made,
        lambda *at: get_box(A, [n % m for n, m in zip(at, shape)][len(shape) - A.ndim :]),
    )


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return `numpy.array_split`, new arrays. Collective."""
    along = axes_of(operator.index(axis), ary.ndim)[0]
    length = ary.shape[along]
    if np.ndim(indices_or_sections):
        cuts = [0, *indices_or_sections, length]
    else:
        number = operator.index(indices_or_sections)
        if number <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(length, number)
        cuts = [n * each + min(n, more) for n in range(number + 1)]
    before = (slice(None),) * along
    return [ary.section[(*before, slice(*pair))] for pair in zip(cuts, cuts[1:])]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return `numpy.split`, new arrays. Collective."""
    length = ary.shape[axes_of(operator.index(axis), ary.ndim)[0]]
    if np.ndim(indices_or_sections) == 0 and length % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return `numpy.unstack`, new arrays. Collective."""
    along = axes_of(operator.index(axis), x.ndim)[0]
    return tuple(x.section[(slice(None),) * along + (n,)] for n in range(x.shape[along]))


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return `numpy.diagonal`, a new array. Collective."""
    rows, columns = (axes_of(operator.index(n), a.ndim)[0] for n in (axis1, axis2))
    if rows == columns:
        raise ValueError("axis1 and axis2 cannot be the same")
    others = [n for n in range(a.ndim) if n not in (rows, columns)]
    first, second = max(-offset, 0), max(offset, 0)
    length = max(0, min(a.shape[rows] - first, a.shape[columns] - second))
    made = make(a, (*[a.shape[n] for n in others], length), a.dtype, "diagonal")
    a.sync()

    def own(*at: Any) -> Any:
        box: list[Any] = [None] * a.ndim
        for n, along in zip(others, np.ix_(*at)):
            box[n] = along
        box[rows], box[columns] = at[-1] + first, at[-1] + second
        return a[tuple(box)]

    return fill(made, own)


def diag(v: Any, k: int = 0) -> Any:
    """Return `numpy.diag`: the matrix with a diagonal, or a diagonal of a matrix. Collective."""
    if v.ndim != 1:
        return diagonal(v, k)
    length, below = len(v), max(-k, 0)
    made = make(v, (length + abs(k),) * 2, v.dtype, "diag")
    v.sync()

    def own(rows: Any, columns: Any) -> Any:
        at = rows - below
        is_in = (rows[:, np.newaxis] + k == columns) & ((at >= 0) & (at < length))[:, np.newaxis]
        found = np.zeros(is_in.shape, v.dtype)
        found[is_in] = v[at[is_in.any(1)]]
        return found

    return fill(made, own)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return `numpy.meshgrid`, new arrays. Collective."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    order = list(range(len(xi)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    ones = (1,) * len(xi)
    found = [np.reshape(x, (*ones[:n], int(np.size(x)), *ones[n + 1 :])) for n, x in zip(order, xi)]
    return tuple(found) if sparse else np.broadcast_arrays(*found)


def resize(a: Any, new_shape: Any) -> Any:
    """Return `numpy.resize`: the elements of an array, repeated. Collective."""
    lengths = tuple(new_shape) if np.ndim(new_shape) else (new_shape,)
    made = make(a, lengths, a.dtype, "resize")
    a.sync()
    if not a.size:
        made.fill(0)
        return made
    return fill_flat(made, lambda begin, end: a[np.unravel_index(np.arange(begin, end) % a.size, a.shape)])


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """Return `numpy.trace`. Collective. All ranks get the result."""
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype, out)


FUNCTIONS: dict[Any, Any] = {
    np.moveaxis: moveaxis,
    np.swapaxes: swapaxes,
    np.take_along_axis: take_along_axis,
    np.repeat: repeat,
    np.tile: tile,
    np.array_split: array_split,
    np.split: split,
    np.diagonal: diagonal,
    np.trace: trace,
    np.append: lambda arr, values, axis=None: concatenate((arr, values), axis),
    np.column_stack: lambda tup: hstack([np.expand_dims(x, 1) if np.ndim(x) == 1 else x for x in tup]),
    np.reshape: _np_reshape,
    np.ravel: ravel,
    np.expand_dims: _reshaped(np.expand_dims),
    **{f: _atleast(f) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    np.dstack: lambda tup: concatenate([np.atleast_3d(x) for x in tup], 2),
    np.diag: diag,
    np.meshgrid: meshgrid,
    np.resize: resize,
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
if hasattr(np, "unstack"):  # NumPy 2.1
    FUNCTIONS[np.unstack] = unstack
if hasattr(np, "matrix_transpose"):  # NumPy 2
    FUNCTIONS[np.matrix_transpose] = lambda x, /: swapaxes(x, -1, -2)
    FUNCTIONS[np.linalg.matrix_transpose] = FUNCTIONS[np.matrix_transpose]
