"""Arrays of bool: comparisons, logical functions and masks, compared with NumPy."""

import operator

import numpy as np
import pytest

import portolan as pt

RNG = np.random.default_rng(5)
X = RNG.integers(0, 4, (9, 7)).astype(float)
Y = RNG.integers(0, 4, (9, 7)).astype(float)
DISTRIBUTIONS = ["block", "rows", "cyclic"]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def distributed(x, distribution="block", **options):
    chosen = pt.cyclic((2, 3)) if distribution == "cyclic" else distribution
    return pt.array(x, distribution=chosen, **options)


def same(found, expected):
    assert isinstance(found, pt.Array) and found.dtype == expected.dtype == np.bool_
    np.testing.assert_array_equal(found[...], expected)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparisons(compare, distribution):
    a, b = distributed(X, distribution), distributed(Y, distribution)
    same(compare(a, b), compare(X, Y))
    same(compare(a, 2), compare(X, 2))
    same(compare(np.float64(1), a), compare(np.float64(1), X))
    if distribution != "cyclic":
        same(compare(a, Y), compare(X, Y))
        same(compare(Y[0], a), compare(Y[0], X))


def test_comparisons_of_other_dtypes():
    x = np.arange(-3, 4)
    a = pt.array(x)
    same(a == 1.0, x == 1.0)
    same(a.astype("c8") == 1, x == 1)
    same(a.astype("i1") < a, x < x)
    same(pt.array(x.astype("f4")) != a, np.zeros(7, bool))
    with np.errstate(divide="ignore", invalid="ignore"):
        same(np.isnan(a / a), np.isnan(x / x))
    with pytest.raises(ValueError, match="broadcast"):
        a < pt.zeros(6)
    with pytest.raises(TypeError):
        a.astype("c8") < np.array("text")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_logical_functions(distribution):
    a, b = distributed(X, distribution), distributed(Y, distribution)
    for function in (np.logical_and, np.logical_or, np.logical_xor):
        same(function(a, b), function(X, Y))
        same(function(a > 1, b > 1), function(X > 1, Y > 1))
    same(np.logical_not(a), np.logical_not(X))
    same(~(a > 1) & (b > 1) | (a == 0) ^ True, ~(X > 1) & (Y > 1) | (X == 0) ^ True)
    target = pt.zeros(X.shape, bool, distribution=a.distribution if distribution == "cyclic" else distribution)
    assert np.less(a, b, out=target) is target
    same(target, X < Y)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_reductions_of_bools(distribution):
    x = X > 1
    m = distributed(x, distribution)
    for name in ("sum", "any", "all", "min", "max", "argmin", "argmax", "mean"):
        found, expected = getattr(m, name)(), getattr(x, name)()
        assert found == expected and np.asarray(found).dtype == np.asarray(expected).dtype, name
        assert getattr(np, name)(m) == expected
    for name in ("sum", "any", "all", "min", "max", "argmin", "argmax"):
        np.testing.assert_array_equal(getattr(m, name)(axis=1), getattr(x, name)(axis=1))
    assert not np.any(distributed(X, distribution) > 9) and np.all(distributed(X, distribution) < 9)
    assert m.sum(axis=0, dtype=bool).dtype == np.bool_
    np.testing.assert_array_equal(m.sum(axis=0, dtype=bool), x.sum(axis=0, dtype=bool))
    # The elements need not be bools.
    for z in (X, X.astype("i4"), X * 1j):
        b = distributed(z, distribution)
        np.testing.assert_array_equal(b.any(axis=0), z.any(axis=0))
        np.testing.assert_array_equal(b.all(axis=(0, 1)), z.all(axis=(0, 1)))
        assert b.all() == z.all() and isinstance(b.any(), np.bool_)
    none = pt.zeros((0, 3), bool)
    assert none.all() and not none.any() and none.sum() == 0


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_mask_selects_the_elements_of_a_ufunc(distribution):
    a = distributed(X, distribution)
    assert np.multiply(a, -1, out=a, where=a > 1) is a
    np.testing.assert_array_equal(a[...], np.where(X > 1, -X, X))
    np.add(a, 5, out=a, where=False)
    np.testing.assert_array_equal(a[...], np.where(X > 1, -X, X))
    if distribution != "cyclic":
        np.add(a, 5, out=a, where=Y[0] > 1)
        np.testing.assert_array_equal(a[...], np.where(X > 1, -X, X) + 5 * (Y[0] > 1))
    with pytest.raises(TypeError, match="where"):
        np.add(a, 5, out=a, where=a)
    with pytest.raises(ValueError, match="broadcast"):
        np.add(a, 5, out=a, where=pt.zeros(3, bool))


