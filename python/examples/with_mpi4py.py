"""Portolan and mpi4py in one program: a histogram of values that mpi4py scatters.

    mpiexec -n 4 python with_mpi4py.py
"""

import sys

import numpy as np

try:
    from mpi4py import MPI
except ImportError as error:
    print(f"with_mpi4py: skipped, mpi4py does not work here: {error}")
    sys.exit(0)

import portolan as pt


def main():
    comm = MPI.COMM_WORLD
    values = None
    if comm.rank == 0:
        values = np.random.default_rng(1).normal(size=(comm.size, 1000))
    mine = np.empty(1000)
    comm.Scatter(values, mine, root=0)

    # Any rank adds to any bin; nobody receives.
    bins = pt.zeros(20, int, name="histogram")
    places = np.clip(((mine + 5) * 2).astype(int), 0, 19)
    bins.add(places, 1)
    bins.sync()
    everything = bins[...]

    counts = np.bincount(places, minlength=20)
    expected = np.empty_like(counts)
    comm.Allreduce(counts, expected)
    np.testing.assert_array_equal(everything, expected)

    # The ranks of one parity share an array of their own.
    half = comm.Split(comm.rank % 2, comm.rank)
    group = pt.Group.from_mpi4py(half)
    shared = pt.full(10, comm.rank % 2 + 1.0, group=group)
    assert shared.sum() == 10 * (comm.rank % 2 + 1)
    shared.free()
    group.free()
    half.Free()
    if comm.rank == 0:
        print(f"with_mpi4py: {everything.sum()} values in 20 bins, correct")


if __name__ == "__main__":
    main()
