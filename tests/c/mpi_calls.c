/* MPI's blocking calls keep their meaning if a trace records them. The suite reads the trace. All
 * calls use a communicator in which the ranks have the reverse order. */
// TEST: n=3
// TEST: one of n=4 | n=2 node-size=1
#include "check.h"

enum { MOST = 16 };

static MPI_Comm comm;
static int rank;

static void with_root(void)
{
  long mine = rank + 1, all[MOST], part = -1;
  int counts[MOST], places[MOST];
  for (int r = 0; r < nproc; r++) {
    counts[r] = 1;
    places[r] = r;
    all[r] = rank == 0 ? 100 + r : -1;
  }
  CHECK_EQ(MPI_Bcast(all, nproc, MPI_LONG, 0, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], 100 + nproc - 1);
  CHECK_EQ(MPI_Scatterv(all, counts, places, MPI_LONG, &part, 1, MPI_LONG, 0, comm), MPI_SUCCESS);
  CHECK_EQ(part, 100 + rank);
  CHECK_EQ(MPI_Gatherv(&mine, 1, MPI_LONG, all, counts, places, MPI_LONG, 0, comm), MPI_SUCCESS);
  if (rank == 0)
    CHECK_EQ(all[nproc - 1], nproc);
  /* The root's own part stays in its place. MPI ignores the type that belongs to it. */
  if (rank == 0) {
    CHECK_EQ(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_LONG, 0, comm), MPI_SUCCESS);
    CHECK_EQ(MPI_Scatter(all, 1, MPI_LONG, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm), MPI_SUCCESS);
  } else {
    part = -1;
    CHECK_EQ(MPI_Gather(&mine, 1, MPI_LONG, NULL, 0, MPI_DATATYPE_NULL, 0, comm), MPI_SUCCESS);
    CHECK_EQ(MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &part, 1, MPI_LONG, 0, comm), MPI_SUCCESS);
    CHECK_EQ(part, mine);
  }
  part = -1;
  CHECK_EQ(MPI_Reduce(&mine, &part, 1, MPI_LONG, MPI_SUM, 0, comm), MPI_SUCCESS);
  if (rank == 0)
    CHECK_EQ(part, nproc * (nproc + 1) / 2);
}

static void of_all(void)
{
  const long mine = rank + 1, total = nproc * (nproc + 1) / 2;
  long all[MOST] = {0}, from[MOST], sum = -1;
  int counts[MOST], places[MOST], bytes[MOST];
  MPI_Datatype types[MOST];
  for (int r = 0; r < nproc; r++) {
    counts[r] = 1;
    places[r] = r;
    bytes[r] = r * (int)sizeof(long);
    types[r] = MPI_LONG;
    from[r] = 10 * rank + r;
  }
  CHECK_EQ(MPI_Barrier(comm), MPI_SUCCESS);
  CHECK_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, total);
  all[rank] = mine;
  CHECK_EQ(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_LONG, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], nproc);
  CHECK_EQ(MPI_Allgatherv(&mine, 1, MPI_LONG, all, counts, places, MPI_LONG, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], nproc);
  CHECK_EQ(MPI_Alltoall(from, 1, MPI_LONG, all, 1, MPI_LONG, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], 10 * (nproc - 1) + rank);
  CHECK_EQ(MPI_Alltoallv(from, counts, places, MPI_LONG, all, counts, places, MPI_LONG, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], 10 * (nproc - 1) + rank);
  CHECK_EQ(MPI_Alltoallw(from, counts, bytes, types, all, counts, bytes, types, comm), MPI_SUCCESS);
  CHECK_EQ(all[nproc - 1], 10 * (nproc - 1) + rank);
  for (int r = 0; r < nproc; r++)
    from[r] = mine;
  CHECK_EQ(MPI_Reduce_scatter(from, &sum, counts, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, total);
  CHECK_EQ(MPI_Reduce_scatter_block(from, &sum, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, total);
  CHECK_EQ(MPI_Scan(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
  CHECK_EQ(sum, (long)(rank + 1) * (rank + 2) / 2);
  sum = 0;
  CHECK_EQ(MPI_Exscan(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
  if (rank > 0)
    CHECK_EQ(sum, (long)rank * (rank + 1) / 2);
}

static void messages(void)
{
  const int next = (rank + 1) % nproc, before = (rank + nproc - 1) % nproc;
  long out = rank, in = -1, more[3] = {-1, -1, -1};
  MPI_Status status, statuses[1];
  MPI_Request sent, wanted[3];
  int which = -1, done = 0, indices[3];
  CHECK_EQ(MPI_Sendrecv(&out, 1, MPI_LONG, next, 1, &in, 1, MPI_LONG, before, 1, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(in, before);
  CHECK_EQ(MPI_Sendrecv_replace(&in, 1, MPI_LONG, before, 2, next, 2, comm, &status), MPI_SUCCESS);
  CHECK_EQ(in, rank);
  CHECK_EQ(status.MPI_SOURCE, next);
  MPI_Isend(&out, 1, MPI_LONG, next, 3, comm, &sent);
  CHECK_EQ(MPI_Probe(MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(MPI_Recv(&in, 1, MPI_LONG, MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(in, before);
  CHECK_EQ(MPI_Wait(&sent, MPI_STATUS_IGNORE), MPI_SUCCESS);
  CHECK_EQ(MPI_Recv(&in, 1, MPI_LONG, MPI_PROC_NULL, 4, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
  for (int k = 0; k < 3; k++)
    MPI_Irecv(&more[k], 1, MPI_LONG, before, 5 + k, comm, &wanted[k]);
  MPI_Barrier(comm);
  CHECK_EQ(MPI_Send(&out, 1, MPI_LONG, next, 5, comm), MPI_SUCCESS);
  CHECK_EQ(MPI_Ssend(&out, 1, MPI_LONG, next, 6, comm), MPI_SUCCESS);
  CHECK_EQ(MPI_Rsend(&out, 1, MPI_LONG, next, 7, comm), MPI_SUCCESS);
  CHECK_EQ(MPI_Waitany(1, &wanted[0], &which, &status), MPI_SUCCESS);
  CHECK_EQ(status.MPI_SOURCE, before);
  CHECK_EQ(MPI_Waitsome(1, &wanted[1], &done, indices, statuses), MPI_SUCCESS);
  CHECK_EQ(MPI_Waitall(1, &wanted[2], statuses), MPI_SUCCESS);
  CHECK_EQ(more[0] + more[1] + more[2], 3 * before);
}

int main(int argc, char **argv)
{
  check_start("mpi_calls", &argc, &argv);
  MPI_Comm other;
  MPI_Win window;
  long word = 0;
  CHECK(nproc <= MOST, "at most 16 ranks");
  ARMCI_Barrier();
  CHECK_EQ(MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comm), MPI_SUCCESS);
  MPI_Comm_rank(comm, &rank);
  CHECK_EQ(rank, nproc - 1 - me);
  with_root();
  of_all();
  messages();
  CHECK_EQ(MPI_Comm_dup(comm, &other), MPI_SUCCESS);
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, other, &window);
  CHECK_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
  MPI_Win_free(&window);
  MPI_Comm_free(&other);
  MPI_Comm_free(&comm);
  ARMCI_Barrier();
  return check_end();
}
