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
        for found in (a.ravel(), a.flatten(), np.ravel(a), a.reshape(-1) if x.size else a.ravel()):
            same(found, x.ravel())
        same(np.expand_dims(a, (0, -1)), np.expand_dims(x, (0, -1)))
        if x.size != 1:
            same(np.squeeze(a), np.squeeze(x))
        for axis in (None, *range(x.ndim)):
            same(np.flip(a, axis), np.flip(x, axis))


def test_refused_reshapes():
    a = pt.zeros((3, 4), name="plate")
    for shape in ((5,), (-1, 5), (-1, -1), (-3, -4), ()):
        with pytest.raises(ValueError, match="plate"):
            a.reshape(shape)
    with pytest.raises(ValueError, match="order"):
        a.reshape(12, order="F")
    with pytest.raises(TypeError):
        a.reshape(3.0, 4)
    with pytest.raises(ValueError, match="axis"):
        pt.zeros(1).reshape(())
    with pytest.raises(ValueError, match="length 1"):
        a.squeeze(0)
    assert a.reshape(2, -1).shape == (2, 6) and pt.ones((1, 1)).squeeze().shape == (1,)


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
