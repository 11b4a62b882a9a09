"""Operations on whole arrays, compared with NumPy."""

import contextlib
import copy
import gc
import operator
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portolan as pt

RNG = np.random.default_rng(3)
X = RNG.random((9, 7)) + 0.5
Y = RNG.random((9, 7)) + 0.5


@pytest.mark.parametrize("distribution", ["block", "rows"])
def test_operators(distribution):
    a, b = pt.array(X, distribution=distribution), pt.array(Y, distribution=distribution)
    for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
        for found, expected in ((op(a, b), op(X, Y)), (op(a, 2), op(X, 2)), (op(3.0, a), op(3.0, X))):
            np.testing.assert_allclose(found[...], expected)
        np.testing.assert_allclose(op(a, Y)[...], op(X, Y))
        np.testing.assert_allclose(op(Y[0], a)[...], op(Y[0], X))
    np.testing.assert_allclose((-a)[...], -X)
    np.testing.assert_allclose(np.sqrt(a)[...], np.sqrt(X))
    np.testing.assert_allclose((a + a)[...], X + X)
    whole, rest = np.divmod(a, 0.3)
    np.testing.assert_allclose(rest[...], np.divmod(X, 0.3)[1])
    a += b
    a *= 2
    np.testing.assert_allclose(a[...], (X + Y) * 2)
    np.multiply(a, b, out=a)
    np.testing.assert_allclose(a[...], (X + Y) * 2 * Y)


def test_dtypes_of_results():
    i, f = pt.array(np.arange(6, dtype="i4")), pt.array(np.arange(6, dtype="f4"))
    assert (i + 1).dtype == np.int32 and (i + f).dtype == np.float64 and (f * 2).dtype == np.float32
    assert (i / 2).dtype == np.float64 and (i + 1j).dtype == np.complex128
    assert i.astype("f4").dtype == np.float32
    for x in (np.arange(3, dtype="u1"), np.arange(3, dtype="f4")):
        for other in (np.array(3, "i2"), np.array(1.5), np.int64(2)):
            assert (pt.array(x) - other).dtype == (x - other).dtype
        for name in ("mean", "var", "std"):
            assert getattr(pt.array(x), name)().dtype == getattr(x, name)().dtype
    np.testing.assert_array_equal(i.astype("u8")[...], np.arange(6))


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_outputs(distribution):
    chosen = pt.cyclic((2, 2)) if distribution == "cyclic" else distribution
    a, b = pt.array(X, distribution=chosen), pt.array(Y, distribution=chosen)
    c, d = pt.zeros_like(a), pt.zeros_like(a, "f4")
    assert np.add(a, b, out=c) is c and np.subtract(a, 1, d) is d
    np.testing.assert_array_equal(c[...], X + Y)
    np.testing.assert_array_equal(d[...], np.subtract(X, 1).astype("f4"))
    # An operand may be the output, and the output alone may be distributed.
    assert np.multiply(c, b, out=c) is c
    np.testing.assert_array_equal(c[...], (X + Y) * Y)
    if distribution != "cyclic":
        np.hypot(X, Y[0], out=c)
        np.testing.assert_array_equal(c[...], np.hypot(X, Y[0]))
    whole, rest = np.divmod(a, 0.3, out=(None, c))
    assert rest is c and whole.dtype == X.dtype
    for found, expected in zip((whole, rest), np.divmod(X, 0.3)):
        np.testing.assert_array_equal(found[...], expected)
    # The identity of the array is kept.
    before, x = c, c[...]
    for operate in (operator.iadd, operator.imul, operator.itruediv, operator.ipow, operator.isub):
        c, x = operate(c, b), operate(x, Y)
        assert c is before
        np.testing.assert_allclose(c[...], x)


def test_casts_of_outputs():
    i, x = pt.array(np.arange(6)), np.arange(6)
    for kind in ("no", "equiv", "safe", "same_kind"):
        with pytest.raises(TypeError, match="cast"):
            np.add(i, 0.75, out=i, casting=kind)
    np.add(i, 0.75, out=i, casting="unsafe")
    np.testing.assert_array_equal(i[...], np.add(x, 0.75, out=x, casting="unsafe"))
    f = pt.zeros(6, "f4")
    with pytest.raises(TypeError, match="cast"):
        np.sqrt(i, out=f, casting="safe")
    np.sqrt(i, out=f)
    np.testing.assert_array_equal(f[...], np.sqrt(x).astype("f4"))


