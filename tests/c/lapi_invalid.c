/*
 * lapi_invalid.c - bad input to every call of lapi.h, from tables.
 *
 *   lapi_invalid             each call with each fault that applies to it, before, during and
 *                            after a context's life, with ERROR_CHK off and on
 *   lapi_invalid markdown    prints the tables as in docs/errors-lapi.md; needs no launcher
 *
 * A refused call sends nothing, changes no memory and increments no counter. Errors at the target
 * end the job; lapi_errors.c tests those.
 */
// TEST: lapi lapi-moving
// TEST: faults
#include "lapi_check.h"
#include "refusals.h"
#include "lapi_invalid_calls.h"
#include "lapi_aborts.h"
#include "lapi_invalid_others.h"

#include <pthread.h>
#include <sys/resource.h>

static int value = 77;
static void *address = here, *table[64];
static ulong number = 77;
static lapi_msg_info_t state;
static lapi_handle_t given = 12345;
static lapi_info_t info;
static lapi_long_t wide[64];

/* -------------------------------------------------------------------- handles */

/* Runs the calls that are not in the first table with an invalid handle. */
static void bad_handle(lapi_handle_t h, const char *fault)
{
#define NO(name, expression) REFUSED(name, fault, LAPI_ERR_HNDL_INVALID, expression)
  NO("LAPI_Term", LAPI_Term(h));
  NO("LAPI_Qenv", LAPI_Qenv(h, TASK_ID, &value));
  NO("LAPI_Senv", LAPI_Senv(h, ERROR_CHK, 1));
  NO("LAPI_Address_init", LAPI_Address_init(h, here, table));
  NO("LAPI_Addr_set", LAPI_Addr_set(h, here, 1));
  NO("LAPI_Addr_get", LAPI_Addr_get(h, &address, 1));
  NO("LAPI_Setcntr", LAPI_Setcntr(h, &counter, 5));
  NO("LAPI_Getcntr", LAPI_Getcntr(h, &counter, &value));
  NO("LAPI_Waitcntr", LAPI_Waitcntr(h, &counter, 0, &value));
  NO("LAPI_Nopoll_wait", LAPI_Nopoll_wait(h, &counter, 1, &value));
  NO("LAPI_Probe", LAPI_Probe(h));
  NO("LAPI_Msgpoll", LAPI_Msgpoll(h, 1, &state));
  NO("LAPI_Fence", LAPI_Fence(h));
  NO("LAPI_Gfence", LAPI_Gfence(h));
  NO("LAPI_Purge_totask", LAPI_Purge_totask(h, (uint)right));
  NO("LAPI_Resume_totask", LAPI_Resume_totask(h, (uint)right));
  NO("LAPI_Xfer", LAPI_Xfer(h, NULL));
  NO("LAPI_Util", LAPI_Util(h, &util));
  NO("LAPI_Address_init64", LAPI_Address_init64(h, 8, wide));
  NO("LAPI_Setcntr_wstatus", LAPI_Setcntr_wstatus(h, &counter, 1, &member, &value));
  NO("LAPI_Group_create", LAPI_Group_create(h, 1, &member, &group));
  NO("LAPI_Group_free", LAPI_Group_free(h, group));
}

static void bad_handles(void)
{
  rows_begin("Other calls with an invalid handle");
  bad_handle(0, LISTED ? "0, UINT_MAX, or one that was never given" : "handle 0");
  if (!LISTED) {
    bad_handle(hndl + 1, "a handle that was never given");
    bad_handle(UINT_MAX, "handle UINT_MAX");
  }
}

/* Without a context, before LAPI_Init or after LAPI_Term, every handle is invalid. */
static void outside(void)
{
  static const struct refusals_fault none = FAULT("no context", 0, LAPI_ERR_HNDL_INVALID, good_input);
  static const lapi_handle_t never[] = { 0, 1, UINT_MAX };
  const lapi_handle_t was = hndl;

  for (int i = 0; i <= 3; i++) {
    if (i < 3)
      hndl = never[i];
    for (const struct refusals_call *call = calls; call->name; call++)
      call_fails(call, &none, good_input);
    bad_handle(hndl, "no context");
    hndl = was;
  }
}

/* --------------------------------------------------------------- start and end */

