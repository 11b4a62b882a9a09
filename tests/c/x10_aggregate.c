/* A flush, their limit and the end send the aggregated asyncs of one handle. */
// TEST: x10
// TEST: n=4 node-size=2
// TEST: n=3 node-size=1
#include "x10_check.h"

static volatile long ones, sum_of_ones;

static void one(async_arg_t *args, int n) { CHECK_EQ(n, 1); ones++; sum_of_ones += args[0]; args[0] = -9; }
static void other(async_arg_t *args, int n) { (void)args, (void)n; }

static void reset(void)
{
  GOOD(x10_gfence());
  ones = sum_of_ones = 0;
  GOOD(x10_gfence());
}

/* The same function under two handles: flushing one handle sends only its items. Both kinds of
 * flush send at once: the target sees the items without a fence. */
static void handles_apart(void)
{
  const int right = (me + 1) % nproc;

  reset();
  for (int i = 0; i < 10; i++) {
    GOOD(x10_asyncSpawnInlineAgg(right, 1, one, 100, 1));
    GOOD(x10_asyncSpawnInlineAgg(right, 1, one, 101, 1000));
  }
  GOOD(x10_flush(1, 100));
  UNTIL(sum_of_ones % 1000 == 10);
  GOOD(x10_flush_func(1, one, 101));
  UNTIL(sum_of_ones == 10010);
  CHECK_EQ(ones, 20);
  GOOD(x10_flush(1, 100));          /* no items are left for this or any other handle */
  GOOD(x10_flush(7, 7));
  GOOD(x10_flush_func(1, other, 100));
  GOOD(x10_gfence());
  CHECK_EQ(sum_of_ones, 10010);
}

/* A full buffer is sent without a flush. The environment sets the limit. */
static void by_limit(int limit)
{
  int seen = 0;
  x10_statistics_t before, after;

  reset();
  GOOD(x10_setenv(X10_AGG_LIMIT, limit));
  GOOD(x10_getenv(X10_AGG_LIMIT, &seen));
  CHECK_EQ(seen, limit);
  GOOD(x10_getenv(X10_QUERY_STATISTICS, (int *)&before));
  GOOD(x10_gfence());
  for (int i = 0; i < 10 * limit; i++)
    GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, one, 1000 + limit, 1));
  UNTIL(ones == 10 * limit);
  GOOD(x10_getenv(X10_QUERY_STATISTICS, (int *)&after));
  CHECK_EQ(after.ran - before.ran, 10 * limit);
  CHECK(after.batches - before.batches >= 10, "%lu batches of at most %d for %d",
        after.batches - before.batches, limit, 10 * limit);
  GOOD(x10_gfence());
}

int main(int argc, char **argv)
{
  int limit = 0;

  setenv("X10_MAX_AGG_SIZE", "300", 1);
  check_start_mpi("x10_aggregate", &argc, &argv);
  GOOD(x10_init(NULL, 0));
  GOOD(x10_getenv(X10_AGG_LIMIT, &limit));
  CHECK_EQ(limit, 300);
  GOOD(x10_finalize());
  unsetenv("X10_MAX_AGG_SIZE");
  GOOD(x10_init(NULL, 0));
  GOOD(x10_getenv(X10_AGG_LIMIT, &limit));
  CHECK_EQ(limit, X10_MAX_AGG_SIZE);
  handles_apart();
  by_limit(1);
  by_limit(16);
  by_limit(8192);
  /* Collected items still run when X10Lib ends. */
  reset();
  for (int i = 0; i < 10; i++)
    GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, one, 1, 1));
  GOOD(x10_finalize());
  CHECK_EQ(ones, 10);
  return check_end_mpi();
}
