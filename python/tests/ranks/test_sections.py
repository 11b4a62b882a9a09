"""Sections of arrays, compared with NumPy's slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import portolan as pt
from samples import distributions, same


@given(st.data())
def test_sections_are_distributed(data):
    shape = data.draw(hnp.array_shapes(max_dims=3, min_side=0, max_side=7))
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    a = pt.array(x, distribution=distributions(shape)[data.draw(st.integers(0, 5))])
    for _ in range(3):
        index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
        expected = x[index]
        if expected.ndim:
            same(a.section[index], expected)
        else:
            assert a.section[index] == expected


@given(st.data())
def test_sections_are_assigned(data):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=7))
    x = np.zeros(shape)
    a = pt.array(x, distribution=distributions(shape)[data.draw(st.integers(0, 5))])
    for turn in range(3):
        index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
        target = np.shape(x[index])
        value = np.arange(np.prod(target)).reshape(target) + 10.0 * turn
        if data.draw(st.booleans()) and value.ndim:
            value = value[..., :1]
        kind = data.draw(st.integers(0, 6))
        x[index] = value
        if value.ndim and kind < 6:
            value = pt.array(value, distribution=distributions(value.shape)[kind])
        a.section[index] = value
        same(a, x)


def test_arrays_in_sections():
    x = np.arange(35.0).reshape(5, 7)
    for distribution in distributions(x.shape):
        a = pt.array(x, distribution=distribution)
        same(a.section[[3, 0, -1]], x[[3, 0, -1]])
        same(a.section[::-2, [1, 1, 4]], x[::-2, [1, 1, 4]])
        same(a.section[np.arange(5) > 2, None], x[np.arange(5) > 2, None])
        same(a.section[a > 9.5], x[x > 9.5])
        a.section[...] = a.section[::-1, ::-1]
        same(a, x[::-1, ::-1])
        a.section[::-1] = a
        same(a, x[:, ::-1])
    b = pt.zeros(4, "u1")
    b.section[1:3] = 7
    b.section[3:] = np.uint8([9])
    same(b, np.array([0, 7, 7, 9], "u1"))


def test_refused_sections():
    a = pt.zeros((5, 7), name="plate")
    for index in ([1], [2]), (0, [1, 2]), (0, 0, 0), (..., ...), 5, (0, -8), [9], 1.5, "x", True, a > 0.5, pt.zeros(3) > 0:
        if index is not True and isinstance(index, pt.Array) and index.shape == a.shape:
            assert a.section[index].shape == (0,)
            continue
        with pytest.raises(IndexError):
            a.section[index]
    for value, error in ((np.zeros(3), ValueError), (pt.zeros((2, 5, 7)), ValueError), (1j, TypeError)):
        with pytest.raises(error):
            a.section[...] = value
    with pytest.raises(IndexError, match="plate"):
        a.section[[1, 2]] = 0
    with pytest.raises(ValueError):
        a.section[:, 0] = pt.zeros(7)