/* Sets, one at a time, each byte of lapi_info_t that must be zero; returns the last code of
 * LAPI_Init, or the first unexpected one. err_hndlr and num_compl_hndlr_thr may have any value. */
static int nonzero(void)
{
  unsigned char *raw = (unsigned char *)&info;
  int refused = 0;
  for (size_t i = 0; i < sizeof info; i++) {
    if ((i >= offsetof(lapi_info_t, err_hndlr) && i < offsetof(lapi_info_t, lapi_thread_attr)) ||
        (i >= offsetof(lapi_info_t, num_compl_hndlr_thr) && i < offsetof(lapi_info_t, instance_no)))
      continue;
    memset(&info, 0, sizeof info);
    raw[i] = 0x77;
    refused = LAPI_Init(&given, &info);
    if (refused != LAPI_ERR_INFO_NONZERO)
      break;
  }
  memset(&info, 0, sizeof info);
  return refused;
}

static int instance(uint number)
{
  memset(&info, 0, sizeof info);
  info.instance_no = number;
  const int refused = LAPI_Init(&given, &info);
  memset(&info, 0, sizeof info);
  return refused;
}

static void starting(void)
{
  rows_begin("LAPI_Init");
  REFUSED("LAPI_Init", "a null handle", LAPI_ERR_RET_PTR_NULL, LAPI_Init(NULL, &info));
  REFUSED("LAPI_Init", "a null lapi_info_t", LAPI_ERR_INFO_NULL, LAPI_Init(&given, NULL));
  REFUSED("LAPI_Init", "any field that must be 0, or above what it may be", LAPI_ERR_INFO_NONZERO, nonzero());
  REFUSED("LAPI_Init", "instance 17", LAPI_ERR_INFO_NONZERO, instance(17));
}

static void texts(void)
{
  char text[LAPI_MAX_ERR_STRING] = "";
  rows_begin("Texts and addresses, which need no context");
  GIVES("LAPI_Msg_string", "an unknown code", "`LAPI_ERR_CODE_UNKNOWN`, and a text that names the number",
        LAPI_Msg_string(4711, text) == LAPI_ERR_CODE_UNKNOWN && strstr(text, "4711") != NULL);
  GIVES("LAPI_Msg_string", "code INT_MIN", "`LAPI_ERR_CODE_UNKNOWN`, and a text that names the number",
        LAPI_Msg_string(INT_MIN, text) == LAPI_ERR_CODE_UNKNOWN && strstr(text, "-2147483648") != NULL);
  GIVES("LAPI_Msg_string", "a null buffer", "`LAPI_ERR_RET_PTR_NULL`",
        LAPI_Msg_string(0, NULL) == LAPI_ERR_RET_PTR_NULL);
  REFUSED("LAPI_Address", "a null address", LAPI_ERR_ORG_ADDR_NULL, LAPI_Address(NULL, &number));
  REFUSED("LAPI_Address", "a null result", LAPI_ERR_TGT_ADDR_NULL, LAPI_Address(here, NULL));
}

/* ------------------------------------------------------------ the other calls */

static void addresses(void)
{
  static const struct { const char *name; int index; } bad[] = {
    { "index 0", 0 }, { "index -1", -1 }, { "index LOC_ADDRTBL_SZ", 128 }, { "index INT_MAX", INT_MAX },
    { "index INT_MIN", INT_MIN } };
  if (!LISTED) {
    int size = 0;
    LAPI_OK(LAPI_Qenv(hndl, LOC_ADDRTBL_SZ, &size));
    CHECK_EQ(size, bad[2].index);
  }
  rows_begin("Addresses");
  for (int i = 0; i < 5; i++) {
    REFUSED("LAPI_Addr_set", bad[i].name, LAPI_ERR_ADDR_HNDL_RANGE, LAPI_Addr_set(hndl, here, bad[i].index));
    REFUSED("LAPI_Addr_get", bad[i].name, LAPI_ERR_ADDR_HNDL_RANGE, LAPI_Addr_get(hndl, &address, bad[i].index));
  }
  REFUSED("LAPI_Addr_get", "a null result", LAPI_ERR_RET_PTR_NULL, LAPI_Addr_get(hndl, NULL, 1));
  REFUSED("LAPI_Address_init", "a null table", LAPI_ERR_ADDR_TBL_NULL, LAPI_Address_init(hndl, here, NULL));
  REFUSED("LAPI_Address_init64", "a null table", LAPI_ERR_ADDR_TBL_NULL, LAPI_Address_init64(hndl, 8, NULL));
  GIVES("LAPI_Address_init", "a null table at one task",
        "`LAPI_ERR_ADDR_TBL_NULL` there, `LAPI_SUCCESS` at the others",
        LAPI_Address_init(hndl, here, me == 0 ? NULL : table) ==
          (me == 0 ? LAPI_ERR_ADDR_TBL_NULL : LAPI_SUCCESS));
}

