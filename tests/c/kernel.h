/*
 * kernel.h - shared by the kernels kernel_*.c: arguments, the clock, and the line of the result.
 *
 *   kernel_NAME [SIZE [REPEATS]]
 *
 * Without arguments a kernel is a check of a small size. With arguments rank 0 also prints the
 * fields of a line of benches/kernels, separated by tabs: kernel, side, version, ranks, seconds,
 * processor seconds per rank, rate, unit, and whether the result is right.
 *
 * The kernels use calls that every ARMCI has. With Portolan's headers they are checks like the
 * others (check.h). With the headers of another ARMCI this file defines what they need of it.
 */
#ifndef KERNEL_H
#define KERNEL_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <mpi.h>

#if __has_include(<portolan.h>)
#include "check.h"
#define KERNEL_SIDE "portolan"
#else
#include <armci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KERNEL_SIDE "armci"

static const char *check_name = "?";
static int me = -1, nproc = 0;

#define CHECK(cond, ...)                                                            \
  do {                                                                              \
    if (!(cond)) {                                                                  \
      printf("FAIL %s rank %d, line %d: ", check_name, me, __LINE__);               \
      printf(__VA_ARGS__);                                                          \
      printf("\n");                                                                 \
      fflush(stdout);                                                               \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                 \
    }                                                                               \
  } while (0)

#define CHECK_OK(call) CHECK((call) == 0, "%s failed", #call)

static inline void check_start(const char *name, int *argc, char ***argv)
{
  check_name = name;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  CHECK_OK(ARMCI_Init());
}

static inline int check_end(void)
{
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Finalize());
  if (me == 0)
    printf("PASS %s\n", check_name);
  MPI_Finalize();
  return 0;
}

static inline void *check_calloc(long len)
{
  void *buffer = calloc(len > 0 ? (size_t)len : 1, 1);
  CHECK(buffer != NULL, "no memory for %ld bytes", len);
  return buffer;
}

static inline void **check_segment(long len)
{
  void **base = check_calloc(nproc * (long)sizeof(void *));
  CHECK_OK(ARMCI_Malloc(base, len));
  if (len > 0)
    memset(base[me], 0, (size_t)len);
  ARMCI_Barrier();
  return base;
}

static inline void check_free_segment(void **base)
{
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
}
#endif

#include <math.h>
#include <sys/resource.h>

enum { KERNEL_MOST_REPEATS = 64 };

static int kernel_measures, kernel_repeats = 2, kernel_count;
static double kernel_seconds[KERNEL_MOST_REPEATS], kernel_used[KERNEL_MOST_REPEATS];
static double kernel_begin, kernel_before;

/* Starts the kernel, and returns its size. */
static inline int kernel_start(const char *name, int small, int *argc, char ***argv)
{
  int size = small;
  check_start(name, argc, argv);
  if (*argc > 1) {
    kernel_measures = 1;
    kernel_repeats = 5;
    size = atoi((*argv)[1]);
  }
  if (*argc > 2)
    kernel_repeats = atoi((*argv)[2]);
  CHECK(size > 0 && kernel_repeats > 0 && kernel_repeats <= KERNEL_MOST_REPEATS,
        "usage: %s [SIZE [REPEATS]], both positive, at most %d repeats", name, KERNEL_MOST_REPEATS);
  return size;
}

static inline double kernel_processor(void)
{
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Begins a repetition. */
static inline void kernel_begins(void)
{
  ARMCI_Barrier();
  kernel_before = kernel_processor();
  kernel_begin = MPI_Wtime();
}

/* Ends a repetition. */
static inline void kernel_ends(void)
{
  double mine[2] = { MPI_Wtime() - kernel_begin, kernel_processor() - kernel_before };
  double most[1], sum[1];
  MPI_Allreduce(&mine[0], most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&mine[1], sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  kernel_seconds[kernel_count] = most[0];
  kernel_used[kernel_count++] = sum[0] / nproc;
}

static inline double kernel_sum(double value)
{
  double sum;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static inline int kernel_compare(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Checks the result and ends. `work` is that of all ranks in a repetition. */
static inline int kernel_end(const char *kernel, double work, const char *unit, int right)
{
  CHECK(right, "the result is wrong");
  ARMCI_Barrier();
  if (kernel_measures && me == 0) {
    const size_t n = (size_t)kernel_count;
    qsort(kernel_seconds, n, sizeof(double), kernel_compare);
    qsort(kernel_used, n, sizeof(double), kernel_compare);
    printf("%s\t%s\tarmci\t%d\t%.6e\t%.6e\t%.6e\t%s\tyes\n", kernel, KERNEL_SIDE, nproc,
           kernel_seconds[n / 2], kernel_used[n / 2], work / kernel_seconds[n / 2], unit);
  }
  return check_end();
}

#endif /* KERNEL_H */
