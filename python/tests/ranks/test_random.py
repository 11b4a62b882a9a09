"""Random numbers: the same for every number of ranks and every distribution."""

import hashlib

import numpy as np
import pytest

import portolan as pt

BLOCK = pt.random._BLOCK
# Digests of results, which are the same for every number of ranks.
PERMUTATION = "9d6697e5c4f5"
CHOICE = "a6d5a861dbd4"


def digest(a):
    return hashlib.sha256(np.ascontiguousarray(a[...]).tobytes()).hexdigest()[:12]


def distributions(ndim):
    return ["block", "rows", pt.grid(*(1,) * (ndim - 1), pt.size()), pt.cyclic((2,) * ndim)]


def expected(seed, call, shape, draw):
    """Return what one rank would draw, by NumPy alone."""
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    size = int(np.prod(shape))
    parts = [
        draw(np.random.Generator(np.random.Philox(key=key, counter=[0, k, call, 0])), BLOCK)
        for k in range(-(-size // BLOCK))
    ]
    return np.concatenate(parts)[:size].reshape(shape)


DRAWS = {
    "random": ((), lambda g, n: g.random(n)),
    "integers": ((-3, 1000), lambda g, n: g.integers(-3, 1000, n)),
    "uniform": ((2, 5.5), lambda g, n: g.uniform(2, 5.5, n)),
    "standard_normal": ((), lambda g, n: g.standard_normal(n)),
    "normal": ((3, 2), lambda g, n: g.normal(3, 2, n)),
    "lognormal": ((0, 0.5), lambda g, n: g.lognormal(0, 0.5, n)),
    "exponential": ((2.0,), lambda g, n: g.exponential(2.0, n)),
    "gamma": ((2.0, 1.5), lambda g, n: g.gamma(2.0, 1.5, n)),
    "beta": ((2.0, 1.5), lambda g, n: g.beta(2.0, 1.5, n)),
    "poisson": ((4.5,), lambda g, n: g.poisson(4.5, n)),
    "binomial": ((9, 0.25), lambda g, n: g.binomial(9, 0.25, n)),
}


@pytest.mark.parametrize("name", list(DRAWS))
def test_numbers_do_not_depend_on_the_ranks(name):
    parameters, draw = DRAWS[name]
    for shape in ((50000,), (7, 5000), (5000, 7), (3, 4, 5), (1,), (2, BLOCK), (0, 3)):
        rng = pt.random.default_rng(11)
        call = 0
        for distribution in distributions(len(shape))[:: 1 if name == "random" else 2]:
            a = getattr(rng, name)(*parameters, size=shape, distribution=distribution)
            x = expected(11, call, shape, draw) if a.size else np.zeros(shape, a.dtype)
            assert a.dtype == x.dtype
            np.testing.assert_array_equal(a[...], x)
            call += 1


def test_dtypes():
    rng = pt.random.default_rng(3)
    for dtype in ("i1", "u2", "i4", "u8", "?"):
        a = rng.integers(0, 2, 1000, dtype)
        assert a.dtype == dtype and set(np.unique(a)[...].tolist()) == {0, 1}
    for dtype in ("f4", "f8"):
        assert rng.random(5, dtype).dtype == rng.standard_normal(5, dtype).dtype == dtype
    assert rng.integers(3, size=100, endpoint=True).max() == 3


def test_single_numbers_and_seeds():
    rng, other = pt.random.default_rng(5), pt.random.default_rng([5, 6])
    x, y, z = rng.random(), rng.random(), other.random()
    assert len({x, y, z}) == 3 and pt.random.default_rng(5).random() == x
    assert len(set(pt.world.all_gather((x, y, z)))) == 1
    free = pt.random.default_rng()
    assert len(set(pt.world.all_gather(free.normal()))) == 1
    assert free.random() != pt.random.default_rng().random()
    if pt.size() > 1:
        with pytest.raises(ValueError, match="seeds"):
            pt.random.default_rng(pt.rank())
    assert 0 <= rng.integers(7) < 7


def test_refused_arguments():
    rng = pt.random.default_rng(5)
    for call in (
        lambda: rng.normal(0, -1, 5),
        lambda: rng.integers(5, 2, 3),
        lambda: rng.normal(np.zeros(3), 1, 5),
        lambda: rng.choice(5, 6, replace=False),
        lambda: rng.choice(0, 6),
        lambda: rng.choice(2, 6, p=[0.5, 0.6]),
        lambda: rng.choice(2, 6, p=[1.0]),
        lambda: rng.choice(2, 1, replace=False, p=[0.5, 0.5]),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        rng.shuffle(np.zeros(4))
    assert rng.random(3).shape == (3,)


@pytest.mark.parametrize("length", [0, 1, 5, 1000])
def test_permutations(length):
    rng = pt.random.default_rng(2)
    a, b = rng.permutation(length), rng.permutation(length, distribution=pt.cyclic((3,)))
    for found in (a, b):
        np.testing.assert_array_equal(np.sort(found[...]), np.arange(length))
    if length == 1000:
        assert (a[...] != b[...]).any()
        assert digest(a.astype("<i8")) == PERMUTATION
    x = np.random.default_rng(1).random((length, 3))
    for given in (x, pt.array(x)):
        found = rng.permutation(given)
        np.testing.assert_array_equal(np.sort(found[...], 0)[:, 0], np.sort(x[:, 0]))
        assert set(map(tuple, found[...].tolist())) == set(map(tuple, x.tolist()))
    line = pt.array(x[:, 0])
    rng.shuffle(line)
    np.testing.assert_array_equal(np.sort(line[...]), np.sort(x[:, 0]))
    across = rng.permutation(pt.array(x.T), 1)
    assert set(map(tuple, across[...].T.tolist())) == set(map(tuple, x.tolist()))


def test_choices():
    rng = pt.random.default_rng(4)
    a = rng.choice(10, (20, 50))
    assert a.shape == (20, 50) and set(np.unique(a)[...].tolist()) == set(range(10))
    b = rng.choice(1000, 400, replace=False, distribution="rows")
    assert len(np.unique(b)) == 400 and b.distribution == ("rows",)
    c = rng.choice([5.0, 7.0, 9.0], 1000, p=[0.5, 0, 0.5])
    values, counts = np.unique(c, return_counts=True)
    assert values[...].tolist() == [5, 9] and abs(counts[0] - 500) < 100
    x = np.arange(12).reshape(6, 2)
    d = rng.choice(pt.array(x), (3,), replace=False)
    assert d.shape == (3, 2) and all(row in x.tolist() for row in d[...].tolist())
    assert 0 <= rng.choice(5) < 5 and rng.choice(pt.array(x)).shape == (2,)
    assert rng.choice(9, (2, 3), replace=False).shape == (2, 3)
    assert digest(a.astype("<i8")) == CHOICE


def test_means():
    rng = pt.random.default_rng(8)
    assert abs(rng.normal(2, 3, (300, 400)).mean() - 2) < 0.05
    assert abs(rng.random(100000).var() - 1 / 12) < 0.003
    alone = pt.world.subgroup([pt.rank()])
    own = pt.random.default_rng(pt.rank(), group=alone)
    assert own.random(5).group == alone
