"""The functions of `numpy.linalg` that factor matrices. All are collective.

The system's ScaLAPACK factors a distributed matrix, as the transpose that an array in row-major order
is there (see `_scalapack`). So an LQ factorisation gives Q and R, and the singular vectors of the two
sides change places. Matrices with square blocks that are dealt out cyclically over all ranks are
factored in their own layout, and others in blocks of 48. Matrices of the results are distributed like
the argument. All ranks get the eigenvalues and singular values, as numpy arrays.

NumPy factors stacks of matrices, after a redistribution that gives each rank whole matrices, and the
matrices of a group of one rank. All results of a stack are distributed arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._blocks import check_group, fill, get_box, is_distributed, make, on_own
from ._create import array
from ._operands import Agreement
from ._ranges import eye
from ._scalapack import call, call_with_workspaces, matrices

LinAlgError = np.linalg.LinAlgError

#: The rows and columns of a block, if the layout is free.
_BLOCK = 48


class QRResult(NamedTuple):
    """The factors of a QR decomposition."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


class EighResult(NamedTuple):
    """The eigenvalues in ascending order, and the eigenvectors, which are columns."""

    eigenvalues: Any
    eigenvectors: Any


def solve(a: Any, b: Any) -> Any:
    """Return the solution x of the equations a @ x = b, as `numpy.linalg.solve`. Collective.

    `b` is a vector, or has as many axes as `a`. One of the two may be a numpy array that all ranks
    have. The result is distributed like `b`. Raises LinAlgError if a matrix is singular.
    """
    check_group("solve", a, b)
    model = a if is_distributed(a) else b
    a, b = (x if is_distributed(x) else array(np.atleast_1d(x), group=model._group) for x in (a, b))
    check("solve", a, square=True)
    of_vector = b.ndim == 1
    if not of_vector and (b.ndim, *b.shape[:-2]) != (a.ndim, *a.shape[:-2]):
        raise ValueError(f"solve: the stacks of shapes {a.shape} and {b.shape} are not alike")
    rows = b.shape[0 if of_vector else -2]
    if rows != a.shape[-1]:
        raise ValueError(
            f'solve: array "{b.name}" {b.shape} has {rows} rows, '
            f'and array "{a.name}" {a.shape} has {a.shape[-1]}'
        )
    dtype = np.linalg.solve(np.ones((1, 1), a.dtype), np.ones((1, 1), b.dtype)).dtype
    if b.size == 0 and not of_vector:
        return make(b, b.shape, dtype, "solve")
    if has_whole(a):
        if not of_vector:
            return spread(b, *by_numpy(np.linalg.solve, a, b))
        b.sync()
        column = b[...][:, np.newaxis]
        return spread(b, *by_numpy(lambda x: np.linalg.solve(x, column)[..., 0], a))
    factored = _laid_out(a, dtype)
    # ScaLAPACK takes the transpose of the right-hand sides, too.
    sides = _like(factored, (1 if of_vector else b.shape[1], a.shape[0]))
    b.sync()
    if of_vector:
        fill(sides, lambda _, j: get_box(b, [j]))
    else:
        sides.transpose_from(b if b.dtype == dtype else b.astype(dtype))
    with matrices(factored, sides) as (x, y):
        pivots = np.zeros(x.rows + x.block, np.intc)
        info = call("p?getrf", *x.shape, x, pivots)
        if not info:
            call("p?getrs", b"T", *y.shape, x, pivots, y)
    _check_info(a, info, "Singular matrix")
    made = make(b, b.shape, dtype, "solve")
    if of_vector:
        return fill(made, lambda j: get_box(sides, [np.zeros(1, np.intp), j])[0])
    made.transpose_from(sides)
    return made


def inv(a: Any) -> Any:
    """Return the inverse of a matrix, as `numpy.linalg.inv`. Collective.

    Raises LinAlgError if a matrix is singular.
    """
    check("inv", a, square=True)
    if a.ndim > 2:
        return spread(a, *by_numpy(np.linalg.inv, a))
    return solve(a, eye(a.shape[0], dtype=a.dtype, distribution=a.distribution, group=a._group))


