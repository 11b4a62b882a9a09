/*
 * lapi_check.h - shared by the LAPI tests, in addition to check.h.
 */
#ifndef LAPI_CHECK_H
#define LAPI_CHECK_H

#include "check.h"

#include <lapi.h>

static lapi_handle_t hndl;

static inline const char *lapi_text(int code)
{
  static char text[LAPI_MAX_ERR_STRING];
  LAPI_Msg_string(code, text);
  return text;
}

/* Checks that a LAPI call returns this code. */
#define LAPI_CODE(call, code)                                                       \
  do {                                                                              \
    const int lapi_rc = (call);                                                     \
    CHECK(lapi_rc == (code), "%s returned %s instead of " #code " (%s)", #call,     \
          lapi_text(lapi_rc), portolan_last_error());                               \
  } while (0)

#define LAPI_OK(call) LAPI_CODE(call, LAPI_SUCCESS)

static inline void lapi_start(const char *name, int *argc, char ***argv)
{
  lapi_info_t info;
  int task, tasks;
  check_start_mpi(name, argc, argv);
  memset(&info, 0, sizeof info);
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Qenv(hndl, TASK_ID, &task));
  LAPI_OK(LAPI_Qenv(hndl, NUM_TASKS, &tasks));
  CHECK_EQ(task, me);
  CHECK_EQ(tasks, nproc);
}

static inline int lapi_end(void)
{
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Term(hndl));
  return check_end_mpi();
}

/* Returns the table of the addresses that the tasks pass. */
static inline void **lapi_exchange(void *mine)
{
  void **table = (void **)check_calloc(nproc * (long)sizeof(void *));
  LAPI_OK(LAPI_Address_init(hndl, mine, table));
  CHECK(table[me] == mine, "the own entry is %p, not %p", table[me], mine);
  return table;
}

/* The head of a header handler; most handlers use few of their parameters. */
#define LAPI_UNUSED __attribute__((unused))
#define HEADER_HANDLER(name)                                                        \
  static void *name(LAPI_UNUSED lapi_handle_t *h, LAPI_UNUSED void *uhdr,           \
                    LAPI_UNUSED uint *len, LAPI_UNUSED ulong *msg_len,              \
                    LAPI_UNUSED compl_hndlr_t **comp_h, LAPI_UNUSED void **info)

static inline void lapi_zero(lapi_cntr_t *counter)
{
  LAPI_OK(LAPI_Setcntr(hndl, counter, 0));
}

static inline int lapi_value(lapi_cntr_t *counter)
{
  int value = -1;
  LAPI_OK(LAPI_Getcntr(hndl, counter, &value));
  return value;
}

/* Waits for a counter, which must then be zero. */
#define LAPI_WAIT(counter, val)                                                     \
  do {                                                                              \
    int lapi_left = -1;                                                             \
    LAPI_OK(LAPI_Waitcntr(hndl, (counter), (val), &lapi_left));                     \
    CHECK_EQ(lapi_left, 0);                                                         \
  } while (0)

#endif /* LAPI_CHECK_H */
