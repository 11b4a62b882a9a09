/*
 * x10_invalid.c - bad input to every call of x10lib.h (bad_input.h).
 *
 *   x10_invalid           each call with each fault of its arguments, before, during and after
 *                         X10Lib's life
 *   x10_invalid page      prints the tables of docs/errors-x10.md; needs no launcher
 *   x10_invalid calls     prints the calls that have a row
 *
 * x10_library.c tests the fault that ends the job: an async whose function the target does not have.
 */
// TEST: faults
#define _GNU_SOURCE
#include "x10_check.h"
#include "bad_input.h"

#include <sys/mman.h>

/* Macros of the header that choose between calls. */
#undef x10_get_s
#undef x10_put_s
#undef x10_flush

enum { ROOM = 256 };

static unsigned char here[ROOM], mine[ROOM];    /* local bytes, remotely accessible bytes */
static unsigned char scrap[16];     /* local bytes; the first 8 may change */
static char *there, *edge_there;    /* at the right place: `mine`, 8 bytes before unmapped memory */
static int right, value = 77;
static x10_switch_t usable, freed;
static async_arg_t words[64], odd[4];
static void *table[64];
static x10_async_handler_t many[X10_TABLE_SIZE + 1];
static volatile int ran;

static void add(async_arg_t *args, int n) { ran += n > 0 ? (int)args[0] : 1; }

/* Returns a number or an address of data as a function. */
static async_func_t *as_function(size_t address)
{
  async_func_t *f;
  memcpy(&f, &address, sizeof f);
  return f;
}

/* ------------------------------------------------------------------- arguments */

#define ERROR X10_ERR_LAPI, "`X10_ERR_LAPI`"
#define F(name, ...) BAD_FAULT(ALL_RANKS, name, ERROR, __VA_ARGS__)
#define IF_OTHERS if (bad_mode == LISTING || nproc > 1)
#define NULL_IS_BAD F("null", good = NULL)

ARG(int, place, "place",
    F("-1", good = -1) F("INT_MIN", good = INT_MIN) F("the number of places", good = nproc)
    F("INT_MAX", good = INT_MAX))
/* Only remote memory can have faults other than null. Bad local addresses crash the program. */
ARG(void *, remote, "remote address",
    NULL_IS_BAD IF_OTHERS F("16", good = (void *)16)
    IF_OTHERS F("4096 bytes below the last one", good = (void *)-4096L)
    IF_OTHERS F("that is not mapped", good = edge_there + 8))
ARG(void *, local, "local address", NULL_IS_BAD)
ARG(int, bytes, "length", F("negative", good = -8) F("INT_MIN", good = INT_MIN))
ARG(int, levels, "levels", F("-1", good = -1) F("X10_MAX_LEVELS + 1", good = X10_MAX_LEVELS + 1) F("INT_MAX", good = INT_MAX))
#define SKEWED F("not aligned", good = (int *)(void *)((char *)good + 1))
ARG(int *, counts, "counts",
    NULL_IS_BAD SKEWED F("a negative length", good[0] = -8) F("a negative count", good[1] = -2))
ARG(int *, strides, "local strides", NULL_IS_BAD SKEWED)
ARG(int *, far_strides, "remote strides", NULL_IS_BAD SKEWED)
ARG(x10_giov_ref_t *, elements, "array of elements",
    NULL_IS_BAD F("a negative number of blocks", good->count = -2) F("a negative length", good->bytes = -8)
    F("a length of INT_MIN", good->bytes = INT_MIN) F("no references", good->remote = NULL)
    F("no local addresses", good->local = NULL) F("a null local address", good->local[1] = NULL))
ARG(int, number, "number of elements", F("negative", good = -1))
ARG(x10_switch_t, on, "switch",
    NULL_IS_BAD F("that was freed", good = freed) F("an address of memory", good = (x10_switch_t)(void *)here))
