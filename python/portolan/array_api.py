"""The functions of the Python array API standard, for distributed arrays.

    import portolan.array_api as xp
    a = xp.linspace(0.0, 1.0, 1_000_000)
    xp.sum(xp.sqrt(a))

Most of them are NumPy's functions, which call the package. Functions that create arrays and the
keywords that only the standard has are defined here. Arrays without axes are numpy arrays that all
ranks have, and so are the results of reductions. `docs/python.md` lists what differs from the standard.
Needs NumPy 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _create, _ranges
from ._array import Array, _tuple

if not hasattr(np, "unstack"):
    raise ImportError(f"portolan.array_api needs NumPy 2.1 or newer, and this is NumPy {np.__version__}")

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = VERSIONS[-1]

_CONSTANTS = "e inf nan newaxis pi"
_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)
_FUNCTIONS = """
    abs acos acosh add all any argmax argmin asin asinh atan atan2 atanh bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_to can_cast
    ceil concat conj copysign cos cosh cumulative_prod cumulative_sum diff divide equal
    exp expand_dims expm1 fft flip floor floor_divide greater greater_equal hypot imag isdtype isfinite
    isinf isnan less less_equal linalg log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul matrix_transpose max maximum mean min minimum moveaxis multiply negative
    nextafter nonzero not_equal permute_dims positive pow prod real reciprocal remainder repeat reshape
    result_type roll round searchsorted sign signbit sin sinh sqrt square squeeze stack std subtract sum
    take take_along_axis tan tanh tensordot tile tril triu trunc unique_all unique_counts unique_inverse
    unique_values unstack var vecdot where
"""
_names = " ".join((_CONSTANTS, _DTYPES, _FUNCTIONS)).split()
globals().update({name: getattr(np, name) for name in _names})
_defined = """
    arange asarray astype argsort broadcast_arrays clip count_nonzero empty empty_like eye finfo from_dlpack
    full full_like iinfo linspace meshgrid ones ones_like sort zeros zeros_like
""".split()
__all__ = sorted([*_names, *_defined])


def __array_namespace_info__() -> Any:
    """Return what the namespace supports."""
    info: Any = np.__array_namespace_info__()
    capabilities = info.capabilities() | {"max dimensions": 16}
    info.capabilities = lambda: capabilities
    return info


def _on_cpu(device: Any) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"arrays are on the device 'cpu', and {device!r} is another one")


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """Create an array of values that all ranks have. Collective.

    A distributed array is returned as it is, unless `copy` or another dtype demands a new one.
    """
    _on_cpu(device)
    if isinstance(obj, Array):
        if dtype is None or obj.dtype == dtype:
            return obj.copy() if copy else obj
        if copy is not False:
            return obj.astype(dtype)
    if copy is False and not (isinstance(obj, np.ndarray) and not obj.ndim):
        raise ValueError("a distributed array of other objects is a copy")
    found = np.asarray(obj, dtype)
    return _create.array(found) if found.ndim else np.array(found, copy=copy)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Return an array with another dtype. Collective."""
    _on_cpu(device)
    if x.dtype.kind == "c" and np.dtype(dtype).kind in "biuf":
        raise TypeError(f"elements of {x.dtype} are complex; use real() or imag()")
    return x if x.dtype == dtype and not copy else x.astype(dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Create an array of the elements of an array of another package, which all ranks have. Collective."""
    return asarray(np.from_dlpack(x), device=device, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Create an array of equal elements. Collective."""
    _on_cpu(device)
    make: Any = _create.full if _tuple(shape) else np.full
    return make(shape, fill_value, dtype)


def _filled(name: str) -> Callable[..., Any]:
    def call(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        _on_cpu(device)
        make: Any = getattr(_create if _tuple(shape) else np, name)
        return make(shape, float if dtype is None else dtype)

    call.__name__, call.__doc__ = name, f"Create an array as `portolan.{name}`. Collective."
    return call


empty, ones, zeros = map(_filled, ("empty", "ones", "zeros"))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """Create an array of equal elements, distributed like another one. Collective."""
    _on_cpu(device)
    return np.full_like(x, fill_value, dtype=dtype)


def _like(name: str) -> Callable[..., Any]:
    def call(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
        _on_cpu(device)
        return getattr(np, name)(x, dtype=dtype)

    call.__name__, call.__doc__ = name, f"Create an array as `numpy.{name}`. Collective."
    return call


empty_like, ones_like, zeros_like = map(_like, ("empty_like", "ones_like", "zeros_like"))


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Return `numpy.broadcast_arrays`. Collective."""
    return list(np.broadcast_arrays(*arrays))


def meshgrid(*arrays: Any, indexing: Any = "xy") -> list[Any]:
    """Return `numpy.meshgrid`. Collective."""
    return list(np.meshgrid(*arrays, indexing=indexing))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Return the elements, limited to an interval. Collective."""
    return np.clip(x, min, max)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return `numpy.count_nonzero`, an array also without an axis. Collective."""
    return np.asarray(np.count_nonzero(x, axis, keepdims=keepdims))


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """Create an array of evenly spaced numbers. Collective."""
    _on_cpu(device)
    return _ranges.arange(start, stop, step, dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """Create an array of numbers that divide an interval evenly. Collective."""
    _on_cpu(device)
    return _ranges.linspace(start, stop, num, endpoint, dtype=dtype)


def eye(
    n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """Create a matrix with ones on a diagonal. Collective."""
    _on_cpu(device)
    return _ranges.eye(n_rows, n_cols, k, float if dtype is None else dtype)


def finfo(type: Any, /) -> Any:
    """Return `numpy.finfo` of a dtype or an array."""
    return np.finfo(type.dtype if isinstance(type, (Array, np.ndarray, np.generic)) else type)


def iinfo(type: Any, /) -> Any:
    """Return `numpy.iinfo` of a dtype or an array."""
    return np.iinfo(type.dtype if isinstance(type, (Array, np.ndarray, np.generic)) else type)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the elements in order along an axis. Collective."""
    found = np.sort(x, axis)
    return np.flip(found, axis) if descending else found


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort along an axis. Collective. The sort is stable."""
    if not descending:
        return np.argsort(x, axis, stable=True)
    # Equal elements keep their order.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)
