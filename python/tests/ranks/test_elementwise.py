"""Functions of single elements and their places, and counts of elements, compared with NumPy."""

import numpy as np
import pytest

import portolan as pt
from samples import distributions, same

RNG = np.random.default_rng(29)

SHAPES = [(12,), (1,), (0,), (7, 12), (12, 1), (0, 4), (3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES)
def test_choices(shape):
    x, y = RNG.random(shape) - 0.5, RNG.integers(0, 9, shape)
    for distribution in distributions(shape):
        a, b = pt.array(x, distribution=distribution), pt.array(y, distribution=distribution)
        same(np.where(a > 0, a, b), np.where(x > 0, x, y))
        same(np.where(a > 0, b, 0), np.where(x > 0, y, 0))
        same(np.where(a > 0, 1.5, a.astype("f4")), np.where(x > 0, 1.5, x.astype("f4")))
        same(np.where(b, True, False), np.where(y, True, False))
        for found, expected in zip(np.where(a > 0), np.where(x > 0)):
            same(found, expected)
        same(np.where(x > 0, a, y), np.where(x > 0, x, y))
    with pytest.raises(ValueError, match="both"):
        np.where(a > 0, a)
    if 1 not in shape:
        with pytest.raises(ValueError, match="broadcast"):
            np.where(a > 0, a, pt.zeros(77))


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4", "f8", "c8", "c16"])
def test_parts_of_numbers(dtype):
    x = (RNG.random((6, 5)) * 90 - (40 if np.dtype(dtype).kind in "ifc" else 0)).astype(dtype)
    x = x + np.dtype(dtype).type(1j) * x.T.reshape(x.shape) if x.dtype.kind == "c" else x
    for distribution in distributions(x.shape)[::2]:
        a = pt.array(x, distribution=distribution)
        for function in (np.real, np.imag):
            same(function(a), function(x))
        same(a.real, x.real)
        same(a.imag, x.imag)
        if dtype != "?":
            same(a.conj(), x.conj())
            same(a.conjugate(), x.conjugate())
            same(np.conj(a), np.conj(x))
            same(np.round(a, 1), np.round(x, 1))
            same(a.round(), x.round())
            same(a.round(-1), x.round(-1))
            angles = np.angle(x)
            np.testing.assert_allclose(np.angle(a)[...], angles, rtol=1e-3)
    out = pt.zeros_like(a)
    if dtype != "?":
        assert np.round(a, 1, out) is out
        same(out, np.round(x, 1))
    with pytest.raises(TypeError):
        a.round(1.5)


@pytest.mark.parametrize("shape", [(7, 12), (12, 1), (1, 5), (0, 4), (3, 4, 5)])
def test_triangles(shape):
    x = RNG.integers(1, 9, shape)
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        for k in (0, 1, -2, 20, -20):
            same(np.tril(a, k), np.tril(x, k))
            same(np.triu(a, k), np.triu(x, k))
    with pytest.raises(ValueError, match="two axes"):
        np.tril(pt.zeros(3))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["?", "u1"])
def test_differences(shape, dtype):
    x = RNG.integers(0, 5, shape).astype(dtype)
    for distribution in distributions(shape)[::2]:
        a = pt.array(x, distribution=distribution)
        for axis in range(-1, x.ndim):
            for n in (1, 3):
                same(np.diff(a, n, axis), np.diff(x, n, axis))
            same(np.diff(a, axis=axis, prepend=1), np.diff(x, axis=axis, prepend=1))
            edges = dict(axis=axis, prepend=x, append=0)
            same(np.diff(a, **edges), np.diff(x, **edges))
            same(np.diff(a, axis=axis, append=a), np.diff(x, axis=axis, append=x))
    assert np.diff(a, 0) is a
    with pytest.raises(ValueError, match="negative"):
        np.diff(a, -1)


@pytest.mark.parametrize("shape", SHAPES)
def test_counts(shape):
    x = RNG.integers(0, 6, shape)
    w = RNG.integers(0, 9, shape) / 4
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        assert np.count_nonzero(a) == np.count_nonzero(x)
        for axis in range(x.ndim):
            np.testing.assert_array_equal(np.count_nonzero(a, axis), np.count_nonzero(x, axis))
        for options in (
            {},
            {"bins": 4},
            {"bins": 3, "range": (1, 4)},
            {"bins": [0, 1, 1.5, 6]},
            {"density": True, "bins": [0, 2, 7]},
            {"weights": w},
            {"weights": pt.array(w)},
            {"weights": pt.array(w > 1, distribution=distribution)},
        ):
            plain = {k: np.asarray(v) if isinstance(v, pt.Array) else v for k, v in options.items()}
            with np.errstate(all="ignore"):
                results = np.histogram(a, **options), np.histogram(x, **plain)
            for found, expected in zip(*results):
                assert type(found) is np.ndarray and found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected)
        if x.ndim == 1:
            for options in ({}, {"minlength": 9}, {"weights": w}, {"weights": pt.array(w)}):
                plain = {k: np.asarray(v) if isinstance(v, pt.Array) else v for k, v in options.items()}
                found, expected = np.bincount(a, **options), np.bincount(x, **plain)
                assert type(found) is np.ndarray and found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected)
    with pytest.warns(RuntimeWarning):
        expected = np.histogram(x > 2)
    if x.size:
        np.testing.assert_array_equal(np.histogram(a > 2)[0], expected[0])
        np.testing.assert_array_equal(np.histogram(a > 2)[1], expected[1])
    edges = pt.array(np.array([0, 2, 7]))
    np.testing.assert_array_equal(np.histogram(a, edges)[0], np.histogram(x, [0, 2, 7])[0])
    for found, expected in zip(np.histogram(a, bins="sturges"), np.histogram(x, bins="sturges")):
        np.testing.assert_array_equal(found, expected)


def test_histograms_of_floats():
    x = RNG.normal(size=1000)
    for dtype in ("f4", "f8"):
        a = pt.array(x.astype(dtype), distribution=pt.cyclic((7,)))
        for found, expected in zip(np.histogram(a, 37), np.histogram(x.astype(dtype), 37)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    for bad in ({"bins": 0}, {"bins": [2, 1]}, {"range": (2, 1)}, {"weights": np.ones(3)}):
        with pytest.raises(ValueError):
            np.histogram(a, **bad)


def test_refused_counts():
    for x, error in (([-1, 2], ValueError), ([0.5], TypeError), ([[1, 2]], ValueError)):
        with pytest.raises(error):
            np.bincount(pt.array(np.array(x)))
    with pytest.raises(ValueError, match="length"):
        np.bincount(pt.array(np.arange(3)), np.ones(4))
    with pytest.raises(ValueError, match="minlength"):
        np.bincount(pt.array(np.arange(3)), minlength=-1)
