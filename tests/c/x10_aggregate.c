/* Aggregated asyncs: several functions, numbers of arguments and handles at a time. The size
 * limit, flushes, fences and age send the collected items, and each item runs once. */
// TEST: x10
// TEST: n=4 node-size=2
// TEST: n=3 node-size=1
#include "x10_check.h"

static volatile long ones, sum_of_ones, pairs, nothings, wides, others;

static void one(async_arg_t *args, int n) { CHECK_EQ(n, 1); ones++; sum_of_ones += args[0]; args[0] = -9; }
static void other(async_arg_t *args, int n) { CHECK_EQ(n, 1); others += args[0]; }
static void pair(async_arg_t *args, int n)
{
  CHECK_EQ(n, 2);
  CHECK_EQ(args[1], args[0] * 3 + 1);
  args[0] = args[1] = 0;            /* the next item must not see this */
  pairs++;
}
static void nothing(async_arg_t *args, int n) { (void)args; CHECK_EQ(n, 0); nothings++; }
static void wide(async_arg_t *args, int n)
{
  CHECK_EQ(n, 16);
  for (int i = 1; i < 16; i++)
    CHECK_EQ(args[i], args[0] + i);
  wides++;
}

static void reset(void)
{
  GOOD(x10_gfence());
  ones = sum_of_ones = pairs = nothings = wides = others = 0;
  GOOD(x10_gfence());
}

/* From every place to every place, mixing all kinds. `how` selects how the rest is sent. */
static void mixed(int how)
{
  enum { MANY = 5000 };
  long want = 0;

  reset();
  for (long i = 0; i < MANY; i++) {
    const int p = (int)((i * 7 + me) % nproc);
    GOOD(x10_asyncSpawnInlineAgg(p, 1, one, 1, i));
    GOOD(x10_asyncSpawnInlineAgg(p, 2, pair, 2, i, i * 3 + 1));
    GOOD(x10_asyncSpawnInlineAgg(p, 0, nothing, 3));
    GOOD(x10_asyncSpawnInlineAgg(p, 1, other, 4, 1));
    if (i % 4 == 0)
      GOOD(x10_asyncSpawnInlineAgg(p, 16, wide, 5, i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6,
                                   i + 7, i + 8, i + 9, i + 10, i + 11, i + 12, i + 13, i + 14,
                                   i + 15));
  }
  if (how == 0) {
    GOOD(x10_flush(1, 1));
    GOOD(x10_flush(2, pair, 2));
    GOOD(x10_flush_func(0, nothing, 3));
    GOOD(x10_flush(1, 4));
    GOOD(x10_flush(16, 5));
    GOOD(x10_gfence());
  } else if (how == 1) {
    GOOD(x10_fence());
    x_meet();
  } else
    GOOD(x10_gfence());
  long mine[5] = { ones, pairs, nothings, others, wides }, all[5];
  for (int q = 0; q < nproc; q++)
    for (long i = 0; i < MANY; i++)
      if ((i * 7 + q) % nproc == me)
        want += i;
  CHECK_EQ(sum_of_ones, want);
  MPI_Allreduce(mine, all, 5, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all[0], nproc * MANY);
  CHECK_EQ(all[1], nproc * MANY);
  CHECK_EQ(all[2], nproc * MANY);
  CHECK_EQ(all[3], nproc * MANY);
  CHECK_EQ(all[4], nproc * MANY / 4);
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

/* Age alone sends a few items, if a progress thread runs. */
static void by_age(void)
{
  int polls = 1;

  GOOD(x10_getenv(X10_POLLING_SET, &polls));
  if (polls)
    return;
  reset();
  GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, one, 1, 5));
  UNTIL(sum_of_ones == 5);
  GOOD(x10_gfence());
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

/* The global fence covers items that asyncs spawn, also aggregated ones. */
static void forward(async_arg_t *args, int n)
{
  CHECK_EQ(n, 1);
  ones++;
  if (args[0] > 0)
    GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, forward, 50, args[0] - 1));
}

static void nested(void)
{
  enum { MANY = 200, DEEP = 20 };
  long mine, all;

  reset();
  for (int i = 0; i < MANY; i++)
    GOOD(x10_asyncSpawnInlineAgg((me + i) % nproc, 1, forward, 50, DEEP));
  GOOD(x10_gfence());
  mine = ones;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all, (long)nproc * MANY * (DEEP + 1));
  GOOD(x10_gfence());
}

/* A hundred handles at a time, more than the small tables hold. */
static void many_handles(void)
{
  reset();
  for (int i = 0; i < 5000; i++)
    GOOD(x10_asyncSpawnInlineAgg(i % nproc, 1, i % 2 ? one : other, 2000 + i % 100, 2));
  GOOD(x10_gfence());
  long mine[2] = { sum_of_ones, others }, all[2];
  MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all[0], 5000L * nproc);
  CHECK_EQ(all[1], 5000L * nproc);
  GOOD(x10_gfence());
}

static void bad_arguments(void)
{
  async_arg_t args[40] = { 0 };

  reset();
  FAILS(x10_asyncSpawnInlineAgg(-1, 0, nothing, 3), "place");
  FAILS(x10_asyncSpawnInlineAgg(nproc, 1, one, 1, 5), "place");
  FAILS(x10_asyncSpawnInlineAgg(0, 0, NULL, 60), "null");
  FAILS(x10_asyncSpawnInlineAgg(0, 2, pair, 2, 1), "1 arguments");
  FAILS(x10_asyncSpawnInlineAgg(0, 0, nothing, 3, 1), "1 arguments");
  FAILS(x10_async_spawn_agg_packed(0, -2, one, 1, -2, args), "-2");
  FAILS(x10_async_spawn_agg_packed(0, 40, one, 1, 40, args), "40");
  FAILS(x10_async_spawn_agg_packed(0, 1, one, 1, 1, NULL), "null");
  FAILS(x10_asyncSpawnInlineAgg(0, 0, (async_func_t *)(void *)args, 61), "no code");
  FAILS(x10_flush(-1, 1), "-1");
  FAILS(x10_flush_func(-1, one, 1), "-1");
  FAILS(x10_setenv(X10_AGG_LIMIT, 0), "X10_AGG_LIMIT");
  FAILS(x10_setenv(X10_AGG_LIMIT, 8193), "X10_AGG_LIMIT");
  GOOD(x10_gfence());
  CHECK_EQ(ones + pairs + nothings, 0);
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
  for (int how = 0; how < 3; how++)
    mixed(how);
  handles_apart();
  by_age();
  by_limit(1);
  by_limit(16);
  by_limit(8192);
  nested();
  many_handles();
  bad_arguments();
  /* Collected items still run when X10Lib ends. */
  reset();
  for (int i = 0; i < 10; i++)
    GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, one, 1, 1));
  GOOD(x10_finalize());
  CHECK_EQ(ones, 10);
  return check_end_mpi();
}
