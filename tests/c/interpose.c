/* A program, or a profiling tool linked with it, defines ARMCI names that call their PARMCI
 * counterparts. All callers must reach these definitions. */
// TEST: armci
// TEST: own-level
// TEST: n=2 build=static
#include "check.h"

static int puts_seen, gets_seen, barriers_seen, mallocs_seen, depth;

int ARMCI_Put(void *src, void *dst, int size, int target)
{
  puts_seen++;
  CHECK_EQ(++depth, 1);             /* PARMCI_Put must not call ARMCI_Put */
  const int rc = PARMCI_Put(src, dst, size, target);
  depth--;
  return rc;
}

int ARMCI_Get(void *src, void *dst, int size, int target)
{
  gets_seen++;
  CHECK_EQ(++depth, 1);
  const int rc = PARMCI_Get(src, dst, size, target);
  depth--;
  return rc;
}

void ARMCI_Barrier(void)
{
  barriers_seen++;
  PARMCI_Barrier();
}

int ARMCI_Malloc(void **base_ptrs, armci_size_t size)
{
  mallocs_seen++;
  return PARMCI_Malloc(base_ptrs, size);
}

/* Addresses of the names, as code compiled elsewhere links to them. */
static int (*volatile put_by_name)(void *, void *, int, int) = ARMCI_Put;
static int (*volatile get_by_name)(void *, void *, int, int) = ARMCI_Get;

int main(int argc, char **argv)
{
  check_start("interpose", &argc, &argv);
  void **base = check_segment(64);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  long value = 10 + me, seen = 0;
  int count = 8, before;

  CHECK_EQ(mallocs_seen, 1);
  CHECK_EQ(barriers_seen, 1);
  CHECK_OK(ARMCI_Put(&value, base[right], 8, right));
  CHECK_EQ(puts_seen, 1);
  ARMCI_Barrier();
  CHECK_EQ(*(long *)base[me], 10 + left);
  CHECK_OK(put_by_name(&value, check_at(base, right, 8), 8, right));
  CHECK_EQ(puts_seen, 2);
  CHECK_OK(get_by_name(check_at(base, right, 8), &seen, 8, right));
  CHECK_EQ(gets_seen, 1);
  CHECK_EQ(seen, value);

  CHECK_OK(PARMCI_Put(&value, check_at(base, right, 16), 8, right));
  CHECK_OK(PARMCI_Get(check_at(base, right, 16), &seen, 8, right));
  CHECK_EQ(seen, value);
  CHECK_EQ(puts_seen, 2);
  CHECK_EQ(gets_seen, 1);

  /* the library may implement a call by one put, but not by more */
  before = puts_seen;
  CHECK_OK(ARMCI_PutValueLong(5, check_at(base, right, 24), right));
  CHECK(puts_seen <= before + 1, "one value made %d puts", puts_seen - before);
  before = puts_seen;
  CHECK_OK(ARMCI_PutS(&value, NULL, check_at(base, right, 32), NULL, &count, 0, right));
  CHECK(puts_seen <= before + 1, "one block made %d puts", puts_seen - before);
  CHECK_EQ(ARMCI_GetValueLong(check_at(base, right, 24), right), 5);

  check_free_segment(base);
  CHECK_EQ(mallocs_seen, 1);
  return check_end();
}