static void counters(void)
{
  rows_begin("Counters and progress");
  REFUSED("LAPI_Setcntr", "a null counter", LAPI_ERR_CNTR_NULL, LAPI_Setcntr(hndl, NULL, 1));
  REFUSED("LAPI_Setcntr_wstatus", "a null counter", LAPI_ERR_CNTR_NULL,
          LAPI_Setcntr_wstatus(hndl, NULL, 1, &member, &value));
  REFUSED("LAPI_Setcntr_wstatus", "a list of -1 destinations", LAPI_ERR_CNTR_VAL,
          LAPI_Setcntr_wstatus(hndl, &counter, -1, &member, &value));
  REFUSED("LAPI_Getcntr", "a null counter", LAPI_ERR_CNTR_NULL, LAPI_Getcntr(hndl, NULL, &value));
  REFUSED("LAPI_Getcntr", "a null result", LAPI_ERR_RET_PTR_NULL, LAPI_Getcntr(hndl, &counter, NULL));
  REFUSED("LAPI_Waitcntr", "a null counter", LAPI_ERR_CNTR_NULL, LAPI_Waitcntr(hndl, NULL, 1, &value));
  REFUSED("LAPI_Nopoll_wait", "a null counter", LAPI_ERR_CNTR_NULL, LAPI_Nopoll_wait(hndl, NULL, 1, &value));
  REFUSED("LAPI_Nopoll_wait", "value 0", LAPI_ERR_CNTR_VAL, LAPI_Nopoll_wait(hndl, &counter, 0, &value));
  REFUSED("LAPI_Nopoll_wait", "value -1", LAPI_ERR_CNTR_VAL, LAPI_Nopoll_wait(hndl, &counter, -1, &value));
  REFUSED("LAPI_Msgpoll", "a null result", LAPI_ERR_MSG_INFO_NULL, LAPI_Msgpoll(hndl, 1, NULL));
  REFUSED("LAPI_Purge_totask", "a task equal to the number of tasks", LAPI_ERR_TGT,
          LAPI_Purge_totask(hndl, (uint)nproc));
  REFUSED("LAPI_Purge_totask", "task -1", LAPI_ERR_TGT, LAPI_Purge_totask(hndl, (uint)-1));
  REFUSED("LAPI_Resume_totask", "a task equal to the number of tasks", LAPI_ERR_TGT,
          LAPI_Resume_totask(hndl, (uint)nproc));
  REFUSED("LAPI_Resume_totask", "task -1", LAPI_ERR_TGT, LAPI_Resume_totask(hndl, (uint)-1));
  REFUSED("LAPI_Resume_totask", "a task that was not purged", LAPI_SUCCESS, LAPI_Resume_totask(hndl, (uint)right));
}

static int fixed_settings(void)
{
  for (int query = -1; query < LAST_QUERY + 3; query++)
    if (query != ERROR_CHK && query != TIMEOUT && query != INTERRUPT_SET && query != ACK_THRESHOLD) {
      const int rc = LAPI_Senv(hndl, (lapi_query_t)query, 1);
      if (rc != LAPI_ERR_QUERY_TYPE)
        return rc;
    }
  return LAPI_ERR_QUERY_TYPE;
}

