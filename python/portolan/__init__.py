"""Distributed arrays for NumPy programs that run on several ranks of MPI.

An array spans the memory of all ranks of a job. Any rank reads, writes and adds to any element by
global index, without the help of the rank that owns it::

    import numpy as np, portolan as pt

    a = pt.zeros((1000, 1000), ghosts=1, name="plate")
    a[2:5, :] = 1.0                # whoever owns the elements
    a.sync()                       # complete, and seen by all ranks
    x = a[100:200, ::2]            # a numpy.ndarray
    with a.access() as mine:       # own elements, without a copy
        mine.local[...] *= 2

The import selects the MPI library (see ``docs/python.md``), starts MPI unless the program has
started it, and starts the runtime, which is collective over all ranks of the job. At exit the
runtime ends, and MPI with it if the import started it.

Calls that are marked *collective* are made by all ranks of the array's group, in the same order.
An uncaught exception on one rank ends the job.
"""

from . import _start, fft, linalg, random
from ._alignment import realignments
from ._array import Access, Array, Transfer, cyclic, grid, irregular, stencil
from ._create import (
    array,
    empty,
    empty_like,
    full,
    full_like,
    load,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._files import from_hdf5, from_zarr
from ._gather import GatherWarning, warn_of_gathers
from ._group import Counter, Group, Mutex, WorkQueue, world
from ._ranges import arange, eye, fromfunction, identity, linspace, tri
from ._start import (
    Error,
    abort,
    mpi_library,
    node,
    node_ranks,
    nodes,
    rank,
    size,
)

__version__ = "0.1.0"


def barrier() -> None:
    """Complete the operations of all ranks and wait for all ranks. Collective."""
    world.barrier()


__all__ = [
    "Access",
    "Array",
    "Counter",
    "Error",
    "GatherWarning",
    "Group",
    "Mutex",
    "Transfer",
    "WorkQueue",
    "abort",
    "arange",
    "array",
    "barrier",
    "cyclic",
    "empty",
    "empty_like",
    "eye",
    "fft",
    "from_hdf5",
    "from_zarr",
    "fromfunction",
    "full",
    "full_like",
    "grid",
    "identity",
    "irregular",
    "linalg",
    "linspace",
    "load",
    "mpi_library",
    "node",
    "node_ranks",
    "nodes",
    "ones",
    "ones_like",
    "random",
    "rank",
    "realignments",
    "size",
    "stencil",
    "tri",
    "warn_of_gathers",
    "world",
    "zeros",
    "zeros_like",
]
