/*
 * A server over LAPI, as in ARMCI. Requests are active messages with a header of 60 bytes. Their
 * completion handlers serve them on the library's thread and reply by puts, whose counters the
 * client waits for. Covers strided puts and gets, accumulates under a lock that the client also
 * takes for its own memory, fetch-and-add by the server and by LAPI_Rmw64, and mutexes with a queue
 * at the server. Every task is a client and a server.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

#include <pthread.h>

#define HEADER_BYTES 60

enum { SERVE = 1, ROUNDS = 300, ROWS = 6, COLUMNS = 8, STRIDE = 20, STRIP = ROWS * STRIDE, MOST = 64, LONG = 40000 };
enum { PUT, GET, ACCUMULATE, FETCH_ADD, LOCK, UNLOCK };

/* Packed, so that its length is not a multiple of 8. */
struct __attribute__((packed)) request {
  int op, from, rows, columns;
  lapi_long_t stride;           /* elements from row to row */
  lapi_long_t at;               /* at the server */
  double scale;
  lapi_long_t reply, counter;   /* at the client */
  int number;
};

_Static_assert(sizeof(struct request) == HEADER_BYTES, "a request has 60 bytes");

struct job {
  struct request request;
  ulong bytes;
  double data[];
};

static double strips[MOST][STRIP];      /* one for each client */
static double shared[LONG];             /* target of all accumulates */
static long tickets, rmw_tickets, guarded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holder = -1, queue[MOST], queued;
static lapi_long_t queue_counter[MOST];
static volatile long served;

static lapi_long_t strips_of[MOST], shared_of[MOST], rmw_of[MOST], guarded_of[MOST];
static lapi_cntr_t done, replied, fetched, granted, added;

/* --------------------------------------------------------------------- server */

/* When the client sees its counter change, the data is in place. */
static void reply_by_put(int to, lapi_long_t where, const void *data, ulong bytes, lapi_long_t counter)
{
  lapi_cntr_t left;
  LAPI_OK(LAPI_Setcntr(hndl, &left, 0));
  LAPI_OK(LAPI_Put(hndl, (uint)to, bytes, (void *)where, (void *)data, (lapi_cntr_t *)counter, &left, NULL));
  LAPI_WAIT(&left, 1);          /* this thread may reuse the buffer */
}

static void scatter(const struct job *job)
{
  double *at = (double *)job->request.at;
  for (int r = 0; r < job->request.rows; r++)
    memcpy(at + (lapi_long_t)r * job->request.stride, job->data + (long)r * job->request.columns,
           (size_t)job->request.columns * sizeof(double));
}

static void gather_and_reply(const struct job *job)
{
  const struct request *q = &job->request;
  const double *at = (const double *)q->at;
  double *packed = (double *)check_calloc((long)q->rows * q->columns * (long)sizeof(double));
  for (int r = 0; r < q->rows; r++)
    memcpy(packed + (long)r * q->columns, at + (lapi_long_t)r * q->stride, (size_t)q->columns * sizeof(double));
  reply_by_put(q->from, q->reply, packed, (ulong)q->rows * (ulong)q->columns * sizeof(double), q->counter);
  free(packed);
}

static void add_up(double *at, const double *data, int rows, int columns, lapi_long_t stride, double scale)
{
  pthread_mutex_lock(&lock);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const double was = at[(lapi_long_t)r * stride + (lapi_long_t)c];
      if (c % 4 == 0)
        sched_yield();          /* exposes a missing lock */
      at[(lapi_long_t)r * stride + (lapi_long_t)c] = was + scale * data[(long)r * columns + c];
    }
  pthread_mutex_unlock(&lock);
}

static void fetch_and_add(const struct request *q)
{
  pthread_mutex_lock(&lock);
  const long was = tickets;
  tickets = was + (long)q->scale;
  pthread_mutex_unlock(&lock);
  reply_by_put(q->from, q->reply, &was, sizeof was, q->counter);
}

static void grant(int to, lapi_long_t counter)
{
  static const char nothing;
  reply_by_put(to, 0, &nothing, 0, counter);
}

static void take_mutex(const struct request *q)
{
  if (holder >= 0) {
    queue_counter[queued] = q->counter;
    queue[queued++] = q->from;
    return;
  }
  holder = q->from;
  grant(q->from, q->counter);
}

