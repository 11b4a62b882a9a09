"""Files of HDF5 and Zarr, written and read by distributed arrays and by their own libraries."""

import sys

import numpy as np
import pytest

import portolan as pt
from portolan import _files

from samples import distributions, same

DTYPES = ["?", "i1", "u2", "i8", "f4", "f8", "c8", "c16"]
SHAPES = [(17,), (9, 7), (4, 5, 6)]


def values(shape, dtype="f8"):
    return (np.arange(np.prod(shape)).reshape(shape) % 97).astype(dtype)


@pytest.fixture(autouse=True, params=[1 << 24, 64], ids=["whole", "slabs"])
def _slabs(request, monkeypatch):
    monkeypatch.setattr(_files, "_SLAB", request.param)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hdf5_dtypes(shared_path, dtype):
    h5py = pytest.importorskip("h5py")
    x = values((6, 5), dtype)
    path = shared_path / "a.h5"
    pt.array(x).to_hdf5(path)
    with h5py.File(path, "r") as file:
        same(pt.array(file["data"][...]), x)
    same(pt.from_hdf5(path), x)


@pytest.mark.parametrize("shape", SHAPES)
def test_hdf5_distributions(shared_path, shape):
    h5py = pytest.importorskip("h5py")
    path = str(shared_path / "a.h5")
    every = distributions(shape)
    for n, kind in enumerate(every):
        x = values(shape) + n
        pt.array(x, distribution=kind).to_hdf5(path, f"group/{n}")
        pt.array(x, distribution=kind).to_hdf5(path, f"chunked/{n}", chunks=(2,) * len(shape), compression="gzip")
    with h5py.File(path, "r") as file:
        assert len(file["group"]) == len(file["chunked"]) == len(every)
        for n in range(len(every)):
            assert (file[f"group/{n}"][...] == values(shape) + n).all()
        assert file["chunked/0"].chunks == (2,) * len(shape)
    pt.barrier()
    for n, kind in enumerate(every):
        for dataset in (f"group/{n}", f"chunked/{n}"):
            found = pt.from_hdf5(path, dataset, distribution=kind, name="read")
            assert found.distribution[0] == pt.zeros(shape, distribution=kind).distribution[0]
            same(found, values(shape) + n)


def test_hdf5_modes(shared_path):
    h5py = pytest.importorskip("h5py")
    path = shared_path / "a.h5"
    a = pt.array(values((4, 4)))
    a.to_hdf5(path, "a")
    a.to_hdf5(path, "b")
    (a + 1).to_hdf5(path, "a")
    same(pt.from_hdf5(path, "a"), values((4, 4)) + 1)
    with pytest.raises(TypeError, match="[Ss]hape"):
        pt.zeros(3).to_hdf5(path, "a")
    with pytest.raises(TypeError, match="[Dd]atatype"):
        pt.zeros((4, 4), "f4").to_hdf5(path, "a")
    a.to_hdf5(path, "c", mode="w")
    with h5py.File(path, "r") as file:
        assert list(file) == ["c"]


def test_hdf5_errors(shared_path):
    h5py = pytest.importorskip("h5py")
    # All ranks raise, also if only one has tried.
    with pytest.raises(OSError):
        pt.zeros(3).to_hdf5(shared_path / "no" / "folder.h5")
    with pytest.raises(OSError):
        pt.from_hdf5(shared_path / "none.h5")
    if pt.rank() == 0:
        with h5py.File(shared_path / "a.h5", "w") as file:
            file.create_group("group")
            file["text"] = "text"
            file["big"] = np.arange(5, dtype=">i4")
    pt.barrier()
    with pytest.raises(KeyError):
        pt.from_hdf5(shared_path / "a.h5", "none")
    with pytest.raises(ValueError, match="no array"):
        pt.from_hdf5(shared_path / "a.h5", "group")
    with pytest.raises((TypeError, ValueError)):
        pt.from_hdf5(shared_path / "a.h5", "text")
    same(pt.from_hdf5(shared_path / "a.h5", "big"), np.arange(5, dtype="i4"))


