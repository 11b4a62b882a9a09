"""Accesses: views, their lifetime, ghost cells, stencils."""

import contextlib
import gc
import threading

import numpy as np
import pytest

import portolan as pt


def test_views_are_read_only_after_the_access():
    a = pt.zeros((6, 8), name="plate")
    with a.access() as mine:
        view, padded = mine.local, mine.padded
        view[...] = 1
    a.sync()
    assert (view == 1).all() and (padded == 1).all()
    for late in (view, padded, view[:1].T):
        with pytest.raises(ValueError, match="read-only"):
            late[...] = 2
    # The memory is that of the array.
    a.fill(3)
    assert (view == 3).all() and a.norm() > 0
    with a.access() as mine:
        mine.local[...] = 4
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 5
    assert (view == 4).all()
    with pytest.raises(BufferError, match="plate.*alive"):
        a.free()
    del view, padded, late
    a.free()


def test_an_access_ends_once():
    a = pt.zeros((6, 8))
    mine = a.access()
    mine.release()
    mine.release()
    with pytest.raises(pt.Error, match="released"):
        mine.local


def test_many_views_of_an_access():
    a = pt.zeros(8 * pt.size())
    with a.access() as mine:
        kept = [mine.local for _ in range(50)]
        for _ in range(200):
            mine.local[...] += 1
    assert (a[...] == 200).all()
    assert not any(view.flags.writeable for view in kept)


def test_views_outlive_the_array_object():
    a = pt.full((6, 8), 3.0)
    view = a.access().local
    del a
    gc.collect()
    pt.world.collect()
    assert (view == 3.0).all()
    view[...] = 4.0
    assert (view == 4.0).all()


def test_writes_are_refused_during_an_access():
    a = pt.zeros((6, 8), name="plate")
    with a.access() as mine:
        for write in (
            lambda: a.__setitem__(0, 1.0),
            lambda: a.add(0, 1.0),
            lambda: a.fill(1.0),
            lambda: a.copy_from(pt.zeros((6, 8))),
            lambda: a.access(),
            lambda: a.start_put(0, 1.0),
        ):
            with pytest.raises(pt.Error, match="access"):
                write()
        assert a[5, 7] == 0
        del mine


def test_an_exception_leaves_the_block_at_once():
    a = pt.zeros(4)
    with pytest.raises(KeyError):
        with a.access() as mine:
            raise KeyError("on every rank")
    with pytest.raises(pt.Error, match="access"):
        a[0] = 1
    mine.release()
    if pt.rank() == 0:
        a[0] = 1


def leave(a, raises):
    """Leave the block of an access, by an exception if asked to."""
    with pytest.raises(KeyError) if raises else contextlib.nullcontext():
        with a.access() as mine:
            mine.local[...] += 1
            if raises:
                raise KeyError("in the block")


