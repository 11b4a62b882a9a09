/* PRK sync_p2p on ARMCI: a pipeline over columns. A rank puts the last element of a row to the next
 * rank, which waits for it. With a third argument `hops` there are two rows and two columns a rank, and
 * SIZE hundreds of rounds. See kernel.h for the other arguments.
 *
 * A rank polls the element itself, whose place holds a NaN before. */
// TEST: armci moving
// TEST: one of n=2 -- 2 2 hops | n=3 -- 2 2 hops
#include "kernel.h"

enum { ITERATIONS = 4 };

static void **base;

static void pass_on(int to, int row, double value)
{
  CHECK_OK(ARMCI_Put(&value, (double *)base[to] + row, sizeof value, to));
  ARMCI_Fence(to);
}

static double await(int row)
{
  volatile double *place = (double *)base[me] + row;
  int flag;
  while (isnan(*place))
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  const double value = *place;
  *place = NAN;
  return value;
}

int main(int argc, char **argv)
{
  const int size = kernel_start("kernel_sync_p2p", 50, &argc, &argv);
  const int hops = argc > 3 && strcmp(argv[3], "hops") == 0;
  const int rows = hops ? 2 : size, all = hops ? 2 * nproc : size;
  const int iterations = hops ? 100 * size : ITERATIONS;
  const int first = (int)((long)all * me / nproc), width = (int)((long)all * (me + 1) / nproc) - first + 1;
  const int last_rank = nproc - 1;
  double *grid = check_calloc((long)rows * width * (long)sizeof(double));

  base = check_segment(rows * (long)sizeof(double));
  for (int row = 0; row < rows; row++)
    ((double *)base[me])[row] = NAN;
  for (int k = 0; k < width; k++)
    grid[k] = first + k - 1;
  if (me == 0)
    for (int row = 0; row < rows; row++)
      grid[(long)row * width + 1] = row;

  for (int r = 0; r < kernel_repeats; r++) {
    kernel_begins();
    for (int t = 0; t < iterations; t++) {
      for (int row = 1; row < rows; row++) {
        const double *above = grid + (long)(row - 1) * width;
        double *here = grid + (long)row * width;
        if (me > 0)
          here[0] = await(row);
        for (int k = me == 0 ? 2 : 1; k < width; k++)
          here[k] = above[k] + here[k - 1] - above[k - 1];
        if (me < last_rank)
          pass_on(me + 1, row, here[width - 1]);
      }
      const double corner = -grid[(long)rows * width - 1];
      if (nproc == 1)
        grid[1] = corner;
      else if (me == last_rank)
        pass_on(0, 0, corner);
      else if (me == 0)
        grid[1] = await(0);
    }
    kernel_ends();
  }

  const double expected = (double)iterations * kernel_repeats * (rows + all - 2);
  const int right = me < last_rank || fabs(grid[(long)rows * width - 1] - expected) < 1e-8 * expected;
  free(grid);
  check_free_segment(base);
  if (hops)
    return kernel_end("sync-hops", 1e-6 * iterations * nproc, "million hops/s", right);
  return kernel_end("sync-p2p", 2e-9 * (rows - 1.0) * (all - 1.0) * iterations, "GFlop/s", right);
}
