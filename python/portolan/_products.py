"""Products of matrices, vectors and arrays of more axes.

A product of a matrix and a vector multiplies the own elements of each rank by the elements of the
vector that belong to them. If ranks share rows, they store their parts side by side, and the owners
of the result add these in a fixed order, so the result does not depend on the timing. All other
products are transposes, reshapes and products of two matrices.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ._alignment import along, into, realigned
from ._blocks import check_group, fill, get_box, is_distributed, make, on_own, put_box
from ._gather import gathered
from ._operands import promoted
from ._reductions import axes_of
from ._shapes import reshape, transposed
from ._warnings import reported


def _distributed(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Return both factors as distributed arrays. Collective."""
    check_group(name, a, b)
    model = a if is_distributed(a) else b
    made = []
    for x in (a, b):
        if not is_distributed(x):
            x = np.asarray(x)
            if x.ndim == 0:
                raise ValueError(f"{name}: a scalar is no factor; use *")
            from ._create import array

            x = array(x, name=name, group=model._group)
        made.append(x)
    return made[0], made[1]


def matmul(inputs: Any, options: dict[str, Any]) -> Any:
    """Carry out `@`, of matrices and vectors. Collective."""
    outs = options.pop("out", (None,))
    if options:
        raise TypeError(f"@ of distributed arrays has no {min(options)}")
    if not all(out is None or is_distributed(out) for out in outs):
        raise TypeError("matmul: `out` is not a distributed array; use numpy.asarray() of the factors")
    if not any(map(is_distributed, inputs)):
        raise TypeError("matmul: `out` is a distributed array, and no factor is; use portolan.array()")
    a, b = _distributed("matmul", *inputs)
    inner = b.shape[max(b.ndim - 2, 0)]
    if a.shape[-1] != inner:
        raise ValueError(
            f'matmul: "{a.name}" {a.shape} and "{b.name}" {b.shape} have a mismatch in the inner '
            f"dimension ({a.shape[-1]} is different from {inner})"
        )
    a, b = promoted(a, b)
    target = outs[0]
    if a.ndim > 2 or b.ndim > 2:
        return into("matmul", target, _stacks(a, b))
    if a.ndim == b.ndim == 1:
        if target is not None:
            raise TypeError("the product of two vectors is a scalar, and has no `out`")
        return vectors(a, b)
    if a.ndim == b.ndim == 2:
        if target is None:
            target = type(a)((a.shape[0], b.shape[1]), a.dtype, name="matmul", group=a._group)
        target.matmul_from(a, b)
        return target
    found = _matrix_vector(a, b, 1) if a.ndim == 2 else _matrix_vector(b, a, 0)
    return into("matmul", target, found)


def _stacks(a: Any, b: Any) -> Any:
    """Return the products of stacks of matrices, which broadcast. Collective.

    Each rank gets the rows and the columns of its own elements.
    """
    left = a if a.ndim > 1 else reshape(a, (1, *a.shape))
    right = b if b.ndim > 1 else reshape(b, (*b.shape, 1))
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    whole = (*stack, left.shape[-2], right.shape[-1])
    made = make(a if a.ndim == len(whole) else b, whole, a.dtype, "matmul")
    summed = np.arange(left.shape[-1])
    for x in (left, right):
        x.sync()

    def own(*at: Any) -> Any:
        boxes = []
        for x, core in ((left, [at[-2], summed]), (right, [summed, at[-1]])):
            boxes.append(get_box(x, [*along(at[:-2], x.shape[:-2], stack), *core]))
        return np.matmul(*boxes)

    found = fill(made, own)
    kept = list(whole)
    if a.ndim == 1:
        del kept[-2]
    if b.ndim == 1:
        del kept[-1]
    return found if len(kept) == len(whole) else reshape(found, kept)


def vectors(a: Any, b: Any) -> Any:
    """Return the sum of the products of two arrays of one dtype and shape. Collective."""
    if a.shape != b.shape:
        raise ValueError(f"shapes {a.shape} and {b.shape} of a product of two vectors are not equal")
    return a._dot(realigned(b, a))