CALLS = {
    "sync": lambda a: a.sync(),
    "access": lambda a: a.access().release(),
    "ufunc": lambda a: a + 1,
    "fill": lambda a: a.fill(1),
    "sum": lambda a: a.sum(),
    "axis": lambda a: a.sum(axis=0),
    "norm": lambda a: a.norm(),
    "max": lambda a: a.max(),
    "dot": lambda a: a.dot(a),
    "matmul": lambda a: a @ a,
    "copy": lambda a: a.copy(),
    "like": lambda a: pt.zeros_like(a),
    "astype": lambda a: a.astype(int),
    "transpose": lambda a: a.T,
    "redistribute": lambda a: a.redistribute("rows"),
    "tiles": lambda a: a.tiles((1, 1)),
    "ghosts": lambda a: a.update_ghosts(),
    "free": lambda a: a.free(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("which", ["all", "first"])
def test_the_next_collective_call_ends_an_access_that_was_left(call, which):
    a = pt.ones((4, 4))
    leave(a, which == "all" or pt.rank() == 0)
    CALLS[call](a)
    if call != "free":
        if pt.rank() == 0:
            a[0, 0] = 5
        a.sync()
        assert a[0, 0] == 5 and a[3, 3] in (1, 2)


def test_an_access_that_was_left_does_not_end_the_next_one():
    a = pt.zeros((3, 3))
    with pytest.raises(KeyError):
        with a.access() as left:
            raise KeyError("in the block")
    with a.access() as mine:
        left.release()
        with pytest.raises(pt.Error, match="released"):
            left.local
        mine.local[...] = 2
        with pytest.raises(pt.Error, match="access"):
            a[0] = 1
    assert a.sum() == 18


def test_a_view_that_is_alive_after_an_exception():
    a = pt.zeros((3, 3), name="plate")
    with pytest.raises(KeyError):
        with a.access() as mine:
            view = mine.local
            raise KeyError("in the block")
    a.fill(2)
    assert a.norm() == 6
    with pytest.raises(ValueError, match="read-only"):
        view[...] = 1


def test_threads_call_one_at_a_time():
    a, total = pt.zeros(4, "i8"), 200
    x = pt.ones((40 * pt.size(), 5))
    errors = []

    def other(n):
        try:
            for k in range(total):
                a.add(n, 1)
                a.fetch_add(3, 1)
                if k % 20 == 0:
                    assert x[0, 0] == 1 and x.shape[1] == 5
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=other, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    # Collective calls of one thread meanwhile.
    for _ in range(30):
        assert x.sum() == x.size
    for thread in threads:
        thread.join()
    assert not errors
    a.sync()
    assert a.tolist() == [total * pt.size()] * 3 + [3 * total * pt.size()]


def test_another_thread_makes_the_collective_calls():
    found = []

    def other():
        with (made := pt.zeros(6 * pt.size())).access() as mine:
            mine.local[...] = 2
        found.append((made.sum(), pt.world.sum(1)))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [(12 * pt.size(), pt.size())]


def test_a_mutex_belongs_to_the_rank():
    mutex, errors = pt.Mutex(), []

    def other():
        try:
            mutex.acquire()
        except pt.Error as error:
            errors.append(str(error))

    with mutex:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert errors and "already holds" in errors[0]


def test_ghost_cells():
    n = 4 * pt.size()
    x = np.arange(n * 6.0).reshape(n, 6)
    a = pt.array(x, ghosts=1, periodic=(False, True), distribution="rows")
    rows = a.bounds()[0]
    with a.access() as mine:
        mine.update_ghosts()
        low = 1 if rows.start > 0 else 0
        high = 1 if rows.stop < n else 0
        expected = np.take(x[rows.start - low : rows.stop + high], range(-1, 7), axis=1, mode="wrap")
        np.testing.assert_array_equal(mine.padded[1 - low : 1 + len(expected) - low], expected)
        mine.local[...] += 1
        mine.start_update()
        mine.finish_update()
        np.testing.assert_array_equal(mine.padded[1 - low : 1 + len(expected) - low], expected + 1)


def laplace(old, new, first):
    new[...] = (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 4


def test_views_wait_for_the_ghost_cells():
    n = 4 * pt.size()
    x = np.arange(n * 6.0).reshape(n, 6)
    a = pt.array(x, ghosts=1, periodic=True, distribution="rows")
    rows = a.bounds()[0]
    expected = np.take(x, range(rows.start - 1, rows.stop + 1), axis=0, mode="wrap")
    expected = np.pad(expected, ((0, 0), (1, 1)), mode="wrap")
    looks = (
        lambda mine: mine.padded.copy(),
        lambda mine: mine.local.copy(),
        lambda mine: mine.indices(0),
        lambda mine: mine.start_update(),
        lambda mine: mine.update_ghosts(),
        lambda mine: None,
    )
    for look in looks:
        with a.access() as mine:
            mine.padded[[0, -1]] = -1
            mine.start_update()
            found = look(mine)
            if look is looks[0]:
                np.testing.assert_array_equal(found, expected)
        with a.access() as mine:
            np.testing.assert_array_equal(mine.padded, expected)
    with a.access() as mine:
        view = mine.local
        with pytest.raises(BufferError, match="alive"):
            mine.start_update()
        del view


@pytest.mark.parametrize("which", ["all", "first"])
def test_an_exception_during_an_update(which):
    a = pt.ones((4 * pt.size(), 3), ghosts=1, periodic=True)
    with pytest.raises(KeyError) if which == "all" or pt.rank() == 0 else contextlib.nullcontext():
        with a.access() as mine:
            mine.padded[...] = 2
            mine.start_update()
            if which == "all" or pt.rank() == 0:
                raise KeyError("in the block")
    # The sum ends the access, and with it the update.
    assert a.sum() == 2 * a.size
    with a.access() as mine:
        assert (mine.padded == 2).all()


def test_stencils():
    x = np.random.default_rng(1).random((6 * pt.size(), 8))
    a, b = pt.array(x, ghosts=1, periodic=True), pt.zeros(x.shape)
    b = b.redistribute(pt.grid(*a.grid))
    pt.stencil(a, b, laplace)
    padded = np.pad(x, 1, mode="wrap")
    expected = np.empty_like(x)
    laplace(padded, expected, None)
    np.testing.assert_allclose(b[...], expected)


def test_queries_in_a_stencil_step():
    a = pt.zeros((8, 9), "f4", ghosts=1, name="plate", distribution="rows")
    b, asked = pt.zeros_like(a), []

    def step(old, new, first):
        for x in (a, b):
            asked.append((x.shape, x.ndim, x.size, len(x), x.ghosts, x.grid, x.dtype, x.group.rank, x.nbytes))
        asked.append((a.name, b.name, a.distribution))
        with pytest.raises(pt.Error, match="a stencil step"):
            a.bounds()
        with pytest.raises(pt.Error, match="a stencil step"):
            b.owner((0, 0))
        with pytest.raises(pt.Error, match="a stencil step"):
            a.sync()

    pt.stencil(a, b, step)
    mine = ((8, 9), 2, 72, 8, (1, 1), (pt.size(), 1), np.dtype("f4"), pt.rank(), 288)
    assert set(asked) <= {mine, ("plate", "plate", ("rows",)), ("plate", "unnamed", ("rows",))} and asked
    assert a.bounds() == b.bounds()


def test_what_a_stencil_step_may_not_do():
    a = pt.zeros((8 * pt.size(), 4), ghosts=1, distribution="rows")
    b = pt.zeros(a.shape, distribution="rows")
    kept = []
    with pytest.raises(ZeroDivisionError):
        pt.stencil(a, b, lambda *boxes: 1 // 0)
    pt.stencil(a, b, lambda o, n, first: kept.append(n))
    with pytest.raises(ValueError, match="read-only"):
        kept[0][...] = 1

    def write_old(o, n, first):
        o[...] = 1

    with pytest.raises(ValueError, match="read-only"):
        pt.stencil(a, b, write_old)
    with pytest.raises(pt.Error, match="progress"):
        pt.stencil(a, b, lambda o, n, first: a[0, 0])
    with pytest.raises(TypeError):
        pt.stencil(a, pt.zeros(a.shape, "i4", distribution="rows"), laplace)


def test_transfers_in_progress_keep_the_array():
    a = pt.ones((6, 8), name="plate")
    get = a.start_get(np.s_[1:3])
    with pytest.raises(BufferError, match="plate"):
        a.free()
    with pytest.raises(BufferError, match="plate"):
        a.access()
    assert (get.wait() == 1).all() and get.done()
    with pytest.raises(pt.Error):
        get.wait()
    a.sync()
    if pt.rank() == 0:
        put = a.start_put(np.s_[1:3], 5.0)
        del put
    a.sync()
    assert a[2, 2] == 5
    get = a.start_get(np.s_[::-1, 3])
    del a
    pt.world.collect()
    assert get.wait()[3] == 5


def test_arrays_are_usable_after_a_step_that_raises():
    a, b = pt.ones((8, 4), ghosts=1), pt.zeros((8, 4), ghosts=1)

    def step(old, new, first):
        new[...] = old[1:-1, 1:-1]
        raise NameError("in the step")

    with pytest.raises(NameError, match="in the step"):
        pt.stencil(a, b, step)
    with pytest.raises(TypeError):
        pt.stencil(a, pt.zeros((8, 4), "i4", ghosts=1), step)
    a.fill(2)
    a.free()
    b.free()


def test_ghost_cells_beyond_open_edges_are_zero():
    dirty = pt.full((60,), 7.0, ghosts=1)
    with dirty.access() as mine:
        mine.padded[...] = 7
    dirty.free()
    a = pt.ones((60,), ghosts=1)
    for b in (pt.array(np.ones(60), ghosts=1), a.copy(), a.astype("f4"), a + 1, pt.empty(60, ghosts=1)):
        with b.access() as mine:
            edges = [n for n, rank in ((0, 0), (-1, pt.size() - 1)) if pt.rank() == rank]
            assert [mine.padded[n] for n in edges] == [0] * len(edges)


def test_own_elements_are_assigned():
    a = pt.ones((6, 8), ghosts=1, distribution="rows")
    with a.access() as mine:
        mine.local += 1
        mine.padded *= 3
        shape = mine.local.shape
    np.testing.assert_array_equal(a[...], np.full((6, 8), 6.0))
    a.sync()
    with a.access() as mine:
        mine.local = np.arange(8)
        with pytest.raises(ValueError, match="broadcast"):
            mine.local = np.zeros((shape[0], 9))
    np.testing.assert_array_equal(a[...], np.tile(np.arange(8.0), (6, 1)))
    with pytest.raises(pt.Error, match="released"):
        mine.local += 1
