"""What each function of NumPy does with distributed arrays: docs/python-functions.md lists it.

Each function is called with arguments with which NumPy's own call succeeds, and its result is compared
with NumPy's. `PORTOLAN_BLESS=1` writes the page.
"""

import os
import re
import sys
import warnings

import numpy as np
import numpy.fft
import pytest
from samples import races

import portolan as pt
from portolan import _scalapack

overrides = pytest.importorskip("numpy.testing.overrides", reason="NumPy before 1.25")

PAGE = os.path.join(os.path.dirname(__file__), *[".."] * 3, "docs", "python-functions.md")
KINDS = {
    "distributed": "give distributed arrays",
    "result": "give every rank the result, a NumPy array or another object",
    "gathers": "get all elements to the calling rank, and warn above the limit",
    "refused": "are refused",
}
RNG = np.random.default_rng(5)
X = RNG.random((4, 4)) + 4 * np.eye(4)
V = RNG.random(6) + 1
N = np.array([3, 1, 2, 1, 0, 2])
P = np.array([1.0, -3.0, 2.0])
B = V > 1.5
#: Arguments that many functions take, in the order of the attempts.
COMMON = [(X,), (V,), (X, X), (V, V), (N,), (N, N), (X, 1), (V, 2), ([X, X],), (X, 0, 1), (B, V)]
SPECIAL = {
    "allclose": (X, X),
    "append": (X, X),
    "concatenate": ([X, X],),
    "stack": ([X, X],),
    "hstack": ([X, X],),
    "vstack": ([X, X],),
    "dstack": ([X, X],),
    "linalg.cross": (X[:, :3], X[:, 1:]),
    "linalg.tensordot": (X.reshape(4, 2, 2), X.reshape(2, 2, 4)),
    "lexsort": ((N, V),),
    "unpackbits": (N.astype(np.uint8),),
    "astype": (X, np.float32),
    "apply_along_axis": (np.sum, 0, X),
    "apply_over_axes": (np.sum, X, 0),
    "array_equal": (X, X),
    "array_split": (V, 4),
    "bincount": (N,),
    "block": ([[X, X]],),
    "broadcast_to": (V, (2, 6)),
    "choose": (N, [V, V, V, V]),
    "clip": (X, 0.5, 1),
    "column_stack": ([V, V],),
    "compress": (B, V),
    "copyto": (X, X + 1),
    "cross": (X[:, :3], X[:, 1:]),
    "delete": (V, 1),
    "digitize": (V, [1.2, 1.5]),
    "dsplit": (X.reshape(2, 2, 4), 2),
    "einsum": ("ij,jk->ki", X, X),
    "einsum_path": ("ij,jk->ki", X, X),
    "expand_dims": (X, 1),
    "extract": (B, V),
    "fill_diagonal": (X, 1.0),
    "full_like": (X, 2.0),
    "gradient": (V,),
    "histogram2d": (V, V),
    "histogramdd": (X,),
    "insert": (V, 1, 2.0),
    "interp": (V, [0.0, 1, 2], [0.0, 2, 3]),
    "isin": (N, [1, 2]),
    "isclose": (X, X),
    "ix_": (N, N),
    "linalg.matrix_power": (X, 2),
    "linalg.multi_dot": ([X, X, X],),
    "linalg.norm": (X,),
    "linalg.tensorsolve": (np.eye(6).reshape(6, 6), V),
    "linalg.tensorinv": (np.eye(4).reshape(2, 2, 2, 2),),
    "meshgrid": (V, V),
    "moveaxis": (X, 0, 1),
    "nanpercentile": (X, 30),
    "nanquantile": (X, 0.3),
    "pad": (X, 1),
    "partition": (V, 2),
    "argpartition": (np.sort(V), 2),
    "percentile": (X, 30),
    "piecewise": (V, [V < 1.5, V >= 1.5], [0.0, 1.0]),
    "place": (V, B, [7.0]),
    "polyadd": (P, P),
    "polyfit": (V, V, 1),
    "polyval": (P, V),
    "put": (V, [1], 7.0),
    "put_along_axis": (X, N[:4].reshape(1, 4), 7.0, 0),
    "putmask": (V, B, 7.0),
    "quantile": (X, 0.3),
    "ravel_multi_index": ((N, N), (4, 4)),
    "repeat": (X, 2),
    "reshape": (X, (2, 8)),
    "resize": (X, (3, 3)),
    "roll": (X, 1),
    "roots": (P,),
    "poly": (P,),
    "rollaxis": (X, 1),
    "searchsorted": (np.sort(V), V),
    "select": ([B, ~B], [V, V]),
    "split": (V, 2),
    "hsplit": (X, 2),
    "vsplit": (X, 2),
    "swapaxes": (X, 0, 1),
    "take": (X, [1, 2], 0),
    "take_along_axis": (X, N[:4].reshape(1, 4), 0),
    "tensordot": (X, X, 1),
    "tile": (X, 2),
    "trim_zeros": (N,),
    "unravel_index": (N, (4, 4)),
    "vander": (P,),
    "where": (X > 1, X, 0.0),
    "ldexp": (V, N),
    "matvec": (X, X[0]),
    "vecmat": (X[0], X),
}
#: Functions that read or write files, work on text, dates and dtypes, or create arrays without an operand.
OTHERS = re.compile(
    "array$|as.*array.*|.*buffer|from.*|gen.*|load.*|save.*|.*day.*|datetime.*|require|arange|empty|eye|full"
    "|identity|linspace|geomspace|logspace|ones|tri|zeros|array_repr|array2string|array_str|diag_indices_from"
    "|copy|isnat|shares_memory|may_share_memory|can_cast|roots|common_type|min_scalar_type|result_type"
)
#: Functions whose results are not arrays or do not compare.
NOT_COMPARED = re.compile(r".*einsum_path|empty_like|linalg\.eig.*|linalg\.svd|linalg\.qr")


