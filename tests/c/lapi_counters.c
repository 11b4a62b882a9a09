/*
 * Counters: setting, reading, waiting, and the time of each increment. The origin counter is
 * incremented when header and data may be changed, the target counter after the completion handler,
 * and the completion counter after that.
 */
// TEST: lapi lapi-moving
// TEST: own-level
// TEST: n=3 -- polling
// TEST: release n=3 node-size=1 -- polling
#include "lapi_check.h"

#include <pthread.h>

enum { LONG = 8 << 20 };

static lapi_cntr_t tgt, org, cmpl, gate;
static void **tgt_of, **gate_of;
static unsigned char *room;
static volatile int begun, ended;

static void basics(void)
{
  lapi_cntr_t c;
  int left = -1;

  lapi_zero(&c);
  CHECK_EQ(lapi_value(&c), 0);
  LAPI_OK(LAPI_Setcntr(hndl, &c, 7));
  CHECK_EQ(lapi_value(&c), 7);
  CHECK_EQ(c.cntr, 7);
  LAPI_OK(LAPI_Waitcntr(hndl, &c, 3, &left));     /* subtracts the awaited value */
  CHECK_EQ(left, 4);
  CHECK_EQ(lapi_value(&c), 4);
  LAPI_OK(LAPI_Waitcntr(hndl, &c, 0, &left));
  CHECK_EQ(left, 4);
  LAPI_OK(LAPI_Waitcntr(hndl, &c, 4, NULL));
  CHECK_EQ(lapi_value(&c), 0);
  LAPI_OK(LAPI_Setcntr(hndl, &c, 5));
  LAPI_OK(LAPI_Nopoll_wait(hndl, &c, 2, &left));
  CHECK_EQ(left, 3);
  LAPI_OK(LAPI_Nopoll_wait(hndl, &c, 3, NULL));
  CHECK_EQ(lapi_value(&c), 0);
  LAPI_OK(LAPI_Setcntr(hndl, &c, -2));
  CHECK_EQ(lapi_value(&c), -2);
  LAPI_OK(LAPI_Waitcntr(hndl, &c, -3, &left));    /* a counter may wait below zero */
  CHECK_EQ(left, 1);
}

/* Blocks at the target until the `gate` counter is set. */
static void slow(lapi_handle_t *h, void *info)
{
  (void)info;
  begun = 1;
  LAPI_OK(LAPI_Waitcntr(*h, &gate, 1, NULL));
  lapi_nap(20);
  CHECK_EQ(lapi_value(&tgt), 0);    /* incremented only after this returns */
  ended = 1;
}

static void *to_slow(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                     compl_hndlr_t **comp_h, void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)info;
  *comp_h = slow;
  return room;
}

static void *only_gate(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                       compl_hndlr_t **comp_h, void **info)
{
  (void)h, (void)msg_len, (void)comp_h, (void)info;
  CHECK(uhdr == NULL && *len == 0, "a header of %u bytes at %p", *len, uhdr);
  return NULL;
}

/* The completion handler waits until rank 0 releases it. Until then neither the target counter nor
 * the completion counter is incremented, although fences return. */
static void timing(int to, long length, int nopoll)
{
  unsigned char *data = check_calloc(length);

  begun = ended = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    check_fill(data, 3, length);
    LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)1, NULL, 0, data, (ulong)length, tgt_of[to],
                        &org, &cmpl));
    LAPI_WAIT(&org, 1);
    memset(data, 0, (size_t)length);
    LAPI_OK(LAPI_Fence(hndl));      /* waits for data, not for handlers */
    lapi_nap(20);
    LAPI_OK(LAPI_Probe(hndl));
    CHECK_EQ(lapi_value(&cmpl), 0);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == to) {                   /* the data has arrived */
    unsigned char *want = check_calloc(length);
    check_fill(want, 3, length);
    CHECK_BYTES(room, want, length, "after a fence of the origin");
    free(want);
    CHECK_EQ(lapi_value(&tgt), 0);
    CHECK_EQ(ended, 0);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    int left = -1;
    LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)3, NULL, 0, NULL, 0, gate_of[to], NULL, NULL));
    if (nopoll)
      LAPI_OK(LAPI_Nopoll_wait(hndl, &cmpl, 1, &left));
    else
      LAPI_OK(LAPI_Waitcntr(hndl, &cmpl, 1, &left));
    CHECK_EQ(left, 0);
    if (to == 0)
      CHECK_EQ(ended, 1);
  }
  if (me == to) {
    if (nopoll && to != 0) {
      LAPI_OK(LAPI_Nopoll_wait(hndl, &tgt, 1, NULL));
    } else {
      LAPI_WAIT(&tgt, 1);
    }
    CHECK_EQ(begun, 1);
    CHECK_EQ(ended, 1);
  }
  free(data);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* ------------------------------------------------------------------ threads */

static lapi_cntr_t shared;
static int codes[4];
static volatile int going;

static void *wait_poll(void *arg)
{
  int *code = arg;
  __sync_fetch_and_add(&going, 1);
  *code = LAPI_Waitcntr(hndl, &shared, 1, NULL);
  return NULL;
}

static void threads(void)
{
  pthread_t thread[4];

  lapi_zero(&shared);
  /* Several polling waiters each take their own increment. */
  going = 0;
  for (int i = 0; i < 4; i++)
    pthread_create(&thread[i], NULL, wait_poll, &codes[i]);
  while (going < 4)
    lapi_nap(1);
  LAPI_OK(LAPI_Setcntr(hndl, &shared, 4));
  for (int i = 0; i < 4; i++) {
    pthread_join(thread[i], NULL);
    CHECK_EQ(codes[i], LAPI_SUCCESS);
  }
  CHECK_EQ(lapi_value(&shared), 0);
}

int main(int argc, char **argv)
{
  int level;

  lapi_start("lapi_counters", &argc, &argv);
  const int last = nproc - 1;
  room = check_calloc(LONG);
  lapi_zero(&tgt);
  lapi_zero(&org);
  lapi_zero(&cmpl);
  lapi_zero(&gate);
  tgt_of = lapi_exchange(&tgt);
  gate_of = lapi_exchange(&gate);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)to_slow, 1));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)only_gate, 3));
  LAPI_OK(LAPI_Gfence(hndl));

  basics();
  /* In polling mode the waiting handler would run in a fence and block the other ranks. */
  int interrupts = 1;
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &interrupts));
  for (int nopoll = 0; interrupts && nopoll < 2; nopoll++) {
    timing(last, 100, nopoll);
    timing(last, LONG, nopoll);
    timing(0, 100, nopoll);
  }
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE)
    threads();
  LAPI_OK(LAPI_Gfence(hndl));
  free(tgt_of);
  free(gate_of);
  return lapi_end();
}
