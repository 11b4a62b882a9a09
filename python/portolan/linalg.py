"""Linear algebra: the functions of `numpy.linalg` of distributed arrays. All are collective.

`numpy.linalg.solve(a, b)` of a distributed array calls `solve` here, and the others likewise.
"""

from __future__ import annotations

import numpy as np

from ._factorizations import (
    EighResult,
    LinAlgError,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    eigh,
    eigvalsh,
    inv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from ._norms import matrix_norm, norm, vector_norm
from ._solutions import (
    cond,
    det,
    lstsq,
    matrix_power,
    matrix_rank,
    multi_dot,
    outer,
    pinv,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vector_norm",
]

#: The functions of numpy.linalg; some are new in NumPy 2.
FUNCTIONS = {
    getattr(np.linalg, name): globals()[name]
    for name in __all__
    if name[0].islower() and hasattr(np.linalg, name)
}
