/* PRK transpose on ARMCI: B += A^T, A += 1. Ranks own columns. A rank transposes a tile of A and
 * accumulates it into the owner's columns of B, so that the ranks meet only at the end of a
 * repetition. A third argument is the size of a tile. See kernel.h for the other arguments. */
// TEST: armci moving
// TEST: n=2 -- 70 2 24
#include "kernel.h"

enum { ITERATIONS = 4, TILE = 32 };

static int n, b, most;

static int least(int x, int y)
{
  return x < y ? x : y;
}

/* Sends tile (i, j) of this rank's columns of A, which is in block `to`. */
static void push_tile(double *a, double *tile, void **base, int to, int i, int j)
{
  const int width = least(most, b - i), height = least(most, b - j);
  double one = 1.0;
  for (int k = 0; k < width; k++) {
    double *from = a + (long)(i + k) * n + to * b + j;
    for (int l = 0; l < height; l++) {
      tile[(long)l * width + k] = from[l];
      from[l] += 1.0;
    }
  }
  double *there = (double *)base[to] + (long)j * n + me * b + i;
  int here_stride = width * (int)sizeof(double), there_stride = n * (int)sizeof(double);
  int count[2] = { here_stride, height };
  CHECK_OK(ARMCI_AccS(ARMCI_ACC_DBL, &one, tile, &here_stride, there, &there_stride, count, 1, to));
}

int main(int argc, char **argv)
{
  const int size = kernel_start("kernel_transpose", 100, &argc, &argv);
  most = argc > 3 ? atoi(argv[3]) : TILE;
  CHECK(most > 0, "a tile of %d rows", most);
  b = size / nproc > 0 ? size / nproc : 1;
  n = b * nproc;
  const long own = (long)b * n;
  void **base = check_segment(own * (long)sizeof(double));
  double *a = check_calloc(own * (long)sizeof(double));
  double *tile = check_calloc((long)most * most * (long)sizeof(double));
  for (long e = 0; e < own; e++)
    a[e] = (double)((long)n * me * b + e);

  for (int r = 0; r < kernel_repeats; r++) {
    kernel_begins();
    for (int k = 0; k < ITERATIONS; k++)
      for (int p = 0; p < nproc; p++)         /* each rank begins with another owner */
        for (int i = 0; i < b; i += most)
          for (int j = 0; j < b; j += most)
            push_tile(a, tile, base, (me + p) % nproc, i, j);
    ARMCI_Barrier();
    kernel_ends();
  }

  const double iterations = (double)ITERATIONS * kernel_repeats;
  const double *mine = base[me];
  int right = 1;
  for (int j = 0; j < b; j++)
    for (int i = 0; i < n; i++) {
      const double expected = iterations * ((double)n * i + me * b + j) + iterations * (iterations - 1) / 2;
      right &= fabs(mine[(long)j * n + i] - expected) < 1e-8 * fmax(expected, 1);
    }
  free(a);
  free(tile);
  check_free_segment(base);
  return kernel_end("transpose", 16e-9 * (double)n * n * ITERATIONS, "GB/s", right);
}
