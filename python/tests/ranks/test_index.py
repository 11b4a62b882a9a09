"""Forms of indices and values, and what is refused. `test_model.py` draws indices at random."""

import tracemalloc

import numpy as np
import pytest
from samples import distributions

import portolan as pt


def test_values_in_flight_may_change():
    a = pt.zeros((6 * pt.size(), 3))
    if pt.rank() == 0:
        rows, value = np.array([0, 4, 2]), np.ones((3, 3))
        begun = a.start_put(rows, value)
        rows[...], value[...] = 1, 7
        begun.wait()
        assert isinstance(a.start_get((0, 1)).wait(), float)
        assert isinstance(a.start_get((np.array(0), 1)).wait(), float)
        with pytest.raises(IndexError):
            a.start_get([0, 6 * pt.size()])
        with pytest.raises(ValueError, match="broadcast"):
            a.start_add([0, 1], np.zeros((3, 3)))
    a.sync()
    assert a[...].sum() == 9


def test_put_takes_positions_in_row_major_order():
    for mode, positions in (("raise", [0, 5, -1]), ("wrap", [0, 17, -1]), ("clip", [-4, 5, 99])):
        a, x = pt.zeros((3, 4)), np.zeros((3, 4))
        np.put(x, positions, [1, 2], mode)
        if pt.rank() == 0:
            a.put(positions, [1, 2], mode)
        a.sync()
        np.testing.assert_array_equal(a[...], x)
        a.sync()
        if pt.rank() == pt.size() - 1:
            np.put(a, [1, 2], 7)
        np.put(x, [1, 2], 7)
        a.sync()
        np.testing.assert_array_equal(a[...], x)
    with pytest.raises(IndexError):
        a.put(12, 0)
    with pytest.raises(TypeError):
        a.put([0.5], 0)
    a.put([], 0)


def test_shapes_are_tuples_in_messages():
    a = pt.zeros((3, 4), name="plate")
    for call, text in [
        (lambda: a[3], r'"plate" of shape \(3, 4\)'),
        (lambda: pt.zeros(5, name="line")[5], r"of shape \(5,\)"),
        (lambda: a.copy_from(pt.zeros(5, name="line")), r'"plate" has the shape \(3, 4\), array "line" \(5,\)'),
        (lambda: a.get(np.s_[:2], out=np.zeros((2, 3))), r"of shape \(2, 3\) for elements of shape \(2, 4\)"),
    ]:
        with pytest.raises((IndexError, ValueError), match=text):
            call()


def test_fetch_add_hands_out_each_number_once():
    a = pt.zeros(3, "u4")
    mine = [int(a.fetch_add(1)) for _ in range(40)]
    everyone = sorted(sum(pt.world.all_gather(mine), []))
    assert everyone == list(range(40 * pt.size()))
    assert a.fetch_add(1, 5) >= 40 * pt.size()
    with pytest.raises(TypeError, match="float64"):
        pt.zeros(3).fetch_add(1)


BAD = [
    (5, IndexError),
    (-6, IndexError),
    ((1, 2, 3), IndexError),
    ((..., ...), IndexError),
    (1.0, IndexError),
    ("x", IndexError),
    (10**30, IndexError),
    ([0, 5], IndexError),
    (([0, 1], [0, 9]), IndexError),
    (([], 4), IndexError),
    (slice(None, None, 0), ValueError),
]


@pytest.mark.parametrize("index, error", BAD, ids=[repr(index) for index, _ in BAD])
def test_refused_indices(index, error):
    a = pt.zeros((5, 4), name="plate")
    with pytest.raises(error) as raised:
        a[index]
    if error is IndexError:
        assert "plate" in str(raised.value)
    with pytest.raises(error):
        a[index] = 0
    with pytest.raises(error):
        a.add(index, 0)


def test_forms_of_indices_and_results():
    x = np.arange(20.0).reshape(5, 4)
    a = pt.array(x)
    one = np.array(1)
    for i in [(..., 1, 1), (1, 1, ...), (one, one), range(3), (range(2), 3), np.True_, np.False_]:
        found, wanted = a[i], x[i]
        np.testing.assert_array_equal(found, wanted)
        assert type(found) is type(wanted) and np.shape(found) == np.shape(wanted), i
    for i in [([1], [0, 2, -1]), (np.array([[1], [-5]]), np.array([0, 3])), ([], [])]:
        np.testing.assert_array_equal(a[i], x[i])
    a.sync()
    assert 7.0 in a and 20.0 not in a
    assert [v.tolist() for v in a] == x.tolist()
    v = pt.zeros(4)
    if pt.rank() == 0:
        v[2] = np.array([5.0])
        v.add(2, [1.0])
        v[0:0] = []
    v.sync()
    assert list(v) == [0, 0, 6, 0]