def slogdet(a: Any) -> Any:
    """Return the sign and the logarithm of the size of a determinant, as `numpy.linalg.slogdet`.

    Collective. All ranks get the results.
    """
    check("slogdet", a, square=True)
    if has_whole(a):
        return SlogdetResult(*by_numpy(np.linalg.slogdet, a))
    sample = np.linalg.slogdet(np.ones((1, 1), a.dtype))
    factored = _laid_out(a, np.linalg.inv(np.ones((1, 1), a.dtype)).dtype)
    with matrices(factored) as (x,):
        pivots = np.zeros(x.rows + x.block, np.intc)
        info = call("p?getrf", *x.shape, x, pivots)
    if a.group.max(info) > 0:
        return SlogdetResult(sample[0].dtype.type(0), sample[1].dtype.type(-np.inf))

    def own(mine: Any) -> tuple[Any, Any]:
        # The rows of the matrix are the columns of the array.
        columns, rows = mine.indices(0), mine.indices(1)
        _, at, to = np.intersect1d(columns, rows, assume_unique=True, return_indices=True)
        diagonal = mine.local[at, to]
        sizes = np.abs(diagonal)
        sign = np.prod(diagonal / sizes)
        # All ranks with the same rows have their pivots, which are counted from 1.
        if len(columns) and columns[0] == 0 and np.sum(pivots[: len(rows)] != rows + 1) % 2:
            sign = -sign
        return sign, np.sum(np.log(sizes.astype(float)))

    sign, logarithm = on_own(factored, own)
    sign = a.group.all_reduce(sample[0].dtype.type(sign), "prod")
    return SlogdetResult(sign, sample[1].dtype.type(a.group.sum(float(logarithm))))


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the Cholesky factor of a Hermitian matrix, as `numpy.linalg.cholesky`. Collective.

    It is the lower triangle, and with `upper` the upper one. Raises LinAlgError if the matrix is not
    positive definite.
    """
    check("cholesky", a, square=True)
    dtype = np.linalg.cholesky(np.ones((1, 1), a.dtype)).dtype
    if has_whole(a):
        options: dict[str, Any] = {"upper": True} if upper else {}
        return spread(a, *by_numpy(lambda x: np.linalg.cholesky(x, **options), a))
    factored = _laid_out(a, dtype)
    with matrices(factored) as (x,):
        info = call("p?potrf", b"L" if upper else b"U", a.shape[0], x)
    _check_info(a, info, "Matrix is not positive definite")
    return _triangle(a, factored, a.shape, upper)


def qr(a: Any, mode: Any = "reduced") -> Any:
    """Return the factors Q and R of a matrix, as `numpy.linalg.qr`. Collective.

    The mode is 'reduced', 'complete', or 'r' for R alone.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: the mode {mode!r} is none of 'reduced', 'complete' and 'r'")
    check("qr", a)
    dtype = np.linalg.qr(np.ones((1, 1), a.dtype))[0].dtype
    if has_whole(a):
        found = [spread(a, x) for x in by_numpy(lambda x: np.linalg.qr(x, mode), a)]
        return found[0] if mode == "r" else QRResult(*found)
    (rows, columns), group = a.shape, a.group
    number = min(rows, columns)
    width = rows if mode == "complete" else number
    factored = _laid_out(a, dtype)
    with matrices(factored) as (x,):
        scales = np.zeros(x.rows + x.block, dtype)
        call_with_workspaces(group, "p?gelqf", (*x.shape, x, scales), [dtype])
    triangle = _triangle(a, factored, (width, columns), True)
    if mode == "r":
        return triangle
    if width != columns:
        # The routine reads the columns of the reflectors, and sets the others.
        few, wide = factored, _like(factored, (rows, width))
        factored = fill(wide, lambda i, j: get_box(few, [i, np.minimum(j, columns - 1)]))
    with matrices(factored) as (x,):
        name = "p?unglq" if dtype.kind == "c" else "p?orglq"
        call_with_workspaces(group, name, (*x.shape, number, x, scales), [dtype])
    return QRResult(_copied(a, factored, "qr"), triangle)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return the factors U, S and Vh of a matrix, as `numpy.linalg.svd`. Collective.

    All ranks get S, a numpy array. `hermitian` has no effect. Raises LinAlgError if the method does
    not converge.
    """
    check("svd", a)
    dtype = np.linalg.svd(np.ones((1, 1), a.dtype))[0].dtype
    if has_whole(a):
        options: dict[str, Any] = {"full_matrices": full_matrices, "compute_uv": compute_uv}
        found = by_numpy(lambda x: np.linalg.svd(x, **options), a)
        if not compute_uv:
            return found[0]
        return SVDResult(spread(a, found[0]), found[1], spread(a, found[2]))
    _check_finite("svd", a)
    rows, columns = a.shape
    number = min(rows, columns)
    factored = _laid_out(a, dtype)
    of_rows, of_columns = factored, factored
    if compute_uv:
        of_rows, of_columns = _like(factored, (rows, number)), _like(factored, (number, columns))
    real = np.finfo(dtype).dtype
    values = np.zeros(number, real)
    # The routine gives no length of the real workspace of complex matrices.
    rest = [np.zeros(1 + 4 * max(rows, columns), real)] if dtype.kind == "c" else []
    distinct = (factored, of_columns, of_rows) if compute_uv else (factored,)
    with matrices(*distinct) as found:
        x, left, right = found if compute_uv else found * 3
        job = b"V" if compute_uv else b"N"
        arguments = (job, job, *x.shape, x, values, left, right)
        info = call_with_workspaces(a.group, "p?gesvd", arguments, [dtype], rest)
    _check_info(a, info, "SVD did not converge")
    values = a.group.broadcast(values)
    if not compute_uv:
        return values
    u = _completed(a, of_rows) if full_matrices and rows > number else _copied(a, of_rows, "svd")
    if full_matrices and columns > number:
        return SVDResult(u, values, adjoint(_completed(a, adjoint(of_columns))))
    return SVDResult(u, values, _copied(a, of_columns, "svd"))


def svdvals(x: Any, /) -> Any:
    """Return the singular values of a matrix in descending order. Collective; see `svd`."""
    return svd(x, compute_uv=False)


def eigh(a: Any, UPLO: Any = "L") -> Any:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix, as `numpy.linalg.eigh`. Collective.

    Only one triangle is read. All ranks get the eigenvalues, a numpy array. Raises LinAlgError if the
    method does not converge.
    """
    triangle = _check_eigh("eigh", a, UPLO)
    dtype = np.linalg.eigh(np.ones((1, 1), a.dtype))[1].dtype
    if has_whole(a):
        found = by_numpy(lambda x: np.linalg.eigh(x, UPLO), a)
        return EighResult(found[0], spread(a, found[1]))
    _check_finite("eigh", a)
    factored = _laid_out(a, dtype)
    vectors = _like(factored, a.shape)
    real = np.finfo(dtype).dtype
    values = np.zeros(a.shape[0], real)
    name, kinds = ("p?heevd", [dtype, real, np.intc]) if dtype.kind == "c" else ("p?syevd", [dtype, np.intc])
    with matrices(factored, vectors) as (x, y):
        arguments = (b"V", triangle, a.shape[0], x, values, y)
        info = call_with_workspaces(a.group, name, arguments, kinds)
    _check_info(a, info, "Eigenvalues did not converge")
    # The transpose of a Hermitian matrix has the conjugate eigenvectors.
    made = make(a, a.shape, dtype, "eigh")
    made.transpose_from(np.conjugate(vectors) if dtype.kind == "c" else vectors)
    return EighResult(a.group.broadcast(values), made)


