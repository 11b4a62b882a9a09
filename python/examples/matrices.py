"""Matrix products, tiles, transposes and files, compared with NumPy.

    mpiexec -n 4 python matrices.py
"""

import os
import tempfile

import numpy as np

import portolan as pt


def main():
    rng = np.random.default_rng(7)
    x, y = rng.random((90, 70)), rng.random((70, 110))
    a, b = pt.array(x, name="a"), pt.array(y, name="b", distribution="rows")
    c = a @ b
    np.testing.assert_allclose(c[...], x @ y)
    np.testing.assert_allclose(b.transpose()[...], y.T)

    # Each tile goes to one rank, its owner if possible.
    squares = pt.zeros_like(c, name="squares")
    for tile in c.tiles((32, 32)):
        squares[tile] = c[tile] ** 2
    squares.sync()
    np.testing.assert_allclose(squares[...], (x @ y) ** 2)
    np.testing.assert_allclose(squares.sum(), np.vdot(c, c))

    folder = pt.world.broadcast(tempfile.mkdtemp() if pt.rank() == 0 else "")
    path = os.path.join(folder, "squares.npy")
    squares.save(path)
    again = pt.load(path, distribution=pt.cyclic((16, 16)))
    largest = squares.argmax()
    assert again.argmax() == largest == ((x @ y) ** 2).argmax()
    if pt.rank() == 0:
        np.testing.assert_array_equal(np.load(path), again[...])
        os.remove(path)
        os.rmdir(folder)
        print(f"matrices: {c.shape[0]} by {c.shape[1]}, largest at {largest}, correct")
    pt.barrier()


if __name__ == "__main__":
    main()
