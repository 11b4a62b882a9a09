/* Topology: domains cover all ranks, and agree with MPI's nodes and with the path that a
 * transfer takes. */
// TEST: armci
#include "check.h"

/* Returns for each rank the lowest rank of its node: MPI's nodes, split by PORTOLAN_NODE_SIZE. */
static int *mpi_nodes(void)
{
  const char *cut = getenv("PORTOLAN_NODE_SIZE");
  const int size = cut ? atoi(cut) : 0;
  int *first = check_calloc(nproc * (long)sizeof(int)), key[2], place, *keys;
  MPI_Comm node;

  keys = check_calloc(2 * nproc * (long)sizeof(int));
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &place);
  key[0] = me;
  MPI_Bcast(&key[0], 1, MPI_INT, 0, node);
  key[1] = size > 0 ? place / size : 0;
  MPI_Allgather(key, 2, MPI_INT, keys, 2, MPI_INT, MPI_COMM_WORLD);
  MPI_Comm_free(&node);
  for (int p = 0; p < nproc; p++)
    for (first[p] = 0; keys[2 * first[p]] != keys[2 * p] || keys[2 * first[p] + 1] != keys[2 * p + 1];)
      first[p]++;
  free(keys);
  return first;
}

static void cover(void)
{
  const int count = armci_domain_count(ARMCI_DOMAIN_SMP);
  int *met = check_calloc(nproc * (long)sizeof(int)), total = 0;

  CHECK(count >= 1 && count <= nproc, "%d domains", count);
  for (int d = 0; d < count; d++) {
    const int size = armci_domain_nprocs(ARMCI_DOMAIN_SMP, d);
    int last = -1;
    CHECK(size >= 1, "domain %d has %d ranks", d, size);
    for (int i = 0; i < size; i++) {
      const int p = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, d, i);
      CHECK(p > last && p < nproc, "domain %d, place %d: rank %d", d, i, p);
      CHECK_EQ(armci_domain_id(ARMCI_DOMAIN_SMP, p), d);
      CHECK_EQ(met[p]++, 0);
      last = p;
    }
    total += size;
  }
  CHECK_EQ(total, nproc);

  const int mine = armci_domain_my_id(ARMCI_DOMAIN_SMP);
  CHECK_EQ(mine, armci_domain_id(ARMCI_DOMAIN_SMP, me));
  CHECK_EQ(armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1), armci_domain_nprocs(ARMCI_DOMAIN_SMP, mine));
  CHECK_EQ(armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0),
           armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, mine, 0));
  free(met);
}

static void agree(void)
{
  int *first = mpi_nodes();
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);

  for (int p = 0; p < nproc; p++) {
    const int same = first[p] == first[me];
    CHECK(ARMCI_Same_node(p) == same, "ARMCI_Same_node(%d) is %d, expected %d", p,
          ARMCI_Same_node(p), same);
    CHECK_EQ(armci_domain_same_id(ARMCI_DOMAIN_SMP, p), same);
    CHECK((armci_domain_id(ARMCI_DOMAIN_SMP, p) == armci_domain_my_id(ARMCI_DOMAIN_SMP)) == same,
          "rank %d is in domain %d", p, armci_domain_id(ARMCI_DOMAIN_SMP, p));

    const char *path = portolan_path_name(p), *forced = getenv("PORTOLAN_PATH");
    CHECK(path != NULL, "no path to rank %d", p);
    CHECK(!strcmp(path, "direct") || !strcmp(path, "rma") || !strcmp(path, "message"),
          "path to rank %d is '%s'", p, path);
    if (!same)
      CHECK(strcmp(path, "direct") != 0, "direct path to rank %d of another node", p);
    if (same && (forced == NULL || !strcmp(forced, "auto")))
      CHECK(strcmp(path, "direct") == 0, "path to rank %d of the same node is '%s'", p, path);
    if (!strcmp(path, "direct") && p != me)
      CHECK_EQ(ARMCI_Uses_shm(), 1);
  }
  CHECK(ARMCI_Uses_shm() == 0 || ARMCI_Uses_shm() == 1, "ARMCI_Uses_shm is %d", ARMCI_Uses_shm());
  CHECK_EQ(ARMCI_Uses_shm_grp(&world), ARMCI_Uses_shm());
  ARMCI_Set_shm_limit(1);           /* accepted, without effect */
  free(first);

  void **base = check_segment(1 << 16);
  check_free_segment(base);
}

int main(int argc, char **argv)
{
  check_start("domains", &argc, &argv);
  cover();
  agree();
  return check_end();
}