static void give_mutex(const struct request *q)
{
  CHECK_EQ(holder, q->from);
  holder = -1;
  if (queued > 0) {
    const lapi_long_t counter = queue_counter[0];
    holder = queue[0];
    queued--;
    memmove(queue, queue + 1, (size_t)queued * sizeof queue[0]);
    memmove(queue_counter, queue_counter + 1, (size_t)queued * sizeof queue_counter[0]);
    grant(holder, counter);
  }
}

/* Completion handlers run one at a time, so the queue of the mutex needs no lock. */
static void serve(lapi_handle_t *h, void *info)
{
  struct job *job = (struct job *)info;
  const struct request *q = &job->request;
  CHECK_EQ(*h, hndl);
  switch (q->op) {
  case PUT: scatter(job); break;
  case GET: gather_and_reply(job); break;
  case ACCUMULATE: add_up((double *)q->at, job->data, q->rows, q->columns, q->stride, q->scale); break;
  case FETCH_ADD: fetch_and_add(q); break;
  case LOCK: take_mutex(q); break;
  default: give_mutex(q);
  }
  free(job);
  served++;
}

static int last_number[MOST];

static void *request_comes(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                           void **info)
{
  struct job *job = (struct job *)malloc(sizeof *job + *msg_len);
  const lapi_return_info_t *is = (const lapi_return_info_t *)(void *)msg_len;
  (void)h;
  CHECK(job != NULL, "no memory");
  CHECK_EQ(*len, HEADER_BYTES);
  memcpy(&job->request, uhdr, HEADER_BYTES);
  const struct request *q = &job->request;
  CHECK_EQ(is->src, q->from);
  CHECK_EQ(q->number, last_number[q->from] + 1);          /* in the order of sending */
  last_number[q->from] = q->number;
  const int with_data = q->op == PUT || q->op == ACCUMULATE;
  CHECK_EQ(*msg_len, with_data ? (ulong)q->rows * (ulong)q->columns * sizeof(double) : 0);
  job->bytes = *msg_len;
  *comp_h = serve;
  *info = job;
  return with_data ? job->data : NULL;
}

/* --------------------------------------------------------------------- client */

static int sent_to[MOST];

/* Each request has its own header. The header and short data may be reused on return. */
static void request(int op, int to, lapi_long_t at, const double *data, int rows, int columns, lapi_long_t stride,
                    double scale, const void *reply, const lapi_cntr_t *counter, lapi_cntr_t *completed)
{
  const struct request q = { op, me, rows, columns, stride, at, scale, (lapi_long_t)reply,
                             (lapi_long_t)counter, ++sent_to[to] };
  const ulong bytes = data == NULL ? 0 : (ulong)rows * (ulong)columns * sizeof *data;
  char header[HEADER_BYTES];
  memcpy(header, &q, sizeof q);
  LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)SERVE, header, HEADER_BYTES, (void *)data, bytes, NULL, NULL,
                      completed));
  memset(header, 0xdd, sizeof header);
}

/* Puts rows into the client's own strip and reads them back, one element also by LAPI_Get. */
static void strided(int to, int round)
{
  double values[ROWS * COLUMNS], back[ROWS * COLUMNS], one = -1;
  const lapi_long_t at = strips_of[to] + ((lapi_long_t)me * STRIP + (lapi_long_t)(round % 5)) * sizeof(double);
  for (int i = 0; i < ROWS * COLUMNS; i++)
    values[i] = me * 1e6 + round * 100 + i;
  request(PUT, to, at, values, ROWS, COLUMNS, STRIDE, 0, NULL, NULL, &done);
  LAPI_WAIT(&done, 1);
  request(GET, to, at, NULL, ROWS, COLUMNS, STRIDE, 0, back, &replied, NULL);
  LAPI_WAIT(&replied, 1);
  CHECK_BYTES(back, values, sizeof back, "round %d, strip at task %d", round, to);
  LAPI_OK(LAPI_Get(hndl, (uint)to, sizeof one, (void *)(at + (2 * STRIDE + 3) * sizeof(double)), &one, NULL, &done));
  LAPI_WAIT(&done, 1);
  CHECK(one == values[2 * COLUMNS + 3], "LAPI_Get of an element: %g", one);
}

static double *ones;

static void accumulate(int to, int columns)
{
  if (to == me)
    add_up(shared, ones, 1, columns, 0, 2);     /* a task changes its own memory itself */
  else
    request(ACCUMULATE, to, shared_of[to], ones, 1, columns, 0, 2, NULL, NULL, &added);
}

static long ticket_sum, rmw_sum, guarded_adds;

