"""Fourier transforms: the functions of `numpy.fft`. All are collective.

`numpy.fft.fft(a)` of a distributed array calls `fft` here, and the others likewise. The result is
distributed like the argument, if this distribution fits the shape. Its dtype is that of NumPy.

NumPy transforms blocks of whole lines. They are a rank's own elements, if these are whole lines, and
otherwise an equal share of the indices of another axis. A transform along all axes has two stages: all
axes but one, and then this axis.

A vector of n = p q elements is a matrix of p rows. A transform along its columns, a multiplication by
powers of exp(-2 pi i / n), and a transform along its rows give the transpose of the result. If n has
no such factors, the transform is a convolution (Bluestein) whose length is a power of two.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.fft import fftfreq, rfftfreq

from ._blocks import fill, fill_flat, get_box, get_flat, is_distributed, make
from ._operands import Agreement
from ._reductions import axes_of
from ._shapes import roll

#: Elements that a rank transforms at a time, about.
_PIECE = 1 << 20
#: Every rank transforms all elements of vectors up to this length.
_SHORT = 1 << 12


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform along an axis, as `numpy.fft.fft`. Collective."""
    return _along_axis("fft", a, n, axis, norm, out)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the inverse Fourier transform along an axis, as `numpy.fft.ifft`. Collective."""
    return _along_axis("ifft", a, n, axis, norm, out)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform of real elements along an axis, as `numpy.fft.rfft`. Collective."""
    return _along_axis("rfft", a, n, axis, norm, out)


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the inverse of `rfft`, as `numpy.fft.irfft`. Collective."""
    return _along_axis("irfft", a, n, axis, norm, out)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the transform of a signal with Hermitian symmetry, as `numpy.fft.hfft`. Collective."""
    return _along_axis("hfft", a, n, axis, norm, out)


