"""The namespace of the array API standard on several ranks. jobs/test_array_api.py runs the standard's tests."""

import numpy as np
import pytest

import portolan as pt
from samples import same

if not hasattr(np, "unstack"):
    pytest.skip("NumPy before 2.1", allow_module_level=True)

import portolan.array_api as xp  # noqa: E402

RNG = np.random.default_rng(3)


def test_the_namespace_of_arrays():
    a = pt.zeros(3)
    assert a.__array_namespace__() is xp and a.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="1999"):
        a.__array_namespace__(api_version="1999.01")
    assert all(hasattr(xp, name) for name in xp.__all__)
    info = xp.__array_namespace_info__()
    assert info.capabilities()["max dimensions"] == 16 and info.default_device() == a.device
    for dtype in info.dtypes().values():
        assert xp.ones(2, dtype=dtype).dtype == dtype


def test_creation():
    x = RNG.random((5, 4))
    for found, expected in (
        (xp.asarray(x), x),
        (xp.asarray(x, dtype=xp.float32), x.astype("f4")),
        (xp.astype(xp.asarray(x), xp.int64), x.astype(int)),
        (xp.from_dlpack(x), x),
        (xp.zeros((2, 3)), np.zeros((2, 3))),
        (xp.ones(4, dtype=xp.int8), np.ones(4, "i1")),
        (xp.full((2,), 5), np.full(2, 5)),
        (xp.full_like(xp.zeros(3), 2), np.full(3, 2.0)),
        (xp.zeros_like(xp.asarray(x), dtype=xp.int16), np.zeros((5, 4), "i2")),
        (xp.arange(1, 7, 2), np.arange(1, 7, 2)),
        (xp.linspace(0, 1, 5), np.linspace(0, 1, 5)),
        (xp.eye(3, k=1), np.eye(3, k=1)),
        (xp.tril(xp.asarray(x)), np.tril(x)),
    ):
        same(found, expected)
    for found, expected in zip(xp.meshgrid(xp.arange(3), xp.arange(2)), np.meshgrid(np.arange(3), np.arange(2))):
        same(found, expected)
    # Without axes, all ranks have the element.
    for found in (xp.asarray(2.5), xp.full((), 2.5), xp.sum(xp.asarray([2.0, 0.5])), xp.squeeze(xp.asarray([2.5]))):
        assert found.shape == () and found.dtype == xp.float64 and found == 2.5
    for call in (lambda: xp.zeros(3, device="gpu"), lambda: xp.asarray([1], copy=False)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError, match="complex"):
        xp.astype(xp.asarray([1j]), xp.float32)
    a = xp.asarray(x)
    assert xp.asarray(a) is a and xp.asarray(a, copy=True) is not a


def test_functions():
    x = RNG.integers(0, 4, (6, 5))
    a = xp.asarray(x)
    for axis in (0, 1):
        same(xp.sort(a, axis=axis, descending=True), -np.sort(-x, axis))
        same(xp.argsort(a, axis=axis, descending=True), np.argsort(-x, axis, stable=True))
    for found, expected in zip(xp.unique_all(a), np.unique_all(x)):
        same(found, expected)
    same(xp.permute_dims(a, (1, 0)), x.T)
    same(xp.concat([a, a], axis=1), np.concat([x, x], axis=1))
    same(xp.clip(a, 1, xp.asarray(2)), np.clip(x, 1, 2))
    assert xp.count_nonzero(a).dtype == np.intp and int(xp.count_nonzero(a)) == np.count_nonzero(x)
    np.testing.assert_array_equal(xp.vecdot(a, a), np.vecdot(x, x))
    assert xp.finfo(xp.ones(2)).bits == 64 and xp.iinfo(a).max == np.iinfo(int).max
    assert xp.result_type(a, xp.float32) == xp.float64 and xp.isdtype(a.dtype, "integral")
    stack = RNG.random((3, 1, 4, 5)), RNG.random((2, 5, 3))
    for p, q in (stack, (stack[0], stack[1][0]), (stack[0], stack[1][0, :, 0]), (stack[1][0, :, 0], stack[1])):
        for one in (xp.asarray(q), q):
            found, expected = xp.asarray(p) @ one, p @ q
            assert isinstance(found, pt.Array) and found.shape == expected.shape
            np.testing.assert_allclose(found[...], expected)
    out = pt.zeros((3, 2, 4, 3))
    assert np.matmul(xp.asarray(stack[0]), stack[1], out=out) is out
    np.testing.assert_allclose(out[...], stack[0] @ stack[1])
    for call in (lambda: xp.vecdot(a, xp.ones(1)), lambda: xp.asarray(stack[1]) @ xp.ones(4)):
        with pytest.raises(ValueError):
            call()
