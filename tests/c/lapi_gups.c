/*
 * RandomAccess over active messages in polling mode. A table is distributed over all tasks, and
 * each task applies T[i] ^= a to it. Messages carry several updates, and their header handlers
 * change the table without a lock, while the task changes its own words in the same way. Applying
 * all updates a second time must restore the table exactly: only polling mode prevents the two from
 * overlapping.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

enum { UPDATE = 1, BATCH = 60, LOG_WORDS = 10 };
#define UPDATES (8l << LOG_WORDS)

typedef unsigned long long word_t;

static word_t table[1 << LOG_WORDS];
static volatile int own;            /* the task itself changes its table */
static long received, sent_to[64];
static lapi_cntr_t org;

static void *update(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **info)
{
  const word_t *a = uhdr;

  (void)h, (void)msg_len, (void)comp_h, (void)info;
  CHECK(!own, "a handler ran while the task was at its table");
  CHECK(*len % sizeof *a == 0, "%u bytes of updates", *len);
  for (uint i = 0; i < *len / sizeof *a; i++)
    table[a[i] & ((1 << LOG_WORDS) - 1)] ^= a[i];
  received += *len / (long)sizeof *a;
  return NULL;
}

static word_t next(word_t a)
{
  return (a << 1) ^ ((long long)a < 0 ? 7 : 0);
}

/* Task and word of an update. The high bits select the task. */
static int task_of(word_t a)
{
  return (int)((a >> 40) % (word_t)nproc);
}

static void send(int to, word_t *batch, int *n)
{
  if (*n == 0)
    return;
  LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)UPDATE, batch, (uint)(*n * (int)sizeof *batch), NULL,
                      0, NULL, &org, NULL));
  sent_to[to] += *n;
  *n = 0;
}

static void all_updates(word_t seed)
{
  static word_t batch[64][BATCH];
  static int filled[64];
  word_t a = seed;

  for (long i = 0; i < UPDATES; i++) {
    a = next(a);
    const int to = task_of(a);
    if (to == me) {
      /* slow, so that a handler on another thread would interfere */
      word_t *t = &table[a & ((1 << LOG_WORDS) - 1)];
      own = 1;
      const word_t was = *(volatile word_t *)t;
      for (volatile int k = 0; k < 20; k++)
        ;
      *(volatile word_t *)t = was ^ a;
      own = 0;
    } else {
      batch[to][filled[to]++] = a;
      if (filled[to] == BATCH)
        send(to, batch[to], &filled[to]);
    }
    if (i % 1024 == 0)
      LAPI_OK(LAPI_Probe(hndl));
  }
  for (int to = 0; to < nproc; to++)
    send(to, batch[to], &filled[to]);
  LAPI_OK(LAPI_Gfence(hndl));
}

int main(int argc, char **argv)
{
  const int rounds = argc > 1 ? atoi(argv[1]) : 10;

  lapi_start("lapi_gups", &argc, &argv);
  CHECK(nproc <= 64, "at most 64 ranks");
  LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)update, UPDATE));
  lapi_zero(&org);
  for (int round = 0; round < rounds; round++) {
    const word_t seed = 0x9e3779b97f4a7c15ull * (word_t)(round * 64 + me + 1) | 1;
    long mine = 0, total = 0, want = 0, there = 0;
    word_t changed = 0;

    received = 0;
    memset(sent_to, 0, sizeof sent_to);
    for (long i = 0; i < 1 << LOG_WORDS; i++)
      table[i] = (word_t)(i + me);
    LAPI_OK(LAPI_Gfence(hndl));
    all_updates(seed);
    for (long i = 0; i < 1 << LOG_WORDS; i++)
      changed |= table[i] ^ (word_t)(i + me);
    CHECK(changed != 0, "nothing has changed");
    all_updates(seed);
    for (long i = 0; i < 1 << LOG_WORDS; i++)
      CHECK(table[i] == (word_t)(i + me), "word %ld is %llx in round %d", i, table[i], round);
    for (int to = 0; to < nproc; to++)
      mine += sent_to[to];
    MPI_Allreduce(&mine, &want, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    total = received;
    MPI_Allreduce(&total, &there, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(there, want);
    CHECK(nproc == 1 || want > 0, "no updates were sent");
  }
  return lapi_end();
}
