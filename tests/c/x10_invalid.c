/*
 * x10_invalid.c - bad input to every call of x10lib.h, from tables.
 *
 *   x10_invalid             each call with each fault that applies to it, before, during and
 *                           after X10Lib's life
 *   x10_invalid markdown    prints the tables of docs/errors-x10.md; needs no launcher
 *
 * A rejected call moves nothing on either side and sets an error text. x10_library.c tests the
 * fault that ends the job instead: an async whose function the target does not have.
 */
// TEST: faults
#define _DEFAULT_SOURCE
#include "x10_check.h"
#include "refusals.h"
#include "x10_invalid_calls.h"

#include <sys/mman.h>

static void **tables[2];
static int value = 77;
static long odd[4];
static void *words[64];
static volatile int ran;

static void add(async_arg_t *args, int n) { ran += n > 0 ? (int)args[0] : 1; }
static async_arg_t args[64];

/* ------------------------------------------------------------ the other calls */

/* The index of a function, as an address. */
static async_func_t *index_of(size_t i)
{
  return (async_func_t *)i;
}

static void data_as_code(void) { odd[0] = 1; }

static async_func_t *no_code(void)
{
  async_func_t *f;
  void *address = odd;
  memcpy(&f, &address, sizeof f);
  return f;
}

static void switches(void)
{
  const x10_switch_t bad[] = { NULL, freed, (x10_switch_t)(void *)here };
  static const char *names[] = { "a null switch", "a switch that was freed", "an address for a switch" };

  rows_begin("Switches");
  for (int i = 0; i < 3; i++) {
    const x10_switch_t sw = bad[i];
    REFUSED("x10_free_switch", names[i], X10_ERR_LAPI, x10_free_switch(sw));
    REFUSED("x10_decrement_switch", names[i], X10_ERR_LAPI, x10_decrement_switch(sw));
    REFUSED("x10_increment_switch", names[i], X10_ERR_LAPI, x10_increment_switch(sw));
    REFUSED("x10_switch_value", names[i], X10_ERR_LAPI, x10_switch_value(sw, &value));
    REFUSED("x10_wait", names[i], X10_ERR_LAPI, x10_wait(sw));
    REFUSED("x10_next_on_switch", names[i], X10_ERR_LAPI, x10_next_on_switch(sw));
    REFUSED("x10_test", names[i], X10_ERR_LAPI, x10_test(sw, &value));
  }
  REFUSED("x10_switch_value", "a null result", X10_ERR_LAPI, x10_switch_value(usable, NULL));
  REFUSED("x10_test", "a null result", X10_ERR_LAPI, x10_test(usable, NULL));
}

static void asyncs(void)
{
  rows_begin("Asyncs");
  /* The prototypes of the two differ only in the handle. */
#define SPAWNS(fault, dest, n, f, given, args)                                                     \
  REFUSED("x10_asyncSpawnInline", fault, X10_ERR_LAPI, x10_async_spawn_packed(dest, n, f, given, args)); \
  REFUSED("x10_asyncSpawnInlineAgg", fault, X10_ERR_LAPI,                                          \
          x10_async_spawn_agg_packed(dest, n, f, 5, given, args))
  SPAWNS("place -1", -1, 1, add, 1, args);
  SPAWNS("a place equal to the number of places", nproc, 1, add, 1, args);
  SPAWNS("place INT_MAX", INT_MAX, 1, add, 1, args);
  SPAWNS("a null function", right, 1, NULL, 1, args);
  SPAWNS("an address of data for the function", right, 1, no_code(), 1, args);
  SPAWNS("n -1", right, -1, add, -1, args);
  SPAWNS("n above X10_MAX_ASYNC_ARGS", right, X10_MAX_ASYNC_ARGS + 1, add, X10_MAX_ASYNC_ARGS + 1, args);
  SPAWNS("fewer arguments than n", right, 2, add, 1, args);
  SPAWNS("more arguments than n", right, 0, add, 1, args);
  SPAWNS("n INT_MAX, with one argument", right, INT_MAX, add, 1, args);
  SPAWNS("a null array of arguments", right, 1, add, 1, NULL);
  REFUSED("x10_asyncSpawnInline", "an index without a function, at one's own place", X10_ERR_LAPI,
          x10_async_spawn_packed(me, 0, index_of(X10_TABLE_SIZE), 0, NULL));
  REFUSED("x10_flush", "n -1", X10_ERR_LAPI, (x10_flush)(-1, 5));
  REFUSED("x10_flush", "a function without collected asyncs", X10_OK, (x10_flush)(X10_MAX_ASYNC_ARGS + 1, 99));
  REFUSED("x10_flush_func", "n -1", X10_ERR_LAPI, x10_flush_func(-1, add, 5));
  REFUSED("x10_flush_func", "a null function", X10_OK, x10_flush_func(0, NULL, 5));
  REFUSED("x10_register", "index 0", X10_ERR_LAPI, x10_register((void *)add, 0));
  REFUSED("x10_register", "index -1", X10_ERR_LAPI, x10_register((void *)add, -1));
  REFUSED("x10_register", "an index above X10_TABLE_SIZE", X10_ERR_LAPI,
          x10_register((void *)add, X10_TABLE_SIZE + 1));
  REFUSED("x10_register", "index INT_MAX", X10_ERR_LAPI, x10_register((void *)add, INT_MAX));
}

