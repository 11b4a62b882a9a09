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
FEW = pt.size() > len(os.sched_getaffinity(0)) and not os.environ.get("PORTOLAN_TEST_RELEASE")


@pytest.fixture(autouse=True)
def _needs_scalapack(request):
    if FEW and request.node.name not in ("test_solve[9-f8]", "test_qr[shape1-f8]", "test_groups"):
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