ARG(int *, result, "place for the result", NULL_IS_BAD)
ARG(int, n, "n", F("other than the number of arguments", good++) F("INT_MAX", good = INT_MAX))
ARG(int, flushed, "n of a flush", F("-1", good = -1))
ARG(async_func_t *, function, "function",
    NULL_IS_BAD F("an address of data", good = as_function((size_t)odd)))
ARG(const async_arg_t *, packed, "arguments of the function", NULL_IS_BAD)
ARG(int, index_of, "index",
    F("0", good = 0) F("-1", good = -1) F("X10_TABLE_SIZE + 1", good = X10_TABLE_SIZE + 1) F("INT_MAX", good = INT_MAX))
ARG(void **, addresses, "table of addresses", NULL_IS_BAD)
ARG(int, query, "query",
    F("-1", good = -1) F("37, between LAPI's and X10Lib's", good = 37) F("behind the last", good = X10_AGG_LIMIT + 1))
ARG(int, settable, "query to set", F("that can only be asked", good = X10_NUM_PLACES))

/* --------------------------------------- what calls make, use up, and return */

/* Waits on the switch; returns the call's own code, or that of the wait. */
static int awaited(int rc)
{
  if (bad_mode == NO_RUNTIME)
    return rc;
  const int waited = x10_wait(usable);
  int left = -1;
  GOOD(x10_switch_value(usable, &left));
  CHECK_EQ(left, 0);
  return rc != X10_OK ? rc : waited;
}

static int got(double number)       /* of a failed get, the value is 0 */
{
  const int rc = x10_get_value_status();
  CHECK(rc == X10_OK || number == 0, "a value of a get that failed");
  return rc;
}

static int freed_again(x10_switch_t made) { return made ? x10_free_switch(made) : REFUSED; }
static int unlocked(int rc) { return rc ? rc : x10_unlock(); }

static x10_giov_ref_t *vector(void)
{
  static x10_giov_ref_t it;
  static x10_gas_ref_t refs[2];
  static void *locals[2];
  for (int i = 0; i < 2; i++) {
    refs[i] = x10_make_gas_ref(place(right), remote(there + 16 * i));
    locals[i] = here + 16 * i;
  }
  it.remote = refs, it.local = locals, it.bytes = 8, it.count = 2;
  return &it;
}

static x10_switch_t new_switch(void) { return bad_now == GOOD_CALL ? x10_alloc_switch() : usable; }

static x10_switch_t changed(int by) /* a switch whose value a call sets back to 0 */
{
  if (bad_now == GOOD_CALL)
    GOOD(by > 0 ? x10_increment_switch(usable) : x10_decrement_switch(usable));
  return usable;
}

/* ---------------------------------------------------------------------- tables */

#define REF x10_make_gas_ref(place(right), remote(there))
#define S_GET REF, far_strides((int[]){ 16 }), local(here), strides((int[]){ 16 }), counts((int[]){ 8, 2 }), levels(1)
#define S_PUT local(here), strides((int[]){ 16 }), REF, far_strides((int[]){ 16 }), counts((int[]){ 8, 2 }), levels(1)

