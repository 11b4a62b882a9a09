/*
 * Vector messages, and LAPI_Xfer of every type with its counters and handlers. The check `lapi` of
 * tests/ranks tests put, get, vectors and read-modify-write.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

enum { BIG = 4 << 20 };

static unsigned char global[1 << 16];
static unsigned char *heap;
static lapi_cntr_t tgt, org, cmpl;
static void **tgt_of, **global_of, **heap_of;
static unsigned char *want;
static int sent, got;
static volatile int got_later;

static void expect(const void *at, int seed, long length, const char *what)
{
  check_fill(want, seed, length);
  CHECK_BYTES(at, want, length, "%s", what);
}

static ulong given[3];
static void *places[3], *strides[3];
static lapi_vec_t place;
static int vector_mode, vector_done;

static void vector_completion(lapi_handle_t *h, void *info)
{
  (void)h;
  CHECK(info == &vector_done, "the parameter");
  vector_done++;
}

static lapi_vec_t *vector_header(lapi_handle_t *h, void *uhdr, uint *len, ulong *len_vec,
                                 compl_hndlr_t **comp_h, void **info)
{
  (void)h;
  CHECK_EQ(*len, 16);
  CHECK_EQ(((long *)uhdr)[1], 4711);
  *comp_h = vector_completion;
  *info = &vector_done;
  switch (vector_mode = (int)((long *)uhdr)[0]) {
  case 0:                           /* the same three blocks */
    for (int i = 0; i < 3; i++) {
      given[i] = len_vec[i];
      places[i] = heap + 100000 * i;
    }
    place = (lapi_vec_t){ LAPI_GEN_IOVECTOR, 3, places, given };
    return &place;
  case 1:                           /* all in one block */
    given[0] = len_vec[0] + len_vec[1] + len_vec[2];
    places[0] = heap;
    place = (lapi_vec_t){ LAPI_GEN_GENERIC, 1, places, given };
    return &place;
  case 2:                           /* strided */
    CHECK_EQ(len_vec[0], 16);
    CHECK_EQ(len_vec[9], 16);
    strides[0] = heap;
    strides[1] = (void *)16;
    strides[2] = (void *)1024;
    place = (lapi_vec_t){ LAPI_GEN_STRIDED_XFER, 10, strides, NULL };
    return &place;
  default:                          /* no data */
    return NULL;
  }
}

static void vector_messages(int to, long scale)
{
  ulong lengths[3] = { (ulong)(10 * scale), (ulong)(3 * scale), (ulong)(20 * scale) };
  const long all = 33 * scale;
  unsigned char *data = check_calloc(all);
  void *from[3] = { data, data + 10 * scale, data + 13 * scale };
  void *stride[3] = { data, (void *)16, (void *)24 };
  lapi_vec_t list = { LAPI_GEN_IOVECTOR, 3, from, lengths };
  lapi_vec_t strided = { LAPI_GEN_STRIDED_XFER, 10, stride, NULL };
  lapi_vec_t none = { LAPI_GEN_GENERIC, 0, NULL, NULL };
  lapi_vec_t *vec[4] = { &list, &list, &strided, &none };

  check_fill(data, 21, all);
  for (long mode = 0; mode < 4; mode++) {
    long uhdr[2] = { mode, 4711 };
    memset(heap, 0, 1 << 20);
    vector_done = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    if (me == 0) {
      LAPI_OK(LAPI_Amsendv(hndl, (uint)to, (void *)5, uhdr, sizeof uhdr, vec[mode], tgt_of[to],
                           &org, &cmpl));
      LAPI_WAIT(&org, 1);
      LAPI_WAIT(&cmpl, 1);
    }
    if (me == to) {
      LAPI_WAIT(&tgt, 1);
      CHECK_EQ(vector_done, 1);
      CHECK_EQ(vector_mode, mode);
      if (mode == 0)
        for (int i = 0; i < 3; i++)
          CHECK_BYTES(heap + 100000 * i, data + ((unsigned char *)from[i] - data),
                      (long)lengths[i], "block %d of a message", i);
      if (mode == 1)
        CHECK_BYTES(heap, data, all, "all of a message");
      if (mode == 2)
        for (int i = 0; i < 10; i++)
          CHECK_BYTES(heap + 1024 * i, data + 24 * i, 16, "stride %d of a message", i);
    }
  }
  LAPI_OK(LAPI_Gfence(hndl));
  free(data);
}

/* --------------------------------------------------------------------- xfer */

static void sent_handler(lapi_handle_t *h, void *info, lapi_sh_info_t *sh)
{
  CHECK(*h == hndl, "the handle");
  CHECK(info == &sent, "the parameter");
  CHECK_EQ(sh->reason, LAPI_SUCCESS);
  CHECK(sh->src < (uint)nproc, "src is %u", sh->src);
  __sync_fetch_and_add(&sent, 1);
}

static void got_handler(lapi_handle_t *h, void *info)
{
  CHECK(info == &got, "the parameter");
  CHECK_EQ(lapi_value(&org), 1);    /* the data has arrived */
  LAPI_OK(LAPI_Probe(*h));
  got_later = 1;
}

static void *am_header(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                       compl_hndlr_t **comp_h, void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)info;
  return heap;
}

static void until(volatile int *flag, int value)
{
  while (*flag != value)
    LAPI_OK(LAPI_Probe(hndl));
}

