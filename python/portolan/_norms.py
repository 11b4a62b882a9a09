"""Norms of distributed arrays, with the arguments of `numpy.linalg.norm`.

They are reductions: each rank combines the magnitudes of its own elements, and one all-reduce
combines the parts. Some norms of matrices are those of the vector of the singular values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._reductions import MAX, MIN, SUM, axes_of, has_elements, place, result


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm of all elements, or of the vectors or matrices along axes. Collective."""
    axes = axes_of(axis, x.ndim)
    if len(axes) == 1 or axis is None and ord is None:
        return _of_vectors(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    raise ValueError(f'norm of array "{x.name}" along {len(axes)} axes; give one axis, or two')


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return a norm of the vectors along any number of axes. Collective."""
    return _of_vectors(x, ord, axes_of(axis, x.ndim), keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return a norm of the matrices along the last two axes. Collective."""
    return _of_matrices(x, ord, axes_of((-2, -1), x.ndim), keepdims)


def _of_vectors(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f'norm of array "{x.name}": the order {ord!r} is one of matrices')
    order = 2.0 if ord is None else float(ord)
    is_float = x.dtype.kind in "fc"
    dtype = np.finfo(x.dtype).dtype if is_float else np.dtype(float)
    if order == 2 and len(axes) == x.ndim:
        return result(x, np.asarray(x._norm()).astype(dtype), axes, keepdims, None)
    how = {math.inf: MAX, -math.inf: MIN}.get(order, SUM)
    if how is MIN:
        has_elements(x, axes)
    neutral = math.inf if how is MIN else 0

    def own(mine: Any, *_: Any) -> Any:
        local = mine.local if is_float else mine.local.astype(dtype)
        terms = _terms(local, order)
        return how.ufunc.reduce(terms, axis=axes, dtype=dtype, initial=neutral)

    kept = [n for n in range(x.ndim) if n not in axes]
    part = np.full([x.shape[n] for n in kept], neutral, dtype)
    place(x, part, kept, own)
    call = f'norm of order {order} along axes {axes} of "{x.name}"'
    total = np.asarray(x.group.all_reduce(part, how.op, _call=call))
    if order == 2:
        total = np.sqrt(total)
    elif how is SUM and order not in (0, 1):
        with np.errstate(divide="ignore"):
            total = np.power(total, dtype.type(1 / order))
    return result(x, np.asarray(total), axes, keepdims, None)


def _terms(elements: Any, order: float) -> Any:
    """Return the values of elements that a norm of vectors combines."""
    if order == 0:
        return elements != 0
    if order == 2:
        return (elements.conj() * elements).real
    sizes = np.abs(elements)
    return sizes if order == 1 or math.isinf(order) else np.power(sizes, sizes.dtype.type(order))


def _of_matrices(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in (None, "fro", "f"):
        return _of_vectors(x, 2, axes, keepdims)
    if ord in (2, -2, "nuc"):
        return _by_singular_values(x, ord, axes, keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f'norm of array "{x.name}": the order {ord!r} is not one of matrices')
    summed, other = axes if abs(ord) == 1 else axes[::-1]
    sums = _of_vectors(x, 1, (summed,), True)
    if ord > 0:
        found = np.max(sums, axis=other, keepdims=True, initial=0)
    else:
        found = np.min(sums, axis=other, keepdims=True)
    return found if keepdims else np.squeeze(found, axes)[()]


def _by_singular_values(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    from ._factorizations import svdvals

    if 0 in (x.shape[n] for n in axes):
        if ord == -2:
            has_elements(x, axes)
        sizes = np.zeros([*[length for n, length in enumerate(x.shape) if n not in axes], 1])
    else:
        last = axes == (x.ndim - 2, x.ndim - 1)
        sizes = svdvals(x if last else np.moveaxis(x, axes, (-2, -1)))
    found = sizes.sum(-1) if ord == "nuc" else sizes.max(-1) if ord == 2 else sizes.min(-1)
    return result(x, np.asarray(found), axes, keepdims, None)
