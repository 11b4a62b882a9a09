"""The methods of the class of arrays that give new arrays, with the arguments of NumPy's methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _elementwise, _products, _sections, _shapes, _sorting


class Derived:
    """A base of `Array`."""

    name: str
    ndim: int
    _group: Any
    copy_from: Any

    # Products

    def dot(self, b: Any, out: Any = None) -> Any:
        """Return `numpy.dot` of this array and another one. Collective.

        It is the sum of the products of two vectors, not conjugated, a distributed array for matrices,
        and a sum over the last axis and the last but one of `b` otherwise. `b` may be a numpy array
        that all ranks have.
        """
        return _products.dot(self, b, out)

    # Shapes

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """Return a new array of another shape, with the elements in row-major order. Collective.

        The shape is one argument for each axis, or a tuple. One length may be -1. The order 'F' is
        column-major. Without axes, the result is the element, a numpy array that all ranks get. Raises
        ValueError if the number of elements differs.
        """
        return _shapes.reshape(self, shape[0] if len(shape) == 1 else shape, order)

    def ravel(self, order: str = "C") -> Any:
        """Return a new array of one axis, with the elements in row-major order. Collective."""
        return _shapes.ravel(self, order)

    def flatten(self, order: str = "C") -> Any:
        """Return a new array of one axis, with the elements in row-major order. Collective."""
        return self.ravel(order)

    def squeeze(self, axis: Any = None) -> Any:
        """Return a new array without axes of length 1. Collective; see `reshape`."""
        return _shapes.squeeze(self, axis)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """Return the distributed array of the elements at indices along an axis. Collective.

        All ranks pass the same indices, or a distributed array of them.
        """
        return _shapes.take(self, indices, axis, out, mode)

    @property
    def section(self) -> Any:
        """Sections of the array: `a.section[10:20, ::2]` is a new distributed array. Collective.

        The index has integers, slices, newaxis (None) and an ellipsis, and may have one array of
        integers or bools of one axis. A distributed mask of the array's shape selects elements.
        `a.section[index] = value` stores a value that all ranks have or a distributed array, which
        broadcasts; its index has no arrays.
        """
        return _sections.Section(self)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Return a new array in which two axes have changed places. Collective."""
        return _shapes.swapaxes(self, axis1, axis2)

    @property
    def mT(self) -> Any:
        """The transposes of the matrices in the last two axes, a new array. Collective."""
        if self.ndim < 2:
            raise ValueError(f'mT of array "{self.name}" of one axis')
        return _shapes.swapaxes(self, -1, -2)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Return a new array in which elements occur several times. Collective."""
        return _shapes.repeat(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Return the elements of a diagonal, a new array. Collective."""
        return _shapes.diagonal(self, offset, axis1, axis2)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
    ) -> Any:
        """Return the sum of a diagonal. Collective. All ranks get the result."""
        return _shapes.trace(self, offset, axis1, axis2, dtype, out)

    # Orders

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Sort the elements along an axis, in place. Collective. The sort is stable."""
        self.copy_from(_sorting.sort(self, axis, kind, order, stable=stable))

    def argsort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        """Return the distributed array of the indices that sort along an axis. Collective.

        The sort is stable. If the axis is None, they are positions in row-major order.
        """
        return _sorting.argsort(self, axis, kind, order, stable=stable)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Return the places in this sorted array at which values belong. Collective.

        The result is distributed like `v`, or a numpy array if `v` is none.
        """
        return _sorting.searchsorted(self, v, side, sorter)

    def nonzero(self) -> Any:
        """Return the indices of the elements that are not zero, an array for each axis. Collective."""
        return _sorting.nonzero(self)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the sums of the elements up to each one, along an axis. Collective.

        Without an axis, the result has one axis, in row-major order.
        """
        return _sorting.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the products of the elements up to each one; see `cumsum`. Collective."""
        return _sorting.cumprod(self, axis, dtype, out)

    # Elements

    @property
    def real(self) -> Any:
        """The real parts, a new array. Collective."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary parts, a new array. Collective."""
        return np.imag(self)

    def conj(self) -> Any:
        """Return the complex conjugates, a new array. Collective."""
        return np.conjugate(self)  # type: ignore[call-overload]

    def conjugate(self) -> Any:
        """Return the complex conjugates, a new array. Collective."""
        return self.conj()

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return the elements rounded to a number of decimals, in a new array or `out`. Collective."""
        return _elementwise.round_(self, decimals, out)