static void settings(void)
{
  rows_begin("Addresses and settings");
  REFUSED("x10_addr_init", "a null table", X10_ERR_LAPI, x10_addr_init(here, NULL));
  GIVES("x10_addr_init", "a null table at one place", "`X10_ERR_LAPI` there, `X10_OK` at the others",
        x10_addr_init(here, me == 0 ? NULL : words) == (me == 0 ? X10_ERR_LAPI : X10_OK));
  REFUSED("x10_getenv", "query -1", X10_ERR_LAPI, x10_getenv((x10_query_t)-1, &value));
  REFUSED("x10_getenv", "a query between LAPI's and X10Lib's", X10_ERR_LAPI, x10_getenv((x10_query_t)37, &value));
  REFUSED("x10_getenv", "a query behind the last", X10_ERR_LAPI,
          x10_getenv((x10_query_t)(X10_AGG_LIMIT + 1), &value));
  REFUSED("x10_getenv", "a null result", X10_ERR_LAPI, x10_getenv(X10_PLACE_ID, NULL));
  REFUSED("x10_getenv", "a null array for X10_QUERY_SHM_TASKS", X10_ERR_LAPI,
          x10_getenv(X10_QUERY_SHM_TASKS, NULL));
  REFUSED("x10_getenv", "a null structure for X10_QUERY_STATISTICS", X10_ERR_LAPI,
          x10_getenv(X10_QUERY_STATISTICS, NULL));
  REFUSED("x10_getenv", "a null X10_NODE_NAME", X10_ERR_LAPI, x10_getenv(X10_NODE_NAME, NULL));
  REFUSED("x10_setenv", "query -1", X10_ERR_LAPI, x10_setenv((x10_query_t)-1, 1));
  REFUSED("x10_setenv", "a query behind the last", X10_ERR_LAPI, x10_setenv((x10_query_t)(X10_AGG_LIMIT + 1), 1));
  REFUSED("x10_setenv", "what only x10_getenv answers", X10_ERR_LAPI, x10_setenv(X10_NUM_PLACES, 1));
  REFUSED("x10_setenv", "X10_ERROR_CHK 2", X10_ERR_LAPI, x10_setenv(X10_ERROR_CHK, 2));
  REFUSED("x10_setenv", "X10_TIMEOUT below X10_MIN_TIMEOUT", X10_ERR_LAPI, x10_setenv(X10_TIMEOUT, 9));
  REFUSED("x10_setenv", "X10_TIMEOUT above X10_MAX_TIMEOUT", X10_ERR_LAPI, x10_setenv(X10_TIMEOUT, 86401));
  REFUSED("x10_setenv", "X10_INTERRUPT_SET -1", X10_ERR_LAPI, x10_setenv(X10_INTERRUPT_SET, -1));
  REFUSED("x10_setenv", "X10_POLLING_SET 2", X10_ERR_LAPI, x10_setenv(X10_POLLING_SET, 2));
  REFUSED("x10_setenv", "X10_ACK_THRESHOLD 0", X10_ERR_LAPI, x10_setenv(X10_ACK_THRESHOLD, 0));
  REFUSED("x10_setenv", "X10_AGG_LIMIT 0", X10_ERR_LAPI, x10_setenv(X10_AGG_LIMIT, 0));
  REFUSED("x10_setenv", "X10_AGG_LIMIT 8193", X10_ERR_LAPI, x10_setenv(X10_AGG_LIMIT, 8193));
}

