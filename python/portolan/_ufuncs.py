"""NumPy's universal functions on distributed arrays, unless the native class knows them (`src/ufunc.rs`).

A ufunc applies to the own elements of each rank, during an access of all arrays that take part
(`_native._apply`), and to the parts of operands that are distributed otherwise (`_alignment.part`). If
the function raises on one rank, all raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._alignment import mask, model_of, part
from ._products import matmul, vecdot
from ._reductions import BY_UFUNC, reduce
from ._start import _native
from ._warnings import reported

_HALF = np.dtype("f2")
_SCALARS = (int, float, complex, bool)
#: Whether only the type of a scalar has an effect on the dtype of a result (NumPy 2).
_IS_WEAK = int(np.__version__.split(".")[0]) >= 2


def array_ufunc(ufunc: np.ufunc, method: str, inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `Array.__array_ufunc__`."""
    if ufunc is np.matmul and method == "__call__":
        return matmul(inputs, options)
    if ufunc.__name__ == "vecdot" and method == "__call__":
        return vecdot(*inputs, **options)
    if method == "reduce" and ufunc in BY_UFUNC:
        return _reduce(ufunc, *inputs, **options)
    if method != "__call__" or ufunc.signature is not None:
        call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        other = "use a.add(index, value), or " if call == "add.at" else ""
        raise TypeError(
            f"{call} does not work on distributed arrays; {other}for numpy arrays of all elements, "
            "use numpy.asarray()"
        )
    name = ufunc.__name__
    given = options.pop("out", None) or (None,) * ufunc.nout
    _check_outs(ufunc, given)
    where = options.pop("where", True)
    dtypes, loop = _plan(ufunc, inputs, options)
    for target, dtype in zip(given, dtypes):
        if target is not None and not np.can_cast(
            dtype, target.dtype, options.get("casting", "same_kind")
        ):
            raise TypeError(
                f"cannot cast ufunc '{name}' output from {dtype!r} to {target.dtype!r}"
            )
    masks = () if where is True else (where,)
    targets = [x for x in given if x is not None]
    model, is_new = model_of(name, (*inputs, *masks), dtypes[0], targets)
    parts = tuple([x if type(x) in _SCALARS else part(name, x, model) for x in inputs])
    chosen = mask(name, where, model) if masks else None
    outs: list[Any] = []
    for target, dtype in zip(given, dtypes):
        if target is None:
            outs.append(model if is_new and not outs else model._like(dtype, name, accessed=True))
        elif target is model or model._is_alike(target):
            outs.append(target)
        else:
            outs.append(model._like(target.dtype, name))
            outs[-1].copy_from(target)
    with reported(name):
        _native._apply(ufunc, parts, tuple(outs), chosen, options | loop or None)
    for n, target in enumerate(given):
        if target is not None and target is not outs[n]:
            target.copy_from(outs[n])
            outs[n] = target
    return outs[0] if ufunc.nout == 1 else tuple(outs)


def _plan(
    ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]
) -> tuple[list[np.dtype[Any]], dict[str, Any]]:
    """Return the dtypes of the results, and options that choose a loop of the function."""
    is_plain = not options and all(map(_has_kind, inputs))
    if is_plain:
        known: Any = _native._recall(ufunc, inputs)
        if known is not None:
            return known  # type: ignore[no-any-return]
    # NumPy finds the dtypes.
    sample = [_sample(x) for x in inputs]
    loop: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        found = ufunc(*sample, **options)
        results = found if ufunc.nout > 1 else (found,)
        if any(r.dtype == _HALF for r in results):
            # Arrays cannot have the dtype float16, which NumPy's functions give for integers of one
            # byte. So the function computes in float32.
            loop = {"signature": ("f4",) * ufunc.nin + (None,) * ufunc.nout}
            try:
                found = ufunc(*sample, **options, **loop)
                results = found if ufunc.nout > 1 else (found,)
            except TypeError:
                loop = {}
    plan = [np.dtype("f4") if r.dtype == _HALF else r.dtype for r in results], loop
    if is_plain:
        _native._learn(ufunc, inputs, plan)
    return plan


def _has_kind(operand: Any) -> bool:
    """Return whether only the dtype or the type of an operand has an effect on dtypes of results."""
    if isinstance(operand, _native.ArrayBase):
        return True
    return _IS_WEAK and (type(operand) in _SCALARS or isinstance(operand, np.number))


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


def _sample(operand: Any) -> Any:
    # NumPy 1 looks at the value of an array without axes.
    if isinstance(operand, _native.ArrayBase) or isinstance(operand, np.ndarray) and operand.ndim:
        return np.ones(1, operand.dtype)
    return operand
