"""Groups of ranks, counters, mutexes and work queues."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterator, Mapping, Sequence, Set
from types import TracebackType
from typing import Any, Optional, Union, cast

import numpy as np

from ._communicator import Communicator
from ._operands import Agreement
from ._start import _native, is_child
from ._values import source

Counter = _native.Counter


class Group(_native.Group, Communicator):  # type: ignore[misc,name-defined]
    """An ordered set of ranks that communicate collectively. `portolan.world` has all ranks.

    `Group(parent, ranks)` is `parent.subgroup(ranks)`, and raises Error on ranks that are not in the
    list. `Group(parent)` has all ranks of `parent` and equals it, and each of them is freed
    separately. Both are collective over the ranks of the new group. `Group()` is the world.
    """

    def __repr__(self) -> str:
        try:
            return f"<portolan.Group of the ranks {self.members}>"
        except _native.Error as error:
            return f"<portolan.Group: {error}>"

    def subgroup(self, ranks: Sequence[int]) -> Optional["Group"]:
        """Return the group of some ranks of this group. Collective over `ranks`.

        Returns None at once on ranks that are not in the list. The same ranks in the same order
        have one group, until it has been freed as often as it was requested. Raises ValueError for
        ranks outside this group, and for those that occur twice.
        """
        members = [operator.index(rank) for rank in ranks]
        for rank in members:
            if not 0 <= rank < self.size:
                raise ValueError(f"rank {rank} in a group of {self.size} ranks")
        if len(set(members)) < len(members):
            raise ValueError(f"a rank occurs twice in {members}")
        return Group(self, members) if self.rank in members else None

    def all_reduce(self, values: Any, op: str = "sum", *, _call: Optional[str] = None) -> Any:
        """Combine numbers or arrays of all ranks element by element. Collective.

        `op` is 'sum', 'prod', 'min', 'max', 'and', 'or' or 'xor'. All ranks pass the same shape and
        dtype, and get the same result. Sums and products of bools are integers, and minima and maxima
        with a NaN are NaN, as in NumPy.
        """
        values = np.asarray(values)
        if values.dtype == np.bool_ and op in ("sum", "prod"):
            values = values.astype(np.int64)
        values = source(values, values.dtype.newbyteorder("="), values.shape)
        combined = self._all_reduce(values, op, _call)
        return combined[()] if values.ndim == 0 else combined

    def sum(self, values: Any) -> Any:
        """Return the sums over all ranks. Collective."""
        return self.all_reduce(values, "sum")

    def min(self, values: Any) -> Any:
        """Return the minima over all ranks. Collective."""
        return self.all_reduce(values, "min")

    def max(self, values: Any) -> Any:
        """Return the maxima over all ranks. Collective."""
        return self.all_reduce(values, "max")

    def broadcast(self, value: Any = None, root: int = 0) -> Any:
        """Return the value of rank `root`, any object that can be pickled. Collective."""
        # All ranks raise if the value cannot be pickled.
        with Agreement(self):
            data = pickle.dumps(value) if self.rank == root else b""
        return pickle.loads(self._broadcast(data, root))

    def all_gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, any objects that can be pickled. Collective."""
        with Agreement(self):
            mine = pickle.dumps(value)
        return [pickle.loads(data) for data in self._all_gather(mine)]

    @staticmethod
    def from_mpi4py(comm: Any) -> "Group":
        """Create the group of the ranks of an mpi4py communicator. Collective over it.

        It equals `portolan.world` for COMM_WORLD and its duplicates.
        """
        from mpi4py import MPI

        ranks = MPI.Group.Translate_ranks(comm.group, list(range(comm.size)), MPI.COMM_WORLD.group)
        made = world.subgroup(list(ranks))
        assert made is not None
        return made

    def to_mpi4py(self) -> Any:
        """Create an mpi4py communicator of the ranks of this group. Collective over it."""
        from mpi4py import MPI

        return MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.group.Incl(self.members))


class _NoWorld:
    """The world of a child of multiprocessing, which is no rank of the job."""

    def __getattr__(self, name: str) -> Any:
        raise _native.Error(f"world.{name}: a child of multiprocessing is no rank of the job")


#: The group of all ranks.
world: Group = cast(Group, _NoWorld()) if is_child else Group()


class Mutex(_native.Mutexes):  # type: ignore[misc,name-defined]
    """A mutex that any rank can lock. A context manager. Creation is collective.

    The operations of the holder, to any rank, are complete before another rank gets the mutex.
    """

    def __new__(cls, group: Optional[Group] = None, owner: int = 0) -> "Mutex":
        ranks, owner = world if group is None else group, operator.index(owner)
        if not 0 <= owner < ranks.size:
            raise ValueError(f"owner {owner} in a group of {ranks.size} ranks")
        # Ranks that lock different mutexes do not exclude each other.
        low, high = ranks.all_reduce([owner, -owner], "min") * [1, -1]
        if low != high:
            raise ValueError(f"the ranks name different owners of a mutex, from {low} to {high}")
        self: Mutex = super().__new__(cls, int(ranks.rank == owner), group)
        self._owner = owner
        return self

    def acquire(self, blocking: bool = True) -> bool:
        """Lock the mutex and return True.

        Waits while another rank holds the mutex, and raises Error if this rank holds it already.
        With `blocking=False`, returns False instead of both.
        """
        if not blocking:
            return bool(self._try_lock(self._owner, 0))
        self._lock(self._owner, 0)
        return True

    def release(self) -> None:
        """Unlock the mutex."""
        self._unlock(self._owner, 0)

    def __enter__(self) -> "Mutex":
        self.acquire()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.release()


class WorkQueue:
    """Tasks that the ranks of a group share: each is handed out once. Creation is collective.

    `tasks` is a sequence that all ranks have, or the number of tasks. A rank takes `chunk` tasks at
    a time::

        for i in pt.WorkQueue(1000, chunk=10):
            a[i] = compute(i)

    The end of the iteration is not collective. The shared counter is freed like an array: after all
    ranks have dropped the queue.
    """

    def __init__(
        self,
        tasks: Union[int, np.integer[Any], Sequence[Any]],
        chunk: int = 1,
        group: Optional[Group] = None,
    ) -> None:
        chunk = operator.index(chunk)
        if chunk < 1:
            raise ValueError(f"chunks of {chunk} tasks")
        self._tasks: Sequence[Any]
        if isinstance(tasks, (int, np.integer)):
            self._tasks = range(int(tasks))
        elif hasattr(tasks, "__len__") and not isinstance(tasks, (Mapping, Set)):
            self._tasks = tasks
        else:
            kind = type(tasks).__name__
            raise TypeError(f"tasks are a sequence or their number, and not of type {kind}")
        # Ranks with fewer tasks would leave some of them to nobody.
        number = len(self._tasks)
        self._chunk, self._counter = chunk, Counter._described(f"WorkQueue({number} tasks)", group)

    def __iter__(self) -> Iterator[Any]:
        while True:
            first = self._counter.next(self._chunk)
            if first >= len(self._tasks):
                return
            yield from self._tasks[first : first + self._chunk]

    def free(self) -> None:
        """Free the shared counter. Collective."""
        self._counter.free()