def functions():
    """The functions of NumPy and its universal functions, by name."""
    found = {}
    for f in overrides.get_overridable_numpy_array_functions():
        module = f.__module__
        if module in ("numpy", "numpy.linalg", "numpy.fft"):
            found[f"{module}.{f.__name__}".removeprefix("numpy.")] = f
    for name in dir(np):
        if isinstance(getattr(np, name), np.ufunc):
            found[getattr(np, name).__name__] = getattr(np, name)
    return {name: f for name, f in sorted(found.items()) if not OTHERS.fullmatch(name)}


def each(value, convert):
    """Apply a function to the arrays in arguments or results."""
    if isinstance(value, (list, tuple)):
        return (tuple if type(value) is tuple else list)(each(x, convert) for x in value)
    return convert(value) if isinstance(value, (np.ndarray, pt.Array)) else value


def arguments(name, f):
    for given in [SPECIAL[name]] if name in SPECIAL else COMMON:
        try:
            return given, f(*each(given, np.copy))
        except Exception:
            pass
    raise AssertionError(f"no arguments for {name}")


def kind_of(name, f):
    """Call a function, and return its kind."""
    given, expected = arguments(name, f)
    operands, silent, get = each(given, pt.array), [], pt.Array.__getitem__

    def watched(a, index):
        if not sys._getframe(1).f_code.co_filename.startswith(os.path.dirname(pt.__file__)):
            silent.append(index)
        return get(a, index)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pt.GatherWarning)
        pt.warn_of_gathers(0)
        pt.Array.__getitem__ = watched
        try:
            found = f(*operands)
        except TypeError as error:
            assert name in str(error) or name.rpartition(".")[2] in str(error), f"{name}: {error}"
            return "refused"
        finally:
            pt.Array.__getitem__ = get
            pt.warn_of_gathers(1 << 24)
    whole = []
    each([found], whole.append)
    is_warned = any(issubclass(w.category, pt.GatherWarning) for w in caught)
    assert is_warned or not silent, f"{name} gets {silent} elements without a warning"
    if found is None:  # the first operand has changed
        found, expected = operands[0], each(given, np.copy)[0]
        changed = expected.copy()
        f(changed, *given[1:])
        expected = changed
    if not NOT_COMPARED.fullmatch(name):
        compare(name, found, expected)
    if is_warned:
        return "gathers"
    return "distributed" if any(isinstance(x, pt.Array) for x in whole) or f is np.copyto else "result"


def compare(name, found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), name
        for x, y in zip(found, expected):
            compare(name, x, y)
    else:
        found = np.asarray(found)
        assert found.dtype == np.asarray(expected).dtype, name
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


def page(kinds):
    methods = [name for name in dir(np.ndarray) if not name.startswith("_")]
    lacks = [name for name in methods if not hasattr(pt.Array, name)]
    listed = {kind: [name for name, of in kinds.items() if of == kind] for kind in KINDS}
    rows = [f"| {KINDS[kind]} | {code(names)} |" for kind, names in listed.items()]
    return "\n".join(
        [
            "# NumPy functions on distributed arrays",
            "",
            f"This page is made by `python/tests/ranks/test_functions.py` with NumPy {version()}, which calls",
            "each function with distributed arrays and compares the result with NumPy's. Functions that read",
            "or write files, and those that create arrays without an operand, are not listed. Uncommon",
            "arguments of distributed functions may gather; the description of each function says so. The",
            "limit of the warning is 16 MiB, and `portolan.warn_of_gathers` sets it.",
            "",
            "| functions | |",
            "|---|---|",
            *rows,
            f"| methods and attributes of `ndarray` that arrays lack | {code(lacks)} |",
            "",
        ]
    )


def code(names):
    return ", ".join(f"`{name}`" for name in names)


def version():
    return ".".join(np.__version__.split(".")[:2])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@races("in np.put and np.put_along_axis, all ranks put the same values")
def test_the_page_lists_what_each_function_does():
    try:
        _scalapack.library()
    except ImportError as error:
        pytest.skip(str(error))
    kinds = {name: kind_of(name, f) for name, f in functions().items()}
    made = page(kinds)
    if "PORTOLAN_BLESS" in os.environ and pt.rank() == 0:
        with open(PAGE, "w") as file:
            file.write(made)
    pt.barrier()
    with open(PAGE) as file:
        text = file.read()
    if f"NumPy {version()}," in text:
        assert text == made
    for kind, title in KINDS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {title} |"))
        for name in re.findall(r"`([^`]+)`", row):
            assert kinds.get(name, kind) == kind, name
