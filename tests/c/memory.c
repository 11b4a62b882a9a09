/* Many live segments, and local memory. An argument sets the number of segments. It is 400, or 100
 * if ranks share cores, because collectives are slow then. */
// TEST: armci moving
// TEST: n=2 -- 2500
#include "check.h"

static void free_and_forget(void **base)
{
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
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
  local_memory();
  many_alive(argc > 1 ? atoi(argv[1]) : crowded ? 100 : 400);
  return check_end();
}