static void settings(void)
{
  rows_begin("Settings and transfers of no type");
  REFUSED("LAPI_Qenv", "query -1", LAPI_ERR_QUERY_TYPE, LAPI_Qenv(hndl, (lapi_query_t)-1, &value));
  REFUSED("LAPI_Qenv", "query LAST_QUERY", LAPI_ERR_QUERY_TYPE, LAPI_Qenv(hndl, LAST_QUERY, &value));
  REFUSED("LAPI_Qenv", "a null result", LAPI_ERR_RET_PTR_NULL, LAPI_Qenv(hndl, TASK_ID, NULL));
  REFUSED("LAPI_Qenv", "a null array for QUERY_SHM_TASKS", LAPI_ERR_RET_PTR_NULL,
          LAPI_Qenv(hndl, QUERY_SHM_TASKS, NULL));
  REFUSED("LAPI_Qenv", "a null structure for QUERY_STATISTICS", LAPI_ERR_RET_PTR_NULL,
          LAPI_Qenv(hndl, QUERY_STATISTICS, NULL));
  REFUSED("LAPI_Senv", "an unknown query, or one that cannot be set", LAPI_ERR_QUERY_TYPE, fixed_settings());
  REFUSED("LAPI_Senv", "ERROR_CHK 2", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, ERROR_CHK, 2));
  REFUSED("LAPI_Senv", "INTERRUPT_SET -1", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, INTERRUPT_SET, -1));
  REFUSED("LAPI_Senv", "TIMEOUT below MIN_TIMEOUT", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, TIMEOUT, 9));
  REFUSED("LAPI_Senv", "TIMEOUT above MAX_TIMEOUT", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, TIMEOUT, 86401));
  REFUSED("LAPI_Senv", "ACK_THRESHOLD 0", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, ACK_THRESHOLD, 0));
  REFUSED("LAPI_Senv", "ACK_THRESHOLD 31", LAPI_ERR_SET_VAL, LAPI_Senv(hndl, ACK_THRESHOLD, 31));
  REFUSED("LAPI_Xfer", "a null transfer", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, NULL));
  REFUSED("LAPI_Xfer", "type -1", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ (lapi_xfer_type_t)-1 }));
  REFUSED("LAPI_Xfer", "LAPI_DGSP_XFER", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ LAPI_DGSP_XFER }));
  REFUSED("LAPI_Xfer", "LAPI_RDMA_XFER", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ LAPI_RDMA_XFER }));
  REFUSED("LAPI_Xfer", "LAPI_AMX_XFER", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ LAPI_AMX_XFER }));
  REFUSED("LAPI_Xfer", "type LAPI_LAST_XFER", LAPI_ERR_XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ LAPI_LAST_XFER }));
  REFUSED("LAPI_Xfer", "type INT_MAX", LAPI_ERR_XFER_CMD,
          LAPI_Xfer(hndl, &(lapi_xfer_t){ (lapi_xfer_type_t)INT_MAX }));
}

/* If a call has several faults, the first in the documented order determines the code. */
static void order(void)
{
  const ulong huge = 0x8000000000000000ul;
  const uint to = (uint)right, none = (uint)nproc, long_header = MAX_UHDR + 1;
  rows_begin("The order of checks: where each is wrong, and all that follow");
#define AM_ORDER(what, code, h, to, hdr, uhdr_len) \
  REFUSED("LAPI_Amsend", what, code, LAPI_Amsend(h, to, hdr, NULL, uhdr_len, NULL, huge, NULL, SENDS))
  AM_ORDER("the handle", LAPI_ERR_HNDL_INVALID, 0, none, NULL, long_header);
  AM_ORDER("the task", LAPI_ERR_TGT, hndl, none, NULL, long_header);
  if (!LISTED)
    LAPI_OK(LAPI_Purge_totask(hndl, to));
  AM_ORDER("a purged task", LAPI_ERR_TGT_PURGED, hndl, to, NULL, long_header);
  if (!LISTED)
    LAPI_OK(LAPI_Resume_totask(hndl, to));
  AM_ORDER("the header handler", LAPI_ERR_HDR_HNDLR_NULL, hndl, to, NULL, long_header);
  AM_ORDER("the length of the header", LAPI_ERR_UHDR_LEN, hndl, to, handler, long_header);
  AM_ORDER("the header", LAPI_ERR_UHDR_NULL, hndl, to, handler, 8);
  AM_ORDER("the length of the data", LAPI_ERR_DATA_LEN, hndl, to, handler, 0);
  REFUSED("LAPI_Put", "the task", LAPI_ERR_TGT, LAPI_Put(hndl, none, huge, NULL, NULL, NULL, SENDS));
  REFUSED("LAPI_Put", "the length", LAPI_ERR_DATA_LEN, LAPI_Put(hndl, to, huge, NULL, NULL, NULL, SENDS));
  REFUSED("LAPI_Put", "the target address", LAPI_ERR_TGT_ADDR_NULL, LAPI_Put(hndl, to, 8, NULL, NULL, NULL, SENDS));
  REFUSED("LAPI_Put", "the origin address", LAPI_ERR_ORG_ADDR_NULL, LAPI_Put(hndl, to, 8, there, NULL, NULL, SENDS));
}

