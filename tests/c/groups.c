/* Groups: created from lists, as children, by splitting and by copying; their memory,
 * collectives and transfers; the default group and the world group. */
// TEST: armci moving
#include "check.h"

/* Checks a group of the given world ranks, from a member or from a rank outside of it. */
static void check_group(ARMCI_Group *group, int size, const int *ranks)
{
  int place = -1, rank = -7, count = -7, comm_size;

  for (int i = 0; i < size; i++)
    if (ranks[i] == me)
      place = i;
  const int rc = ARMCI_Group_rank(group, &rank);
  ARMCI_Group_size(group, &count);
  if (place < 0) {
    CHECK(rc != 0, "rank %d is outside, but ARMCI_Group_rank returned 0", me);
    CHECK_EQ(rank, -1);
    CHECK_EQ(count, 0);
    CHECK(group->comm == MPI_COMM_NULL, "an outsider got a communicator");
    return;
  }
  CHECK_EQ(rc, 0);
  CHECK_EQ(rank, place);
  CHECK_EQ(count, size);
  CHECK_EQ(group->rank, place);
  CHECK_EQ(group->size, size);
  MPI_Comm_size(group->comm, &comm_size);
  CHECK_EQ(comm_size, size);
  for (int i = 0; i < size; i++)
    CHECK_EQ(ARMCI_Absolute_id(group, i), ranks[i]);
}

/* Collective operations and memory among the members. */
static void use_group(ARMCI_Group *group, int size, const int *ranks)
{
  void **base;
  int rank, root = ranks[size - 1];
  long sum = me + 1, expected = 0, value, seen;
  double most = me;

  if (group->rank < 0)
    return;
  base = check_calloc(size * (long)sizeof(void *));
  ARMCI_Group_rank(group, &rank);
  for (int i = 0; i < size; i++)
    expected += ranks[i] + 1;
  armci_msg_group_lgop(&sum, 1, "+", group);
  CHECK_EQ(sum, expected);
  armci_msg_group_dgop(&most, 1, "max", group);
  sum = me == root ? 4711 : 0;
  armci_msg_group_bcast_scope(SCOPE_ALL, &sum, sizeof sum, root, group);
  CHECK_EQ(sum, 4711);
  armci_msg_group_barrier(group);

  for (int cycle = 0; cycle < 4; cycle++) {           /* sizes differ by rank and cycle */
    const long bytes = cycle == 3 && rank == 0 ? 0 : 8 * size + 8 * rank;
    if (cycle == 2)
      CHECK_OK(ARMCI_Malloc_group_memdev(base, bytes, group, "dram"));
    else
      CHECK_OK(ARMCI_Malloc_group(base, bytes, group));
    CHECK((base[rank] == NULL) == (bytes == 0), "%ld bytes at %p", bytes, base[rank]);
    if (cycle == 3)
      CHECK(base[0] == NULL, "an address for the empty part of group rank 0");
    armci_msg_group_barrier(group);
    for (int i = 0; i < size; i++) {
      if (base[i] == NULL)
        continue;
      value = 1000 * cycle + 10 * ranks[i] + rank;
      CHECK_OK(ARMCI_Put(&value, (char *)base[i] + 8 * rank, 8, ranks[i]));
      CHECK_OK(ARMCI_Get((char *)base[i] + 8 * rank, &seen, 8, ranks[i]));
      CHECK_EQ(seen, value);
      ARMCI_Fence(ranks[i]);
    }
    armci_msg_group_barrier(group);
    for (int i = 0; i < size && base[rank] != NULL; i++)
      CHECK_EQ(((long *)base[rank])[i], 1000 * cycle + 10 * me + i);
    armci_msg_group_barrier(group);
    CHECK_OK(cycle == 2 ? ARMCI_Free_memdev(base[rank]) : ARMCI_Free_group(base[rank], group));
  }
  free(base);
}

