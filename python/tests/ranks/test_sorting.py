"""Sorting, searching, sums up to each element and quantiles, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portolan as pt
from samples import distributions, same

RNG = np.random.default_rng(23)

def values(shape, dtype, most=50):
    x = RNG.integers(0, most, shape)
    return (x - 20 if np.dtype(dtype).kind in "if" else x + 1j * x[::-1] if dtype == "c16" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f4", "c16"])
@pytest.mark.parametrize("length", [0, 1, 3, 1000])
def test_sorts_of_vectors(length, dtype):
    for most in (1, 9, 1 << 40):
        if most > 50 and np.dtype(dtype).itemsize < 8:
            continue
        x = values(length, dtype, most)
        for distribution in distributions(x.shape)[::2]:
            a = pt.array(x, distribution=distribution)
            same(np.sort(a), np.sort(x))
            same(np.argsort(a), np.argsort(x, kind="stable"))
            same(a, x)
            a.sort()
            same(a, np.sort(x))


@pytest.mark.parametrize("shape", [(7, 12), (1, 5), (0, 4), (6, 0), (3, 4, 5)])
def test_sorts_along_axes(shape):
    x = values(shape, "i4", 9)
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        for axis in (*range(-1, x.ndim), None):
            same(np.sort(a, axis), np.sort(x, axis))
            same(np.argsort(a, axis, kind="stable"), np.argsort(x, axis, kind="stable"))
            same(np.cumsum(a, axis), np.cumsum(x, axis))
            same(a.cumsum(axis, dtype="f4"), x.cumsum(axis, dtype="f4"))
            same(np.cumprod(a, axis), np.cumprod(x, axis))
        a.sort(0)
        same(a, np.sort(x, 0))
    with pytest.raises(ValueError):
        np.sort(a, 3)
    with pytest.raises(ValueError):
        pt.zeros(4).argsort(1)


def test_nans_are_last():
    x = RNG.random(100)
    x[::7], x[3], x[5] = np.nan, np.inf, -np.inf
    a = pt.array(x)
    same(np.sort(a), np.sort(x))
    same(np.argsort(a), np.argsort(x, kind="stable"))
    same(np.unique(a), np.unique(x))
    same(np.unique(a, equal_nan=False), np.unique(x, equal_nan=False))
    for found, expected in zip(np.unique(a, return_counts=True), np.unique(x, return_counts=True)):
        same(found, expected)
    z = x[1:7] + 1j * x[8:14]
    same(np.sort(pt.array(z)), np.sort(z))


@pytest.mark.parametrize("dtype", ["?", "i1", "f4", "c8"])
def test_running_sums(dtype):
    for length in (0, 1, 5, 300):
        x = values(length, dtype, 9)
        for distribution in distributions(x.shape):
            a = pt.array(x, distribution=distribution)
            same(a.cumsum(), x.cumsum())
            same(np.cumsum(a, 0), np.cumsum(x, 0))
    with pytest.raises(TypeError, match="out"):
        np.cumsum(a, out=x)
    out = pt.zeros(x.shape, "c16", distribution="rows")
    assert np.cumsum(a, 0, out=out) is out
    np.testing.assert_array_equal(out[...], np.cumsum(x, 0))
    if hasattr(np, "cumulative_sum"):
        y = RNG.random((4, 5))
        b = pt.array(y, distribution="rows")
        for axis in (0, 1):
            options = dict(axis=axis, include_initial=True)
            same(np.cumulative_sum(b, **options), np.cumulative_sum(y, **options))
            same(np.cumulative_prod(b, axis=axis), np.cumulative_prod(y, axis=axis))
    f = RNG.random(1000)
    np.testing.assert_allclose(pt.array(f).cumsum()[...], f.cumsum())


@pytest.mark.parametrize("shape", [(0,), (1,), (200,), (8, 9), (3, 0), (3, 4, 5)])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_unique_elements(shape, most):
    x = values(shape, "i8", most)
    for distribution in distributions(shape)[::2]:
        a = pt.array(x, distribution=distribution)
        same(np.unique(a), np.unique(x))
        every = dict(return_index=True, return_inverse=True, return_counts=True)
        for found, expected in zip(np.unique(a, **every), np.unique(x, **every)):
            same(found, expected)
        for axis in range(x.ndim if x.ndim > 1 and x.size else 0):
            z = x % 2
            b = pt.array(z, distribution=distribution)
            for found, expected in zip(np.unique(b, axis=axis, **every), np.unique(z, axis=axis, **every)):
                same(found, expected.reshape(found.shape))
            same(np.unique(a.astype("f4"), axis=axis), np.unique(x.astype("f4"), axis=axis))


@pytest.mark.parametrize("dtype", ["i4", "f8"])
@pytest.mark.parametrize("other", ["i8", "f4"])
def test_searches(dtype, other):
    x, keys = np.sort(values(60, dtype)), values((7, 4), other)
    for distribution in distributions(x.shape):
        a = pt.array(x, distribution=distribution)
        for side in ("left", "right"):
            expected = np.searchsorted(x, keys, side)
            found = a.searchsorted(keys, side)
            assert type(found) is np.ndarray and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            same(np.searchsorted(a, pt.array(keys, distribution="rows"), side), expected)
            assert np.searchsorted(a, 3, side) == np.searchsorted(x, 3, side)
    order = np.argsort(-x)
    for sorter in (order[::-1], pt.array(order[::-1])):
        same(np.searchsorted(pt.array(x), pt.array(keys), sorter=sorter[...]), np.searchsorted(x, keys, sorter=order[::-1]))
    same(np.searchsorted(x, pt.array(keys)), np.searchsorted(x, keys))
    same(np.searchsorted(a, pt.zeros(0)), np.searchsorted(x, np.zeros(0)))
    same(np.searchsorted(pt.zeros(0), a), np.searchsorted(np.zeros(0), x))
    with pytest.raises(ValueError, match="side"):
        a.searchsorted(keys, "middle")
    with pytest.raises(ValueError, match="one axis"):
        pt.zeros((2, 2)).searchsorted(1)


@pytest.mark.parametrize("shape", [(0,), (1,), (40,), (5, 9), (2, 3, 4)])
def test_elements_that_are_not_zero(shape):
    for x in (values(shape, "i4", 3) * 0, values(shape, "f4", 30) > 0, values(shape, "i4", 25)):
        for distribution in distributions(shape):
            a = pt.array(x, distribution=distribution)
            for found, expected in zip(np.nonzero(a), np.nonzero(x)):
                same(found, expected)
            assert len(a.nonzero()) == x.ndim
            same(np.flatnonzero(a), np.flatnonzero(x))
            same(np.argwhere(a), np.argwhere(x))
            same(np.extract(a != 0, a), np.extract(x != 0, x))


@pytest.mark.parametrize("dtype", ["i4", "f4"])
@pytest.mark.parametrize("shape", [(1,), (50,), (6, 9), (3, 4, 5)])
def test_quantiles(shape, dtype):
    x = (values(shape, dtype) * 7 / 3).astype(dtype)
    for distribution in distributions(shape)[::4]:
        a = pt.array(x, distribution=distribution)
        for axis in (None, *range(x.ndim)):
            for method in ("linear", "lower", "higher", "midpoint"):
                for q in (50, [0, 90.5, 100], [[1, 2], [3, 4]])[: 3 if method == "linear" else 2]:
                    options = dict(axis=axis, method=method, keepdims=True)
                    found, expected = np.percentile(a, q, **options), np.percentile(x, q, **options)
                    assert found.dtype == expected.dtype and found.shape == expected.shape
                    np.testing.assert_allclose(found, expected, rtol=1e-5)
            found, expected = np.quantile(a, 0.3, axis), np.quantile(x, 0.3, axis)
            assert type(found) is type(expected)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
            np.testing.assert_allclose(np.median(a, axis), np.median(x, axis), rtol=1e-5)
        assert np.percentile(a, 30, method="nearest") == np.percentile(x, 30, method="nearest")
        with pytest.raises(ValueError):
            np.percentile(a, 101)
        with pytest.raises(ValueError):
            np.percentile(a, -1, axis=0)
    if dtype != "i4":
        x.reshape(-1)[0] = np.nan
        a = pt.array(x)
        np.testing.assert_array_equal(np.median(a), np.median(x))
        np.testing.assert_allclose(np.quantile(a, [0, 1], 0), np.quantile(x, [0, 1], 0), rtol=1e-5)
        np.testing.assert_array_equal(np.percentile(a, [0, 50]), np.percentile(x, [0, 50]))


@given(st.data())
def test_random_sorts(data):
    x = np.array(data.draw(st.lists(st.integers(-3, 3), max_size=40)), "i2")
    a = pt.array(x, distribution=distributions(x.shape)[data.draw(st.integers(0, 5))])
    same(np.sort(a), np.sort(x))
    same(np.argsort(a), np.argsort(x, kind="stable"))
    for found, expected in zip(np.unique(a, True, True, True), np.unique(x, True, True, True)):
        same(found, expected)


@pytest.mark.skipif(pt.size() < 2, reason="needs two groups")
def test_functions_in_groups():
    last = pt.size() - 1
    x, y = values(30, "i4"), values((5, 6), "f8")
    some = pt.world.subgroup([last, 0])
    if some is not None:
        a, b = pt.array(x, group=some), pt.array(y, group=some)
        same(np.sort(a), np.sort(x))
        same(np.unique(a), np.unique(x))
        same(np.sort(b, 0), np.sort(y, 0))
        same(b.reshape(-1), y.reshape(-1))
        same(b @ b.T, y @ y.T)
        same(b @ y[0], y @ y[0])
        same(np.concatenate([b, y]), np.concatenate([y, y]))
        same(np.roll(a, 7), np.roll(x, 7))
        np.testing.assert_array_equal(np.bincount(a + 20), np.bincount(x + 20))
        assert np.median(a) == np.median(x)
        assert np.sort(a).group == some
        rng = pt.random.default_rng(2, group=some)
        same(np.sort(rng.permutation(a)), np.sort(x))
        some.free()
    c, d = pt.array(x), pt.array(y)
    alone = pt.world.subgroup([pt.rank()])
    e = pt.array(x, group=alone)
    for call in (np.dot, np.searchsorted, np.take, np.stack, np.extract, np.bincount):
        operands = ([c, e],) if call is np.stack else (c, e)
        with pytest.raises(ValueError, match="groups"):
            call(*operands) if call is not np.bincount else call(c + 20, e)
    with pytest.raises(ValueError, match="groups"):
        d @ pt.array(y[0], group=alone)
    alone.free()