def test_refused_outputs():
    a, x, y = pt.array(X), X.copy(), np.zeros((9, 9))
    with pytest.raises(TypeError, match="asarray"):
        np.add(a, a, out=x)
    with pytest.raises(TypeError, match="asarray"):
        x += a
    with pytest.raises(TypeError, match="asarray"):
        np.divmod(a, 2, out=(pt.zeros_like(a), x))
    with pytest.raises(TypeError, match="asarray"):
        np.matmul(a, a.transpose(), out=y)
    with pytest.raises(ValueError, match="broadcast"):
        np.add(a, 1, out=pt.zeros((9, 8)))
    with pytest.raises(ValueError, match="broadcast"):
        np.add(X, np.ones(8), out=a)
    square = pt.array(X @ X.T)
    with pytest.raises(ValueError, match="source and target"):
        square @= square
    np.testing.assert_array_equal(a[...], X)
    np.testing.assert_array_equal(x, X)
    assert np.matmul(a, a.transpose(), out=square) is square
    np.testing.assert_allclose(square[...], X @ X.T)


def test_refused_operands():
    a = pt.array(X)
    with pytest.raises(ValueError, match="broadcast"):
        a + pt.zeros((7, 9))
    i = pt.zeros((9, 7), "i4")
    with pytest.raises(TypeError, match="cast"):
        i += 0.5
    with pytest.raises(TypeError):
        np.add.reduceat(a, [0])
    np.testing.assert_array_equal(a[...], X)


def test_an_exception_in_a_ufunc_leaves_the_arrays_usable():
    a = pt.array(X)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        a / (a - a)
    a += 1
    np.testing.assert_allclose(a[...], X + 1)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"])
def test_reductions(dtype):
    x = (X * 50).astype(dtype)
    a = pt.array(x)
    np.testing.assert_allclose(a.sum(), x.sum(), rtol=1e-5)
    assert a.sum().dtype == x.sum().dtype
    np.testing.assert_allclose(np.sum(a), x.sum(), rtol=1e-5)
    np.testing.assert_allclose(a.mean(), x.mean(), rtol=1e-5)
    np.testing.assert_allclose(a.norm(), np.linalg.norm(x.ravel()), rtol=1e-5)
    if x.dtype.kind == "c":
        with pytest.raises(TypeError):
            a.min()
        return
    assert (a.min(), a.max(), a.argmin(), a.argmax()) == (x.min(), x.max(), x.argmin(), x.argmax())
    assert np.max(a) == x.max() and np.argmin(a) == x.argmin()


def test_reductions_of_nothing():
    a = pt.zeros((0, 3))
    assert a.sum() == 0 and a.norm() == 0 and a[...].shape == (0, 3)
    with pytest.raises(ValueError, match="empty"):
        a.min()


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.sampled_from(["block", "rows"]))
def test_products(m, k, n, distribution):
    x, y = RNG.random((m, k)), RNG.random((k, n))
    x, y = pt.world.broadcast((x, y))
    a, b = pt.array(x, distribution=distribution), pt.array(y)
    np.testing.assert_allclose((a @ b)[...], x @ y)


@pytest.mark.parametrize("one", ["?", "u1", "i4", "f4", "c16"])
@pytest.mark.parametrize("two", ["?", "i2", "i8", "f4", "f8", "c8"])
def test_products_of_different_dtypes(one, two):
    x, y = (X * 4).astype(one), (Y.T * 4).astype(two)
    a, b = pt.array(x), pt.array(y)
    for found, expected in (
        (a @ b, x @ y),
        (np.dot(a, b), np.dot(x, y)),
        (pt.array(x[0]).dot(pt.array(y[:, 0])), x[0].dot(y[:, 0])),
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found[...], expected, rtol=1e-5)
    assert (a.dtype, b.dtype) == (x.dtype, y.dtype)


def test_refused_products():
    a, b = pt.zeros((3, 4)), pt.zeros((3, 4))
    with pytest.raises(ValueError, match="mismatch"):
        a @ b
    with pytest.raises(ValueError, match="mismatch"):
        a @ pt.zeros(3)
    with pytest.raises(ValueError, match="mismatch"):
        a.dot(np.zeros((3, 4)))
    with pytest.raises(ValueError):
        a.copy_from(pt.zeros((4, 3)))
    with pytest.raises(ValueError):
        a.copy_from(a)
    square = pt.zeros((3, 3))
    np.testing.assert_array_equal((square @ square)[...], np.zeros((3, 3)))


