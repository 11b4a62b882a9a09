"""Values and index arrays in NumPy's notation, for the native module."""

from __future__ import annotations

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


def lists(shape: tuple[int, ...], index: Any) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    """Return the indices of the elements that an index with arrays selects, one row for each, and
    the shape of the result. NumPy applies the index, to arrays of the indices of each axis.
    Distributed arrays in the index are fetched once, and not for each axis.
    """
    items = index if isinstance(index, tuple) else (index,)
    index = tuple(_item(x) for x in items)
    if any(x is None for x in index):
        raise IndexError(
            "newaxis (None) is not supported; index the numpy array that a get returns"
        )
    found = _coordinates(shape, index)
    if found is not None:
        return found
    columns = []
    for axis, n in enumerate(shape):
        along = np.arange(n).reshape((n,) + (1,) * (len(shape) - axis - 1))
        columns.append(np.broadcast_to(along, shape)[index])
    rows = np.stack([column.reshape(-1) for column in columns], axis=1)
    return np.ascontiguousarray(rows, dtype=np.intp), columns[0].shape


def _item(item: Any) -> Any:
    """Return an item of an index as NumPy's indexing takes it."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    found = np.asarray(item)
    # An empty list has no dtype of its own.
    return found if found.size or hasattr(item, "dtype") else found.astype(np.intp)


def _coordinates(
    shape: tuple[int, ...], index: tuple[Any, ...]
) -> Optional[tuple[np.ndarray[Any, Any], tuple[int, ...]]]:
    """Return what `lists` returns for an index of one integer array for each axis. Its cost does not
    depend on the shape."""
    if len(index) != len(shape) or not all(
        isinstance(x, np.ndarray) and x.dtype.kind in "iu" for x in index
    ):
        return None
    try:
        columns = np.broadcast_arrays(*index)
    except ValueError:
        return None  # NumPy's indexing has the better message
    rows = np.empty((columns[0].size, len(shape)), np.intp)
    for axis, (column, n) in enumerate(zip(columns, shape)):
        # An integer is wrong also beside an empty array.
        given = column if index[axis].ndim else np.atleast_1d(index[axis])
        wrong = (given < -n) | (given >= n)
        if wrong.any():
            raise IndexError(
                f"index {given[wrong][0]} is out of bounds for axis {axis} with size {n}"
            )
        column = column.astype(np.intp)  # a small dtype may not hold the length of the axis
        rows[:, axis] = np.where(column < 0, column + n, column).reshape(-1)
    return rows, columns[0].shape


#: Folders of the package, and of NumPy, whose operators call the package.
_LIBRARIES = tuple(os.path.dirname(module) + os.sep for module in (__file__, np.__file__))
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
