"""Sections of arrays: `a.section[10:20, ::2]` is a distributed array, while `a[10:20, ::2]` is a get.

Each rank gets the elements of its part of the result. In an assignment, each rank stores the elements
of the section that it owns, and gets them from a distributed value.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._alignment import along, common_shape, shape_of
from ._blocks import check_group, fill, get_box, is_distributed, make, on_own
from ._sorting import extract
from ._values import source

#: The selected indices of an axis: a range, or a numpy array.
Pick = Any
_FIRST = np.zeros(1, np.intp)


class Section:
    """The sections of an array; see `Array.section`."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any, /) -> Any:
        a = self._array
        if is_distributed(index) and index.dtype == np.bool_:
            if index.shape != a.shape:
                raise IndexError(f'section of "{a.name}" {a.shape}: a mask of shape {index.shape}')
            return extract(index, a)
        picks, axes, lengths = self._parsed(index)
        a.sync()
        if not axes:
            return a[tuple(pick[0] for pick in picks)]

        def own(*at: Any) -> Any:
            chosen = dict(zip(axes, at))
            box = [_chosen(pick, chosen.get(axis, _FIRST)) for axis, pick in enumerate(picks)]
            return get_box(a, box).reshape([len(n) for n in at])

        return fill(make(a, lengths, a.dtype, "section"), own)

    def __setitem__(self, index: Any, value: Any, /) -> None:
        a = self._array
        picks, axes, lengths = self._parsed(index)
        if any(isinstance(pick, np.ndarray) for pick in picks):
            raise IndexError(f'section of "{a.name}": index arrays cannot be assigned to; use a[index]')
        if common_shape("section", (value, np.broadcast_to(0, lengths))) != lengths:
            raise ValueError(
                f"could not broadcast input array from shape {shape_of(value)} into shape {lengths}"
            )
        if is_distributed(value):
            check_group("section", a, value)
            value = value.copy() if value is a else value
            value.sync()
        else:
            value = source(value, a.dtype, np.shape(value))

        def store(mine: Any) -> None:
            places, positions = [], []
            for axis, pick in enumerate(picks):
                distance = mine.indices(axis) - pick.start
                position = distance // pick.step
                is_in = (distance % pick.step == 0) & (position >= 0) & (position < len(pick))
                places.append(np.flatnonzero(is_in))
                positions.append(position[is_in])
            if not all(map(len, places)):
                return
            at = [_FIRST if axis is None else positions[axis] for axis in axes]
            box = along(at, shape_of(value), lengths)
            found = get_box(value, box) if is_distributed(value) else value[np.ix_(*box)]
            found = source(found, a.dtype, tuple(len(n) for n in at))
            mine.local[np.ix_(*places)] = found.reshape([len(n) for n in places])

        on_own(a, store)

    def _parsed(self, index: Any) -> tuple[list[Pick], list[Optional[int]], tuple[int, ...]]:
        """Return the indices along each axis, and the axes and the shape of the result.

        An axis of the result is one of the array, or None if it is new.
        """
        a = self._array
        items = list(index) if isinstance(index, tuple) else [index]
        dots = [n for n, item in enumerate(items) if item is Ellipsis]
        given = sum(item is not None and item is not Ellipsis for item in items)
        if len(dots) > 1 or given > a.ndim:
            raise IndexError(f'section of "{a.name}" {a.shape}: {given} indices, {len(dots)} ellipses')
        at = dots[0] if dots else len(items)
        items[at : at + 1] = [slice(None)] * (a.ndim - given)
        picks: list[Pick] = []
        axes: list[Optional[int]] = []
        for item in items:
            if item is None:
                axes.append(None)
                continue
            pick, is_kept = self._pick(item, len(picks))
            axes += [len(picks)] * is_kept
            picks.append(pick)
        arrays = sum(isinstance(pick, np.ndarray) for pick in picks)
        if arrays > 1 or arrays and len(axes) - axes.count(None) < a.ndim:
            raise IndexError(
                f'section of "{a.name}": a section takes one index array, with slices; a[index] takes any'
            )
        return picks, axes, tuple(1 if axis is None else len(picks[axis]) for axis in axes)

    def _pick(self, item: Any, axis: int) -> tuple[Pick, bool]:
        """Return the indices that an item selects along an axis, and whether the result has the axis."""
        a = self._array
        n = a.shape[axis]
        if isinstance(item, slice):
            return range(n)[item], True
        found = np.asarray(item)
        if found.dtype == np.bool_ and found.shape == (n,):
            found = np.flatnonzero(found)
        if found.ndim > 1 or found.dtype == np.bool_ or found.size and found.dtype.kind not in "iu":
            raise IndexError(
                f'section of "{a.name}" {a.shape}: {item!r} is none of an integer, a slice, newaxis '
                "(None), an ellipsis, and an array of integers or bools of one axis"
            )
        found = found.astype(np.intp)
        if found.size and not -n <= found.min() <= found.max() < n:
            raise IndexError(f"an index is out of bounds for axis {axis} with size {n}: {item!r}")
        found = np.where(found < 0, found + n, found)
        return (found, True) if found.ndim else (range(int(found), int(found) + 1), False)


def _chosen(pick: Pick, at: Any) -> Any:
    """Return the indices at positions of a selection."""
    return pick.start + at * pick.step if isinstance(pick, range) else pick[at]
