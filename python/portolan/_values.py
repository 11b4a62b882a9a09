"""Values and index arrays in NumPy's notation, for the native module."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

import numpy as np


def source(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return `value` as an array of a dtype and a shape, as an assignment of NumPy would use it.

    Raises TypeError if the cast may lose more than precision, and ValueError if the value does not
    broadcast to the shape.
    """
    found = np.asarray(value)
    if found.dtype != dtype:
        literal = not isinstance(value, (np.ndarray, np.generic))
        if literal and found.dtype.kind in "iub" and dtype.kind in "iub":
            cast = np.asarray(value, dtype=dtype)
            if not np.array_equal(cast, found):
                raise OverflowError(f"{value!r} is out of bounds for {dtype}")
            found = cast
        elif np.can_cast(found.dtype, dtype, "same_kind"):
            found = found.astype(dtype)
        else:
            raise TypeError(f"cannot cast values from {found.dtype!r} to {dtype!r} (same_kind)")
    while found.ndim > len(shape) and found.shape[0] == 1:
        found = found[0]
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
    index = tuple(np.asarray(x) if hasattr(x, "__array__") else x for x in items)
    columns = []
    for axis, n in enumerate(shape):
        along = np.arange(n).reshape((n,) + (1,) * (len(shape) - axis - 1))
        columns.append(np.broadcast_to(along, shape)[index])
    rows = np.stack([column.reshape(-1) for column in columns], axis=1)
    return np.ascontiguousarray(rows, dtype=np.intp), columns[0].shape


#: Folders of the package, and of NumPy, whose operators call the package.
_LIBRARIES = tuple(os.path.dirname(module) + os.sep for module in (__file__, np.__file__))
#: Lines in the notation of reports, by file, line and function: a trace asks for each call.
_lines: dict[tuple[str, int, str], str] = {}


def program_line() -> Optional[str]:
    """Return the innermost line of the program outside of this package, as `file:line (function)`."""
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
