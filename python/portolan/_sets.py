"""Distinct elements, and sets of elements.

The sorted elements of the ranks are compared with their predecessors, of which the last one of the rank
before is the first.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ._alignment import apply
from ._blocks import is_distributed, make, offsets
from ._gather import gathered
from ._reductions import axes_of
from ._shapes import concatenate, moveaxis, reshape, take
from ._sorting import extract, keys, searchsorted, sort, sorted_bucket, stored


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    **options: Any,
) -> Any:
    """Return `numpy.unique`, distributed arrays. Collective. The values are sorted.

    With `axis`, the elements are the parts of the array at each index of the axis, in lexicographic
    order.
    """
    options.pop("sorted", None)
    if options:
        raise TypeError(f"unique has no option {min(options)!r}")
    shape, rows = ar.shape, axis is not None
    if rows:
        n = axes_of(operator.index(axis), ar.ndim)[0]
        others = [shape[k] for k in range(len(shape)) if k != n]
        ar = reshape(moveaxis(ar, n, 0), (shape[n], math.prod(others)))
        if not ar.shape[1]:
            raise ValueError(f"unique along axis {n} of an array of shape {shape}, which has no elements")
    bucket = sorted_bucket(ar, return_index or return_inverse, rows)
    values, group = bucket.values, ar.group
    lasts = group.all_gather(values[-1:])
    before = np.concatenate(lasts[: group.rank] or [values[:0]])[-1:]
    extended = np.concatenate([before, values])
    is_new = keys(extended[1:]) != keys(extended[:-1])
    if equal_nan and not rows and values.dtype.kind in "fc":
        is_new &= ~(np.isnan(extended[1:]) & np.isnan(extended[:-1]))
    if not len(before) and len(values):
        is_new = np.concatenate([[True], is_new])
    places = np.flatnonzero(is_new)
    first, total = offsets(group, len(places))

    def listed(part: Any, name: str) -> Any:
        return stored(ar, part, first, total, name)

    found = [listed(values[places], "unique")]
    if rows:
        found[0] = moveaxis(reshape(found[0], (total, *others)), 0, n)
    if return_index:
        found.append(listed(bucket.positions[places], "index"))
    if return_inverse:
        count = ar.shape[0] if rows else int(ar.size)
        inverse = make(ar, (count,), np.intp, "inverse")
        if len(values):
            inverse[bucket.positions] = first - 1 + np.cumsum(is_new)
        inverse.sync()
        found.append(inverse if rows else _inverse(inverse, shape))
    if return_counts:
        starts = bucket.first + places
        following = group.all_gather(starts[:1])[group.rank + 1 :]
        after = np.concatenate([*following, [ar.shape[0] if rows else int(ar.size)]])[:1]
        counts = np.diff(np.concatenate([starts, after])) if len(starts) else starts
        found.append(listed(counts.astype(np.intp), "counts"))
    return found[0] if len(found) == 1 else tuple(found)


def _inverse(inverse: Any, shape: tuple[int, ...]) -> Any:
    """Return the inverse in the shape that this version of NumPy gives it."""
    sample = np.unique(np.zeros((1,) * len(shape)), return_inverse=True)[1]
    return inverse if sample.ndim == 1 else reshape(inverse, shape)


def _set_operation(name: str, is_chosen: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a function of the sorted distinct elements of two arrays.

    The second argument says which elements are chosen, by whether they occur in the first array and in
    both.
    """

    def call(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
        first, second = (np.unique(x) for x in (ar1, ar2))
        found, index, counts = np.unique(
            concatenate([first, second]), return_index=True, return_counts=True
        )
        return extract(is_chosen(index < first.size, counts == 2), found)

    call.__doc__ = f"Return `numpy.{name}`, a distributed array. Collective."
    return call


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """Return `numpy.isin`, a distributed array. Collective."""
    if not is_distributed(element):
        return gathered(np.isin, (element, test_elements, assume_unique, invert), {"kind": kind})
    if not is_distributed(test_elements):
        test = np.asarray(test_elements)
        return apply("isin", lambda own: np.isin(own, test, invert=invert, kind=kind), [element], np.bool_)
    if not test_elements.size:
        return element._filled(invert)
    known = sort(test_elements, None)
    nearest = np.minimum(searchsorted(known, element), known.size - 1)
    found = take(known, nearest) == element
    return ~found if invert else found


FUNCTIONS: dict[Any, Any] = {
    np.unique: unique,
    np.isin: isin,
    np.intersect1d: _set_operation("intersect1d", lambda is_first, is_both: is_both),
    np.setdiff1d: _set_operation("setdiff1d", lambda is_first, is_both: is_first & ~is_both),
    np.setxor1d: _set_operation("setxor1d", lambda is_first, is_both: ~is_both),
}
