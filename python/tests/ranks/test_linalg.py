"""Factorisations of distributed matrices, compared with NumPy."""

import os

import numpy as np
import pytest

import portolan as pt
from portolan import _scalapack

import samples

RNG = np.random.default_rng(56)
DTYPES = ["f4", "f8", "c8", "c16"]


#: ScaLAPACK sends a message for each column, and MPI polls without pause. If ranks share cores, each
#: message takes a time slice, so only a release runs all tests.
RUN_ALWAYS = ("test_solve[9-f8]", "test_qr[shape1-f8]", "test_determinants[9-f8]", "test_groups")
#: A launcher may bind each rank to a core of its own.
CORES = set().union(*pt.world.all_gather(os.sched_getaffinity(0)))
FEW = pt.size() > len(CORES) and not os.environ.get("PORTOLAN_TEST_RELEASE")


@pytest.fixture(autouse=True)
def _needs_scalapack(request):
    if FEW and request.node.name not in RUN_ALWAYS:
        pytest.skip("the ranks share cores")
    try:
        _scalapack.library()
    except ImportError as error:
        if pt.size() > 1:
            pytest.skip(str(error))


def distributions(shape):
    every = samples.distributions(shape)
    return [every[0], every[3], every[4]]


def values(shape, dtype="f8"):
    found = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * RNG.standard_normal(shape)
    return found.astype(dtype)


def hermitian(n, dtype="f8"):
    x = values((n, n), dtype)
    return x + x.conj().T


def positive(n, dtype="f8"):
    x = values((n, n), dtype)
    return x @ x.conj().T + n * np.eye(n, dtype=dtype)


def close(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = 1e3 * np.finfo(expected.dtype).eps
    scale = max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * scale)


def orthonormal(x):
    close(x.conj().T @ x, np.eye(x.shape[1], dtype=x.dtype))


@pytest.mark.parametrize("n, dtype", list(zip([9, 9, 9, 9, 1], [*DTYPES, "f8"])))
def test_solve(n, dtype):
    x, u, y = values((n, n), dtype) + n * np.eye(n, dtype=dtype), values(n, dtype), values((n, 3), dtype)
    for kind, other in zip(distributions((n, n)), distributions((n, 3))[::-1]):
        a, b = pt.array(x, distribution=kind), pt.array(y, distribution=other)
        found = np.linalg.solve(a, b)
        assert isinstance(found, pt.Array)
        assert found.distribution == b.distribution or other[0] == "irregular"
        close(found, np.linalg.solve(x, y))
        # Right-hand sides that all ranks have.
        close(np.linalg.solve(a, u), np.linalg.solve(x, u))
    close(np.linalg.solve(a, y), np.linalg.solve(x, y))
    np.testing.assert_array_equal(a[...], x)
    close(np.linalg.solve(x, pt.array(u, distribution=pt.cyclic((2,)))), np.linalg.solve(x, u))
    close(np.linalg.inv(pt.array(x)), np.linalg.inv(x))


def test_dtypes_of_solve():
    x, y = np.array([[3, 1], [1, 2]]), np.array([[9.0], [8]], "f4")
    for left in ("?", "u8", "f4", "c8"):
        for right in ("i4", "f4", "c16"):
            expected = np.linalg.solve(np.triu(x).astype(left), y.astype(right))
            close(np.linalg.solve(pt.array(np.triu(x).astype(left)), pt.array(y.astype(right))), expected)


def test_large_blocks():
    # Several blocks of the layout that the package chooses.
    x, y = values((150, 150)) + 50 * np.eye(150), values((150, 70))
    close(np.linalg.solve(pt.array(x), pt.array(y)), np.linalg.solve(x, y))
    h = hermitian(150)
    found = np.linalg.eigh(pt.array(h))
    close(found.eigenvalues, np.linalg.eigvalsh(h))
    v = found.eigenvectors[...]
    close(h @ v, v * found.eigenvalues)


def test_singular():
    x = np.ones((5, 5))
    for kind in distributions((5, 5)):
        for call in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(5))):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                call(pt.array(x, distribution=kind))
    stack = np.stack([np.eye(3)] * 6)
    stack[4] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        np.linalg.solve(pt.array(stack), pt.array(np.ones((6, 3, 1))))


