"""Heat in a plate whose left edge is hot: Jacobi steps with ghost cells, and a picture at the end.

    mpiexec -n 4 python heat.py [--picture heat.png]

The picture needs matplotlib. The program compares its result with a computation by NumPy alone.
"""

import argparse

import numpy as np

import portolan as pt


def step(old, new, first):
    """Average the four neighbours of each element."""
    new[...] = (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 4


def hold_edges(plate):
    """Set the edges, whoever owns them."""
    if pt.rank() == 0:
        plate[[0, -1], :] = 0.0
        plate[:, -1] = 0.0
        plate[:, 0] = 1.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()

    n = 64
    old = pt.zeros((n, n), ghosts=1, name="plate")
    new = pt.zeros((n, n), ghosts=1, name="next plate")
    hold_edges(old)
    old.sync()
    # ANCHOR: steps
    for _ in range(arguments.steps):
        pt.stencil(old, new, step)  # updates the ghost cells, and calls `step` with boxes
        hold_edges(new)
        new.sync()
        old, new = new, old
    # ANCHOR_END: steps

    result = old[...]
    expected = np.zeros((n, n))
    expected[:, 0] = 1
    for _ in range(arguments.steps):
        inner = expected.copy()
        step(expected, inner[1:-1, 1:-1], None)
        inner[[0, -1], :], inner[:, -1], inner[:, 0] = 0, 0, 1
        expected = inner
    np.testing.assert_allclose(result, expected)

    if arguments.picture and pt.rank() == 0:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        plt.imshow(result, cmap="inferno")
        plt.colorbar(label="temperature")
        plt.savefig(arguments.picture)
    if pt.rank() == 0:
        print(f"heat: {pt.size()} ranks, mean temperature {result.mean():.4f}, correct")


if __name__ == "__main__":
    main()