/* A strided vector describes billions of blocks in four words. Runs the call under a limit on the
 * address space. */
static int with_little_memory(int (*run)(void), struct vector *v)
{
  struct rlimit was, less;
  int rc;
  good_input();
  strided(v, v->info[0], 0, 0, UINT_MAX);
  CHECK_EQ(getrlimit(RLIMIT_AS, &was), 0);
  less = was;
  less.rlim_cur = (rlim_t)48 << 30;
  CHECK_EQ(setrlimit(RLIMIT_AS, &less), 0);
  rc = run();
  CHECK_EQ(setrlimit(RLIMIT_AS, &was), 0);
  return rc;
}

static void little_memory(void)
{
  rows_begin("Too little memory");
  REFUSED("LAPI_Putv", "a strided target vector of UINT_MAX blocks", LAPI_ERR_MEMORY_EXHAUSTED,
          with_little_memory(run_Putv, &in.to));
  REFUSED("LAPI_Getv", "a strided target vector of UINT_MAX blocks", LAPI_ERR_MEMORY_EXHAUSTED,
          with_little_memory(run_Getv, &in.to));
  REFUSED("LAPI_Putv", "a strided origin vector of UINT_MAX blocks", LAPI_ERR_MEMORY_EXHAUSTED,
          with_little_memory(run_Putv, &in.from));
  REFUSED("LAPI_Amsendv", "a strided origin vector of UINT_MAX blocks", LAPI_ERR_MEMORY_EXHAUSTED,
          with_little_memory(run_Amsendv, &in.from));
}

/* ------------------------------------------------------------------ wrong state */

enum { WAITS = 7 };
static const char *waiting_names[WAITS] = { "LAPI_Fence", "LAPI_Gfence", "LAPI_Waitcntr", "LAPI_Address_init",
                                            "LAPI_Term", "LAPI_Nopoll_wait", "LAPI_Address_init64" };
static int waiting_code;

static int waiting_call(int which)
{
  lapi_cntr_t never = { 0 };
  switch (which) {
  case 0: return LAPI_Fence(hndl);
  case 1: return LAPI_Gfence(hndl);
  case 2: return LAPI_Waitcntr(hndl, &never, 1, NULL);
  case 3: return LAPI_Address_init(hndl, here, table);
  case 4: return LAPI_Term(hndl);
  case 6: return LAPI_Address_init64(hndl, 8, wide);
  default: return LAPI_Nopoll_wait(hndl, &never, 1, NULL);
  }
}

static void *waiting(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **user)
{
  long which;
  (void)h, (void)len, (void)msg_len, (void)comp_h, (void)user;
  memcpy(&which, uhdr, sizeof which);
  waiting_code = waiting_call((int)which);
  if (strstr(portolan_last_error(), waiting_names[which]) == NULL)
    waiting_code = -1;
  return NULL;
}

/* Returns the code of the call inside a header handler of this task. */
static int in_a_handler(long which)
{
  lapi_cntr_t done = { 0 };
  waiting_code = -1;
  LAPI_OK(LAPI_Amsend(hndl, (uint)me, (void *)waiting, &which, sizeof which, NULL, 0, NULL, NULL, &done));
  LAPI_WAIT(&done, 1);
  return waiting_code;
}

static lapi_cntr_t shared;
static volatile int others;

static void *other_waiter(void *code)
{
  others = 1;
  *(int *)code = LAPI_Nopoll_wait(hndl, &shared, 1, NULL);
  if (*(int *)code != LAPI_SUCCESS && strstr(portolan_last_error(), "LAPI_Nopoll_wait") == NULL)
    *(int *)code = -1;
  return NULL;
}

/* While another thread waits, returns the code of a second wait for the same counter or, if `purge`
 * is set, the code of the other thread's wait after a purge. */
