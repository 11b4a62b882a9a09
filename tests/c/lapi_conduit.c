/*
 * An active-message conduit over LAPI in polling mode, as in GASNet. Short messages carry only
 * arguments, medium ones also data for a buffer of the receiver, and long ones data for an address
 * that the sender names. Each is a request, and its handler may reply once. Headers have up to 68
 * bytes, depending on the number of arguments. Credits bound the requests to a task and return with
 * the replies. Handlers run from completion handlers, or from the header handler if the header
 * holds the whole message, and share the program's data with it without a lock.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

enum { REQUEST = 1, REPLY = 2, ARGUMENTS = 16, CREDITS = 12, MEDIUM = 4000, LONG = 50000 };
typedef enum { SHORT_MESSAGE, MEDIUM_MESSAGE, LONG_MESSAGE } kind_t;

/* 68 bytes with 13 arguments. */
typedef struct {
  unsigned char kind, handler, arguments, is_reply;
  int bytes, offset, credit;
  int argument[ARGUMENTS];
} token_t;

enum { HEAD = 16 };

typedef struct {
  token_t token;
  int from;
  unsigned char *data;
} waiting_t;

static int credits[64], busy;       /* busy: the program uses data of the handlers */
static long requests[64], replies[64], sum, bytes_seen, in_flight;
static unsigned char *arena;        /* destination of long messages, a part for each sender */
static const int lengths[] = { 0, 1, 13, 16 };

static void send(int to, int handler_index, token_t *t, const void *data)
{
  const uint len = (uint)(HEAD + t->arguments * (int)sizeof(int));
  lapi_cntr_t org;

  lapi_zero(&org);
  LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)(long)handler_index, t, len, (void *)data,
                      (ulong)t->bytes, NULL, &org, NULL));
  LAPI_OK(LAPI_Waitcntr(hndl, &org, 1, NULL));    /* header and data may be reused */
}

/* A handler of the conduit's client: checks the message, and replies to a request. */
static void run(const token_t *t, int from, const unsigned char *data)
{
  int *shared = &busy;

  CHECK_EQ(*shared, 0);
  for (int i = 0; i < t->arguments; i++)
    CHECK_EQ(t->argument[i], t->credit * 100 + i);
  for (int i = 0; i < t->bytes; i++)
    CHECK_EQ(data[i], check_byte(t->credit, i));
  sum += t->credit;
  bytes_seen += t->bytes;
  if (t->is_reply) {
    replies[from]++;
    credits[from]++;
    in_flight--;
  } else {
    requests[from]++;
  }
}

static void reply(const token_t *t, int from)
{
  static unsigned char data[MEDIUM];
  token_t back = { SHORT_MESSAGE, 0, 0, 1, 0, 0, 0, { 0 } };

  back.credit = t->credit;
  back.arguments = (unsigned char)lengths[t->credit % 4];
  for (int i = 0; i < back.arguments; i++)
    back.argument[i] = back.credit * 100 + i;
  if (t->kind == MEDIUM_MESSAGE) {
    back.kind = MEDIUM_MESSAGE;
    back.bytes = MEDIUM / 2;
    check_fill(data, back.credit, back.bytes);
  }
  send(from, REPLY, &back, data);
}

static void later(lapi_handle_t *h, void *info)
{
  waiting_t *w = info;

  (void)h;
  run(&w->token, w->from, w->data);
  if (!w->token.is_reply)
    reply(&w->token, w->from);
  if (w->token.kind == MEDIUM_MESSAGE)
    free(w->data);
  free(w);
}

static void *arrive(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **info)
{
  const lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;
  const token_t *t = uhdr;

  (void)h;
  CHECK_EQ(*len, HEAD + t->arguments * sizeof(int));
  CHECK_EQ(ri->msg_len, t->bytes);
  if (t->kind == SHORT_MESSAGE && t->is_reply) {  /* nothing to wait for */
    run(t, ri->src, NULL);
    return NULL;
  }
  waiting_t *w = check_calloc(sizeof *w);
  memcpy(&w->token, t, *len);
  w->from = ri->src;
  if (t->kind == MEDIUM_MESSAGE)
    w->data = check_calloc(t->bytes);
  else
    w->data = arena + (long)ri->src * CREDITS * LONG + t->offset;
  *comp_h = later;
  *info = w;
  return t->bytes ? w->data : NULL;
}

static int free_slot[64];

/* Sends a request as soon as a credit for its target is available. */
static void request(int to, kind_t kind, int number)
{
  static unsigned char data[LONG];
  token_t t = { (unsigned char)kind, 1, 0, 0, 0, 0, 0, { 0 } };

  while (credits[to] == 0)
    LAPI_OK(LAPI_Probe(hndl));
  credits[to]--;
  in_flight++;
  t.credit = number;
  t.arguments = (unsigned char)lengths[number / 3 % 4];
  for (int i = 0; i < t.arguments; i++)
    t.argument[i] = number * 100 + i;
  if (kind == MEDIUM_MESSAGE)
    t.bytes = 1 + number * 37 % MEDIUM;
  if (kind == LONG_MESSAGE) {
    t.bytes = 1 + number * 997 % LONG;
    /* each request has its own slot, because credits may return in another order */
    t.offset = LONG * (free_slot[to]++ % CREDITS);
  }
  check_fill(data, number, t.bytes);
  send(to, REQUEST, &t, data);
}

int main(int argc, char **argv)
{
  enum { N = 400 };

  lapi_start("lapi_conduit", &argc, &argv);
  CHECK(nproc <= 64, "at most 64 ranks");
  LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  arena = check_calloc((long)nproc * CREDITS * LONG);
  for (int to = 0; to < nproc; to++)
    credits[to] = CREDITS;
  /* no rank waits until the others have set their handlers */
  LAPI_OK(LAPI_Addr_set(hndl, (void *)arrive, REQUEST));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)arrive, REPLY));
  for (int i = 0; i < N; i++)
    for (int k = 0; k < nproc; k++) {
      const int to = (me + k) % nproc, kind = (i + k) % 3;
      if (kind == LONG_MESSAGE)     /* slots are free when no request to this task is pending */
        while (credits[to] < CREDITS)
          LAPI_OK(LAPI_Probe(hndl));
      request(to, (kind_t)kind, i);
      if (i % 16 == 0) {            /* computes with the data of the handlers */
        busy = 1;
        for (volatile int j = 0; j < 2000; j++)
          ;
        CHECK_EQ(busy, 1);
        busy = 0;
      }
    }
  while (in_flight > 0)
    LAPI_OK(LAPI_Probe(hndl));
  LAPI_OK(LAPI_Gfence(hndl));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int from = 0; from < nproc; from++) {
    CHECK_EQ(requests[from], N);
    CHECK_EQ(replies[from], N);
    CHECK_EQ(credits[from], CREDITS);
  }
  CHECK_EQ(sum, 2l * nproc * N * (N - 1) / 2);
  free(arena);
  return lapi_end();
}
