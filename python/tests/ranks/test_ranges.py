"""Arrays of functions of the indices, compared with NumPy."""

import numpy as np
import pytest

import portolan as pt


def same(found, expected):
    assert isinstance(found, pt.Array) and found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found[...], expected)


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_ranges(distribution):
    chosen = pt.cyclic((2,)) if distribution == "cyclic" else distribution
    for given in (
        (7,), (0,), (-3,), (2, 9), (9, 2), (2, 9, 3), (9, 2, -2), (0.5, 3), (1, 2, 0.1), (5.0,),
        (0, 1, 0.3), (np.int8(3), np.int8(9)), (np.float32(0), np.float32(2), np.float32(0.3)), (2, 3),
    ):  # fmt: skip
        same(pt.arange(*given, distribution=chosen), np.arange(*given))
        for dtype in ("f4", "f8", "i4"):
            if not any(isinstance(x, float) and x % 1 for x in given):
                same(pt.arange(*given, dtype=dtype), np.arange(*given, dtype=dtype))
    same(pt.arange(5, dtype="u1"), np.arange(5, dtype="u1"))
    with pytest.raises(ZeroDivisionError):
        pt.arange(0, 3, 0)
    with pytest.raises(TypeError):
        pt.arange(3, dtype=complex)
    assert pt.arange(3, name="n").name == "n"


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_intervals(distribution):
    chosen = pt.cyclic((2,)) if distribution == "cyclic" else distribution
    for low, high in ((0, 1), (-2.5, 7), (3, 3), (5, -5), (0, 1j), (2, 9)):
        for number in (0, 1, 2, 7, 50):
            for endpoint in (True, False):
                expected = np.linspace(low, high, number, endpoint)
                same(pt.linspace(low, high, number, endpoint, distribution=chosen), expected)
        for dtype in ("f4", "c8") if isinstance(high, complex) is False else ("c8",):
            same(pt.linspace(low, high, 9, dtype=dtype), np.linspace(low, high, 9, dtype=dtype))
    same(pt.linspace(-3, 4, 9, dtype=int), np.linspace(-3, 4, 9, dtype=int))
    found, step = pt.linspace(0, 3, 7, retstep=True)
    assert step == 0.5 and found.shape == (7,)
    with pytest.raises(ValueError, match="negative"):
        pt.linspace(0, 1, -1)
    with pytest.raises(TypeError, match="limits"):
        pt.linspace([0, 1], 2)


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_diagonals(distribution):
    chosen = pt.cyclic((2, 2)) if distribution == "cyclic" else distribution
    for shape in ((5,), (4, 7), (7, 4), (1, 1), (0, 3)):
        for k in (0, 1, -2, 9):
            for dtype in (float, "i2", "?", "c8"):
                options = {"k": k, "dtype": dtype}
                same(pt.eye(*shape, **options, distribution=chosen), np.eye(*shape, **options))
                same(pt.tri(*shape, **options, distribution=chosen), np.tri(*shape, **options))
    same(pt.identity(3), np.identity(3))
    with pytest.raises(TypeError):
        pt.eye(3, k=1.5)


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_functions_of_indices(distribution):
    for shape in ((7,), (4, 5), (2, 3, 4), (0, 2)):
        chosen = pt.cyclic((2,) * len(shape)) if distribution == "cyclic" else distribution
        for dtype in (float, int, "f4"):
            for function in (lambda *at: sum(at), lambda *at: at[0] > 1, lambda *at: at[-1] * 1j):
                found = pt.fromfunction(function, shape, dtype, distribution=chosen)
                same(found, np.fromfunction(function, shape, dtype=dtype))
    same(pt.fromfunction(lambda i: 3, 4), np.full(4, 3))

    def fails(i):
        if (i == 5).any():
            raise ArithmeticError("five")
        return i

    with pytest.raises(ArithmeticError, match="five"):
        pt.fromfunction(fails, (6,))
