/*
 * lapi_invalid.c - bad input to every call of lapi.h (bad_input.h).
 *
 *   lapi_invalid            each call with each fault of its arguments, before, during and after a
 *                           context's life, with ERROR_CHK off and on
 *   lapi_invalid page       prints the tables of docs/errors-lapi.md; needs no launcher
 *   lapi_invalid calls      prints the calls that have a row
 *
 * A refused call sends nothing and increments no counter. Errors at the target end the job;
 * lapi_errors.c tests those.
 */
// TEST: lapi lapi-moving
// TEST: faults
#define _GNU_SOURCE
#include "lapi_check.h"
#include "bad_input.h"
#include "lapi_aborts.h"

#include <pthread.h>
#include <sys/resource.h>

enum { ROOM = 256, MAX_UHDR = 2000, COUNTS = 23 };  /* COUNTS: of all calls with good input */

static unsigned char here[ROOM], mine[ROOM];    /* memory of the origin and of the target */
static unsigned char sink[64];
static long long word;                          /* for read-modify-write */
static lapi_cntr_t counter, idle;               /* counts completed sends; is 0 */
static unsigned char *there;                    /* of the right task, with its `word` and handlers */
static void *word_there, *handler, *vector_handler, *table[64], *address = here;
static int right, headers, value = 77;
static uint member;
static long long operands[2] = { 1, 2 }, answer = 77;
static ulong number = 77;
static lapi_long_t wide[64];
static lapi_msg_info_t state;
static lapi_handle_t given = 12345;
static lapi_info_t info;
static lapi_util_t util;
static lapi_group_t group = 77, all;            /* `all` has one member: the right task */

static void *header(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **user)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)user;
  headers++;
  return sink;
}

static lapi_vec_t *vector_header(lapi_handle_t *h, void *uhdr, uint *len, ulong *lengths,
                                 compl_hndlr_t **comp_h, void **user)
{
  static void *at[2] = { sink, sink + 8 };
  static ulong len_of[2] = { 8, 8 };
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 2, at, len_of };
  (void)h, (void)uhdr, (void)len, (void)lengths, (void)comp_h, (void)user;
  headers++;
  return &v;
}

/* ------------------------------------------------------------------- arguments */

#define CODE_OF(code) LAPI_ERR_##code, "`LAPI_ERR_" #code "`"
#define F(name, code, ...) BAD_FAULT(ALL_RANKS, name, CODE_OF(code), __VA_ARGS__)
#define NULL_IS(code) F("null", code, good = NULL)

ARG(lapi_handle_t, h, "handle",
    F("0", HNDL_INVALID, good = 0) F("that was never given", HNDL_INVALID, good++)
    F("UINT_MAX", HNDL_INVALID, good = UINT_MAX))
ARG(uint, task, "task",
    F("the number of tasks", TGT, good = (uint)nproc) F("-1", TGT, good = (uint)-1)
    F("INT_MIN", TGT, good = 0x80000000u))
ARG(uint, target, "task to send to", F("that was purged", TGT_PURGED, LAPI_Purge_totask(hndl, good)))
ARG(void *, hdr_hdl, "header handler", NULL_IS(HDR_HNDLR_NULL))
ARG(uint, uhdr_len, "length of the user header",
    F("above MAX_UHDR_SZ", UHDR_LEN, good = MAX_UHDR + 8) F("UINT_MAX - 7", UHDR_LEN, good = UINT_MAX - 7))
ARG(void *, uhdr, "user header", NULL_IS(UHDR_NULL))
ARG(ulong, len, "length",
    F("above LAPI_MAX_MSG_SZ", DATA_LEN, good = 0x8000000000000000ul) F("-1", DATA_LEN, good = ULONG_MAX))
ARG(lapi_long_t, handler_index, "index of a header handler",
    F("0", HDR_HNDLR_NULL, good = 0) F("not set at this task", NO_HNDLR_SET, good = 3)
    F("an address", NO_HNDLR_SET, good = (lapi_long_t)handler))
ARG(uint, light_head, "length of a light header", F("UINT_MAX", LW_DATA_LEN, good = UINT_MAX))
ARG(ulong, light_data, "length of light data",
    F("121, and 8 of the header", LW_DATA_LEN, good = 121) F("ULONG_MAX", LW_DATA_LEN, good = ULONG_MAX))
ARG(void *, tgt_addr, "target address", NULL_IS(TGT_ADDR_NULL))
ARG(void *, org_addr, "origin address", NULL_IS(ORG_ADDR_NULL))
ARG(RMW_ops_t, op, "operation", F("4", RMW_OP, good = (RMW_ops_t)4) F("-1", RMW_OP, good = (RMW_ops_t)-1))
ARG(uint, size, "size", F("16", OP_SZ, good = 16) F("0", OP_SZ, good = 0) F("128", OP_SZ, good = 128))
ARG(void *, variable, "variable", NULL_IS(TGT_VAR_NULL))
ARG(void *, operand, "operand", NULL_IS(IN_VAL_NULL))

