"""Functions that arrange elements in another shape or order, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portolan as pt
from samples import distributions, same

RNG = np.random.default_rng(17)

SHAPES = [(12,), (1,), (0,), (7, 12), (12, 1), (0, 4), (3, 4, 5), (1, 12, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_reshapes(shape):
    x = RNG.random(shape)
    targets = {(x.size,), (x.size, 1), (1, x.size), (1, 1, x.size)}
    targets |= {(n, x.size // n) for n in (2, 3, 4, 6) if x.size % n == 0}
    targets |= {(2, x.size // 6, 3)} if x.size % 6 == 0 else set()
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        for target in sorted(targets):
            same(a.reshape(target), x.reshape(target))
            same(np.reshape(a, target), x.reshape(target))
            same(a.reshape(target, order="F"), x.reshape(target, order="F"))
        same(a.ravel("F"), x.ravel("F"))
        for found in (a.ravel(), a.flatten(), np.ravel(a), a.reshape(-1) if x.size else a.ravel()):
            same(found, x.ravel())
        same(np.expand_dims(a, (0, -1)), np.expand_dims(x, (0, -1)))
        if x.size != 1:
            same(np.squeeze(a), np.squeeze(x))
        for axis in (None, *range(x.ndim)):
            same(np.flip(a, axis), np.flip(x, axis))


def test_refused_reshapes():
    a = pt.zeros((3, 4), name="plate")
    for shape in ((5,), (-1, 5), (-1, -1), (-3, -4)):
        with pytest.raises(ValueError, match="plate"):
            a.reshape(shape)
    with pytest.raises(ValueError, match="order"):
        a.reshape(12, order="Z")
    with pytest.raises(TypeError):
        a.reshape(3.0, 4)
    for found in (pt.ones((1, 1)).reshape(()), pt.ones((1, 1)).squeeze()):
        assert type(found) is np.ndarray and found.shape == () and found == 1
    with pytest.raises(ValueError, match="length 1"):
        a.squeeze(0)
    assert a.reshape(2, -1).shape == (2, 6)


@given(st.data())
def test_random_reshapes(data):
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
    order = data.draw(st.permutations(shape))
    x = np.arange(np.prod(shape)).reshape(shape)
    kind = data.draw(st.integers(0, 5))
    a = pt.array(x, distribution=distributions(shape)[kind])
    same(a.reshape(order), x.reshape(order))


@pytest.mark.parametrize("shape", SHAPES)
def test_rolls(shape):
    x = RNG.random(shape)
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        for shift in (0, 1, -2, 5, 40):
            same(np.roll(a, shift), np.roll(x, shift))
            for axis in range(x.ndim):
                same(np.roll(a, shift, axis), np.roll(x, shift, axis))
        if x.ndim > 1:
            same(np.roll(a, (1, 2), (0, 1)), np.roll(x, (1, 2), (0, 1)))
            same(np.roll(a, 1, (0, -1)), np.roll(x, 1, (0, -1)))
            same(np.roll(a, (1, 2), 0), np.roll(x, (1, 2), 0))


@pytest.mark.parametrize("number", range(6))
def test_joins(number):
    x, y, z = RNG.random((7, 4)), RNG.integers(0, 9, (3, 4)), RNG.random((7, 2)).astype("f4")
    a, b = pt.array(x, distribution=distributions(x.shape)[number]), pt.array(y)
    c = pt.array(z, distribution="rows")
    same(np.concatenate((a, b)), np.concatenate((x, y)))
    same(np.concatenate([b, y, a]), np.concatenate([y, y, x]))
    same(np.concatenate([a, c, x], axis=1), np.concatenate([x, z, x], axis=1))
    same(np.concatenate([a, c], axis=None), np.concatenate([x, z], axis=None))
    same(np.concatenate([b], dtype="f4"), np.concatenate([y], dtype="f4"))
    same(np.concatenate([pt.zeros((0, 4)), a]), x)
    for axis in (0, 1, 2, -1):
        same(np.stack([a, x + 1, a], axis), np.stack([x, x + 1, x], axis))
    same(np.vstack((a, b)), np.vstack((x, y)))
    same(np.vstack((a, x[0])), np.vstack((x, x[0])))
    same(np.hstack((a, c)), np.hstack((x, z)))
    u = pt.array(x[0])
    same(np.vstack((u, x[1])), np.vstack((x[0], x[1])))
    same(np.hstack((u, 2.0)), np.hstack((x[0], 2.0)))
    same(np.vstack((u, a)), np.vstack((x[0], x)))
    for call in (np.concatenate, np.stack):
        with pytest.raises(ValueError, match="shape"):
            call([a, c])
        with pytest.raises(TypeError, match="out"):
            call([a, a], out=x)
        out = pt.zeros(call([x, x]).shape, distribution="rows")
        assert call([a, a], out=out) is out
        same(out, call([x, x]))
    with pytest.raises(TypeError, match="cast"):
        np.concatenate([a, b], dtype=int)


@pytest.mark.parametrize("shape", [(12,), (7, 12), (3, 4, 5)])
def test_takes(shape):
    x = RNG.random(shape)
    for distribution in distributions(shape):
        a = pt.array(x, distribution=distribution)
        for indices in ([2, 0, -1, 2], np.array([[1, 2], [0, 0], [-2, 1]], "i1"), [], np.arange(3)):
            for axis in (None, *range(x.ndim), -1):
                same(np.take(a, indices, axis), np.take(x, np.array(indices, int), axis))
        wide = [-50, 7, 99]
        for mode in ("wrap", "clip"):
            same(a.take(wide, 0, mode=mode), x.take(wide, 0, mode=mode))
        with pytest.raises(IndexError):
            a.take(wide, 0)
        with pytest.raises(TypeError):
            a.take([1.0])
        chosen = RNG.integers(-x.size, x.size, (5, 3))
        for kind in distributions(chosen.shape):
            at = pt.array(chosen, distribution=kind)
            same(np.take(a, at), np.take(x, chosen))
        same(np.take(a, pt.array([1, 2, 0]), 0), np.take(x, [1, 2, 0], 0))
        with pytest.raises(IndexError):
            np.take(a, pt.array([0, 1, x.size]))
    assert pt.array(x.ravel()).take(3) == x.ravel()[3]


@pytest.mark.parametrize("shape", [(12,), (7, 12), (3, 4, 5), (2, 0)])
def test_moves_and_repetitions(shape):
    x = RNG.random(shape)
    for distribution in distributions(shape)[::2]:
        a = pt.array(x, distribution=distribution)
        for times in (0, 3, (2, 1), (2, 1, 1, 2)):
            same(np.tile(a, times), np.tile(x, times))
        same(np.repeat(a, 2), np.repeat(x, 2))
        for axis in range(x.ndim):
            same(a.repeat(3, axis), x.repeat(3, axis))
            same(np.repeat(a, np.arange(shape[axis]), axis), np.repeat(x, np.arange(shape[axis]), axis))
            same(a.swapaxes(0, axis), x.swapaxes(0, axis))
            same(np.moveaxis(a, axis, -1), np.moveaxis(x, axis, -1))
            for parts in (1, 2, [1, 2], [2, 1, 50]):
                for found, expected in zip(np.array_split(a, parts, axis), np.array_split(x, parts, axis)):
                    same(found, expected)
            order = np.argsort(x, axis)
            same(np.take_along_axis(a, pt.array(order), axis), np.sort(x, axis))
            if hasattr(np, "unstack") and x.ndim > 1:
                for found, expected in zip(np.unstack(a, axis=axis), np.unstack(x, axis=axis)):
                    same(found, expected)
        if x.ndim > 1:
            for offset in (-2, 0, 1, 40):
                same(np.diagonal(a, offset), np.diagonal(x, offset))
                np.testing.assert_allclose(a.trace(offset), x.trace(offset))
            same(a.mT, np.swapaxes(x, -1, -2))
    same(np.split(pt.array(X), 4, 1)[1], np.split(X, 4, 1)[1])
    with pytest.raises(ValueError, match="equal"):
        np.split(pt.array(X), 5)
    same(np.moveaxis(pt.array(CUBE), (0, 2), (1, 0)), np.moveaxis(CUBE, (0, 2), (1, 0)))
    same(np.append(pt.array(X), X, 0), np.append(X, X, 0))
    same(np.column_stack([pt.array(X[0]), X[1], X.T]), np.column_stack([X[0], X[1], X.T]))


X, CUBE = RNG.random((7, 12)), RNG.random((2, 3, 4))
WIDTHS = [1, (2, 3), ((0, 4),), 0]
MODES = [
    ("constant", {}),
    ("constant", {"constant_values": (4, 6)}),
    ("edge", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}),
    ("empty", {}),
    ("maximum", {}),
    ("minimum", {"stat_length": 2}),
    ("mean", {"stat_length": ((1, 2),)}),
    ("median", {}),
    ("linear_ramp", {"end_values": (5, -4)}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
]


@pytest.mark.parametrize("mode, options", MODES)
def test_pads(mode, options):
    for x in (RNG.random(9), RNG.random((4, 6)), RNG.integers(0, 90, (4, 5)), RNG.random((3, 4, 2)).astype("f4")):
        for distribution in distributions(x.shape)[::2]:
            a = pt.array(x, distribution=distribution)
            for widths in WIDTHS:
                found, expected = np.pad(a, widths, mode, **options), np.pad(x, widths, mode, **options)
                if mode == "empty":
                    assert found.shape == expected.shape
                elif mode in ("mean", "median"):
                    assert isinstance(found, pt.Array) and found.dtype == expected.dtype
                    np.testing.assert_allclose(found[...], expected, rtol=1e-6)
                else:
                    same(found, expected)
    same(np.pad(pt.zeros((0, 2)), 1, constant_values=3), np.pad(np.zeros((0, 2)), 1, constant_values=3))
    assert np.pad(a, 1, lambda v, *_: v).shape == (5, 6, 4)
    for widths, more in ((-1, {}), (1.5, {}), (1, {"mode": "none"}), (1, {"end_values": 1}), ((1, 2, 3), {})):
        with pytest.raises((ValueError, TypeError)):
            np.pad(a, widths, **more)