def test_hdf5_of_a_group(shared_path):
    pytest.importorskip("h5py")
    group = pt.world.subgroup(list(range(pt.size()))[::-1][: max(1, pt.size() - 1)])
    x = values((5, 4))
    if group is not None:
        pt.array(x, group=group).to_hdf5(shared_path / "a.h5")
        same(pt.from_hdf5(shared_path / "a.h5", group=group), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zarr_dtypes(shared_path, dtype):
    zarr = pytest.importorskip("zarr")
    x = values((6, 5), dtype)
    pt.array(x).to_zarr(shared_path / "a.zarr")
    same(pt.array(zarr.open_array(str(shared_path / "a.zarr"), mode="r")[...]), x)
    same(pt.from_zarr(shared_path / "a.zarr"), x)


@pytest.mark.parametrize("shape", SHAPES)
def test_zarr_distributions(shared_path, shape):
    pytest.importorskip("zarr")
    for n, kind in enumerate(distributions(shape)):
        x = values(shape) + n
        chunks = (None, (2,) * len(shape), (100,) * len(shape))[n % 3]
        place = str(shared_path / f"{n}.zarr")
        pt.array(x, distribution=kind).to_zarr(place, "deep/a", chunks=chunks)
        same(pt.from_zarr(place, "deep/a", distribution=kind), x)


def test_zarr_chunks_have_one_writer(shared_path):
    shape = (23, 11)

    def own(a, chunks):
        return [tuple((s.start, s.stop) for s in box) for box in _files._own_chunks(a, chunks)]

    for kind in distributions(shape):
        a = pt.zeros(shape, distribution=kind)
        for chunks in (_files._chunks(a), (1, 1), (4, 3), (23, 1), (50, 50)):
            every = [box for own in pt.world.all_gather(own(a, chunks)) for box in own]
            assert len(set(every)) == len(every)
            count = np.zeros(shape, int)
            for (top, bottom), (left, right) in every:
                assert top % chunks[0] == left % chunks[1] == 0
                count[top:bottom, left:right] += 1
            assert (count == 1).all()
    # By default each rank writes its own part.
    a = pt.zeros((8 * pt.size(), 3), distribution="rows")
    assert own(a, _files._chunks(a)) == [((8 * pt.rank(), 8 * pt.rank() + 8), (0, 3))]


def test_zarr_modes(shared_path):
    pytest.importorskip("zarr")
    place = shared_path / "a.zarr"
    a = pt.array(values((4, 4)))
    a.to_zarr(place)
    (a + 1).to_zarr(place)
    same(pt.from_zarr(place), values((4, 4)) + 1)
    with pytest.raises(ValueError, match="mode"):
        pt.zeros(3).to_zarr(place)
    pt.zeros(3).to_zarr(place, mode="w")
    same(pt.from_zarr(place), np.zeros(3))


def test_zarr_errors(shared_path):
    pytest.importorskip("zarr")
    with pytest.raises((OSError, KeyError, ValueError)):
        pt.from_zarr(shared_path / "none.zarr")
    (shared_path / "file").write_text("")
    with pytest.raises((OSError, KeyError, ValueError)):
        pt.zeros(3).to_zarr(shared_path / "file" / "a.zarr")


def test_empty_arrays(shared_path):
    pytest.importorskip("h5py")
    pytest.importorskip("zarr")
    pt.zeros((0, 3)).to_hdf5(shared_path / "a.h5")
    same(pt.from_hdf5(shared_path / "a.h5"), np.zeros((0, 3)))
    pt.zeros((0, 3)).to_zarr(shared_path / "a.zarr")
    same(pt.from_zarr(shared_path / "a.zarr"), np.zeros((0, 3)))


@pytest.mark.parametrize("module", ["h5py", "zarr"])
def test_missing_packages(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    call = pt.from_hdf5 if module == "h5py" else pt.from_zarr
    with pytest.raises(ImportError, match=f"pip install {module}"):
        call("none")


def test_slabs():
    for chunks in (None, (1, 1, 1), (3, 2, 4), (10, 10, 10)):
        box = (slice(2, 9), slice(0, 7), slice(3, 8))
        count = np.zeros((9, 7, 8), int)
        for slab in _files._slabs(box, 8, chunks):
            count[slab] += 1
            assert all(s.start < s.stop for s in slab)
            if chunks is not None:
                assert all(s.start % n == 0 or s.start == b.start for s, n, b in zip(slab, chunks, box))
        assert (count[box] == 1).all() and count.sum() == 7 * 7 * 5
