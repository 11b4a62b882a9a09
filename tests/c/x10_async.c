/* Asyncs: 0 to 32 arguments of every kind, from every place to every place, by function, by
 * registered function and by index; immediate execution at the own place; spawned by asyncs, to any
 * depth, under the global fence; while the target computes; rules and bad arguments. */
// TEST: x10
// TEST: n=2 build=static
#include "x10_check.h"

#include <limits.h>

static volatile long hits, sum;

/* ------------------------------------------------------------------ arguments */

static long folded(int n, long first)
{
  long value = n;
  for (int i = 0; i < n; i++)
    value = value * 31 + first + i;
  return value;
}

static void fold(async_arg_t *args, int n)
{
  long value = n;
  for (int i = 0; i < n; i++) {
    value = value * 31 + (long)args[i];
    args[i] = -1;                   /* the async owns its arguments */
  }
  sum += value;
  hits++;
}

static void numbers_of_arguments(void)
{
  const long f = 1000 * me;
  long want = 0;

  hits = sum = 0;
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++) {
    GOOD(x10_asyncSpawnInline(p, 0, fold));
    GOOD(x10_asyncSpawnInline(p, 1, fold, f));
    GOOD(x10_asyncSpawnInline(p, 2, fold, f, f + 1));
    GOOD(x10_asyncSpawnInline(p, 6, fold, f, f + 1, f + 2, f + 3, f + 4, f + 5));
    GOOD(x10_asyncSpawnInline(p, 7, fold, f, f + 1, f + 2, f + 3, f + 4, f + 5, f + 6));
    GOOD(x10_asyncSpawnInline(p, 16, fold, f, f + 1, f + 2, f + 3, f + 4, f + 5, f + 6, f + 7,
                              f + 8, f + 9, f + 10, f + 11, f + 12, f + 13, f + 14, f + 15));
    GOOD(x10_asyncSpawnInline(p, 32, fold, f, f + 1, f + 2, f + 3, f + 4, f + 5, f + 6, f + 7,
                              f + 8, f + 9, f + 10, f + 11, f + 12, f + 13, f + 14, f + 15,
                              f + 16, f + 17, f + 18, f + 19, f + 20, f + 21, f + 22, f + 23,
                              f + 24, f + 25, f + 26, f + 27, f + 28, f + 29, f + 30, f + 31));
  }
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++) {
    static const int all[] = { 0, 1, 2, 6, 7, 16, 32 };
    for (int i = 0; i < 7; i++)
      want += folded(all[i], 1000 * p);
  }
  CHECK_EQ(hits, 7 * nproc);
  CHECK_EQ(sum, want);
}

static void kinds(async_arg_t *args, int n)
{
  double half;

  CHECK_EQ(n, 8);
  CHECK_EQ(args[0], -1);            /* an int keeps its sign in 64 bits */
  CHECK_EQ(args[1], LONG_MIN);
  CHECK_EQ(args[2], 4000000000u);
  CHECK_EQ((unsigned long)args[3], ULONG_MAX);
  CHECK_EQ(args[4], 'x');
  CHECK_EQ(args[5], -7);
  CHECK((void *)args[6] == (void *)0x123456789abcUL, "the pointer is %p", (void *)args[6]);
  memcpy(&half, &args[7], sizeof half);
  CHECK(half == 0.5, "the number is %g", half);
  hits++;
}

static void kinds_of_arguments(void)
{
  const double half = 0.5;
  long bits;
  const short seven = -7;

  hits = 0;
  GOOD(x10_gfence());
  memcpy(&bits, &half, sizeof bits);
  for (int p = 0; p < nproc; p++)
    GOOD(x10_asyncSpawnInline(p, 8, kinds, -1, LONG_MIN, 4000000000u, ULONG_MAX, 'x', seven,
                              (void *)0x123456789abcUL, bits));
  GOOD(x10_gfence());
  CHECK_EQ(hits, nproc);
}

/* The arguments may be changed when the call returns, and asyncs run in order. */
static long last;
static void in_order(async_arg_t *args, int n)
{
  CHECK_EQ(n, 2);
  CHECK_EQ(args[0], last + 1);
  CHECK_EQ(args[1], -args[0]);
  last = args[0];
}

static void reuse_and_order(void)
{
  enum { MANY = 20000 };
  async_arg_t args[2];

  last = 0;
  GOOD(x10_gfence());
  if (me == 0)
    for (long i = 1; i <= MANY; i++) {
      args[0] = i;
      args[1] = -i;
      GOOD(x10_async_spawn_packed(nproc - 1, 2, in_order, 2, args));
      args[0] = args[1] = 99;
    }
  GOOD(x10_gfence());
  CHECK_EQ(last, me == nproc - 1 ? MANY : 0);
}