static int beside_a_waiter(int purge)
{
  pthread_t thread;
  int theirs = -1, ours = -1;
  others = 0;
  lapi_zero(&shared);
  CHECK_EQ(pthread_create(&thread, NULL, other_waiter, &theirs), 0);
  while (!others)
    lapi_nap(1);
  lapi_nap(50);
  if (purge) {
    LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
  } else {
    ours = LAPI_Nopoll_wait(hndl, &shared, 1, NULL);
    LAPI_OK(LAPI_Setcntr(hndl, &shared, 1));
  }
  CHECK_EQ(pthread_join(thread, NULL), 0);
  if (purge) {
    LAPI_OK(LAPI_Resume_totask(hndl, (uint)right));
  } else {
    CHECK_EQ(theirs, LAPI_SUCCESS);
  }
  return purge ? theirs : ours;
}

static void wrong_state(void)
{
  rows_begin("Wrong state");
  REFUSED("LAPI_Init", "while there is a context", LAPI_ERR_ALL_HNDL_IN_USE, LAPI_Init(&given, &info));
  REFUSED("LAPI_Nopoll_wait", "a counter that another thread waits for", LAPI_ERR_MULTIPLE_WAITERS,
          beside_a_waiter(0));
  refusals_also = "";               /* the call ran on another thread, which checked its text */
  REFUSED("LAPI_Nopoll_wait", "a task is purged during the wait", LAPI_ERR_TGT_PURGED, beside_a_waiter(1));
  for (int i = 0; i < WAITS; i++)
    REFUSED(waiting_names[i], i == 2 || i == 5 ? "in a header handler, the counter below the value" : "in a header handler",
            LAPI_ERR_UNKNOWN, in_a_handler(i));
  refusals_also = NULL;
}

/* Calls that send to a purged task are refused, and work again after LAPI_Resume_totask. */
static void purged_and_back(void)
{
  lapi_cntr_t done = { 0 };
  good_input();
  for (int round = 0; round < 2; round++) {
    LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
    LAPI_CODE(run_Put(), LAPI_ERR_TGT_PURGED);
    LAPI_OK(LAPI_Fence(hndl));      /* does not wait for the purged task */
    LAPI_OK(LAPI_Resume_totask(hndl, (uint)right));
    LAPI_OK(LAPI_Amsend(hndl, (uint)right, handler, NULL, 0, here, 8, NULL, NULL, &done));
    LAPI_WAIT(&done, 1);
  }
}

/* Overlap is not a fault. */
static void legal(void)
{
  unsigned char bytes[16], want[16];
  rows_begin("No faults");
  if (!LISTED) {
    check_fill(bytes, 1, sizeof bytes);
    memcpy(want, bytes, sizeof want);
    memmove(want + 3, want, 12);
  }
  GIVES("LAPI_Put", "origin and target overlap, at one's own task", "`LAPI_SUCCESS`, as by memmove",
        LAPI_Put(hndl, (uint)me, 12, bytes + 3, bytes, NULL, NULL, NULL) == LAPI_SUCCESS &&
          LAPI_Fence(hndl) == LAPI_SUCCESS && memcmp(bytes, want, 16) == 0);
  if (!LISTED)
    memmove(want, want + 5, 11);
  GIVES("LAPI_Get", "origin and target overlap, at one's own task", "`LAPI_SUCCESS`, as by memmove",
        LAPI_Get(hndl, (uint)me, 11, bytes + 5, bytes, NULL, NULL) == LAPI_SUCCESS &&
          LAPI_Fence(hndl) == LAPI_SUCCESS && memcmp(bytes, want, 16) == 0);
  REFUSED("LAPI_Put", "no bytes, both addresses null", LAPI_SUCCESS,
          LAPI_Put(hndl, (uint)right, 0, NULL, NULL, NULL, NULL, NULL));
  REFUSED("LAPI_Get", "no bytes, both addresses null", LAPI_SUCCESS,
          LAPI_Get(hndl, (uint)right, 0, NULL, NULL, NULL, NULL));
}

/* ------------------------------------------------------------------------ main */

/* Returns the name of a code. Nested macros leave only its number in the outcome: "`(417)`". */
static const char *named(const char *outcome)
{
  static char name[LAPI_MAX_ERR_STRING + 3];
  int code;
  if (sscanf(outcome, "`(%d)`", &code) != 1)
    return outcome;
  snprintf(name, sizeof name, "`%s", lapi_text(code));
  name[strcspn(name, " ")] = '\0';
  return strcat(name, "`");
}

