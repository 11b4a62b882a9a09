/* The macros of asyncs with 0 to 32 arguments of every kind, and of single values; functions and indexes
 * that places register differently. */
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

  /* A function keeps its name when another one gets its index. */
  GOOD(x10_register((void *)by_three, 1));
  hits = sum = 0;
  GOOD(x10_gfence());
  GOOD(x10_asyncSpawnInline(me, 1, by_three, 1));
  GOOD(x10_gfence());
  GOOD(x10_register((void *)by_seven, 1));
  GOOD(x10_gfence());
  GOOD(x10_asyncSpawnInline(me, 1, by_three, 1));
  GOOD(x10_asyncSpawnInline(me, 1, by_seven, 1));
  GOOD(x10_gfence());
  CHECK_EQ(sum, 3 + 3 + 7);
}

/* The generic names and the names of each type choose the same call. The check `x10` of tests/ranks tests
 * the calls, and x10_invalid.c their errors. */
#define VALUES(type, first)                                                         \
  do {                                                                              \
    type cell = 0, value = (type)(first);                                           \
    void **table = x_addresses(&cell);                                              \
    const x10_gas_ref_t there = x_at(table, (me + 1) % nproc, 0);                   \
    const x10_switch_t sw = x10_alloc_switch();                                     \
    GOOD(x10_put_value(value, there));                                              \
    CHECK(x10_get_value_##type(there) == value, #type ": x10_put_value");           \
    GOOD(x10_put_##type(++value, there));                                           \
    CHECK(x10_get_value_##type(there) == value, #type ": x10_put_" #type);          \
    GOOD(x10_put_value_nb(++value, there, sw));                                     \
    GOOD(x10_wait(sw));                                                             \
    CHECK(x10_get_value_##type(there) == value, #type ": x10_put_value_nb");        \
    GOOD(x10_put_##type##_nb(++value, there, sw));                                  \
    GOOD(x10_wait(sw));                                                             \
    CHECK(x10_get_value_##type(there) == value, #type ": x10_put_" #type "_nb");    \
    GOOD(x10_free_switch(sw));                                                      \
    GOOD(x10_gfence());                                                             \
    free(table);                                                                    \
  } while (0)

static void values(void)
{
  VALUES(int, -2000000000);
  VALUES(long, 1L << 60);
  VALUES(float, -0.25f);
  VALUES(double, 1e15);
}

int main(int argc, char **argv)
{
  x10_async_handler_t table[] = { by_three, by_five };

  x_start_with("x10_async", &argc, &argv, table, 2);
  numbers_of_arguments();
  kinds_of_arguments();
  indexes();
  values();
  return x_end();
}
