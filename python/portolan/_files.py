"""Files of other libraries: HDF5 by h5py, and Zarr.

A rank reads and writes boxes of whole elements, of about 16 MiB at a time: its own part, or a share of
the rows if the array is block-cyclic. It gets and puts the elements by index.

- HDF5 has one writer at a time. With an h5py that was built with MPI, all ranks write one file together.
  Otherwise, or if the data set has options such as a compression, rank 0 of the group gets all elements
  one after the other and writes them.
- A chunk of Zarr is an object of its own, so ranks write at the same time. The rank that owns the first
  element of a chunk writes the whole chunk, whatever the distribution.

All ranks read at the same time. If a rank fails, all raise.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np

from ._group import world
from ._operands import Agreement

#: Bytes that a rank reads or writes at a time, about.
_SLAB = 1 << 24
#: Bytes of a chunk of Zarr, at most, if the program does not choose the chunks.
_CHUNK = 1 << 26

Box = tuple[slice, ...]


class Files:
    """A base of `Array`."""

    shape: tuple[int, ...]
    ndim: int
    grid: tuple[int, ...]
    dtype: np.dtype[Any]
    name: str
    group: Any
    sync: Any
    bounds: Any
    owner: Any
    __getitem__: Any

    def to_hdf5(self, path: Any, dataset: str = "data", *, mode: str = "a", **options: Any) -> None:
        """Write a data set of an HDF5 file. Collective. Needs the package h5py.

        With the mode 'a', the file gets the data set in addition to others; one of the same name is
        overwritten, and must have the same shape and dtype. 'w' makes a new file. The options are
        those of h5py's `create_dataset`, such as `chunks` and `compression`; with them, one rank
        writes. Raises OSError, or what h5py raises, on all ranks if one cannot write.
        """
        self.sync()
        with Agreement(self.group):
            h5py = _module("h5py", "to_hdf5")
            name = os.fspath(path)
            if h5py.get_config().mpi and not options:
                comm = self.group.to_mpi4py()
                try:
                    with h5py.File(name, mode, driver="mpio", comm=comm) as file:
                        target = file.require_dataset(dataset, self.shape, self.dtype, exact=True)
                        _write(self, target, _share(self))
                finally:
                    comm.Free()
            elif self.group.rank == 0:
                with h5py.File(name, mode) as file:
                    target = file.require_dataset(dataset, self.shape, self.dtype, exact=True, **options)
                    _write(self, target, _whole(self))

    def to_zarr(
        self,
        store: Any,
        component: Optional[str] = None,
        *,
        mode: str = "a",
        chunks: Any = None,
        **options: Any,
    ) -> None:
        """Write a Zarr array. Collective. Needs the package zarr.

        `store` is a path, or a store that all ranks can open, and `component` the place in a group.
        With the mode 'a', an array that is there is overwritten, and must have the same shape and
        dtype. 'w' replaces what is there. The default chunks are the parts of the ranks, cut to at
        most 64 MiB. The options are those of `zarr.create`. Raises OSError, or what zarr raises, on
        all ranks if one cannot write.
        """
        self.sync()
        place = {} if component is None else {"path": component}
        with Agreement(self.group):
            zarr = _module("zarr", "to_zarr")
            if self.group.rank == 0:
                chosen = _chunks(self) if chunks is None else chunks
                kind = {"shape": self.shape, "dtype": self.dtype, "chunks": chosen}
                made = zarr.open_array(store, mode=mode, **kind, **place, **options)
                if (made.shape, made.dtype) != (self.shape, self.dtype):
                    raise ValueError(
                        f"{store} has an array of shape {made.shape} and {made.dtype}, and array "
                        f'"{self.name}" has {self.shape} and {self.dtype}; use mode="w"'
                    )
        with Agreement(self.group):
            target = zarr.open_array(store, mode="r+", **place)
            for box in _own_chunks(self, getattr(target, "shards", None) or target.chunks):
                target[box] = self[box]


def from_hdf5(path: Any, dataset: str = "data", **options: Any) -> Any:
    """Create an array from a data set of an HDF5 file. Collective. Needs the package h5py.

    Each rank reads the elements that it will own. The options are those of `zeros`. Raises OSError, or
    what h5py raises, on all ranks if one cannot read.
    """
    with Agreement(_group(options)):
        file = _module("h5py", "from_hdf5").File(os.fspath(path), "r")
    with file:
        return _read(lambda: file[dataset], options)


def from_zarr(store: Any, component: Optional[str] = None, **options: Any) -> Any:
    """Create an array from a Zarr array. Collective. Needs the package zarr.

    Each rank reads the elements that it will own. The options are those of `zeros`. Raises OSError, or
    what zarr raises, on all ranks if one cannot read.
    """
    place = {} if component is None else {"path": component}
    return _read(lambda: _module("zarr", "from_zarr").open_array(store, mode="r", **place), options)


def _group(options: dict[str, Any]) -> Any:
    group = options.get("group")
    return world if group is None else group


def _module(name: str, call: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{call} needs the package {name}: pip install {name} ({error})") from None


def _read(opened: Any, options: dict[str, Any]) -> Any:
    """Create an array of the elements of an array in a file. Collective."""
    from ._array import Array

    group = _group(options)
    with Agreement(group):
        source = opened()
        if not hasattr(source, "dtype"):
            raise ValueError(f"{source!r} is no array")
    made = Array(source.shape, source.dtype, _unfilled=True, **options)
    with Agreement(group):
        for box in _slabs(_share(made), made.dtype.itemsize, source.chunks):
            made[box] = source[box]
    made.sync()
    return made


def _write(array: Any, target: Any, box: Box) -> None:
    for slab in _slabs(box, array.dtype.itemsize, target.chunks):
        target[slab] = array[slab]


def _whole(array: Any) -> Box:
    return tuple(slice(0, n) for n in array.shape)


def _share(array: Any) -> Box:
    """Return the elements that this rank reads or writes: its own, or a share of the rows."""
    bounds = array.bounds()
    if bounds is not None:
        found: Box = bounds
        return found
    rows, rank, ranks = array.shape[0], array.group.rank, array.group.size
    return (slice(rows * rank // ranks, rows * (rank + 1) // ranks), *_whole(array)[1:])


def _slabs(box: Box, itemsize: int, chunks: Optional[Sequence[int]]) -> Iterator[Box]:
    """Yield parts of a box of at most 16 MiB, but not of less than a chunk."""
    lengths = [along.stop - along.start for along in box]
    size = math.prod(lengths) * itemsize
    least = [1] * len(box) if chunks is None else chunks
    axis = next((n for n, length in enumerate(lengths) if length > least[n]), None)
    if size == 0:
        return
    if size <= _SLAB or axis is None:
        yield box
        return
    begin, end, unit = box[axis].start, box[axis].stop, least[axis]
    by = max(1, _SLAB * lengths[axis] // size // unit) * unit
    while begin < end:
        # Cuts are at the ends of chunks.
        until = min((begin + by) // unit * unit, end)
        yield from _slabs((*box[:axis], slice(begin, until), *box[axis + 1 :]), itemsize, chunks)
        begin = until


def _chunks(array: Any) -> list[int]:
    """Return the shape of chunks: the largest parts of ranks, cut to a limit."""
    lengths = [max(1, -(-n // ranks)) for n, ranks in zip(array.shape, array.grid)]
    while math.prod(lengths) * array.dtype.itemsize > _CHUNK:
        longest = int(np.argmax(lengths))
        lengths[longest] = -(-lengths[longest] // 2)
    return lengths


def _own_chunks(array: Any, chunks: Sequence[int]) -> Iterator[Box]:
    """Yield the boxes of the chunks that this rank writes."""
    if array.size == 0:
        return
    counts = [-(-n // length) for n, length in zip(array.shape, chunks)]
    number, rank, ranks = math.prod(counts), array.group.rank, array.group.size
    is_block = array.bounds() is not None
    for place, at in enumerate(np.ndindex(*counts)):
        first = tuple(n * length for n, length in zip(at, chunks))
        # The first elements of chunks may all belong to one rank if the array is block-cyclic.
        writer = array.owner(first) if is_block else place * ranks // number
        if writer == rank:
            yield tuple(slice(n, min(n + m, end)) for n, m, end in zip(first, chunks, array.shape))