/* ------------------------------------------------------------ functions by index */

static void by_three(async_arg_t *args, int n) { (void)n; sum += 3 * args[0]; hits++; }
static void by_five(async_arg_t *args, int n) { (void)n; sum += 5 * args[0]; hits++; }
static void by_seven(async_arg_t *args, int n) { (void)n; sum += 7 * args[0]; hits++; }
#define INDEX(i) ((async_func_t *)(size_t)(i))

static void indexes(void)
{
  hits = sum = 0;
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++) {
    GOOD(x10_asyncSpawnInline(p, 1, by_three, 1));         /* registered at index 1 by x10_init */
    GOOD(x10_asyncSpawnInline(p, 1, INDEX(1), 10));
    GOOD(x10_asyncSpawnInline(p, 1, INDEX(2), 100));
  }
  GOOD(x10_gfence());
  CHECK_EQ(hits, 3 * nproc);
  CHECK_EQ(sum, nproc * (3 + 30 + 500));

  /* Odd places register another function at the same index, and that one runs there. */
  GOOD(x10_register((void *)by_seven, X10_TABLE_SIZE));
  if (me % 2)
    GOOD(x10_register((void *)by_five, 1));
  hits = sum = 0;
  GOOD(x10_gfence());
  if (me == 0)
    for (int p = 0; p < nproc; p++) {
      GOOD(x10_asyncSpawnInline(p, 1, by_three, 1));
      GOOD(x10_asyncSpawnInline(p, 1, by_seven, 1));
    }
  GOOD(x10_gfence());
  CHECK_EQ(sum, 7 + (me % 2 ? 5 : 3));

  /* If the function is not registered at the target, the function itself runs. */
  GOOD(x10_register(NULL, 1));
  if (me == 0)
    GOOD(x10_register((void *)by_three, 9));
  hits = sum = 0;
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++)
    GOOD(x10_asyncSpawnInline(p, 1, by_three, 1));
  GOOD(x10_gfence());
  CHECK_EQ(sum, 3 * nproc);
  FAILS(x10_asyncSpawnInline(me, 1, INDEX(1), 1), "index 1");   /* cleared at this place */
  GOOD(x10_register(NULL, X10_TABLE_SIZE));
  GOOD(x10_register(NULL, 9));
  GOOD(x10_register((void *)by_three, 1));

  FAILS(x10_register((void *)by_three, 0), "index 0");
  FAILS(x10_register((void *)by_three, -1), "index -1");
  FAILS(x10_register((void *)by_three, X10_TABLE_SIZE + 1), "index");
  GOOD(x10_gfence());
}

/* ------------------------------------------------------------------ own place */

static int depth;

static void count_down(async_arg_t *args, int n)
{
  CHECK_EQ(n, 1);
  depth++;
  hits++;
  if (args[0] > 0) {
    const long before = hits;
    GOOD(x10_asyncSpawnInline(me, 1, count_down, args[0] - 1));
    CHECK_EQ(hits, before + args[0]);           /* the async ran inside this one */
  }
  depth--;
}

static void at_once(void)
{
  hits = 0;
  for (int i = 1; i <= 5; i++) {
    GOOD(x10_asyncSpawnInline(me, 0, fold));
    CHECK_EQ(hits, i);
  }
  hits = 0;
  GOOD(x10_asyncSpawnInline(me, 1, count_down, 10));
  CHECK_EQ(hits, 11);
  CHECK_EQ(depth, 0);
  hits = 0;
  GOOD(x10_gfence());
  GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, count_down, 6));
  GOOD(x10_gfence());
  CHECK_EQ(hits, 7);
}

/* ------------------------------------------------------------- asyncs that spawn asyncs */

/* A tree: each async spawns two, at the next places, until it is a leaf. */
static void branch(async_arg_t *args, int n)
{
  CHECK_EQ(n, 2);
  hits++;
  if (args[0] > 0) {
    const place_t next = (place_t)((me + args[1]) % nproc);
    GOOD(x10_asyncSpawnInline(next, 2, branch, args[0] - 1, args[1] + 1));
    GOOD(x10_asyncSpawnInline(nproc - 1 - next, 2, branch, args[0] - 1, 1));
  }
}

/* A chain around the places. */
static void around(async_arg_t *args, int n)
{
  CHECK_EQ(n, 1);
  hits++;
  if (args[0] > 0)
    GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, around, args[0] - 1));
}

static void nested(void)
{
  enum { DEEP = 9 };
  for (int round = 0; round < 5; round++) {
    long all = 0, mine;
    hits = 0;
    GOOD(x10_gfence());
    GOOD(x10_asyncSpawnInline((me + 1) % nproc, 2, branch, DEEP, 1));
    if (me == 0)
      GOOD(x10_asyncSpawnInline(nproc - 1, 1, around, 999));
    GOOD(x10_gfence());
    mine = hits;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, nproc * ((2L << DEEP) - 1) + 1000);
    GOOD(x10_gfence());
  }
}

