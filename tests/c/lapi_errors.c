/*
 * Bad input. Without an argument: every call gives its code, in the documented order
 * of checks, and does nothing. With the name of a case: what goes wrong at the target
 * is told to the error handler and ends the job; "EXPECT-ABORT <case>" is printed
 * before it. "list" prints the names of the cases.
 */
#include "lapi_check.h"

static char bytes[4096];
static lapi_cntr_t counter;
static int headers;

static void *header(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)info;
  headers++;
  return NULL;
}

/* ------------------------------------------------------------------- codes */

static void starting(void)
{
  lapi_info_t info;
  lapi_handle_t other = 12345;
  unsigned char *raw = (unsigned char *)&info;

  memset(&info, 0, sizeof info);
  LAPI_CODE(LAPI_Init(NULL, &info), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(LAPI_Init(&other, NULL), LAPI_ERR_INFO_NULL);
  for (size_t i = 0; i < sizeof info; i++) {
    if (i >= offsetof(lapi_info_t, err_hndlr) && i < offsetof(lapi_info_t, lapi_thread_attr))
      continue;
    memset(&info, 0, sizeof info);
    raw[i] = 0x77;
    LAPI_CODE(LAPI_Init(&other, &info), LAPI_ERR_INFO_NONZERO);
  }
  CHECK_EQ(other, 12345);
}

static void addresses(void)
{
  int size;
  void *address = bytes;
  ulong number;

  LAPI_OK(LAPI_Qenv(hndl, LOC_ADDRTBL_SZ, &size));
  CHECK(size > 1, "a table of %d", size);
  const int bad[] = { 0, -1, size, size + 1, 1 << 30, -(1 << 30) };
  for (int i = 0; i < 6; i++) {
    LAPI_CODE(LAPI_Addr_set(hndl, bytes, bad[i]), LAPI_ERR_ADDR_HNDL_RANGE);
    LAPI_CODE(LAPI_Addr_get(hndl, &address, bad[i]), LAPI_ERR_ADDR_HNDL_RANGE);
  }
  CHECK(address == bytes, "an output changed");
  LAPI_CODE(LAPI_Addr_get(hndl, NULL, 1), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(LAPI_Address_init(hndl, bytes, NULL), LAPI_ERR_ADDR_TBL_NULL);
  LAPI_CODE(LAPI_Address(NULL, &number), LAPI_ERR_ORG_ADDR_NULL);
  LAPI_CODE(LAPI_Address(bytes, NULL), LAPI_ERR_TGT_ADDR_NULL);
}

static void amsend(void *handler, uint max)
{
  const ulong huge = 0x8000000000000000ul;
  const uint to = (uint)(nproc - 1);

#define AM(to, h, uhdr, uhdr_len, data, len) \
  LAPI_Amsend(hndl, to, h, uhdr, uhdr_len, data, len, NULL, &counter, &counter)
  LAPI_CODE(AM((uint)nproc, handler, NULL, 0, NULL, 0), LAPI_ERR_TGT);
  LAPI_CODE(AM((uint)-1, handler, NULL, 0, NULL, 0), LAPI_ERR_TGT);
  LAPI_CODE(AM(to, NULL, NULL, 0, NULL, 0), LAPI_ERR_HDR_HNDLR_NULL);
  LAPI_CODE(AM(to, handler, bytes, max + 8, NULL, 0), LAPI_ERR_UHDR_LEN);
  LAPI_CODE(AM(to, handler, bytes, 0xfffffff8u, NULL, 0), LAPI_ERR_UHDR_LEN);
  for (uint len = 1; len < 8; len++)
    LAPI_CODE(AM(to, handler, bytes, 8 + len, NULL, 0), LAPI_ERR_UHDR_LEN);
  LAPI_CODE(AM(to, handler, NULL, 8, NULL, 0), LAPI_ERR_UHDR_NULL);
  LAPI_CODE(AM(to, handler, NULL, 0, bytes, huge), LAPI_ERR_DATA_LEN);
  LAPI_CODE(AM(to, handler, NULL, 0, NULL, 1), LAPI_ERR_ORG_ADDR_NULL);
  /* In order, when everything is wrong at once. */
  LAPI_CODE(LAPI_Amsend(hndl + 1, (uint)nproc, NULL, NULL, max + 8, NULL, huge, NULL, NULL, NULL),
            LAPI_ERR_HNDL_INVALID);
  LAPI_CODE(AM((uint)nproc, NULL, NULL, max + 8, NULL, huge), LAPI_ERR_TGT);
  LAPI_OK(LAPI_Purge_totask(hndl, to));
  LAPI_CODE(AM(to, NULL, NULL, max + 8, NULL, huge), LAPI_ERR_TGT_PURGED);
  LAPI_OK(LAPI_Resume_totask(hndl, to));
  LAPI_CODE(AM(to, NULL, NULL, max + 8, NULL, huge), LAPI_ERR_HDR_HNDLR_NULL);
  LAPI_CODE(AM(to, handler, NULL, max + 8, NULL, huge), LAPI_ERR_UHDR_LEN);
  LAPI_CODE(AM(to, handler, NULL, 8, NULL, huge), LAPI_ERR_UHDR_NULL);
  LAPI_CODE(AM(to, handler, NULL, 0, NULL, huge), LAPI_ERR_DATA_LEN);
#undef AM
}

static void putget(void)
{
  const ulong huge = 0x8000000000000000ul;
  const uint to = (uint)(nproc - 1), none = (uint)nproc;

  LAPI_CODE(LAPI_Put(hndl, none, 8, bytes, bytes, NULL, NULL, NULL), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Get(hndl, none, 8, bytes, bytes, NULL, NULL), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Put(hndl, to, huge, bytes, bytes, NULL, NULL, NULL), LAPI_ERR_DATA_LEN);
  LAPI_CODE(LAPI_Get(hndl, to, huge, bytes, bytes, NULL, NULL), LAPI_ERR_DATA_LEN);
  LAPI_CODE(LAPI_Put(hndl, to, 8, NULL, bytes, NULL, NULL, NULL), LAPI_ERR_TGT_ADDR_NULL);
  LAPI_CODE(LAPI_Get(hndl, to, 8, NULL, bytes, NULL, NULL), LAPI_ERR_TGT_ADDR_NULL);
  LAPI_CODE(LAPI_Put(hndl, to, 8, bytes, NULL, NULL, NULL, NULL), LAPI_ERR_ORG_ADDR_NULL);
  LAPI_CODE(LAPI_Get(hndl, to, 8, bytes, NULL, NULL, NULL), LAPI_ERR_ORG_ADDR_NULL);
}

static void rmw(void)
{
  const uint to = (uint)(nproc - 1);
  static int var, in, prev = 5;
  static long long wide;
  lapi_xfer_t x;

  LAPI_CODE(LAPI_Rmw(hndl, SWAP, (uint)nproc, &var, &in, &prev, NULL), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Rmw(hndl, (RMW_ops_t)4, to, &var, &in, &prev, NULL), LAPI_ERR_RMW_OP);
  LAPI_CODE(LAPI_Rmw(hndl, SWAP, to, NULL, &in, &prev, NULL), LAPI_ERR_TGT_VAR_NULL);
  LAPI_CODE(LAPI_Rmw(hndl, SWAP, to, &var, NULL, &prev, NULL), LAPI_ERR_IN_VAL_NULL);
  LAPI_CODE(LAPI_Rmw64(hndl, SWAP, to, NULL, &wide, &wide, NULL), LAPI_ERR_TGT_VAR_NULL);
  LAPI_CODE(LAPI_Rmw64(hndl, SWAP, to, &wide, NULL, &wide, NULL), LAPI_ERR_IN_VAL_NULL);
  CHECK_EQ(prev, 5);
  memset(&x, 0, sizeof x);
  x.Rmw = (lapi_rmw_t){ LAPI_RMW_XFER, SWAP, to, 16, (lapi_long_t)&var, &in, &prev, NULL, NULL,
                        NULL };
  LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_OP_SZ);
  for (int type = 7; type < 14; type++) {
    x.Xfer_type = (lapi_xfer_type_t)type;
    LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_XFER_CMD);
  }
  x.Xfer_type = (lapi_xfer_type_t)-1;
  LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_XFER_CMD);
  LAPI_CODE(LAPI_Xfer(hndl, NULL), LAPI_ERR_XFER_CMD);
}