def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    """Return the eigenvalues of a Hermitian matrix in ascending order. Collective; see `eigh`."""
    triangle = _check_eigh("eigvalsh", a, UPLO)
    dtype = np.linalg.eigh(np.ones((1, 1), a.dtype))[1].dtype
    if has_whole(a):
        return by_numpy(lambda x: np.linalg.eigvalsh(x, UPLO), a)[0]
    _check_finite("eigvalsh", a)
    factored = _laid_out(a, dtype)
    real = np.finfo(dtype).dtype
    values = np.zeros(a.shape[0], real)
    name, kinds = ("p?heev", [dtype, real]) if dtype.kind == "c" else ("p?syev", [dtype])
    with matrices(factored) as (x,):
        arguments = (b"N", triangle, a.shape[0], x, values, x)
        info = call_with_workspaces(a.group, name, arguments, kinds)
    _check_info(a, info, "Eigenvalues did not converge")
    return a.group.broadcast(values)


def check(name: str, a: Any, square: bool = False) -> None:
    """Raise unless an argument is a distributed matrix, or a stack of matrices."""
    if not is_distributed(a):
        raise TypeError(
            f"{name} of a {type(a).__name__}, which is not a distributed array; use portolan.array(), "
            f"or numpy.linalg.{name}"
        )
    if a.ndim < 2:
        raise LinAlgError(f'{name} of array "{a.name}" of shape {a.shape}, which is no matrix')
    if square and a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f'{name} of array "{a.name}" of shape {a.shape}: the matrix is not square')


def _check_eigh(name: str, a: Any, uplo: str) -> bytes:
    """Return the triangle that ScaLAPACK reads, which is the other one of the transpose."""
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    check(name, a, square=True)
    return b"U" if uplo.upper() == "L" else b"L"


def _check_finite(name: str, a: Any) -> None:
    """Raise LinAlgError for infinities and NaNs, with which iterative methods may not end."""
    if not np.isfinite(a).all():
        raise LinAlgError(f'{name}: array "{a.name}" contains infinities or NaNs, so nothing converges')


def _check_info(a: Any, info: int, text: str) -> None:
    """Raise LinAlgError on all ranks if a routine has failed on one."""
    if a.group.max(info) > 0:
        raise LinAlgError(f'{text}: array "{a.name}" of shape {a.shape}')


