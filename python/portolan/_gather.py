"""NumPy's own functions, for which the calling rank gets all elements of distributed arrays.

Each function warns once, if the elements take more memory than a limit.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

import numpy as np

from ._values import _LIBRARIES
from ._warnings import warn

#: The bytes of an array above which a gather warns, or None.
limit: Optional[int] = 1 << 24
_warned: set[str] = set()
#: Functions that index their arguments instead of converting them.
_INDEXING = {np.histogramdd, np.polydiv}
#: The functions in progress, the one that the program has called first.
_running: list[str] = []


class GatherWarning(UserWarning):
    """A function of NumPy gets all elements of a large array to the calling rank."""


def warn_of_gathers(above: Optional[int]) -> None:
    """Set the bytes of an array above which functions of NumPy that get all its elements warn.

    The limit is 16 MiB at first. None means no warnings. Each function warns once after each call.
    """
    global limit
    limit = above
    _warned.clear()


def gathered(function: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """Call NumPy's own implementation of a function, which converts distributed arrays."""
    name = getattr(function, "__name__", str(function))
    _running.append(name)
    try:
        if function in _INDEXING:
            inputs = tuple([np.asarray(x) if hasattr(x, "dtype") else x for x in inputs])
        return np.ndarray.__array_function__(
            np.empty(0), function, (np.ndarray,), inputs, options
        )
    except AttributeError as error:
        raise TypeError(
            f"{name} does not work on distributed arrays ({error}); for numpy arrays of all elements, "
            "use numpy.asarray()"
        ) from error
    finally:
        _running.pop()


def note(array: Any) -> None:
    """Warn if a function of NumPy converts a large array."""
    if limit is None or array.nbytes <= limit:
        return
    frame, level, name = sys._getframe(0), 1, None
    while frame.f_code.co_filename.startswith(_LIBRARIES) and frame.f_back is not None:
        # The innermost frames are the conversion itself.
        if level > 2:
            name = frame.f_code.co_name
        frame, level = frame.f_back, level + 1
    name = _running[0] if _running else name
    if name is None or name in _warned:
        return
    _warned.add(name)
    warn(
        f'{name} gets all {array.nbytes} bytes of array "{array.name}" to the calling rank; '
        "portolan.warn_of_gathers() sets the limit of this warning",
        GatherWarning,
    )