def test_index_arrays_cost_nothing_per_element_of_the_array():
    a = pt.zeros(10_000_000, "i1")
    tracemalloc.start()
    a[np.array([5, -7])]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    a.sync()


def test_distributed_masks():
    random = np.random.default_rng(11)
    whole, rows, columns = (random.random(n) < 0.4 for n in ((6, 5, 3), 6, 5))
    x = np.arange(90.0).reshape(6, 5, 3)
    for distribution in distributions(x.shape):
        a = pt.array(x, distribution=distribution)
        middle = (whole[:, :, 0], np.arange(3) == 1)
        for i in [(whole,), (rows,), middle[:1], middle, (rows, 2), (slice(None), columns, 1)]:
            j = tuple(pt.array(k) if isinstance(k, np.ndarray) else k for k in i)
            np.testing.assert_array_equal(a[j], x[i])
            np.testing.assert_array_equal(a.get(j), x[i])
            a.sync()
            if pt.rank() == 0:
                a[j] = x[i] - 3
                a.add(j, 2, alpha=0.5)
            a.sync()
            x[i] -= 2
            np.testing.assert_array_equal(a[...], x)
        # The order of the elements is that of NumPy, whatever the distribution.
        np.testing.assert_array_equal(a[a > 3], x[x > 3])
        assert a[a != a].shape == (0,)


def test_distributed_indices():
    class Other:
        def __array__(self, dtype=None, copy=None):
            return np.array([True, False, False, True])

    x = np.arange(28.0).reshape(7, 4)
    a = pt.array(x)
    np.testing.assert_array_equal(a[1, Other()], x[1, [True, False, False, True]])
    np.testing.assert_array_equal(a[np.True_], x[np.True_])
    i = np.array([[3, -1], [0, 3]])
    np.testing.assert_array_equal(a[pt.array(i), 1], x[i, 1])
    np.testing.assert_array_equal(x[pt.array(x[:, 0] > 5)], x[x[:, 0] > 5])
    for index in (pt.zeros(7), np.float64(1), np.array(1.0)):
        with pytest.raises(IndexError):
            a[index]
    with pytest.raises(IndexError):
        a[pt.array([7])]


def test_refused_masks():
    a = pt.zeros((5, 4))
    for shape in [(5, 3), (4, 4), (4,), (4, 5), (5, 4, 1)]:
        for mask in (np.ones(shape, bool), pt.ones(shape, bool)):
            with pytest.raises(IndexError):
                a[mask]
            with pytest.raises(IndexError):
                a[mask] = 0
            with pytest.raises(IndexError):
                a.add(mask, 0)
    mask = np.arange(20).reshape(5, 4) % 3 == 0
    for values in (np.zeros(6), np.zeros(8), np.zeros((7, 1)), []):
        with pytest.raises(ValueError, match="broadcast"):
            a[mask] = values
    with pytest.raises(TypeError, match="cast"):
        a[mask] = 1j
    with pytest.raises(TypeError, match="index arrays"):
        a.get(pt.array(mask), out=np.zeros(7))
    assert not a[...].any()


def test_refused_values():
    a, b, c = pt.zeros((5, 4)), pt.zeros((5, 4), "i4"), pt.zeros(3, "u1")
    with pytest.raises(ValueError, match="broadcast"):
        a[...] = np.zeros(3)
    with pytest.raises(ValueError, match="broadcast"):
        a[0] = np.zeros((2, 4))
    with pytest.raises(TypeError):
        b[...] = 1.5
    with pytest.raises(TypeError):
        b[0, 0] = 1.5
    with pytest.raises(TypeError):
        a[0, 0] = 1j
    with pytest.raises(TypeError):
        b[0] = np.zeros(4)
    with pytest.raises(TypeError):
        a[0, 0] = "1"
    with pytest.raises(OverflowError):
        c[0] = 256
    with pytest.raises(OverflowError):
        c[...] = [1, 2, -3]
    with pytest.raises(TypeError):
        a.get(np.s_[0], out=np.zeros(4, "f4"))
    with pytest.raises(ValueError):
        a.get(np.s_[0], out=np.zeros(5))
    readonly = np.zeros(4)
    readonly.flags.writeable = False
    with pytest.raises(ValueError):
        a.get(np.s_[0], out=readonly)
    assert not a[...].any() and not b[...].any() and not c[...].any()


