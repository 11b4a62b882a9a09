"""Creation: dtypes, distributions, ghost cells, errors; freeing."""

import gc
import threading

import numpy as np
import pytest

import portolan as pt

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype_holds_its_values(dtype):
    x = (np.arange(24).reshape(4, 6) % 100).astype(dtype)
    a = pt.array(x)
    assert a.dtype == x.dtype and a.shape == x.shape and a.size == 24 and a.nbytes == x.nbytes
    np.testing.assert_array_equal(a[...], x)
    assert type(a[1, 2]) is type(x[1, 2]) and a[1, 2] == x[1, 2]
    a.sync()
    if pt.rank() == pt.size() - 1:
        a[0, 0] = 7
        a[1] = 3
    a.sync()
    assert a[0, 0] == 7 and (a[1] == 3).all()


def distributions():
    n = pt.size()
    cut = [0, 1, 5, 9][:n]
    return ["block", "rows", pt.grid(n, 1), pt.grid(1, n), pt.irregular(cut, [0]), pt.cyclic((2, 3))]


@pytest.mark.parametrize("number", range(6))
def test_each_distribution_holds_the_same_elements(number):
    x = np.arange(11 * 13.0).reshape(11, 13)
    a = pt.array(x, distribution=distributions()[number])
    np.testing.assert_array_equal(a[...], x)
    assert a.owners(np.s_[...]) == sorted({a.owner((i, j)) for i in range(11) for j in range(13)})
    for rank in range(pt.size()):
        bounds = a.bounds(rank)
        if bounds is not None and x[bounds].size:
            assert a.owners(bounds) == [rank]


def test_functions_of_creation():
    assert (pt.zeros(5)[...] == 0).all() and pt.zeros(5).shape == (5,)
    assert (pt.ones((2, 3), "i4")[...] == 1).all()
    full = pt.full((3, 3), 2 + 1j)
    assert full.dtype == complex and full[2, 2] == 2 + 1j
    like = pt.zeros_like(full, "f4", name="like")
    assert (like.shape, like.dtype, like.name) == ((3, 3), np.float32, "like")
    assert pt.empty_like(full).dtype == complex
    assert "'like'" in repr(like)


@pytest.mark.parametrize(
    "arguments, options, error",
    [
        (((),), {}, ValueError),
        (((-1, 2),), {}, ValueError),
        (((3,), "U5"), {}, TypeError),
        (((3,), "f2"), {}, TypeError),
        (((3,), ">f2"), {}, TypeError),
        (((3,),), {"distribution": "diagonal"}, ValueError),
        (((3, 3),), {"distribution": pt.grid(50, 50)}, ValueError),
        (((3, 3),), {"ghosts": (1,)}, ValueError),
        (((3, 3),), {"ghosts": -1}, ValueError),
        (((3, 3),), {"ghosts": 9, "periodic": True}, ValueError),
        (((3.5,),), {}, TypeError),
        ((3.5,), {}, TypeError),
        (((3,),), {"distribution": ()}, ValueError),
        (((3,),), {"distribution": 3}, ValueError),
    ],
)
def test_refused_arguments(arguments, options, error):
    with pytest.raises(error):
        pt.zeros(*arguments, name="refused", **options)


def test_memory_that_no_machine_has():
    with pytest.raises((MemoryError, ValueError)):
        pt.zeros((1 << 40, 1 << 10))


def test_a_freed_array_is_refused():
    a = pt.zeros(4)
    a.free()
    a.free()
    with pytest.raises(pt.Error, match="freed"):
        a[0]


def test_dropped_arrays_are_freed():
    pt.world.collect()
    for _ in range(3):
        pt.zeros(100)
    gc.collect()
    pt.barrier()
    # The creation of each array has freed the one before it.
    assert pt.world.collect() == 1
    a = pt.zeros(4)
    kept = a if pt.rank() == 0 else None
    del a
    assert pt.world.collect() == 0
    assert kept is None or kept[0] == 0
    del kept
    assert pt.world.collect() == 1


def test_dropped_counters_and_mutexes_are_freed():
    pt.world.collect()
    for i in pt.WorkQueue(np.int64(4)):
        assert 0 <= i < 4
    pt.Counter()
    pt.Mutex()
    pt.barrier()
    gc.collect()
    assert pt.world.collect() == 1
    assert pt.world.collect() == 0


def test_arrays_that_another_thread_drops_are_freed():
    pt.world.collect()
    held = [pt.zeros(5) for _ in range(3)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert pt.world.collect() == 3


def test_no_dtype_is_that_of_numpy():
    for create in (pt.zeros, pt.ones, pt.empty):
        assert create(3, None).dtype == np.float64
    assert pt.full(3, 1, None).dtype == np.full(3, 1, None).dtype


def test_conversions_of_one_element():
    a = pt.full((1, 1), 2.5)
    assert float(a) == 2.5 and int(a) == 2 and complex(a) == 2.5
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match="item"):
            convert(pt.ones(2))
    with pytest.raises(TypeError, match=r"a\.add\(index, value\)"):
        np.add.at(pt.ones(2), [0], 1)
