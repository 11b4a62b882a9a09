/*
 * x10_names.h - LAPI's names of the queries, with x10/x10lib.h alone and with lapi.h before or
 * after it, in C and C++. The programs that include this file differ only in these headers.
 */
#ifndef X10_NAMES_H
#define X10_NAMES_H

#include "x10_check.h"

/* Each name has LAPI's number, and so has X10Lib's own name for it. */
static void numbers(void)
{
#define SAME(name, number)                                                          \
  CHECK((int)name == number && (int)X10_##name == number, #name " is %d, X10_" #name " %d", \
        (int)name, (int)X10_##name)
  SAME(TASK_ID, 0);
  SAME(NUM_TASKS, 1);
  SAME(MAX_UHDR_SZ, 2);
  SAME(MAX_DATA_SZ, 3);
  SAME(ERROR_CHK, 4);
  SAME(TIMEOUT, 5);
  SAME(MIN_TIMEOUT, 6);
  SAME(MAX_TIMEOUT, 7);
  SAME(INTERRUPT_SET, 8);
  SAME(MAX_PORTS, 9);
  SAME(MAX_PKT_SZ, 10);
  SAME(NUM_REX_BUFS, 11);
  SAME(REX_BUF_SZ, 12);
  SAME(LOC_ADDRTBL_SZ, 13);
  SAME(EPOCH_NUM, 14);
  SAME(USE_THRESH, 15);
  SAME(RCV_FIFO_SIZE, 16);
  SAME(MAX_ATOM_SIZE, 17);
  SAME(BUF_CP_SIZE, 18);
  SAME(MAX_PKTS_OUT, 19);
  SAME(ACK_THRESHOLD, 20);
  SAME(QUERY_SHM_ENABLED, 21);
  SAME(QUERY_SHM_NUM_TASKS, 22);
  SAME(QUERY_SHM_TASKS, 23);
  SAME(QUERY_STATISTICS, 24);
  SAME(PRINT_STATISTICS, 25);
#if !defined(LAPI_H) || defined(PORTOLAN_X10_HAS_LAPI_QUERIES)
  SAME(QUERY_SHM_STATISTICS, 26);
  SAME(QUERY_LOCAL_SEND_STATISTICS, 27);
  SAME(BULK_XFER, 28);
  SAME(BULK_MIN_MSG_SIZE, 29);
  SAME(RDMA_REMOTE_RCXT_AVAIL, 30);
  SAME(RDMA_REMOTE_RCXT_TOTAL, 31);
  SAME(RC_MAX_QP, 32);
  SAME(RC_QP_IN_USE, 33);
  SAME(RC_QP_USE_LRU, 34);
  SAME(RC_QP_USE_LMC, 35);
  SAME(RC_QP_INIT_SETUP, 36);
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
