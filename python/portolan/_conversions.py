"""The methods of the class of arrays that convert arrays to other objects, and their text.

They get elements to the calling rank and are not collective, except `__contains__`.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterator
from html import escape
from typing import Any, Optional

import numpy as np

from . import _gather
from ._group import world
from ._start import _native


def text(array: Any, *inputs: Any, **options: Any) -> str:
    """Return the elements as `numpy.array2string` does. Gets only those that it prints."""
    known = np.get_printoptions()
    threshold, edge = (
        known[key] if options.get(key) is None else options[key] for key in ("threshold", "edgeitems")
    )
    index = [np.arange(n) for n in array.shape]
    if array.size > threshold:
        # One element between the edges stands for the others.
        index = [n if len(n) <= 2 * edge else np.delete(n, slice(edge + 1, -edge or None)) for n in index]
        options["threshold"] = 0
    return np.array2string(array[np.ix_(*index)], *inputs, **options)


def unpickled(values: Any, options: dict[str, Any]) -> Any:
    """Create a pickled array, in blocks if its distribution does not fit the ranks. Collective."""
    from ._create import array

    try:
        return array(values, **options)
    except ValueError:
        return array(values, name=options["name"])


class Conversions:
    """A base of `Array`."""

    name: str
    shape: tuple[int, ...]
    ndim: int
    size: int
    dtype: np.dtype[Any]
    grid: tuple[int, ...]
    group: Any
    _spec: tuple[Any, ...]
    __getitem__: Any
    __len__: Any

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, on all ranks together."""
        return int(self.size) * self.itemsize

    def __repr__(self) -> str:
        """Return the name, the distribution and the elements, only those at the edges of a large array.

        Not collective: the calling rank gets the elements, as by an index.
        """
        try:
            return (
                f"<portolan.Array {self.name!r}, shape {self.shape}, {self.dtype}, "
                f"{self._spec[0]} over {self.grid}\n{text(self)}>"
            )
        except _native.Error as error:
            return f"<portolan.Array: {error}>"

    def __str__(self) -> str:
        """Return the elements as NumPy prints them; see `repr`."""
        return text(self)

    def _repr_html_(self) -> str:
        """Return a table for notebooks; see `repr`."""
        rows = {
            "name": self.name,
            "shape": self.shape,
            "dtype": self.dtype,
            "distribution": f"{self._spec[0]} over {self.grid}",
            "memory": f"{self.nbytes} bytes on {self.group.size} ranks",
        }
        cells = (f"<tr><th>{key}</th><td>{escape(str(value))}</td></tr>" for key, value in rows.items())
        return f"<table>{''.join(cells)}</table><pre>{escape(text(self))}</pre>"

    def __reduce__(self) -> Any:
        """Pickle a small array: its elements, name and distribution.

        Not collective. The pickle is loaded by all ranks together, because it creates an array.
        """
        if self.group != world:
            raise pickle.PicklingError(f'array "{self.name}" belongs to a group; pickle a[...]')
        if _gather.limit is not None and self.nbytes > _gather.limit:
            raise pickle.PicklingError(
                f'array "{self.name}" has {self.nbytes} bytes; use save(), or raise the limit by '
                "portolan.warn_of_gathers()"
            )
        keys = ("name", "distribution", "ghosts", "periodic")
        return unpickled, (self[...], {key: getattr(self, key) for key in keys})

    def item(self, *index: Any) -> Any:
        """Return one element as a number of Python. Not collective.

        The index is one integer for each axis, or the position of the element in row-major order. An
        array of one element needs none. Raises ValueError for other arrays without an index.
        """
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if not index and self.size != 1:
            raise ValueError(f'array "{self.name}" has {self.size} elements; item() needs an index')
        if len(index) < 2 and self.ndim != len(index):
            position = operator.index(index[0]) if index else 0
            if not -self.size <= position < self.size:
                raise IndexError(
                    f'array "{self.name}": {position} is out of bounds for {self.size} elements'
                )
            index = tuple(int(n) for n in np.unravel_index(position % self.size, self.shape))
        if len(index) != self.ndim:
            raise ValueError(f'array "{self.name}": {len(index)} indices for {self.ndim} axes')
        return self[tuple(operator.index(n) for n in index)].item()

    def tolist(self) -> list[Any]:
        """Return all elements as nested lists of numbers of Python. Not collective."""
        return list(self[...].tolist())

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first axis. The elements of a vector are fetched at once."""
        _gather.note(self)
        return iter(self[...]) if self.ndim == 1 else (self[n] for n in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        """Return whether an element equals the value. Collective."""
        return bool((self == value).any())

    def __bool__(self) -> bool:
        """Return whether the only element is true. Raises ValueError for more or fewer elements."""
        if self.size != 1:
            raise ValueError(
                f'the truth value of array "{self.name}" of {self.size} elements is ambiguous; use '
                "any() or all()"
            )
        return bool(self[(0,) * self.ndim])

    def _only(self, kind: str) -> Any:
        if self.size != 1:
            raise TypeError(
                f'{kind}() of array "{self.name}" of {self.size} elements; use item(index), or '
                f"{kind}(a[index])"
            )
        return self.item()

    def __float__(self) -> float:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return float(self._only("float"))

    def __int__(self) -> int:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return int(self._only("int"))

    def __index__(self) -> int:
        """Raise TypeError. As in NumPy, only integer arrays without axes are indices."""
        raise TypeError(f'array "{self.name}" {self.shape} is no index; use item()')

    def __complex__(self) -> complex:
        """Return the only element. Raises TypeError for more or fewer elements."""
        return complex(self._only("complex"))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a distributed array cannot be converted without a copy")
        _gather.note(self)
        whole: np.ndarray[Any, Any] = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Return a capsule of all elements on the calling rank, for `from_dlpack` of other packages.

        For this rank's own elements without a copy, use `access().local`. Raises BufferError for
        `copy=False`.
        """
        if copy is False:
            raise BufferError(f'array "{self.name}" is distributed and cannot be exported without a copy')
        more = dict(stream=stream, max_version=max_version, dl_device=dl_device)
        # NumPy 1 has fewer options.
        return np.asarray(self).__dlpack__(**{key: x for key, x in more.items() if x is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of DLPack: the CPU."""
        return np.empty(0).__dlpack_device__()

    @property
    def device(self) -> str:
        """The device of the elements, always "cpu"."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Return the array itself. Raises ValueError for another device than "cpu"."""
        if device != "cpu" or stream is not None:
            raise ValueError(f'array "{self.name}" is on the device "cpu", and {device!r} is another one')
        return self

    def __array_namespace__(self, *, api_version: Optional[str] = None) -> Any:
        """Return `portolan.array_api`, the functions of the Python array API standard."""
        from . import array_api

        if api_version is not None and api_version not in array_api.VERSIONS:
            raise ValueError(f"version {api_version!r} of the array API; known are {array_api.VERSIONS}")
        return array_api
