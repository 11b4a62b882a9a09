"""The times of gets and puts of two ranks on one node: Portolan for Python and mpi4py's windows.

    mpiexec -n 2 python transfers.py

Rank 0 transfers elements of rank 1. Prints the side, the call, the bytes and the nanoseconds of
each. `scripts/bench.py python` runs this program in alternation with the same calls in Rust.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import portolan as pt

SIZES = [8, 8 << 10, 1 << 20, 8 << 20]


def measure(call, budget=0.05):
    """Return the median time of a call, in nanoseconds."""
    begun = time.perf_counter()
    call()
    once = max(time.perf_counter() - begun, 1e-7)
    batch = max(1, int(1e-4 / once))
    times = []
    until = time.perf_counter() + budget
    while time.perf_counter() < until or len(times) < 5:
        begun = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - begun) / batch)
    return statistics.median(times) * 1e9


def portolan_calls(size):
    """Return the calls that rank 0 measures, by name."""
    n = size // 8
    a = pt.zeros((pt.size(), n), distribution="rows", name="measured")
    x, out = np.ones(n), np.empty(n)
    calls = {}
    if n == 1:
        calls["get"] = lambda: a[1, 0]
        calls["put"] = lambda: a.__setitem__((1, 0), 1.0)
    else:
        calls["get"] = lambda: a.get((1, slice(None)), out)
        calls["put"] = lambda: a.__setitem__(1, x)
    return a, calls


def mpi4py_calls(size, MPI):
    n = size // 8
    window = MPI.Win.Allocate(size, 8, comm=MPI.COMM_WORLD)
    window.Lock_all()
    x, out = np.ones(n), np.empty(n)

    def get():
        window.Get(out, 1)
        window.Flush(1)

    def put():
        window.Put(x, 1)
        window.Flush(1)

    return window, {"get": get, "put": put}


def main():
    if pt.size() != 2:
        raise SystemExit("transfers.py measures 2 ranks")
    try:
        from mpi4py import MPI

        MPI = MPI if MPI.COMM_WORLD.size == 2 else None
    except ImportError:
        MPI = None

    def report(side, size, calls):
        if pt.rank() == 0:
            for name, call in calls.items():
                print(side, name, size, f"{measure(call):.1f}")

    for size in SIZES:
        a, calls = portolan_calls(size)
        report("portolan", size, calls)
        a.sync()
        if MPI is not None:
            window, calls = mpi4py_calls(size, MPI)
            report("mpi4py", size, calls)
            MPI.COMM_WORLD.Barrier()
            window.Unlock_all()
            window.Free()
    pt.barrier()


if __name__ == "__main__":
    main()
