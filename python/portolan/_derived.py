"""The methods of the class of arrays that give new arrays, with the arguments of NumPy's methods."""

from __future__ import annotations

from typing import Any

from . import _products, _shapes


class Derived:
    """A base of `Array`."""

    name: str
    size: int
    _group: Any

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
