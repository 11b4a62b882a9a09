"""Products of matrices, vectors and arrays of more axes, compared with NumPy."""

import warnings

import numpy as np
import pytest

import portolan as pt

RNG = np.random.default_rng(11)


def same(found, expected):
    """Check a product, distributed unless it is a scalar."""
    assert isinstance(found, pt.Array) == (np.ndim(expected) > 0)
    assert found.dtype == expected.dtype and found.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


def distributions(ndim, length=2):
    n = pt.size()
    of_all = ["block", "rows", pt.cyclic((2,) * ndim), pt.cyclic((1,) * ndim)]
    of_all.append(pt.grid(*(1,) * (ndim - 1), n))
    return [*of_all, pt.irregular([min(m, length) for m in (0, 1, 1, 2)[:n]], *[[0]] * (ndim - 1))]


def values(shape, dtype):
    return RNG.integers(-5 if np.dtype(dtype).kind in "ifc" else 0, 5, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(7, 5), (1, 6), (6, 1), (40, 30)])
def test_matrices_and_vectors(shape):
    x, u, v = values(shape, "f8"), values(shape[0], "f8"), values(shape[1], "f8")
    for distribution in distributions(2, shape[0]):
        a = pt.array(x, distribution=distribution)
        for kind in distributions(1)[::3]:
            left, right = pt.array(u, distribution=kind), pt.array(v, distribution=kind)
            for found in (a @ right, a.dot(right), np.dot(a, right), np.matmul(a, right)):
                same(found, x @ v)
            for found in (left @ a, left.dot(a), np.dot(left, a)):
                same(found, u @ x)
        # Vectors that all ranks have.
        for found in (a @ v, a.dot(v), np.dot(a, v)):
            same(found, x @ v)
        for found in (u @ a, np.dot(u, a)):
            same(found, u @ x)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "c8", "c16"])
@pytest.mark.parametrize("other", ["?", "i2", "f4", "c16"])
def test_dtypes(dtype, other):
    x, v, y = values((6, 5), dtype), values(5, other), values((5, 4), other)
    a, b, w = pt.array(x), pt.array(y), pt.array(v)
    same(a @ w, x @ v)
    same(w @ a.T, v @ x.T)
    same(a @ b, x @ y)
    same(pt.array(x[0]) @ w, x[0] @ v)
    same(np.vdot(a, a), np.vdot(x, x))
    same(np.outer(w, a), np.outer(v, x))


def test_vectors_of_unlike_distributions():
    x, y = values(11, "f8"), values(11, "f8")
    for kind in distributions(1):
        for other in distributions(1):
            a, b = pt.array(x, distribution=kind), pt.array(y, distribution=other)
            assert a @ b == np.dot(a, b) == a.dot(b) == np.vdot(a, b) == x @ y
        assert a @ y == y @ a == x @ y
    assert isinstance(a @ b, np.float64) and pt.zeros(0) @ pt.zeros(0) == 0


def test_matrices_without_elements():
    for m, n in ((0, 3), (3, 0), (0, 0)):
        same(pt.zeros((m, n)) @ pt.zeros(n), np.zeros((m, n)) @ np.zeros(n))
        same(pt.zeros(m) @ pt.zeros((m, n)), np.zeros(m) @ np.zeros((m, n)))


def test_outputs():
    x, v = values((6, 5), "f8"), values(5, "f8")
    a, w, out = pt.array(x), pt.array(v), pt.zeros(6)
    assert np.matmul(a, w, out=out) is out
    same(out, x @ v)
    whole = np.zeros(6)
    assert np.dot(a, w, whole) is whole and (whole == x @ v).all()
    with pytest.raises(ValueError, match="shape"):
        np.matmul(a, w, out=pt.zeros(5))
    with pytest.raises(ValueError, match="dtype"):
        np.dot(a, w, np.zeros(6, "f4"))
    with pytest.raises(TypeError, match="cast"):
        np.matmul(a, w, out=pt.zeros(6, int))
    with pytest.raises(TypeError, match="scalar"):
        np.matmul(w, w, out=out)


