"""Warnings that point at the program's line instead of a line of this package."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import numpy as np

from ._values import _LIBRARIES

#: Before NumPy 1.25, it is an attribute of the package.
ComplexWarning: type[Warning] = getattr(np, "exceptions", np).ComplexWarning

#: NumPy's modes unless the program changes them, and the modes that call a function instead.
_USUAL = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_CALLS: Any = {"divide": "call", "over": "call", "invalid": "call"}


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of this package and NumPy."""
    frame, level = sys._getframe(0), 1
    while frame.f_code.co_filename.startswith(_LIBRARIES) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def reported(name: str) -> Any:
    """Return a context in which floating-point errors of NumPy warn at the program's line.

    It changes only errors of which NumPy warns.
    """
    modes = np.geterr()

    def call(error: str, _: int) -> None:
        warn(f"{error} encountered in {name}", RuntimeWarning)

    if modes == _USUAL:
        return np.errstate(call=call, **_CALLS)
    if "call" in modes.values() or "log" in modes.values():
        return contextlib.nullcontext()  # the program has its own function
    changed: Any = {kind: "call" for kind, mode in modes.items() if mode == "warn"}
    return np.errstate(call=call, **changed)
