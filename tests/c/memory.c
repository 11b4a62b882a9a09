/* Segments: empty and odd parts, 300 in a row, 400 alive, 50 in one call; local memory; the device
 * forms. If ranks share cores, collectives are slow, so the numbers are 100 and 100. An argument
 * sets the number of live segments. */
// TEST: armci moving
// TEST: n=2 -- 2500
#include "check.h"

#include <malloc.h>

/* Reads and writes all of the right neighbour's part, and checks that the owner sees the writes.
 * sizes[p] is the size of rank p's part in bytes. */
static void exercise(void **base, const long *sizes, int seed)
{
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  unsigned char *local = check_calloc(sizes[right] + sizes[me] + 1);
  unsigned char *want = check_calloc(sizes[right] + sizes[me] + 1);

  for (int p = 0; p < nproc; p++)
    CHECK((base[p] == NULL) == (sizes[p] == 0), "rank %d has %ld bytes at %p", p, sizes[p], base[p]);
  CHECK(((unsigned long)base[me] & 15) == 0, "the segment is not aligned: %p", base[me]);
  if (base[me] != NULL)
    check_fill(base[me], seed + 50 + me, sizes[me]);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Get(base[right], local, (int)sizes[right], right));
  check_fill(want, seed + 50 + right, sizes[right]);
  CHECK_BYTES(local, want, sizes[right], "what rank %d stored in its %ld bytes", right, sizes[right]);
  ARMCI_Barrier();
  check_fill(local, seed + me, sizes[right]);
  CHECK_OK(ARMCI_Put(local, base[right], (int)sizes[right], right));
  ARMCI_Barrier();
  check_fill(want, seed + left, sizes[me]);
  if (base[me] != NULL)
    CHECK_BYTES(base[me], want, sizes[me], "what rank %d put to these %ld bytes", left, sizes[me]);
  ARMCI_Barrier();
  free(local);
  free(want);
}

static void free_and_forget(void **base)
{
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
}

/* Odd sizes, freed in both orders. */
static void odd_sizes(void)
{
  static const long odd[] = { 1, 3, 8, 12, 24, 40, 100, 1000, 4095, 4104, 65537, 1 << 21 };
  enum { COUNT = sizeof odd / sizeof odd[0] };
  void **base[COUNT];
  long *sizes = check_calloc(nproc * (long)sizeof(long));

  for (int same = 0; same < 2; same++) {
    for (int i = 0; i < COUNT; i++) {
      base[i] = check_calloc(nproc * (long)sizeof(void *));
      for (int p = 0; p < nproc; p++)
        sizes[p] = odd[(i + (same ? 0 : p)) % COUNT];
      CHECK_OK(ARMCI_Malloc(base[i], sizes[me]));
      exercise(base[i], sizes, i);
    }
    for (int i = 0; i < COUNT; i++)
      free_and_forget(base[same ? i : COUNT - 1 - i]);
  }
  free(sizes);
}

/* Parts of no bytes: on one rank, on all but one, on all. */
static void empty_parts(void)
{
  long *sizes = check_calloc(nproc * (long)sizeof(long));
  for (int pattern = 0; pattern < 3; pattern++)
    for (int which = 0; which < nproc; which++) {
      void **base = check_calloc(nproc * (long)sizeof(void *));
      for (int p = 0; p < nproc; p++) {
        sizes[p] = pattern == 2 || (p == which) == (pattern == 0) ? 0 : 500 + p;
        base[p] = &base;            /* ARMCI_Malloc must overwrite it */
      }
      CHECK_OK(ARMCI_Malloc(base, sizes[me]));
      exercise(base, sizes, which);
      free_and_forget(base);
    }
  free(sizes);
}

/* Fifty in one call, of equal sizes on all ranks and of different sizes. */
static void many_at_once(void)
{
  enum { COUNT = 50 };
  long *sizes = check_calloc(nproc * (long)sizeof(long));
  void **all = check_calloc(COUNT * nproc * (long)sizeof(void *));
  size_t mine[COUNT];

  CHECK_OK(portolan_malloc_many(0, NULL, NULL));
  for (int same = 0; same < 2; same++) {
    for (int i = 0; i < COUNT; i++)
      mine[i] = (size_t)((i * 97 + (same ? 0 : me * 31)) % 300);
    CHECK_OK(portolan_malloc_many(COUNT, mine, all));
    for (int i = 0; i < COUNT; i += 7) {
      for (int p = 0; p < nproc; p++)
        sizes[p] = (i * 97 + (same ? 0 : p * 31)) % 300;
      exercise(all + i * nproc, sizes, i);
    }
    for (int i = COUNT - 1; i >= 0; i--)
      CHECK_OK(ARMCI_Free(all[i * nproc + me]));
  }
  free(all);
  free(sizes);
}

