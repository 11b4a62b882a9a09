"""Functions that are combinations of reductions and universal functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._alignment import on_parts
from ._blocks import is_distributed
from ._reductions import FMAX, FMIN, Reduction, axes_of, reduce
from ._warnings import reported


def _nan_extremum(how: Reduction) -> Callable[..., Any]:
    def call(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        return reduce(a, how, axis, bool(keepdims), None, out, initial, where)

    return call


def _without_nans(method: str) -> Callable[..., Any]:
    def call(a: Any, *inputs: Any, where: Any = True, **options: Any) -> Any:
        chosen = a == a
        return getattr(a, method)(
            *inputs, where=chosen if where is True else np.logical_and(chosen, where), **options
        )

    return call


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return `numpy.average`. Collective. All ranks get the result."""
    axes = axes_of(axis, a.ndim)
    shape = tuple(a.shape[n] for n in axes)
    keepdims = keepdims is True
    if weights is None:
        found = a.mean(axis, keepdims=keepdims)
        total: Any = np.asarray(a.size / max(np.size(found), 1))
    else:
        if np.shape(weights) not in (a.shape, shape):
            raise TypeError(f"average: weights of shape {np.shape(weights)} for the axes {axes} of {a.shape}")
        if np.shape(weights) != a.shape:
            if list(axes) != sorted(axes):
                raise ValueError(f"average: axes {axes} in another order than those of the array")
            weights = np.reshape(weights, [n if k in axes else 1 for k, n in enumerate(a.shape)])
        total = np.sum(weights, axis, keepdims=keepdims)
        if np.any(total == 0):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        with reported("average"):
            found = np.multiply(a, weights).sum(axis, keepdims=keepdims) / total
    return (found, np.broadcast_to(total, np.shape(found))) if returned else found


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return `numpy.allclose`. Collective. All ranks get the result."""
    return bool(np.isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Return `numpy.array_equal`. Collective. All ranks get the result."""
    if np.shape(a1) != np.shape(a2):
        return False
    equal = a1 == a2
    return bool((equal | ((a1 != a1) & (a2 != a2)) if equal_nan else equal).all())


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Carry out `numpy.copyto` into a distributed array. Collective."""
    if not is_distributed(dst):
        raise TypeError("copyto: the target is a numpy array; use numpy.asarray() of the source")

    def copy(own: Any, values: Any, chosen: Any) -> None:
        np.copyto(own, values, casting, chosen)

    on_parts("copyto", copy, (dst, src, where), dst)


FUNCTIONS: dict[Any, Any] = {
    np.nanmin: _nan_extremum(FMIN),
    np.nanmax: _nan_extremum(FMAX),
    np.nansum: _without_nans("sum"),
    np.nanprod: _without_nans("prod"),
    np.nanmean: _without_nans("mean"),
    np.nanvar: _without_nans("var"),
    np.nanstd: _without_nans("std"),
    np.average: average,
    np.allclose: allclose,
    np.array_equal: array_equal,
    np.copyto: copyto,
}
