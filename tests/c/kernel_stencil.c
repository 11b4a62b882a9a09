/* PRK stencil on ARMCI, with radius 1, or 4 as a third argument. Ranks own rows and put the outer
 * ones into their neighbours' ghost rows. There are two sets of ghost rows, which iterations use in
 * turn, so that one barrier an iteration is enough. See kernel.h for the other arguments. */
// TEST: armci moving
// TEST: one of n=2 -- 40 2 4 | n=3 -- 40 2 4
#include "kernel.h"

enum { ITERATIONS = 4, MOST_RADIUS = 4 };

static int n, radius, first, rows;
static double weight[MOST_RADIUS + 1];

static long at(int row, int column)
{
  return (long)row * n + column;
}

/* Adds the stencil of row i to its row of `out`. `line` has the rows from i - radius on. */
static inline void stencil_row(const double *const *line, double *restrict out, int r)
{
  for (int j = r; j < n - r; j++) {
    double sum = 0;
    for (int d = 1; d <= r; d++)
      sum += weight[d] * ((line[r][j + d] - line[r][j - d]) + (line[r + d][j] - line[r - d][j]));
    out[j] += sum;
  }
}

/* Returns row i of the grid: an own row, or a ghost row. */
static const double *row_of(const double *in, const double *ghosts, int i)
{
  if (i < first)
    return ghosts + at(i - (first - radius), 0);
  if (i >= first + rows)
    return ghosts + at(radius + i - (first + rows), 0);
  return in + at(i - first, 0);
}

static void compute(const double *in, const double *ghosts, double *out)
{
  for (int i = first; i < first + rows; i++) {
    const double *line[2 * MOST_RADIUS + 1];
    if (i < radius || i >= n - radius)
      continue;
    for (int d = 0; d <= 2 * radius; d++)
      line[d] = row_of(in, ghosts, i + d - radius);
    if (radius == 1)
      stencil_row(line, out + at(i - first, 0), 1);
    else
      stencil_row(line, out + at(i - first, 0), MOST_RADIUS);
  }
}

int main(int argc, char **argv)
{
  double norm = 0, points;
  n = kernel_start("kernel_stencil", 30, &argc, &argv);
  radius = argc > 3 ? atoi(argv[3]) : 1;
  CHECK(radius == 1 || radius == MOST_RADIUS, "the radius is 1 or %d", MOST_RADIUS);
  first = (int)((long)n * me / nproc);
  rows = (int)((long)n * (me + 1) / nproc) - first;
  CHECK(rows >= radius, "%d rows are too few for %d ranks", n, nproc);

  const long set = 2L * radius * n;           /* ghost rows above, then below */
  const long bytes = radius * n * (long)sizeof(double);
  void **base = check_segment(2 * set * (long)sizeof(double));
  double *in = check_calloc(at(rows, 0) * (long)sizeof(double));
  double *out = check_calloc(at(rows, 0) * (long)sizeof(double));
  for (int d = 1; d <= radius; d++)
    weight[d] = 1.0 / (2.0 * d * radius);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < n; j++)
      in[at(i, j)] = first + i + j;

  int turn = 0;
  for (int r = 0; r < kernel_repeats; r++) {
    kernel_begins();
    for (int k = 0; k < ITERATIONS; k++) {
      turn = 1 - turn;
      if (me > 0)
        CHECK_OK(ARMCI_Put(in, (double *)base[me - 1] + turn * set + at(radius, 0), (int)bytes, me - 1));
      if (me + 1 < nproc)
        CHECK_OK(ARMCI_Put(in + at(rows - radius, 0), (double *)base[me + 1] + turn * set, (int)bytes, me + 1));
      ARMCI_Barrier();
      compute(in, (double *)base[me] + turn * set, out);
      for (long e = 0; e < at(rows, 0); e++)
        in[e] += 1.0;
    }
    kernel_ends();
  }

  for (long e = 0; e < at(rows, 0); e++)
    norm += fabs(out[e]);
  points = (double)(n - 2 * radius) * (n - 2 * radius);
  norm = kernel_sum(norm) / points;
  const double expected = 2.0 * ITERATIONS * kernel_repeats;
  free(in);
  free(out);
  check_free_segment(base);
  return kernel_end(radius == 1 ? "stencil-r1" : "stencil-r4", 8e-9 * radius * points * ITERATIONS,
                    "GFlop/s", fabs(norm - expected) < 1e-8 * expected);
}
