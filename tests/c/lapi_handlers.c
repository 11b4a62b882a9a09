/*
 * Handlers that send, completion handlers that wait, their order, and all tasks sending to all
 * tasks at once.
 */
// TEST: lapi lapi-moving
// TEST: n=3 -- polling
// TEST: release n=3 node-size=1 -- polling
#include "lapi_check.h"

#include <pthread.h>

enum { CHAIN = 1, STEP, ORDER, ASK, ANSWER, STORM };

static lapi_cntr_t done;
static void **done_of;

/* ------------------------------------------- header handlers that forward */

typedef struct {
  long hops, length;
} hop_t;

static long seen_hops;
static unsigned char *pass;

static void *chain(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                   compl_hndlr_t **comp_h, void **info)
{
  hop_t hop = *(hop_t *)uhdr;

  (void)len, (void)msg_len, (void)comp_h, (void)info;
  seen_hops++;
  if (--hop.hops > 0) {
    const uint next = (uint)((me + 1) % nproc);
    LAPI_OK(LAPI_Amsend(*h, next, (void *)CHAIN, &hop, sizeof hop, pass, (ulong)hop.length,
                        NULL, NULL, NULL));
  } else {
    LAPI_OK(LAPI_Amsend(*h, 0, (void *)STEP, NULL, 0, NULL, 0, done_of[0], NULL, NULL));
  }
  return hop.length ? pass : NULL;
}

static void *step(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                  compl_hndlr_t **comp_h, void **info)
{
  (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)info;
  *h = 77; /* a handler gets a copy of the handle */
  return NULL;
}

static void chains(long length)
{
  enum { HOPS = 500 };

  seen_hops = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    hop_t hop = { HOPS, length };
    LAPI_OK(LAPI_Amsend(hndl, (uint)(1 % nproc), (void *)CHAIN, &hop, sizeof hop, pass,
                        (ulong)length, NULL, NULL, NULL));
    LAPI_WAIT(&done, 1);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  long all = 0;
  MPI_Allreduce(&seen_hops, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all, HOPS);
}

/* --------------------------------------- order of completion handlers */

static long last_done[64], next_header[64];
static pthread_t handlers_thread;
static int have_thread;

typedef struct {
  long origin, number;
} tag_t;

static void in_order(lapi_handle_t *h, void *info)
{
  tag_t *tag = info;

  (void)h;
  CHECK(last_done[tag->origin] == tag->number, "handler %ld of rank %ld ran after %ld",
        tag->number, tag->origin, last_done[tag->origin] - 1);
  last_done[tag->origin]++;
  if (!have_thread) {
    handlers_thread = pthread_self();
    have_thread = 1;
  }
  CHECK(pthread_equal(handlers_thread, pthread_self()), "handlers run on several threads");
  free(tag);
}

static void *order(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                   compl_hndlr_t **comp_h, void **info)
{
  tag_t *tag = check_calloc(sizeof *tag);

  (void)h, (void)len, (void)msg_len;
  *tag = *(tag_t *)uhdr;
  CHECK_EQ(((lapi_return_info_t *)msg_len)->src, tag->origin);
  CHECK(next_header[tag->origin] == tag->number, "message %ld of rank %ld came after %ld",
        tag->number, tag->origin, next_header[tag->origin] - 1);
  next_header[tag->origin]++;
  *comp_h = in_order;
  *info = tag;
  return NULL;
}

static void ordered(void)
{
  enum { N = 2000 };
  lapi_cntr_t cmpl;

  lapi_zero(&cmpl);
  for (long i = 0; i < N; i++)
    for (int to = 0; to < nproc; to++) {
      tag_t tag = { me, i };
      LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)ORDER, &tag, sizeof tag, NULL, 0, NULL, NULL,
                          &cmpl));
    }
  LAPI_WAIT(&cmpl, N * nproc);
  LAPI_OK(LAPI_Gfence(hndl));
  for (int from = 0; from < nproc; from++)
    CHECK_EQ(last_done[from], N);
}

/* ------------------------- completion handlers that ask others and wait */

typedef struct {
  long from, value, reply_to, counter;
} question_t;

static long answers, asked;

static void *answer(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **info)
{
  question_t *q = uhdr;
  lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;

  (void)h, (void)len, (void)comp_h, (void)info;
  ri->ret_flags = LAPI_SEND_REPLY;
  *(long *)q->reply_to = q->value;
  return NULL;
}

/* Asks the next rank for a value, by get and by message, and waits for both. */
static void think(lapi_handle_t *h, void *info)
{
  question_t *q = info;
  static long twice;
  long fetched = -1;
  lapi_cntr_t here, cmpl;

  lapi_zero(&here);
  lapi_zero(&cmpl);
  twice = 2 * q->value;
  LAPI_OK(LAPI_Get(*h, (uint)q->from, sizeof fetched, (void *)q->counter, &fetched, NULL, &here));
  LAPI_WAIT(&here, 1);
  CHECK_EQ(fetched, 1000 + q->from);
  q->value = twice;
  LAPI_OK(LAPI_Amsend(*h, (uint)q->from, (void *)ANSWER, q, sizeof *q, NULL, 0, done_of[q->from],
                      NULL, &cmpl));
  LAPI_WAIT(&cmpl, 1);
  asked++;
  free(q);
}