@pytest.mark.parametrize("n, dtype", list(zip([9, 9, 9, 9, 1], [*DTYPES, "f8"])))
def test_cholesky(n, dtype):
    x = positive(n, dtype)
    for kind in distributions((n, n)):
        # Only one triangle is read.
        lower, upper = (np.where(t(np.ones((n, n))), x, np.nan) for t in (np.tril, np.triu))
        close(np.linalg.cholesky(pt.array(lower.astype(dtype), distribution=kind)), np.linalg.cholesky(x))
        if pt.size() > 1:
            found = pt.linalg.cholesky(pt.array(upper.astype(dtype), distribution=kind), upper=True)
            close(found, np.linalg.cholesky(x).conj().T)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        np.linalg.cholesky(pt.array(-x))


@pytest.mark.parametrize("shape, dtype", list(zip([(7, 7), (11, 4), (4, 11), (1, 3), (11, 4)], [*DTYPES, "c16"])))
def test_qr(shape, dtype):
    x = values(shape, dtype)
    for k, kind in enumerate(distributions(shape)):
        a, mode = pt.array(x, distribution=kind), ("reduced", "complete")[k % 2]
        expected = np.linalg.qr(x, mode)
        q, r = found = np.linalg.qr(a, mode)
        assert found.Q is q and found.R is r
        assert q.shape == expected[0].shape and q.dtype == dtype
        orthonormal(q[...])
        close(q[...] @ r[...], x)
        close(r, expected[1])
    close(np.linalg.qr(a, "r"), np.linalg.qr(x, "r"))
    with pytest.raises(ValueError, match="raw"):
        np.linalg.qr(a, "raw")


@pytest.mark.parametrize("shape, dtype", list(zip([(11, 4), (7, 7), (4, 11), (11, 4), (3, 1)], [*DTYPES, "f8"])))
def test_svd(shape, dtype):
    x = values(shape, dtype)
    s = np.linalg.svd(x, compute_uv=False)
    for k, kind in enumerate(distributions(shape)):
        a = pt.array(x, distribution=kind)
        full = k % 2 == 0
        expected = np.linalg.svd(x, full)
        u, sigma, vh = found = np.linalg.svd(a, full)
        assert (found.U.shape, found.Vh.shape) == (expected[0].shape, expected[2].shape)
        close(sigma, s)
        orthonormal(u[...])
        orthonormal(vh[...].conj().T)
        close((u[...][:, : len(s)] * sigma) @ vh[...][: len(s)], x)
        close(np.linalg.svd(a, compute_uv=False), s)
    close(pt.linalg.svdvals(a), s)


@pytest.mark.parametrize("n, dtype", list(zip([9, 9, 9, 9, 2, 1], [*DTYPES, "f8", "c8"])))
def test_eigh(n, dtype):
    x = hermitian(n, dtype)
    expected = np.linalg.eigvalsh(x)
    for k, kind in enumerate(distributions((n, n))):
        uplo, triangle = (("L", np.tril), ("U", np.triu), ("l", np.tril))[k % 3]
        # Only one triangle is read.
        a = pt.array(np.where(triangle(np.ones((n, n))), x, 99).astype(dtype), distribution=kind)
        w, v = np.linalg.eigh(a, uplo)
        close(w, expected)
        orthonormal(v[...])
        close(x @ v[...], v[...] * w)
        close(np.linalg.eigvalsh(a, uplo), expected)
    with pytest.raises(ValueError, match="UPLO"):
        np.linalg.eigh(a, "X")


def test_no_convergence():
    for bad in (np.nan, np.inf):
        a = pt.array(np.full((4, 4), bad))
        for call in (np.linalg.eigh, np.linalg.svd, np.linalg.eigvalsh):
            if pt.size() > 1:
                with pytest.raises(np.linalg.LinAlgError, match="NaN"):
                    call(a)


def test_no_elements():
    for shape in ((0, 0), (0, 3), (3, 0)):
        x = np.zeros(shape)
        a = pt.array(x)
        for mode in ("reduced", "complete"):
            for found, expected in zip(np.linalg.qr(a, mode), np.linalg.qr(x, mode)):
                close(found, expected)
        for found, expected in zip(np.linalg.svd(a), np.linalg.svd(x)):
            close(found, expected)
    close(np.linalg.solve(pt.zeros((0, 0)), pt.zeros((0, 2))), np.zeros((0, 2)))
    close(np.linalg.solve(pt.array(np.eye(3)), pt.zeros((3, 0))), np.zeros((3, 0)))
    assert np.linalg.eigh(pt.zeros((0, 0))).eigenvalues.shape == (0,)