def _matrix_vector(matrix: Any, vector: Any, axis: int) -> Any:
    """Return the product of a matrix and a vector, whose index is that of an axis of the matrix."""
    inner = matrix.shape[axis]
    group, shape = matrix.group, (matrix.shape[1 - axis],)
    if vector.shape == shape and vector._spec == ("block",) and not any(vector.ghosts):
        # It may take over the memory of an earlier result.
        made = vector._like(matrix.dtype, "matmul", accessed=True)
    else:
        made = make(matrix, shape, matrix.dtype, "matmul", distribution="block")
    vector.sync()

    def multiplied(mine: Any) -> Any:
        rows, summed = mine.indices(1 - axis), mine.indices(axis)
        factor = get_box(vector, [summed])
        return rows, summed, mine.local @ factor if axis == 1 else factor @ mine.local

    rows, summed, own = on_own(matrix, multiplied)
    # Ranks with the same first index along the axis have different rows.
    has_any = len(rows) > 0 and len(summed) > 0
    bounds = [matrix.bounds(rank) for rank in range(group.size)]
    if None in bounds:
        firsts = group.all_gather(int(summed[0]) if has_any else -1)
    else:
        # Without a message.
        is_empty = [any(along.start == along.stop for along in box) for box in bounds]
        firsts = [-1 if empty else box[axis].start for box, empty in zip(bounds, is_empty)]
        of_made = [made.bounds(rank)[0] for rank in range(group.size)]
        if inner and of_made == [box[1 - axis] for box in bounds]:
            # Each rank has the sums of its own elements of the result.
            on_own(made, lambda mine: mine.local.__setitem__(..., own))
            return made
    columns = sorted(set(firsts) - {-1})
    parts = type(matrix)((max(len(columns), 1), *made.shape), made.dtype, group=matrix._group)
    if has_any:
        put_box(parts, [np.array([columns.index(firsts[group.rank])]), rows], own[np.newaxis])
    parts.sync()
    every = np.arange(parts.shape[0])
    # Sums of bools are disjunctions, as in NumPy.
    return fill(made, lambda n: np.add.reduce(get_box(parts, [every, n]), axis=0, dtype=made.dtype))


