/*
 * x10_names.h - LAPI's names of the queries, with x10/x10lib.h alone and with lapi.h before or
 * after it, in C and C++. The programs that include this file differ only in these headers.
 */
#ifndef X10_NAMES_H
#define X10_NAMES_H

#include "x10_check.h"

/* The names of the queries, in the order of LAPI's numbers. */
#define OLD_QUERIES(X)                                                                            \
  X(TASK_ID) X(NUM_TASKS) X(MAX_UHDR_SZ) X(MAX_DATA_SZ) X(ERROR_CHK) X(TIMEOUT) X(MIN_TIMEOUT)    \
  X(MAX_TIMEOUT) X(INTERRUPT_SET) X(MAX_PORTS) X(MAX_PKT_SZ) X(NUM_REX_BUFS) X(REX_BUF_SZ)        \
  X(LOC_ADDRTBL_SZ) X(EPOCH_NUM) X(USE_THRESH) X(RCV_FIFO_SIZE) X(MAX_ATOM_SIZE) X(BUF_CP_SIZE)   \
  X(MAX_PKTS_OUT) X(ACK_THRESHOLD) X(QUERY_SHM_ENABLED) X(QUERY_SHM_NUM_TASKS) X(QUERY_SHM_TASKS) \
  X(QUERY_STATISTICS) X(PRINT_STATISTICS)
#define NEW_QUERIES(X)                                                                            \
  X(QUERY_SHM_STATISTICS) X(QUERY_LOCAL_SEND_STATISTICS) X(BULK_XFER) X(BULK_MIN_MSG_SIZE)        \
  X(RDMA_REMOTE_RCXT_AVAIL) X(RDMA_REMOTE_RCXT_TOTAL) X(RC_MAX_QP) X(RC_QP_IN_USE) X(RC_QP_USE_LRU) \
  X(RC_QP_USE_LMC) X(RC_QP_INIT_SETUP)

/* Each name has LAPI's number, and so has X10Lib's own name for it. */
static void numbers(void)
{
  int number = 0;
#define SAME(name)                                                                               \
  CHECK((int)name == number && (int)X10_##name == number, #name " is %d, X10_" #name " %d, not %d", \
        (int)name, (int)X10_##name, number);                                                     \
  number++;
  OLD_QUERIES(SAME)
  CHECK_EQ(number, 26);
#if !defined(LAPI_H) || defined(PORTOLAN_X10_HAS_LAPI_QUERIES)
  NEW_QUERIES(SAME)
  CHECK_EQ(LAST_QUERY, 37);
#endif
}

/* Names that old programs use. */
static void asked(void)
{
  int value = -1, before;
  GOOD(x10_getenv(TASK_ID, &value));
  CHECK_EQ(value, me);
  GOOD(x10_getenv(NUM_TASKS, &value));
  CHECK_EQ(value, nproc);
  GOOD(x10_getenv(ERROR_CHK, &before));
  GOOD(x10_setenv(ERROR_CHK, 1));
  GOOD(x10_getenv(X10_ERROR_CHK, &value));
  CHECK_EQ(value, 1);
  GOOD(x10_setenv(ERROR_CHK, before));
  {
    const x10_query_t own = X10_PLACE_ID;
    GOOD(x10_getenv(own, &value));
    CHECK_EQ(value, me);
  }
#ifdef __cplusplus
  GOOD(x10lib::Getenv(TASK_ID, &value));
  CHECK_EQ(value, me);
  GOOD(x10lib::Setenv(ERROR_CHK, before));
#endif
  {
    int TIMEOUT = 3;                /* no conflict with names of the program */
    CHECK_EQ(TIMEOUT, 3);
  }
}

#ifdef LAPI_H
/* LAPI and X10Lib in one program, with the same names. */
static void both(void)
{
  const lapi_query_t query = TASK_ID;
  lapi_handle_t handle;
  lapi_info_t info;
  int value = -1;
  memset(&info, 0, sizeof info);
  CHECK_EQ(LAPI_Init(&handle, &info), LAPI_SUCCESS);
  CHECK_EQ(LAPI_Qenv(handle, query, &value), LAPI_SUCCESS);
  CHECK_EQ(value, me);
  CHECK_EQ(LAPI_Qenv(handle, NUM_TASKS, &value), LAPI_SUCCESS);
  CHECK_EQ(value, nproc);
  CHECK_EQ(LAPI_Senv(handle, ERROR_CHK, 1), LAPI_SUCCESS);
  GOOD(x10_getenv(query, &value));
  CHECK_EQ(value, me);
  CHECK_EQ(LAPI_Term(handle), LAPI_SUCCESS);
}
#endif

static void layouts(void)
{
  CHECK_EQ(sizeof(place_t), 4);
  CHECK_EQ(sizeof(async_arg_t), 8);
  CHECK_EQ(sizeof(x10_gas_ref_t), 16);
  CHECK_EQ(offsetof(x10_gas_ref_t, addr), 8);
  CHECK_EQ(sizeof(x10_giov_ref_t), 24);
  CHECK_EQ(sizeof(x10_switch_t), sizeof(void *));
  CHECK_EQ(sizeof(x10_statistics_t), 56);
  CHECK_EQ(X10_OK, 0);
  CHECK(X10_ERR_LAPI != X10_OK, "an error is success");
}

static int names(const char *name, int *argc, char ***argv)
{
  x_start(name, argc, argv);
  layouts();
  numbers();
  asked();
#ifdef LAPI_H
  both();
#endif
  return x_end();
}

#endif /* X10_NAMES_H */
