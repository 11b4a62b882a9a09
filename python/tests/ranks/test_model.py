"""Random transfers of all ranks at once, through all kinds of indices, compared with NumPy.

Every rank keeps a copy of each array. In each phase, an array is cut into slabs along an axis. A
slab belongs to one rank, which reads and changes it, to no rank, so that all may read it, or to all
ranks, which only add to it. All ranks draw the plans of all ranks from a seed. A rank carries out
its own plan, and applies all plans to its copies. Values are small whole numbers, so the order of
additions does not matter. After each phase, a rank compares its own memory first: gets would give
late elements the time to arrive.

`tests/ranks/random.rs` is the same model with addresses in the place of indices. It tests the calls
below; this file tests what the package adds: NumPy's indices, values and element types.
"""

import os

import numpy as np
import pytest
from samples import distributions

import portolan as pt

DTYPES = ["i8", "f8", "?", "c16", "u1", "f4", "i2", "u4", "c8", "i4", "u8", "i1", "u2"]
NOBODY, ALL = -1, -2


class Shared:
    """An array of a group, and the copy of the calling rank."""

    def __init__(self, rng, group, members):
        self.members = members
        shape = tuple(rng.integers(1, 10, rng.choice([1, 2, 3, 3, 4])).tolist())
        dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
        layout = distributions(shape, len(members))[rng.integers(6)]
        self.x, self.a = number(rng, shape, dtype), None
        if group is not None:
            # An axis that is not cut always has room for ghost cells.
            ghosts = (0,) + (1,) * (len(shape) - 1) if layout == "rows" else (0,) * len(shape)
            self.a = pt.array(self.x, distribution=layout, group=group, ghosts=ghosts)

    def cut(self, rng):
        self.axis = rng.integers(self.x.ndim)
        n = self.x.shape[self.axis]
        cuts = [0, *sorted(rng.integers(0, n + 1, 2 * len(self.members)).tolist()), n]
        owners = [*self.members, *self.members, NOBODY, ALL]
        self.slabs = [(lo, hi, owners[rng.integers(len(owners))]) for lo, hi in zip(cuts, cuts[1:]) if lo < hi]


def number(rng, shape, dtype):
    x = rng.integers(0, 2 if dtype.kind == "b" else 9, shape)
    return (x + 1j * rng.integers(0, 9, shape) if dtype.kind == "c" else x).astype(dtype)


def section(rng, lo, hi, n):
    """Return a slice of indices from `lo` to `hi` along an axis of `n`."""
    start, stop = sorted(rng.integers(lo, hi + 1, 2).tolist()) if rng.random() < 0.6 else (lo, hi)
    stop += start == stop < hi
    step = int(rng.integers(1, 4)) if rng.random() < 0.4 else 1
    if rng.random() < 0.3 and start < stop:
        start, stop, step = stop - 1, start - 1 if start else None, -step
    if rng.random() < 0.3:
        start, stop = (i - n if i is not None and 0 <= i < n and (i or step < 0) else i for i in (start, stop))
    return slice(start, stop, step)


def index(rng, x, axis, lo, hi, again):
    """Return an index of `x` within a slab. An element occurs more than once only if `again` is set."""
    bounds = [(lo, hi) if k == axis else (0, n) for k, n in enumerate(x.shape)]
    kind = rng.integers(6)
    found = [section(rng, *bound, n) for bound, n in zip(bounds, x.shape)]
    if kind < 2:
        first, last = int(rng.integers(axis + 1)), int(rng.integers(axis, x.ndim)) + 1
        mask = np.zeros(x.shape[first:last], bool)
        slab = np.moveaxis(mask, axis - first, 0)[lo:hi]
        slab[...] = rng.random(slab.shape) < 0.5
        found[first:last] = [mask]
    elif kind < 4:
        chosen = [k for k in range(x.ndim) if k == axis or rng.random() < 0.25]
        outer = rng.random() < 0.5
        count = int(rng.integers(0, min(bounds[k][1] - bounds[k][0] for k in chosen) + 1))
        for place, k in enumerate(chosen):
            (first, end), n = bounds[k], x.shape[k]
            list = rng.integers(first, end, count) if again else first + rng.permutation(end - first)[:count]
            list = np.where(rng.random(count) < 0.3, list - n, list)
            found[k] = list.reshape(-1, *[1] * (len(chosen) - place - 1)) if outer else list
    else:
        for k, (first, end) in enumerate(bounds):
            if rng.random() < 0.3:
                i = int(rng.integers(first, end))
                found[k] = i if rng.random() < 0.5 else i - x.shape[k]
    if kind > 1 and rng.random() < 0.2:
        found[:axis] = [...]
    if kind > 3 and rng.random() < 0.2:
        found.insert(int(rng.integers(len(found) + 1)), None)
    return tuple(found) if len(found) > 1 or rng.random() < 0.5 else found[0]


