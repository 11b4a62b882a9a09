"""Conjugate gradients for the Poisson equation: ufuncs, dot products, and a stencil.

    mpiexec -n 4 python conjugate_gradients.py
"""

import numpy as np

import portolan as pt


def laplace(old, new, first):
    """Apply the matrix of the five-point stencil; the elements beyond the edges are zero."""
    new[...] = 4 * old[1:-1, 1:-1]
    new -= old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]


def solve(b, tolerance=1e-10):
    """Return the solution of A x = b, and the number of iterations."""
    x, r, ap = pt.zeros_like(b, name="x"), b.copy("r"), pt.zeros_like(b, name="A p")
    p, rr = r.copy("p"), np.vdot(b, b)
    for iteration in range(1, 500):
        pt.stencil(p, ap, laplace)
        alpha = rr / np.vdot(p, ap)
        x += alpha * p
        r -= alpha * ap
        before, rr = rr, np.vdot(r, r)
        if np.sqrt(rr) < tolerance:
            return x, iteration
        p *= rr / before
        p += r
    raise ArithmeticError("no convergence")


def main():
    n = 40
    b = pt.zeros((n, n), ghosts=1, name="b")
    if pt.rank() == 0:
        b[n // 2, n // 2] = 1.0
        b.add((slice(5, 10), slice(5, 10)), 0.1)
    b.sync()
    x, iterations = solve(b)

    whole = np.pad(x[...], 1)
    residual = np.empty((n, n))
    laplace(whole, residual, None)
    np.testing.assert_allclose(residual, b[...], atol=1e-8)
    if pt.rank() == 0:
        print(f"conjugate_gradients: {iterations} iterations, correct")
    pt.barrier()


if __name__ == "__main__":
    main()
