"""Functions that create arrays, and functions of NumPy that do not get all elements to one rank."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Union

import numpy as np

from ._array import Array, Shape, _tuple
from ._conversions import text
from ._group import world
from ._norms import matrix_norm, norm, vector_norm
from ._operands import Agreement, raise_file_error


def zeros(shape: Shape, dtype: Any = float, **options: Any) -> Array:
    """Create an array of zeros. Collective: all ranks pass the same arguments.

    Options: `name` (for errors and reports); `distribution` ('block', 'rows', `grid`, `irregular`,
    `cyclic`); `ghosts` and `periodic`, for all axes or one for each; `group`, by default the world.
    Raises ValueError if they do not fit the shape, TypeError for a dtype that arrays cannot have,
    and MemoryError on all ranks if one has not enough memory.
    """
    return Array(shape, dtype, **options)


def empty(shape: Shape, dtype: Any = float, **options: Any) -> Array:
    """Create an array whose elements are not set. Collective. The options are those of `zeros`."""
    return Array(shape, dtype, _unfilled=True, **options)


def full(shape: Shape, value: Any, dtype: Any = None, **options: Any) -> Array:
    """Create an array of equal elements. Collective. The options are those of `zeros`."""
    made = empty(shape, np.asarray(value).dtype if dtype is None else dtype, **options)
    made.fill(value)
    return made


def ones(shape: Shape, dtype: Any = float, **options: Any) -> Array:
    """Create an array of ones. Collective. The options are those of `zeros`."""
    return full(shape, 1, float if dtype is None else dtype, **options)


def array(values: Any, dtype: Any = None, **options: Any) -> Array:
    """Create an array from a numpy array that all ranks have. Collective.

    Each rank copies the elements that it will own; rank 0 puts all elements if the distribution is
    block-cyclic. The options are those of `zeros`.
    """
    values = np.asarray(values, dtype)
    made = empty(values.shape, values.dtype, **options)
    bounds = made.bounds()
    with made.access() as mine:
        if bounds is not None:
            mine.local[...] = values[bounds]
    if bounds is None and made.group.rank == 0:
        made[...] = values
    made.sync()
    return made


def load(path: Union[str, os.PathLike[str]], **options: Any) -> Array:
    """Create an array from a `.npy` file. Collective: each rank reads the elements it will own.

    The options are those of `zeros`. Raises OSError on all ranks if one cannot open the file, and
    ValueError if it is not one of `numpy.save`.
    """
    name = os.fspath(path)
    group = options.get("group")
    with Agreement(world if group is None else group), open(name, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(file)
        except ValueError as error:
            raise ValueError(f"{name} is not a file of numpy.save: {error}") from None
    try:
        return Array(shape, dtype, _path=name, **options)
    except ValueError as error:
        raise_file_error(str(error), name)
        raise


def zeros_like(other: Array, dtype: Any = None, name: str = "") -> Array:
    """Create an array of zeros with the shape and distribution of another one. Collective."""
    return full_like(other, 0, dtype, name)


def ones_like(other: Array, dtype: Any = None, name: str = "") -> Array:
    """Create an array of ones with the shape and distribution of another one. Collective."""
    return full_like(other, 1, dtype, name)


def full_like(other: Array, value: Any, dtype: Any = None, name: str = "") -> Array:
    """Create an array of equal elements, with the shape and distribution of another one. Collective."""
    made = empty_like(other, dtype, name)
    made.fill(value)
    return made


def empty_like(other: Array, dtype: Any = None, name: str = "") -> Array:
    """Create an array with the shape and distribution of another one. Collective."""
    if not isinstance(other, Array):
        raise TypeError(f"{type(other).__name__} is not a distributed array; use empty(x.shape, x.dtype)")
    return other._like(other.dtype if dtype is None else dtype, name)


# The functions below have NumPy's signatures. The memory layout has no effect.


def _zeros_like(
    a: Array, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> Array:
    return _np_like(a, shape, 0, dtype)


def _ones_like(
    a: Array, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> Array:
    return _np_like(a, shape, 1, dtype)


def _full_like(
    a: Array,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
) -> Array:
    return _np_like(a, shape, fill_value, dtype)


def _empty_like(
    prototype: Array, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None
) -> Array:
    _np_shape(prototype, shape)
    return empty_like(prototype, dtype)


def _np_like(a: Array, shape: Any, value: Any, dtype: Any) -> Array:
    _np_shape(a, shape)
    return full_like(a, value, dtype)


def _np_shape(a: Array, shape: Any) -> None:
    if shape is not None and _tuple(shape) != a.shape:
        raise ValueError(
            f'array "{a.name}" has the shape {a.shape}; for another one, use zeros(), full() or empty()'
        )


def _put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    if isinstance(a, Array):
        a.put(ind, v, mode)
    else:
        np.put(a, np.asarray(ind), np.asarray(v), mode)


#: Functions of NumPy that give distributed arrays or do not need all elements on one rank.
BY_FUNCTION: dict[Any, Callable[..., Any]] = {
    np.zeros_like: _zeros_like,
    np.ones_like: _ones_like,
    np.full_like: _full_like,
    np.empty_like: _empty_like,
    np.copy: lambda a, order="K", subok=False: a.copy(),
    np.put: _put,
    np.linalg.norm: norm,
    np.array2string: text,
    np.array_str: text,
    np.array_repr: lambda arr, *inputs, **options: repr(arr),
}
if hasattr(np, "astype"):  # NumPy 2.1
    BY_FUNCTION[np.astype] = lambda x, dtype, /, *, copy=True, device=None: (
        x if x.dtype == dtype and not copy else x.astype(dtype)
    )
if hasattr(np.linalg, "vector_norm"):  # NumPy 2
    BY_FUNCTION[np.linalg.vector_norm] = vector_norm
    BY_FUNCTION[np.linalg.matrix_norm] = matrix_norm
