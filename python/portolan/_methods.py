"""The reductions of the class of arrays, with the arguments of NumPy's methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._norms import norm
from ._warnings import reported
from ._reductions import ALL, ANY, MAX, MIN, PRODUCT, SUM, count, position, reduce, variance


class Reductions:
    """A base of `Array`."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _sum: Any
    _extremum: Any
    _norm: Any

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the sum of the elements, of all or along axes. Collective.

        All ranks get the same value, or the same numpy array. `axis` is an axis or a tuple of axes.
        Bools and small integers are summed as 64-bit integers, as in NumPy. The result is stored in
        `out`, if it is given: a numpy array of the result's shape, of the same dtype on all ranks.
        `initial` is added once. `where` selects elements, as for ufuncs: a bool, or an array of
        bools that broadcasts to the shape. Raises
        numpy.exceptions.AxisError for an axis that the array does not have.
        """
        as_it_is = self.dtype.kind in "fc" or self.dtype.kind in "iu" and self.dtype.itemsize == 8
        plain = axis is None and dtype is None and out is None and not keepdims
        if plain and initial is None and where is True and as_it_is:
            return self._sum()
        return reduce(self, SUM, axis, keepdims, dtype, out, initial, where)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the mean of the elements, of all or along axes; see `sum`. Collective.

        Bools and integers are summed as float64, as in NumPy.
        """
        if dtype is None and self.dtype.kind in "biu":
            dtype = np.float64
        total = self.sum(axis, dtype, out, keepdims, where=where)
        number = count(self, axis, keepdims, where)
        with reported("mean"):
            mean = np.true_divide(total, number, out=out, casting="unsafe")
        # NumPy 1 divides a float32 by an integer as float64.
        return mean if out is not None else mean.astype(total.dtype)

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the product of the elements, of all or along axes; see `sum`. Collective."""
        return reduce(self, PRODUCT, axis, keepdims, dtype, out, initial, where)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the variance of the elements, of all or along axes; see `mean`. Collective.

        The sum of the squared distances to the mean is divided by the number of elements less
        `ddof`. Each rank needs memory for two copies of its elements, or three if they are complex.
        """
        return variance(self, False, axis, dtype, out, ddof, keepdims, where)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = True,
    ) -> Any:
        """Return the standard deviation, the square root of `var`. Collective."""
        return variance(self, True, axis, dtype, out, ddof, keepdims, where)

    def norm(self) -> Any:
        """Return the square root of the sum of the squared magnitudes of all elements. Collective.

        It has the precision of the elements, and is a numpy.float64 for integers and bools. For other
        norms, and norms along axes, use `numpy.linalg.norm`.
        """
        return norm(self)

    def min(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the least element, of all or along axes; see `sum`. Collective.

        It is NaN if an element is NaN; `numpy.nanmin` and `numpy.fmin.reduce` ignore NaNs. Raises
        ValueError without `initial` if there are no elements or `where` is given, and TypeError for
        complex elements.
        """
        plain = axis is None and out is None and not keepdims and initial is None
        if plain and where is True:
            return self._found(False)[0]
        return reduce(self, MIN, axis, keepdims, None, out, initial, where)

    def max(
        self,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """Return the largest element, of all or along axes; see `min`. Collective."""
        plain = axis is None and out is None and not keepdims and initial is None
        if plain and where is True:
            return self._found(True)[0]
        return reduce(self, MAX, axis, keepdims, None, out, initial, where)

    def any(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Return whether an element is true, that is, not zero, of all or along axes. Collective."""
        return reduce(self, ANY, axis, keepdims, None, out, None, where)

    def all(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
    ) -> Any:
        """Return whether all elements are true, of all or along axes. Collective."""
        return reduce(self, ALL, axis, keepdims, None, out, None, where)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the position of the least element, of all or along an axis. Collective.

        Without an axis, the position is that in row-major order. It is the position of the first
        NaN if there is one, and otherwise of the first of several equal elements. `out` is that of
        `sum`, with an integer dtype. Raises ValueError if there are no elements, and TypeError for
        complex elements.
        """
        return self._position(False, axis, out, keepdims)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
        """Return the position of the largest element; see `argmin`. Collective."""
        return self._position(True, axis, out, keepdims)

    def _position(self, largest: bool, axis: Any, out: Any, keepdims: bool) -> Any:
        if axis is None and out is None and not keepdims:
            return self._extremum_position(largest)
        return position(self, MAX if largest else MIN, axis, keepdims, out)

    def _extremum_position(self, largest: bool) -> np.intp:
        return np.intp(np.ravel_multi_index(self._found(largest)[1], self.shape))

    def _found(self, largest: bool) -> Any:
        found = self._extremum(largest)
        if found is None:
            raise ValueError(f'array "{self.name}" is empty and has no least or largest element')
        return found