static void transfers(void)
{
#define BOTH(name, ...)                                            \
  CODE(x10_##name, __VA_ARGS__);                                   \
  AS(awaited, x10_##name##_nb, __VA_ARGS__, on(usable))
  BOTH(get, REF, local(here), bytes(8));
  BOTH(put, local(here), REF, bytes(8));
  BOTH(get_v, elements(vector()), number(1));
  BOTH(put_v, elements(vector()), number(1));
  BOTH(get_s, S_GET);
  BOTH(put_s, S_PUT);
#define VALUES(type)                                               \
  AS(got, x10_get_value_##type, REF);                              \
  BOTH(put_value_##type, 1, REF);                                  \
  BOTH(put_##type, 1, REF)
  VALUES(int);
  VALUES(long);
  VALUES(float);
  VALUES(double);
}

static void others(void)
{
  OUTCOME_OF_NONE("`NULL`", freed_again, x10_alloc_switch);
  CODE(x10_free_switch, on(new_switch()));
  CODE(x10_decrement_switch, on(changed(1)));
  CODE(x10_increment_switch, on(changed(-1)));
  CODE(x10_switch_value, on(usable), result(&value));
  CODE(x10_wait, on(usable));
  CODE(x10_next_on_switch, on(usable));
  CODE(x10_test, on(usable), result(&value));
  CODE(x10_async_spawn_packed, place(right), n(1), function(add), 1, packed(words));
  CODE(x10_async_spawn_agg_packed, place(right), n(1), function(add), 5, 1, packed(words));
  CODE(x10_flush, flushed(1), 5);
  CODE(x10_flush_func, flushed(1), add, 5);
  CODE(x10_register, (void *)add, index_of(1));
  CODE(x10_addr_init, here, addresses(table));
  CODE(x10_getenv, query(X10_PLACE_ID), result(&value));
  CODE(x10_setenv, settable(query(X10_ERROR_CHK)), 0);
  CODE_OF_NONE(x10_fence);
  CODE_OF_NONE(x10_gfence);
  AS_OF_NONE(unlocked, x10_lock);
  NO_FAULT(x10_unlock); NO_FAULT(x10_init); NO_FAULT(x10_finalize); NO_FAULT(x10_last_error);
  NO_FAULT(x10_make_gas_ref); NO_FAULT(x10_gas2place); NO_FAULT(x10_gas2addr); NO_FAULT(x10_get_value_status);
}

/* ------------------------------------------------- faults of more than arguments */

#define C(call, fault, expression) BAD_CASE(call, fault, ERROR, expression)
#define LEGAL(call, what, expression) BAD_CASE(call, what, X10_OK, "`X10_OK`", expression)

/* Overlap and missing alignment are legal. */
static int overlapped(void)
{
  unsigned char bytes[16], want[16];
  check_fill(bytes, 1, sizeof bytes);
  memcpy(want, bytes, sizeof want);
  memmove(want + 3, want, 12);
  if (x10_put(bytes, x10_make_gas_ref(me, bytes + 3), 12) != X10_OK || memcmp(bytes, want, 16) != 0)
    return 0;
  memmove(want, want + 5, 11);
  return x10_get(x10_make_gas_ref(me, bytes + 5), bytes, 11) == X10_OK && memcmp(bytes, want, 16) == 0 &&
         x10_put_value_double(2.5, x10_make_gas_ref(me, bytes + 1)) == X10_OK &&
         x10_get_value_double(x10_make_gas_ref(me, bytes + 1)) == 2.5;
}

static void cases(void)
{
  const x10_gas_ref_t nowhere = x10_make_gas_ref(nproc, there), edge = x10_make_gas_ref(right, edge_there);
  int all[4] = { INT_MAX, INT_MAX, INT_MAX, INT_MAX };
  const char *when = "an invalid place, and no bytes", *over = "the last bytes beyond what is mapped";
  C("x10_get", when, x10_get(nowhere, here, 0));
  C("x10_put", when, x10_put(here, nowhere, 0));
  C("x10_put_s", "counts and strides of INT_MAX", x10_put_s(here, all, x10_make_gas_ref(right, there), all, all, 3));
  C("x10_get_s", "counts and strides of INT_MAX", x10_get_s(x10_make_gas_ref(right, there), all, here, all, all, 3));
  if (bad_mode == LISTING || nproc > 1) {
    C("x10_get", over, x10_get(edge, scrap, 16));
    C("x10_put", over, x10_put(scrap, edge, 16));
    C("x10_get_s", over, x10_get_s(edge, NULL, scrap, NULL, (int[]){ 16 }, 0));
    C("x10_put_s", over, x10_put_s(scrap, NULL, edge, NULL, (int[]){ 16 }, 0));
  }
#define SPAWNS(fault, n)                                                                       \
  C("x10_asyncSpawnInline", fault, x10_async_spawn_packed(right, n, add, n, words));           \
  C("x10_asyncSpawnInlineAgg", fault, x10_async_spawn_agg_packed(right, n, add, 5, n, words))
  SPAWNS("n -1, and as many arguments", -1);
  SPAWNS("more than X10_MAX_ASYNC_ARGS arguments", X10_MAX_ASYNC_ARGS + 1);
  C("x10_asyncSpawnInline", "an index without a function, at one's own place",
    x10_async_spawn_packed(me, 0, as_function(X10_TABLE_SIZE), 0, NULL));
  C("x10_getenv", "a null array for X10_QUERY_SHM_TASKS", x10_getenv(X10_QUERY_SHM_TASKS, NULL));
  C("x10_getenv", "a null structure for X10_QUERY_STATISTICS", x10_getenv(X10_QUERY_STATISTICS, NULL));
  C("x10_getenv", "a null X10_NODE_NAME", x10_getenv(X10_NODE_NAME, NULL));
#define SETS(setting, value) C("x10_setenv", #setting " " #value, x10_setenv(setting, value))
  SETS(X10_ERROR_CHK, 2);
  SETS(X10_TIMEOUT, 9);
  SETS(X10_TIMEOUT, 86401);
  SETS(X10_INTERRUPT_SET, -1);
  SETS(X10_POLLING_SET, 2);
  SETS(X10_ACK_THRESHOLD, 0);
  SETS(X10_AGG_LIMIT, 0);
  SETS(X10_AGG_LIMIT, 8193);
  LEGAL("x10_flush", "a function without collected asyncs", x10_flush(X10_MAX_ASYNC_ARGS + 1, 99));
  LEGAL("x10_flush_func", "a null function", x10_flush_func(0, NULL, 5));
  LEGAL("x10_get", "no bytes, all addresses null", x10_get(x10_make_gas_ref(right, NULL), NULL, 0));
  LEGAL("x10_put_v", "no elements, and a null array", x10_put_v(NULL, 0));
  GIVES("x10_put, x10_get", "overlap at one's own place, addresses that are not aligned", "`X10_OK`, as by memmove",
        overlapped());
  C("x10_init", "a second time", x10_init(NULL, 0));
  C("x10_unlock", "without x10_lock", x10_unlock());
  GIVES("x10_addr_init", "a null table at one place", "`X10_ERR_LAPI` there, `X10_OK` at the others",
        x10_addr_init(here, me == 0 ? NULL : table) == (me == 0 ? X10_ERR_LAPI : X10_OK));
}

static void locked(void)            /* under the lock */
{
  C("x10_fence", "under the lock", x10_fence());
  C("x10_gfence", "under the lock", x10_gfence());
  C("x10_finalize", "under the lock", x10_finalize());
}

/* Asyncs must not wait, so calls that wait are refused. They run at the caller's own place, which
 * makes the results visible here. The switch is below 0. */
static int async_code;

static void waiting(async_arg_t *a, int count)
{
  (void)count;
  switch (a[0]) {
  case 0: async_code = x10_fence(); break;
  case 1: async_code = x10_gfence(); break;
  case 2: async_code = x10_finalize(); break;
  case 3: async_code = x10_wait(usable); break;
  case 4: async_code = x10_addr_init(here, table); break;
  default: async_code = x10_init(NULL, 0);
  }
}

static int in_an_async(int which)
{
  async_code = -1;
  GOOD(x10_asyncSpawnInline(me, 1, waiting, which));
  return async_code;
}

static void in_asyncs(void)
{
  C("x10_fence", "in an async", in_an_async(0));
  C("x10_gfence", "in an async", in_an_async(1));
  C("x10_finalize", "in an async", in_an_async(2));
  C("x10_wait", "in an async, the switch below 0", in_an_async(3));
  C("x10_addr_init", "in an async", in_an_async(4));
  C("x10_init", "in an async", in_an_async(5));
}

static void starting(void)
{
  C("x10_init", "more functions than X10_TABLE_SIZE", x10_init(many, X10_TABLE_SIZE + 1));
  C("x10_init", "more functions than X10_TABLE_SIZE, at one place", x10_init(many, me == 0 ? X10_TABLE_SIZE + 1 : 1));
  C("x10_finalize", "before x10_init, after x10_finalize", x10_finalize());
  C("x10_unlock", "before x10_init, after x10_finalize", x10_unlock());
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = { transfers, others, cases, locked, in_asyncs, starting, NULL };

static void stale(void) { x10_getenv(-1, NULL); }

/* A call on a switch says what is wrong at once, or the wait for its switch does. Errors of the two
 * calls that header macros make name the macro. */
static const char *also(const char *call)
{
  return strncmp(call, "x10_async_spawn", 15) == 0 ? "x10_asyncSpawnInline" : strstr(call, "_nb") ? "x10_wait" : NULL;
}

static void outside_its_life(void)
{
  bad_input(transfers, NO_RUNTIME);
  bad_input(others, NO_RUNTIME);
  bad_input(starting, FAULTS);
}

/* Returns 8 bytes before the end of a page that is followed by an unreadable page. */
static char *edge(void)
{
  const long page = sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED, "no pages");
  CHECK_EQ(mprotect(pages + page, (size_t)page, PROT_NONE), 0);
  return pages + page - 8;
}

int main(int argc, char **argv)
{
  static const int wanted[][2] = { { X10_ERROR_CHK, 0 }, { X10_TIMEOUT, 900 }, { X10_ACK_THRESHOLD, 30 } };
  if (bad_list(argc, argv, tables))
    return 0;
  check_start_mpi("x10_invalid", &argc, &argv);
  right = (me + 1) % nproc;
  bad_error = x10_last_error;
  bad_stale = stale;
  bad_also = also;
  bad_no_runtime = (struct bad_fault){ NULL, "no X10Lib", "`X10_ERR_LAPI`", X10_ERR_LAPI, ALL_RANKS };
  there = (char *)mine;
  usable = freed = (x10_switch_t)(size_t)1;
  outside_its_life();
  GOOD(x10_init(NULL, 0));
  void **all = x_addresses(mine), **edges = x_addresses(edge());
  there = all[right];
  edge_there = edges[right];
  usable = x10_alloc_switch();
  freed = x10_alloc_switch();
  GOOD(x10_free_switch(freed));
  words[0] = 2;
  bad_input(transfers, GOOD_CALLS);
  bad_input(others, GOOD_CALLS);
  GOOD(x10_gfence());
  CHECK_EQ(ran, 4);
  check_fill(here, 3, ROOM);
  check_fill(mine, 7, ROOM);
  x_meet();
  watch("local memory", here, ROOM);
  watch("memory that others name", mine, ROOM);
  watch("local memory for bytes that are not mapped", scrap + 8, 8);
  watch("the result", &value, sizeof value);
  bad_input(transfers, FAULTS);
  bad_input(others, FAULTS);
  bad_input(cases, FAULTS);
  GOOD(x10_lock());
  bad_input(locked, FAULTS);
  GOOD(x10_unlock());
  GOOD(x10_decrement_switch(usable));
  bad_input(in_asyncs, FAULTS);
  GOOD(x10_increment_switch(usable));
  for (int i = 0; i < 3; i++) {     /* settings that were refused */
    GOOD(x10_getenv(wanted[i][0], &value));
    CHECK_EQ(value, wanted[i][1]);
  }
  GOOD(x10_gfence());
  CHECK_EQ(ran, 4);
  GOOD(x10_free_switch(usable));
  GOOD(x10_finalize());
  bad_watches = 0;
  outside_its_life();
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", bad_refused);
  return check_end_mpi();
}
