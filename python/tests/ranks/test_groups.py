"""Groups, reductions of values, counters, mutexes, work queues."""

import gc
import threading

import numpy as np
import pytest
from samples import races

import portolan as pt


def test_the_world():
    assert pt.world.rank == pt.rank() and pt.world.size == pt.size()
    assert pt.world.members == list(range(pt.size()))
    assert 0 <= pt.node() < pt.nodes() and pt.rank() in pt.node_ranks()
    pt.world.barrier()


def test_reductions_of_values():
    n, me = pt.size(), pt.rank()
    assert pt.world.sum(me) == n * (n - 1) // 2
    assert pt.world.max(float(me)) == n - 1 and pt.world.min(-me) == 1 - n
    assert pt.world.all_reduce(2, "prod") == 2**n
    x = pt.world.sum(np.full((2, 3), me + 1j))
    assert x.shape == (2, 3) and x[1, 2] == n * (n - 1) // 2 + n * 1j
    assert pt.world.all_reduce(np.uint8(1 << me), "or") == (1 << n) - 1
    with pytest.raises(TypeError):
        pt.world.max(1j)
    with pytest.raises(TypeError):
        pt.world.all_reduce(1.0, "xor")
    with pytest.raises(ValueError):
        pt.world.all_reduce(1, "mean")


def test_objects():
    value = {"rank": pt.rank(), "text": "x" * pt.rank()}
    assert [v["rank"] for v in pt.world.all_gather(value)] == list(range(pt.size()))
    last = pt.size() - 1
    assert pt.world.broadcast(value, root=last)["text"] == "x" * last
    with pytest.raises(ValueError):
        pt.world.broadcast(value, root=pt.size())


def test_the_words_of_mpi4py():
    world, n, me = pt.world, pt.size(), pt.rank()
    assert (world.Get_rank(), world.Get_size()) == (me, n)
    world.Barrier()
    assert world.bcast({"of": me}, root=n - 1) == {"of": n - 1}
    assert world.allgather(str(me)) == [str(rank) for rank in range(n)]
    assert world.allreduce(me) == n * (n - 1) // 2
    np.testing.assert_array_equal(world.allreduce(np.array([me, 1]), "max"), [n - 1, 1])
    with pytest.raises(TypeError, match="list"):
        world.allreduce([1, 2])
    with pytest.raises(TypeError, match="operator"):
        world.allreduce(1, sum)
    sums = np.zeros(2)
    world.Allreduce(np.array([me, 1.0]), sums)
    np.testing.assert_array_equal(sums, [n * (n - 1) / 2, n])
    data = np.full(3, float(me))
    world.Bcast(data, root=n - 1)
    assert (data == n - 1).all()
    # In the reverse order.
    group = world.Split(color=me % 2, key=-me)
    assert group.members == [rank for rank in range(n) if rank % 2 == me % 2][::-1]
    group.Free()
    one = world.Split(color=None if me else 3)
    assert one is None if me else one.members == [0]


