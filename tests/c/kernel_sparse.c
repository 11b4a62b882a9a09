/* PRK sparse on ARMCI: products of a sparse matrix and a vector, which every rank needs as a whole.
 * A rank puts its part into the copy of each rank. SIZE is the side of the grid as a power of two.
 * See kernel.h for the other arguments. */
// TEST: armci moving
#include "kernel.h"

enum { ITERATIONS = 4, RADIUS = 4, ROW = 4 * RADIUS + 1 };

static long reversed(long i, int bits)
{
  long out = 0;
  for (int k = 0; k < bits; k++)
    out |= (i >> k & 1) << (bits - 1 - k);
  return out;
}

static int compare_columns(const void *a, const void *b)
{
  const int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Stores the columns of a row. */
static void columns_of(long row, int bits, int *columns)
{
  const long side = 1L << bits, i = row % side, j = row / side;
  int at = 0;
  columns[at++] = (int)reversed(row, 2 * bits);
  for (int r = 1; r <= RADIUS; r++) {
    const long near[4][2] = { { i + r, j }, { i + side - r, j }, { i, j + r }, { i, j + side - r } };
    for (int k = 0; k < 4; k++)
      columns[at++] = (int)reversed(near[k][0] % side + side * (near[k][1] % side), 2 * bits);
  }
  qsort(columns, ROW, sizeof *columns, compare_columns);
}

int main(int argc, char **argv)
{
  const int bits = kernel_start("kernel_sparse", 5, &argc, &argv);
  CHECK(bits >= 3 && bits < 15, "a side of 2^%d points", bits);
  const long all = 1L << (2 * bits), each = (all + nproc - 1) / nproc, whole = each * nproc;
  const long first = each * me < all ? each * me : all, rows = all - first < each ? all - first : each;
  const int bytes = (int)(each * (long)sizeof(double));
  void **base = check_segment(whole * (long)sizeof(double));
  int *columns = check_calloc(rows * ROW * (long)sizeof(int));
  double *values = check_calloc(rows * ROW * (long)sizeof(double));
  double *part = check_calloc(bytes), *result = check_calloc(bytes), sum = 0;

  for (long i = 0; i < rows; i++)
    columns_of(first + i, bits, columns + i * ROW);
  for (long e = 0; e < rows * ROW; e++)
    values[e] = 1.0 / (columns[e] + 1.0);

  for (int r = 0; r < kernel_repeats; r++) {
    kernel_begins();
    for (int t = 0; t < ITERATIONS; t++) {
      for (long i = 0; i < each; i++)
        part[i] += (double)(first + i + 1);
      for (int p = 0; p < nproc; p++) {
        const int to = (me + p) % nproc;
        CHECK_OK(ARMCI_Put(part, (double *)base[to] + each * me, bytes, to));
      }
      ARMCI_Barrier();
      const double *vector = base[me];
      for (long i = 0; i < rows; i++) {
        double dot = 0;
        for (int k = 0; k < ROW; k++)
          dot += values[i * ROW + k] * vector[columns[i * ROW + k]];
        result[i] += dot;
      }
      ARMCI_Barrier();
    }
    kernel_ends();
  }

  for (long i = 0; i < rows; i++)
    sum += result[i];
  sum = kernel_sum(sum);
  const double iterations = (double)ITERATIONS * kernel_repeats, entries = (double)all * ROW;
  const double expected = 0.5 * entries * iterations * (iterations + 1);
  free(columns);
  free(values);
  free(part);
  free(result);
  check_free_segment(base);
  return kernel_end("sparse", 2e-9 * entries * ITERATIONS, "GFlop/s", fabs(sum - expected) < 1e-8 * expected);
}
