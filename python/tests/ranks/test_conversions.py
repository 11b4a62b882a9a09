"""Byte orders, and conversions to objects of Python."""

import contextlib
import pickle

import numpy as np
import pytest

import portolan as pt
from portolan._conversions import unpickled
from samples import distributions, same

X = np.arange(35.0).reshape(5, 7) - 3
DTYPES = ["i2", "u4", "i8", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", ["block", "cyclic"])
def test_arrays_of_the_other_byte_order(dtype, distribution):
    x = np.abs(X).astype(dtype)
    swapped = x.astype(x.dtype.newbyteorder())
    options = {"distribution": pt.cyclic((2, 2)) if distribution == "cyclic" else distribution}
    for a in (pt.array(swapped, **options), pt.array(x, swapped.dtype, **options)):
        assert a.dtype == x.dtype and a.dtype.isnative
        np.testing.assert_array_equal(a[...], x)
    a = pt.zeros(x.shape, swapped.dtype, **options)
    assert a.dtype.isnative and a.astype(swapped.dtype).dtype.isnative
    if pt.rank() == 0:
        a[...] = swapped
        a[1, ::-2] = swapped[0, ::-2]
        a[[3, 4], [5, 6]] = swapped[0, 1:3]
        a[0, 0] = swapped[2, 2]
        a[0, 1] = np.array(swapped[2, 3])
    a.sync()
    expected = x.copy()
    expected[1, ::-2], expected[3, 5], expected[4, 6] = x[0, ::-2], x[0, 1], x[0, 2]
    expected[0, :2] = x[2, 2:4]
    np.testing.assert_array_equal(a[...], expected)
    if distribution == "block":
        b = pt.array(x)
        b += swapped
        np.testing.assert_array_equal((b - swapped)[...], x)
        assert (b - swapped).dtype.isnative and (b == 2 * swapped).all()
    np.testing.assert_array_equal(a[np.array([1, 2], ">i8")], expected[[1, 2]])
    assert pt.full(3, swapped[1, 1:2].reshape(()))[0] == x[1, 1]
    np.testing.assert_array_equal(pt.world.sum(swapped), x * pt.size())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_files_of_the_other_byte_order(dtype, order, shared_path):
    x = np.abs(X).astype(dtype)
    if pt.rank() == 0:
        np.save(shared_path / "a.npy", x.astype(x.dtype.newbyteorder(), order=order))
    pt.barrier()
    a = pt.load(shared_path / "a.npy", distribution="rows")
    assert a.dtype == x.dtype and a.dtype.isnative
    np.testing.assert_array_equal(a[...], x)


def test_items():
    a = pt.array(X.astype("i4"))
    x = X.astype("i4")
    for index in ((2, 3), (-1, -7), ((1, 6),), (0,), (34,), (-1,), (-35,), (np.int8(9),)):
        found = a.item(*index)
        assert type(found) is int and found == x.item(*index)
    for one in (pt.full((1, 1), 2.5), pt.full(1, 1j), pt.ones((1, 1, 1), bool)):
        assert one.item() == one[...].item() and type(one.item()) is type(one[...].item())
    for index in ((), (1, 2, 3)):
        with pytest.raises(ValueError):
            a.item(*index)
    for index in ((35,), (-36,), (5, 0), (0, -8)):
        with pytest.raises(IndexError):
            a.item(*index)
    for index in ((1.0,), ("a",), (slice(2), 1)):
        with pytest.raises(TypeError):
            a.item(*index)
    line = pt.array(x[0])
    assert line.item(3) == x[0, 3] and line.item(-1) == x[0, -1]
    with pytest.raises(ValueError):
        pt.zeros((0, 2)).item()


def test_lists():
    for x in (X, X.astype("i2") > 3, X[0].astype("c8"), np.zeros((3, 0, 2)), np.zeros(0)):
        assert pt.array(x).tolist() == x.tolist()


def test_the_transpose():
    a = pt.array(X, distribution="rows")
    assert isinstance(a.T, pt.Array) and a.T.shape == (7, 5) and a.T.dtype == X.dtype
    np.testing.assert_array_equal(a.T[...], X.T)
    np.testing.assert_allclose((a @ a.T)[...], X @ X.T)
    x = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(pt.array(x).T[...], x.T)
    np.testing.assert_array_equal(pt.array(X[0]).T[...], X[0])


@pytest.mark.parametrize("shape", [(3,), (2, 0), (4, 5), (40, 60)])
def test_texts(shape, monkeypatch):
    x = np.random.default_rng(5).normal(size=shape)
    a, get, gets = pt.array(x), pt.Array.__getitem__, []
    monkeypatch.setattr(pt.Array, "__getitem__", lambda b, index: gets.append(index) or get(b, index))
    assert np.array_str(a, precision=2) == np.array_str(x, precision=2)
    assert np.array2string(a, separator=",", threshold=7) == np.array2string(x, separator=",", threshold=7)
    assert np.array2string(a, threshold=3, edgeitems=1) == np.array2string(x, threshold=3, edgeitems=1)
    assert str(a) == str(x) and str(x) in repr(a) and str(x.shape) in a._repr_html_()
    assert np.array_repr(a) == repr(a)
    assert len(gets) == 8


def test_texts_get_edges_only(monkeypatch):
    a, get, counts = pt.zeros((300, 200, 4)), pt.Array.__getitem__, []

    def counting(b, index):
        found = get(b, index)
        counts.append(np.size(found))
        return found

    monkeypatch.setattr(pt.Array, "__getitem__", counting)
    assert str(a) == str(np.zeros((300, 200, 4)))
    assert sum(counts) == 7 * 7 * 4
    # Only one rank asks for the text.
    if pt.rank() == pt.size() - 1:
        assert "300" in repr(a) and "unnamed" in a._repr_html_()


@pytest.mark.parametrize("kind", range(6))
def test_pickles(kind):
    x = np.arange(24).reshape(4, 6)
    a = pt.array(x, name="plate", distribution=distributions(x.shape)[kind])
    for b in (pickle.loads(pickle.dumps(a)), pt.world.broadcast(a, pt.size() - 1)):
        same(b, x)
        assert b.name == "plate" and a._is_alike(b)
    assert len(pt.world.all_gather(pt.array(x))) == pt.size()
    # A distribution over more ranks.
    values = ([1, 2], {"name": "b", "distribution": pt.grid(99), "ghosts": (0,), "periodic": (False,)})
    same(unpickled(*values), np.array([1, 2]))
    pt.warn_of_gathers(10)
    with pytest.raises(pickle.PicklingError, match="save"):
        pickle.dumps(a)
    pt.warn_of_gathers(1 << 24)
    if pt.size() > 1:
        group = pt.world.subgroup(range(1, pt.size()))
        if group is not None:
            b = pt.zeros(3, group=group)
            with pytest.raises(pickle.PicklingError, match="group"):
                pickle.dumps(b)
            b.free()
            group.free()


def test_dlpack():
    a = pt.array(X)
    np.testing.assert_array_equal(np.from_dlpack(a), X)
    assert a.__dlpack_device__() == X.__dlpack_device__() and a.to_device(a.device) is a
    with pytest.raises(BufferError):
        a.__dlpack__(copy=False)
    with pytest.raises(ValueError):
        a.to_device("gpu")
    with a.access() as mine:
        # Read-only before NumPy 1.25.
        own = np.from_dlpack(mine.local)
        assert np.shares_memory(own, mine.local)
        mine.local += 1
        np.testing.assert_array_equal(own, mine.local)
        del own
    same(a, X + 1)


def test_xarray():
    xarray = pytest.importorskip("xarray")
    a = xarray.DataArray(pt.array(X), dims=("x", "y"))
    x = xarray.DataArray(X, dims=("x", "y"))
    assert isinstance((a * 2 + 1).data, pt.Array)
    for call in (
        lambda z: z + z[0],
        lambda z: np.sqrt(abs(z)),
        lambda z: z.mean("x"),
        lambda z: z.std(),
        lambda z: z.transpose("y", "x"),
        lambda z: z.where(z > 3),
        lambda z: z.isel(x=slice(1, 4)),
        lambda z: z.max("y") - z.min("y"),
    ):
        found, expected = call(a), call(x)
        assert found.dims == expected.dims
        np.testing.assert_allclose(np.asarray(found.data), expected.data)
    assert "portolan" in repr(a)


class Using:
    """A number whose conversion uses an array."""

    def __init__(self, use):
        self.use = use

    def __float__(self):
        self.use()
        return 1.0

    def __index__(self):
        self.use()
        return 1

    __int__ = __index__

    def __bool__(self):
        self.use()
        return True

    def __array__(self, dtype=None, copy=None):
        self.use()
        return np.ones((6, 8))


@pytest.mark.parametrize("dtype", ["bool", "i8", "f8"])
def test_a_conversion_may_use_the_array(dtype):
    a, b = pt.zeros((6, 8), dtype), pt.zeros((6, 8), dtype)
    # NumPy refuses some values; no call may raise anything else.
    allowed = (pt.Error, BufferError, IndexError, OverflowError, TypeError, ValueError)
    with contextlib.suppress(*allowed):
        a.fill(a)
    uses = [
        lambda: a[0, 0],
        lambda: a.put(0, 1),
        lambda: a.get((slice(0, 2), 0)),
        lambda: (a.name, a.shape, repr(a)),
        a.sync,
        a.free,
        lambda: a.fill(0),
        lambda: a.copy_from(b),
        lambda: a.access().release(),
        lambda: pt.stencil(a, b, lambda *_: a[0, 0]),
    ]
    calls = [
        a.fill,
        lambda x: a.__setitem__((0, 0), x),
        lambda x: a.__setitem__((slice(0, 2), 0), x),
        lambda x: a[x, 0],
        lambda x: a.add((0, 0), x),
        lambda x: a.fetch_add((0, 0), x),
        lambda x: a.owner((x, 0)),
        lambda x: a.tiles((x, 2)).free(),
        lambda x: a.start_put((0, 0), x).wait(),
    ]
    for use in uses:
        for call in calls:
            with contextlib.suppress(*allowed):
                call(Using(use))
            try:
                assert a.shape == (6, 8)
            except pt.Error:  # freed
                a = pt.zeros((6, 8), dtype)
    a.fill(Using(a.sync))
    assert a.all()
