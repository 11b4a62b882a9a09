"""The time of `import portolan` beyond MPI_Init, which NumPy's import does not count to.

    mpiexec -n 2 python start.py
"""

import time

import numpy  # noqa: F401

begun = time.perf_counter()
from portolan import _mpi  # noqa: E402  (the import of the package)

whole = time.perf_counter() - begun
import portolan as pt  # noqa: E402

if pt.rank() == 0:
    start = pt._start.start_seconds
    print(f"import {whole * 1e3:.1f} ms, of this {start * 1e3:.1f} ms start the runtime and MPI")
pt.barrier()
