/* PRK nstream in memory of ARMCI: A += B + 3 C on each rank. See kernel.h for the arguments. */
// TEST: armci
#include "kernel.h"

int main(int argc, char **argv)
{
  const long n = kernel_start("kernel_nstream", 1000, &argc, &argv);
  const long bytes = n * (long)sizeof(double);
  void **base = check_segment(3 * bytes);
  double *restrict a = base[me], *restrict b = a + n, *restrict c = b + n;
  int right = 1;

  for (long i = 0; i < n; i++)
    b[i] = c[i] = 2.0;
  for (int r = 0; r < kernel_repeats; r++) {
    kernel_begins();
    for (long i = 0; i < n; i++)
      a[i] += b[i] + 3.0 * c[i];
    kernel_ends();
  }
  for (long i = 0; i < n; i++)
    right &= a[i] == 8.0 * kernel_repeats;
  check_free_segment(base);
  return kernel_end("nstream", 32e-9 * (double)n * nproc, "GB/s", right);
}
