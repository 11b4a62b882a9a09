/*
 * lapi_invalid_calls.h - the calls of lapi.h that send, and the faults of their arguments: two
 * tables. lapi_invalid.c combines each call with each fault that applies to it.
 */
#ifndef LAPI_INVALID_CALLS_H
#define LAPI_INVALID_CALLS_H

enum { ROOM = 256, MAX_UHDR = 2000 };

static unsigned char here[ROOM], mine[ROOM];    /* memory of the origin and of the target */
static unsigned char sink[64];
static long long word;                          /* for read-modify-write */
static lapi_cntr_t counter;                     /* counts completed sends */
static unsigned char *there;                    /* addresses of `mine`, `word` and the handlers at
                                                 * the right task */
static void *word_there, *handler, *vector_handler;
static int right, headers;

static void *header(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                    void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)info;
  headers++;
  return sink;
}

static lapi_vec_t *vector_header(lapi_handle_t *h, void *uhdr, uint *len, ulong *lengths,
                                 compl_hndlr_t **comp_h, void **info)
{
  static void *at[2] = { sink, sink + 8 };
  static ulong len_of[2] = { 8, 8 };
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 2, at, len_of };
  (void)h, (void)uhdr, (void)len, (void)lengths, (void)comp_h, (void)info;
  headers++;
  return &v;
}

/* A vector and its arrays. */
struct vector {
  lapi_vec_t v, *given;
  void *info[3];
  ulong len[2];
};

/* The arguments of all calls: 16 bytes, as one block or as two. */
static struct {
  lapi_handle_t hndl;
  uint tgt, uhdr_len, size;
  int no_handler;
  void *uhdr, *org, *tgt_addr, *var, *in, *prev;
  ulong len;
  struct vector to, from;
  RMW_ops_t op;
} in;

static long long operands[2] = { 1, 2 }, answer = 77;

static void vector_of(struct vector *v, void *base)
{
  v->info[0] = base;
  v->info[1] = (char *)base + 8;
  v->len[0] = v->len[1] = 8;
  v->v.vec_type = LAPI_GEN_IOVECTOR;
  v->v.num_vecs = 2;
  v->v.info = v->info;
  v->v.len = v->len;
  v->given = &v->v;
}

static void good_input(void)
{
  memset(&in, 0, sizeof in);
  in.hndl = hndl;
  in.tgt = (uint)right;
  in.uhdr = here;
  in.uhdr_len = 8;
  in.org = here + 32;
  in.tgt_addr = there;
  in.len = 16;
  in.var = word_there;
  in.in = operands;
  in.prev = &answer;
  in.op = SWAP;
  in.size = 64;
  vector_of(&in.from, here + 64);
  vector_of(&in.to, there + 64);
  LAPI_Resume_totask(hndl, (uint)right);        /* fails without a context */
}

#define AM_HANDLER (in.no_handler ? NULL : handler)
#define AMV_HANDLER (in.no_handler ? NULL : vector_handler)