static void world_and_default(void)
{
  ARMCI_Group world, standard, one;
  int *all = check_calloc(nproc * (long)sizeof(int)), *reversed = check_calloc(nproc * (long)sizeof(int));

  for (int i = 0; i < nproc; i++) {
    all[i] = i;
    reversed[i] = nproc - 1 - i;
  }
  ARMCI_Group_get_world(&world);
  check_group(&world, nproc, all);
  use_group(&world, nproc, all);
  ARMCI_Group_get_default(&standard);
  check_group(&standard, nproc, all);

  ARMCI_Group_create(nproc, reversed, &one);
  check_group(&one, nproc, reversed);
  use_group(&one, nproc, reversed);

  ARMCI_Group_set_default(&one);                      /* lists are now relative to this group */
  ARMCI_Group_get_default(&standard);
  check_group(&standard, nproc, reversed);
  ARMCI_Group child;
  int first = 0;
  ARMCI_Group_create(1, &first, &child);
  check_group(&child, 1, reversed);
  use_group(&child, 1, reversed);
  ARMCI_Group_set_default(&world);
  ARMCI_Group_get_default(&standard);
  check_group(&standard, nproc, all);

  ARMCI_Group_free(&child);
  ARMCI_Group_free(&one);
  free(all);
  free(reversed);
}

/* Even and odd ranks work at the same time; then groups of one rank. */
static void disjoint(void)
{
  int *ranks = check_calloc(nproc * (long)sizeof(int)), size = 0;
  ARMCI_Group half[2], alone, world, copy;

  for (int parity = 0; parity < 2; parity++) {        /* by lists; collective over the parent */
    size = 0;
    for (int p = parity; p < nproc; p += 2)
      ranks[size++] = p;
    if (size == 0)
      continue;
    ARMCI_Group_create(size, ranks, &half[parity]);
    check_group(&half[parity], size, ranks);
  }
  size = 0;
  for (int p = me % 2; p < nproc; p += 2)
    ranks[size++] = p;
  for (int round = 0; round < 4; round++)             /* no barrier between the halves */
    use_group(&half[me % 2], size, ranks);
  ARMCI_Barrier();
  ARMCI_Group_free(&half[0]);
  if (nproc > 1)
    ARMCI_Group_free(&half[1]);

  ARMCI_Group_get_world(&world);
  CHECK_OK(ARMCIX_Group_split(&world, me % 2, -me, &half[0]));
  for (int i = 0; i < size / 2; i++) {                /* the key reverses the order */
    const int swap = ranks[i];
    ranks[i] = ranks[size - 1 - i];
    ranks[size - 1 - i] = swap;
  }
  check_group(&half[0], size, ranks);
  use_group(&half[0], size, ranks);
  CHECK_OK(ARMCIX_Group_dup(&half[0], &copy));
  check_group(&copy, size, ranks);
  ARMCI_Group_free(&half[0]);                         /* the copy remains valid */
  use_group(&copy, size, ranks);

  int last = size - 1;                                /* a child, by rank in the parent */
  ARMCI_Group_create_child(1, &last, &alone, &copy);
  check_group(&alone, 1, &ranks[size - 1]);
  use_group(&alone, 1, &ranks[size - 1]);
  ARMCI_Group_free(&alone);
  ARMCI_Group_free(&copy);
  CHECK_EQ(copy.size, 0);
  free(ranks);
  ARMCI_Barrier();
}

/* Mutexes of a group are addressed by world ranks. */
static void group_mutexes(void)
{
  ARMCI_Group world, part;
  void **data = check_segment(8);
  const int colour = me < (nproc + 1) / 2, home = colour ? 0 : nproc - 1;
  long value;

  ARMCI_Group_get_world(&world);
  CHECK_OK(ARMCIX_Group_split(&world, colour, me, &part));
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(1, &part);
  CHECK(set != NULL, "no mutexes in a group");
  for (int i = 0; i < 20; i++) {
    ARMCIX_Lock_hdl(set, 0, home);
    CHECK_OK(ARMCI_Get(data[home], &value, 8, home));
    value++;
    CHECK_OK(ARMCI_Put(&value, data[home], 8, home));
    ARMCI_Fence(home);
    ARMCIX_Unlock_hdl(set, 0, home);
  }
  ARMCI_Barrier();
  if (me == home)
    CHECK_EQ(*(long *)data[me], 20L * part.size);
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(set));
  ARMCI_Group_free(&part);
  check_free_segment(data);
}

int main(int argc, char **argv)
{
  check_start("groups", &argc, &argv);
  world_and_default();
  disjoint();
  group_mutexes();
  for (int i = 0; i < 60; i++) {                      /* freed groups do not use up a limit */
    ARMCI_Group world, copy;
    ARMCI_Group_get_world(&world);
    CHECK_OK(ARMCIX_Group_dup(&world, &copy));
    ARMCI_Group_free(&copy);
  }
  return check_end();
}
