"""The times of whole-array operations and index arrays on two ranks of a node.

    mpiexec -n 2 python arrays.py [--elements N]

Compares distributed arrays with NumPy on half of the elements, and index arrays with NumPy and with
an exchange by hand (`Alltoallv` of mpi4py). Prints the side, the call and the milliseconds: the
medians of alternating rounds, of the slower rank. `scripts/bench.py numpy` runs this program.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import portolan as pt

ROUNDS = 9


def measure(sides):
    """Return the median time of each call, in milliseconds."""
    times = {side: [] for side in sides}
    for _ in range(ROUNDS + 1):
        for side, call in sides.items():
            pt.barrier()
            begun = time.perf_counter()
            call()
            spent = time.perf_counter() - begun
            times[side].append(pt.world.max(spent))
    return {side: statistics.median(all[1:]) * 1e3 for side, all in times.items()}


def whole_arrays(n):
    """Yield the name of each call, and the call on distributed arrays and in NumPy."""
    a, b, c = pt.full(n, 1.5), pt.full(n, 2.5), pt.zeros(n)
    half = n // pt.size()
    x, y, z = np.full(half, 1.5), np.full(half, 2.5), np.zeros(half)
    yield "a+b", lambda: a + b, lambda: x + y
    yield "add-out", lambda: np.add(a, b, out=c), lambda: np.add(x, y, out=z)
    yield "sqrt+1", lambda: np.sqrt(a) + 1, lambda: np.sqrt(x) + 1
    yield "sum", a.sum, lambda: pt.world.sum(x.sum())
    yield "dot", lambda: a.dot(b), lambda: pt.world.sum(x.dot(y))
    yield "norm", a.norm, lambda: pt.world.sum(np.linalg.norm(x))
    yield "argmax", a.argmax, lambda: pt.world.sum(x.argmax())


def rows():
    x = np.random.default_rng(0).random((20_000, 500))
    a, i = pt.array(x, distribution="rows"), np.random.default_rng(1).integers(0, 20_000, 2000)
    mask, values = np.isin(np.arange(20_000), i), x[i]
    yield "rows", lambda: a[i], lambda: x[i]
    yield "mask-of-rows", lambda: a[mask], lambda: x[mask]
    yield "put-rows", lambda: a.__setitem__(i, values), lambda: x.__setitem__(i, values)


class Exchange:
    """Random elements of a vector, moved by Alltoallv."""

    def __init__(self, MPI, n, i, x):
        self.MPI, self.comm = MPI, MPI.COMM_WORLD
        self.i, self.x, self.each = i, x, n // pt.size()
        self.own = np.zeros(self.each)

    def send_indices(self):
        owners = self.i // self.each
        self.order = np.argsort(owners, kind="stable")
        self.counts = np.bincount(owners, minlength=pt.size())
        self.theirs = np.empty_like(self.counts)
        self.comm.Alltoall(self.counts, self.theirs)
        there = np.empty(self.theirs.sum(), self.i.dtype)
        self.move(self.i[self.order], self.counts, there, self.theirs, self.MPI.INT64_T)
        return there - pt.rank() * self.each

    def move(self, source, counts, target, theirs, kind):
        starts = [np.concatenate([[0], np.cumsum(n)[:-1]]) for n in (counts, theirs)]
        self.comm.Alltoallv([source, counts, starts[0], kind], [target, theirs, starts[1], kind])

    def get(self):
        values = self.own[self.send_indices()]
        back, found = np.empty(len(self.i)), np.empty(len(self.i))
        self.move(values, self.theirs, back, self.counts, self.MPI.DOUBLE)
        found[self.order] = back
        return found

    def add(self):
        there = self.send_indices()
        values = np.empty(len(there))
        self.move(self.x[self.order], self.counts, values, self.theirs, self.MPI.DOUBLE)
        np.add.at(self.own, there, values)


def elements(n):
    try:
        from mpi4py import MPI
    except ImportError:
        return
    random = np.random.default_rng(pt.rank())
    i, x = random.integers(0, n, n), random.random(n)
    a, by_hand = pt.zeros(n), Exchange(MPI, n, i, x)

    def add():
        a.add(i, x)
        a.sync()

    yield "get-elements", lambda: a[i], by_hand.get
    yield "add-elements", add, by_hand.add


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=10_000_000)
    n = parser.parse_args().elements
    for other, calls in [("numpy", whole_arrays(n)), ("numpy", rows()), ("alltoallv", elements(n // 10))]:
        for name, ours, theirs in calls:
            for side, found in measure({"portolan": ours, other: theirs}).items():
                if pt.rank() == 0:
                    print(f"{side} {name} {found:.4f}", flush=True)


if __name__ == "__main__":
    main()
