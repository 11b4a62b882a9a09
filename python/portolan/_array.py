"""The class of arrays: transfers, operators, reductions and conversions."""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ._conversions import Conversions
from ._derived import Derived
from ._files import Files
from ._group import world
from ._methods import Reductions
from ._operands import Agreement, is_comparable, raise_file_error
from ._reductions import axes_of
from ._start import _native
from ._values import _positions
from ._warnings import ComplexWarning, reported, warn

_new = _native.ArrayBase.__new__
Access = _native.Access
Transfer = _native.Transfer

Shape = Union[int, Sequence[int]]


def grid(*ranks: int) -> tuple[Any, ...]:
    """Return the distribution in blocks over a grid of ranks, such as `grid(2, 3)` for 6 ranks."""
    return ("grid", list(ranks))


def irregular(*starts: Sequence[int]) -> tuple[Any, ...]:
    """Return the distribution in blocks that begin at the given indices, one list for each axis.

    Each list is ascending and begins with 0.
    """
    return ("irregular", [list(axis) for axis in starts])


def cyclic(block: Sequence[int], grid: Optional[Sequence[int]] = None) -> tuple[Any, ...]:
    """Return the distribution that deals out blocks of a fixed shape cyclically, as ScaLAPACK does.

    `grid` has the number of ranks along each axis. By default, a suitable grid is chosen.
    """
    return ("cyclic", list(block), None if grid is None else list(grid))


