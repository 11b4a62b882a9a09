"""Values and index arrays in NumPy's notation, for the native module."""

from __future__ import annotations

import math
import os
import sys
from typing import Any, Optional

import numpy as np


def source(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return `value` as an array of a dtype and a shape, as an assignment would use it.

    Raises TypeError if the cast is not of the kind `same_kind`, OverflowError if an integer outside
    a numpy array is out of bounds, and ValueError if the value does not broadcast to the shape.
    """
    found = np.asarray(value)
    if found.dtype != dtype:
        literal = not isinstance(value, np.ndarray)
        if literal and not found.size:
            found = found.astype(dtype)
        elif literal and found.dtype.kind in "iub" and dtype.kind in "iub":
            cast = np.asarray(value, dtype=dtype)
            if not np.array_equal(cast, found):
                raise OverflowError(f"{value!r} is out of bounds for {dtype}")
            found = cast
        elif np.can_cast(found.dtype, dtype, "same_kind"):
            found = found.astype(dtype)
        else:
            raise TypeError(f"cannot cast values from {found.dtype!r} to {dtype!r} (same_kind)")
    while found.ndim > len(shape) and found.shape[0] == 1:
        found = found.reshape(found.shape[1:])
    # Fields of structured arrays may not be aligned, or at distances that are no multiples of their size.
    if not found.flags.aligned or any(stride % found.itemsize for stride in found.strides):
        found = found.copy()
    if found.shape != shape:
        try:
            found = np.broadcast_to(found, shape)
        except ValueError:
            raise ValueError(
                f"could not broadcast input array from shape {found.shape} into shape {shape}"
            ) from None
        # Ranks transfer elements, not strides of length zero.
        found = np.ascontiguousarray(found)
    return found


def lists(
    shape: tuple[int, ...], index: Any
) -> tuple[np.ndarray[Any, Any], int, tuple[int, ...]]:
    """Return the elements that an index with arrays selects, as runs of consecutive elements.

    The result is the first index of each run, one row for each, the length of the runs, and the
    shape of the selection. Slices at the end of the index, such as the columns of whole rows, become
    parts of the runs. NumPy applies the rest of an index that has slices before arrays, to arrays of
    the indices of each axis. Distributed arrays in the index are fetched once, and not for each axis.
    """
    given = index if isinstance(index, tuple) else (index,)
    items, is_spread = _spread(shape, [_item(x) for x in given])
    # The slices at the end: all but the first are whole.
    rest = len(shape)
    starts: list[int] = []
    counts: list[int] = []
    while is_spread and rest and isinstance(items[-1], slice):
        n = shape[rest - 1]
        start, _, step = items[-1].indices(n)
        count = len(range(*items[-1].indices(n)))
        if step != 1:
            break
        items.pop()
        rest -= 1
        starts.insert(0, start)
        counts.insert(0, count)
        if count < n:
            break
    columns, selected = _columns(shape[:rest], tuple(items))
    if len(shape) == 1 and columns[0].flags.c_contiguous:
        rows = columns[0].reshape(-1, 1)
    else:
        rows = np.empty((math.prod(selected), len(shape)), np.intp)
        for axis, column in enumerate(columns):
            rows[:, axis] = column.reshape(-1)
        rows[:, rest:] = starts
    return rows, math.prod(counts), (*selected, *counts)


def is_dense(shape: tuple[int, ...], index: Any) -> bool:
    """Return whether an index is a mask of so many elements that a get of all takes less time."""
    if not isinstance(index, np.ndarray) or index.dtype != np.bool_ or index.shape != shape:
        return False
    return not _LOOKS_FOR_RACES and index.size > 0 and bool(4 * int(np.count_nonzero(index)) >= index.size)


def _item(item: Any) -> Any:
    """Return an item of an index as NumPy's indexing takes it."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    found = np.asarray(item)
    # An empty list has no dtype of its own.
    return found if found.size or hasattr(item, "dtype") else found.astype(np.intp)


def _spread(shape: tuple[int, ...], items: list[Any]) -> tuple[list[Any], bool]:
    """Return an item of an index for each axis, and True: slices for axes that the index does not
    name, and the positions of the true elements for masks. Returns an index as it is, and False, if
    it is invalid or has bools without axes, which add axes to the selection."""
    axes = [
        x.ndim if isinstance(x, np.ndarray) and x.dtype == np.bool_ else x is not Ellipsis and x is not None
        for x in items
    ]
    missing = len(shape) - sum(axes)
    dots = [n for n, x in enumerate(items) if x is Ellipsis]
    has_bools = any(isinstance(x, np.ndarray) and n == 0 for n, x in zip(axes, items))
    if missing < 0 or len(dots) > 1 or has_bools:
        return items, False
    at = dots[0] if dots else len(items)
    whole = slice(None)
    items = [*items[:at], *[whole] * missing, *items[at + len(dots) :]]
    found: list[Any] = []
    axis = 0
    for x in items:
        if isinstance(x, np.ndarray) and x.dtype == np.bool_ and x.ndim:
            if x.shape != shape[axis : axis + x.ndim]:
                return items, False
            found += np.nonzero(x)
            axis += x.ndim
        else:
            found.append(x)
            axis += x is not None
    return found, True


def _columns(
    shape: tuple[int, ...], index: tuple[Any, ...]
) -> tuple[list[np.ndarray[Any, Any]], tuple[int, ...]]:
    """Return the indices along each axis of the elements that an index selects, and its shape."""
    if len(index) == len(shape) and all(
        isinstance(x, np.ndarray) and x.dtype.kind in "iu" for x in index
    ):
        # The cost does not depend on the shape.
        try:
            selected = np.broadcast_shapes(*(x.shape for x in index))
        except ValueError:
            pass  # NumPy's indexing has the better message
        else:
            # NumPy checks no index of an empty selection, except integers.
            checked = [x[:0] if 0 in selected and x.ndim else x for x in index]
            places = [_positions(x, n, axis) for axis, (x, n) in enumerate(zip(checked, shape))]
            if 0 in selected:
                return [np.empty(selected, np.intp)] * len(shape), selected
            return [np.broadcast_to(x, selected) for x in places], selected
    columns = []
    for axis, n in enumerate(shape):
        along = np.arange(n).reshape((n,) + (1,) * (len(shape) - axis - 1))
        columns.append(np.broadcast_to(along, shape)[index])
    return columns, columns[0].shape


def _positions(index: np.ndarray[Any, Any], n: int, axis: int) -> np.ndarray[Any, Any]:
    """Return the indices of an array from 0. Raises IndexError if one is out of bounds."""
    least, most = (index.min(), index.max()) if index.size else (0, 0)
    if index.size and (least < -n or most >= n):
        wrong = index[(index < -n) | (index >= n)].flat[0]
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {n}")
    # A small dtype may not hold the length of the axis.
    index = index.astype(np.intp, copy=False)
    return np.where(index < 0, index + n, index) if least < 0 else index


#: Gets of elements that are not selected would count as uses of them.
_LOOKS_FOR_RACES = os.environ.get("PORTOLAN_CHECK", "0") not in ("", "0")
#: Beginnings of the files of the package and of NumPy, whose operators call the package. Before NumPy
#: 1.25, its functions have no file.
_LIBRARIES = (
    *[os.path.dirname(module) + os.sep for module in (__file__, np.__file__)],
    "<__array_function__ internals>",
)
#: Lines in the notation of reports, by file, line and function: a trace asks for each call.
_lines: dict[tuple[str, int, str], str] = {}


def program_line() -> Optional[str]:
    """Return the innermost line outside of this package and NumPy, as `file:line (function)`."""
    frame = sys._getframe(0)
    while frame.f_code.co_filename.startswith(_LIBRARIES):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    code = frame.f_code
    key = (code.co_filename, frame.f_lineno, code.co_name)
    if key not in _lines:
        file, line, function = key
        _lines[key] = f"{file}:{line}" if function == "<module>" else f"{file}:{line} ({function})"
    return _lines[key]
