"""Fourier transforms of distributed arrays, compared with NumPy."""

import numpy as np
import pytest

import portolan as pt
from portolan import fft as module

from samples import distributions

RNG = np.random.default_rng(10)
NORMS = [None, "backward", "ortho", "forward"]
ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")


def values(shape, dtype="c16"):
    found = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * RNG.standard_normal(shape)
    return (found * 9 if np.dtype(dtype).kind == "i" else found).astype(dtype)


def close(found, expected):
    assert isinstance(found, pt.Array)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = 100 * np.finfo(expected.dtype).eps * max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(found[...], expected, rtol=0, atol=tolerance)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(module, "_PIECE", 40)


@pytest.fixture(params=[True, False], ids=["short", "long"])
def short(request, monkeypatch):
    """Whether every rank transforms vectors, or all ranks together, also short ones."""
    if not request.param:
        monkeypatch.setattr(module, "_SHORT", 0)


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("length", [1, 2, 12, 31, 144])
def test_vectors(short, name, length):
    x = values(length, "f8" if name in OF_REAL else "c16")
    function = getattr(np.fft, name)
    for k, kind in enumerate(distributions((length,))):
        a = pt.array(x, distribution=kind)
        n, norm = (None, length + 5, length - 1, 1)[k % 4], NORMS[k % 3 + k // 4]
        if n == 0 or n is None and name in ("irfft", "hfft") and length == 1:
            with pytest.raises(ValueError, match="Invalid number of FFT data points"):
                function(a, n)
            continue
        close(function(a, n, norm=norm), function(x, n, norm=norm))
    np.testing.assert_array_equal(a[...], x)


@pytest.mark.parametrize("dtype", ["?", "i2", "u8", "f4", "f8", "c8", "c16"])
def test_dtypes(short, dtype):
    for shape in ((30,), (6, 5)):
        x = values(shape, dtype)
        a = pt.array(x)
        for name in ONE_AXIS:
            if name in OF_REAL and x.dtype.kind == "c":
                with pytest.raises(TypeError, match="not real"):
                    getattr(np.fft, name)(a)
                continue
            close(getattr(np.fft, name)(a), getattr(np.fft, name)(x))


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("shape", [(6, 9), (2, 8), (5, 3, 7)])
def test_axes(name, shape):
    x = values(shape, "f8" if name in OF_REAL else "c16")
    function = getattr(np.fft, name)
    for kind in distributions(shape):
        a = pt.array(x, distribution=kind)
        for axis, n in ((0, None), (-1, 4), (1, 10)):
            close(function(a, n, axis), function(x, n, axis))
        close(function(a, 8, norm="ortho"), function(x, 8, norm="ortho"))
    with pytest.raises(ValueError, match="axis"):
        function(a, axis=len(shape))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
@pytest.mark.parametrize("shape", [(6, 9), (2, 8, 5), (4, 3, 2, 6)])
def test_several_axes(name, shape):
    x = values(shape, "f8" if name in OF_REAL else "c16")
    function = getattr(np.fft, name)
    choices = [{"axes": (0, 1)}, {"axes": (1, 0), "s": (5, 8)}, {"axes": (-1,)}, {"norm": "ortho"}]
    choices += [{"axes": (-1, 0), "norm": "forward"}, {"axes": (0, -1), "s": (3, 4)}]
    if name.endswith("n") and len(shape) > 2:
        choices += [{"axes": (2, 0, 1)}, {"axes": (1, 2), "s": (4, 6)}]
    arrays = [pt.array(x, distribution=kind) for kind in distributions(shape)]
    for k, options in enumerate([{}] * len(arrays) + choices):
        close(function(arrays[k % len(arrays)], **options), function(x, **options))


def test_vectors_by_functions_of_several_axes():
    x = values(20)
    a = pt.array(x)
    for name in ("fftn", "ifftn", "irfftn"):
        close(getattr(np.fft, name)(a), getattr(np.fft, name)(x))
    close(np.fft.rfftn(pt.array(x.real)), np.fft.rfftn(x.real))


def test_inverses():
    for length in (5000, 8191, 9000):  # the second one is prime
        x = values(length)
        a = pt.array(x)
        close(np.fft.fft(a), np.fft.fft(x))
        close(np.fft.ifft(np.fft.fft(a)), x)
        close(np.fft.irfft(np.fft.rfft(pt.array(x.real)), length), x.real)
    y = values((40, 50), "f8")
    close(np.fft.irfft2(np.fft.rfft2(pt.array(y)), (40, 50)), y)
    close(np.fft.ifftn(np.fft.fftn(pt.array(y))), y.astype("c16"))


def test_distributions():
    for kind in ("rows", pt.cyclic((2, 2)), pt.grid(1, pt.size())):
        a = pt.array(values((8, 6)), distribution=kind)
        found = pt.fft.fft2(a)
        assert found.distribution == a.distribution and found.grid == a.grid


def test_shifts():
    for shape in ((9,), (8,), (5, 6), (3, 4, 5)):
        x = values(shape)
        for kind in distributions(shape):
            a = pt.array(x, distribution=kind)
            for axes in (None, 0, -1, (0,), tuple(range(len(shape)))):
                np.testing.assert_array_equal(np.fft.fftshift(a, axes)[...], np.fft.fftshift(x, axes))
                np.testing.assert_array_equal(np.fft.ifftshift(a, axes)[...], np.fft.ifftshift(x, axes))
    np.testing.assert_array_equal(pt.fft.fftfreq(8, 0.1), np.fft.fftfreq(8, 0.1))
    np.testing.assert_array_equal(pt.fft.rfftfreq(8), np.fft.rfftfreq(8))


def test_arguments():
    a = pt.array(values((4, 6)))
    with pytest.raises(ValueError, match="Invalid norm"):
        np.fft.fft(a, norm="none")
    with pytest.raises(ValueError, match="different lengths"):
        np.fft.fftn(a, (3, 3), (0,))
    with pytest.raises(ValueError, match="repeated"):
        np.fft.fftn(a, axes=(0, 0))
    with pytest.raises(TypeError, match="no `out`"):
        pt.fft.fft(a, out=a)
    with pytest.raises(TypeError, match="portolan.array"):
        pt.fft.fft(np.zeros(4))
    with pytest.raises(ValueError, match="data points"):
        np.fft.fft(pt.zeros((3, 0)))
    assert np.fft.fft(pt.zeros((0, 3))).shape == (0, 3)
    close(np.fft.fft2(pt.zeros((2, 0, 3)), axes=(0, 2)), np.zeros((2, 0, 3), "c16"))


def test_groups():
    group = pt.world.subgroup(list(range(pt.size()))[::-1][: max(1, pt.size() - 1)])
    x = values((7, 9))
    if group is not None:
        close(np.fft.fft2(pt.array(x, group=group)), np.fft.fft2(x))
        close(np.fft.fft(pt.array(x[0], group=group)), np.fft.fft(x[0]))
