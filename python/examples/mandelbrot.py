"""The Mandelbrot set by a work queue: rows need unequal time, and each rank takes the next one.

    mpiexec -n 4 python mandelbrot.py
"""

import numpy as np

import portolan as pt

SHAPE, LIMIT = (48, 64), 60


def row(i):
    """Return the number of iterations of each point of a row."""
    c = np.linspace(-2, 1, SHAPE[1]) + 1j * np.linspace(-1.2, 1.2, SHAPE[0])[i]
    z, count = np.zeros_like(c), np.zeros(SHAPE[1], int)
    for _ in range(LIMIT):
        inside = np.abs(z) <= 2
        count[inside] += 1
        z[inside] = z[inside] ** 2 + c[inside]
    return count


def main():
    image = pt.zeros(SHAPE, int, name="image")
    taken = pt.zeros(pt.size(), int, name="rows of each rank")
    for i in pt.WorkQueue(SHAPE[0], chunk=2):
        image[i] = row(i)
        taken.add(pt.rank(), 1)
    image.sync()

    assert taken.sum() == SHAPE[0]
    np.testing.assert_array_equal(image[...], [row(i) for i in range(SHAPE[0])])
    if pt.rank() == 0:
        shades = np.array(list(" .:-=+*#%@"))
        for line in image[::3] * 9 // LIMIT:
            print("".join(shades[line]))
        print(f"mandelbrot: rows of each rank {taken[...].tolist()}, correct")
    pt.barrier()


if __name__ == "__main__":
    main()
