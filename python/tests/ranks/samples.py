"""Distributions to try, the comparison with NumPy, and tests whose ranks race on purpose."""

import os

import numpy as np
import pytest

import portolan as pt


def races(reason):
    """Skip a test if PORTOLAN_CHECK would report its accesses."""
    return pytest.mark.skipif(os.environ.get("PORTOLAN_CHECK", "0") not in ("", "0"), reason=reason)


def same(found, expected):
    assert isinstance(found, pt.Array) and found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found[...], expected)


def distributions(shape, ranks=None):
    n, ndim = ranks or pt.size(), len(shape)
    starts = [min(m, shape[0]) for m in (0, 1, 1, 4)[:n]]
    return [
        "block",
        "rows",
        pt.grid(*(1,) * (ndim - 1), n),
        pt.irregular(starts, *[[0]] * (ndim - 1)),
        pt.cyclic((2,) * ndim),
        pt.cyclic((1,) * ndim),
    ]