static int xfer(lapi_xfer_type_t type)
{
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Xfer_type = type;
  switch (type) {
  case LAPI_GET_XFER:
    x.Get.tgt = in.tgt, x.Get.tgt_addr = (lapi_long_t)in.tgt_addr, x.Get.org_addr = in.org;
    x.Get.len = in.len, x.Get.org_cntr = &counter;
    break;
  case LAPI_PUT_XFER:
    x.Put.tgt = in.tgt, x.Put.tgt_addr = (lapi_long_t)in.tgt_addr, x.Put.org_addr = in.org;
    x.Put.len = in.len, x.Put.org_cntr = x.Put.cmpl_cntr = &counter;
    break;
  case LAPI_GETV_XFER:
    x.Getv.tgt = in.tgt, x.Getv.org_vec = in.from.given, x.Getv.tgt_vec = in.to.given;
    x.Getv.org_cntr = &counter;
    break;
  case LAPI_PUTV_XFER:
    x.Putv.tgt = in.tgt, x.Putv.org_vec = in.from.given, x.Putv.tgt_vec = in.to.given;
    x.Putv.org_cntr = x.Putv.cmpl_cntr = &counter;
    break;
  case LAPI_AM_XFER:
    x.Am.tgt = in.tgt, x.Am.hdr_hdl = (lapi_long_t)AM_HANDLER, x.Am.uhdr = in.uhdr;
    x.Am.uhdr_len = in.uhdr_len, x.Am.udata = in.org, x.Am.udata_len = in.len;
    x.Am.org_cntr = x.Am.cmpl_cntr = &counter;
    break;
  case LAPI_AMV_XFER:
    x.Amv.tgt = in.tgt, x.Amv.hdr_hdl = (lapi_long_t)AMV_HANDLER, x.Amv.uhdr = in.uhdr;
    x.Amv.uhdr_len = in.uhdr_len, x.Amv.org_vec = in.from.given;
    x.Amv.org_cntr = x.Amv.cmpl_cntr = &counter;
    break;
  default:
    x.Rmw.tgt = in.tgt, x.Rmw.op = in.op, x.Rmw.size = in.size;
    x.Rmw.tgt_var = (lapi_long_t)in.var, x.Rmw.in_val = in.in, x.Rmw.prev_tgt_val = in.prev;
    x.Rmw.org_cntr = &counter;
  }
  return LAPI_Xfer(in.hndl, &x);
}

enum { ANY = 1, AM = 2, DATA = 4, ADDRESS = 8, FROM = 16, TO = 32, RMW = 64, SIZE = 128 };
enum { COUNTS = 23 };               /* sum of the counts of all calls with good input */

#define SENDS &counter, &counter
#define CALLS(X)                                                                          \
  X(Put, "LAPI_Put", ANY | DATA | ADDRESS,                                                \
    LAPI_Put(in.hndl, in.tgt, in.len, in.tgt_addr, in.org, NULL, SENDS))                  \
  X(Get, "LAPI_Get", ANY | DATA | ADDRESS,                                                \
    LAPI_Get(in.hndl, in.tgt, in.len, in.tgt_addr, in.org, NULL, &counter))               \
  X(Putv, "LAPI_Putv", ANY | FROM | TO, LAPI_Putv(in.hndl, in.tgt, in.to.given, in.from.given, NULL, SENDS)) \
  X(Getv, "LAPI_Getv", ANY | FROM | TO, LAPI_Getv(in.hndl, in.tgt, in.to.given, in.from.given, NULL, &counter)) \
  X(Amsend, "LAPI_Amsend", ANY | AM | DATA,                                               \
    LAPI_Amsend(in.hndl, in.tgt, AM_HANDLER, in.uhdr, in.uhdr_len, in.org, in.len, NULL, SENDS)) \
  X(Amsendv, "LAPI_Amsendv", ANY | AM | FROM,                                             \
    LAPI_Amsendv(in.hndl, in.tgt, AMV_HANDLER, in.uhdr, in.uhdr_len, in.from.given, NULL, SENDS)) \
  X(Rmw, "LAPI_Rmw", ANY | RMW, LAPI_Rmw(in.hndl, in.op, in.tgt, in.var, in.in, in.prev, &counter)) \
  X(Rmw64, "LAPI_Rmw64", ANY | RMW, LAPI_Rmw64(in.hndl, in.op, in.tgt, in.var, in.in, in.prev, &counter)) \
  X(XPut, "LAPI_Xfer (PUT)", ANY | DATA | ADDRESS, xfer(LAPI_PUT_XFER))                   \
  X(XGet, "LAPI_Xfer (GET)", ANY | DATA | ADDRESS, xfer(LAPI_GET_XFER))                   \
  X(XPutv, "LAPI_Xfer (PUTV)", ANY | FROM | TO, xfer(LAPI_PUTV_XFER))                     \
  X(XGetv, "LAPI_Xfer (GETV)", ANY | FROM | TO, xfer(LAPI_GETV_XFER))                     \
  X(XAm, "LAPI_Xfer (AM)", ANY | AM | DATA, xfer(LAPI_AM_XFER))                           \
  X(XAmv, "LAPI_Xfer (AMV)", ANY | AM | FROM, xfer(LAPI_AMV_XFER))                        \
  X(XRmw, "LAPI_Xfer (RMW)", ANY | RMW | SIZE, xfer(LAPI_RMW_XFER))

