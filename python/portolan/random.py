"""Random numbers in distributed arrays, the same for every number of ranks and every distribution.

    rng = pt.random.default_rng(7)
    a = rng.normal(0, 1, (1000, 1000), distribution="rows")

The elements of a call, in row-major order, are divided into blocks of fixed length. Each block has its own
stream: a Philox generator whose counter is made of the number of the call and the number of the block. A
rank computes the blocks of its share. The numbers of one block are those of NumPy's Generator, so they are
the same as long as NumPy keeps its streams.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from ._alignment import apply
from ._array import Array, Shape, _tuple
from ._blocks import fill_flat, is_distributed
from ._create import array
from ._group import Group, world
from ._shapes import reshape, take
from ._sorting import argsort

__all__ = ["Generator", "default_rng"]

#: The elements of one stream.
_BLOCK = 1 << 14


def default_rng(seed: Any = None, group: Optional[Group] = None) -> "Generator":
    """Create a generator. Collective: all ranks pass the same seed.

    The seed is an integer or a sequence of integers, as for NumPy. Without one, the system's entropy
    of one rank seeds all. Raises ValueError if the seeds of the ranks differ.
    """
    return Generator(seed, group)


class Generator:
    """Random numbers with the interface of `numpy.random.Generator`; see `default_rng`.

    All methods are collective and are called by all ranks with the same arguments. With a `size`, they
    return a distributed array, and take the options of `zeros`. Without, all ranks get the same
    number. The parameters of distributions are numbers.
    """

    def __init__(self, seed: Any = None, group: Optional[Group] = None) -> None:
        self._ranks = world if group is None else group
        self._group = group
        if seed is None:
            seed = self._ranks.broadcast(np.random.SeedSequence().entropy)
        self._key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        keys = self._ranks.all_gather(self._key.tolist())
        if any(key != keys[0] for key in keys):
            raise ValueError("the seeds of the ranks differ")
        self._calls = 0

    def _stream(self, call: int, block: int) -> np.random.Generator:
        # Calls in a block count the first word.
        return np.random.Generator(np.random.Philox(key=self._key, counter=[0, block, call, 0]))

    def _draw(
        self,
        function: Callable[[np.random.Generator, Optional[int]], Any],
        size: Optional[Shape],
        options: dict[str, Any],
    ) -> Any:
        call, self._calls = self._calls, self._calls + 1
        if size is None:
            return function(self._stream(call, 0), None)
        options.setdefault("group", self._group)
        # The dtype, and errors of arguments.
        sample = function(self._stream(call, 0), 1)
        if np.ndim(sample) != 1:
            raise TypeError("the parameters of distributions of distributed arrays are numbers")
        made = Array(size, sample.dtype, _unfilled=True, **options)

        def values(begin: int, end: int) -> Any:
            parts = []
            for block in range(begin // _BLOCK, (end - 1) // _BLOCK + 1):
                first = block * _BLOCK
                # The numbers of a block do not depend on how many of them are drawn.
                drawn = function(self._stream(call, block), min(_BLOCK, end - first))
                parts.append(drawn[max(begin - first, 0) :])
            return np.concatenate(parts)

        return fill_flat(made, values)

    def random(self, size: Optional[Shape] = None, dtype: Any = np.float64, **options: Any) -> Any:
        """Return uniform numbers of the interval from 0 to 1, without 1. Collective."""
        return self._draw(lambda g, n: g.random(n, dtype=dtype), size, options)

    def integers(
        self,
        low: int,
        high: Optional[int] = None,
        size: Optional[Shape] = None,
        dtype: Any = np.int64,
        endpoint: bool = False,
        **options: Any,
    ) -> Any:
        """Return uniform integers from `low`, or 0, to `high`, without `high`. Collective."""
        return self._draw(
            lambda g, n: g.integers(low, high, size=n, dtype=dtype, endpoint=endpoint), size, options
        )

    def uniform(
        self, low: float = 0.0, high: float = 1.0, size: Optional[Shape] = None, **options: Any
    ) -> Any:
        """Return uniform numbers of an interval. Collective."""
        return self._draw(lambda g, n: g.uniform(low, high, n), size, options)

    def standard_normal(
        self, size: Optional[Shape] = None, dtype: Any = np.float64, **options: Any
    ) -> Any:
        """Return normal numbers with mean 0 and standard deviation 1. Collective."""
        return self._draw(lambda g, n: g.standard_normal(n, dtype=dtype), size, options)

    def normal(
        self, loc: float = 0.0, scale: float = 1.0, size: Optional[Shape] = None, **options: Any
    ) -> Any:
        """Return normal numbers with a mean and a standard deviation. Collective."""
        return self._draw(lambda g, n: g.normal(loc, scale, n), size, options)

    def lognormal(
        self, mean: float = 0.0, sigma: float = 1.0, size: Optional[Shape] = None, **options: Any
    ) -> Any:
        """Return numbers whose logarithms are normal. Collective."""
        return self._draw(lambda g, n: g.lognormal(mean, sigma, n), size, options)

    def exponential(self, scale: float = 1.0, size: Optional[Shape] = None, **options: Any) -> Any:
        """Return exponential numbers with a mean. Collective."""
        return self._draw(lambda g, n: g.exponential(scale, n), size, options)

    def gamma(
        self, shape: float, scale: float = 1.0, size: Optional[Shape] = None, **options: Any
    ) -> Any:
        """Return numbers of a gamma distribution. Collective."""
        return self._draw(lambda g, n: g.gamma(shape, scale, n), size, options)

    def beta(self, a: float, b: float, size: Optional[Shape] = None, **options: Any) -> Any:
        """Return numbers of a beta distribution. Collective."""
        return self._draw(lambda g, n: g.beta(a, b, n), size, options)

    def poisson(self, lam: float = 1.0, size: Optional[Shape] = None, **options: Any) -> Any:
        """Return integers of a Poisson distribution. Collective."""
        return self._draw(lambda g, n: g.poisson(lam, n), size, options)

    def binomial(self, n: int, p: float, size: Optional[Shape] = None, **options: Any) -> Any:
        """Return integers of a binomial distribution. Collective."""
        return self._draw(lambda g, count: g.binomial(n, p, count), size, options)

    def permutation(self, x: Any, axis: int = 0, **options: Any) -> Any:
        """Return the integers below `x`, or the elements of an array along an axis, in random order.

        Collective. `x` may be a numpy array that all ranks have. Random keys are sorted.
        """
        if np.ndim(x) == 0:
            keys = self.integers(0, 1 << 64, operator.index(x), np.uint64, **options)
            return argsort(keys)
        x = self._distributed(x, options)
        length = x.shape[axis]
        return take(x, self.permutation(length, group=x._group), axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Bring the elements of a distributed array along an axis into random order. Collective."""
        if not is_distributed(x):
            raise TypeError("shuffle needs a distributed array; use numpy's for a numpy array")
        x.copy_from(self.permutation(x, axis))

    def choice(
        self,
        a: Any,
        size: Optional[Shape] = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        **options: Any,
    ) -> Any:
        """Return random elements of an array along an axis, or random integers below `a`. Collective.

        `p` has the probabilities, a numpy array that all ranks have. Without replacement, they are the
        first ones of a permutation, and `p` is refused. The options apply to integers, and to elements
        of an array of one axis.
        """
        number = operator.index(a) if np.ndim(a) == 0 else int(np.shape(a)[axis])
        shape = (1,) if size is None else _tuple(size)
        count = int(np.prod(shape))
        if number <= 0 and count:
            raise ValueError("a must be a positive integer unless no samples are taken")
        options.setdefault("group", self._group)
        if p is not None:
            chosen = self._weighted(number, shape, replace, p, options)
        elif replace:
            chosen = self.integers(0, number, shape, **options)
        else:
            if count > number:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            chosen = self.permutation(number, group=options.pop("group"))
            chosen = reshape(take(chosen, np.arange(count)), shape)
            if options:
                chosen = chosen.redistribute(options.pop("distribution", "block"), **options)
        if np.ndim(a):
            source = self._distributed(a, {"group": chosen._group})
            chosen = take(source, chosen, axis)
        if size is not None:
            return chosen
        return chosen[(slice(None),) * (axis if np.ndim(a) else 0) + (0,)]

    def _weighted(self, number: int, shape: Any, replace: bool, p: Any, options: Any) -> Any:
        if not replace:
            raise ValueError("choice without replacement takes no probabilities")
        weights = np.asarray(p, np.float64)
        if weights.shape != (number,):
            raise ValueError("a and p must have same size")
        if not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-8:
            raise ValueError("probabilities are not non-negative numbers with the sum 1")
        ends = np.cumsum(weights)
        places = self.random(shape, **options)
        return apply(
            "choice", lambda own: np.searchsorted(ends / ends[-1], own, "right"), [places], np.int64
        )

    def _distributed(self, x: Any, options: dict[str, Any]) -> Any:
        if is_distributed(x):
            if options.get("distribution") is not None:
                raise TypeError("the result has the distribution of the array")
            return x
        options.setdefault("group", self._group)
        return array(x, **options)
