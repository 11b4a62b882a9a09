"""Quantiles of all elements and along axes.

A quantile of all elements lies between two of the sorted elements, which a distributed sort finds. For
quantiles along axes, each rank gets whole lines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._blocks import on_own
from ._gather import gathered
from ._reductions import axes_of, result
from ._shapes import reshape, transposed
from ._sorting import sorted_bucket, whole_lines


#: The methods whose result lies between two elements, with the parameters of their places (alpha and
#: beta of Hyndman and Fan).
_QUANTILES = {
    **dict.fromkeys(("linear", "lower", "higher", "midpoint"), (1.0, 1.0)),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """Return `numpy.quantile`. Collective. All ranks get the result, a numpy array or a scalar.

    With weights and the discontinuous methods, the calling rank gets all elements.
    """
    return _quantile(np.quantile, 1, a, q, axis, out, method, keepdims, options)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """Return `numpy.percentile`; see `quantile`. Collective."""
    return _quantile(np.percentile, 100, a, q, axis, out, method, keepdims, options)


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """Return `numpy.median`; see `quantile`. Collective."""
    function: Any = lambda x, q, axis=None, **_: np.median(x, axis)  # noqa: E731
    return _quantile(function, 1, a, 0.5, axis, out, "linear", keepdims, {}, np.median)


def _quantile(
    function: Any,
    whole: float,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    method: str,
    keepdims: bool,
    options: dict[str, Any],
    original: Any = None,
) -> Any:
    given = {k: x for k, x in options.items() if x is not None}
    method = given.pop("interpolation", method)
    axes = axes_of(axis, a.ndim)
    if given or method not in _QUANTILES or a.dtype.kind not in "iuf" or a.size == 0:
        if original is not None:
            return gathered(original, (a,), dict(axis=axis, out=out, keepdims=keepdims))
        more = dict(axis=axis, out=out, method=method, keepdims=keepdims, **options)
        return gathered(function, (a, q), more)
    if len(axes) == a.ndim:
        found = _of_all(function, whole, a, q, method)
    else:
        # Several axes become the last one.
        kept = [n for n in range(a.ndim) if n not in axes]
        lines = a
        if len(axes) > 1:
            lengths = [a.shape[n] for n in kept]
            rest = int(a.size) // max(math.prod(lengths), 1)
            lines = reshape(transposed(a, (*kept, *axes)), (*lengths, rest))
        found = _of_lines(function, lines, q, axes[0] if len(axes) == 1 else len(kept), method)
    if keepdims:
        kept = [1 if n in axes else a.shape[n] for n in range(a.ndim)]
        found = np.reshape(found, [*np.shape(found)[: np.ndim(q)], *kept])
    return result(a, np.asarray(found), axes, False, out)


def _of_all(function: Any, whole: float, a: Any, q: Any, method: str) -> Any:
    """Return quantiles of all elements, of the two elements around each."""
    with np.errstate(all="ignore"):
        fractions = np.asarray(q, np.float64) / whole
    if not np.all((fractions >= 0) & (fractions <= 1)):
        raise ValueError("quantiles must be in the range [0, 1], and percentiles in [0, 100]")
    bucket = sorted_bucket(a)
    size = int(a.size)
    alpha, beta = _QUANTILES[method]
    at = fractions.reshape(-1) * (size + 1 - alpha - beta) + alpha - 1
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(np.intp)
    # NaNs are the last ones, and then all results are NaN.
    wanted = np.stack([low, np.minimum(low + 1, size - 1), np.full_like(low, size - 1)])
    parts = np.zeros(wanted.shape, a.dtype)
    mine = (wanted >= bucket.first) & (wanted < bucket.first + len(bucket.values))
    parts[mine] = bucket.values[wanted[mine] - bucket.first]
    # Only one rank has each of them, and the other parts are zero.
    parts = _sum_of_parts(a.group, parts, mine)
    near: Any = method if alpha == beta == 1 else "linear"
    found = [
        function(pair if x > n else pair[:1], (x - n) * whole, method=near)
        if last == last
        else last
        for *pair, last, x, n in zip(*parts, at, low)
    ]
    dtype = function(np.zeros(2, a.dtype), q, method=method).dtype
    return np.asarray(found, dtype).reshape(np.shape(q))


def _sum_of_parts(group: Any, parts: Any, mine: Any) -> Any:
    every = group.all_gather((parts[mine], mine))
    for values, where in every:
        parts[where] = values
    return parts


def _of_lines(function: Any, a: Any, q: Any, axis: int, method: str) -> Any:
    """Return quantiles of the lines along an axis."""
    lines = a if a.grid[axis] == 1 else a.redistribute(whole_lines(a, axis))
    kept = [n for n in range(a.ndim) if n != axis]
    shape = [a.shape[n] for n in kept]
    dtype = function(np.zeros(2, a.dtype), q, method=method).dtype
    found = np.zeros((*np.shape(q), *shape), dtype)

    def set_own(mine: Any) -> None:
        box = np.ix_(*[np.arange(n) for n in np.shape(q)], *[mine.indices(n) for n in kept])
        if mine.local.size:
            found[box] = function(mine.local, q, axis=axis, method=method)

    on_own(lines, set_own)
    # Of the parts of the ranks, all but one are zero. NaNs remain NaN.
    return a.group.all_reduce(found, "sum")


FUNCTIONS: dict[Any, Any] = {
    np.quantile: quantile,
    np.percentile: percentile,
    np.median: median,
}