static void fetch(int to)
{
  long was = -1, one = 1, old = -1;
  request(FETCH_ADD, to, 0, NULL, 0, 0, 0, 1, &was, &fetched, NULL);
  LAPI_OK(LAPI_Rmw64(hndl, FETCH_AND_ADD, (uint)to, (long long *)rmw_of[to], (long long *)&one, (long long *)&old,
                     &fetched));
  LAPI_WAIT(&fetched, 2);
  CHECK(was >= 0 && old >= 0, "tickets %ld and %ld", was, old);
  ticket_sum += was;
  rmw_sum += old;
}

/* Reads and writes without an atomic operation, under the mutex of the server. */
static void guarded_add(int to)
{
  long value = -1;
  request(LOCK, to, 0, NULL, 0, 0, 0, 0, NULL, &granted, NULL);
  LAPI_WAIT(&granted, 1);
  LAPI_OK(LAPI_Get(hndl, (uint)to, sizeof value, (void *)guarded_of[to], &value, NULL, &done));
  LAPI_WAIT(&done, 1);
  value++;
  LAPI_OK(LAPI_Put(hndl, (uint)to, sizeof value, (void *)guarded_of[to], &value, NULL, NULL, &done));
  LAPI_WAIT(&done, 1);
  request(UNLOCK, to, 0, NULL, 0, 0, 0, 0, NULL, NULL, NULL);
  guarded_adds++;
}

/* ----------------------------------------------------------------------- main */

static void clients(void)
{
  int accumulated = 0;
  for (int round = 0; round < ROUNDS; round++) {
    const int to = check_random(nproc);
    switch (check_random(4)) {
    case 0: strided(to, round); break;
    case 1: fetch(to); break;
    case 2: guarded_add(to); break;
    default: break;
    }
    /* Rotates over all tasks, so that the sums are known. One in 50 is longer than a packet. */
    const int columns = round % 50 == 7 ? LONG : 16;
    accumulate(round % nproc, columns);
    if (round % nproc != me)
      accumulated++;
  }
  LAPI_WAIT(&added, accumulated);        /* completion handlers have run */
}

static void results(void)
{
  long sums[3] = { ticket_sum, rmw_sum, guarded_adds }, all[3], counts[3] = { tickets, rmw_tickets, guarded }, total[3];
  long pairs[2] = { tickets * (tickets - 1) / 2, rmw_tickets * (rmw_tickets - 1) / 2 }, want[2];
  long asked = 0;
  for (int i = 0; i < nproc; i++)
    asked += sent_to[i];
  CHECK_EQ(holder, -1);
  CHECK_EQ(queued, 0);
  MPI_Allreduce(sums, all, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(pairs, want, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(counts, total, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all[0], want[0]);            /* each ticket is drawn once */
  CHECK_EQ(all[1], want[1]);
  CHECK_EQ(total[0], total[1]);
  CHECK_EQ(all[2], total[2]);           /* no addition is lost */
  CHECK(total[2] > 0, "nobody took a mutex");
  long short_ones = 0, long_ones = 0;
  for (int round = 0; round < ROUNDS; round++)
    if (round % nproc == me)
      *(round % 50 == 7 ? &long_ones : &short_ones) += 1;
  for (int i = 0; i < LONG; i++) {
    const double sum = 2.0 * nproc * (double)(long_ones + (i < 16 ? short_ones : 0));
    CHECK(shared[i] == sum, "element %d is %g, expected %g", i, shared[i], sum);
  }
  long all_asked, all_served, mine = served;
  MPI_Allreduce(&asked, &all_asked, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &all_served, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(all_served, all_asked);
}

int main(int argc, char **argv)
{
  lapi_start("lapi_server", &argc, &argv);
  CHECK(nproc <= MOST, "%d tasks", nproc);
  check_state += (unsigned long long)me * 7919;
  lapi_zero(&done);
  lapi_zero(&replied);
  lapi_zero(&fetched);
  lapi_zero(&granted);
  lapi_zero(&added);
  ones = (double *)check_calloc(LONG * (long)sizeof(double));
  for (int i = 0; i < LONG; i++)
    ones[i] = 1;
  LAPI_OK(LAPI_Addr_set(hndl, (void *)request_comes, SERVE));
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)strips, strips_of));
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)shared, shared_of));
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)&rmw_tickets, rmw_of));
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)&guarded, guarded_of));
  LAPI_OK(LAPI_Gfence(hndl));
  clients();
  /* Unlocks are not counted, but the fetch that follows them in each queue is. */
  for (int to = 0; to < nproc; to++)
    fetch(to);
  MPI_Barrier(MPI_COMM_WORLD);
  results();
  free(ones);
  return lapi_end();
}