static void *ask(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                 compl_hndlr_t **comp_h, void **info)
{
  (void)h, (void)msg_len;
  *info = check_calloc(*len);
  memcpy(*info, uhdr, *len);
  *comp_h = think;
  return NULL;
}

static void questions(void)
{
  enum { N = 50 };
  static long number, replies[N * 8];
  const int right = (me + 1) % nproc;

  number = 1000 + me;
  LAPI_OK(LAPI_Gfence(hndl));
  for (int i = 0; i < N; i++) {
    question_t q = { me, 10 * me + i, (long)&replies[i], (long)&number };
    LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)ASK, &q, sizeof q, NULL, 0, NULL, NULL, NULL));
  }
  LAPI_WAIT(&done, N);
  for (int i = 0; i < N; i++)
    CHECK_EQ(replies[i], 2 * (10 * me + i));
  answers += N;
  LAPI_OK(LAPI_Gfence(hndl));
}

/* -------------------------------------------------------------- all to all */

enum { SLOTS = 400, MOST = 40000 };

typedef struct {
  long origin, number, length, seed;
} gust_t;

typedef struct {
  gust_t gust;
  unsigned char data[];
} landing_t;

static long landed[64], landed_bytes[64];
static pthread_mutex_t landing_lock = PTHREAD_MUTEX_INITIALIZER;

static void storm_done(lapi_handle_t *h, void *info)
{
  landing_t *l = info;

  (void)h;
  for (long i = 0; i < l->gust.length; i++)
    CHECK(l->data[i] == check_byte((int)l->gust.seed, i), "byte %ld of %ld of message %ld of rank %ld",
          i, l->gust.length, l->gust.number, l->gust.origin);
  pthread_mutex_lock(&landing_lock);
  landed[l->gust.origin]++;
  landed_bytes[l->gust.origin] += l->gust.length;
  pthread_mutex_unlock(&landing_lock);
  free(l);
}

static void *storm(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                   compl_hndlr_t **comp_h, void **info)
{
  gust_t *g = uhdr;
  lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;
  landing_t *l = check_calloc((long)sizeof *l + g->length);

  (void)h, (void)len;
  CHECK_EQ(ri->msg_len, g->length);
  CHECK_EQ(ri->src, g->origin);
  l->gust = *g;
  *comp_h = storm_done;
  *info = l;
  if (g->number % 3 == 0)
    ri->ret_flags = LAPI_SEND_REPLY;
  if (ri->udata_one_pkt_ptr && g->number % 2 == 0) {
    memcpy(l->data, ri->udata_one_pkt_ptr, (size_t)g->length);
    return NULL;
  }
  return l->data;
}

static void storms(void)
{
  lapi_cntr_t org, cmpl;
  long sent[64] = { 0 };
  unsigned char *data = check_calloc((long)SLOTS * nproc * 64 + MOST);
  unsigned char **longs = check_calloc((long)SLOTS * nproc * (long)sizeof *longs);

  lapi_zero(&org);
  lapi_zero(&cmpl);
  check_state = (unsigned long long)me + 99;
  LAPI_OK(LAPI_Gfence(hndl));
  for (int i = 0; i < SLOTS; i++)
    for (int k = 0; k < nproc; k++) {
      const int to = (me + i + k) % nproc, slot = i * nproc + k;
      const int length = check_random(10) == 0 ? check_random(MOST) : check_random(64);
      gust_t g = { me, i, length, me * 1000 + slot };
      longs[slot] = length < 64 ? data + 64l * slot : check_calloc(length);
      check_fill(longs[slot], (int)g.seed, length);
      LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)STORM, &g, sizeof g, longs[slot],
                          (ulong)length, done_of[to], &org, &cmpl));
      sent[to] += length;
      if (check_random(50) == 0)
        LAPI_OK(LAPI_Probe(hndl));
    }
  LAPI_WAIT(&org, SLOTS * nproc);
  LAPI_WAIT(&cmpl, SLOTS * nproc);
  LAPI_WAIT(&done, SLOTS * nproc);
  LAPI_OK(LAPI_Gfence(hndl));
  long want[64];
  MPI_Alltoall(sent, 1, MPI_LONG, want, 1, MPI_LONG, MPI_COMM_WORLD);
  for (int from = 0; from < nproc; from++) {
    CHECK_EQ(landed[from], SLOTS);
    CHECK_EQ(landed_bytes[from], want[from]);
  }
  for (int slot = 0; slot < SLOTS * nproc; slot++)
    if (longs[slot] < data || longs[slot] >= data + 64l * SLOTS * nproc)
      free(longs[slot]);
  free(longs);
  free(data);
}

int main(int argc, char **argv)
{
  lapi_start("lapi_handlers", &argc, &argv);
  CHECK(nproc <= 64, "at most 64 ranks");
  pass = check_calloc(1 << 20);
  lapi_zero(&done);
  done_of = lapi_exchange(&done);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)chain, CHAIN));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)step, STEP));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)order, ORDER));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)ask, ASK));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)answer, ANSWER));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)storm, STORM));
  LAPI_OK(LAPI_Gfence(hndl));
  chains(0);
  chains(100);
  chains(100000);
  ordered();
  questions();
  storms();
  free(done_of);
  return lapi_end();
}