static void xfers(int to, long length)
{
  static unsigned char data[BIG], back[BIG];
  ulong lengths[1] = { (ulong)length };
  void *local[1] = { data }, *remote[1] = { heap_of[to] };
  lapi_vec_t org_vec = { LAPI_GEN_IOVECTOR, 1, local, lengths };
  lapi_vec_t tgt_vec = { LAPI_GEN_IOVECTOR, 1, remote, lengths };
  long uhdr[2] = { 1, 4711 };
  long long in = 3, prev = 0;
  lapi_xfer_t x;

  sent = got = 0;
  memset(heap, 0, (size_t)length);
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    check_fill(data, 31, length);
    memset(&x, 0xff, sizeof x);     /* the call reads only the member of its type */
    x.Put = (lapi_put_t){ LAPI_PUT_XFER, 0, (uint)to, 0, (lapi_long_t)heap_of[to], data,
                          (ulong)length, sent_handler, &sent, (lapi_long_t)tgt_of[to], &org, &cmpl };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&cmpl, 1);
    LAPI_WAIT(&org, 1);
    until(&sent, 1);
    memset(back, 0, (size_t)length);
    got_later = 0;
    x.Get = (lapi_get_t){ LAPI_GET_XFER, 0, (uint)to, 0, (lapi_long_t)heap_of[to], back,
                          (ulong)length, (lapi_long_t)tgt_of[to], &org, got_handler, &got };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    until(&got_later, 1);
    LAPI_WAIT(&org, 1);
    CHECK_BYTES(back, data, length, "get by LAPI_Xfer");
    check_fill(data, 32, length);
    x.Putv = (lapi_putv_t){ LAPI_PUTV_XFER, 0, (uint)to, 0, sent_handler, &sent, &org_vec,
                            &tgt_vec, (lapi_long_t)tgt_of[to], &org, &cmpl };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&cmpl, 1);
    LAPI_WAIT(&org, 1);
    until(&sent, 2);
    local[0] = back;
    got_later = 0;
    x.Getv = (lapi_getv_t){ LAPI_GETV_XFER, 0, (uint)to, 0, &org_vec, &tgt_vec,
                            (lapi_long_t)tgt_of[to], &org, got_handler, &got };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    until(&got_later, 1);
    LAPI_WAIT(&org, 1);
    CHECK_BYTES(back, data, length, "getv by LAPI_Xfer");
    check_fill(data, 33, length);
    x.Am = (lapi_am_t){ LAPI_AM_XFER, 0, (uint)to, 0, 6, 0, NULL, data, (ulong)length,
                        sent_handler, &sent, (lapi_long_t)tgt_of[to], NULL, &cmpl };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    until(&sent, 3);
    memset(data, 0, (size_t)length);
    LAPI_WAIT(&cmpl, 1);
    LAPI_OK(LAPI_Get(hndl, (uint)to, (ulong)length, heap_of[to], back, NULL, &org));
    LAPI_WAIT(&org, 1);
    expect(back, 33, length, "message by LAPI_Xfer");
    check_fill(data, 34, length);
    ulong three[3] = { (ulong)length, 0, 0 };
    void *parts[3] = { data, NULL, NULL };
    lapi_vec_t tripled = { LAPI_GEN_GENERIC, 3, parts, three };
    x.Amv = (lapi_amv_t){ LAPI_AMV_XFER, 0, (uint)to, 0, 5, sizeof uhdr, uhdr, sent_handler,
                          &sent, &tripled, (lapi_long_t)tgt_of[to], &org, &cmpl };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&org, 1);
    until(&sent, 4);
    LAPI_WAIT(&cmpl, 1);
    x.Rmw = (lapi_rmw_t){ LAPI_RMW_XFER, FETCH_AND_ADD, (uint)to, 64,
                          (lapi_long_t)global_of[to], &in, &prev, &org, sent_handler, &sent };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&org, 1);
    until(&sent, 5);
    x.Rmw.op = SWAP;
    x.Rmw.size = 32;
    in = 0;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&org, 1);
    until(&sent, 6);
  }
  if (me == to) {
    LAPI_WAIT(&tgt, 6);
    expect(heap, 34, length, "vector message by LAPI_Xfer");
  }
  LAPI_OK(LAPI_Gfence(hndl));
}

int main(int argc, char **argv)
{
  lapi_start("lapi_putget", &argc, &argv);
  const int last = nproc - 1;
  heap = check_calloc(BIG);
  want = check_calloc(BIG);
  lapi_zero(&tgt);
  lapi_zero(&org);
  lapi_zero(&cmpl);
  tgt_of = lapi_exchange(&tgt);
  global_of = lapi_exchange(global);
  heap_of = lapi_exchange(heap);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)vector_header, 5));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)am_header, 6));
  LAPI_OK(LAPI_Gfence(hndl));

  for (int to = last; ; to = 0) {
    vector_messages(to, 8);
    vector_messages(to, 4000);
    memset(global, 0, 16);
    LAPI_OK(LAPI_Gfence(hndl));
    xfers(to, 64);
    xfers(to, BIG);
    if (to == 0)
      break;
  }
  free(tgt_of);
  free(global_of);
  free(heap_of);
  free(heap);
  free(want);
  return lapi_end();
}