#define DEFINE_CALL(id, name, traits, expression) static int run_##id(void) { return expression; }
CALLS(DEFINE_CALL)
#define CALL_ROW(id, name, traits, expression) { name, traits, run_##id },
static const struct refusals_call calls[] = { CALLS(CALL_ROW) { NULL, 0, NULL } };

/* ------------------------------------------------------------------- faults */

static void strided(struct vector *v, void *base, ulong block, ulong stride, uint n)
{
  v->v.vec_type = LAPI_GEN_STRIDED_XFER;
  v->v.num_vecs = n;
  v->info[0] = base;
  v->info[1] = (void *)block;
  v->info[2] = (void *)stride;
}

/* The faults that apply to both vectors. Their codes are LAPI_ERR_ORG_... or LAPI_ERR_TGT_... */
#define VECTOR_FAULTS(X, traits, side, words, vec)                                                 \
  X(side##_null, "a null " words, traits, LAPI_ERR_##side##_VEC_NULL, vec.given = NULL)            \
  X(side##_type, words " of unknown type", traits, LAPI_ERR_##side##_VEC_TYPE, vec.v.vec_type = (lapi_vectype_t)3) \
  X(side##_type_below, words " of type -1", traits, LAPI_ERR_##side##_VEC_TYPE, vec.v.vec_type = (lapi_vectype_t)-1) \
  X(side##_hole, words " with a null block", traits, LAPI_ERR_##side##_VEC_ADDR, vec.info[1] = NULL) \
  X(side##_info, words " without addresses", traits, LAPI_ERR_##side##_VEC_ADDR, vec.v.info = NULL) \
  X(side##_len, words " without lengths", traits, LAPI_ERR_##side##_VEC_ADDR, vec.v.len = NULL)    \
  X(side##_generic, "generic " words " without lengths", traits, LAPI_ERR_##side##_VEC_ADDR,       \
    (vec.v.vec_type = LAPI_GEN_GENERIC, vec.v.len = NULL))                                         \
  X(side##_huge, words " longer than LAPI_MAX_MSG_SZ", traits, LAPI_ERR_##side##_VEC_LEN,          \
    vec.len[1] = LAPI_MAX_MSG_SZ)                                                                  \
  X(side##_wraps, words " whose lengths overflow", traits, LAPI_ERR_##side##_VEC_LEN, vec.len[1] = ULONG_MAX) \
  X(side##_narrow, "strided " words ", stride below block", traits, LAPI_ERR_##side##_STRIDE,      \
    strided(&vec, vec.info[0], 8, 7, 2))                                                           \
  X(side##_wide, "strided " words " that leaves the address space", traits, LAPI_ERR_##side##_EXTENT, \
    strided(&vec, vec.info[0], 8, 0x4000000000000000ul, 2))                                        \
  X(side##_block, "strided " words ", a block above LAPI_MAX_MSG_SZ", traits, LAPI_ERR_##side##_EXTENT, \
    strided(&vec, vec.info[0], 0x8000000000000000ul, 0x8000000000000000ul, 1))                     \
  X(side##_nowhere, "strided " words " with a null base", traits, LAPI_ERR_STRIDE_##side##_VEC_ADDR_NULL, \
    strided(&vec, NULL, 8, 16, 2))                                                                 \
  X(side##_no_words, "strided " words " without base, block and stride", traits,                   \
    LAPI_ERR_STRIDE_##side##_VEC_ADDR_NULL, (strided(&vec, vec.info[0], 8, 16, 2), vec.v.info = NULL))

#define FAULTS(X)                                                                                  \
  X(handle_zero, "handle 0", ANY, LAPI_ERR_HNDL_INVALID, in.hndl = 0)                              \
  X(handle_next, "a handle that was never given", ANY, LAPI_ERR_HNDL_INVALID, in.hndl++)           \
  X(handle_last, "handle UINT_MAX", ANY, LAPI_ERR_HNDL_INVALID, in.hndl = UINT_MAX)                \
  X(target_after, "a task equal to the number of tasks", ANY, LAPI_ERR_TGT, in.tgt = (uint)nproc)  \
  X(target_negative, "task -1", ANY, LAPI_ERR_TGT, in.tgt = (uint)-1)                              \
  X(target_least, "task INT_MIN", ANY, LAPI_ERR_TGT, in.tgt = 0x80000000u)                         \
  X(purged, "a task that was purged", ANY, LAPI_ERR_TGT_PURGED, LAPI_Purge_totask(hndl, in.tgt))   \
  X(handler_null, "a null header handler", AM, LAPI_ERR_HDR_HNDLR_NULL, in.no_handler = 1)         \
  X(uhdr_long, "a user header above MAX_UHDR_SZ", AM, LAPI_ERR_UHDR_LEN, in.uhdr_len = MAX_UHDR + 1) \
  X(uhdr_huge, "a user header of UINT_MAX - 7 bytes", AM, LAPI_ERR_UHDR_LEN, in.uhdr_len = UINT_MAX - 7) \
  X(uhdr_null, "a null user header with a length", AM, LAPI_ERR_UHDR_NULL, in.uhdr = NULL)         \
  X(len_over, "a length above LAPI_MAX_MSG_SZ", DATA, LAPI_ERR_DATA_LEN, in.len = 0x8000000000000000ul) \
  X(len_negative, "length -1", DATA, LAPI_ERR_DATA_LEN, in.len = ULONG_MAX)                        \
  X(tgt_null, "a null target address with a length", ADDRESS, LAPI_ERR_TGT_ADDR_NULL, in.tgt_addr = NULL) \
  X(org_null, "a null origin address with a length", DATA, LAPI_ERR_ORG_ADDR_NULL, in.org = NULL)  \
  VECTOR_FAULTS(X, TO, TGT, "target vector", in.to)                                                \
  VECTOR_FAULTS(X, FROM, ORG, "origin vector", in.from)                                            \
  X(types, "vectors of two types", TO, LAPI_ERR_VEC_TYPE_DIFF, strided(&in.from, in.from.info[0], 8, 16, 2)) \
  X(fewer, "fewer blocks at the origin", TO, LAPI_ERR_VEC_NUM_DIFF, in.from.v.num_vecs = 1)        \
  X(more, "fewer blocks at the target", TO, LAPI_ERR_VEC_NUM_DIFF, in.to.v.num_vecs = 1)           \
  X(shorter, "a shorter block at the origin", TO, LAPI_ERR_VEC_LEN_DIFF, in.from.len[1] = 7)       \
  X(generic_shorter, "fewer bytes in a generic origin vector", TO, LAPI_ERR_VEC_LEN_DIFF,          \
    (in.from.v.vec_type = LAPI_GEN_GENERIC, in.from.v.num_vecs = 1))                               \
  X(op_after, "operation 4", RMW, LAPI_ERR_RMW_OP, in.op = (RMW_ops_t)4)                           \
  X(op_negative, "operation -1", RMW, LAPI_ERR_RMW_OP, in.op = (RMW_ops_t)-1)                      \
  X(size_16, "size 16", SIZE, LAPI_ERR_OP_SZ, in.size = 16)                                        \
  X(size_0, "size 0", SIZE, LAPI_ERR_OP_SZ, in.size = 0)                                           \
  X(size_128, "size 128", SIZE, LAPI_ERR_OP_SZ, in.size = 128)                                     \
  X(var_null, "a null variable", RMW, LAPI_ERR_TGT_VAR_NULL, in.var = NULL)                        \
  X(operand_null, "a null operand", RMW, LAPI_ERR_IN_VAL_NULL, in.in = NULL)

#define DEFINE_FAULT(id, name, traits, code, statement) static void spoil_##id(void) { statement; }
FAULTS(DEFINE_FAULT)
#define FAULT_ROW(id, name, traits, code, statement) FAULT(name, traits, code, spoil_##id),
static const struct refusals_fault faults[] = { FAULTS(FAULT_ROW) { NULL, 0, 0, NULL, NULL, NULL } };

#endif /* LAPI_INVALID_CALLS_H */
