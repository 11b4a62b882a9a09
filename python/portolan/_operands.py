"""The operands of collective functions: what belongs to this rank, and whether all ranks succeed."""

from __future__ import annotations

import builtins
import os
import re
from types import TracebackType
from typing import Any, Optional

import numpy as np

from ._start import _native


def promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two arrays, converted to the dtype of their product if necessary. Collective."""
    dtype = np.result_type(a.dtype, b.dtype)
    for x in (a, b):
        x._settle()
    return (
        a if a.dtype == dtype else a.astype(dtype),
        b if b.dtype == dtype else b.astype(dtype),
    )


def is_comparable(array: Any, other: Any) -> bool:
    """Return whether `np.equal` compares an array with an object.

    Otherwise, as for strings, NumPy's operators find all elements unequal. Raises ValueError if the
    object does not broadcast to the shape.
    """
    if isinstance(other, (_native.ArrayBase, int, float, complex, np.number)):
        return True
    found = np.asarray(other)
    if found.dtype.kind in "biufcO":
        return True
    try:
        np.equal(np.ones(1, array.dtype), np.ones(1, found.dtype))
    except TypeError:
        np.broadcast_to(found, array.shape)
        return False
    return True


class Agreement:
    """A block of a collective call. If it raises on one rank, it raises on all. Its end is collective.

    A rank without an exception raises that of the first rank that has one, with the built-in class
    from which the class of the exception derives.
    """

    def __init__(self, group: Any) -> None:
        self._group = group

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        _: Optional[TracebackType],
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return  # as after Ctrl-C: this rank can only end
        found = self._group._first_failure(None if error is None else description(error))
        if found is not None and kind is None:
            raise_of_rank(*found)


def raise_file_error(text: str, path: str) -> None:
    """Raise the exception of the operating system that a text of the library describes, if any."""
    found = re.search(r"\(os error (\d+)\)", text)
    if found:
        raise OSError(int(found[1]), os.strerror(int(found[1])), path)


def description(error: BaseException) -> bytes:
    """Return the class and the text of an exception, for other ranks."""
    known = next(base for base in type(error).__mro__ if base.__module__ == "builtins")
    return f"{known.__name__} {error}".encode(errors="replace")


def raise_of_rank(rank: int, description: bytes) -> None:
    """Raise the exception of another rank."""
    name, text = description.decode().split(" ", 1)
    raise getattr(builtins, name)(f"rank {rank} of the group: {text}")