def test_truth_values():
    with pytest.raises(ValueError, match="any"):
        if pt.array(X) == X:
            pass
    with pytest.raises(ValueError, match="any"):
        bool(pt.zeros(0))
    assert pt.array([[2.0]]) > 1 and not pt.zeros(1)
    with pytest.raises(ValueError, match="ambiguous"):
        pt.zeros(3) in [pt.zeros(3)]


def test_transfers_of_bools():
    m = pt.zeros((6, 5), bool, name="mask")
    x = np.zeros((6, 5), bool)
    if pt.rank() == pt.size() - 1:
        m[1] = True
        m[2, 3] = 1
        m[[4, 5], [0, 1]] = [True, np.True_]
        m[3, ::2] = [0, 1, 0]
        m.start_put((0, slice(1, 3)), np.array([True, False])).wait()
        with pytest.raises(OverflowError):
            m[0, 0] = 2
        with pytest.raises(OverflowError):
            m[0] = [0, 1, 2, 3, 4]
        with pytest.raises(TypeError):
            m[0, 0] = 1.0
        with pytest.raises(TypeError):
            m[0] = np.ones(5)
    m.sync()
    x[1] = x[2, 3] = x[4, 0] = x[5, 1] = x[3, 2] = x[0, 1] = True
    same(m, x)
    assert isinstance(m[1, 1], np.bool_) and m[1, 1] and m[2].dtype == np.bool_
    np.testing.assert_array_equal(m[[4, 5], [0, 0]], x[[4, 5], [0, 0]])
    with m.access() as mine:
        assert mine.local.dtype == np.bool_
        mine.local[...] ^= True
    same(m, ~x)
    same(m.transpose(), ~x.T)
    same(m.copy(), ~x)
    same(m.astype("i4").astype(bool), ~x)
    same(pt.ones(4, bool), np.ones(4, bool))
    same(pt.zeros_like(m), np.zeros_like(x))
    same(m @ m.transpose(), ~x @ ~x.T)
    # Masks of the calling rank select elements, as before.
    np.testing.assert_array_equal(m[np.asarray(m)], np.ones((~x).sum(), bool))


def test_bytes_other_than_0_and_1_are_true():
    m = pt.zeros(pt.size(), bool, distribution="rows")
    with m.access() as mine:
        mine.local.view("u1")[...] = 4 << pt.rank() % 4
    assert m.sum() == pt.size() and m.all() and m.min() and (m == True).all()  # noqa: E712
    assert pt.world.all_reduce(np.array([6 >> pt.rank() % 2], "u1").view(bool), "and").all()


def test_all_reduces_of_bools():
    mine = np.array([True, pt.rank() == 0, False])
    for op, expected in {
        "or": [True, True, False],
        "max": [True, True, False],
        "and": [True, pt.size() == 1, False],
        "min": [True, pt.size() == 1, False],
        "xor": [pt.size() % 2 == 1, True, False],
    }.items():
        found = pt.world.all_reduce(mine, op)
        assert found.dtype == np.bool_ and found.tolist() == expected, op
    assert pt.world.sum(mine).tolist() == [pt.size(), 1, 0]
    assert pt.world.sum(True) == pt.size()


def test_npy_files_of_bools(shared_path):
    m = pt.array(X > 1)
    m.save(shared_path / "m.npy")
    found = np.load(shared_path / "m.npy")
    assert found.dtype == np.bool_ and (found == (X > 1)).all()
    same(pt.load(shared_path / "m.npy", distribution="rows"), X > 1)