def _laid_out(a: Any, dtype: Any) -> Any:
    """Return a copy of a matrix in a layout that ScaLAPACK takes: square blocks over all ranks."""
    x = a if a.dtype == dtype else a.astype(dtype)
    kind, *blocks = a._spec
    if kind == "cyclic" and len(set(blocks[0])) == 1 and math.prod(a.grid) == a.group.size:
        return x.copy() if x is a else x
    return x.redistribute(("cyclic", [_BLOCK, _BLOCK], None))


def _like(factored: Any, shape: Sequence[int]) -> Any:
    """Create a matrix with the blocks and the grid of another one. Collective."""
    spec = ("cyclic", factored._spec[1], list(factored.grid))
    return type(factored)(
        shape, factored.dtype, distribution=spec, group=factored._group, _unfilled=True
    )


def _copied(a: Any, factored: Any, name: str) -> Any:
    """Return a matrix, distributed like the argument if its shape permits. Collective."""
    made = make(a, factored.shape, factored.dtype, name)
    made.copy_from(factored)
    return made


def _triangle(a: Any, factored: Any, shape: Sequence[int], upper: bool) -> Any:
    """Return a triangle of the first rows of a matrix, and zeros elsewhere. Collective."""

    def values(i: Any, j: Any) -> Any:
        inside = i[:, np.newaxis] <= j if upper else i[:, np.newaxis] >= j
        return np.where(inside, get_box(factored, [i, j]), 0)

    return fill(make(a, shape, factored.dtype, "triangle"), values)


def _completed(a: Any, thin: Any) -> Any:
    """Return a square matrix whose first columns are given orthonormal ones. Collective."""
    rows, number = thin.shape
    others = qr(thin, "complete").Q

    def values(i: Any, j: Any) -> Any:
        parts = [get_box(thin, [i, j[j < number]]), get_box(others, [i, j[j >= number]])]
        return np.concatenate(parts, axis=1)

    return fill(make(a, (rows, rows), thin.dtype, "svd"), values)


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of a matrix. Collective."""
    conjugate = np.conjugate(x) if x.dtype.kind == "c" else x
    return conjugate.transpose(distribution=x._spec, group=x._group)


def has_whole(a: Any) -> bool:
    """Return whether a rank can have whole matrices of an array, or the matrices have no elements."""
    return bool(a.ndim > 2 or a.group.size == 1 or a.size == 0)


def by_numpy(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Return the results of a function of NumPy. Collective.

    They are arrays that all ranks have for matrices, and distributed arrays for stacks.
    """
    first = arrays[0]
    if first.ndim == 2:
        for x in arrays:
            x.sync()
        found = function(*[x[...] for x in arrays])
        return list(found) if isinstance(found, tuple) else [found]
    grid = _grid_of_stack(first)
    if grid is None:
        longest = int(np.argmax(first.shape[:-2]))
        grid = [first.group.size if n == longest else 1 for n in range(first.ndim - 2)]
    whole = ("grid", [*grid, 1, 1])
    stacks = [x if _grid_of_stack(x) == grid else x.redistribute(whole) for x in arrays]
    for x in stacks:
        x.sync()
    failure, found = "", None
    with Agreement(first.group):
        try:
            found = function(*[x[x.bounds()] for x in stacks])
        except LinAlgError as error:
            failure = str(error)
    failures = [text for text in first.group.all_gather(failure) if text]
    if failures:
        raise LinAlgError(failures[0])
    return [_stacked(first, grid, part) for part in (found if isinstance(found, tuple) else (found,))]


def _grid_of_stack(x: Any) -> Any:
    """Return the ranks along the axes of a stack whose matrices belong to one rank each, or None."""
    is_even = x._spec[0] in ("block", "rows", "grid") and math.prod(x.grid) == x.group.size
    return list(x.grid[:-2]) if is_even and x.grid[-2:] == (1, 1) else None


def _stacked(model: Any, grid: Sequence[int], part: Any) -> Any:
    """Create an array of the parts of all ranks, which are distributed along the axes of a stack."""
    axes = len(grid)
    shape = (*model.shape[:axes], *part.shape[axes:])
    spec = ("grid", [*grid, *[1] * (part.ndim - axes)])
    made = type(model)(shape, part.dtype, distribution=spec, group=model._group, _unfilled=True)
    return fill(made, lambda *_: part)


def spread(model: Any, values: Any) -> Any:
    """Return a result that all ranks have as a distributed array. Collective."""
    if is_distributed(values):
        return values
    made = make(model, values.shape, values.dtype)
    return fill(made, lambda *at: values[np.ix_(*at)])
