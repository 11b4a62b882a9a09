"""Random groups and collective calls, compared with a model.

All ranks draw the same calls and the values of all ranks from a seed, and a member of a group compares
each result with the one that it computes itself. Groups are created from others, overlap, have their
ranks in any order, and are freed. `tests/ranks/teams.rs` is the same model of the calls below; this file
tests what the package adds: objects, arrays of any type and layout, and mpi4py's names.
"""

import functools
import os

import numpy as np
import pytest

import portolan as pt

OPERATORS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]


def array(rng, dtype, shape):
    """Return small whole numbers, sometimes with strides or in the other byte order."""
    x = rng.integers(0, 2 if dtype.kind == "b" else 4, shape)
    x = (x + 1j * rng.integers(0, 4, shape) if dtype.kind == "c" else x).astype(dtype)
    kind = rng.integers(4)
    if kind == 0:
        return np.repeat(x, 2, -1)[..., ::2] if x.ndim else x
    return x.astype(dtype.newbyteorder()) if kind == 1 else x


def thing(rng):
    """Return an object of any length."""
    n = int(rng.choice([0, 1, 100, 5000, 300000]))
    return [rng.bytes(n), {"n": n, "items": list(range(n % 7))}, rng.random(n % 1000)][rng.integers(3)]


def equal(found, expected):
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype.newbyteorder("=")


def reduce(rng, group, values, me):
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    shape = ((), (3,), (2, 5), (0, 4), (700, 3), (40000,))[rng.integers(6)]
    kinds = "sum prod" if dtype.kind == "c" else "sum prod min max" if dtype.kind == "f" else " ".join(OPERATORS)
    op = str(rng.choice(kinds.split()))
    way = rng.integers(3)
    if group is None:
        return
    all_values = [array(draws, dtype, shape) for draws in values]
    wide = [x.astype("i8") for x in all_values] if dtype.kind == "b" and op in ("sum", "prod") else all_values
    expected = functools.reduce(OPERATORS[op], wide)
    if way == 0:
        equal(group.all_reduce(all_values[me], op), expected)
    elif way == 1:
        named = {"sum": group.sum, "min": group.min, "max": group.max}
        equal(named[op](all_values[me]) if op in named else group.allreduce(all_values[me], op), expected)
    else:
        found = np.zeros(shape, np.asarray(expected).dtype)
        group.Allreduce(all_values[me], found, op)
        np.testing.assert_array_equal(found, expected)


def spread(rng, group, values, me):
    root, way = int(rng.integers(len(values))), rng.integers(3)
    dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
    if group is None:
        return
    if way == 2:
        x = [array(draws, dtype, (3, 50)) for draws in values]
        buffer = np.ascontiguousarray(x[me].astype(dtype))
        group.Bcast(buffer, root)
        return np.testing.assert_array_equal(buffer, x[root])
    things = [thing(draws) for draws in values]
    found = (group.broadcast if way else group.bcast)(things[me] if me == root else None, root=root)
    np.testing.assert_equal(found, things[root])


def gather(rng, group, values, me):
    way = rng.integers(2)
    if group is not None:
        things = [thing(draws) for draws in values]
        np.testing.assert_equal((group.all_gather if way else group.allgather)(things[me]), things)


def count(rng, group, values, me):
    start = int(rng.integers(-5, 5))
    if group is not None:
        counter = pt.Counter(start, group=group)
        turns = [int(draws.integers(20)) for draws in values]
        taken = sum(group.all_gather([counter.next() for _ in range(turns[me])]), [])
        assert sorted(taken) == list(range(start, start + sum(turns)))
        counter.free()


def divide(rng, group, members):
    """Return the groups, with their members, that the group is split into."""
    colors = [[None, 0, 1, 2][c] for c in rng.integers(0, 4, len(members))]
    keys = rng.integers(-3, 3, len(members)).tolist()
    mine = None
    if group is not None:
        mine = group.Split(colors[group.rank], keys[group.rank])
    made = []
    for color in {c for c in colors if c is not None}:
        ranks = sorted((k for k, c in enumerate(colors) if c == color), key=lambda k: keys[k])
        ranks = [members[k] for k in ranks]
        made.append((mine if pt.rank() in ranks else None, ranks))
    if group is not None and colors[group.rank] is None:
        assert mine is None
    return made


@pytest.mark.parametrize("seed", range(40 if "PORTOLAN_TEST_RELEASE" in os.environ else 12))
def test_collectives_of_random_groups(seed):
    rng, me = np.random.default_rng([seed, pt.size()]), pt.rank()
    teams = [(pt.world, list(range(pt.size())))]
    for turn in range(100):
        place = int(rng.integers(len(teams)))
        group, members = teams[place]
        if group is not None:
            assert group.rank == members.index(me) and group.size == len(members)
        values = [np.random.default_rng([seed, turn, rank]) for rank in members]
        position = members.index(me) if group is not None else None
        kind = rng.integers(12)
        if kind < 8:
            [reduce, spread, gather, count][kind % 4](rng, group, values, position)
        elif kind == 8 and len(teams) < 8:
            chosen = rng.permutation(len(members))[: rng.integers(1, len(members) + 1)].tolist()
            made = None if group is None else group.subgroup(chosen)
            teams.append((made, [members[k] for k in chosen]))
        elif kind == 9 and len(teams) < 8:
            teams += divide(rng, group, members)
        elif kind == 10 and place > 0:
            del teams[place]
            if group is not None:
                group.free()
        elif group is not None:
            group.barrier()
        for made, ranks in teams:
            assert (made is not None) == (me in ranks)
            assert made is None or made.members == ranks
    for group, _ in teams[1:]:
        if group is not None:
            group.free()
