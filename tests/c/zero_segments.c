/* Segments without bytes on any rank hold nothing: their group can be freed, and 2,100 groups of a
 * job do not exhaust the communicators of MPI. */
// TEST: n=2
// TEST: n=3 node-size=1
#include "check.h"

enum { MANY = 2100 };

int main(int argc, char **argv)
{
  void *ptrs[64];
  int ranks[64];

  check_start("zero_segments", &argc, &argv);
  for (int i = 0; i < nproc; i++)
    ranks[i] = i;
  for (int i = 0; i < MANY; i++) {
    ARMCI_Group group;
    ARMCI_Group_create(nproc, ranks, &group);
    CHECK_OK(ARMCI_Malloc_group(ptrs, 0, &group));
    for (int rank = 0; rank < nproc; rank++)
      CHECK(ptrs[rank] == NULL, "rank %d has %p for no bytes", rank, ptrs[rank]);
    CHECK_OK(ARMCI_Free_group(NULL, &group));
    ARMCI_Group_free(&group);
  }
  /* Ranks without bytes also free a segment that others have bytes in. */
  for (int i = 0; i < 20; i++) {
    CHECK_OK(ARMCI_Malloc(ptrs, i % nproc == me ? 64 : 0));
    CHECK_OK(ARMCI_Free(ptrs[me]));
    CHECK_OK(ARMCI_Malloc(ptrs, 0));
    CHECK_OK(ARMCI_Free(NULL));
  }
  return check_end();
}
