/*
 * Takes tasks from a counter and writes their results one word at a time. The program is slow for
 * two reasons, which docs/observe.md finds with a trace.
 *
 * Each rank takes its next tasks from a counter on rank 0. The results of a task are words at
 * scattered locations in one rank's table, and the rank puts them one by one. Taking several tasks
 * at a time relieves the counter. With an aggregate handle, the words of a task travel together.
 *
 * Usage: hot_counter [tasks at a time, 1] [1: aggregate the puts, 0] [tasks, 2000]
 */
#include <armci.h>
#include <math.h>
#include <mpi.h>
#include <portolan.h>
#include <stdio.h>
#include <stdlib.h>

enum { RESULTS = 32, WORDS = 1 << 16 };

/* value_of returns the k-th result of a task. word_of returns its index in the owner's table. */
static double value_of(long task, int k)
{
  double x = (double)(task * RESULTS + k);
  for (int n = 0; n < 20; n++) x = cos(x) + 1e-3 * (double)k;
  return x;
}

static long word_of(long task, int k, int nproc)
{
  return (task / nproc * RESULTS + k) * 7919 % WORDS;
}

static long argument(int argc, char **argv, int place, long otherwise)
{
  return argc > place ? atol(argv[place]) : otherwise;
}

int main(int argc, char **argv)
{
  int me, nproc;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  ARMCI_Init();
  long chunk = argument(argc, argv, 1, 1), aggregate = argument(argc, argv, 2, 0);
  long tasks = argument(argc, argv, 3, 2000), mine = 0;
  if (chunk < 1) chunk = 1;
  if (tasks > (long)WORDS / RESULTS * nproc) tasks = (long)WORDS / RESULTS * nproc;

  void **counter = malloc((size_t)nproc * sizeof(void *)), **table = malloc((size_t)nproc * sizeof(void *));
  ARMCI_Malloc(counter, me == 0 ? sizeof(long) : 0);
  ARMCI_Malloc(table, WORDS * sizeof(double));
  if (me == 0) *(long *)counter[0] = 0;
  ARMCI_Barrier();

  double results[RESULTS], begun = MPI_Wtime();
  portolan_region_begin("tasks");
  // ANCHOR: tasks
  for (;;) {
    long first;
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &first, counter[0], (int)chunk, 0);
    if (first >= tasks) break;
    for (long task = first; task < first + chunk && task < tasks; task++, mine++) {
      int owner = (int)(task % nproc);
      for (int k = 0; k < RESULTS; k++) results[k] = value_of(task, k);
      armci_hdl_t handle;
      ARMCI_INIT_HANDLE(&handle);
      if (aggregate) ARMCI_SET_AGGREGATE_HANDLE(&handle);
      for (int k = 0; k < RESULTS; k++) {
        double *to = (double *)table[owner] + word_of(task, k, nproc);
        if (aggregate)
          ARMCI_NbPut(&results[k], to, sizeof(double), owner, &handle);
        else
          ARMCI_Put(&results[k], to, sizeof(double), owner);
      }
      if (aggregate) ARMCI_Wait(&handle);
    }
  }
  // ANCHOR_END: tasks
  portolan_region_end();
  ARMCI_Barrier();
  double seconds = MPI_Wtime() - begun;

  /* Check that the owner has every result. */
  long wrong = 0, all = 0;
  for (long task = me; task < tasks; task += nproc)
    for (int k = 0; k < RESULTS; k++)
      wrong += ((double *)table[me])[word_of(task, k, nproc)] != value_of(task, k);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (me == 0)
    printf("hot_counter: %ld tasks, %ld at a time, puts %s: %.1f ms; %ld wrong\n", all, chunk,
           aggregate ? "aggregated" : "one by one", seconds * 1e3, wrong);
  ARMCI_Free(table[me]);
  ARMCI_Free(counter[me]);
  ARMCI_Finalize();
  MPI_Finalize();
  return wrong != 0 || all != tasks;
}