def vecdot(x1: Any, x2: Any, /, out: Any = (None,), *, axis: int = -1, keepdims: bool = False) -> Any:
    """Return `numpy.vecdot`: sums of products along an axis, the first conjugated. Collective.

    All ranks get the result.
    """
    lengths = [np.shape(x)[axis] for x in (x1, x2)]
    if lengths[0] != lengths[1]:
        raise ValueError(f"vecdot: the lengths {lengths} along axis {axis} differ")
    with reported("vecdot"):
        found = np.multiply(np.conjugate(x1), x2)
    # The sum of small integers has their type, as of other products.
    return found.sum(axis, found.dtype, out[0], keepdims)


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return `numpy.dot`: the product of vectors or matrices, or the sum over the last axis of `a`
    and the last but one of `b`. Collective."""
    if is_distributed(out):
        raise TypeError("`out` of numpy.dot is a numpy array; use numpy.matmul or Array.matmul_from")
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        found = np.multiply(a, b)
    elif np.ndim(a) <= 2 and np.ndim(b) <= 2:
        found = matmul((a, b), {})
    else:
        found = tensordot(a, b, (-1, -1 if np.ndim(b) == 1 else -2))
    return _stored(found, out)


def _stored(found: Any, out: Any) -> Any:
    """Return a result, or all its elements in the numpy array `out`, as numpy.dot checks it."""
    if out is None:
        return found
    if out.dtype != found.dtype or out.shape != np.shape(found) or not out.flags.c_contiguous:
        raise ValueError(
            f"`out` is not a C-contiguous array of shape {np.shape(found)} and dtype {found.dtype}"
        )
    out[...] = np.asarray(found)
    return out


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return `numpy.tensordot`, by a product of two matrices. Collective."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    a, b = _distributed("tensordot", a, b)
    if np.ndim(axes) == 0:
        number = operator.index(axes)
        of_a, of_b = tuple(range(a.ndim - number, a.ndim)), tuple(range(number))
    else:
        of_a, of_b = axes_of(axes[0], a.ndim), axes_of(axes[1], b.ndim)
    if [a.shape[n] for n in of_a] != [b.shape[n] for n in of_b]:
        raise ValueError(
            f'tensordot: the axes {of_a} of "{a.name}" {a.shape} and {of_b} of "{b.name}" {b.shape} '
            "have different lengths"
        )
    kept_a = tuple(n for n in range(a.ndim) if n not in of_a)
    kept_b = tuple(n for n in range(b.ndim) if n not in of_b)
    rest_a, rest_b = [a.shape[n] for n in kept_a], [b.shape[n] for n in kept_b]
    inner = math.prod(a.shape[n] for n in of_a)
    left = reshape(transposed(a, kept_a + of_a), (math.prod(rest_a), inner))
    right = reshape(transposed(b, of_b + kept_b), (inner, math.prod(rest_b)))
    found = matmul((left, right), {})
    if not rest_a and not rest_b:
        return found[0, 0]
    return reshape(found, (*rest_a, *rest_b))


def inner(a: Any, b: Any) -> Any:
    """Return `numpy.inner`: the sums over the last axes. Collective."""
    return np.multiply(a, b) if np.ndim(a) == 0 or np.ndim(b) == 0 else tensordot(a, b, (-1, -1))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Return `numpy.outer`: the products of all elements of two arrays. Collective."""
    if out is not None:
        raise TypeError("outer of distributed arrays has no `out`")
    a, b = _distributed("outer", *[x if np.ndim(x) else np.atleast_1d(x) for x in (a, b)])
    return matmul((reshape(a, (int(a.size), 1)), reshape(b, (1, int(b.size)))), {})


def vdot(a: Any, b: Any, /) -> Any:
    """Return `numpy.vdot`: the sum of the products of all elements, the first conjugated. Collective."""
    a, b = _distributed("vdot", a, b)
    if a.shape != b.shape:
        a, b = (reshape(x, (int(x.size),)) for x in (a, b))
    return vectors(*promoted(np.conjugate(a) if a.dtype.kind == "c" else a, b))


def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    """Return `numpy.einsum` of what reduces to a product of two arrays, or to a transpose. Collective.

    Other expressions get all elements, and return a numpy array.
    """
    plan = None if out is not None or options else _plan(operands)
    if plan is None:
        return gathered(np.einsum, operands, dict(out=out, optimize=optimize, **options))
    terms, arrays, result = plan
    if len(arrays) == 1:
        return transposed(arrays[0], [terms[0].index(x) for x in result], copy=True)
    shared = [x for x in terms[0] if x in terms[1]]
    found = tensordot(arrays[0], arrays[1], [[term.index(x) for x in shared] for term in terms])
    order = [x for x in terms[0] + terms[1] if x not in shared]
    return transposed(found, [order.index(x) for x in result]) if result else found


def _plan(operands: Any) -> Any:
    """Return the indices of the factors, the factors, and the indices of the product, or None."""
    text, arrays = operands[0], operands[1:]
    if not isinstance(text, str) or "." in text or len(arrays) not in (1, 2):
        return None
    left, arrow, result = text.replace(" ", "").partition("->")
    terms = left.split(",")
    every = "".join(terms)
    if not arrow:
        result = "".join(sorted(x for x in every if every.count(x) == 1))
    once = [x for x in every if every.count(x) == 1]
    alike = len(terms) == len(arrays) and all(len(t) == np.ndim(x) > 0 for t, x in zip(terms, arrays))
    distinct = all(len(set(t)) == len(t) for t in terms)
    return (terms, arrays, result) if alike and distinct and sorted(once) == sorted(result) else None


FUNCTIONS = {
    np.dot: dot,
    np.tensordot: tensordot,
    np.inner: inner,
    np.outer: outer,
    np.vdot: vdot,
    np.einsum: einsum,
}
