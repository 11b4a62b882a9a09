"""Operands of other shapes and distributions, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import portolan as pt
from samples import distributions, same

RNG = np.random.default_rng(41)


@pytest.mark.parametrize("shape", [(12,), (7, 5), (3, 4, 2)])
def test_distributions_combine(shape):
    x, y = RNG.random(shape), RNG.random(shape) - 0.5
    for one in distributions(shape):
        a = pt.array(x, distribution=one)
        for other in distributions(shape):
            b = pt.array(y, distribution=other)
            same(a + b, x + y)
            same(b - a, y - x)
            assert (a + b)._is_alike(a)
            same(np.where(b > 0, a, b), np.where(y > 0, x, y))
            same(a + y, x + y)
            out = pt.array(y, distribution=other)
            assert np.multiply(a, a, out=out, where=b < 0) is out
            same(out, np.where(y < 0, x * x, y))
            # The second output has another distribution than the first one.
            outs = pt.zeros_like(a), pt.array(y, distribution=other)
            np.modf(a * 9, out=outs, where=a > 0.5)
            same(outs[1], np.where(x > 0.5, np.modf(x * 9)[1], y))
            c = a.copy()
            c *= b
            same(c, x * y)
            assert a.sum(where=b > 0) == pytest.approx(x[y > 0].sum())
            np.testing.assert_allclose(a.mean(0, where=b > -2), x.mean(0))
            np.testing.assert_allclose(np.vdot(a, b), np.vdot(x, y))
            assert np.allclose(a, b) is False and np.array_equal(b, pt.array(y)) is True
            counts, edges = np.histogram(a, 4, weights=b)
            np.testing.assert_allclose(counts, np.histogram(x, 4, weights=y)[0])


@given(st.data())
def test_shapes_broadcast(data):
    found = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=5))
    arrays, operands = [], []
    for shape in found.input_shapes:
        x = np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)
        arrays.append(x)
        is_distributed = shape and data.draw(st.booleans())
        kind = data.draw(st.integers(0, 5))
        operands.append(pt.array(x, distribution=distributions(shape)[kind]) if is_distributed else x)
    if not any(isinstance(a, pt.Array) for a in operands):
        return
    x, y, z = arrays
    a, b, c = operands
    if isinstance(a, pt.Array) or isinstance(b, pt.Array):
        same(np.add(a, b), np.add(x, y))
        same(np.less(b, a), np.less(y, x))
        if x.shape + y.shape:
            for p, q in zip(np.broadcast_arrays(a, b), np.broadcast_arrays(x, y)):
                same(p, q)
    same(np.where(np.greater(a, b), c, a), np.where(np.greater(x, y), z, x))
    shape = found.result_shape
    out = pt.zeros(shape) if shape else None
    if out is not None:
        assert np.multiply(a, c, out=out) is out
        same(out, np.broadcast_to(x * z, shape))
        mask = np.greater(b, 2)
        if out.size:
            assert out.sum(where=mask) == pytest.approx(np.sum(out[...], where=np.asarray(mask)))
            np.testing.assert_allclose(
                out.mean(0, where=np.greater(b, -1)), np.mean(out[...], 0, where=np.ones(shape, bool))
            )


def test_outer_combinations():
    x, y = RNG.random(7), RNG.random(9)
    a, b = pt.array(x), pt.array(y, distribution=pt.cyclic((2,)))
    for found in (
        a.section[:, np.newaxis] * b,
        np.expand_dims(a, 1) * b.section[None, :],
        np.multiply(a.section[:, None], y),
        a[:, None] * b,
    ):
        same(found, x[:, None] * y)
    means = RNG.random((7, 9))
    c = pt.array(means, distribution="rows")
    same(c - c.mean(axis=1, keepdims=True), means - c.mean(axis=1, keepdims=True))
    same(np.broadcast_to(b, (3, 9)), np.broadcast_to(y, (3, 9)))


def test_refused_shapes():
    a, b = pt.zeros((3, 4), name="first"), pt.zeros(3, name="second")
    for call in (
        lambda: a + b,
        lambda: a + np.zeros(5),
        lambda: a.sum(where=b > 0),
        lambda: np.where(b > 0, a, 1),
        lambda: np.add(b, 1, out=a.section[0]),
        lambda: np.broadcast_to(a, (4, 4)),
        lambda: np.add(a, 1, out=b),
        lambda: np.broadcast_arrays(a, b),
    ):
        with pytest.raises(ValueError, match="broadcast"):
            call()
    c = pt.zeros(4)
    with pytest.raises(ValueError, match="broadcast"):
        c += a


def test_groups_do_not_combine():
    if pt.size() == 1:
        pytest.skip("one rank")
    group = pt.Group(pt.world, list(range(pt.size()))[::-1])
    a, b = pt.zeros(8), pt.zeros(8, group=group)
    for call in (lambda: a + b, lambda: a.sum(where=b == 0), lambda: np.vdot(a, b)):
        with pytest.raises(ValueError, match="groups"):
            call()
    b.free()
    group.free()


def test_a_statistic_shows_realignments():
    a, b = pt.zeros((8, 6), distribution="rows"), pt.zeros((8, 6), distribution=pt.cyclic((1, 1)))
    before = pt.realignments()
    a + a
    a + 1
    a + np.zeros(6)
    assert pt.realignments() == before
    if pt.size() > 1:
        a + b
        np.vdot(a, b)
        after = pt.realignments()
        assert after[0] == before[0] + 2 and after[1] > before[1]


def test_copies_into_arrays():
    x = RNG.integers(0, 9, (6, 5))
    a = pt.zeros((6, 5), distribution="rows")
    np.copyto(a, pt.array(x, distribution=pt.cyclic((1, 1))))
    same(a, x.astype(float))
    np.copyto(a, 7, where=a > 4)
    same(a, np.where(x > 4, 7.0, x))
    np.copyto(a, np.arange(5.0))
    same(a, np.broadcast_to(np.arange(5.0), (6, 5)))
    with pytest.raises(TypeError, match="cast"):
        np.copyto(pt.zeros(3, int), 1.5 * np.ones(3))
    with pytest.raises(TypeError, match="numpy array"):
        np.copyto(np.zeros(3), pt.zeros(3))