/* Segments without bytes on any rank hold nothing, so they need no free and leave nothing. */
static void many_empty(void)
{
  enum { COUNT = 500, TIMES = 200 };
  static const size_t none[COUNT];
  void **all = check_calloc(COUNT * nproc * (long)sizeof(void *));
  size_t before = 0;
  for (int time = 0; time < TIMES; time++) {
    if (time == 1)
      before = mallinfo2().uordblks;
    all[COUNT * nproc - 1] = &before;               /* the call must overwrite it */
    CHECK_OK(portolan_malloc_many(COUNT, none, all));
    for (int i = 0; i < COUNT * nproc; i++)
      CHECK(all[i] == NULL, "%p for no bytes", all[i]);
  }
  const size_t after = mallinfo2().uordblks;
  CHECK(after < before + COUNT * TIMES, "%zu bytes in use, then %zu", before, after);
  free(all);
}

static void local_memory(void)
{
  void *kept[40];
  for (int i = 0; i < 40; i++) {
    const long size = 1 + 37L * i * i * i;
    kept[i] = ARMCI_Malloc_local(size);
    CHECK(kept[i] != NULL, "no local memory of %ld bytes", size);
    CHECK(((unsigned long)kept[i] & 15) == 0, "local memory is not aligned: %p", kept[i]);
    memset(kept[i], i, (size_t)size);
  }
  for (int i = 39; i >= 0; i--) {
    CHECK(*(unsigned char *)kept[i] == i, "local memory %d was overwritten", i);
    CHECK_OK(ARMCI_Free_local(kept[i]));
  }
}

static void devices(void)
{
  static const char *const names[] = { NULL, "", "dram", "no such device" };
  long *sizes = check_calloc(nproc * (long)sizeof(long));
  ARMCI_Group world;

  ARMCI_Group_get_world(&world);
  for (int i = 0; i < 4; i++)
    for (int group = 0; group < 2; group++) {
      void **base = check_calloc(nproc * (long)sizeof(void *));
      for (int p = 0; p < nproc; p++)
        sizes[p] = 100 + 10 * p;
      if (group)
        CHECK_OK(ARMCI_Malloc_group_memdev(base, sizes[me], &world, names[i]));
      else
        CHECK_OK(ARMCI_Malloc_memdev(base, sizes[me], names[i]));
      exercise(base, sizes, i);
      CHECK_OK(ARMCI_Free_memdev(base[me]));
      free(base);
    }
  free(sizes);
}

/* Allocated and freed in a row, with changing sizes and some empty parts. */
static void cycles(int count)
{
  long *sizes = check_calloc(nproc * (long)sizeof(long));
  for (int i = 0; i < count; i++) {
    void **base = check_calloc(nproc * (long)sizeof(void *));
    for (int p = 0; p < nproc; p++)
      sizes[p] = (i * 97 + p * 31) % 5 == 0 ? 0 : 1 + (i * 7919L + p * 104729L) % 20000;
    CHECK_OK(ARMCI_Malloc(base, sizes[me]));
    if (i % 20 == 0)
      exercise(base, sizes, i);
    free_and_forget(base);
  }
  free(sizes);
}

/* Many live segments: each keeps its content when others are freed. */
static void many_alive(int count)
{
  void ***base = check_calloc(count * (long)sizeof(void **));
  const int target = (me + 1) % nproc, source = (me + nproc - 1) % nproc;
  long value, seen;

  for (int i = 0; i < count; i++) {
    base[i] = check_calloc(nproc * (long)sizeof(void *));
    CHECK_OK(ARMCI_Malloc(base[i], 8 * (1 + (i + me) % 9)));
    value = 1000L * i + me;
    CHECK_OK(ARMCI_Put(&value, base[i][target], 8, target));
  }
  for (int pass = 0; pass < 2; pass++) {
    ARMCI_Barrier();
    for (int i = 0; i < count; i++) {
      if (base[i] == NULL)
        continue;
      CHECK_EQ(*(long *)base[i][me], 1000L * i + source);
      CHECK_OK(ARMCI_Get(base[i][target], &seen, 8, target));
      CHECK_EQ(seen, 1000L * i + me);
    }
    ARMCI_Barrier();
    for (int i = 0; i < count; i++)                   /* two of three first, then the rest */
      if (base[i] != NULL && (pass == 1 || (i * 7) % 3 != 0)) {
        free_and_forget(base[i]);
        base[i] = NULL;
      }
  }
  free(base);
}

int main(int argc, char **argv)
{
  check_start("memory", &argc, &argv);
  const int crowded = nproc > sysconf(_SC_NPROCESSORS_ONLN);
  odd_sizes();
  empty_parts();
  many_at_once();
  many_empty();
  local_memory();
  devices();
  cycles(crowded ? 100 : 300);
  many_alive(argc > 1 ? atoi(argv[1]) : crowded ? 100 : 400);
  return check_end();
}