/* Codes of vectors: of the origin's and of the target's. */
static void vectors(void *handler)
{
  const uint to = (uint)(nproc - 1);
  void *good[2] = { bytes, bytes + 8 }, *holes[2] = { bytes, NULL };
  ulong len[2] = { 8, 8 }, less[2] = { 8, 7 }, huge[2] = { 8, 0x7fffffffffffffffl };
  void *stride[3] = { bytes, (void *)8, (void *)16 };
  void *narrow[3] = { bytes, (void *)8, (void *)7 };
  void *wide[3] = { bytes, (void *)8, (void *)0x4000000000000000l };
  void *nowhere[3] = { NULL, (void *)8, (void *)16 };
  void *other_block[3] = { bytes, (void *)4, (void *)16 };
  lapi_vec_t ok = { LAPI_GEN_IOVECTOR, 2, good, len };
  lapi_vec_t strided = { LAPI_GEN_STRIDED_XFER, 2, stride, NULL };
  lapi_vec_t block4 = { LAPI_GEN_STRIDED_XFER, 2, other_block, NULL };
  lapi_vec_t three = { LAPI_GEN_STRIDED_XFER, 3, stride, NULL };
  lapi_vec_t one = { LAPI_GEN_IOVECTOR, 1, good, len };
  lapi_vec_t shorter = { LAPI_GEN_IOVECTOR, 2, good, less };
  lapi_vec_t generic = { LAPI_GEN_GENERIC, 1, good, len };
  const struct { lapi_vec_t *vec, v; int org, tgt; } bad[] = {
    { NULL, { 0, 0, NULL, NULL }, LAPI_ERR_ORG_VEC_NULL, LAPI_ERR_TGT_VEC_NULL },
#define V(org_code, tgt_code, ...) { &ok, { __VA_ARGS__ }, org_code, tgt_code }
    V(LAPI_ERR_ORG_VEC_TYPE, LAPI_ERR_TGT_VEC_TYPE, (lapi_vectype_t)3, 2, good, len),
    V(LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_TGT_VEC_ADDR, LAPI_GEN_IOVECTOR, 2, holes, len),
    V(LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_TGT_VEC_ADDR, LAPI_GEN_IOVECTOR, 2, NULL, len),
    V(LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_TGT_VEC_ADDR, LAPI_GEN_GENERIC, 2, good, NULL),
    V(LAPI_ERR_ORG_VEC_LEN, LAPI_ERR_TGT_VEC_LEN, LAPI_GEN_IOVECTOR, 2, good, huge),
    V(LAPI_ERR_ORG_STRIDE, LAPI_ERR_TGT_STRIDE, LAPI_GEN_STRIDED_XFER, 2, narrow, NULL),
    V(LAPI_ERR_ORG_EXTENT, LAPI_ERR_TGT_EXTENT, LAPI_GEN_STRIDED_XFER, 2, wide, NULL),
    V(LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL,
      LAPI_GEN_STRIDED_XFER, 2, nowhere, NULL),
    V(LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL, LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL,
      LAPI_GEN_STRIDED_XFER, 2, NULL, NULL),
#undef V
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    lapi_vec_t v = bad[i].v, *vec = bad[i].vec ? &v : NULL;
    LAPI_CODE(LAPI_Putv(hndl, to, &ok, vec, NULL, &counter, &counter), bad[i].org);
    LAPI_CODE(LAPI_Putv(hndl, to, vec, &ok, NULL, &counter, &counter), bad[i].tgt);
    LAPI_CODE(LAPI_Getv(hndl, to, &ok, vec, NULL, &counter), bad[i].org);
    LAPI_CODE(LAPI_Getv(hndl, to, vec, &ok, NULL, &counter), bad[i].tgt);
    LAPI_CODE(LAPI_Amsendv(hndl, to, handler, NULL, 0, vec, NULL, &counter, &counter),
              bad[i].org);
  }
  LAPI_CODE(LAPI_Putv(hndl, to, &ok, &strided, NULL, NULL, NULL), LAPI_ERR_VEC_TYPE_DIFF);
  LAPI_CODE(LAPI_Putv(hndl, to, &ok, &one, NULL, NULL, NULL), LAPI_ERR_VEC_NUM_DIFF);
  LAPI_CODE(LAPI_Putv(hndl, to, &three, &strided, NULL, NULL, NULL), LAPI_ERR_VEC_NUM_DIFF);
  LAPI_CODE(LAPI_Putv(hndl, to, &ok, &shorter, NULL, NULL, NULL), LAPI_ERR_VEC_LEN_DIFF);
  LAPI_CODE(LAPI_Getv(hndl, to, &block4, &strided, NULL, NULL), LAPI_ERR_VEC_LEN_DIFF);
  LAPI_CODE(LAPI_Getv(hndl, to, &ok, &generic, NULL, NULL), LAPI_ERR_VEC_LEN_DIFF);
  LAPI_CODE(LAPI_Putv(hndl, (uint)nproc, &ok, &ok, NULL, NULL, NULL), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Getv(hndl, (uint)nproc, &ok, &ok, NULL, NULL), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Amsendv(hndl, (uint)nproc, handler, NULL, 0, &ok, NULL, NULL, NULL),
            LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Amsendv(hndl, to, NULL, NULL, 0, &ok, NULL, NULL, NULL),
            LAPI_ERR_HDR_HNDLR_NULL);
  LAPI_CODE(LAPI_Amsendv(hndl, to, handler, bytes, 12, &ok, NULL, NULL, NULL),
            LAPI_ERR_UHDR_LEN);
  LAPI_CODE(LAPI_Amsendv(hndl, to, handler, NULL, 16, &ok, NULL, NULL, NULL),
            LAPI_ERR_UHDR_NULL);
}