static void strided(lapi_vec_t *v, void *base, ulong block, ulong stride, uint n)
{
  v->vec_type = LAPI_GEN_STRIDED_XFER;
  v->num_vecs = n;
  v->info[0] = base;
  v->info[1] = (void *)block;
  v->info[2] = (void *)stride;
}

#define VECTOR(function, name, side)                                                               \
  ARG(lapi_vec_t *, function, name,                                                                \
      NULL_IS(side##_VEC_NULL)                                                                     \
      F("of unknown type", side##_VEC_TYPE, good->vec_type = (lapi_vectype_t)3)                    \
      F("of type -1", side##_VEC_TYPE, good->vec_type = (lapi_vectype_t)-1)                        \
      F("with a null block", side##_VEC_ADDR, good->info[1] = NULL)                                \
      F("without addresses", side##_VEC_ADDR, good->info = NULL)                                   \
      F("without lengths", side##_VEC_ADDR, good->len = NULL)                                      \
      F("generic, without lengths", side##_VEC_ADDR, good->vec_type = LAPI_GEN_GENERIC, good->len = NULL) \
      F("longer than LAPI_MAX_MSG_SZ", side##_VEC_LEN, good->len[1] = LAPI_MAX_MSG_SZ)             \
      F("whose lengths overflow", side##_VEC_LEN, good->len[1] = ULONG_MAX)                        \
      F("strided, stride below block", side##_STRIDE, strided(good, good->info[0], 8, 7, 2))       \
      F("strided, leaves the address space", side##_EXTENT,                                        \
        strided(good, good->info[0], 8, 0x4000000000000000ul, 2))                                  \
      F("strided, a block above LAPI_MAX_MSG_SZ", side##_EXTENT,                                   \
        strided(good, good->info[0], 0x8000000000000000ul, 0x8000000000000000ul, 1))               \
      F("strided, a null base", STRIDE_##side##_VEC_ADDR_NULL, strided(good, NULL, 8, 16, 2))      \
      F("strided, without base, block and stride", STRIDE_##side##_VEC_ADDR_NULL,                  \
        strided(good, good->info[0], 8, 16, 2), good->info = NULL))
VECTOR(tgt_vec, "target vector", TGT)
VECTOR(org_vec, "origin vector", ORG)
ARG(lapi_vec_t *, like, "origin vector of a put or get",
    F("of another type than the target's", VEC_TYPE_DIFF, strided(good, good->info[0], 8, 16, 2))
    F("with fewer blocks", VEC_NUM_DIFF, good->num_vecs = 1) F("with more blocks", VEC_NUM_DIFF, good->num_vecs = 3)
    F("with a shorter block", VEC_LEN_DIFF, good->len[1] = 7)
    F("generic, with fewer bytes", VEC_LEN_DIFF, good->vec_type = LAPI_GEN_GENERIC, good->num_vecs = 1))

ARG(lapi_query_t, query, "query", F("-1", QUERY_TYPE, good = (lapi_query_t)-1) F("LAST_QUERY", QUERY_TYPE, good = LAST_QUERY))
ARG(int *, result, "place for the result", NULL_IS(RET_PTR_NULL))
ARG(int, table_index, "index",
    F("0", ADDR_HNDL_RANGE, good = 0) F("-1", ADDR_HNDL_RANGE, good = -1)
    F("LOC_ADDRTBL_SZ", ADDR_HNDL_RANGE, good = 128) F("INT_MAX", ADDR_HNDL_RANGE, good = INT_MAX)
    F("INT_MIN", ADDR_HNDL_RANGE, good = INT_MIN))
ARG(void **, place, "place for an address", NULL_IS(RET_PTR_NULL))
ARG(void *, addresses, "table of addresses", NULL_IS(ADDR_TBL_NULL))
ARG(void *, own, "address", NULL_IS(ORG_ADDR_NULL))
ARG(ulong *, as_number, "place for a number", NULL_IS(TGT_ADDR_NULL))
ARG(lapi_cntr_t *, cntr, "counter", NULL_IS(CNTR_NULL))
ARG(int, destinations, "number of destinations", F("-1", CNTR_VAL, good = -1))
ARG(int, waited_for, "value of LAPI_Nopoll_wait", F("0", CNTR_VAL, good = 0) F("-1", CNTR_VAL, good = -1))
ARG(lapi_msg_info_t *, message, "place for the state", NULL_IS(MSG_INFO_NULL))
ARG(lapi_util_t *, command, "command", NULL_IS(UTIL_CMD) F("-1", UTIL_CMD, good->Util_type = (lapi_util_type_t)-1))
ARG(uint, members, "number of members",
    F("0", TASK_NUM, good = 0) F("more than tasks", TASK_NUM, good = (uint)nproc + 1))
ARG(uint *, list, "list of members",
    NULL_IS(NULL_LIST) F("with the number of tasks", GRP_MEMBER, good[0] = (uint)nproc)
    F("with -1", GRP_MEMBER, good[0] = (uint)-1))
ARG(lapi_group_t *, new_group, "place for the group", NULL_IS(NULL_GRP))
ARG(lapi_group_t, old_group, "group", F("0", GRP, good = 0) F("that was never made", GRP, good = 4711))
ARG(void *, text, "place for a text", NULL_IS(RET_PTR_NULL))
ARG(lapi_handle_t *, new_handle, "place for the handle", NULL_IS(RET_PTR_NULL))
ARG(lapi_info_t *, start_info, "lapi_info_t",
    NULL_IS(INFO_NULL) F("with instance_no 17", INFO_NONZERO, good->instance_no = 17))

/* --------------------------------------- what calls make, use up, and return */

static lapi_vec_t *vector(unsigned char *base)
{
  static struct { lapi_vec_t v; void *info[3]; ulong len[3]; } all_vectors[2], *v;
  v = &all_vectors[base == here + 64];
  memset(v, 0, sizeof *v);
  for (int i = 0; i < 3; i++)
    v->info[i] = base + 8 * i, v->len[i] = 8;
  v->v = (lapi_vec_t){ LAPI_GEN_IOVECTOR, 2, v->info, v->len };
  return &v->v;
}

/* Each returns a static command, which the call reads at once. */
#define XFER(function, type, parameters, ...)                  \
  static lapi_xfer_t *function parameters                      \
  {                                                            \
    static lapi_xfer_t it, *const x = &it;                     \
    memset(x, 0, sizeof it);                                   \
    x->Xfer_type = type;                                       \
    __VA_ARGS__;                                               \
    return x;                                                  \
  }
XFER(put, LAPI_PUT_XFER, (uint tgt, ulong n, void *to, void *from),
     x->Put.tgt = tgt, x->Put.len = n, x->Put.tgt_addr = (lapi_long_t)to, x->Put.org_addr = from,
     x->Put.org_cntr = x->Put.cmpl_cntr = &counter)
XFER(get, LAPI_GET_XFER, (uint tgt, ulong n, void *from, void *to),
     x->Get.tgt = tgt, x->Get.len = n, x->Get.tgt_addr = (lapi_long_t)from, x->Get.org_addr = to,
     x->Get.org_cntr = &counter)
XFER(putv, LAPI_PUTV_XFER, (uint tgt, lapi_vec_t *to, lapi_vec_t *from),
     x->Putv.tgt = tgt, x->Putv.tgt_vec = to, x->Putv.org_vec = from, x->Putv.org_cntr = x->Putv.cmpl_cntr = &counter)
XFER(getv, LAPI_GETV_XFER, (uint tgt, lapi_vec_t *from, lapi_vec_t *to),
     x->Getv.tgt = tgt, x->Getv.tgt_vec = from, x->Getv.org_vec = to, x->Getv.org_cntr = &counter)
XFER(am, LAPI_AM_XFER, (uint tgt, void *f, void *head, uint head_len, void *data, ulong n),
     x->Am.tgt = tgt, x->Am.hdr_hdl = (lapi_long_t)f, x->Am.uhdr = head, x->Am.uhdr_len = head_len,
     x->Am.udata = data, x->Am.udata_len = n, x->Am.org_cntr = x->Am.cmpl_cntr = &counter)
XFER(amv, LAPI_AMV_XFER, (uint tgt, void *f, void *head, uint head_len, lapi_vec_t *from),
     x->Amv.tgt = tgt, x->Amv.hdr_hdl = (lapi_long_t)f, x->Amv.uhdr = head, x->Amv.uhdr_len = head_len,
     x->Amv.org_vec = from, x->Amv.org_cntr = x->Amv.cmpl_cntr = &counter)
XFER(rmw, LAPI_RMW_XFER, (RMW_ops_t what, uint tgt, void *var, void *in, uint bits),
     x->Rmw.op = what, x->Rmw.tgt = tgt, x->Rmw.tgt_var = (lapi_long_t)var, x->Rmw.in_val = in,
     x->Rmw.prev_tgt_val = &answer, x->Rmw.size = bits, x->Rmw.org_cntr = &counter)
XFER(multicast, LAPI_MC_XFER, (lapi_group_t to, void *f, void *head, uint head_len, void *data, ulong n),
     x->Mc.group = to, x->Mc.hdr_hdl = (lapi_long_t)f, x->Mc.uhdr = head, x->Mc.uhdr_len = head_len,
     x->Mc.udata = data, x->Mc.udata_len = n)

/* A light active message. Fields that the call does not read have any value. */
static lapi_xfer_t *light(uint tgt, lapi_long_t index, void *head, uint head_len, void *data, ulong n)
{
  lapi_xfer_t *x = am(tgt, NULL, head, head_len, data, n);
  x->Am.Xfer_type = LAPI_AM_LW_XFER;
  x->Am.hdr_hdl = index;
  x->Am.org_cntr = x->Am.cmpl_cntr = (lapi_cntr_t *)(void *)here;
  return x;
}

static lapi_info_t *no_info(void) { return memset(&info, 0, sizeof info); }
static lapi_util_t *no_util(void) { return util.Util_type = LAPI_GET_THREAD_FUNC, &util; }
static lapi_cntr_t *ready(void)     /* a counter that a wait sets back to 0 */
{
  if (bad_now == GOOD_CALL)
    LAPI_OK(LAPI_Setcntr(hndl, &idle, 1));
  return &idle;
}

static int silent(int rc) { return rc == LAPI_ERR_RET_PTR_NULL ? SILENT : rc; }
static int grouped(int rc) { return rc ? rc : LAPI_Group_free(hndl, group); }

/* ---------------------------------------------------------------------- tables */

#define TO target(task((uint)right))
#define AM hdr_hdl(handler), uhdr(here), uhdr_len(8)
#define AMV hdr_hdl(vector_handler), uhdr(here), uhdr_len(8), org_vec(vector(here + 64))
#define DATA org_addr(here + 32), len(16)
#define VECTORS tgt_vec(vector(there + 64)), like(org_vec(vector(here + 64)))

static void sending(void)
{
  CODE(LAPI_Put, h(hndl), TO, len(16), tgt_addr(there), org_addr(here + 32), NULL, &counter, &counter);
  CODE(LAPI_Get, h(hndl), TO, len(16), tgt_addr(there), org_addr(here + 32), NULL, &counter);
  CODE(LAPI_Putv, h(hndl), TO, VECTORS, NULL, &counter, &counter);
  CODE(LAPI_Getv, h(hndl), TO, VECTORS, NULL, &counter);
  CODE(LAPI_Amsend, h(hndl), TO, AM, DATA, NULL, &counter, &counter);
  CODE(LAPI_Amsendv, h(hndl), TO, AMV, NULL, &counter, &counter);
  CODE(LAPI_Rmw, h(hndl), op(SWAP), TO, variable(word_there), operand(operands), (int *)(void *)&answer, &counter);
  CODE(LAPI_Rmw64, h(hndl), op(SWAP), TO, variable(word_there), operand(operands), &answer, &counter);
#define X(name, ...) BAD_ROW("LAPI_Xfer (" name ")", NULL, (h(hndl), __VA_ARGS__), LAPI_Xfer(h(hndl), __VA_ARGS__))
  X("PUT", put(TO, len(16), tgt_addr(there), org_addr(here + 32)));
  X("GET", get(TO, len(16), tgt_addr(there), org_addr(here + 32)));
  X("PUTV", putv(TO, VECTORS));
  X("GETV", getv(TO, VECTORS));
  X("AM", am(TO, AM, DATA));
  X("AMV", amv(TO, AMV));
  X("RMW", rmw(op(SWAP), TO, variable(word_there), operand(operands), size(64)));
  X("AM_LW", light(TO, handler_index(2), uhdr(here), light_head(8), org_addr(here), light_data(8)));
  X("MC", multicast(old_group(all), hdr_hdl(handler), uhdr(here), uhdr_len(8), org_addr(here), len(8)));
  NO_FAULT(LAPI_Xfer);              /* the rows above, and cases */
}

static void others(void)
{
  CODE(LAPI_Qenv, h(hndl), query(TASK_ID), result(&value));
  CODE(LAPI_Senv, h(hndl), query(ERROR_CHK), 1);
  CODE(LAPI_Address_init, h(hndl), here, addresses(table));
  CODE(LAPI_Address_init64, h(hndl), 8, addresses(wide));
  CODE(LAPI_Addr_set, h(hndl), here, table_index(1));
  CODE(LAPI_Addr_get, h(hndl), place(&address), table_index(1));
  CODE(LAPI_Setcntr, h(hndl), cntr(&idle), 0);
  CODE(LAPI_Setcntr_wstatus, h(hndl), cntr(&idle), destinations(0), &member, &value);
  CODE(LAPI_Getcntr, h(hndl), cntr(&idle), result(&value));
  CODE(LAPI_Waitcntr, h(hndl), cntr(&idle), 0, &value);
  CODE(LAPI_Nopoll_wait, h(hndl), cntr(ready()), waited_for(1), &value);
  CODE(LAPI_Probe, h(hndl));
  CODE(LAPI_Msgpoll, h(hndl), 1, message(&state));
  CODE(LAPI_Fence, h(hndl));
  CODE(LAPI_Gfence, h(hndl));
  CODE(LAPI_Purge_totask, h(hndl), task((uint)right));
  CODE(LAPI_Resume_totask, h(hndl), task((uint)right));
  AS(grouped, LAPI_Group_create, h(hndl), members(1), list((uint[]){ 0 }), new_group(&group));
  CODE(LAPI_Group_free, h(hndl), old_group(all));
  CODE(LAPI_Util, h(hndl), command(no_util()));
}

static void alone(void)             /* calls that need no context */
{
  static char buffer[LAPI_MAX_ERR_STRING];
  AS(silent, LAPI_Msg_string, 0, text(buffer));
  CODE(LAPI_Address, own(here), as_number(&number));
  GIVES("LAPI_Msg_string", "an unknown code", "`LAPI_ERR_CODE_UNKNOWN`, and a text that names the number",
        LAPI_Msg_string(INT_MIN, buffer) == LAPI_ERR_CODE_UNKNOWN && strstr(buffer, "-2147483648") != NULL);
}

static void ending(void) { CODE(LAPI_Term, h(hndl)); }

/* ------------------------------------------------- faults of more than arguments */

#define C(call, fault, code, expression) BAD_CASE(call, fault, CODE_OF(code), expression)
#define LEGAL(call, what, expression) BAD_CASE(call, what, LAPI_SUCCESS, "`LAPI_SUCCESS`", expression)

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
    no_info();
    raw[i] = 0x77;
    refused = LAPI_Init(&given, &info);
    if (refused != LAPI_ERR_INFO_NONZERO)
      break;
  }
  return refused;
}

static void starting(void)
{
  CODE(LAPI_Init, new_handle(&given), start_info(no_info()));
  C("LAPI_Init", "any field that must be 0, or above what it may be", INFO_NONZERO, nonzero());
}

static int fixed_settings(void)
{
  for (int asked = -1; asked < LAST_QUERY + 3; asked++)
    if (asked != ERROR_CHK && asked != TIMEOUT && asked != INTERRUPT_SET && asked != ACK_THRESHOLD) {
      const int rc = LAPI_Senv(hndl, (lapi_query_t)asked, 1);
      if (rc != LAPI_ERR_QUERY_TYPE)
        return rc;
    }
  return LAPI_ERR_QUERY_TYPE;
}

/* Runs an unsupported LAPI_Util command; the error text must say what it would need. */
static int utility(int of, const char *needs)
{
  util.Util_type = (lapi_util_type_t)of;
  const int refused = LAPI_Util(hndl, &util);
  return strstr(portolan_last_error(), needs) ? refused : -1;
}

static int purged_member(void)
{
  LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
  return LAPI_Xfer(hndl, multicast(all, handler, NULL, 0, NULL, 0));
}

static int freed_twice(void)
{
  lapi_group_t made;
  LAPI_OK(LAPI_Group_create(hndl, 1, (uint[]){ 0 }, &made));
  LAPI_OK(LAPI_Group_free(hndl, made));
  return LAPI_Group_free(hndl, made);
}

static int sent_to_purged(void)
{
  LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
  return LAPI_Amsend(hndl, (uint)right, NULL, NULL, MAX_UHDR + 1, NULL, ULONG_MAX, NULL, NULL, NULL);
}

/* A strided vector describes billions of blocks in four words. Runs the call under a limit on the
 * address space. */
static int in_little_memory(int (*run)(lapi_vec_t *to, lapi_vec_t *from), int at_target)
{
  struct rlimit was, less;
  lapi_vec_t *to = vector(there + 64), *from = vector(here + 64);
  strided(at_target ? to : from, at_target ? (void *)(there + 64) : (void *)(here + 64), 0, 0, UINT_MAX);
  CHECK_EQ(getrlimit(RLIMIT_AS, &was), 0);
  less = was;
  less.rlim_cur = (rlim_t)48 << 30;
  CHECK_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const int rc = run(to, from);
  CHECK_EQ(setrlimit(RLIMIT_AS, &was), 0);
  return rc;
}

static int many_put(lapi_vec_t *to, lapi_vec_t *from) { return LAPI_Putv(hndl, (uint)right, to, from, NULL, NULL, NULL); }
static int many_got(lapi_vec_t *to, lapi_vec_t *from) { return LAPI_Getv(hndl, (uint)right, to, from, NULL, NULL); }
static int many_sent(lapi_vec_t *to, lapi_vec_t *from)
{
  (void)to;
  return LAPI_Amsendv(hndl, (uint)right, vector_handler, NULL, 0, from, NULL, NULL, NULL);
}

static int overlapped(void)         /* overlap is legal */
{
  unsigned char bytes[16], want[16];
  check_fill(bytes, 1, sizeof bytes);
  memcpy(want, bytes, sizeof want);
  memmove(want + 3, want, 12);
  LAPI_OK(LAPI_Put(hndl, (uint)me, 12, bytes + 3, bytes, NULL, NULL, NULL));
  LAPI_OK(LAPI_Fence(hndl));
  if (memcmp(bytes, want, 16) != 0)
    return 0;
  memmove(want, want + 5, 11);
  LAPI_OK(LAPI_Get(hndl, (uint)me, 11, bytes + 5, bytes, NULL, NULL));
  LAPI_OK(LAPI_Fence(hndl));
  return memcmp(bytes, want, 16) == 0;
}

static void cases(void)
{
  const ulong huge = 0x8000000000000000ul;
  const uint to = (uint)right, none = (uint)nproc, large = MAX_UHDR + 1;
  C("LAPI_Senv", "any query that cannot be set", QUERY_TYPE, fixed_settings());
#define SETS(setting, value) C("LAPI_Senv", #setting " " #value, SET_VAL, LAPI_Senv(hndl, setting, value))
  SETS(ERROR_CHK, 2);
  SETS(INTERRUPT_SET, -1);
  SETS(TIMEOUT, 9);
  SETS(TIMEOUT, 86401);
  SETS(ACK_THRESHOLD, 0);
  SETS(ACK_THRESHOLD, 31);
  C("LAPI_Qenv", "a null array for QUERY_SHM_TASKS", RET_PTR_NULL, LAPI_Qenv(hndl, QUERY_SHM_TASKS, NULL));
  C("LAPI_Qenv", "a null structure for QUERY_STATISTICS", RET_PTR_NULL, LAPI_Qenv(hndl, QUERY_STATISTICS, NULL));
  C("LAPI_Xfer", "a null transfer", XFER_CMD, LAPI_Xfer(hndl, NULL));
#define NO_TYPE(type) C("LAPI_Xfer", "type " #type, XFER_CMD, LAPI_Xfer(hndl, &(lapi_xfer_t){ (lapi_xfer_type_t)type }))
  NO_TYPE(-1);
  NO_TYPE(LAPI_DGSP_XFER);
  NO_TYPE(LAPI_RDMA_XFER);
  NO_TYPE(LAPI_AMX_XFER);
  NO_TYPE(LAPI_LAST_XFER);
  NO_TYPE(INT_MAX);
#define NOT_HERE(name, needs) C("LAPI_Util", #name, UTIL_CMD, utility(name, needs))
  NOT_HERE(LAPI_REGISTER_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_RESERVE_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_UNRESERVE_DGSP, "data gather/scatter programs");
  NOT_HERE(LAPI_REG_DDM_FUNC, "data gather/scatter programs");
  NOT_HERE(LAPI_DGSP_PACK, "data gather/scatter programs");
  NOT_HERE(LAPI_DGSP_UNPACK, "data gather/scatter programs");
  NOT_HERE(LAPI_ADD_UDP_DEST_PORT, "UDP");
  NOT_HERE(LAPI_REMOTE_RCXT, "remote direct memory access");
  NOT_HERE(LAPI_XLATE_ADDRESS, "remote direct memory access");
  NOT_HERE(LAPI_REGISTER_NOTIFICATION, "remote direct memory access");
  NOT_HERE(LAPI_TRIGGER_ADD, "triggers");
  NOT_HERE(LAPI_TRIGGER_REMOVE, "triggers");
  NOT_HERE(LAPI_ADD_UDP_DEST_EXT, "UDP");
  NOT_HERE(LAPI_STAT_SAVE, "statistics");
  NOT_HERE(LAPI_LAST_UTIL, "15");
  C("LAPI_Group_free", "a group that was freed", GRP, freed_twice());
  if (bad_mode == LISTING || nproc > 1)
    C("LAPI_Group_create", "a member twice", GRP_MEMBER, LAPI_Group_create(hndl, 2, (uint[]){ 0, 0 }, &group));
  GIVES("LAPI_Address_init", "a null table at one task", "`LAPI_ERR_ADDR_TBL_NULL` there, `LAPI_SUCCESS` at the others",
        LAPI_Address_init(hndl, here, me == 0 ? NULL : table) == (me == 0 ? LAPI_ERR_ADDR_TBL_NULL : LAPI_SUCCESS));
  C("LAPI_Xfer (MC)", "a member that was purged", TGT_PURGED, purged_member());
  /* If a call has several faults, the first in the documented order determines the code. */
#define AM_ALL(what, code, ...) C("LAPI_Amsend", what " is wrong, and all that follow", code, LAPI_Amsend(__VA_ARGS__))
  AM_ALL("the handle", HNDL_INVALID, 0, none, NULL, NULL, large, NULL, huge, NULL, NULL, NULL);
  AM_ALL("the task", TGT, hndl, none, NULL, NULL, large, NULL, huge, NULL, NULL, NULL);
  C("LAPI_Amsend", "a purged task, and all that follow", TGT_PURGED, sent_to_purged());
  AM_ALL("the header handler", HDR_HNDLR_NULL, hndl, to, NULL, NULL, large, NULL, huge, NULL, NULL, NULL);
  AM_ALL("the length of the header", UHDR_LEN, hndl, to, handler, NULL, large, NULL, huge, NULL, NULL, NULL);
  AM_ALL("the header", UHDR_NULL, hndl, to, handler, NULL, 8, NULL, huge, NULL, NULL, NULL);
  AM_ALL("the length of the data", DATA_LEN, hndl, to, handler, NULL, 0, NULL, huge, NULL, NULL, NULL);
#define PUT_ALL(what, code, ...) C("LAPI_Put", what " is wrong, and all that follow", code, LAPI_Put(__VA_ARGS__))
  PUT_ALL("the task", TGT, hndl, none, huge, NULL, NULL, NULL, NULL, NULL);
  PUT_ALL("the length", DATA_LEN, hndl, to, huge, NULL, NULL, NULL, NULL, NULL);
  PUT_ALL("the target address", TGT_ADDR_NULL, hndl, to, 8, NULL, NULL, NULL, NULL, NULL);
  C("LAPI_Putv", "a strided target vector of UINT_MAX blocks", MEMORY_EXHAUSTED, in_little_memory(many_put, 1));
  C("LAPI_Getv", "a strided target vector of UINT_MAX blocks", MEMORY_EXHAUSTED, in_little_memory(many_got, 1));
  C("LAPI_Putv", "a strided origin vector of UINT_MAX blocks", MEMORY_EXHAUSTED, in_little_memory(many_put, 0));
  C("LAPI_Amsendv", "a strided origin vector of UINT_MAX blocks", MEMORY_EXHAUSTED, in_little_memory(many_sent, 0));
  GIVES("LAPI_Put, LAPI_Get", "overlap at one's own task", "`LAPI_SUCCESS`, as by memmove", overlapped());
  LEGAL("LAPI_Resume_totask", "a task that was not purged", LAPI_Resume_totask(hndl, to));
  LEGAL("LAPI_Put", "no bytes, both addresses null", LAPI_Put(hndl, to, 0, NULL, NULL, NULL, NULL, NULL));
  LEGAL("LAPI_Get", "no bytes, both addresses null", LAPI_Get(hndl, to, 0, NULL, NULL, NULL, NULL));
}

/* ------------------------------------------------------------------ wrong state */

static int waiting_code;

static void *waiting(lapi_handle_t *handle, void *head, uint *head_len, ulong *msg_len, compl_hndlr_t **comp_h,
                     void **user)
{
  lapi_cntr_t never = { 0 };
  long which;
  (void)handle, (void)head_len, (void)msg_len, (void)comp_h, (void)user;
  memcpy(&which, head, sizeof which);
  switch (which) {
  case 0: waiting_code = LAPI_Fence(hndl); break;
  case 1: waiting_code = LAPI_Gfence(hndl); break;
  case 2: waiting_code = LAPI_Waitcntr(hndl, &never, 1, NULL); break;
  case 3: waiting_code = LAPI_Address_init(hndl, here, table); break;
  case 4: waiting_code = LAPI_Term(hndl); break;
  case 5: waiting_code = LAPI_Nopoll_wait(hndl, &never, 1, NULL); break;
  default: waiting_code = LAPI_Address_init64(hndl, 8, wide);
  }
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
static volatile int waits;

static void *other_waiter(void *code)
{
  waits = 1;
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
  waits = 0;
  lapi_zero(&shared);
  CHECK_EQ(pthread_create(&thread, NULL, other_waiter, &theirs), 0);
  while (!waits)
    sched_yield();
  check_nap(50);
  if (purge) {
    LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
  } else {
    ours = LAPI_Nopoll_wait(hndl, &shared, 1, NULL);
    LAPI_OK(LAPI_Setcntr(hndl, &shared, 1));
  }
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK(purge || theirs == LAPI_SUCCESS, "the first wait: %d", theirs);
  return purge ? theirs : ours;
}

static void wrong_state(void)
{
  C("LAPI_Init", "while there is a context", ALL_HNDL_IN_USE, LAPI_Init(&given, no_info()));
  C("LAPI_Nopoll_wait", "a counter that another thread waits for", MULTIPLE_WAITERS, beside_a_waiter(0));
  GIVES("LAPI_Nopoll_wait", "a task is purged during the wait", "`LAPI_ERR_TGT_PURGED`",
        beside_a_waiter(1) == LAPI_ERR_TGT_PURGED);
  C("LAPI_Fence", "in a header handler", UNKNOWN, in_a_handler(0));
  C("LAPI_Gfence", "in a header handler", UNKNOWN, in_a_handler(1));
  C("LAPI_Waitcntr", "in a header handler, the counter below the value", UNKNOWN, in_a_handler(2));
  C("LAPI_Address_init", "in a header handler", UNKNOWN, in_a_handler(3));
  C("LAPI_Term", "in a header handler", UNKNOWN, in_a_handler(4));
  C("LAPI_Nopoll_wait", "in a header handler, the counter below the value", UNKNOWN, in_a_handler(5));
  C("LAPI_Address_init64", "in a header handler", UNKNOWN, in_a_handler(6));
}

static void at_the_target(void)     /* listed here, tested by lapi_errors.c */
{
#define LIST_ABORT(name, fault, code, kind, run) BAD_CASE("at the target", fault, code, "the job ends with `" #code "`", 0);
  LAPI_ABORTS(LIST_ABORT)
}

/* Calls that send to a purged task are refused, and work again after LAPI_Resume_totask. */
static void purged_and_back(void)
{
  lapi_cntr_t done = { 0 };
  for (int round = 0; round < 2; round++) {
    LAPI_OK(LAPI_Purge_totask(hndl, (uint)right));
    LAPI_CODE(LAPI_Put(hndl, (uint)right, 8, there, here, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_OK(LAPI_Fence(hndl));      /* does not wait for the purged task */
    LAPI_OK(LAPI_Resume_totask(hndl, (uint)right));
    LAPI_OK(LAPI_Amsend(hndl, (uint)right, handler, NULL, 0, here, 8, NULL, NULL, &done));
    LAPI_WAIT(&done, 1);
  }
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = { sending, others, alone, ending, starting, cases, wrong_state, at_the_target, NULL };

static void stale(void) { LAPI_Addr_get(hndl, NULL, 0); }
static void after(void) { LAPI_Resume_totask(hndl, (uint)right); } /* fails without a context */
static const char *also(const char *call) { return strncmp(call, "LAPI_Xfer", 9) == 0 ? "LAPI_Xfer" : NULL; }

/* Without a context, before LAPI_Init or after LAPI_Term, every handle is invalid. */
static void outside_its_life(void)
{
  const lapi_handle_t was = hndl, never[] = { 0, 1, UINT_MAX, was };
  for (int i = 0; i < 4; i++) {
    hndl = never[i];
    bad_input(sending, NO_RUNTIME);
    bad_input(others, NO_RUNTIME);
    bad_input(ending, NO_RUNTIME);
  }
  bad_input(alone, FAULTS);
}

int main(int argc, char **argv)
{
  int size = 0;
  if (bad_list(argc, argv, tables))
    return 0;
  check_start_mpi("lapi_invalid", &argc, &argv);
  right = (me + 1) % nproc;
  bad_stale = stale;
  bad_after = after;
  bad_also = also;
  bad_no_runtime =
    (struct bad_fault){ NULL, "no context", "`LAPI_ERR_HNDL_INVALID`", LAPI_ERR_HNDL_INVALID, ALL_RANKS };
  there = mine;
  word_there = &word;
  handler = (void *)header;
  vector_handler = (void *)vector_header;
  outside_its_life();
  bad_input(starting, FAULTS);

  LAPI_OK(LAPI_Init(&hndl, no_info()));
  LAPI_OK(LAPI_Qenv(hndl, LOC_ADDRTBL_SZ, &size));
  CHECK_EQ(size, 128);
  void **bytes = lapi_exchange(mine), **words = lapi_exchange(&word);
  void **handlers = lapi_exchange((void *)header), **vector_handlers = lapi_exchange((void *)vector_header);
  there = bytes[right];
  word_there = words[right];
  handler = handlers[right];
  vector_handler = vector_handlers[right];
  LAPI_OK(LAPI_Group_create(hndl, 1, (uint[]){ (uint)right }, &all));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 2));
  LAPI_OK(LAPI_Gfence(hndl));
  bad_input(sending, GOOD_CALLS);
  LAPI_WAIT(&counter, COUNTS);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, 6);
  bad_input(others, GOOD_CALLS);
  bad_input(alone, GOOD_CALLS);
  LAPI_OK(LAPI_Group_create(hndl, 1, (uint[]){ (uint)right }, &all));
  check_fill(here, 3, ROOM);
  check_fill(mine, 7, ROOM);
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
  for (int check = 0; check < 2; check++) {       /* once with checks off, once with checks on */
    LAPI_OK(LAPI_Senv(hndl, ERROR_CHK, check));
    LAPI_OK(LAPI_Gfence(hndl));
    for (int i = 0; tables[i] != at_the_target; i++)
      if (tables[i] != starting)
        bad_input(tables[i], FAULTS);
    LAPI_OK(LAPI_Gfence(hndl));
  }
  CHECK_EQ(headers, 6);
  LAPI_OK(LAPI_Gfence(hndl));
  bad_watches = 0;
  purged_and_back();
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, 6 + 2);
  LAPI_OK(LAPI_Term(hndl));
  outside_its_life();
  const lapi_handle_t first = hndl;
  LAPI_OK(LAPI_Init(&hndl, no_info()));           /* a second life */
  CHECK(hndl != first, "a handle was used twice");
  LAPI_CODE(LAPI_Gfence(first), LAPI_ERR_HNDL_INVALID);
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Term(hndl));
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", bad_refused);
  return check_end_mpi();
}
