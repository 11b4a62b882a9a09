"""Norms, compared with NumPy."""

import numpy as np
import pytest

import portolan as pt

X = np.random.default_rng(3).integers(-9, 10, (7, 6, 5))
ORDERS = [None, 0, 1, 2, 3, 2.5, -1, -2, np.inf, -np.inf]


@pytest.fixture(autouse=True)
def no_gets(monkeypatch):
    """No rank gets all elements."""

    def get(*_, **__):
        raise AssertionError("a norm gets all elements")

    monkeypatch.setattr(pt.Array, "__array__", get)
    monkeypatch.setattr(pt.Array, "__getitem__", get)


def alike(found, expected):
    assert type(found) is type(expected) and found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5 if found.dtype == "f4" else 1e-12)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"])
def test_dtypes(dtype):
    x = X.astype(dtype)
    if x.dtype.kind == "c":
        x = x + np.array(1j, dtype) * X.astype(dtype)[::-1]
    a = pt.array(x)
    alike(a.norm(), np.linalg.norm(x))
    alike(np.linalg.norm(a, keepdims=True), np.linalg.norm(x, keepdims=True))
    for ord in ORDERS:
        with np.errstate(divide="ignore"):
            expected = np.linalg.norm(x, ord, axis=1)
        alike(np.linalg.norm(a, ord, axis=1), expected)
    for ord in ("fro", 1, -np.inf):
        alike(np.linalg.norm(a, ord, (0, 2)), np.linalg.norm(x, ord, (0, 2)))
    assert isinstance(pt.ones(4).norm(), float)


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_axes_and_orders(distribution):
    def made(x):
        return pt.array(x, distribution=pt.cyclic((2,) * x.ndim) if distribution == "cyclic" else distribution)

    x = X + 0.5
    for y in (x, x[..., 0], x[0, :, 0]):
        a = made(y)
        for keepdims in (False, True):
            for ord in ORDERS:
                for axis in range(-y.ndim, y.ndim):
                    alike(np.linalg.norm(a, ord, axis, keepdims), np.linalg.norm(y, ord, axis, keepdims))
            for ord in (None, "fro", "f", 1, -1, np.inf, -np.inf):
                for axes in [(i, j) for i in range(y.ndim) for j in range(-y.ndim, 0) if i != j + y.ndim]:
                    alike(np.linalg.norm(a, ord, axes, keepdims), np.linalg.norm(y, ord, axes, keepdims))
                if y.ndim == 2:
                    alike(np.linalg.norm(a, ord, keepdims=keepdims), np.linalg.norm(y, ord, keepdims=keepdims))
    alike(np.linalg.norm(a, 3), np.linalg.norm(x[0, :, 0], 3))


@pytest.mark.skipif(not hasattr(np.linalg, "vector_norm"), reason="NumPy 2")
def test_norms_of_the_array_standard():
    a = pt.array(X / 2)
    for ord in ORDERS[1:]:
        for axis in (None, 1, (0, 2), (2, 1, 0)):
            with np.errstate(divide="ignore"):
                expected = np.linalg.vector_norm(X / 2, axis=axis, ord=ord, keepdims=True)
            alike(np.linalg.vector_norm(a, axis=axis, ord=ord, keepdims=True), expected)
    for ord in ("fro", 1, -np.inf):
        alike(np.linalg.matrix_norm(a, ord=ord), np.linalg.matrix_norm(X / 2, ord=ord))


def test_nans_and_nothing():
    x = X.astype(float)
    x[1, 2, 3], x[4, 4, 4] = np.nan, np.inf
    a = pt.array(x)
    for ord in ORDERS:
        for axis in (0, 1, 2):
            with np.errstate(divide="ignore"):
                expected = np.linalg.norm(x, ord, axis)
            np.testing.assert_allclose(np.linalg.norm(a, ord, axis), expected)
    none = pt.zeros((0, 3))
    assert none.norm() == 0 and np.linalg.norm(none, axis=0).tolist() == [0, 0, 0]
    assert np.linalg.norm(none, axis=1).shape == (0,)
    with pytest.raises(ValueError, match="empty"):
        np.linalg.norm(none, -np.inf, axis=0)


def test_refused_norms():
    a = pt.array(X, name="plate")
    for ord, axis in (("fro", 0), ("nuc", 1), (3, (0, 1)), ("x", (0, 1)), (1, None), (None, (0, 1, 2))):
        with pytest.raises(ValueError, match="plate"):
            np.linalg.norm(a, ord, axis)
    for ord in ([1], 1j):
        with pytest.raises(TypeError):
            np.linalg.norm(a, ord, axis=0)
    for axis in (3, (0, -4)):
        with pytest.raises(np.exceptions.AxisError if hasattr(np, "exceptions") else np.AxisError):
            np.linalg.norm(a, axis=axis)
    with pytest.raises(ValueError):
        np.linalg.norm(a, axis=(0, 0))
    alike(a.norm(), np.linalg.norm(X))
