"""The memory of results: arrays that a ufunc creates take over memory that was freed or dropped."""

import functools
import gc
import operator

import numpy as np
import pytest

import portolan as pt


def test_results_that_take_over_dropped_arrays():
    x = np.arange(60.0).reshape(12, 5)
    a, b = pt.array(x), pt.array(x[::-1])
    made = []
    for n in range(40):
        c = a * n + b
        if n % 7 == 0:
            made.append((n, c))
        d = np.sqrt(c) < n
        np.testing.assert_array_equal(d[...], np.sqrt(x * n + x[::-1]) < n)
        assert c.name == "add" and d.name == "less" and d.dtype == bool
        a.sync()
    for n, c in made:
        np.testing.assert_array_equal(c[...], x * n + x[::-1])


def test_ranks_drop_at_different_times():
    a = pt.ones(100)
    held = []
    for n in range(30):
        c = a + n
        if n % pt.size() == pt.rank():
            held.append((n, c))
        if len(held) > 2:
            held.pop(0)
        assert all((k[...] == 1 + m).all() for m, k in held)
        a.sync()
    del c, held
    gc.collect()
    pt.world.collect()
    assert pt.world.collect() == 0


def test_puts_to_an_array_before_it_is_taken_over():
    a = pt.zeros(8 * pt.size())
    for n in range(20):
        c = a + 1
        if pt.rank() == n % pt.size():
            c[...] = np.full(a.shape, n)  # complete before the next access
        del c
        d = a + 2
        assert (d[...] == 2).all(), n
        a.sync()
        del d


def test_arrays_that_are_created_otherwise_are_zero():
    a = pt.ones(5000)
    for _ in range(5):
        b = a + 1
        del b
        for c in (pt.zeros(5000), pt.zeros_like(a), pt.zeros(10000, "f4")):
            assert not c[...].any()
            c.fill(3)


def test_ghost_cells_of_results_are_zero():
    if pt.size() > 4:
        pytest.skip("for few ranks")
    a = pt.ones(40, ghosts=1)
    for _ in range(3):
        b = a + 1
        with b.access() as mine:
            edge = mine.padded[0] if pt.rank() == 0 else 0
            assert edge == 0
            mine.padded[...] = 9
        del b


def test_other_distributions_and_dtypes_take_no_wrong_array():
    x = np.arange(48.0)
    for _ in range(3):
        for distribution in ("block", pt.cyclic((5,)), pt.irregular([0, 7][: pt.size()])):
            for dtype in ("f8", "f4", "i8"):
                a = pt.array(x.astype(dtype), distribution=distribution)
                b = a + a
                assert b.dtype == a.dtype and b.distribution == a.distribution
                np.testing.assert_array_equal(b[...], 2 * x)
                del a, b


def test_functions_of_small_integers_compute_in_float32():
    x = np.array([1, 2, 12, 80], np.uint8)
    a = pt.array(x)
    for f in (np.exp, np.sqrt, np.log1p, np.sin):
        found = f(a)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found[...], f(x.astype(np.float32)), rtol=1e-6)
    np.testing.assert_allclose(np.arctan2(a, a)[...], np.full(4, np.pi / 4), rtol=1e-6)
    assert np.ldexp(a, a).dtype == np.float32
    fraction, whole = np.modf(a)
    assert fraction.dtype == whole.dtype == np.float32


def test_kinds_of_scalars():
    for x in (np.arange(4, dtype=np.float32), np.arange(4, dtype=np.uint8), np.arange(4) > 1):
        a = pt.array(x)
        for value in (2, 2.5, True, 1j, np.float64(3), np.int8(1), np.float32(0.5), 2, 2.5):
            found, wanted = a * value, x * value
            assert found.dtype == (np.float32 if wanted.dtype == np.float16 else wanted.dtype)
            np.testing.assert_allclose(found[...], wanted, rtol=1e-3)


