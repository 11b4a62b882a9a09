/* A thread of the program makes MPI collectives on its own communicator while another one starts
 * and ends the library. The program has requested MPI_THREAD_MULTIPLE, so this is legal. */
// TEST: n=2
// TEST: n=3
// TEST: n=2 node-size=1
#include "check.h"

#include <pthread.h>

enum { ROUNDS = 5 };

static MPI_Comm own;
static volatile int stop;

static void *collectives(void *unused)
{
  int all;
  (void)unused;
  do {
    int runs = !stop;
    MPI_Allreduce(&runs, &all, 1, MPI_INT, MPI_LAND, own);
    MPI_Barrier(own);
  } while (all);
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  int level;

  check_begin("threads_start");
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  if (level == MPI_THREAD_MULTIPLE) {
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    CHECK_EQ(pthread_create(&thread, NULL, collectives, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
      CHECK_OK(ARMCI_Init());
      check_nap(me + 1);
      ARMCI_Barrier();
      CHECK_OK(ARMCI_Finalize());
    }
    stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    MPI_Comm_free(&own);
  }
  return check_end_mpi();
}
