"""An exception of a whole-array function on one rank is an exception on all ranks."""

import contextlib
import warnings

import numpy as np
import pytest

import portolan as pt


def ones_and(value, dtype=float):
    """An array whose last element, of the last rank, has another value."""
    x = np.ones(4 * pt.size(), dtype)
    x[-1] = value
    return pt.array(x)


def last_rank_named(error):
    last = pt.size() - 1
    return pt.rank() == last or f"rank {last} of the group" in str(error.value)


def test_floating_point_errors():
    a = ones_and(0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide") as error:
        1 / a
    assert last_rank_named(error)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        np.sqrt(a - 0.5, out=a)
    # The ranks are in step, and the arrays usable.
    a.fill(2)
    a += 1
    assert pt.world.sum(1) == pt.size() and a.sum() == 12 * pt.size()


def test_errors_of_values():
    base, powers = ones_and(2, int), ones_and(-1, int)
    with pytest.raises(ValueError, match="negative") as error:
        base**powers
    assert last_rank_named(error)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning) as error:
            np.log(ones_and(0.0))
        assert last_rank_named(error)


def test_errors_of_other_classes():
    class Own(Exception):
        pass

    def fail(*_):
        raise Own("of the program")

    a = ones_and(0)
    with np.errstate(divide="call", call=fail), pytest.raises(Exception, match="of the program") as error:
        1 / a
    assert error.type is (Own if pt.rank() == pt.size() - 1 else Exception)


def test_errors_of_casts():
    a = ones_and(np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(RuntimeWarning):
            np.array([np.nan]).astype(int)
            pytest.skip("this NumPy does not warn of such casts")
        with pytest.raises(RuntimeWarning, match="cast") as error:
            a.astype(int)
    assert last_rank_named(error)


def test_files_and_objects_of_one_rank(shared_path):
    if pt.rank() == 0:
        np.save(shared_path / "a.npy", np.zeros(3))
    pt.barrier()
    last = pt.rank() == pt.size() - 1
    with pytest.raises(FileNotFoundError) as error:
        pt.load(shared_path / ("none.npy" if last else "a.npy"))
    assert last_rank_named(error)
    for call in (pt.world.broadcast, pt.world.all_gather):
        with pytest.raises(Exception, match="pickle"):
            call(lambda: 1)
    assert pt.world.sum(1) == pt.size()


def test_an_open_access_leaves_the_other_operands_usable():
    a, b, mask = pt.ones(8), pt.ones(8), pt.ones(8, bool)
    with b.access():
        with pytest.raises(pt.Error, match="access"):
            a + b
    with mask.access():
        with pytest.raises(pt.Error, match="access"):
            a.sum(where=mask)
    if pt.rank() == 0:
        a[0] = 3
        b[0] = 2
    a.sync()
    assert (a + b)[0] == 5


def test_warnings_point_at_the_line_of_the_program():
    a = pt.zeros(4 * pt.size()) - 1
    zero, none = pt.zeros(4 * pt.size()), pt.zeros(4 * pt.size())
    calls = {
        "divide by zero encountered in divide": lambda: 1 / zero,
        "invalid value encountered in sqrt": lambda: np.sqrt(a),
        "invalid value encountered in log": lambda: np.log(a, out=zero),
        "invalid value encountered in mean": lambda: pt.zeros((0, 3)).mean(),
        "Casting complex values to real": lambda: a.astype("c16").astype("f8"),
    }
    for text, call in calls.items():
        for _ in range(2):  # the second call takes the plan of the first one
            with pytest.warns(Warning, match=text) as found:
                call()
            assert [warning.filename for warning in found] == [__file__], text
    big, factor = pt.full(4 * pt.size(), 1e300), np.float64(1e300)

    def in_place():
        one = pt.ones(4 * pt.size())
        one /= none

    for call in (lambda: big * big, lambda: factor * big, lambda: big**2, in_place):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="encountered in") as found:
                call()
            assert {warning.filename for warning in found} == {__file__}
    vecdot = getattr(np, "vecdot", None)  # NumPy 2
    if vecdot is not None:
        for _ in range(2):
            with pytest.warns(RuntimeWarning, match="overflow encountered in") as found:
                vecdot(big, big)
            assert [warning.filename for warning in found] == [__file__]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.sqrt(a)
    kinds = []
    with np.errstate(all="call", call=lambda kind, _: kinds.append(kind)):
        np.sqrt(a)
    assert kinds == ["invalid value"]
