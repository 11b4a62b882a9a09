/* ARMCI over a part of the job: communicators that leave ranks out, reorder them, or contain one
 * rank; nested calls; the ranks outside go on with MPI. */
// TEST: armci moving
#include "check.h"

/* Uses ARMCI among the ranks of a communicator; the world group has the same order. */
static void use(MPI_Comm comm)
{
  int rank, size, seen, *list;
  ARMCI_Group world, pair;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK_EQ(armci_msg_me(), rank);
  CHECK_EQ(armci_msg_nproc(), size);

  ARMCI_Group_get_world(&world);
  CHECK_EQ(world.rank, rank);
  CHECK_EQ(world.size, size);
  MPI_Comm_compare(armci_group_comm(&world), comm, &seen);
  CHECK(seen == MPI_CONGRUENT, "the world group's communicator has other ranks (%d)", seen);

  void **base = check_calloc(size * (long)sizeof(void *));
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  long value = 1000 + me, expected, old;
  CHECK_OK(ARMCI_Malloc(base, 4096));
  memset(base[rank], 0, 4096);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Put(&value, base[right], 8, right));
  for (int p = 0; p < size; p++)
    CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, (char *)base[p] + 8, 1, p));
  CHECK_EQ(armci_notify(right), 1);
  CHECK(armci_notify_wait(left, NULL) == 1, "one notification");
  expected = 1000 + me;             /* from the left rank: its number in the job */
  MPI_Sendrecv(&value, 1, MPI_LONG, right, 3, &expected, 1, MPI_LONG, left, 3, comm, MPI_STATUS_IGNORE);
  CHECK_EQ(*(long *)base[rank], expected);
  ARMCI_Barrier();
  CHECK_EQ(((long *)base[rank])[1], size);

  value = rank;
  armci_msg_lgop(&value, 1, (char[]){ "+" });
  CHECK_EQ(value, (long)size * (size - 1) / 2);

  list = check_calloc(size * (long)sizeof(int));
  for (int i = 0; i < size; i++)
    list[i] = size - 1 - i;
  ARMCI_Group_create(size, list, &pair);
  CHECK_EQ(pair.rank, size - 1 - rank);
  CHECK_EQ(ARMCI_Absolute_id(&pair, 0), size - 1);
  MPI_Comm_rank(armci_group_comm(&pair), &seen);
  CHECK_EQ(seen, pair.rank);
  ARMCI_Group_free(&pair);
  CHECK_OK(ARMCI_Free(base[rank]));
  free(base);
  free(list);
}

/* One life over a communicator, which is null at ranks that are left out. */
static void over(MPI_Comm comm)
{
  long buffer = 0;
  if (comm == MPI_COMM_NULL) {
    CHECK_EQ(ARMCI_Initialized(), 0);
    CHECK_EQ(ARMCI_Put(&buffer, &buffer, 8, 0), PORTOLAN_ERR_STATE);
    CHECK_EQ(armci_msg_me(), me);   /* the same as MPI's */
    CHECK_EQ(armci_msg_nproc(), nproc);
  } else {
    MPI_Comm same;
    int size;
    MPI_Comm_size(comm, &size);
    CHECK_OK(ARMCI_Init_mpi_comm(comm));
    use(comm);
    CHECK_OK(ARMCI_Init());         /* nested, over the same ranks */
    CHECK_EQ(ARMCI_Initialized(), 2);
    MPI_Comm_dup(comm, &same);      /* a different handle for the same ranks */
    CHECK_OK(PARMCI_Init_mpi_comm(same));
    CHECK_OK(ARMCI_Init_thread_comm(MPI_THREAD_SINGLE, same));
    CHECK_EQ(ARMCI_Initialized(), 4);
    if (size > 1) {
      MPI_Comm turned;
      CHECK_EQ(ARMCI_Init_mpi_comm(MPI_COMM_SELF), PORTOLAN_ERR_STATE);
      MPI_Comm_split(comm, 0, -me, &turned);
      MPI_Comm_compare(comm, turned, &size);
      CHECK_EQ(ARMCI_Init_mpi_comm(turned), size == MPI_SIMILAR ? PORTOLAN_ERR_STATE : ARMCI_SUCCESS);
      if (size != MPI_SIMILAR)
        CHECK_OK(ARMCI_Finalize());
      MPI_Comm_free(&turned);
    }
    CHECK_EQ(ARMCI_Init_mpi_comm(MPI_COMM_NULL), PORTOLAN_ERR_ARG);
    MPI_Comm_free(&same);
    for (int i = 0; i < 4; i++) {
      CHECK_EQ(ARMCI_Initialized(), 4 - i);
      CHECK_OK(ARMCI_Finalize());
    }
    CHECK_EQ(ARMCI_Initialized(), 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (comm != MPI_COMM_NULL)
    MPI_Comm_free(&comm);
}

static MPI_Comm split(int colour, int key)
{
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm);
  return comm;
}

int main(int argc, char **argv)
{
  MPI_Comm halves, between = MPI_COMM_NULL;

  check_start_mpi("part", &argc, &argv);
  CHECK_EQ(ARMCI_Init_mpi_comm(MPI_COMM_NULL), PORTOLAN_ERR_ARG);
  CHECK_EQ(ARMCI_Initialized(), 0);
  over(split(0, me));                                           /* all */
  over(split(0, -me));                                          /* all, in reverse order */
  over(split(me == 0 && nproc > 1 ? MPI_UNDEFINED : 0, me));    /* without rank 0 */
  over(split(me % 2 == 0 ? 0 : MPI_UNDEFINED, -me));            /* every second, in reverse order */
  over(split(me == nproc - 1 ? 0 : MPI_UNDEFINED, 0));          /* a single rank */
  over(split(me % 2, (me + 2) % nproc));                        /* two worlds side by side */
  over(split(me, 0));                                           /* each rank in its own */

  halves = split(me % 2, me);
  if (nproc > 1) {                                              /* not a single group */
    MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, 1 - me % 2, 9, &between);
    CHECK_EQ(ARMCI_Init_mpi_comm(between), PORTOLAN_ERR_ARG);
    MPI_Comm_free(&between);
  }
  MPI_Comm_free(&halves);

  CHECK_OK(ARMCI_Init());                                       /* the whole job again */
  CHECK_OK(ARMCI_Init_mpi_comm(MPI_COMM_WORLD));
  CHECK_EQ(armci_msg_nproc(), nproc);
  CHECK_OK(ARMCI_Finalize());
  CHECK_OK(ARMCI_Finalize());
  return check_end_mpi();
}
