"""Reductions along axes, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portolan as pt

X = np.random.default_rng(7).integers(-50, 50, (7, 6, 5))


def axis_error():
    return np.exceptions.AxisError if hasattr(np, "exceptions") else np.AxisError


@given(st.data())
def test_random_axes(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    distribution = data.draw(st.sampled_from(["block", "rows", "cyclic", "ghosts"]))
    options = {"distribution": "block" if distribution == "ghosts" else distribution}
    if distribution == "cyclic":
        options["distribution"] = pt.cyclic([2] * len(shape))
    if distribution == "ghosts" and min(shape) > 2 * pt.size():
        options["ghosts"] = 1
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(data.draw(st.sampled_from(["i1", "i8", "f4", "f8"])))
    a = pt.array(x, **options)
    axes = data.draw(st.sets(st.integers(-len(shape), len(shape) - 1), max_size=3).map(tuple))
    if len({n % len(shape) for n in axes}) < len(axes):
        with pytest.raises(ValueError):
            a.sum(axis=axes)
        return
    axis = axes[0] if len(axes) == 1 and data.draw(st.booleans()) else axes
    for name in ("sum", "mean", "var", "std", "min", "max", "any", "all"):
        for keepdims in (False, True):
            found, expected = (getattr(z, name)(axis=axis, keepdims=keepdims) for z in (a, x))
            assert type(found) is type(expected) and np.shape(found) == np.shape(expected)
            assert found.dtype == expected.dtype, name
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(getattr(np, name)(a, axis=axis, keepdims=keepdims), found)
    for axis in (*range(-len(shape), len(shape)), None):
        for name in ("argmin", "argmax"):
            for keepdims in (False, True):
                found, expected = (getattr(z, name)(axis, keepdims=keepdims) for z in (a, x))
                assert np.asarray(found).dtype == expected.dtype
                assert np.shape(found) == expected.shape and np.array_equal(found, expected)
                assert np.array_equal(getattr(np, name)(a, axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "u8", "c8", "c16"])
def test_dtypes(dtype):
    x = (X % 9 > 3) * X.astype(dtype)
    x = x.astype(dtype)
    a = pt.array(x)
    for name in ("sum", "mean", "prod", "var", "std"):
        found, expected = (getattr(z, name)(axis=(0, 2)) for z in (a, x))
        assert found.dtype == expected.dtype, name
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert a.sum(axis=0, dtype="c8").dtype == np.complex64 and a.sum(dtype="c16").dtype == np.complex128
    if a.dtype.kind == "c":
        with pytest.raises(TypeError, match="order"):
            a.max(axis=0)
        with pytest.raises(TypeError, match="order"):
            a.argmin(axis=0)
    else:
        np.testing.assert_array_equal(a.max(axis=1), x.max(axis=1))
        np.testing.assert_array_equal(a.argmax(axis=1), x.argmax(axis=1))
        np.testing.assert_array_equal(a.argmin(axis=-1), x.argmin(axis=-1))


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("target", ["?", "i4", "u1", "f4", "f8", "c16"])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_outputs(dtype, target):
    # Of floats, the halves show whether the elements or the sum are cast.
    x = (np.abs(X) / 2).astype(dtype)
    a = pt.array(x)
    for axis in (1, (0, 2), None):
        for name in ("sum", "mean", "min", "max", "any", "all"):
            for keepdims in (False, True):
                expected = np.zeros(np.shape(x.sum(axis=axis, keepdims=keepdims)), target)
                out = expected.copy()
                getattr(x, name)(axis=axis, out=expected, keepdims=keepdims)
                assert getattr(a, name)(axis=axis, out=out, keepdims=keepdims) is out
                np.testing.assert_allclose(out, expected, rtol=1e-5, err_msg=name)
                out[...] = 0
                assert getattr(np, name)(a, axis=axis, out=out, keepdims=keepdims) is out
                np.testing.assert_allclose(out, expected, rtol=1e-5, err_msg=name)
    # The dtype of the sum need not be that of the output.
    sums = a.sum(axis=0, dtype="f8", out=np.zeros((6, 5), "i8"))
    np.testing.assert_array_equal(sums, x.sum(axis=0, dtype="f8").astype("i8"))


@pytest.mark.parametrize("target", ["?", "i2", "i4", "i8", "u4"])
def test_outputs_of_positions(target):
    a = pt.array(X)
    for axis, shape in ((0, (6, 5)), (-1, (7, 6)), (None, ())):
        for name in ("argmin", "argmax"):
            out = np.zeros(shape, target)
            assert getattr(a, name)(axis, out=out) is out
            np.testing.assert_array_equal(out, getattr(X, name)(axis).astype(target))
    assert a.argmin(1, out=np.zeros((7, 1, 5), int), keepdims=True).shape == (7, 1, 5)


def test_strided_outputs():
    a, whole = pt.array(X), np.zeros((12, 5), int)
    a.sum(axis=0, out=whole[::-2])
    np.testing.assert_array_equal(whole[::-2], X.sum(axis=0))
    assert not whole[::2].any()


def test_refused_outputs():
    a = pt.array(X)
    right, readonly = np.full((6, 5), 7), np.zeros((6, 5), int)
    readonly.flags.writeable = False
    for name in ("sum", "mean", "prod", "std", "min", "max", "any", "all", "argmin", "argmax"):
        reduction = getattr(a, name)
        for shape in ((5, 6), (6,), (1, 6, 5), ()):
            with pytest.raises(ValueError, match="shape"):
                reduction(axis=0, out=np.zeros(shape, int))
        with pytest.raises(ValueError, match="shape"):
            reduction(axis=0, out=right, keepdims=True)
        with pytest.raises(ValueError, match="shape"):
            reduction(out=right)
        with pytest.raises(ValueError, match="read-only"):
            reduction(axis=0, out=readonly)
        for out in (pt.zeros((6, 5), int), right.tolist()):
            with pytest.raises(TypeError, match="numpy array"):
                reduction(axis=0, out=out)
    for dtype in ("f8", "u8", "c16"):
        with pytest.raises(TypeError, match="cannot"):
            a.argmax(axis=0, out=np.zeros((6, 5), dtype))
    with pytest.raises(TypeError, match="not supported"):
        a.sum(axis=0, out=np.zeros((6, 5), np.longdouble))
    assert (right == 7).all() and not readonly.any()


def test_products_and_variances():
    x = 1 + np.abs(X) / 100
    a = pt.array(x, distribution="rows")
    np.testing.assert_allclose(np.prod(a, axis=1), x.prod(axis=1))
    np.testing.assert_allclose(a.prod(axis=(0, 2), keepdims=True), x.prod(axis=(0, 2), keepdims=True))
    for ddof in (1, 2.5, 400):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.var(a, axis=0, ddof=ddof), x.var(axis=0, ddof=min(ddof, 7)))
    assert a.std(ddof=1) == pytest.approx(x.std(ddof=1))
    z = x + 1j * X
    np.testing.assert_allclose(pt.array(z).var(axis=2), z.var(axis=2))
    assert a.std(axis=0, out=(out := np.zeros((6, 5), "f4"))) is out
    np.testing.assert_allclose(out, x.std(axis=0), rtol=1e-5)
    # The mean is exact although it is large compared with the distances to it.
    assert pt.array(x + 1e9).var() == pytest.approx((x + 1e9).var(), rel=1e-6)
    with np.errstate(all="ignore"):
        assert np.isnan(pt.zeros((0, 2)).var()) and pt.zeros((0, 2)).std(axis=1).shape == (0,)


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", "c8"])
@pytest.mark.parametrize("target", ["f4", ">f8", "c8", "c16"])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_dtypes_of_variances(dtype, target):
    x = np.abs(X).astype(dtype)
    a = pt.array(x)
    native = np.dtype(target).newbyteorder("=")
    for name in ("sum", "mean", "var", "std"):
        for options in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}):
            expected = getattr(x, name)(dtype=native, **options)
            found = getattr(a, name)(dtype=target, **options)
            assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected), name
            np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_reductions_of_ufuncs():
    a = pt.array(X)
    np.testing.assert_array_equal(np.add.reduce(a), X.sum(axis=0))
    np.testing.assert_array_equal(np.fmax.reduce(a, axis=(1, 2), keepdims=True), X.max((1, 2), keepdims=True))
    np.testing.assert_array_equal(np.logical_and.reduce(a, axis=None), X.all())
    out = np.zeros((7, 5))
    assert np.add.reduce(a, axis=1, out=out) is out and (out == X.sum(axis=1)).all()
    assert np.add.reduce(a, axis=None, initial=3) == X.sum() + 3
    with pytest.raises(TypeError, match="order"):
        np.add.reduce(a, order="C")
    with pytest.raises(TypeError):
        np.subtract.reduce(a)


def test_results_belong_to_the_rank():
    a = pt.array(X)
    found = a.sum(axis=0)
    found[...] = pt.rank()
    np.testing.assert_array_equal(a.sum(axis=0), X.sum(axis=0))


def test_nans_propagate():
    x = X.astype(float)
    x[1, 2, 3], x[:, 4, 4], x[0], x[6, 0, 0] = np.nan, np.nan, np.nan, np.inf
    for distribution in ("rows", pt.cyclic((2, 2, 2))):
        a = pt.array(x, distribution=distribution)
        for n in (None, 0, 1, 2):
            for name in ("min", "max", "argmin", "argmax"):
                np.testing.assert_array_equal(getattr(np, name)(a, axis=n), getattr(x, name)(axis=n))
            np.testing.assert_array_equal(np.maximum.reduce(a, axis=n), np.maximum.reduce(x, axis=n))
            # These ignore NaNs.
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(np.fmin.reduce(a, axis=n), np.fmin.reduce(x, axis=n))
                expected = np.fmax.reduce(x, axis=n, keepdims=True)
            np.testing.assert_array_equal(np.nanmax(a, n, keepdims=True), expected)
    assert np.isnan(pt.full(4, np.nan, "f4").min(axis=0, keepdims=True)).tolist() == [True]
    assert pt.full((2, 2), np.inf).min(axis=0).tolist() == [np.inf, np.inf]


def test_bad_axes():
    a = pt.array(X)
    for axis in (3, -4, (0, 5)):
        with pytest.raises(axis_error()):
            a.sum(axis=axis)
        with pytest.raises(axis_error()):
            np.max(a, axis=axis)
    with pytest.raises(axis_error()):
        a.argmin(axis=3)
    for axis in (1.5, (0,), (0, 1)):
        with pytest.raises(TypeError):
            a.argmax(axis=axis)
    with pytest.raises(ValueError, match="axis"):
        a.min(axis=(0, 0))
    with pytest.raises(TypeError):
        a.any(axis=1.5)
    np.testing.assert_array_equal(a.max(axis=0), X.max(axis=0))


def test_axes_without_elements():
    a, x = pt.zeros((0, 3)), np.zeros((0, 3))
    np.testing.assert_array_equal(a.sum(axis=0), x.sum(axis=0))
    assert a.min(axis=1).shape == x.min(axis=1).shape == (0,)
    np.testing.assert_array_equal(a.argmin(axis=1), x.argmin(axis=1))
    for none, axis in ((a, 0), (a, (0, 1)), (pt.zeros((0, 0)), 1), (pt.zeros((3, 0, 0)), 1)):
        with pytest.raises(ValueError, match="empty"):
            none.min(axis=axis)
        with pytest.raises(ValueError):
            np.zeros(none.shape).min(axis=axis)
    for none in (a, pt.zeros((0, 0))):
        with pytest.raises(ValueError, match="no elements"):
            none.argmax(axis=0)


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_the_first_of_equal_elements(distribution):
    x = np.array([[2, 1, 1, 5, 5], [1, 3, 1, 0, 5], [1, 1, 3, 0, 2]] * 3)
    a = pt.array(x, distribution=pt.cyclic((2, 2)) if distribution == "cyclic" else distribution)
    for axis in (0, 1):
        assert a.argmin(axis).tolist() == x.argmin(axis).tolist()
        assert a.argmax(axis).tolist() == x.argmax(axis).tolist()
    line = pt.array(x[0], distribution="rows")
    assert isinstance(line.argmin(axis=0), np.intp) and line.argmin(axis=0) == 1


def test_reductions_in_a_group():
    if pt.rank() == 0:
        alone = pt.world.subgroup([0])
        a = pt.array(X, group=alone)
        np.testing.assert_array_equal(a.sum(axis=1), X.sum(axis=1))
        a.free()
        alone.free()


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_indices_of_own_elements(distribution):
    x = X[..., 0]
    a = pt.array(x, distribution=pt.cyclic((2, 2)) if distribution == "cyclic" else distribution)
    with a.access() as mine:
        np.testing.assert_array_equal(x[np.ix_(mine.indices(0), mine.indices(-1))], mine.local)
        with pytest.raises(IndexError):
            mine.indices(2)
        with pytest.raises(IndexError):
            mine.indices(-3)


INITIAL = {"sum": [2, 0.75, -3], "prod": [2, 3], "min": [-60, 3, 99], "max": [-60, 3, 99]}


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_initial_values(dtype, distribution):
    chosen = pt.cyclic((2, 2, 2)) if distribution == "cyclic" else distribution
    for name, values in INITIAL.items():
        # Products with zeros would depend on the order.
        x = (X % 3 + 1 if name == "prod" else X).astype(dtype)
        a = pt.array(x, distribution=chosen)
        for value in values:
            for axis in (None, 1, (0, 2)):
                expected = getattr(np, name)(x, axis=axis, initial=value)
                for found in (getattr(np, name)(a, axis=axis, initial=value), getattr(a, name)(axis, initial=value)):
                    assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected)
                    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.sum(a, initial=2, keepdims=True).shape == (1, 1, 1)
    out = np.zeros((6, 5), dtype)
    assert np.max(a, axis=0, out=out, initial=7) is out
    np.testing.assert_array_equal(out, x.max(axis=0, initial=7))


def test_initial_values_of_nothing():
    a = pt.zeros((0, 3))
    assert a.min(initial=4) == 4 and a.sum(initial=2.5) == 2.5
    assert a.max(axis=0, initial=-1).tolist() == [-1, -1, -1]
    with pytest.raises((TypeError, ValueError)):
        a.sum(initial=[1, 2])
    with pytest.raises(TypeError, match="initial"):
        np.mean(a, initial=2)
    with pytest.raises(TypeError, match="initial"):
        a.std(initial=2)
    with pytest.raises(TypeError, match="mean"):
        a.var(mean=2)


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
@pytest.mark.parametrize("kind", ["distributed", "all", "row", "yes", "no"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_masks(distribution, kind):
    chosen = pt.cyclic((2, 2, 2)) if distribution == "cyclic" else distribution
    a = pt.array(X.astype(float), distribution=chosen)
    x = X.astype(float)
    mask = {"row": np.arange(5) > 1, "yes": True, "no": np.False_}.get(kind, (X % 3 > 0) & (X < 40))
    where = pt.array(mask, distribution=chosen) if kind == "distributed" else mask
    for axis in (None, 0, (1, 2)):
        for keepdims in (False, True):
            for name in ("sum", "prod", "mean", "var", "std", "any", "all", "min", "max"):
                more = {"initial": 3} if name in ("min", "max") else {}
                options = {"axis": axis, "keepdims": keepdims, **more}
                expected = getattr(x, name)(where=mask, **options)
                for found in (getattr(a, name)(where=where, **options), getattr(np, name)(a, where=where, **options)):
                    assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected)
                    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(a.var(axis=0, ddof=2, where=where), x.var(axis=0, ddof=2, where=mask))
    np.testing.assert_allclose(np.nanmin(a, initial=3, where=where), x.min(initial=3, where=mask))


def test_refused_masks():
    a = pt.array(X)
    for call in (a.min, a.max, lambda **options: np.nanmax(a, **options)):
        with pytest.raises(ValueError, match="initial"):
            call(where=X > 0)
    for where in (X, 1, "yes", pt.array(X)):
        with pytest.raises(TypeError, match="bool"):
            a.sum(where=where)
    for where in (X[0, :5] > 0, np.ones((2, 7, 6, 5), bool), pt.ones(3, bool)):
        with pytest.raises(ValueError, match="broadcast"):
            a.mean(where=where)
    # Before version 1.25, NumPy converts the mask.
    if np.lib.NumpyVersion(np.__version__) >= "1.25.0":
        for call in (np.sum, np.mean, np.prod, np.any, np.add.reduce):
            with pytest.raises(TypeError, match="where.*asarray.*portolan.array"):
                call(X, where=pt.array(X > 0))
    with pytest.raises(TypeError, match="out.*asarray"):
        np.add.reduce(X, out=pt.zeros((6, 5), int))
    bools = pt.array(X > 0)
    assert bools.any(where=bools) and bools.sum(where=bools) == (X > 0).sum()
    np.testing.assert_array_equal(a.sum(axis=0), X.sum(axis=0))