def test_the_operators_of_mpi4py():
    MPI = pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    for name in ("SUM", "PROD", "MIN", "MAX", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR"):
        found, expected = [
            comm.allreduce(pt.rank() + 2, getattr(MPI, name)) for comm in (pt.world, MPI.COMM_WORLD)
        ]
        # mpi4py returns the value of a single rank as it is.
        assert (bool(found) == bool(expected)) if name.startswith("L") else found == expected, name
    with pytest.raises(TypeError, match="operator"):
        pt.world.allreduce(1, MPI.MAXLOC)
    own = np.array([1.0, 2.0])
    pt.world.Allreduce(MPI.IN_PLACE, own, op=MPI.SUM)
    np.testing.assert_array_equal(own, [pt.size(), 2 * pt.size()])
    one = pt.world.Split(color=MPI.UNDEFINED if pt.rank() else 3)
    assert one is None if pt.rank() else one.members == [0]


def test_subgroups():
    ranks = list(range(0, pt.size(), 2))
    group = pt.world.subgroup(ranks)
    assert (group is None) == (pt.rank() not in ranks)
    if group is not None:
        assert group.members == ranks and group.rank == ranks.index(pt.rank())
        a = pt.ones((6, 6), group=group, ghosts=0)
        assert a.sum() == 36 and a.group == group and (a + a).group == group
        assert group.sum(1) == len(ranks)
        a.free()
        group.free()
        with pytest.raises(pt.Error, match="freed"):
            group.barrier()
    with pytest.raises(ValueError):
        pt.world.subgroup([pt.rank(), 99])


def test_counters():
    counter = pt.Counter(start=5)
    taken = [counter.next() for _ in range(20)]
    taken = sorted(sum(pt.world.all_gather(taken), []))
    assert taken == list(range(5, 5 + 20 * pt.size()))
    assert counter.value == 5 + 20 * pt.size()
    pt.barrier()
    if pt.rank() == 0:
        counter.value = 0
    pt.barrier()
    assert counter.value == 0
    counter.free()
    with pytest.raises(pt.Error):
        counter.next()


@races("only a mutex orders the accesses")
def test_mutexes():
    mutex, a = pt.Mutex(owner=pt.size() - 1), pt.zeros(1, "i8")
    for _ in range(25):
        with mutex:
            a[0] = a[0] + 1
    a.sync()
    assert a[0] == 25 * pt.size()
    pt.barrier()
    if pt.rank() == 0:
        assert mutex.acquire(blocking=False)
        with pytest.raises(pt.Error):
            mutex.acquire()
        mutex.release()
        with pytest.raises(pt.Error):
            mutex.release()
    pt.barrier()
    mutex.free()
    with pytest.raises(ValueError):
        pt.Mutex(owner=99)


def test_work_queues():
    tasks = [f"task {i}" for i in range(50)]
    for chunk in (1, 7):
        mine = list(pt.WorkQueue(tasks, chunk))
        assert sorted(sum(pt.world.all_gather(mine), [])) == sorted(tasks)
    assert sorted(sum(pt.world.all_gather(list(pt.WorkQueue(9))), [])) == list(range(9))
    with pytest.raises(ValueError):
        pt.WorkQueue(5, chunk=0)


def test_communicators_of_mpi4py():
    # The wheel of mpi4py does not find the MPICH of Debian, whose library has another name.
    MPI = pytest.importorskip("mpi4py.MPI", exc_type=ImportError)
    assert pt.Group.from_mpi4py(MPI.COMM_WORLD) == pt.world
    copy = MPI.COMM_WORLD.Dup()
    group = pt.Group.from_mpi4py(copy)
    assert group == pt.world
    group.free()
    copy.Free()
    half = MPI.COMM_WORLD.Split(pt.rank() % 2, -pt.rank())
    group = pt.Group.from_mpi4py(half)
    assert (group.rank, group.size) == (half.rank, half.size)
    back = group.to_mpi4py()
    assert MPI.Comm.Compare(half, back) == MPI.CONGRUENT
    assert group.sum(pt.rank()) == back.allreduce(pt.rank())
    back.Free()
    half.Free()
    group.free()


def test_equal_groups_are_the_same():
    n = pt.size()
    every = pt.world.subgroup(range(n))
    again = pt.world.subgroup(iter(range(n)))
    assert every == again == pt.world and hash(every) == hash(again) == hash(pt.world)
    with pytest.raises(ValueError, match="all ranks"):
        pt.world.free()
    every.free()
    assert again.sum(1) == n
    with pytest.raises(pt.Error, match="freed"):
        every.barrier()
    assert "freed" in repr(every)
    again.free()
    backwards = pt.world.subgroup(range(n - 1, -1, -1))
    assert backwards.rank == n - 1 - pt.rank()
    backwards.free()


def test_a_group_of_all_ranks_of_another():
    n = pt.size()
    every = pt.Group(pt.world)
    assert every == pt.world and every.sum(1) == n
    every.free()
    with pytest.raises(pt.Error, match="freed"):
        every.barrier()
    backwards = pt.world.subgroup(range(n - 1, -1, -1))
    copy = pt.Group(backwards)
    assert copy == backwards and copy.members == backwards.members and copy.rank == backwards.rank
    copy.free()
    # Each is freed separately.
    assert backwards.sum(1) == n
    copy = pt.Group(parent=backwards)
    backwards.free()
    assert copy.sum(1) == n
    copy.free()
    for freed in (copy, backwards):
        with pytest.raises(pt.Error, match="freed"):
            pt.Group(freed)
    alone = pt.Group(pt.world, [pt.rank()])
    assert alone.members == [pt.rank()] and pt.Group(alone) == alone
    assert (alone == pt.Group()) == (n == 1)
    with pytest.raises(ValueError, match="all ranks"):
        pt.Group().free()


def test_a_group_in_another_thread():
    texts = []
    thread = threading.Thread(target=lambda: texts.append(repr(pt.world)))
    thread.start()
    thread.join()
    assert texts == [repr(pt.world)]


@pytest.mark.skipif(pt.size() == 1, reason="all lists of ranks are the world")
def test_groups_belong_to_no_thread():
    backwards = range(pt.size())[::-1]
    groups = []
    thread = threading.Thread(target=lambda: groups.append(pt.world.subgroup(backwards)))
    thread.start()
    thread.join()
    same = pt.world.subgroup(backwards)
    assert same == groups[0] and same.sum(1) == pt.size()
    same.free()
    groups.pop().free()


def test_dropped_groups_and_their_arrays_are_reused_and_freed():
    def use():
        group = pt.world.subgroup(range(pt.size()))
        pt.ones(1000, group=group, name="of a group")
        return group.sum(1)

    for _ in range(3000):
        assert use() == pt.size()
    del use
    assert pt.world.collect() >= 1
    assert pt.world.collect() == 0


def test_what_is_dropped_after_its_group_is_freed():
    n = pt.size()
    pt.world.collect()
    group = pt.world.subgroup(range(n - 1, -1, -1))
    a, counter, mutex = pt.ones(1000, group=group), pt.Counter(group=group), pt.Mutex(group)
    b = pt.ones(8, group=group)
    group.free()
    assert a.sum() == 1000 and counter.next() < n
    b.free()
    # The group of the same ranks is the same one again.
    again = pt.world.subgroup(range(n - 1, -1, -1))
    assert again.sum(1) == n
    again.free()
    del a, counter, mutex
    gc.collect()
    pt.barrier()
    # All are freed with the next object of the world.
    pt.zeros(4).free()
    assert pt.world.collect() == 0


def test_refused_subgroups():
    n = pt.size()
    for ranks, error in (([0, n], ValueError), ([-1], ValueError), ([0, 0], ValueError), (["a"], TypeError)):
        with pytest.raises(error):
            pt.world.subgroup(ranks)


def test_arrays_of_different_groups_are_refused():
    group = pt.world.subgroup(range(pt.size() - 1, -1, -1))
    a, b = pt.ones(4, group=group), pt.ones(4)
    if pt.size() > 1:
        with pytest.raises(ValueError, match="different groups"):
            a + b
    del a
    group.free()


@pytest.mark.parametrize("size", [1, 300, 40000])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_minima_with_nans(size, dtype):
    for owner in range(pt.size()):
        x = np.full(size, pt.rank(), dtype)
        x[size // 2] = np.nan if pt.rank() == owner else pt.rank()
        for found, plain in ((pt.world.min(x), 0), (pt.world.max(x), pt.size() - 1)):
            expected = np.full(size, plain, dtype)
            expected[size // 2] = np.nan
            np.testing.assert_array_equal(found, expected)


def test_refused_tasks_and_owners():
    for tasks in (1.5, None, {1: 2}, {1, 2}, (n for n in range(3))):
        with pytest.raises(TypeError, match="tasks are a sequence"):
            pt.WorkQueue(tasks)
    with pytest.raises(TypeError):
        pt.WorkQueue(3, chunk=1.5)
    with pytest.raises(TypeError):
        pt.Mutex(owner=0.5)
    if pt.size() > 1:
        with pytest.raises(ValueError, match="different owners"):
            pt.Mutex(owner=pt.rank())
