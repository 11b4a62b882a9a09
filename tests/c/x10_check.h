/*
 * x10_check.h - shared by the tests of X10Lib, in addition to check.h: start and end, checks of
 * codes, and addresses at every place. "me" and "nproc" are the place and the number of places.
 */
#ifndef X10_CHECK_H
#define X10_CHECK_H

#include "check.h"
#include <x10/x10lib.h>

/* Checks that a call succeeds. */
#define GOOD(call)                                                                  \
  do {                                                                              \
    int check_rc = (call);                                                          \
    CHECK(check_rc == X10_OK, "%s returned %d (%s)", #call, check_rc,               \
          x10_last_error());                                                        \
  } while (0)

/* Checks that a call fails with an error text that contains `word`. */
#define FAILS(call, word)                                                         \
  do {                                                                              \
    int check_rc = (call);                                                          \
    CHECK(check_rc == X10_ERR_LAPI, "%s returned %d", #call, check_rc);             \
    CHECK(strstr(x10_last_error(), word) != NULL, "%s says '%s', not '%s'", #call,  \
          x10_last_error(), word);                                                  \
  } while (0)

static inline void x_start_with(const char *name, int *argc, char ***argv,
                                x10_async_handler_t *handlers, int n)
{
  check_start_mpi(name, argc, argv);
  GOOD(x10_init(handlers, n));
}

static inline void x_start(const char *name, int *argc, char ***argv)
{
  x_start_with(name, argc, argv, NULL, 0);
}

static inline int x_end(void)
{
  GOOD(x10_finalize());
  return check_end_mpi();
}

/* Exchanges an address with all places. */
static inline void **x_addresses(void *mine)
{
  void **table = (void **)check_calloc(nproc * (long)sizeof(void *));
  GOOD(x10_addr_init(mine, table));
  CHECK(table[me] == mine, "the table has %p for this place, not %p", table[me], mine);
  return table;
}

static inline x10_gas_ref_t x_at(void **table, int place, long offset)
{
  return x10_make_gas_ref(place, (char *)table[place] + offset);
}

/* Synchronises all places and serves them meanwhile, without completing anything. */
static inline void x_meet(void)
{
  free(x_addresses(NULL));
}

/* Makes progress without waiting. */
static inline void x_look(void)
{
  const x10_switch_t sw = x10_alloc_switch();
  int done = 1;
  GOOD(x10_decrement_switch(sw));
  GOOD(x10_test(sw, &done));
  CHECK_EQ(done, 0);
  GOOD(x10_free_switch(sw));
}

/* Waits until asyncs have made the condition true. */
#define UNTIL(cond)                                                                 \
  do {                                                                              \
    double check_limit = check_seconds() + CHECK_HANG;                                      \
    while (!(cond) && check_seconds() < check_limit) {                              \
      x_look();                                                                     \
      sched_yield();                                                                \
    }                                                                               \
    CHECK(cond, "%s did not come true", #cond);                                     \
  } while (0)

#endif