def value(rng, shape, dtype):
    """Return a value that is assigned to elements of a shape: a number, or an array of any strides."""
    kind = rng.integers(5)
    if kind == 0 or not shape:
        return number(rng, (), dtype)[()].item()
    if kind == 1:
        return number(rng, shape[-1:], dtype)
    if kind == 2:
        return number(rng, (*shape[:-1], 2 * shape[-1]), dtype)[..., ::-2]
    return number(rng, shape, dtype) if kind == 3 else number(rng, shape[::-1], dtype).T


def act(rng, it, mine, flights):
    """Draw a step of a rank and apply it to the copy. Carry it out if it is `mine`."""
    x, a = it.x, it.a
    lo, hi, owner = it.usable[rng.integers(len(it.usable))]
    how = {NOBODY: 0, ALL: 2}.get(owner, rng.integers(3))
    at, later, way = index(rng, x, it.axis, lo, hi, how != 1), rng.random() < 0.5, rng.integers(3)
    if how == 0:
        expected, plain = x[at].copy() if np.ndim(x[at]) else x[at], not isinstance(at, np.ndarray)
        plain = plain and not any(isinstance(i, np.ndarray) for i in (at if isinstance(at, tuple) else [at]))
        if not mine:
            return
        if way == 0 and plain:
            out = np.full((*np.shape(expected), 2), 1, x.dtype)
            found = out[..., 0]
            a.get(at, out=found)
            assert (out[..., 1] == 1).all()
        elif later and owner == NOBODY:
            return flights.append((a.start_get(at), expected))
        elif later:
            found = a.start_get(at).wait()
        else:
            found = a[at]
        assert np.shape(found) == np.shape(expected) and found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected, err_msg=repr(at))
        return
    given = value(rng, x[at].shape, x.dtype)
    if how == 1:
        x[at] = given
        if mine and later:
            a.start_put(at, given).wait()
        elif mine:
            a[at] = given
        return
    if x.dtype.kind in "iu" and x.dtype.itemsize >= 4 and way == 0:
        at = tuple(int(rng.integers(*((lo, hi) if k == it.axis else (0, n)))) for k, n in enumerate(x.shape))
        old = a.fetch_add(at, 3) if mine else None
        assert not mine or owner == ALL or old == x[at]
        x[at] += 3
        return
    alpha = [None, True, False][way] if x.dtype.kind == "b" else [None, 2, 3][way]
    if mine and later:
        begun = a.start_add(at, given, alpha)
        flights.append((begun, None)) if owner == ALL else begun.wait()
    elif mine:
        a.add(at, given, alpha)
    scaled = np.asarray(given, x.dtype)
    if alpha is not None:
        scaled = scaled & alpha if x.dtype.kind == "b" else scaled * x.dtype.type(alpha)
    np.add.at(x, at, scaled)


def meet(rng, it):
    """Complete a phase of an array, compare, and let each rank change its own elements."""
    if rng.random() < 0.5:
        it.a.sync()
        np.testing.assert_array_equal(it.a[...], it.x)
    turned = np.roll(it.x, 1, axis=0)
    with it.a.access() as mine:
        own = np.ix_(*(mine.indices(axis) for axis in range(it.x.ndim)))
        np.testing.assert_array_equal(mine.local, it.x[own], err_msg="own memory")
        if change := rng.random() < 0.5:
            mine.local = turned[own]
    if change:
        it.x[...] = turned
    np.testing.assert_array_equal(it.a[...], it.x)


@pytest.mark.parametrize("seed", range(40 if "PORTOLAN_TEST_RELEASE" in os.environ else 12))
def test_transfers_of_all_ranks(seed):
    rng, n, me = np.random.default_rng([seed, pt.size()]), pt.size(), pt.rank()
    teams = [list(range(n)), list(range(n))[::-1]] + [list(range(0, n, 2)), [n - 1, 0]] * (n > 2)
    groups = [(pt.world.subgroup(ranks), ranks) for ranks in teams]
    arrays = [Shared(rng, *groups[k % len(groups)]) for k in rng.integers(0, len(groups), 3).tolist()]
    for _ in range(4):
        for it in arrays:
            it.cut(rng)
        plans = rng.integers(0, 1 << 32, n)
        pt.barrier()
        flights = []
        for rank in range(n):
            draws = np.random.default_rng(plans[rank])
            for _ in range(20):
                it = arrays[draws.integers(len(arrays))]
                it.usable = [slab for slab in it.slabs if slab[2] in (rank, NOBODY, ALL)]
                if rank in it.members and it.usable:
                    act(draws, it, rank == me, flights)
        for transfer, expected in flights[::-1]:
            found = transfer.wait()
            if expected is not None:
                np.testing.assert_array_equal(found, expected)
        for it in arrays:
            draws = np.random.default_rng(rng.integers(1 << 32))
            if me in it.members:
                meet(draws, it)
    for it in arrays:
        if it.a is not None:
            it.a.free()
    for group, _ in groups:
        if group is not None:
            group.free()
