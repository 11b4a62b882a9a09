"""Calls of the ScaLAPACK that the system has for the MPI of the process.

ScaLAPACK stores the own elements of a rank column by column, and an array stores them row by row. So
an array with the distribution `cyclic((b, b), (p, q))` is, without a copy, the transpose of a matrix
of ScaLAPACK in blocks of b x b on a grid of q x p processes. `matrices` passes arrays in this form.

Invariants: all arrays of a call have the same group, grid and blocks, and every rank of the group is
in the grid. A rank raises before a routine, or after it, together with all others: a routine
communicates, so the other ranks would wait for one that is missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np

from . import _mpi
from ._operands import Agreement

#: The letters of ScaLAPACK's names for the types of elements.
LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}

_loaded: Optional[tuple[Any, Any, str]] = None


def _libraries(kind: str, mpi: str) -> Iterator[str]:
    """Yield the ScaLAPACK libraries that were linked with the MPI of an interface."""
    directories = [os.path.join(sys.prefix, "lib"), os.path.dirname(os.path.realpath(mpi))]
    directories += [x for x in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if x]
    directories += [*sorted(glob.glob("/usr/lib/*-linux-gnu")), "/usr/lib64", "/usr/lib", "/usr/local/lib"]
    for directory in dict.fromkeys(directories):
        for name in (f"libscalapack-{kind}.so*", "libscalapack.so*"):
            for path in sorted(glob.glob(os.path.join(glob.escape(directory), name))):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    content = file.read()
                    if any(needed.encode() in content for needed in _mpi.LIBRARIES[kind]):
                        yield path


def library() -> tuple[Any, Any, str]:
    """Load ScaLAPACK. Return it, the MPI and its interface. Raises ImportError if there is none."""
    global _loaded
    if _loaded is not None:
        return _loaded
    kind, path = _mpi.already_loaded() or ("", "")
    failures = []
    for found in _libraries(kind, path) if kind else ():
        try:
            _loaded = ctypes.CDLL(found), ctypes.CDLL(path), kind
            return _loaded
        except OSError as error:
            failures.append(str(error))
    name = {"mpich": "MPICH", "openmpi": "Open MPI"}.get(kind, "this MPI")
    package = f"libscalapack-{kind}-dev" if kind in ("mpich", "openmpi") else "ScaLAPACK"
    raise ImportError(
        "linear algebra of distributed matrices needs ScaLAPACK, and there is none for "
        f"{name} ({path}){''.join('; ' + text for text in failures)}; install it (Debian's package "
        f"{package}), or put its directory into LD_LIBRARY_PATH, or use numpy.asarray() of the matrix"
    )


def _communicator(members: Sequence[int]) -> Any:
    """Create a communicator of ranks of the job. Collective over these ranks."""
    _, mpi, kind = library()
    handle: Any = ctypes.c_int if kind == "mpich" else ctypes.c_void_p
    if kind == "openmpi":
        world = handle(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
    else:
        world = handle(0x44000000 if kind == "mpich" else 0x101)
    every, ranks, comm = handle(), handle(), handle()
    numbers = (ctypes.c_int * len(members))(*members)
    mpi.MPI_Comm_group(world, ctypes.byref(every))
    mpi.MPI_Group_incl(every, len(members), numbers, ctypes.byref(ranks))
    mpi.MPI_Comm_create_group(world, ranks, 0, ctypes.byref(comm))
    mpi.MPI_Group_free(ctypes.byref(every))
    mpi.MPI_Group_free(ctypes.byref(ranks))
    return comm


class Matrix:
    """The transpose of an array during an access, as an argument of ScaLAPACK."""

    def __init__(self, array: Any, context: int, access: Any) -> None:
        local, block = access.local, array._spec[1][0]
        #: The shape of the matrix, and the rows and columns of which this rank has elements.
        self.shape, (self.columns, self.rows) = array.shape[::-1], local.shape
        self.block, self.dtype, self.address = block, array.dtype, local.ctypes.data
        #: The type, context, shape, blocks, first process and leading dimension.
        self.descriptor = np.array(
            [1, context, *self.shape, block, block, 0, 0, max(self.rows, 1)], np.intc
        )


@contextlib.contextmanager
def matrices(*arrays: Any) -> Iterator[list[Matrix]]:
    """Give ScaLAPACK exclusive access to the transposes of arrays. Collective."""
    group, grid = arrays[0].group, arrays[0].grid
    with Agreement(group):
        scalapack, mpi, _ = library()
    comm = _communicator(group.members)
    system = scalapack.Csys2blacs_handle(comm)
    context = ctypes.c_int(system)
    scalapack.Cblacs_gridinit(ctypes.byref(context), b"C", int(grid[1]), int(grid[0]))
    accesses: list[Any] = []
    try:
        for array in arrays:
            accesses.append(array.access())
        yield [Matrix(array, context.value, access) for array, access in zip(arrays, accesses)]
    finally:
        for access in accesses:
            access.release()
        scalapack.Cblacs_gridexit(context)
        scalapack.Cfree_blacs_system_handle(system)
        mpi.MPI_Comm_free(ctypes.byref(comm))


def call(name: str, *arguments: Any) -> int:
    """Call a routine, whose last argument is INFO, and return INFO.

    `?` in the name is replaced by the letter of the first matrix. Characters are bytes.
    """
    letter = LETTERS[next(x for x in arguments if isinstance(x, Matrix)).dtype.str[1:]]
    values: list[Any] = []
    lengths: list[Any] = []
    for x in arguments:
        if isinstance(x, Matrix):
            one = ctypes.byref(ctypes.c_int(1))
            values += [ctypes.c_void_p(x.address), one, one, ctypes.c_void_p(x.descriptor.ctypes.data)]
        elif isinstance(x, bytes):
            values.append(ctypes.c_char_p(x))
            lengths.append(ctypes.c_size_t(len(x)))
        elif isinstance(x, np.ndarray):
            values.append(ctypes.c_void_p(x.ctypes.data))
        else:
            values.append(ctypes.byref(ctypes.c_int(x)))
    info = ctypes.c_int(0)
    getattr(library()[0], name.replace("?", letter) + "_")(*values, ctypes.byref(info), *lengths)
    if info.value < 0:
        raise RuntimeError(f"{name} refuses argument {-info.value}; please report it")
    return info.value


def call_with_workspaces(
    group: Any, name: str, arguments: Sequence[Any], kinds: Sequence[Any], rest: Sequence[Any] = ()
) -> int:
    """Call a routine that takes workspaces of some dtypes, each with its length, after its arguments.

    The routine is first asked for the lengths. Those of the eigenvalue problem are too short if a
    matrix has few blocks (ScaLAPACK 2.2), so each gets some more. If one rank lacks memory, all raise.
    """
    x = next(x for x in arguments if isinstance(x, Matrix))
    more = 2 * x.block * (x.rows + x.columns + x.block) + 4 * sum(x.shape)
    work = [np.zeros(1, kind) for kind in kinds]
    call(name, *arguments, *[x for w in work for x in (w, -1)], *rest)
    with Agreement(group):
        # A length of type float32 may be rounded down.
        lengths = [int(w[0].real * (1 + 1e-6)) + more for w in work]
        work = [np.empty(n, kind) for n, kind in zip(lengths, kinds)]
    return call(name, *arguments, *[x for w in work for x in (w, len(w))], *rest)
