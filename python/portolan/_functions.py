"""The functions of NumPy that give distributed arrays or do not need all elements on one rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import (
    _alignment,
    _create,
    _elementwise,
    _padding,
    _products,
    _quantiles,
    _sets,
    _shapes,
    _sorting,
    _statistics,
    fft,
    linalg,
)
from ._gather import gathered

_TABLES = (
    _alignment.FUNCTIONS,
    _create.BY_FUNCTION,
    _elementwise.FUNCTIONS,
    _padding.FUNCTIONS,
    _products.FUNCTIONS,
    _quantiles.FUNCTIONS,
    _sets.FUNCTIONS,
    _shapes.FUNCTIONS,
    _sorting.FUNCTIONS,
    _statistics.FUNCTIONS,
    fft.FUNCTIONS,
    linalg.FUNCTIONS,
)
BY_FUNCTION: dict[Any, Any] = {function: f for table in _TABLES for function, f in table.items()}
#: Functions of their first argument. If it is a numpy array, another argument is distributed.
_OF_FIRST = {
    *_create.BY_FUNCTION,
    *_quantiles.FUNCTIONS,
    *_shapes.FUNCTIONS,
    *_sorting.FUNCTIONS,
} - {np.searchsorted}


def array_function(function: Any, inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `Array.__array_function__`."""
    first = inputs[0] if inputs else None
    is_other = isinstance(first, (np.ndarray, np.generic)) and function in _OF_FIRST
    if function in BY_FUNCTION and not is_other:
        return BY_FUNCTION[function](*inputs, **options)
    return gathered(function, inputs, options)
