/*
 * LAPI_Xfer of puts, gets and read-modify-writes: its counters and handlers at the origin. The check
 * `lapi` of tests/ranks tests the data, and messages.
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
    x.Rmw = (lapi_rmw_t){ LAPI_RMW_XFER, FETCH_AND_ADD, (uint)to, 64,
                          (lapi_long_t)global_of[to], &in, &prev, &org, sent_handler, &sent };
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&org, 1);
    until(&sent, 3);
    x.Rmw.op = SWAP;
    x.Rmw.size = 32;
    in = 0;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    LAPI_WAIT(&org, 1);
    until(&sent, 4);
  }
  if (me == to) {
    LAPI_WAIT(&tgt, 4);
    expect(heap, 32, length, "putv by LAPI_Xfer");
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
  LAPI_OK(LAPI_Gfence(hndl));

  for (int to = last; ; to = 0) {
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
