"""NumPy's universal functions on distributed arrays.

A ufunc applies to the own elements of each rank, during an access of all arrays that take part. All
ranks run the same sequence of accesses and releases. If the function raises on one of them, all raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._operands import Agreement, mask, part
from ._products import matmul
from ._reductions import BY_UFUNC, reduce
from ._start import _native


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `Array.__array_ufunc__`."""
    if ufunc is np.matmul and method == "__call__":
        return matmul(inputs, options)
    if method == "reduce" and ufunc in BY_UFUNC:
        return _reduce(ufunc, *inputs, **options)
    if method != "__call__" or ufunc.signature is not None:
        call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise TypeError(
            f"{call} does not work on distributed arrays; for numpy arrays of all elements, use "
            "numpy.asarray()"
        )
    given = options.pop("out", (None,) * ufunc.nout)
    _check_outs(ufunc, given)
    where = options.pop("where", True)
    model = next(x for x in (*inputs, *given, where) if isinstance(x, _native.ArrayBase))
    parts = [part(ufunc.__name__, x, model) for x in inputs]
    for target in given:
        part(ufunc.__name__, target, model)
    where = mask(ufunc.__name__, where, model)
    # NumPy finds the dtypes of the results.
    sample = [_sample(x, model.ndim) for x in parts]
    with np.errstate(all="ignore"):
        found = ufunc(*sample, **options)
    results = found if ufunc.nout > 1 else (found,)
    # Arrays cannot have the dtype float16, which NumPy's functions give for integers of one byte.
    dtypes = [np.dtype("f4") if r.dtype == "f2" else r.dtype for r in results]
    casting = options.get("casting", "same_kind")
    for target, dtype in zip(given, dtypes):
        if target is not None and not np.can_cast(dtype, target.dtype, casting):
            raise TypeError(
                f"cannot cast ufunc '{ufunc.__name__}' output from {dtype!r} to {target.dtype!r}"
            )
    outs = [
        model._like(dtype, ufunc.__name__) if target is None else target
        for target, dtype in zip(given, dtypes)
    ]
    _apply(ufunc, parts, outs, where, options)
    return outs[0] if ufunc.nout == 1 else tuple(outs)


def _reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = (None,),
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    if not isinstance(array, _native.ArrayBase):
        raise TypeError(
            f"{ufunc.__name__}.reduce: `where` or `out` is a distributed array, and the operand is not; "
            "use numpy.asarray() of it, or portolan.array() of the operand"
        )
    return reduce(array, BY_UFUNC[ufunc], axis, keepdims, dtype, out[0], initial, where)


def _check_outs(ufunc: np.ufunc, outs: Any) -> None:
    if not all(x is None or isinstance(x, _native.ArrayBase) for x in outs):
        raise TypeError(
            f"{ufunc.__name__}: the output of distributed arrays is a distributed array; for a "
            "numpy array, use numpy.asarray() of the operands"
        )


def _sample(operand: Any, ndim: int) -> Any:
    # NumPy 1 looks at the value of an array without axes.
    if isinstance(operand, _native.ArrayBase) or isinstance(operand, np.ndarray) and operand.ndim:
        return np.ones((1,) * ndim, operand.dtype)
    return operand


def _apply(
    ufunc: np.ufunc, parts: list[Any], outs: list[Any], where: Any, options: dict[str, Any]
) -> None:
    distinct = {id(x): x for x in (*parts, *outs, where) if isinstance(x, _native.ArrayBase)}
    accesses: dict[int, Any] = {}
    with Agreement(outs[0]):
        try:
            for key, x in distinct.items():
                accesses[key] = x.access()
            # The views die with the call, before the releases.
            ufunc(
                *[accesses[id(x)].local if id(x) in accesses else x for x in parts],
                out=tuple(accesses[id(x)].local for x in outs),
                where=accesses[id(where)].local if id(where) in accesses else where,
                **options,
            )
        finally:
            for access in accesses.values():
                access.release()
