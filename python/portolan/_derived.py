"""The methods of the class of arrays that give new arrays, with the arguments of NumPy's methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _elementwise, _products, _shapes, _sorting


class Derived:
    """A base of `Array`."""

    name: str
    size: int
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

        The shape is one argument for each axis, or a tuple. One length may be -1. Raises ValueError if
        the number of elements differs.
        """
        if order not in ("C", "A", "K"):
            raise ValueError(f"the order {order!r} of a distributed array; elements are in the order 'C'")
        return _shapes.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self, order: str = "C") -> Any:
        """Return a new array of one axis, with the elements in row-major order. Collective."""
        return self.reshape(-1 if self.size else 0, order=order)

    def flatten(self, order: str = "C") -> Any:
        """Return a new array of one axis, with the elements in row-major order. Collective."""
        return self.ravel(order)

    def squeeze(self, axis: Any = None) -> Any:
        """Return a new array without axes of length 1. Collective. One axis remains at least."""
        return _shapes.squeeze(self, axis)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
        """Return the distributed array of the elements at indices along an axis. Collective.

        All ranks pass the same indices, or a distributed array of them.
        """
        return _shapes.take(self, indices, axis, out, mode)

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
        return _elementwise.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary parts, a new array. Collective."""
        return _elementwise.imag(self)

    def conj(self) -> Any:
        """Return the complex conjugates, a new array. Collective."""
        return np.conjugate(self)  # type: ignore[call-overload]

    def conjugate(self) -> Any:
        """Return the complex conjugates, a new array. Collective."""
        return self.conj()

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return the elements rounded to a number of decimals, in a new array or `out`. Collective."""
        return _elementwise.round_(self, decimals, out)