def test_copies():
    x = RNG.random((5, 6, 7))
    x = pt.world.broadcast(x)
    a = pt.array(x)
    np.testing.assert_array_equal(a.copy()[...], x)
    np.testing.assert_array_equal(a.transpose()[...], x.T)
    np.testing.assert_array_equal(a.redistribute(pt.cyclic((2, 2, 2)))[...], x)
    np.testing.assert_array_equal(np.asarray(a), x)
    assert np.vdot(a, a) == pytest.approx((x * x).sum())


@pytest.mark.parametrize("dtype", ["i1", "u4", "f8", "c8"])
def test_npy_files(dtype, shared_path):
    x = (X * 100).astype(dtype)
    a = pt.array(x)
    a.save(shared_path / "a.npy")
    np.testing.assert_array_equal(np.load(shared_path / "a.npy"), x)
    b = pt.load(shared_path / "a.npy", name="b", distribution="rows")
    assert b.dtype == x.dtype and b.name == "b"
    np.testing.assert_array_equal(b[...], x)
    if pt.rank() == 0:
        np.save(shared_path / "f.npy", np.asfortranarray(x))
    pt.barrier()
    np.testing.assert_array_equal(pt.load(shared_path / "f.npy")[...], x)


def test_refused_files(shared_path):
    with pytest.raises(FileNotFoundError):
        pt.load(shared_path / "none.npy")
    with pytest.raises(FileNotFoundError, match="folder.npy"):
        pt.zeros(4).save(shared_path / "no" / "such" / "folder.npy")
    if pt.rank() == 0:
        (shared_path / "bad.npy").write_bytes(b"no array")
    pt.barrier()
    with pytest.raises(ValueError, match=r"bad\.npy"):
        pt.load(shared_path / "bad.npy")


def test_tiles_cover_the_array_once():
    a = pt.zeros((11, 13), "i4")
    for tile in a.tiles((4, 5)):
        block = a[tile]
        assert block.shape <= (4, 5)
        a.add(tile, np.ones(block.shape, "i4"))
    a.sync()
    assert (a[...] == 1).all()
    with pytest.raises(ValueError):
        a.tiles((0, 1))


def test_copies_and_likes():
    a = pt.array(X, distribution="rows", name="a")
    for b in (copy.copy(a), copy.deepcopy(a), pt.full_like(a, 3), pt.ones_like(a, "i2")):
        assert b.shape == a.shape and b.bounds() == a.bounds() and b.name != "a"
        expected = X if b.dtype == X.dtype and b[0, 0] == X[0, 0] else np.full_like(X, b[0, 0])
        np.testing.assert_array_equal(b[...], expected)
    assert pt.full_like(a, 3)[1, 1] == 3 and pt.ones_like(a, "i2").dtype == np.int16


def test_clip():
    a = pt.array(X)
    for limits in ((1, 2), (None, 2), (1, None), (X / 2, X * 0.75), (2, 1)):
        np.testing.assert_array_equal(a.clip(*limits)[...], X.clip(*limits))
        out = pt.zeros(X.shape)
        assert np.clip(a, *limits, out=out) is out
        np.testing.assert_array_equal(out[...], X.clip(*limits))
    assert a.clip()[...].tolist() == X.tolist()
    assert pt.ones(4, "i4").clip(0, 2).dtype == np.int32


def test_halves_become_singles():
    x = np.arange(6, dtype=np.int8)
    root = np.sqrt(pt.array(x))
    assert root.dtype == np.float32
    np.testing.assert_allclose(root[...], np.sqrt(x), rtol=1e-3)