/* Rejected settings leave the old values unchanged. */
static void settings_kept(void)
{
  static const int wanted[][2] = { { X10_ERROR_CHK, 0 }, { X10_TIMEOUT, 900 }, { X10_ACK_THRESHOLD, 30 } };
  for (int i = 0; i < 3; i++) {
    int now = -1;
    GOOD(x10_getenv((x10_query_t)wanted[i][0], &now));
    CHECK_EQ(now, wanted[i][1]);
  }
}

/* Overlap and missing alignment are legal. */
static void legal(void)
{
  unsigned char bytes[16], want[16];
  rows_begin("No faults");
  if (!LISTED) {
    check_fill(bytes, 1, sizeof bytes);
    memcpy(want, bytes, sizeof want);
    memmove(want + 3, want, 12);
  }
  GIVES("x10_put", "source and destination overlap, at one's own place", "`X10_OK`, as by memmove",
        x10_put(bytes, x10_make_gas_ref(me, bytes + 3), 12) == X10_OK && memcmp(bytes, want, 16) == 0);
  if (!LISTED)
    memmove(want, want + 5, 11);
  GIVES("x10_get", "source and destination overlap, at one's own place", "`X10_OK`, as by memmove",
        x10_get(x10_make_gas_ref(me, bytes + 5), bytes, 11) == X10_OK && memcmp(bytes, want, 16) == 0);
  GIVES("x10_put_value_long", "an address that is not aligned", "`X10_OK`",
        x10_put_value_long(7, x10_make_gas_ref(me, bytes + 1)) == X10_OK &&
          memcmp(bytes + 1, &(long){ 7 }, 8) == 0);
  GIVES("x10_get_value_double", "an address that is not aligned", "the value",
        (memcpy(bytes + 3, &(double){ 2.5 }, 8),
         x10_get_value_double(x10_make_gas_ref(me, bytes + 3)) == 2.5));
  REFUSED("x10_get", "no bytes, all addresses null", X10_OK, x10_get(x10_make_gas_ref(right, NULL), NULL, 0));
  REFUSED("x10_put_v", "no elements, and a null array", X10_OK, x10_put_v(NULL, 0));
}

/* ----------------------------------------------------------------- wrong state */

/* Asyncs must not wait, so calls that wait are rejected. They run at the caller's own place,
 * which makes the results visible here. */
enum { WAITS = 6 };
static const char *waiting_names[WAITS] = { "x10_fence", "x10_gfence", "x10_finalize", "x10_wait",
                                            "x10_addr_init", "x10_init" };
static int waiting_codes[WAITS], waiting_named[WAITS];

static int waiting_call(int which)
{
  switch (which) {
  case 0: return x10_fence();
  case 1: return x10_gfence();
  case 2: return x10_finalize();
  case 3: return x10_wait(usable);
  case 4: return x10_addr_init(here, words);
  default: return x10_init(NULL, 0);
  }
}

static void waiting(async_arg_t *a, int n)
{
  (void)n;
  waiting_codes[a[0]] = waiting_call((int)a[0]);
  waiting_named[a[0]] = strstr(x10_last_error(), waiting_names[a[0]]) != NULL;
}

static int in_an_async(int which)
{
  waiting_codes[which] = waiting_named[which] = -1;
  GOOD(x10_asyncSpawnInline(me, 1, waiting, which));
  return waiting_named[which] == 1 ? waiting_codes[which] : -1;
}

