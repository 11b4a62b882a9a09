"""The time of `import portolan` beyond MPI_Init and the import of NumPy.

    mpiexec -n 2 python start.py

mpi4py starts MPI first, so that the import finds it running.
"""

import time

import numpy  # noqa: F401
from mpi4py import MPI

MPI.COMM_WORLD.Barrier()
begun = time.perf_counter()
import portolan as pt  # noqa: E402

seconds = time.perf_counter() - begun
longest = pt.world.max(seconds)
if pt.rank() == 0:
    print(f"import {longest * 1e3:.1f} ms, required at most 50 ms")