def _tuple(shape: Shape) -> tuple[int, ...]:
    try:
        return (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        if not hasattr(shape, "__iter__"):
            raise
        return tuple(operator.index(n) for n in shape)


def _per_axis(value: Any, ndim: int, what: str) -> list[Any]:
    values = [value] * ndim if np.ndim(value) == 0 else list(value)
    if len(values) != ndim:
        raise ValueError(f"{what} {value!r} for an array of {ndim} axes")
    return values


class Array(
    _native.ArrayBase,  # type: ignore[misc,name-defined]
    Conversions,
    Reductions,
    Derived,
    Files,
    NDArrayOperatorsMixin,
):
    """A dense array whose elements are distributed over the ranks of a group.

    `zeros`, `array`, `load` and similar functions create arrays; all are collective. An array that
    is no longer referenced on any rank is freed when the group creates its next object.
    """

    __array_priority__ = 1000.0
    _spec: tuple[Any, ...]
    _periodic: tuple[bool, ...]
    _group: Any

    def __new__(
        cls,
        shape: Shape,
        dtype: Any = float,
        *,
        name: str = "",
        distribution: Union[str, tuple[Any, ...]] = "block",
        ghosts: Union[int, Sequence[int]] = 0,
        periodic: Union[bool, Sequence[bool]] = False,
        group: Any = None,
        _unfilled: bool = False,
        _path: Optional[str] = None,
    ) -> "Array":
        shape = _tuple(shape)
        if any(n < 0 for n in shape):
            raise ValueError(f"negative dimensions are not allowed: {shape}")
        if not shape:
            raise ValueError("a distributed array has at least one axis")
        spec = (distribution,) if isinstance(distribution, str) else distribution
        kinds = ("block", "rows", "grid", "irregular", "cyclic")
        if not isinstance(spec, tuple) or not spec or spec[0] not in kinds:
            raise ValueError(
                f"distribution {distribution!r}: expected 'block', 'rows', grid(...), "
                "irregular(...) or cyclic(...)"
            )
        widths = [operator.index(g) for g in _per_axis(ghosts, len(shape), "ghosts")]
        edges = [bool(p) for p in _per_axis(periodic, len(shape), "periodic")]
        if any(g < 0 for g in widths):
            raise ValueError(f"negative widths of ghost cells: {widths}")
        native = np.dtype(dtype).newbyteorder("=")
        # Ghost cells beyond open edges are never written, so they start as zero.
        unfilled = _unfilled and not any(widths)
        self: Array = super().__new__(
            cls, shape, native, name, spec, widths, edges, unfilled, group, _path
        )
        self._spec, self._periodic, self._group = spec, tuple(edges), group
        return self

    # Arrays are unhashable, as NumPy's are.
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: Any) -> Any:
        if is_comparable(self, other):
            return NDArrayOperatorsMixin.__eq__(self, other)
        return self._filled(False)

    def __ne__(self, other: Any) -> Any:
        if is_comparable(self, other):
            return NDArrayOperatorsMixin.__ne__(self, other)
        return self._filled(True)

    def _filled(self, value: bool) -> "Array":
        made = self._like(np.bool_, "")
        made.fill(value)
        return made

    @property
    def group(self) -> Any:
        """The group of ranks that share the array."""
        return world if self._group is None else self._group

    @property
    def distribution(self) -> tuple[Any, ...]:
        """The distribution that the array was created with."""
        return self._spec

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether the array is periodic along each axis."""
        return self._periodic

    def _like(self, dtype: Any, name: str, accessed: bool = False) -> "Array":
        """Create an array of equal distribution, whose elements are not set. Collective.

        With `accessed`, the caller begins with an access to it, and it may take over the memory of
        an array that all ranks have dropped. The native class calls it, too.
        """
        dtype = np.dtype(dtype)
        if not dtype.isnative:
            dtype = dtype.newbyteorder("=")
        made: Array = _new(Array, (), dtype, name or "unnamed", self, (), (), accessed)
        made._spec, made._periodic, made._group = self._spec, self._periodic, self._group
        return made

    # Transfers, in addition to those of the native class

    def put(self, ind: Any, v: Any, mode: str = "raise") -> None:
        """Set the elements at positions in row-major order, as `numpy.put` does. Not collective.

        Values are repeated if there are fewer than positions. `a[index] = value` is faster.
        """
        places = np.asarray(ind).reshape(-1)
        values = np.asarray(v).reshape(-1)
        if not places.size or not values.size:
            return
        if not np.can_cast(places.dtype, np.intp, "same_kind"):
            raise TypeError(f"positions of {places.dtype!r} are not integers")
        if self.size == 0:
            raise IndexError(f'array "{self.name}" is empty: it has no element to put')
        size = int(self.size)
        if mode == "raise":
            places = _positions(places, size, 0)
        else:
            places = np.ravel_multi_index((places.astype(np.intp),), (size,), mode)  # type: ignore
        self[np.unravel_index(places, self.shape)] = np.resize(values, places.size)

    # Own elements

    def access(self) -> Any:
        """Give every rank exclusive access to its own elements. Collective.

        The result is a context manager. Its attributes `local` and `padded` (with ghost cells) are
        numpy arrays over the memory of the distributed array. The access ends, collectively, at the
        end of the block or by `release`. Such arrays can be read afterwards, but not written.
        """
        return Access(self)

    def update_ghosts(self) -> None:
        """Fill the ghost cells with the elements of the neighbours. Collective."""
        with self.access() as mine:
            mine.update_ghosts()

    # Whole arrays

    def copy(self, name: str = "") -> "Array":
        """Return a copy of equal distribution. Collective."""
        made = self._like(self.dtype, name)
        made.copy_from(self)
        return made

    def __copy__(self) -> "Array":
        return self.copy()

    def __deepcopy__(self, _: Any) -> "Array":
        return self.copy()

    def astype(self, dtype: Any, name: str = "") -> "Array":
        """Return a copy with another dtype. Collective."""
        made = self._like(dtype, name)
        drops_imaginary = self.dtype.kind == "c" and made.dtype.kind not in "cb"
        with Agreement(self.group), reported("cast"):
            if drops_imaginary:
                warn("Casting complex values to real discards the imaginary part", ComplexWarning)
            mine = self.access()
            its = made.access()
            try:
                its.local[...] = (mine.local.real if drops_imaginary else mine.local).astype(dtype)
            finally:
                its.release()
                mine.release()
        return made

    @property
    def T(self) -> "Array":
        """The transpose, a new array; see `transpose`. Collective."""
        return self.transpose()

    def transpose(self, *axes: Any, **options: Any) -> "Array":
        """Return a new array with the axes in the given order, by default in reverse. Collective.

        The order is one argument for each axis, or a tuple. The options are those of `zeros`; by
        default, the group is that of this array. Raises ValueError if the order does not name
        each axis once.
        """
        order = axes[0] if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else axes
        reverse = tuple(range(self.ndim))[::-1]
        order = axes_of(order, self.ndim) if order else reverse
        if len(order) != self.ndim:
            raise ValueError(f'axes {order} do not match array "{self.name}" of {self.ndim} axes')
        options.setdefault("group", self._group)
        self._settle()
        shape = tuple(self.shape[n] for n in order)
        made = Array(shape, self.dtype, _unfilled=True, **options)
        if order == reverse:
            made.transpose_from(self)
            return made
        self.sync()
        mine = made.access()
        try:
            box = [mine.indices(order.index(n)) for n in range(self.ndim)]
            mine.local[...] = self._box(box).transpose(order)
        finally:
            mine.release()
        return made

    def _box(self, indices: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Return the elements at the combinations of some indices of each axis."""
        is_box = all(len(n) and n[-1] - n[0] == len(n) - 1 for n in indices)
        index = tuple(slice(n[0], n[-1] + 1) for n in indices) if is_box else np.ix_(*indices)
        found: np.ndarray[Any, Any] = self[index]
        return found

    def redistribute(self, distribution: Any, name: str = "", **options: Any) -> "Array":
        """Return a copy with another distribution. Collective.

        The options are those of `zeros`; by default, the group is that of this array.
        """
        options.setdefault("group", self._group)
        self._settle()
        made = Array(
            self.shape, self.dtype, name=name, distribution=distribution, _unfilled=True, **options
        )
        made.copy_from(self)
        return made

    # Results of all elements

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Return an array of the elements, limited to the interval from `min` to `max`. Collective.

        A limit is a number, an array as for ufuncs, or None.
        """
        if self.dtype.kind in "iu":
            # Python's integers beyond the dtype limit nothing.
            bounds = np.iinfo(self.dtype)
            min = None if type(min) is int and min <= bounds.min else min
            max = None if type(max) is int and max >= bounds.max else max
        if min is None:
            return np.positive(self, out=out) if max is None else np.minimum(self, max, out=out)
        above = np.maximum(self, min, out=None if max is not None else out)
        return above if max is None else np.minimum(above, max, out=out)

    # Files

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Save to a `.npy` file that `numpy.load` and `portolan.load` read. Collective.

        Each rank writes its own elements. As in NumPy, `.npy` is appended to a name without it.
        Raises OSError on all ranks if one cannot write.
        """
        name = os.fspath(path)
        name = name if name.endswith(".npy") else name + ".npy"
        failed = ""
        with Agreement(self.group):
            try:
                self._save(name)
            except ValueError as error:
                failed = str(error)
            # A rank that only learns of a failure raises the exception of the other rank.
            raise_file_error(failed, name)
        if failed:
            raise OSError(failed)

    # NumPy's protocols

    def __array_function__(self, function: Any, _: Any, inputs: Any, options: Any) -> Any:
        from ._functions import array_function

        return array_function(function, inputs, options)


def stencil(old: Array, new: Array, step: Callable[..., None]) -> None:
    """Compute `new` from the elements of `old` and their neighbours. Collective.

    Updates the ghost cells of `old`. `step(old, new, first)` is called with boxes that together cover
    this rank's elements once, the interior while the ghost cells are in flight. Its `new` is a box of
    the array `new`, and `first` is the index of the first element. Its `old` is the same box of the
    array `old`, extended on all sides by the width of the ghost cells.

    Raises ValueError if the arrays are not distributed alike or are block-cyclic, and TypeError if
    their dtypes differ.
    """
    # All ranks release, also if the step raises on some of them.
    with contextlib.ExitStack() as accesses:
        mine = old.access()
        accesses.callback(mine.release)
        its = new.access()
        accesses.callback(its.release)
        mine._stencil(its, step)
