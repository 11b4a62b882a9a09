"""Operands of other shapes and distributions than the result.

A result has the distribution of `out`, or of the first operand of its shape. From every other
distributed operand, each rank gets the elements that belong to its own elements of the result
(`part`). So arrays combine whatever their distributions are. `realignments` counts these gets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._blocks import Indices, check_group, get_box, is_distributed, make
from ._operands import Agreement

_count = _bytes = 0


def realignments() -> tuple[int, int]:
    """Return the number of operands that this rank has got because of their distribution, and their bytes.

    An operand of a universal function, a reduction or a product is counted if its shape or distribution
    is not that of the result. Not collective. `redistribute` an operand of many calls once.
    """
    return _count, _bytes


def shape_of(x: Any) -> tuple[int, ...]:
    return x.shape if hasattr(x, "shape") else np.shape(x)


def _named(x: Any) -> str:
    return f'array "{x.name}" {x.shape}' if is_distributed(x) else f"a numpy array {shape_of(x)}"


def common_shape(name: str, operands: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape to which operands broadcast."""
    try:
        return np.broadcast_shapes(*[shape_of(x) for x in operands])
    except ValueError:
        raise ValueError(
            f"operands could not be broadcast together: {name} of {' and '.join(map(_named, operands))}"
        ) from None


def model_of(
    name: str, operands: Sequence[Any], dtype: Any, outs: Sequence[Any] = ()
) -> tuple[Any, bool]:
    """Return an array with the distribution of a result, and whether it is a new array. Collective."""
    shape = common_shape(name, operands)
    distributed = [x for x in operands if is_distributed(x)]
    for out in outs:
        if common_shape(name, (out, *operands)) != out.shape:
            raise ValueError(
                f'{name}: the output "{out.name}" {out.shape} does not broadcast to the shape {shape}'
            )
    for x in (*outs[:1], *distributed):
        if x.shape == (outs[0].shape if outs else shape):
            return x, False
    return make(distributed[0], shape, dtype, name), True


def own_indices(model: Any) -> Indices:
    """Return the indices of this rank's elements along each axis. Collective if block-cyclic."""
    bounds = model.bounds()
    if bounds is not None:
        return [np.arange(along.start, along.stop) for along in bounds]
    mine = model.access()
    try:
        return [mine.indices(axis) for axis in range(model.ndim)]
    finally:
        mine.release()


def along(indices: Indices, shape: Sequence[int], whole: Sequence[int]) -> Indices:
    """Return the indices of an operand that broadcasts to a shape, by those of an array of that shape."""
    skipped = len(whole) - len(shape)
    last = zip(indices[skipped:], shape, whole[skipped:])
    return [at if n == length else np.zeros(1, np.intp) for at, n, length in last]


def _note(nbytes: int) -> None:
    global _count, _bytes
    _count, _bytes = _count + 1, _bytes + nbytes


def realigned(array: Any, model: Any) -> Any:
    """Return an array, or a copy of it with the distribution of another array of its shape. Collective."""
    if model._is_alike(array):
        return array
    made = model._like(array.dtype, array.name)
    made.copy_from(array)
    _note(made.nbytes // made.group.size)
    return made


def part(name: str, value: Any, model: Any) -> Any:
    """Return the part of an operand that belongs to this rank's elements of an array. Collective.

    A distributed operand of equal distribution is returned as it is.
    """
    is_array = is_distributed(value)
    if is_array and (value is model or model._is_alike(value)):
        return value
    shape = shape_of(value)
    if not shape:
        return value
    check_group(name, model, value)
    if common_shape(name, (model, value)) != model.shape:
        raise ValueError(f'{name}: {_named(value)} does not broadcast to array "{model.name}" {model.shape}')
    if is_array:
        value.sync()
        found = get_box(value, along(own_indices(model), shape, model.shape))
        _note(found.nbytes)
        return found
    bounds = model.bounds()
    if bounds is not None:
        return np.broadcast_to(value, model.shape)[bounds]
    return np.asarray(value)[np.ix_(*along(own_indices(model), shape, model.shape))]


def mask(name: str, where: Any, model: Any) -> Any:
    """Return the part of an argument `where`. Raises TypeError if it does not consist of bools."""
    if (where.dtype if hasattr(where, "dtype") else np.asarray(where).dtype) != np.bool_:
        raise TypeError(f"{name}: `where` is not a bool or an array of bools")
    return part(name, where, model)


def on_parts(name: str, function: Callable[..., Any], operands: Sequence[Any], model: Any) -> Any:
    """Return a function of the parts of operands, which must not be a view. Collective.

    If the function raises on one rank, all raise.
    """
    parts = [part(name, x, model) for x in operands]
    distinct = {id(x): x for x in parts if is_distributed(x)}
    accesses: dict[int, Any] = {}
    with Agreement(model.group):
        try:
            for key, x in distinct.items():
                accesses[key] = x.access()
            return function(*[accesses[id(x)].local if id(x) in accesses else x for x in parts])
        finally:
            for access in accesses.values():
                access.release()


def apply(name: str, function: Callable[..., Any], operands: Sequence[Any], dtype: Any) -> Any:
    """Create an array of a function of the elements of operands, which broadcast. Collective."""
    model, is_new = model_of(name, operands, dtype)
    made = model if is_new else model._like(dtype, name)

    def store(own: Any, *others: Any) -> None:
        own[...] = function(*others)

    on_parts(name, store, (made, *operands), made)
    return made


def into(name: str, out: Any, found: Any) -> Any:
    """Return a result, or store it in a distributed array `out` as NumPy does. Collective."""
    if out is None:
        return found
    if not is_distributed(out):
        raise TypeError(
            f"{name}: `out` is not a distributed array; use numpy.asarray() of the operands"
        )
    if out.shape != found.shape:
        raise ValueError(f"{name}: `out` of shape {out.shape} for a result of shape {found.shape}")
    if not np.can_cast(found.dtype, out.dtype, "same_kind"):
        raise TypeError(f"cannot cast {name} output from {found.dtype!r} to {out.dtype!r}")
    out.copy_from(found if found.dtype == out.dtype else found.astype(out.dtype))
    return out


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Return `numpy.broadcast_to`, a new array. Collective."""
    lengths = tuple(shape) if np.ndim(shape) else (shape,)
    if common_shape("broadcast_to", (array, np.broadcast_to(0, lengths))) != lengths:
        raise ValueError(f'array "{array.name}" {array.shape} does not broadcast to {lengths}')
    made = make(array, lengths, array.dtype, "broadcast_to")
    on_parts("broadcast_to", np.copyto, (made, array), made)
    return made


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Return `numpy.broadcast_arrays`, new arrays. Collective."""
    from ._create import array

    shape = common_shape("broadcast_arrays", args)
    model = next(x for x in args if is_distributed(x))
    return tuple(
        broadcast_to(x, shape)
        if is_distributed(x)
        else array(np.broadcast_to(x, shape), group=model._group)
        for x in args
    )


FUNCTIONS = {np.broadcast_to: broadcast_to, np.broadcast_arrays: broadcast_arrays}
