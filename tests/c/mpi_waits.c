/* Ranks that wait in MPI's blocking calls serve others: rank 0 reads and updates their memory
 * before it joins them. Without a progress thread the test hangs unless these calls serve. The
 * calls also keep MPI's semantics. */
// TEST: n={2,3} thread=0 node-size=1
// TEST: n=2 level=single node-size=1
// TEST: one of n=2 | n=4 node-size=2 | n=3 path=rma | n=3 node-size=1 interpose=init
#include "check.h"

#define ROUNDS 20

/* Accesses the other ranks while they wait. */
static void reach_all(void **base, long round)
{
  for (int r = 1; r < nproc; r++) {
    long *there = (long *)(void *)check_at(base, r, 0), seen = -1, old = -1, put = 1000 * round + r;
    CHECK_OK(ARMCI_Put(&put, there, sizeof put, r));
    CHECK_OK(ARMCI_Get(there, &seen, sizeof seen, r));
    CHECK_EQ(seen, put);
    CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, there + 1, 1, r));
    CHECK_EQ(old, round);
  }
}

static void each_call(MPI_Comm comm, void **base)
{
  long round = 0;
  for (int k = 0; k < ROUNDS; k++) {
    long mine = me + k, all = -1, at_root = -1, sum = (long)nproc * (nproc - 1) / 2 + (long)k * nproc;

    if (me == 0)
      reach_all(base, round);
    round++;
    CHECK_EQ(MPI_Barrier(comm), MPI_SUCCESS);

    if (me == 0)
      reach_all(base, round);
    round++;
    CHECK_EQ(MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQ(all, sum);

    if (me == 0)
      reach_all(base, round);
    round++;
    long value = me == 0 ? 77 + k : -1;
    CHECK_EQ(MPI_Bcast(&value, 1, MPI_LONG, 0, comm), MPI_SUCCESS);
    CHECK_EQ(value, 77 + k);

    /* The last rank is the root and waits for rank 0. */
    if (me == 0)
      reach_all(base, round);
    round++;
    CHECK_EQ(MPI_Reduce(&mine, &at_root, 1, MPI_LONG, MPI_SUM, nproc - 1, comm), MPI_SUCCESS);
    if (me == nproc - 1)
      CHECK_EQ(at_root, sum);
    CHECK_EQ(MPI_Barrier(comm), MPI_SUCCESS);

    if (me == 0) {
      reach_all(base, round);
      for (int r = 1; r < nproc; r++)
        CHECK_EQ(MPI_Send(&k, 1, MPI_INT, r, 40 + r, comm), MPI_SUCCESS);
    } else {
      int got[3] = {-1, -1, -1}, count = -1;
      MPI_Status status;
      CHECK_EQ(MPI_Recv(got, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status), MPI_SUCCESS);
      MPI_Get_count(&status, MPI_INT, &count);
      CHECK_EQ(got[0], k);
      CHECK_EQ(count, 1);
      CHECK_EQ(status.MPI_SOURCE, 0);
      CHECK_EQ(status.MPI_TAG, 40 + me);
    }
    round++;
  }
}

/* In-place operands, MPI_PROC_NULL, a subcommunicator, and a bad root. */
static void meaning(void)
{
  MPI_Comm part;
  long value = me + 1, parity = 0;
  int nothing = 5;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &part);
  for (int r = me % 2; r < nproc; r += 2)
    parity += r + 1;
  CHECK_EQ(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_LONG, MPI_SUM, part), MPI_SUCCESS);
  CHECK_EQ(value, parity);
  CHECK_EQ(MPI_Barrier(part), MPI_SUCCESS);
  CHECK_EQ(MPI_Recv(&nothing, 1, MPI_INT, MPI_PROC_NULL, 0, part, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(nothing, 5);
  MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN);
  CHECK(MPI_Bcast(&value, 1, MPI_LONG, 99, part) != MPI_SUCCESS, "a root of 99 is accepted");
  CHECK_EQ(MPI_Barrier(part), MPI_SUCCESS);
  MPI_Comm_free(&part);

  /* A message that is too long gives MPI's error code. */
  MPI_Comm again;
  MPI_Comm_dup(MPI_COMM_SELF, &again);
  MPI_Comm_set_errhandler(again, MPI_ERRORS_RETURN);
  int two[2] = {1, 2}, one = 0, class = MPI_SUCCESS;
  MPI_Request sent;
  MPI_Isend(two, 2, MPI_INT, 0, 0, again, &sent);
  MPI_Error_class(MPI_Recv(&one, 1, MPI_INT, 0, 0, again, MPI_STATUS_IGNORE), &class);
  CHECK_EQ(class, MPI_ERR_TRUNCATE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Comm_free(&again);
}

int main(int argc, char **argv)
{
  check_start("mpi_waits", &argc, &argv);
  void **base = check_segment(64);
  memset(base[me], 0, 64);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  ARMCI_Barrier();
  each_call(other, base);
  ARMCI_Barrier();
  meaning();
  MPI_Comm_free(&other);
  CHECK_OK(ARMCI_Free(base[me]));
  return check_end();
}
