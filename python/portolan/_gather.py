"""NumPy's own functions, for which the calling rank gets all elements of distributed arrays.

Each function warns once, if the elements take more memory than a limit.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._warnings import warn

_limit: Optional[int] = 1 << 24
_warned: set[str] = set()
#: The functions in progress, the one that the program has called first.
_running: list[str] = []


class GatherWarning(UserWarning):
    """A function of NumPy gets all elements of a large array to the calling rank."""


def warn_of_gathers(above: Optional[int]) -> None:
    """Set the bytes of an array above which functions of NumPy that get all its elements warn.

    The limit is 16 MiB at first. None means no warnings. Each function warns once after each call.
    """
    global _limit
    _limit = above
    _warned.clear()


def gathered(function: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """Call NumPy's own implementation of a function, which converts distributed arrays."""
    _running.append(getattr(function, "__name__", str(function)))
    try:
        return np.ndarray.__array_function__(
            np.empty(0), function, (np.ndarray,), inputs, options
        )
    finally:
        _running.pop()


def note(array: Any) -> None:
    """Warn if a function of NumPy converts a large array."""
    if not _running or _limit is None or array.nbytes <= _limit or _running[0] in _warned:
        return
    _warned.add(_running[0])
    warn(
        f'{_running[0]} gets all {array.nbytes} bytes of array "{array.name}" to the calling rank; '
        "portolan.warn_of_gathers() sets the limit of this warning",
        GatherWarning,
    )