def test_stacks():
    x = np.stack([positive(4) for _ in range(10)]).reshape(5, 2, 4, 4)
    y, u = values((5, 2, 4, 3)), values(4)
    for kind in ["block", pt.grid(1, 1, pt.size(), 1), pt.cyclic((1, 1, 2, 2))]:
        a = pt.array(x, distribution=kind)
        close(np.linalg.cholesky(a), np.linalg.cholesky(x))
        close(np.linalg.inv(a), np.linalg.inv(x))
        close(np.linalg.solve(a, pt.array(y, distribution=kind)), np.linalg.solve(x, y))
        close(np.linalg.solve(a, u), np.linalg.solve(x, u[:, np.newaxis])[..., 0])
        w, v = np.linalg.eigh(a)
        assert isinstance(w, pt.Array) and isinstance(v, pt.Array)
        close(w, np.linalg.eigvalsh(x))
        close(np.linalg.eigvalsh(a), np.linalg.eigvalsh(x))
        for found, expected in zip(np.linalg.qr(a), np.linalg.qr(x)):
            close(found, expected)
        close(np.linalg.svd(a).S, np.linalg.svd(x)[1])
        close(np.linalg.svd(a, compute_uv=False), np.linalg.svd(x)[1])


def test_arguments():
    a, v = pt.zeros((3, 4)), pt.zeros(3)
    for call in (np.linalg.cholesky, np.linalg.inv, np.linalg.eigh, lambda x: np.linalg.solve(x, np.ones(3))):
        with pytest.raises(np.linalg.LinAlgError, match="not square"):
            call(a)
    for call in (np.linalg.qr, np.linalg.svd, np.linalg.inv):
        with pytest.raises(np.linalg.LinAlgError, match="no matrix"):
            call(v)
    square = pt.array(np.eye(3))
    with pytest.raises(ValueError, match="4 rows"):
        np.linalg.solve(square, np.ones(4))
    with pytest.raises(ValueError, match="alike"):
        np.linalg.solve(square, np.ones((2, 3, 1)))
    with pytest.raises(TypeError, match="portolan.array"):
        pt.linalg.qr(np.eye(3))


def test_groups():
    # The ranks of the group are in another order than in the world.
    members = list(range(pt.size()))[::-1][: max(1, pt.size() - 1)]
    group = pt.world.subgroup(members)
    x, y = values((9, 9)), values((9, 2))
    if group is not None:
        a = pt.array(x, group=group, distribution=pt.cyclic((2, 2)))
        close(np.linalg.solve(a, y), np.linalg.solve(x, y))
        close(np.linalg.svd(a).S, np.linalg.svd(x)[1])


@pytest.mark.skipif(pt.size() == 1, reason="one rank needs no ScaLAPACK")
def test_communicators_are_freed(monkeypatch):
    # MPI and BLACS give the numbers of freed ones again.
    comms, contexts = set(), set()
    create = _scalapack._communicator

    def recorded(members):
        made = create(members)
        comms.add(made.value)
        return made

    monkeypatch.setattr(_scalapack, "_communicator", recorded)
    a = pt.array(np.eye(3), distribution=pt.cyclic((2, 2)))
    for _ in range(12):
        with _scalapack.matrices(a) as (x,):
            contexts.add(int(x.descriptor[1]))
    assert len(comms) < 6 and len(contexts) == 1


@pytest.mark.skipif(pt.size() == 1, reason="one rank needs no ScaLAPACK")
def test_no_library(monkeypatch):
    monkeypatch.setattr(_scalapack, "_libraries", lambda kind, mpi: iter(()))
    monkeypatch.setattr(_scalapack, "_loaded", None)
    with pytest.raises(ImportError, match="libscalapack-.*-dev"):
        np.linalg.cholesky(pt.array(np.eye(3)))