static void wrong_state(void)
{
  rows_begin("Wrong state");
  REFUSED("x10_init", "a second time", X10_ERR_LAPI, x10_init(NULL, 0));
  REFUSED("x10_unlock", "without x10_lock", X10_ERR_LAPI, x10_unlock());
  if (!LISTED)
    GOOD(x10_lock());
  REFUSED("x10_fence", "under the lock", X10_ERR_LAPI, x10_fence());
  REFUSED("x10_gfence", "under the lock", X10_ERR_LAPI, x10_gfence());
  REFUSED("x10_finalize", "under the lock", X10_ERR_LAPI, x10_finalize());
  if (!LISTED) {
    GOOD(x10_unlock());
    GOOD(x10_decrement_switch(usable));
  }
  for (int i = 0; i < WAITS; i++)
    REFUSED(waiting_names[i], i == 3 ? "in an async, the switch below 0" : "in an async", X10_ERR_LAPI,
            in_an_async(i));
  if (!LISTED)
    GOOD(x10_increment_switch(usable));
}

static x10_async_handler_t many[X10_TABLE_SIZE + 1];

static void starting(void)
{
  rows_begin("Before x10_init");
  REFUSED("x10_init", "more functions than X10_TABLE_SIZE", X10_ERR_LAPI, x10_init(many, X10_TABLE_SIZE + 1));
  REFUSED("x10_init", "more functions than X10_TABLE_SIZE, at one place", X10_ERR_LAPI,
          x10_init(many, me == 0 ? X10_TABLE_SIZE + 1 : 1));
}

