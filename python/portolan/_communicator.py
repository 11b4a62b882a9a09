"""The words of mpi4py's communicators for the operations of groups."""

from __future__ import annotations

import sys
from typing import Any, Optional

import numpy as np

#: The operators of groups by the names of MPI's.
_OPERATORS = {
    "SUM": "sum",
    "PROD": "prod",
    "MIN": "min",
    "MAX": "max",
    "LAND": "and",
    "BAND": "and",
    "LOR": "or",
    "BOR": "or",
    "LXOR": "xor",
    "BXOR": "xor",
}


def _mpi() -> Any:
    """Return mpi4py's module if the program has imported it."""
    return sys.modules.get("mpi4py.MPI")


class Communicator:
    """A base of `Group`. Operators are those of `all_reduce`, or mpi4py's, such as MPI.SUM."""

    rank: int
    size: int
    barrier: Any
    free: Any
    subgroup: Any
    _ranks_of_color: Any
    all_reduce: Any
    all_gather: Any
    broadcast: Any

    def Get_rank(self) -> int:
        """Return the number of this rank in the group."""
        return self.rank

    def Get_size(self) -> int:
        """Return the number of ranks."""
        return self.size

    def Barrier(self) -> None:
        """Complete the operations of all ranks of the group and wait for them. Collective."""
        self.barrier()

    def Free(self) -> None:
        """Free the group. Collective."""
        self.free()

    def Split(self, color: Optional[int] = 0, key: int = 0) -> Any:
        """Return the group of the ranks with the same color, in the order of their keys. Collective.

        Returns None for the color None or MPI.UNDEFINED.
        """
        if _mpi() is not None and color == _mpi().UNDEFINED:
            color = None
        ranks = self._ranks_of_color(color, key)
        return None if ranks is None else self.subgroup(ranks)

    def bcast(self, obj: Any = None, root: int = 0) -> Any:
        """Return the object of rank `root`; see `broadcast`. Collective."""
        return self.broadcast(obj, root)

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Fill a numpy array with that of rank `root`. Collective."""
        found = self.broadcast(buf if self.rank == root else None, root)
        if self.rank != root:
            buf[...] = found

    def allgather(self, sendobj: Any) -> list[Any]:
        """Return the objects of all ranks; see `all_gather`. Collective."""
        return list(self.all_gather(sendobj))

    def allreduce(self, sendobj: Any, op: Any = "sum") -> Any:
        """Combine numbers or numpy arrays of all ranks; see `all_reduce`. Collective."""
        if not isinstance(sendobj, (bool, int, float, complex, np.generic, np.ndarray)):
            raise TypeError(
                f"allreduce of type {type(sendobj).__name__}; it combines numbers and numpy arrays"
            )
        return self._combined(sendobj, op)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = "sum") -> None:
        """Combine numpy arrays of all ranks in `recvbuf`, also if `sendbuf` is MPI.IN_PLACE. Collective."""
        in_place = _mpi() is not None and sendbuf is _mpi().IN_PLACE
        recvbuf[...] = self._combined(recvbuf if in_place else sendbuf, op)

    def _combined(self, values: Any, op: Any) -> Any:
        name = op if isinstance(op, str) else next(
            (name for name in _OPERATORS if _mpi() is not None and op == getattr(_mpi(), name)), None
        )
        if name is None:
            raise TypeError(f"operator {op!r}; known are {', '.join(_OPERATORS)} of mpi4py.MPI")
        if name.startswith("L"):  # the logical ones
            values = np.asarray(values, bool)
        return self.all_reduce(values, _OPERATORS.get(name, name))