@pytest.mark.parametrize(
    "layout",
    [
        [("pad", "i1"), ("x", "f8")],  # not aligned
        [("x", "c16"), ("pad", "i8")],  # aligned, at distances of 24 bytes
        [("x", "f4"), ("pad", "f8")],
        [("x", "i2"), ("pad", "i2")],  # at a multiple of the size
        [("pad", "f4"), ("x", "?"), ("rest", "i2")],
    ],
)
def test_fields_of_structured_arrays(layout):
    field = np.zeros((4, 5), dtype=layout)["x"]
    field[...] = np.arange(20).reshape(4, 5) % 7
    a = pt.zeros((4, 5), field.dtype)
    if pt.rank() == 0:
        a[...] = field
    a.sync()
    np.testing.assert_array_equal(a[...], field)
    a.sync()
    if pt.rank() == 0:
        a.start_put(1, field[0]).wait()
        a[[2, 3, 3], [1, 0, 4]] = field[0, :3]
    a.sync()
    np.testing.assert_array_equal(a[1], field[0])
    np.testing.assert_array_equal(a[[2, 3, 3], [1, 0, 4]], field[0, :3])
    expected = field * field.dtype.type(pt.size()) if field.dtype != bool else field
    np.testing.assert_array_equal(pt.world.all_reduce(field, "sum"), pt.size() * field.astype(expected.dtype))
    target = np.zeros((4, 5), dtype=layout)["x"]
    if all(stride % target.itemsize == 0 for stride in target.strides) and target.flags.aligned:
        a.get(..., out=target)
        np.testing.assert_array_equal(target, a[...])
    else:
        with pytest.raises(ValueError, match="aligned"):
            a.get(..., out=target)


def test_a_read_only_source_is_put_and_no_target():
    a, x = pt.zeros(4), np.arange(4.0)
    x.flags.writeable = False
    if pt.rank() == 0:
        a[...] = x
    a.sync()
    assert a[...].tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        a.get(..., out=x)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "u4"])
def test_indices_of_small_dtypes(dtype):
    x = np.arange(70000).reshape(2, 35000)
    a = pt.array(x)
    rows, columns = np.array([1, 0], dtype), np.array([3, 100], dtype)
    np.testing.assert_array_equal(a[rows, columns], x[rows, columns])
    assert a[np.array(1, dtype), columns][1] == x[1, 100]
    if dtype[0] == "i":
        np.testing.assert_array_equal(a[-rows, -columns], x[-rows, -columns])


def test_targets_of_a_wrong_shape_are_refused():
    a = pt.array(np.arange(36.0).reshape(6, 6), name="square")
    for shape in ((36,), (6,), (), (6, 6, 1), (5, 6)):
        for index in ((slice(None, None, -1), slice(None, None, -1)), slice(None)):
            with pytest.raises(ValueError, match="square.*shape"):
                a.get(index, out=np.empty(shape))


def test_scalars_of_numpy():
    a, i = pt.zeros(3, name="a"), pt.zeros(3, int)
    for put in (lambda x: a.__setitem__(0, x), a.fill, lambda x: a.add(0, 1.0, alpha=x)):
        with pytest.raises(TypeError, match="complex64"):
            put(np.complex64(1 + 5j))
    i[pt.rank() % 3] = np.float64(3) > 2
    i.sync()
    i.fill(np.True_)
    assert i.sum() == 3 and pt.full(2, np.True_, int).sum() == 2


def test_bools_after_all_axes():
    x = np.arange(12).reshape(3, 4)
    a = pt.array(x)
    for index in ((0, 1, True), (0, np.s_[1:], np.False_), (2, 3, np.True_, True), (1, 1, np.array(True))):
        np.testing.assert_array_equal(a[index], x[index])
    with pytest.raises(IndexError, match="too many"):
        a[0, 0, 0]


def test_errors_of_elements_name_the_array_and_the_value():
    i, u = pt.zeros(3, "i1", name="small"), pt.zeros(3, "u4", name="unsigned")
    for call in (lambda x: i.__setitem__(0, x), i.fill):
        with pytest.raises(OverflowError, match='array "small": 300 is out of bounds for int8'):
            call(300)
        with pytest.raises(TypeError, match='array "small": '):
            call(1.5)
    with pytest.raises(OverflowError, match='array "unsigned": -1 is out of bounds for uint32'):
        u[0] = -1


def test_integers_of_numpy_are_cast_by_value():
    a = pt.zeros((3, 4), "u1")
    for value in (np.int64(7), np.uint64(8), np.int8(9), np.bool_(True)):
        a[pt.rank() % 3] = value
        a[[pt.rank() % 3], [0]] = value
        assert a[pt.rank() % 3].tolist() == [value] * 4
        pt.barrier()
    for value in (np.int64(300), np.int8(-1)):
        with pytest.raises(OverflowError, match="out of bounds"):
            a[0] = value
    with pytest.raises(TypeError, match="cast"):
        a[0] = np.float64(2)
    with pytest.raises(TypeError, match="cast"):
        a[0] = np.arange(4)
