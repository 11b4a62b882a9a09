"""Comparisons with objects that are no numbers."""

import operator

import numpy as np
import pytest

import portolan as pt

X = np.arange(12).reshape(4, 3) % 5
OBJECTS = ["x", b"x", None, {}, object(), int, slice(3), ..., (1, None, 2), ["a", "b", "c"]]
OBJECTS += [np.datetime64("2020"), np.array([["x"]]), np.array([None, 1, 2])]


@pytest.mark.parametrize("value", OBJECTS, ids=repr)
@pytest.mark.parametrize("dtype", ["i8", "f4", "c16", "?"])
def test_equality_with_unsuitable_objects(value, dtype):
    x = X.astype(dtype)
    a = pt.array(x)
    for compare in (operator.eq, operator.ne):
        found = compare(a, value)
        assert isinstance(found, pt.Array) and found.dtype == np.bool_
        np.testing.assert_array_equal(found[...], compare(x, np.asarray(value)))
    reflected = value == a
    assert isinstance(reflected, (pt.Array, np.ndarray))
    np.testing.assert_array_equal(reflected[...], x == np.asarray(value))


def test_equality_is_that_of_numpy():
    a = pt.array(X, distribution="rows")
    assert (a == np.timedelta64(2)).sum() == (X == 2).sum()
    assert "x" not in a and None not in a and 4 in a and 7 not in a
    assert (a == pt.array(X.astype("f4"), distribution="rows")).all()
    for other in ([1, 2], ["a", "b"], np.zeros((2, 4, 4)), np.full((4, 4), "x")):
        with pytest.raises(ValueError, match="broadcast"):
            a == other
    with pytest.raises(TypeError):
        np.equal(a, "x")
    with pytest.raises(TypeError):
        hash(a)


@pytest.mark.parametrize("value", ["x", None, {}, ["a", "b", "c"]], ids=repr)
def test_unsuitable_objects_have_no_order(value):
    a = pt.array(X)
    for call in (operator.lt, operator.ge, operator.add, operator.and_, operator.imul):
        with pytest.raises(TypeError):
            call(a, value)
    np.testing.assert_array_equal(a[...], X)


def test_objects_that_refuse_arrays():
    class Own:
        __array_ufunc__ = None

        def __eq__(self, other):
            return "own"

        def __radd__(self, other):
            return "sum"

    a = pt.array(X)
    assert (a == Own()) == "own" and a + Own() == "sum"
