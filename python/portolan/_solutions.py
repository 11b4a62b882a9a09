"""The functions of `numpy.linalg` that follow from factors, solutions and products. All are collective.

Results that are small compared with the matrix are numpy arrays or scalars that all ranks have. NumPy
computes those of stacks of matrices on the rank that has the matrix (see `_factorizations`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _products
from ._blocks import check_group, is_distributed, make
from ._create import array
from ._factorizations import (
    LinAlgError,
    adjoint,
    by_numpy,
    check,
    has_whole,
    inv,
    slogdet,
    solve,
    spread,
    svd,
    svdvals,
)
from ._norms import norm
from ._ranges import eye
from ._warnings import reported


def det(a: Any) -> Any:
    """Return the determinant of a matrix, as `numpy.linalg.det`. Collective."""
    check("det", a, square=True)
    if has_whole(a):
        return by_numpy(np.linalg.det, a)[0]
    sign, logarithm = slogdet(a)
    with reported("det"):
        return sign * np.exp(logarithm)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the solution of least squares, as `numpy.linalg.lstsq`. Collective.

    The solution is distributed. All ranks get the residuals, the rank and the singular values. `b` may
    be a numpy array that all ranks have, and so may `a`. The solution is that of the least norm, by
    the singular values and vectors of `a`.
    """
    check_group("lstsq", a, b)
    model = a if is_distributed(a) else b
    a, b = (x if is_distributed(x) else array(np.asarray(x), group=model._group) for x in (a, b))
    check("lstsq", a)
    if a.ndim > 2 or b.ndim > 2:
        raise LinAlgError(f"lstsq of arrays of shapes {a.shape} and {b.shape}: only of one matrix")
    if a.shape[0] != b.shape[0]:
        raise LinAlgError(
            f'Incompatible dimensions: array "{a.name}" {a.shape} has {a.shape[0]} rows, '
            f'and array "{b.name}" {b.shape} has {b.shape[0]}'
        )
    rows, columns = a.shape
    dtype = np.linalg.lstsq(np.ones((1, 1), a.dtype), np.ones(1, b.dtype), rcond=None)[0].dtype
    eps = np.finfo(dtype).eps
    least = eps * max(rows, columns) if rcond is None else rcond
    if has_whole(a) or b.size == 0:
        for x in (a, b):
            x.sync()
        found = np.linalg.lstsq(a[...], b[...], least)
        return spread(b, found[0]), *found[1:]
    a, b = (x if x.dtype == dtype else x.astype(dtype) for x in (a, b))
    u, sizes, vh = svd(a, full_matrices=False)
    # A negative limit is the precision, as in LAPACK.
    used = sizes > (least if least >= 0 else eps) * sizes[0]
    rank = int(np.count_nonzero(used))
    factors = np.divide(1, sizes, where=used, out=np.zeros_like(sizes))
    scaled = (adjoint(u) @ b) * (factors if b.ndim == 1 else factors[:, np.newaxis])
    x = adjoint(vh) @ scaled
    if rank < columns or rows <= columns:
        residuals = np.empty(0, sizes.dtype)
    else:
        distances = a @ x - b
        squares = np.multiply(np.conjugate(distances), distances).real.sum(0)
        residuals = np.atleast_1d(squares).astype(sizes.dtype)
    made = make(b, x.shape, dtype, "lstsq")
    made.copy_from(x)
    return made, residuals, np.intc(rank), sizes


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Return the pseudo-inverse of a matrix, as `numpy.linalg.pinv`. Collective.

    It is distributed like `a`. The limits are numbers. `hermitian` has no effect.
    """
    check("pinv", a)
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    least = rcond
    if rcond is None:
        least = 1e-15 if rtol is np._NoValue else rtol
    if least is None:
        least = max(a.shape[-2:]) * np.finfo(np.linalg.inv(np.ones((1, 1), a.dtype)).dtype).eps
    if has_whole(a):
        return spread(a, *by_numpy(lambda x: np.linalg.pinv(x, least), a))
    u, sizes, vh = svd(a, full_matrices=False)
    factors = np.divide(1, sizes, where=sizes > least * sizes[0], out=np.zeros_like(sizes))
    made = make(a, a.shape[::-1], u.dtype, "pinv")
    made.matmul_from(adjoint(vh), adjoint(u) * factors[:, np.newaxis])
    return made


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Return the number of singular values above a limit, as `numpy.linalg.matrix_rank`. Collective.

    `hermitian` has no effect.
    """
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if A.ndim < 2:
        return int(np.any(A != 0))
    options = {"tol": tol} if rtol is None else {"rtol": rtol}
    if has_whole(A):
        return by_numpy(lambda x: np.linalg.matrix_rank(x, **options), A)[0]
    sizes = svdvals(A)
    if tol is None:
        tol = sizes[0] * (max(A.shape) * np.finfo(sizes.dtype).eps if rtol is None else rtol)
    return np.count_nonzero(sizes[np.newaxis] > tol, axis=-1)[0]