@pytest.mark.parametrize("n, dtype", list(zip([9, 9, 9, 9, 1], [*DTYPES, "f8"])))
def test_determinants(n, dtype):
    for kind in distributions((n, n)):
        for _ in range(3):  # signs of both kinds
            x = values((n, n), dtype)
            a, expected = pt.array(x, distribution=kind), np.linalg.slogdet(x)
            found = np.linalg.slogdet(a)
            assert found.sign.dtype == expected[0].dtype and found.logabsdet.dtype == expected[1].dtype
            tolerance = 1e3 * np.finfo(dtype).eps
            np.testing.assert_allclose(found[0], expected[0], rtol=tolerance)
            np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)
            assert np.linalg.det(a).dtype == np.linalg.det(x).dtype
            np.testing.assert_allclose(np.linalg.det(a), np.linalg.det(x), rtol=tolerance)
    singular = pt.array(np.ones((n + 1, n + 1), dtype), distribution=kind)
    assert np.linalg.slogdet(singular) == (0, -np.inf) and np.linalg.det(singular) == 0
    integers = np.arange(4).reshape(2, 2)
    np.testing.assert_allclose(np.linalg.det(pt.array(integers)), np.linalg.det(integers))
    stack = values((5, 3, 3), dtype)
    close(np.linalg.det(pt.array(stack)), np.linalg.det(stack))
    close(np.linalg.slogdet(pt.array(stack)).logabsdet, np.linalg.slogdet(stack)[1])


@pytest.mark.parametrize("shape, dtype", list(zip([(11, 4), (4, 11), (7, 7), (11, 4)], DTYPES)))
def test_least_squares(shape, dtype):
    x, u, y = values(shape, dtype), values(shape[0], dtype), values((shape[0], 3), dtype)
    deficient = x.copy()
    deficient[:, 1] = 2 * deficient[:, 0]
    for k, kind in enumerate(distributions(shape)):
        for matrix in (x, deficient):
            a = pt.array(matrix, distribution=kind)
            limit = 1e-4 if matrix is deficient else None
            for side in (u, y):
                expected = np.linalg.lstsq(matrix, side, rcond=limit)
                found = np.linalg.lstsq(a, pt.array(side) if k % 2 else side, limit)
                assert isinstance(found[0], pt.Array)
                assert found[2] == expected[2] and found[2].dtype == expected[2].dtype
                for one, other in zip(found[:2], expected[:2]):
                    close(one, other)
                close(found[3], expected[3])
    with pytest.raises(np.linalg.LinAlgError, match="Incompatible"):
        np.linalg.lstsq(a, np.ones(shape[0] + 1), None)
    with pytest.raises(np.linalg.LinAlgError, match="one matrix"):
        np.linalg.lstsq(pt.zeros((2, 3, 4)), np.ones(3), None)


@pytest.mark.parametrize("shape, dtype", list(zip([(11, 4), (4, 11), (7, 7), (11, 4)], DTYPES)))
def test_pseudo_inverses_and_ranks(shape, dtype):
    x = values(shape, dtype)
    x[:, 1] = 2 * x[:, 0]
    for kind in distributions(shape):
        a = pt.array(x, distribution=kind)
        found = np.linalg.pinv(a, 1e-4)
        assert isinstance(found, pt.Array)
        close(found, np.linalg.pinv(x, 1e-4))
        rank = np.linalg.matrix_rank(a, 1e-3)
        assert rank == np.linalg.matrix_rank(x, 1e-3) and rank.dtype == np.intp
    close(np.linalg.pinv(pt.array(x + np.eye(*shape, dtype=dtype))), np.linalg.pinv(x + np.eye(*shape, dtype=dtype)))
    stack = values((5, 4, 3), dtype)
    close(np.linalg.pinv(pt.array(stack)), np.linalg.pinv(stack))
    np.testing.assert_array_equal(np.linalg.matrix_rank(pt.array(stack)), [3] * 5)
    assert np.linalg.matrix_rank(pt.zeros(4)) == 0 and np.linalg.matrix_rank(pt.ones(4)) == 1
    assert np.linalg.pinv(pt.zeros((0, 3))).shape == (3, 0)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_condition_numbers_and_norms(dtype):
    x = values((6, 6), dtype)
    for kind in distributions((6, 6)):
        a = pt.array(x, distribution=kind)
        for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
            np.testing.assert_allclose(np.linalg.cond(a, p), np.linalg.cond(x, p), rtol=1e-9)
        for ord in (2, -2, "nuc"):
            found, expected = np.linalg.norm(a, ord, keepdims=True), np.linalg.norm(x, ord, keepdims=True)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    singular = pt.array(np.zeros((3, 3), dtype))
    for p in (None, 1, "fro"):
        assert np.linalg.cond(singular, p) == np.inf
    assert np.isnan(np.linalg.cond(pt.array(np.full((3, 3), np.nan, dtype)), 1))
    stack = values((5, 4, 3), dtype)
    for ord in (2, -2, "nuc"):
        for axes in ((1, 2), (0, 2), (2, 0)):
            found = np.linalg.norm(pt.array(stack), ord, axes)
            np.testing.assert_allclose(found, np.linalg.norm(stack, ord, axes), rtol=1e-12)
    close(np.linalg.cond(pt.array(stack)), np.linalg.cond(stack))
    assert np.linalg.norm(pt.zeros((0, 3)), "nuc") == 0
    with pytest.raises(np.linalg.LinAlgError, match="not square"):
        np.linalg.cond(pt.zeros((3, 4)), 1)
    with pytest.raises(np.linalg.LinAlgError, match="empty"):
        np.linalg.cond(pt.zeros((0, 4)))