static void tables(void)
{
  if (LISTED)
    printf("# Bad input to lapi.h\n\n"
           "What each call does with arguments that are wrong. tests/c/lapi_invalid.c tests every line, and\n"
           "this page is what `lapi_invalid markdown` prints. A call that is refused sends nothing, changes\n"
           "nothing and counts on no counter. `LAPI_Msg_string` has the text of a code,\n"
           "`portolan_last_error()` that of the error, which goes to standard error too. It is the same\n"
           "whatever ERROR_CHK says.\n\n"
           "## Calls that send something\n\n");
  refusals_also = "LAPI_Xfer";
  calls_with_faults(calls, faults, good_input, "LAPI_");
  refusals_also = NULL;
  if (LISTED)
    printf("| before LAPI_Init, after LAPI_Term | all, and every call with a handle | `LAPI_ERR_HNDL_INVALID` |\n");
  if (!LISTED)
    LAPI_OK(LAPI_Resume_totask(hndl, (uint)right));
  bad_handles();
  starting();
  texts();
  addresses();
  counters();
  settings();
  utilities();
  others_that_send();
  order();
  little_memory();
  wrong_state();
  legal();
  if (LISTED)
    printf("\n## What ends the job\n\n"
           "An error at the target is reported to the error handler of `lapi_info_t`, with this code.\n\n"
           "| fault | code |\n|---|---|\n");
#define LIST_ABORT(name, fault, code, kind, run) \
  if (LISTED) printf("| %s | %s |\n", fault, outcome_listed("`" #code "`"));
  LAPI_ABORTS(LIST_ABORT)
}

static void stale(void) { LAPI_Addr_get(hndl, NULL, 0); }

int main(int argc, char **argv)
{
  refusals_outcome = named;
  if (refusals_listed(argc, argv)) {
    tables();
    return 0;
  }
  check_start_mpi("lapi_invalid", &argc, &argv);
  right = (me + 1) % nproc;
  refusals_stale = stale;
  check_fill(here, 3, ROOM);
  check_fill(mine, 7, ROOM);
  there = mine;
  word_there = &word;
  handler = (void *)header;
  vector_handler = (void *)vector_header;
  watch("the origin's memory", here, ROOM);
  watch("memory that others name", mine, ROOM);
  watch("the variable", &word, sizeof word);
  watch("the answer", &answer, sizeof answer);
  watch("the counter", &counter, sizeof counter);
  watch("a result", &value, sizeof value);
  watch("a handle", &given, sizeof given);
  watch("an address", &address, sizeof address);
  watch("a number", &number, sizeof number);
  watch("a group", &group, sizeof group);
  watch("the headers that came", &headers, sizeof headers);
  refusals_also = "LAPI_Xfer";
  outside();
  starting();
  texts();

  LAPI_OK(LAPI_Init(&hndl, &info));
  void **all = lapi_exchange(mine), **words = lapi_exchange(&word);
  void **handlers = lapi_exchange((void *)header), **vector_handlers = lapi_exchange((void *)vector_header);
  there = all[right];
  word_there = words[right];
  handler = handlers[right];
  vector_handler = vector_handlers[right];
  calls_work(calls, good_input);
  LAPI_WAIT(&counter, COUNTS);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, 4);
  for (int check = 0; check < 2; check++) {       /* once with checks off, once with checks on */
    LAPI_OK(LAPI_Senv(hndl, ERROR_CHK, check));
    LAPI_OK(LAPI_Gfence(hndl));
    tables();
    LAPI_OK(LAPI_Gfence(hndl));
    watch_ends("any call", "any fault");
    LAPI_OK(LAPI_Gfence(hndl));
  }
  purged_and_back();
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, 4 + 2);
  LAPI_OK(LAPI_Term(hndl));
  refusals_also = "LAPI_Xfer";
  outside();
  texts();
  const lapi_handle_t first = hndl;
  LAPI_OK(LAPI_Init(&hndl, &info));               /* a second life */
  CHECK(hndl != first, "a handle was used twice");
  LAPI_CODE(LAPI_Gfence(first), LAPI_ERR_HNDL_INVALID);
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Term(hndl));
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", refusals);
  return check_end_mpi();
}