/* The local fence: asyncs that this place has spawned have run at their targets. */
static void fence_of_one(void)
{
  long seen;
  void **table = x_addresses((void *)&hits);

  hits = 0;
  GOOD(x10_gfence());
  if (me == 0) {
    for (int i = 0; i < 1000; i++)
      for (int p = 0; p < nproc; p++)
        GOOD(x10_asyncSpawnInline(p, 0, fold));
    GOOD(x10_fence());
    for (int p = 0; p < nproc; p++) {
      GOOD(x10_get(x_at(table, p, 0), &seen, sizeof seen));
      CHECK_EQ(seen, 1000);
    }
  }
  GOOD(x10_gfence());
  free(table);
}

/* ------------------------------------------------------------- rules in asyncs */

static int tried;

static void waits(async_arg_t *args, int n)
{
  int value = 0;

  (void)args;
  CHECK_EQ(n, 1);
  FAILS(x10_fence(), "x10_fence");
  FAILS(x10_gfence(), "x10_gfence");
  FAILS(x10_finalize(), "x10_finalize");
  GOOD(x10_getenv(X10_PLACE_ID, &value));
  CHECK_EQ(value, me);
  tried = 1;
}

static void no_waiting(void)
{
  tried = 0;
  GOOD(x10_gfence());
  GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, waits, 8));
  GOOD(x10_gfence());
  CHECK_EQ(tried, 1);
}

/* While a place computes, asyncs of other places run there and their gets complete, if it has a
 * progress thread. */
static volatile int rung, fetched;
static void ring(async_arg_t *args, int n) { (void)n; rung = (int)args[0]; }
static void fetch_done(async_arg_t *args, int n) { (void)args; (void)n; fetched = 1; }

static void while_it_computes(void)
{
  int polls = 1, cell = 4321, seen = 0;
  void **table = x_addresses(&cell);
  const double limit = check_seconds() + CHECK_HANG;

  GOOD(x10_getenv(X10_POLLING_SET, &polls));
  rung = fetched = 0;
  GOOD(x10_gfence());
  if (nproc > 1 && !polls && me == 1) {
    while (!(rung && fetched) && check_seconds() < limit)
      for (volatile int i = 0; i < 1000; i++)
        ;
    CHECK_EQ(rung, 77);
    CHECK_EQ(fetched, 1);
  } else if (nproc > 1 && me == 0) {
    GOOD(x10_asyncSpawnInline(1, 1, ring, 77));
    GOOD(x10_get(x_at(table, 1, 0), &seen, sizeof seen));
    CHECK_EQ(seen, 4321);
    GOOD(x10_asyncSpawnInline(1, 0, fetch_done));
  }
  GOOD(x10_gfence());
  free(table);
}

static void bad_arguments(void)
{
  async_arg_t args[X10_MAX_ASYNC_ARGS + 1] = { 0 };
  static long data[4];

  hits = 0;
  GOOD(x10_gfence());
  FAILS(x10_asyncSpawnInline(-1, 0, fold), "place");
  FAILS(x10_asyncSpawnInline(nproc, 0, fold), "place");
  FAILS(x10_asyncSpawnInline(0, 0, NULL), "null");
  FAILS(x10_asyncSpawnInline(0, 1, fold), "0 arguments");
  FAILS(x10_asyncSpawnInline(0, 0, fold, 1), "1 arguments");
  FAILS(x10_asyncSpawnInline(0, -1, fold), "n is -1");
  FAILS(x10_async_spawn_packed(0, -1, fold, -1, args), "-1");
  FAILS(x10_async_spawn_packed(0, 33, fold, 33, args), "33");
  FAILS(x10_async_spawn_packed(0, 1, fold, 1, NULL), "null");
  FAILS(x10_asyncSpawnInline(0, 0, (async_func_t *)(void *)data), "no code");
  GOOD(x10_async_spawn_packed(0, 0, fold, 0, NULL));
  GOOD(x10_gfence());
  CHECK_EQ(hits, me == 0 ? nproc : 0);
  GOOD(x10_gfence());
}

int main(int argc, char **argv)
{
  x10_async_handler_t table[] = { by_three, by_five };

  x_start_with("x10_async", &argc, &argv, table, 2);
  numbers_of_arguments();
  kinds_of_arguments();
  reuse_and_order();
  indexes();
  at_once();
  nested();
  fence_of_one();
  no_waiting();
  while_it_computes();
  bad_arguments();
  return x_end();
}