static void counters_and_settings(void)
{
  int value = 5;
  lapi_msg_info_t info;

  LAPI_CODE(LAPI_Getcntr(hndl, NULL, &value), LAPI_ERR_CNTR_NULL);
  LAPI_CODE(LAPI_Setcntr(hndl, NULL, 1), LAPI_ERR_CNTR_NULL);
  LAPI_CODE(LAPI_Waitcntr(hndl, NULL, 1, &value), LAPI_ERR_CNTR_NULL);
  LAPI_CODE(LAPI_Nopoll_wait(hndl, NULL, 1, &value), LAPI_ERR_CNTR_NULL);
  LAPI_CODE(LAPI_Getcntr(hndl, &counter, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(LAPI_Waitcntr(hndl, &counter, -1, &value), LAPI_ERR_CNTR_VAL);
  LAPI_CODE(LAPI_Nopoll_wait(hndl, &counter, 0, &value), LAPI_ERR_CNTR_VAL);
  LAPI_CODE(LAPI_Msgpoll(hndl, 1, NULL), LAPI_ERR_MSG_INFO_NULL);
  LAPI_CODE(LAPI_Qenv(hndl, (lapi_query_t)26, &value), LAPI_ERR_QUERY_TYPE);
  LAPI_CODE(LAPI_Qenv(hndl, (lapi_query_t)-1, &value), LAPI_ERR_QUERY_TYPE);
  LAPI_CODE(LAPI_Qenv(hndl, TASK_ID, NULL), LAPI_ERR_RET_PTR_NULL);
  for (int query = -1; query < 30; query++)
    if (query != ERROR_CHK && query != TIMEOUT && query != INTERRUPT_SET && query != ACK_THRESHOLD)
      LAPI_CODE(LAPI_Senv(hndl, (lapi_query_t)query, 1), LAPI_ERR_QUERY_TYPE);
  LAPI_CODE(LAPI_Senv(hndl, ERROR_CHK, 2), LAPI_ERR_SET_VAL);
  LAPI_CODE(LAPI_Senv(hndl, INTERRUPT_SET, -1), LAPI_ERR_SET_VAL);
  LAPI_CODE(LAPI_Senv(hndl, TIMEOUT, 9), LAPI_ERR_SET_VAL);
  LAPI_CODE(LAPI_Senv(hndl, TIMEOUT, 86401), LAPI_ERR_SET_VAL);
  LAPI_CODE(LAPI_Senv(hndl, ACK_THRESHOLD, 0), LAPI_ERR_SET_VAL);
  LAPI_CODE(LAPI_Senv(hndl, ACK_THRESHOLD, 31), LAPI_ERR_SET_VAL);
  CHECK_EQ(value, 5);
  (void)info;
}

static void purged(void *handler)
{
  const uint to = (uint)(nproc - 1);
  void *at[1] = { bytes };
  ulong len[1] = { 8 };
  lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, len };
  int in = 1;
  long long wide = 1;
  lapi_xfer_t x;

  LAPI_CODE(LAPI_Purge_totask(hndl, (uint)nproc), LAPI_ERR_TGT);
  LAPI_CODE(LAPI_Resume_totask(hndl, (uint)nproc), LAPI_ERR_TGT);
  LAPI_OK(LAPI_Resume_totask(hndl, to));          /* one too many does nothing */
  for (int round = 0; round < 2; round++) {
    LAPI_OK(LAPI_Purge_totask(hndl, to));
    LAPI_CODE(LAPI_Amsend(hndl, to, handler, NULL, 0, bytes, 8, NULL, &counter, &counter),
              LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Amsendv(hndl, to, handler, NULL, 0, &v, NULL, &counter, &counter),
              LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Put(hndl, to, 8, bytes, bytes, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Get(hndl, to, 8, bytes, bytes, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Putv(hndl, to, &v, &v, NULL, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Getv(hndl, to, &v, &v, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Rmw(hndl, SWAP, to, (int *)bytes, &in, NULL, NULL), LAPI_ERR_TGT_PURGED);
    LAPI_CODE(LAPI_Rmw64(hndl, SWAP, to, (long long *)bytes, &wide, NULL, NULL),
              LAPI_ERR_TGT_PURGED);
    memset(&x, 0, sizeof x);
    x.Am.Xfer_type = LAPI_AM_XFER;
    x.Am.tgt = to;
    x.Am.hdr_hdl = (lapi_long_t)handler;
    LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_TGT_PURGED);
    LAPI_OK(LAPI_Fence(hndl));      /* does not wait for a purged target */
    LAPI_OK(LAPI_Resume_totask(hndl, to));
    counter.cntr = 0;
    LAPI_OK(LAPI_Amsend(hndl, to, handler, NULL, 0, bytes, 8, NULL, NULL, &counter));
    LAPI_WAIT(&counter, 1);
  }
}

static void codes(void)
{
  lapi_info_t info;
  int max;

  starting();
  memset(&info, 0, sizeof info);
  LAPI_OK(LAPI_Init(&hndl, &info));
  const lapi_handle_t first = hndl;
  LAPI_CODE(LAPI_Init(&hndl, &info), LAPI_ERR_ALL_HNDL_IN_USE);
  CHECK_EQ(hndl, first);
  LAPI_OK(LAPI_Qenv(hndl, MAX_UHDR_SZ, &max));
  void **header_of = lapi_exchange((void *)header);
  void *handler = header_of[nproc - 1];

  for (int check = 0; check < 2; check++) {       /* the same with checks on and off */
    LAPI_OK(LAPI_Senv(hndl, ERROR_CHK, check));
    addresses();
    amsend(handler, (uint)max);
    putget();
    rmw();
    vectors(handler);
    counters_and_settings();
  }
  CHECK_EQ(counter.cntr, 0);        /* nothing was sent */
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, 0);
  LAPI_OK(LAPI_Gfence(hndl));
  purged(handler);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, me == nproc - 1 ? 2 * nproc : 0);
  free(header_of);
}

/* ------------------------------------------------------------------ aborts */

static int expected_code;
static lapi_err_t expected_kind = AM_ERR;

static void told(lapi_handle_t *h, int *code, lapi_err_t *kind, int *task, int *src)
{
  CHECK(*h == hndl, "the handle");
  CHECK_EQ(*code, expected_code);
  CHECK_EQ(*kind, expected_kind);
  CHECK_EQ(*task, me);
  CHECK_EQ(*src, 0);
  printf("TOLD %d\n", *code);
  check_linger();
}

static void *wrong(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                   compl_hndlr_t **comp_h, void **info)
{
  lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;

  (void)h, (void)len, (void)comp_h, (void)info;
  switch (*(long *)uhdr) {
  case 1:
    ri->ctl_flags = (lapi_ctl_flags_t)9;
    break;
  case 2:
    ri->dgsp_handle = bytes;
    break;
  case 3:                           /* a call that waits */
    expected_code = -1;
    if (LAPI_Gfence(hndl) == LAPI_SUCCESS || LAPI_Waitcntr(hndl, &counter, 1, NULL) == LAPI_SUCCESS)
      CHECK(0, "a header handler has waited");
    break;
  }
  return NULL;
}

static lapi_vec_t *wrong_vector(lapi_handle_t *h, void *uhdr, uint *len, ulong *len_vec,
                                compl_hndlr_t **comp_h, void **info)
{
  static void *at[1] = { bytes };
  static ulong lengths[1] = { 7 };
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, lengths };

  (void)h, (void)len, (void)len_vec, (void)comp_h, (void)info;
  return *(long *)uhdr == 1 ? NULL : &v;
}

static void send_wrong(long what, ulong length)
{
  static char data[1 << 20];
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)1, &what, 8, data, length, NULL, NULL,
                      &counter));
}