@pytest.mark.parametrize("dtype", ["i2", "f4", "c16"])
@pytest.mark.parametrize("ord", [2, -2, "nuc"])
def test_norms_by_singular_values(dtype, ord):
    x = (np.arange(30).reshape(6, 5) ** 2 % 7).astype(dtype)
    a = pt.array(x, distribution="rows")
    for axes in ((0, 1), (1, 0), None):
        for keepdims in (False, True):
            found, expected = (np.linalg.norm(z, ord, axes, keepdims) for z in (a, x))
            assert type(found) is type(expected)
            close(found, expected)


def test_powers_and_products():
    x = values((5, 5)) / 3
    a = pt.array(x, distribution="rows")
    for n in (0, 1, 2, 3, 6, 7, -1, -3):
        close(np.linalg.matrix_power(a, n), np.linalg.matrix_power(x, n))
    stack = values((3, 4, 4))
    for n in (0, 3, -1):
        close(np.linalg.matrix_power(pt.array(stack), n), np.linalg.matrix_power(stack, n))
    factors = [values(shape) for shape in ((4, 9), (9, 2), (2, 7), (7, 3))]
    expected = np.linalg.multi_dot(factors)
    close(np.linalg.multi_dot([pt.array(f) for f in factors]), expected)
    close(np.linalg.multi_dot([*factors[:2], pt.array(factors[2]), factors[3]]), expected)
    u, v = values(4), values(3)
    close(np.linalg.multi_dot([u, *map(pt.array, factors)]), u @ expected)
    found = np.linalg.multi_dot([pt.array(u), *factors, pt.array(v)])
    np.testing.assert_allclose(found, u @ expected @ v)
    out = np.empty((4, 3))
    assert np.linalg.multi_dot([*map(pt.array, factors)], out=out) is out
    close(out, expected)
    with pytest.raises(ValueError, match="two arrays"):
        np.linalg.multi_dot([a])
    with pytest.raises(np.linalg.LinAlgError, match="ends"):
        np.linalg.multi_dot([a, pt.zeros(5), a])
    close(pt.linalg.outer(pt.array(u), v), np.outer(u, v))
    with pytest.raises(ValueError, match="one-dimensional"):
        pt.linalg.outer(a, pt.array(u))


def test_tensors():
    x = values((2, 3, 6)) + 3 * np.eye(6).reshape(2, 3, 6)
    y = values((2, 3))
    close(np.linalg.tensorsolve(pt.array(x), pt.array(y)), np.linalg.tensorsolve(x, y))
    close(np.linalg.tensorsolve(pt.array(x), y), np.linalg.tensorsolve(x, y))
    moved = np.moveaxis(x, 2, 0)
    close(np.linalg.tensorsolve(pt.array(moved), pt.array(y), (0,)), np.linalg.tensorsolve(moved, y, (0,)))
    close(np.linalg.tensorinv(pt.array(x)), np.linalg.tensorinv(x))
    with pytest.raises(np.linalg.LinAlgError, match="requirement"):
        np.linalg.tensorsolve(pt.zeros((2, 3, 5)), pt.array(y))
    with pytest.raises(ValueError, match="ind"):
        np.linalg.tensorinv(pt.array(x), 0)
