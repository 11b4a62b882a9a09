"""The functions of NumPy that give distributed arrays or do not need all elements on one rank."""

from __future__ import annotations

from typing import Any

from . import _create, _elementwise, _products, _shapes, _sorting, fft, linalg
from ._gather import gathered

_TABLES = (
    _create.BY_FUNCTION,
    _elementwise.FUNCTIONS,
    _products.FUNCTIONS,
    _shapes.FUNCTIONS,
    _sorting.FUNCTIONS,
    fft.FUNCTIONS,
    linalg.FUNCTIONS,
)
BY_FUNCTION: dict[Any, Any] = {function: f for table in _TABLES for function, f in table.items()}


def array_function(function: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `Array.__array_function__`."""
    if function in BY_FUNCTION:
        return BY_FUNCTION[function](*inputs, **options)
    return gathered(function, inputs, options)