def test_an_error_of_one_rank_leaves_the_others_in_step():
    x = np.ones(4 * pt.size())
    x[-1] = np.nan
    a = pt.array(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # NumPy 1.23 does not warn.
        with contextlib.suppress(RuntimeWarning):
            a.astype(int)
    if pt.rank() == 0:
        a[-1] = 1e300
    a.sync()
    with np.errstate(all="raise"):
        assert a.prod(axis=0) == 1e300 and np.isinf(pt.full(8, 1e200).prod())
    assert a.sum(axis=0) > 0


def test_clip_beyond_the_dtype():
    for dtype in ("u1", "i1", "i8"):
        x = np.arange(9, dtype=dtype)
        for limits in ((-1000, 3), (3, 2**64), (-(2**70), 2**70)):
            np.testing.assert_array_equal(pt.array(x).clip(*limits)[...], x.clip(*limits))


def test_refused_functions():
    a = pt.array(X)
    for call in (np.subtract.reduce, np.add.accumulate, lambda x: np.add.outer(x, x)):
        with pytest.raises(TypeError, match="asarray"):
            call(a)
    with pytest.raises(TypeError, match="dtype"):
        np.matmul(a, a.transpose(), dtype="f4")


def test_functions_that_keep_the_distribution():
    a = pt.array(X, distribution="rows", name="x")
    for function, *value in ((np.zeros_like,), (np.ones_like,), (np.full_like, 7)):
        made = function(a, *value, dtype="f4")
        assert made.distribution == a.distribution and made.dtype == "f4"
        np.testing.assert_array_equal(made[...], function(X, *value, dtype="f4"))
        made = function(a, *value, "i2", "C")
        assert isinstance(made, pt.Array) and made.dtype == "i2"
    assert isinstance(np.empty_like(a, order="C"), pt.Array)
    assert isinstance(np.copy(a), pt.Array)
    assert np.linalg.norm(a) == pytest.approx(np.linalg.norm(X))
    np.testing.assert_allclose(np.linalg.norm(a, axis=0), np.linalg.norm(X, axis=0))
    assert np.ptp(a) == np.ptp(X)
    square = np.dot(a, np.transpose(a))
    assert isinstance(square, pt.Array)
    np.testing.assert_allclose(square[...], X @ X.T)
    assert np.dot(pt.array(np.arange(4.0)), pt.ones(4)) == 6
    # Other functions get all elements.
    np.testing.assert_array_equal(np.pad(a, 1), np.pad(X, 1))
    with pytest.raises(TypeError, match="ndarray is not a distributed array"):
        pt.zeros_like(X)


def test_transposes_of_several_axes():
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    for distribution in ("block", "rows", pt.cyclic((1, 2, 1, 2))):
        a = pt.array(x, distribution=distribution)
        for order in ((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0), (1, -1, 0, 2)):
            np.testing.assert_array_equal(a.transpose(order)[...], x.transpose(order))
            found = a.transpose(*order, distribution=pt.cyclic((2, 1, 2, 1)), name="t")
            np.testing.assert_array_equal(found[...], x.transpose(order))
        np.testing.assert_array_equal(np.transpose(a)[...], x.T)
        np.testing.assert_array_equal(np.transpose(a, (1, 0, 3, 2))[...], x.transpose(1, 0, 3, 2))
    for order in ((0, 1), (0, 1, 2, 2), (0, 1, 2, 4)):
        with pytest.raises(ValueError):
            a.transpose(order)
    np.testing.assert_array_equal(pt.array(x[0, 0, 0]).transpose(0)[...], x[0, 0, 0])


def test_errors_of_values_name_the_array():
    a = pt.zeros((4, 5), "i4", name="plate")
    for value, kind in ((1.5, TypeError), (np.zeros(3, int), ValueError), (2**40, OverflowError)):
        with pytest.raises(kind, match='array "plate": '):
            a[...] = value


def test_tiles_of_a_loop_that_is_left_are_freed():
    a = pt.zeros((11, 13))
    pt.world.collect()
    for _ in a.tiles((4, 5)):
        break
    gc.collect()
    pt.barrier()
    assert pt.world.collect() == 1


def test_signatures_of_numpy():
    a, x = pt.array(X, name="plate"), np.zeros((9, 9))
    assert np.empty_like(prototype=a).shape == np.zeros_like(a, shape=(9, 7)).shape
    for make in (np.zeros_like, np.empty_like):
        with pytest.raises(ValueError, match="plate.*use zeros"):
            make(a, shape=(3, 3))
    assert np.linalg.norm(x=a) == pytest.approx(np.linalg.norm(X))
    with pytest.raises(TypeError, match="matmul"):
        np.dot(X, X.T, out=pt.array(x))
    for other in (np.zeros(3), np.zeros((2, 9, 8)), []):
        with pytest.raises(ValueError, match=r'add of array "plate" \(9, 7\) and a numpy array \('):
            a + other