static void null_return(void) { send_wrong(0, 1 << 20); }
static void bad_flags(void) { send_wrong(1, 8); }
static void dgsp(void) { send_wrong(2, 8); }

static void no_index(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)9, NULL, 0, NULL, 0, NULL, NULL, &counter));
}

static void no_code(void)           /* an address of data */
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), bytes, NULL, 0, NULL, 0, NULL, NULL, &counter));
}

static void bad_counter(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)3, NULL, 0, NULL, 0, (lapi_cntr_t *)64,
                      NULL, &counter));
}

static void bad_rmw(void)
{
  int one = 1;
  LAPI_OK(LAPI_Rmw(hndl, SWAP, (uint)(nproc - 1), (int *)64, &one, NULL, &counter));
}

static void send_vector(long what)
{
  void *at[1] = { bytes };
  ulong len[1] = { 8 };
  lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, len };
  LAPI_OK(LAPI_Amsendv(hndl, (uint)(nproc - 1), (void *)2, &what, 8, &v, NULL, NULL, &counter));
}

static void null_vector(void) { send_vector(1); }
static void other_vector(void) { send_vector(2); }

static const struct { const char *name; void (*run)(void); int code; lapi_err_t kind; } cases[] = {
  { "null-return", null_return, LAPI_ERR_TGT_ADDR_NULL, AM_ERR },
  { "bad-flags", bad_flags, LAPI_ERR_UNKNOWN, AM_ERR },
  { "dgsp", dgsp, LAPI_ERR_UNKNOWN, AM_ERR },
  { "no-index", no_index, LAPI_ERR_HDR_HNDLR_NULL, AM_ERR },
  { "no-code", no_code, LAPI_ERR_HDR_HNDLR_NULL, AM_ERR },
  { "bad-counter", bad_counter, LAPI_ERR_TGT_ADDR_NULL, AM_ERR },
  { "bad-rmw", bad_rmw, LAPI_ERR_TGT_ADDR_NULL, RMW_ERR },
  { "null-vector", null_vector, LAPI_ERR_TGT_VEC_NULL, AM_ERR },
  { "other-vector", other_vector, LAPI_ERR_VEC_LEN_DIFF, AM_ERR },
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int abort_case(int which, int *argc, char ***argv)
{
  lapi_info_t info;

  check_start_mpi("lapi_errors", argc, argv);
  memset(&info, 0, sizeof info);
  info.err_hndlr = told;
  expected_code = cases[which].code;
  expected_kind = cases[which].kind;
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)wrong, 1));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)wrong_vector, 2));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 3));
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    printf("EXPECT-ABORT %s\n", cases[which].name);
    check_linger();
    cases[which].run();
    LAPI_OK(LAPI_Waitcntr(hndl, &counter, 1, NULL));
    CHECK(0, "%s was survived", cases[which].name);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK(0, "%s was passed", cases[which].name);
  return 0;
}

/* A header handler that waits gets an error instead, and the job goes on. */
static void waiting(void)
{
  long what = 3;
  lapi_cntr_t cmpl;

  lapi_zero(&cmpl);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)wrong, 1));
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)1, &what, 8, NULL, 0, NULL, NULL, &cmpl));
  LAPI_WAIT(&cmpl, 1);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(expected_code, me == nproc - 1 ? -1 : 0);
}

int main(int argc, char **argv)
{
  if (argc > 1) {
    for (int i = 0; i < CASES; i++) {
      if (strcmp(argv[1], "list") == 0)
        puts(cases[i].name);
      else if (strcmp(argv[1], cases[i].name) == 0)
        return abort_case(i, &argc, &argv);
    }
    if (strcmp(argv[1], "list") != 0)
      printf("FAIL lapi_errors: no such case\n");
    return 0;
  }
  check_start_mpi("lapi_errors", &argc, &argv);
  codes();
  waiting();
  return lapi_end();
}