def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """Return the inverse of `hfft`, as `numpy.fft.ihfft`. Collective."""
    return _along_axis("ihfft", a, n, axis, norm, out)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform along several axes, as `numpy.fft.fftn`. Collective."""
    return _along_axes("fft", "fftn", a, s, axes, norm, out)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Return the inverse Fourier transform along several axes, as `numpy.fft.ifftn`. Collective."""
    return _along_axes("ifft", "ifftn", a, s, axes, norm, out)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform of real elements along axes, as `numpy.fft.rfftn`. Collective."""
    return _along_axes("rfft", "rfftn", a, s, axes, norm, out)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Return the inverse of `rfftn`, as `numpy.fft.irfftn`. Collective."""
    return _along_axes("irfft", "irfftn", a, s, axes, norm, out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform along two axes, as `numpy.fft.fft2`. Collective."""
    return _along_axes("fft", "fft2", a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Return the inverse Fourier transform along two axes, as `numpy.fft.ifft2`. Collective."""
    return _along_axes("ifft", "ifft2", a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Return the Fourier transform of real elements along two axes. Collective; see `rfftn`."""
    return _along_axes("rfft", "rfft2", a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Return the inverse of `rfft2`. Collective; see `irfftn`."""
    return _along_axes("irfft", "irfft2", a, s, axes, norm, out)


def fftshift(x: Any, axes: Any = None) -> Any:
    """Move the zero frequency to the middle, as `numpy.fft.fftshift`. Collective."""
    _check("fftshift", x, None)
    along = axes_of(axes, x.ndim)
    return roll(x, [x.shape[n] // 2 for n in along], along)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Undo `fftshift`, as `numpy.fft.ifftshift`. Collective."""
    _check("ifftshift", x, None)
    along = axes_of(axes, x.ndim)
    return roll(x, [-(x.shape[n] // 2) for n in along], along)


class _Step(NamedTuple):
    """A transform along an axis."""

    function: Callable[..., Any]
    axis: int
    #: NumPy's argument `n`, and the number of results.
    length: int
    results: int


def _check(name: str, a: Any, out: Any) -> None:
    if not is_distributed(a):
        raise TypeError(
            f"{name} of a {type(a).__name__}, which is not a distributed array; use portolan.array(), "
            f"or numpy.fft.{name}"
        )
    if out is not None:
        raise TypeError(f"{name} of distributed arrays has no `out`; assign the result")


def _step(name: str, a: Any, n: Any, axis: int) -> _Step:
    length = a.shape[axis] if n is None else operator.index(n)
    if n is None and name in ("irfft", "hfft"):
        length = 2 * (length - 1)
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    results = length // 2 + 1 if name in ("rfft", "ihfft") else length
    return _Step(getattr(np.fft, name), axis, length, results)


def _along_axis(name: str, a: Any, n: Any, axis: int, norm: Any, out: Any) -> Any:
    _check(name, a, out)
    step = _step(name, a, n, axes_of(operator.index(axis), a.ndim)[0])
    return _transformed(name, a, [step], norm)


def _along_axes(kind: str, name: str, a: Any, s: Any, axes: Any, norm: Any, out: Any) -> Any:
    """Carry out a transform, whose kind is that of the last axis."""
    _check(name, a, out)
    if axes is None and s is not None:
        axes = range(a.ndim - len(s), a.ndim)
    along = axes_of(axes, a.ndim)
    if s is not None and len(s) != len(along):
        raise ValueError("Shape and axes have different lengths.")
    lengths = [None] * len(along) if s is None else [a.shape[n] if m == -1 else m for n, m in zip(along, s)]
    if not along:
        return a.copy()
    inner = {"rfft": "fft", "irfft": "ifft"}.get(kind, kind)
    last = _step(kind, a, lengths[-1], along[-1])
    steps = [_step(inner, a, m, n) for n, m in zip(along[:-1], lengths)]
    # Transforms of complex elements have any order. Axes that a rank has whole come first.
    if kind == inner:
        steps.append(last)
    steps.sort(key=lambda step: a.grid[step.axis] > 1)
    if kind != inner:
        steps.insert(0 if kind == "rfft" else len(steps), last)
    return _transformed(name, a, steps, norm)


def _transformed(name: str, a: Any, steps: Sequence[_Step], norm: Any) -> Any:
    """Return the array with all steps applied in their order. Collective."""
    shapes, dtypes = [a.shape], [a.dtype]
    for step in steps:
        if step.function in (np.fft.rfft, np.fft.ihfft) and dtypes[-1].kind == "c":
            raise TypeError(f'{name} of array "{a.name}" of {a.dtype}: the elements are not real')
        shapes.append(tuple(step.results if n == step.axis else m for n, m in enumerate(shapes[-1])))
        dtypes.append(step.function(np.ones(2, dtypes[-1]), norm=norm).dtype)
    if a.ndim == 1:
        return _vector(name, a, steps[0], norm, dtypes[-1])
    made = make(a, shapes[-1], dtypes[-1], name)
    others = [n for n in range(a.ndim) if n not in [step.axis for step in steps]]
    length = max([a.shape[n] for n in others], default=0)
    if len(steps) == 1 or length >= a.group.size or others and _has_lines(a, steps):
        return _stage(a, made, steps, norm)
    *first, last = steps
    ranks = [a.group.size if n == last.axis else 1 for n in range(a.ndim)]
    between = type(a)(
        shapes[-2], dtypes[-2], distribution=("grid", ranks), group=a._group, _unfilled=True
    )
    return _stage(_stage(a, between, first, norm), made, [last], norm)


def _has_lines(a: Any, steps: Sequence[_Step]) -> bool:
    """Return whether the own elements of each rank are whole lines along the axes of steps."""
    return a.bounds() is not None and all(a.grid[step.axis] == 1 for step in steps)


def _stage(source: Any, target: Any, steps: Sequence[_Step], norm: Any) -> Any:
    """Store an array with steps applied, each rank whole lines, in another array. Collective."""
    axes = [step.axis for step in steps]

    def function(values: Any, _: Any) -> Any:
        for step in steps:
            values = step.function(values, step.length, step.axis, norm)
        return values

    return _by_lines(source, target, axes, function, _has_lines(source, steps))


def _by_lines(
    source: Any, target: Any, axes: Any, function: Any, is_own: bool = False, transposed: bool = False
) -> Any:
    """Store a function of boxes of whole lines along axes, and their first index. Collective.

    The boxes are a rank's own elements, or its share of the indices of the longest other axis.
    """
    group, lengths = source.group, source.shape
    bounds = list(source.bounds()) if is_own else [slice(0, n) for n in lengths]
    split = max([n for n in range(source.ndim) if n not in axes], key=lambda n: lengths[n])
    if not is_own:
        n = lengths[split]
        bounds[split] = slice(n * group.rank // group.size, n * (group.rank + 1) // group.size)
    rest = math.prod(along.stop - along.start for n, along in enumerate(bounds) if n != split)
    by = max(1, _PIECE // max(rest, 1))
    begin, end = bounds[split].start, bounds[split].stop if rest else 0
    source.sync()
    with Agreement(group):
        for first in range(begin, end, by):
            bounds[split] = slice(first, min(first + by, end))
            values = function(source[tuple(bounds)], first)
            place = [slice(None) if n in axes else along for n, along in enumerate(bounds)]
            target[tuple(place[::-1] if transposed else place)] = values
    target.sync()
    return target


def _vector(name: str, a: Any, step: _Step, norm: Any, dtype: Any) -> Any:
    """Return the transform of a vector. Collective."""
    length = step.length
    if max(length, a.shape[0]) <= _SHORT:
        a.sync()
        values = step.function(a[...], length, norm=norm)
        return fill(make(a, values.shape, dtype, name), lambda k: values[k])
    if name in ("fft", "ifft"):
        return _complex(a, length, step.function, norm, dtype)
    if name in ("hfft", "ihfft"):
        # These are the inverse transforms of the conjugate, without a scaling by default.
        norm = {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")
    made = make(a, (step.results,), dtype, name)
    if name in ("rfft", "ihfft"):
        full = _complex(a, length, np.fft.fft, norm, np.result_type(dtype, np.complex64))
        if name == "rfft":
            return fill(made, lambda k: get_box(full, [k]))
        return fill(made, lambda k: get_box(full, [k]).conj())
    full = make(a, (length,), np.result_type(dtype, np.complex64), name)
    a.sync()

    def spectrum(k: Any) -> Any:
        low, high = np.split(k, [np.searchsorted(k, length // 2 + 1)])
        parts = [_padded(a, low), _padded(a, (length - high)[::-1])[::-1].conj()]
        found = np.concatenate(parts)
        return found.conj() if name == "hfft" else found

    whole = _complex(fill(full, spectrum), length, np.fft.ifft, norm, full.dtype)
    return fill(made, lambda k: get_box(whole, [k]).real)


def _padded(a: Any, k: Any, limit: Any = None) -> Any:
    """Return the elements of a vector at ascending indices, and zeros after its end or a limit."""
    inside = np.searchsorted(k, a.shape[0] if limit is None else min(limit, a.shape[0]))
    found = np.zeros(len(k), a.dtype)
    found[:inside] = get_box(a, [k[:inside]])
    return found


def _complex(a: Any, length: int, function: Any, norm: Any, dtype: Any) -> Any:
    """Return the complex transform of a vector, padded or cut to a length. Collective."""
    group = a.group
    rows = next(n for n in range(math.isqrt(length), 0, -1) if length % n == 0)
    a.sync()
    if rows < group.size:
        return _convolved(a, length, function, norm, dtype)
    shape = (rows, length // rows)
    turn = (-2j if function is np.fft.fft else 2j) * np.pi / length

    def flat(begin: int, end: int) -> Any:
        until = min(end, a.shape[0])
        return np.pad(get_flat(a, begin, until), (0, end - max(begin, until)))

    def columns(values: Any, first: int) -> Any:
        turns = np.arange(rows)[:, np.newaxis] * np.arange(first, first + values.shape[1])
        return function(values, axis=0, norm=norm) * np.exp(turn * turns).astype(dtype)

    def empty(shape: Any, kind: Any, spec: Any) -> Any:
        return type(a)(shape, kind, distribution=spec, group=a._group, _unfilled=True)

    by_columns = ("grid", [1, group.size])
    matrix = fill_flat(empty(shape, a.dtype, "rows"), flat)
    between = _by_lines(matrix, empty(shape, dtype, by_columns), [0], columns)
    found = empty(shape[::-1], dtype, by_columns)
    _by_lines(between, found, [1], lambda x, _: function(x, axis=1, norm=norm).T, transposed=True)
    return fill_flat(make(a, (length,), dtype, "fft"), lambda begin, end: get_flat(found, begin, end))


def _convolved(a: Any, length: int, function: Any, norm: Any, dtype: Any) -> Any:
    """Return the transform of a vector as a convolution with exp(pi i k k / n). Collective."""
    is_inverse = function is np.fft.ifft
    turn = (-1j if is_inverse else 1j) * np.pi / length
    power = {"ortho": 0.5, "forward": 1.0}.get(norm, 0.0)
    scale = length ** -(1 - power if is_inverse else power)
    # Twice the square of the number of ranks has factors that are at least that number.
    total = 1 << (max(2 * length - 1, 2 * a.group.size**2) - 1).bit_length()

    def chirp(k: Any) -> Any:
        return np.exp(turn * (k * k % (2 * length)))

    def kernel(k: Any) -> Any:
        return np.where(k < length, chirp(k), 0)

    def vector(values: Callable[[Any], Any]) -> Any:
        made = type(a)(total, np.complex128, group=a._group, _unfilled=True)
        return _complex(fill(made, values), total, np.fft.fft, None, np.complex128)

    product = vector(lambda k: _padded(a, k, length) * chirp(k).conj())
    product *= vector(lambda k: kernel(np.minimum(k, total - k)))
    found = _complex(product, total, np.fft.ifft, None, np.complex128)
    made = make(a, (length,), dtype, "fft")
    return fill(made, lambda k: get_box(found, [k]) * chirp(k).conj() * scale)


FUNCTIONS = {
    getattr(np.fft, f.__name__): f
    for f in (
        *(fft, ifft, rfft, irfft, hfft, ihfft, fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2),
        *(fftshift, ifftshift),
    )
}

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