def cond(x: Any, p: Any = None) -> Any:
    """Return the condition number of a matrix for a norm, as `numpy.linalg.cond`. Collective."""
    check("cond", x, square=p not in (None, 2, -2))
    if x.size == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    if has_whole(x):
        return by_numpy(lambda x: np.linalg.cond(x, p), x)[0]
    if np.isnan(x).any():
        return np.linalg.svd(np.ones((1, 1), x.dtype))[1].dtype.type(np.nan)
    if p in (None, 2, -2):
        sizes = svdvals(x)
        with np.errstate(all="ignore"):
            found = sizes[-1] / sizes[0] if p == -2 else sizes[0] / sizes[-1]
    else:
        real = x if x.dtype.kind in "fc" else x.astype(float)
        try:
            found = norm(real, p) * norm(inv(real), p)
        except LinAlgError:
            return norm(real, p).dtype.type(np.inf)
    return found.dtype.type(np.inf) if np.isnan(found) else found


def matrix_power(a: Any, n: Any) -> Any:
    """Return a power of a square matrix, as `numpy.linalg.matrix_power`. Collective."""
    check("matrix_power", a, square=True)
    n = operator.index(n)
    if n == 0:
        if a.ndim > 2:
            return spread(a, *by_numpy(lambda x: np.linalg.matrix_power(x, 0), a))
        return eye(a.shape[0], dtype=a.dtype, distribution=a.distribution, group=a._group)
    power, found = (a if n > 0 else inv(a)), None
    for n in _halves(abs(n)):
        if n % 2:
            found = power if found is None else found @ power
        if n > 1:
            power = power @ power
    return found


def _halves(n: int) -> Sequence[int]:
    """Return a number, half of it, and so on down to 1."""
    return [n >> k for k in range(n.bit_length())]


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of several matrices in the order of the fewest operations. Collective.

    The first and the last one may be vectors, and some may be numpy arrays that all ranks have.
    """
    factors = [x if is_distributed(x) else np.asarray(x) for x in arrays]
    if len(factors) < 2:
        raise ValueError("Expecting at least two arrays.")
    ends = (0, len(factors) - 1)
    if any(x.ndim != 2 and not (n in ends and x.ndim == 1) for n, x in enumerate(factors)):
        shapes = [x.shape for x in factors]
        raise LinAlgError(f"multi_dot of shapes {shapes}: only the ends may be vectors")
    first, last = factors[0], factors[-1]
    lengths = [first.shape[0] if first.ndim == 2 else 1, *[x.shape[0] for x in factors[1:]]]
    lengths.append(last.shape[1] if last.ndim == 2 else 1)

    @functools.lru_cache(maxsize=None)
    def best(i: int, j: int) -> tuple[int, int]:
        """Return the operations of the product of factors i to j, and where to part it."""
        if i == j:
            return 0, i
        ways = range(i, j)
        last = lengths[i] * lengths[j + 1]
        costs = [best(i, k)[0] + best(k + 1, j)[0] + lengths[k + 1] * last for k in ways]
        return min(zip(costs, ways))

    def product(i: int, j: int, out: Any = None) -> Any:
        if i == j:
            return factors[i]
        k = best(i, j)[1]
        return _dot(product(i, k), product(k + 1, j), out)

    return product(*ends, out)


def _dot(a: Any, b: Any, out: Any) -> Any:
    """Return a product, also of two numpy arrays."""
    return _products.dot(a, b, out) if is_distributed(a) or is_distributed(b) else np.dot(a, b, out)


def outer(x1: Any, x2: Any, /) -> Any:
    """Return the products of all elements of two vectors, as `numpy.linalg.outer`. Collective."""
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, "
            f"but they are x1.ndim={np.ndim(x1)} and x2.ndim={np.ndim(x2)}."
        )
    return _products.outer(x1, x2)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Return the solution of a tensor equation, as `numpy.linalg.tensorsolve`. Collective."""
    if axes is not None:
        a = np.transpose(a, [*[n for n in range(a.ndim) if n not in axes], *axes])
    shape = a.shape[-(a.ndim - b.ndim) :]
    size = math.prod(shape)
    if math.prod(a.shape) != size**2:
        raise LinAlgError(
            "Input arrays must satisfy the requirement "
            "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of a tensor, as `numpy.linalg.tensorinv`. Collective."""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    size = math.prod(a.shape[ind:])
    return np.reshape(inv(np.reshape(a, (size, -1))), a.shape[ind:] + a.shape[:ind])
