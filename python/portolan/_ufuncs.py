"""NumPy's universal functions on distributed arrays.

A ufunc applies to the own elements of each rank, during an access of all arrays that take part. All
ranks run the same sequence of accesses and releases, also if the function raises on one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._reductions import BY_UFUNC, reduce
from ._start import _native


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `Array.__array_ufunc__`."""
    if ufunc is np.matmul and method == "__call__":
        return _matmul(inputs, options)
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
    arrays = [x for x in (*inputs, *given) if isinstance(x, _native.ArrayBase)]
    where = options.pop("where", True)
    if isinstance(where, _native.ArrayBase):
        arrays.append(where)
    model = arrays[0]
    for other in arrays[1:]:
        _check_alike(ufunc, model, other)
    parts = [x if isinstance(x, _native.ArrayBase) else _part(ufunc, x, model) for x in inputs]
    if not isinstance(where, _native.ArrayBase):
        where = _part(ufunc, where, model)
    if np.result_type(getattr(where, "dtype", where)) != np.bool_:
        raise TypeError(f"{ufunc.__name__}: `where` is not a bool or an array of bools")
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
    **others: Any,
) -> Any:
    if others:
        raise TypeError(f"{ufunc.__name__}.reduce of a distributed array has no {min(others)}")
    return reduce(array, BY_UFUNC[ufunc], axis, keepdims, dtype, out[0])


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


def _check_alike(ufunc: np.ufunc, a: Any, b: Any) -> None:
    if a.shape != b.shape:
        raise ValueError(
            f'operands could not be broadcast together: {ufunc.__name__} of "{a.name}" {a.shape} '
            f'and "{b.name}" {b.shape}'
        )
    if a.group != b.group:
        raise ValueError(
            f'{ufunc.__name__}: "{a.name}" and "{b.name}" belong to different groups; use '
            "redistribute() with group="
        )
    alike = a.grid == b.grid and a._has_blocks_of(b)
    if not alike or (a.bounds() is None and a.distribution != b.distribution):
        raise ValueError(
            f'{ufunc.__name__}: "{a.name}" and "{b.name}" are not distributed alike; use '
            "redistribute()"
        )


def _part(ufunc: np.ufunc, value: Any, model: Any) -> Any:
    """Return the part of an operand that belongs to this rank's elements."""
    if np.ndim(value) == 0:
        return value
    bounds = model.bounds()
    if bounds is None:
        raise TypeError(
            f"{ufunc.__name__}: numpy arrays do not combine with block-cyclic arrays; use "
            "portolan.array()"
        )
    found = np.asarray(value)
    try:
        return np.broadcast_to(found, model.shape)[bounds]
    except ValueError:
        raise ValueError(
            f'operands could not be broadcast together: {ufunc.__name__} of array "{model.name}" '
            f"{model.shape} and a numpy array {found.shape}"
        ) from None


def _apply(
    ufunc: np.ufunc, parts: list[Any], outs: list[Any], where: Any, options: dict[str, Any]
) -> None:
    distinct = {id(x): x for x in (*parts, *outs, where) if isinstance(x, _native.ArrayBase)}
    accesses = {key: x.access() for key, x in distinct.items()}
    try:
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


def _matmul(inputs: Any, options: dict[str, Any]) -> Any:
    a, b = inputs
    if not (isinstance(a, _native.ArrayBase) and isinstance(b, _native.ArrayBase)):
        raise TypeError("@ of a distributed array needs another one; use portolan.array()")
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"@ needs two matrices, not arrays of {a.ndim} and {b.ndim} axes")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f'matmul: "{a.name}" {a.shape} and "{b.name}" {b.shape} have a mismatch in the inner '
            f"dimension ({a.shape[1]} is different from {b.shape[0]})"
        )
    outs = options.pop("out", (None,))
    if options:
        raise TypeError(f"@ of distributed arrays has no {min(options)}")
    _check_outs(np.matmul, outs)
    target = outs[0]
    if target is None:
        target = type(a)((a.shape[0], b.shape[1]), a.dtype, name="matmul", group=a._group)
    target.matmul_from(a, b)
    return target