def test_results_do_not_depend_on_the_timing():
    x, v = RNG.random((50, 60)), RNG.random(60)
    a, w = pt.array(x, distribution=pt.grid(1, pt.size())), pt.array(v)
    first = (a @ w)[...]
    for _ in range(5):
        assert ((a @ w)[...] == first).all()


@pytest.mark.parametrize("number", range(4))
def test_products_of_more_axes(number):
    x, y, v = values((3, 4, 5), "f8"), values((5, 4, 2), "f8"), values(5, "f8")
    a, b = (pt.array(z, distribution=distributions(3)[number]) for z in (x, y))
    same(np.tensordot(a, b, ((2, 1), (0, 1))), np.tensordot(x, y, ((2, 1), (0, 1))))
    same(np.tensordot(a, b, (-1, 0)), np.tensordot(x, y, (-1, 0)))
    same(np.tensordot(a, b, 1), np.tensordot(x, y, 1))
    same(np.tensordot(a, b, 0), np.tensordot(x, y, 0))
    same(np.tensordot(a, a, 3), np.tensordot(x, x, 3))
    same(np.tensordot(a, y, 1), np.tensordot(x, y, 1))
    same(a.dot(v), x.dot(v))
    same(np.dot(a, pt.array(v)), np.dot(x, v))
    c, z = b.transpose(2, 0, 1), y.transpose(2, 0, 1)
    same(a.dot(c), x.dot(z))
    same(np.inner(a, pt.array(v)), np.inner(x, v))
    same(np.inner(a, a), np.inner(x, x))
    same(np.vdot(a, a), np.vdot(x, x))
    same(a.dot(3), x.dot(3))
    with pytest.raises(ValueError, match="lengths"):
        np.tensordot(a, b, ((0,), (0,)))
    with pytest.raises(ValueError, match="mismatch"):
        a @ b


def test_einsum():
    x, y, v = values((4, 5), "f8"), values((5, 6), "c16"), values(5, "f8")
    a, b, w = pt.array(x), pt.array(y), pt.array(v)
    for text in ("ij,jk->ik", "ij, jk -> ki", "ij,jk"):
        same(np.einsum(text, a, b), np.einsum(text, x, y))
    for text in ("ij,j->i", "ij,j", "ji->ij"):
        operands = ((a, x), (w, v))[: 1 + text.count(",")]
        same(np.einsum(text, *[z[0] for z in operands]), np.einsum(text, *[z[1] for z in operands]))
    same(np.einsum("i,i->", w, w), np.einsum("i,i->", v, v))
    same(np.einsum("i,j->ji", w, w), np.einsum("i,j->ji", v, v))
    same(np.einsum("ij,ij->", a, a), np.einsum("ij,ij->", x, x))
    same(np.einsum("ij,kl->lijk", a, b), np.einsum("ij,kl->lijk", x, y))
    # Other expressions get all elements.
    for text in ("ij->i", "ij,ij->ij", "ij,ij->i"):
        operands = (a, a)[: 1 + text.count(",")]
        found = np.einsum(text, *operands)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, np.einsum(text, *(x, x)[: 1 + text.count(",")]))


def test_products_do_not_gather():
    a, w = pt.ones((30, 20)), pt.ones(20)
    pt.warn_of_gathers(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.dot(a, w), np.einsum("ij,j->i", a, w), np.tensordot(a, a, ((0,), (0,)))
        with pytest.warns(pt.GatherWarning, match="einsum gets all 4800 bytes") as found:
            np.einsum("ij->i", a)
        assert found[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.einsum("ij->i", a), np.asarray(a), np.shape(a), np.sum(a)
            pt.warn_of_gathers(None)
            np.einsum("ij->i", a)
            pt.warn_of_gathers(1 << 20)
            np.einsum("ij->i", a)
    finally:
        pt.warn_of_gathers(1 << 24)
