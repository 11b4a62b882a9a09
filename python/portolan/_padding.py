"""`numpy.pad`: edges of constants or of elements of the array.

The modes whose new elements are constants or elements of the array get each of these from its owner.
The other modes add the edges of one axis after the other, as NumPy does. All ranks compute these edges,
because they are small compared with the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._blocks import fill, get_box, make
from ._gather import gathered
from ._shapes import concatenate

_STATISTICS: dict[str, Any] = {
    "maximum": np.max,
    "mean": np.mean,
    "median": np.median,
    "minimum": np.min,
}
#: The index of an element of the array for an index that may lie outside of an axis of a length.
_INDICES = {
    "constant": lambda n, length: np.clip(n, 0, length - 1),
    "empty": lambda n, length: np.clip(n, 0, length - 1),
    "edge": lambda n, length: np.clip(n, 0, length - 1),
    "wrap": lambda n, length: n % length,
    "symmetric": lambda n, length: np.minimum(n % (2 * length), -(n + 1) % (2 * length)),
    "reflect": lambda n, length: np.minimum(
        n % max(2 * length - 2, 1), -n % max(2 * length - 2, 1)
    ),
}


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Return `numpy.pad`, a new array. Collective.

    If `mode` is a function, the calling rank gets all elements.
    """
    if callable(mode):
        return gathered(np.pad, (array, pad_width, mode), options)
    # NumPy checks the arguments, and the number of elements.
    few = np.zeros([min(n, 1) for n in array.shape], array.dtype)
    np.pad(few, np.minimum(pad_width, 1), mode, **options)
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * array.ndim
        for axis, widths in pad_width.items():
            pairs[axis] = tuple(np.broadcast_to(widths, 2))
    else:
        pairs = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    if mode in _INDICES and options.get("reflect_type") != "odd":
        return _of_elements(array, pairs, mode, options)
    for axis, widths in enumerate(pairs):
        if any(widths):
            first, last = _edges(array, axis, widths, mode, options)
            array = concatenate([first, array, last], axis)
    return array


def _of_elements(array: Any, pairs: Any, mode: str, options: dict[str, Any]) -> Any:
    shape = [before + n + after for n, (before, after) in zip(array.shape, pairs)]
    made = make(array, shape, array.dtype, "pad")
    constants = np.broadcast_to(options.get("constant_values", 0), (array.ndim, 2))
    array.sync()

    def own(*at: Any) -> Any:
        places = [n - before for n, (before, _) in zip(at, pairs)]
        if mode == "constant" and not array.size:
            found = np.empty([len(n) for n in at], array.dtype)
        else:
            box = [_INDICES[mode](n, length) for n, length in zip(places, array.shape)]
            found = get_box(array, box)
        if mode == "constant":
            # The last axis decides about corners.
            for axis, n in enumerate(places):
                before = (slice(None),) * axis
                found[(*before, n < 0)] = constants[axis, 0]
                found[(*before, n >= array.shape[axis])] = constants[axis, 1]
        return found

    return fill(made, own)


def _edges(array: Any, axis: int, widths: Any, mode: str, options: dict[str, Any]) -> list[Any]:
    """Return the new elements before and after an axis, numpy arrays that all ranks get."""
    length, whole = array.shape[axis], (slice(None),) * axis
    options = {
        key: np.broadcast_to(value, (array.ndim, 2))[axis]
        if key != "reflect_type" and value is not None
        else value
        for key, value in options.items()
    }
    if mode in _STATISTICS:
        counts = options.get("stat_length")
        most = [length, length] if counts is None else [min(int(n), length) for n in counts]
        found = []
        for section in (slice(0, most[0]), slice(length - most[1], length)):
            of = array if section == slice(0, length) else array.section[(*whole, section)]
            value = np.asarray(_STATISTICS[mode](of, axis=axis, keepdims=True))
            value = np.rint(value) if array.dtype.kind in "iu" else value
            found.append(value.astype(array.dtype))
        return [np.repeat(value, width, axis) for value, width in zip(found, widths)]
    array.sync()
    before, after = widths
    # A short array is reflected more than once, and each side depends on the other one.
    is_short = mode != "linear_ramp" and max(widths) >= length

    def padded(near: slice, pair: Any) -> Any:
        every = [pair if n == axis else (0, 0) for n in range(array.ndim)]
        pad_: Any = np.pad
        return pad_(array[(*whole, near)], every, mode, **options)

    if is_short:
        first = last = padded(slice(None), widths)
    else:
        first = padded(slice(0, before + 1), (before, 0))
        last = padded(slice(max(length - after - 1, 0), None), (0, after))
    end = last.shape[axis]
    return [first[(*whole, slice(0, before))], last[(*whole, slice(end - after, end))]]


FUNCTIONS = {np.pad: pad}