/* Every call except x10_init, x10_last_error and those that make and read references. */
static void outside(void)
{
  static const struct refusals_fault none = FAULT("no X10Lib", 0, X10_ERR_LAPI, data_as_code);
  const x10_switch_t sw = usable ? usable : (x10_switch_t)(size_t)1;
  const char *when = "no X10Lib";

  for (const struct refusals_call *call = calls; call->name; call++) {
    /* Calls with a switch also check it afterwards, and there is none here. They follow below. */
    if ((call->traits & SWITCH) == 0)
      call_fails(call, &none, good_input);
  }
  good_input();
#define NO(name, expression) REFUSED(name, when, X10_ERR_LAPI, expression)
  NO("x10_get_nb", x10_get_nb(ref(), here, 8, sw));
  NO("x10_put_nb", x10_put_nb(here, ref(), 8, sw));
  NO("x10_get_v_nb", x10_get_v_nb(sets(), 1, sw));
  NO("x10_put_v_nb", x10_put_v_nb(sets(), 1, sw));
  NO("x10_get_s_nb", x10_get_s_nb(STRIDED_GET, sw));
  NO("x10_put_s_nb", x10_put_s_nb(STRIDED_PUT, sw));
#define NO_VALUES(type)                                                           \
  NO("x10_put_value_" #type "_nb", x10_put_value_##type##_nb(1, ref(), sw));      \
  NO("x10_put_" #type "_nb", x10_put_##type##_nb(1, ref(), sw))
  NO_VALUES(int);
  NO_VALUES(long);
  NO_VALUES(float);
  NO_VALUES(double);
  NO("x10_alloc_switch", x10_alloc_switch() != NULL ? X10_OK : X10_ERR_LAPI);
  NO("x10_free_switch", x10_free_switch(sw));
  NO("x10_decrement_switch", x10_decrement_switch(sw));
  NO("x10_increment_switch", x10_increment_switch(sw));
  NO("x10_switch_value", x10_switch_value(sw, &value));
  NO("x10_wait", x10_wait(sw));
  NO("x10_next_on_switch", x10_next_on_switch(sw));
  NO("x10_test", x10_test(sw, &value));
  NO("x10_asyncSpawnInline", x10_asyncSpawnInline(0, 1, add, 1));
  NO("x10_asyncSpawnInlineAgg", x10_asyncSpawnInlineAgg(0, 1, add, 5, 1));
  NO("x10_flush", (x10_flush)(1, 5));
  NO("x10_flush_func", x10_flush_func(1, add, 5));
  NO("x10_fence", x10_fence());
  NO("x10_gfence", x10_gfence());
  NO("x10_lock", x10_lock());
  NO("x10_unlock", x10_unlock());
  NO("x10_register", x10_register((void *)add, 1));
  NO("x10_addr_init", x10_addr_init(here, words));
  NO("x10_getenv", x10_getenv(X10_PLACE_ID, &value));
  NO("x10_setenv", x10_setenv(X10_ERROR_CHK, 1));
  NO("x10_finalize", x10_finalize());
}

/* ------------------------------------------------------------------------ main */

static void tables_of_faults(void)
{
  if (LISTED)
    printf("# Bad input to x10lib.h\n\n"
           "What each call does with arguments that are wrong. tests/c/x10_invalid.c tests every line, and\n"
           "this page is what `x10_invalid markdown` prints. A call that is refused moves nothing; its text\n"
           "is `x10_last_error()`, and goes to standard error.\n\n"
           "## Calls that move data\n\n"
           "A call on a switch says what is wrong at once, or the wait for its switch does. A get of a value\n"
           "returns 0, and the code is `x10_get_value_status()`. ");
  calls_with_faults(calls, faults, good_input, "x10_");
  if (LISTED)
    printf("| before x10_init, after x10_finalize | all, and every call below but x10_init | `X10_ERR_LAPI` |\n"
           "\n## Memory that another place does not have\n\n"
           "Of one's own memory bad addresses are faults, as for memcpy. Of a transfer that lies in part in\n"
           "memory that the place has, those bytes may have moved.\n\n");
  refusals_also = "x10_wait";
  if (LISTED || right != me)
    calls_with_faults(calls, far_faults, good_input, "x10_");
  refusals_also = NULL;
  switches();
  asyncs();
  settings();
  legal();
  wrong_state();
  starting();
  if (LISTED)
    printf("\n## What ends the job\n\n"
           "An async whose function the target does not have: nothing is registered at its index, or the\n"
           "library that it lies in is not loaded there.\n");
}

/* Returns the end of a page that is followed by an unreadable page. */
static char *edge(void)
{
  const long page = sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED, "no pages");
  CHECK_EQ(mprotect(pages + page, (size_t)page, PROT_NONE), 0);
  return pages + page - 8;
}

static void stale(void) { x10_getenv((x10_query_t)-1, NULL); }

int main(int argc, char **argv)
{
  if (refusals_listed(argc, argv)) {
    tables_of_faults();
    return 0;
  }
  check_start_mpi("x10_invalid", &argc, &argv);
  right = (me + 1) % nproc;
  refusals_error = x10_last_error;
  refusals_stale = stale;
  check_fill(here, 3, ROOM);
  check_fill(mine, 7, ROOM);
  there = mine;
  watch("local memory", here, ROOM);
  watch("memory that others name", mine, ROOM);
  watch("local memory for bytes that are not mapped", scrap + 8, 8);
  watch("the result", &value, sizeof value);
  outside();

  starting();
  outside();

  GOOD(x10_init(NULL, 0));
  tables[0] = x_addresses(mine);
  tables[1] = x_addresses(edge());
  there = tables[0][right];
  edge_there = tables[1][right];
  usable = x10_alloc_switch();
  freed = x10_alloc_switch();
  GOOD(x10_free_switch(freed));
  calls_work(calls, good_input);
  GOOD(x10_asyncSpawnInline(right, 1, add, 2));
  GOOD(x10_asyncSpawnInlineAgg(right, 1, add, 5, 3));
  GOOD(x10_gfence());
  CHECK_EQ(ran, 5);
  x_meet();
  tables_of_faults();
  settings_kept();
  GOOD(x10_gfence());
  CHECK_EQ(ran, 5);
  watch_ends("any call", "any fault");
  GOOD(x10_free_switch(usable));
  GOOD(x10_finalize());
  outside();
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", refusals);
  return check_end_mpi();
}