def test_sums_are_as_accurate_as_those_of_numpy():
    n = 1_000_000
    x = np.full(n, 0.1, np.float32)
    exact = n * float(np.float32(0.1))
    for array in (pt.array(x), pt.array(x.reshape(1000, 1000), distribution="rows", ghosts=(0, 1))):
        assert abs(float(array.sum()) / exact - 1) < 4e-7
        assert abs(float(np.vdot(array, array)) / (exact * float(np.float32(0.1))) - 1) < 4e-7
        assert abs(float(array.norm()) ** 2 / (exact * float(np.float32(0.1))) - 1) < 4e-7


@pytest.mark.parametrize("distribution", ["block", "rows", "cyclic"])
def test_positions_of_extrema_and_nans(distribution):
    random = np.random.default_rng(5)
    kind = pt.cyclic((3, 4)) if distribution == "cyclic" else distribution
    for shape in ((40, 30), (7, 300)):
        x = random.integers(0, 50, shape).astype(float)
        for nans in (0, 1, 3, x.size):
            x.flat[random.choice(x.size, nans, replace=False)] = np.nan
            a = pt.array(x, distribution=kind)
            assert a.argmax() == x.argmax() and a.argmin() == x.argmin()
            np.testing.assert_equal(a.max(), x.max())
            np.testing.assert_equal(a.min(), x.min())


def test_rows_move_as_blocks():
    x = np.arange(7 * 6 * 5.0).reshape(7, 6, 5)
    rows, mask = np.array([5, 0, -1, 5]), np.arange(7) % 3 == 0
    for distribution in ("block", "rows", pt.cyclic((2, 2, 2)), pt.irregular([0], [0, 2][: pt.size()], [0])):
        a = pt.array(x, distribution=distribution)
        for index in [rows, (rows, slice(1, 4)), (rows, ..., slice(0, 3)), mask, (rows, 2), (2, rows)]:
            np.testing.assert_array_equal(a[index], x[index])
        for index in [(slice(None), rows % 6), (rows, slice(None), rows % 5), (rows, slice(4, 1, -1))]:
            np.testing.assert_array_equal(a[index], x[index])
        a.sync()
        if pt.rank() == 0:
            a[rows[:3]] = -x[rows[:3]]
            a.add((rows, slice(2, 5)), x[rows, 2:5])
        a.sync()
        y = x.copy()
        y[rows[:3]] = -x[rows[:3]]
        np.add.at(y, (rows, slice(2, 5)), x[rows, 2:5])
        np.testing.assert_array_equal(a[...], y)


def address(x):
    with x.access() as mine:
        return mine.local.ctypes.data


def test_operators_take_over_temporary_operands():
    a = pt.full(300_000, 4.0)
    a + 1, 1 - a, -a, a * a  # the first call of its kind creates an array
    seen = []

    def noted(x):
        seen.append(address(x))
        return x

    for call, value in (
        (lambda: noted(np.sqrt(a)) + 1, 3),
        (lambda: 1 - noted(np.sqrt(a)), -1),
        (lambda: -noted(np.sqrt(a)), -2),
        (lambda: a * noted(np.sqrt(a)), 8),
        (lambda: noted(np.sqrt(a)) * np.sqrt(a), 4),
    ):
        c = call()
        assert address(c) == seen[-1]
        np.testing.assert_array_equal(c[::100_000], value)
    c = np.sqrt(a) + 1
    assert c.name == "add" and (c[...] == 3).all()


def test_operands_with_other_references_are_not_taken_over():
    a = pt.full(300_000, 4.0)
    for _ in range(2):
        b, some, objects = np.sqrt(a), [np.sqrt(a)], np.empty(2, object)
        objects[:] = np.sqrt(a), np.sqrt(a)
        results = b + 1, some[0] + 1, *(objects + 1), functools.reduce(operator.add, (b, *some))
        assert [c[7] for c in results] == [3, 3, 3, 3, 4]
        assert [x[7] for x in (b, *some, *objects)] == [2, 2, 2, 2]


def test_an_operand_that_one_rank_keeps_is_not_taken_over():
    a = pt.full(300_000, 4.0)
    a + 1
    for n in range(pt.size() + 1):
        kept = []

        def passed(x):
            if pt.rank() == n:
                kept.append(x)
            return x

        c = passed(np.sqrt(a)) + 1
        assert c[7] == 3 and all(x[7] == 2 for x in kept)
        a.sync()
