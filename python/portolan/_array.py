"""The class of arrays: transfers, operators, reductions and conversions."""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ._derived import Derived
from ._files import Files
from ._gather import note
from ._group import world
from ._methods import Reductions
from ._operands import Agreement, is_comparable, promoted, raise_file_error
from ._reductions import axes_of
from ._start import _native
from ._ufuncs import array_ufunc

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


class Array(_native.ArrayBase, Reductions, Derived, Files, NDArrayOperatorsMixin):  # type: ignore[misc,name-defined]
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

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, on all ranks together."""
        return int(self.size) * int(self.dtype.itemsize)

    def __repr__(self) -> str:
        try:
            return (
                f"<portolan.Array {self.name!r}, shape {self.shape}, {self.dtype}, "
                f"{self._spec[0]} over {self.grid}>"
            )
        except _native.Error as error:
            return f"<portolan.Array: {error}>"

    def _like(self, dtype: Any, name: str, *, accessed: bool = False) -> "Array":
        """Create an array of equal distribution, whose elements are not set. Collective.

        With `accessed`, the caller begins with an access to it, and it may take over the memory of
        an array that all ranks have dropped.
        """
        dtype = np.dtype(dtype)
        if not dtype.isnative:
            dtype = dtype.newbyteorder("=")
        made: Array = _new(Array, (), dtype, name or "unnamed", self, (), (), accessed)
        made._spec, made._periodic, made._group = self._spec, self._periodic, self._group
        return made

    # Transfers, in addition to those of the native class

    def read_inc(self, index: Any, value: Any = 1) -> Any:
        """Add to an element of int32, int64, uint32 or uint64, and return its previous value.

        Atomic with respect to other ranks. Not collective.
        """
        return self._read_inc(index, value)

    def item(self, *index: Any) -> Any:
        """Return one element as a number of Python. Not collective.

        The index is one integer for each axis, or the position of the element in row-major order. An
        array of one element needs none. Raises ValueError for other arrays without an index.
        """
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if not index and self.size != 1:
            raise ValueError(f'array "{self.name}" has {self.size} elements; item() needs an index')
        if len(index) < 2 and self.ndim != len(index):
            position = operator.index(index[0]) if index else 0
            if not -self.size <= position < self.size:
                raise IndexError(
                    f'array "{self.name}": {position} is out of bounds for {self.size} elements'
                )
            index = tuple(int(n) for n in np.unravel_index(position % self.size, self.shape))
        if len(index) != self.ndim:
            raise ValueError(f'array "{self.name}": {len(index)} indices for {self.ndim} axes')
        return self[tuple(operator.index(n) for n in index)].item()

    def tolist(self) -> list[Any]:
        """Return all elements as nested lists of numbers of Python. Not collective."""
        return list(self[...].tolist())

    # Own elements

    def access(self) -> Any:
        """Give every rank exclusive access to its own elements. Collective.

        The result is a context manager. Its attributes `local` and `padded` (with ghost cells) are
        numpy arrays over the memory of the distributed array. The access ends, collectively, at the
        end of the block or by `release`, which raises BufferError while such arrays are alive.
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
        with Agreement(self.group):
            mine = self.access()
            its = made.access()
            try:
                its.local[...] = mine.local.astype(dtype)
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

    def stencil(self, to: "Array", step: Callable[..., None]) -> None:
        """Compute `to` from the elements of this array and their neighbours. Collective.

        Updates the ghost cells of this array. `step(old, new, first)` is called with boxes that
        together cover this rank's elements once, the interior while the ghost cells are in flight.
        `new` is a box of `to`, and `first` is the index of its first element. `old` is the same box
        of this array, extended on all sides by the width of the ghost cells.

        Raises ValueError if the arrays are not distributed alike or are block-cyclic, and TypeError
        if their dtypes differ.
        """
        # All ranks release, also if the step raises on some of them.
        with contextlib.ExitStack() as accesses:
            mine = self.access()
            accesses.callback(mine.release)
            its = to.access()
            accesses.callback(its.release)
            try:
                mine.stencil(its, step)
            except BaseException as error:
                # The frames of the step refer to its boxes, which must not outlive the access.
                traceback.clear_frames(error.__traceback__)
                raise

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

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first axis. The elements of a vector are fetched at once."""
        return iter(self[...]) if self.ndim == 1 else (self[n] for n in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        """Return whether an element equals the value. Collective."""
        return bool((self == value).any())

    def __bool__(self) -> bool:
        """Return whether the only element is true. Raises ValueError for more or fewer elements."""
        if self.size != 1:
            raise ValueError(
                f'the truth value of array "{self.name}" of {self.size} elements is ambiguous; use '
                "any() or all()"
            )
        return bool(self[(0,) * self.ndim])

    def _only(self, kind: str) -> Any:
        if self.size != 1:
            raise TypeError(
                f'{kind}() of array "{self.name}" of {self.size} elements; use item(index), or '
                f"{kind}(a[index])"
            )
        return self.item()

    def __float__(self) -> float:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return float(self._only("float"))

    def __int__(self) -> int:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return int(self._only("int"))

    def __complex__(self) -> complex:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return complex(self._only("complex"))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a distributed array cannot be converted without a copy")
        note(self)
        whole: np.ndarray[Any, Any] = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return array_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _: Any, inputs: Any, options: Any) -> Any:
        from ._functions import array_function

        return array_function(function, inputs, options)
