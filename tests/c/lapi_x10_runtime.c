/*
 * A runtime for X10 over LAPI, modelled on X10Lib's: polling mode, all state under the lock of
 * LAPI_Util, asyncs as active messages with 4-byte headers, array copies with switches, and a
 * finish over all places that counts the asyncs spawned per place. A second thread of each place
 * takes asyncs from the queue that handlers fill; only the lock protects the queue.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

#include <pthread.h>

enum { ASYNC = 1, COPIED, VECTOR, ENDED, PLACES = 64, CELLS = 4096, DEPTH = 6, WIDTH = 3, ROUNDS = 4 };

static lapi_thread_func_t tf;
static int here, places;

static void rt_lock(void) { CHECK_EQ(tf.mutex_lock(hndl), 0); }
static void rt_unlock(void) { CHECK_EQ(tf.mutex_unlock(hndl), 0); }

/* ------------------------------------------------------------------- switches */

/* On when nothing is outstanding. Completion handlers of copies run without the lock. */
struct rt_switch { long outstanding; };

static void rt_switch_wait(struct rt_switch *s)
{
  while (__atomic_load_n(&s->outstanding, __ATOMIC_ACQUIRE) > 0)
    LAPI_OK(LAPI_Probe(hndl));
}

/* ---------------------------------------------------------------- array copies */

static long cells[CELLS];
static lapi_long_t cells_of[PLACES];
static long notices;

static void copy_has_left(lapi_handle_t *h, void *info, lapi_sh_info_t *what)
{
  (void)h;
  CHECK_EQ(what->reason, LAPI_SUCCESS);
  __atomic_fetch_sub(&((struct rt_switch *)info)->outstanding, 1, __ATOMIC_ACQ_REL);
}

/* The header is the 4-byte index of the first destination cell. */
static void *copy_comes(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                        void **info)
{
  int index;
  (void)h, (void)info;
  CHECK_EQ(*len, sizeof index);
  memcpy(&index, uhdr, sizeof index);
  CHECK(index >= 0 && (ulong)index * sizeof(long) + *msg_len <= sizeof cells, "a copy to cell %d", index);
  notices++;
  *comp_h = NULL;
  return cells + index;
}

static void rt_array_put(const long *from, int place, int index, int count, struct rt_switch *s)
{
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Am.Xfer_type = LAPI_AM_XFER;
  x.Am.tgt = (uint)place;
  x.Am.hdr_hdl = COPIED;
  x.Am.uhdr = &index;
  x.Am.uhdr_len = sizeof index;
  x.Am.udata = (void *)from;
  x.Am.udata_len = (ulong)count * sizeof *from;
  x.Am.shdlr = copy_has_left;
  x.Am.sinfo = s;
  __atomic_fetch_add(&s->outstanding, 1, __ATOMIC_ACQ_REL);
  LAPI_OK(LAPI_Xfer(hndl, &x));
}

static void copy_is_here(lapi_handle_t *h, void *info)
{
  (void)h;
  __atomic_fetch_sub(&((struct rt_switch *)info)->outstanding, 1, __ATOMIC_ACQ_REL);
}

static void rt_array_get(long *to, int place, int index, int count, struct rt_switch *s)
{
  lapi_xfer_t x;
  memset(&x, 0, sizeof x);
  x.Get.Xfer_type = LAPI_GET_XFER;
  x.Get.tgt = (uint)place;
  x.Get.tgt_addr = cells_of[place] + (lapi_long_t)index * sizeof *to;
  x.Get.org_addr = to;
  x.Get.len = (ulong)count * sizeof *to;
  x.Get.chndlr = copy_is_here;
  x.Get.cinfo = s;
  __atomic_fetch_add(&s->outstanding, 1, __ATOMIC_ACQ_REL);
  LAPI_OK(LAPI_Xfer(hndl, &x));
}

/* ------------------------------------------------------------- asyncs and finish */

/* Asyncs that this place has spawned at each place, less those it has run. The sum over all places
 * is zero for each place if no async is running or in flight. */
static int owed[PLACES];
/* At place 0: the vector that each place last sent, and whether it has sent one. */
static int published[PLACES][PLACES], has_published[PLACES];
static volatile int finished;

struct async { int depth, from; };

static struct async queue[1 << 16];
static volatile int queue_first, queue_last;
static volatile long ran_here, ran_by_thread;
static int running;             /* asyncs taken from the queue and not yet finished */
static volatile int worker_ends;

/* The header is one word that holds depth and origin. */
static void *async_comes(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                         void **info)
{
  int word;
  (void)h, (void)info;
  CHECK_EQ(*len, sizeof word);
  CHECK_EQ(*msg_len, 0);
  memcpy(&word, uhdr, sizeof word);
  CHECK(queue_last < (int)(sizeof queue / sizeof queue[0]), "the queue is full");
  const int last = queue_last;
  queue[last].depth = word & 0xff;
  queue[last].from = word >> 8;
  sched_yield();                /* makes a failure of the lock visible */
  queue_last = last + 1;
  *comp_h = NULL;
  return NULL;
}

/* The caller holds the lock. */
static void rt_async(int place, int depth)
{
  const int word = depth | here << 8;
  lapi_xfer_t x;
  owed[place]++;
  memset(&x, 0xa5, sizeof x);   /* a light message does not read the other fields */
  x.Am.Xfer_type = LAPI_AM_LW_XFER;
  x.Am.flags = 0;
  x.Am.tgt = (uint)place;
  x.Am.hdr_hdl = ASYNC;
  x.Am.uhdr = (void *)&word;
  x.Am.uhdr_len = sizeof word;
  x.Am.udata = NULL;
  x.Am.udata_len = 0;
  LAPI_OK(LAPI_Xfer(hndl, &x));
}

/* Takes one async and runs it; returns 0 if the queue is empty. The caller holds the lock, but a
 * send from the async may release it. */
static int rt_run_one(volatile long *count)
{
  if (queue_first == queue_last)
    return 0;
  const struct async a = queue[queue_first];
  queue_first = queue_first + 1;
  running++;
  if (a.depth > 0)
    for (int i = 0; i < WIDTH; i++)
      rt_async((here * 7 + a.from * 3 + a.depth + i) % places, a.depth - 1);
  owed[here]--;
  running--;
  *count = *count + 1;
  return 1;
}

static void *worker(void *ignored)
{
  (void)ignored;
  while (!worker_ends) {
    rt_lock();
    const int any = rt_run_one(&ran_by_thread);
    rt_unlock();
    if (!any)
      lapi_nap(1);
  }
  return NULL;
}

static void *vector_comes(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                          void **info)
{
  int place;
  const lapi_return_info_t *is = (const lapi_return_info_t *)(void *)msg_len;
  (void)h, (void)info;
  CHECK_EQ(*len, sizeof place);
  memcpy(&place, uhdr, sizeof place);
  CHECK_EQ(*msg_len, (ulong)places * sizeof(int));
  CHECK(is->udata_one_pkt_ptr != NULL, "a short vector did not come whole");
  memcpy(published[place], is->udata_one_pkt_ptr, *msg_len);
  has_published[place] = 1;
  *comp_h = NULL;
  return NULL;
}

static void *end_comes(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                       void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)info;
  finished = finished + 1;
  *comp_h = NULL;
  return NULL;
}

/* Returns whether the last vectors of all places sum to zero. A new vector replaces the place's
 * last one. The zero sums hold for one moment, because a place with outstanding asyncs has sent a
 * vector that counts them before, or sends one afterwards. */
static int all_done(void)
{
  int sum[PLACES] = { 0 };
  for (int p = 0; p < places; p++) {
    if (!has_published[p])
      return 0;
    for (int q = 0; q < places; q++)
      sum[q] += published[p][q];
  }
  for (int q = 0; q < places; q++)
    if (sum[q] != 0)
      return 0;
  return 1;
}

/* Runs asyncs until no place has any left. The caller holds the lock from start to end. */
static void rt_finish(lapi_group_t everywhere)
{
  int last[PLACES], have_last = 0;
  const int want = finished + 1;
  for (;;) {
    while (rt_run_one(&ran_here))
      ;
    if (running == 0 && (!have_last || memcmp(last, owed, sizeof last) != 0)) {
      lapi_cntr_t left;
      memcpy(last, owed, sizeof last);
      have_last = 1;
      LAPI_OK(LAPI_Setcntr(hndl, &left, 0));
      LAPI_OK(LAPI_Amsend(hndl, 0, (void *)VECTOR, &here, sizeof here, last, (ulong)places * sizeof(int), NULL,
                          &left, NULL));
      LAPI_WAIT(&left, 1);
    }
    if (here == 0 && finished < want && queue_first == queue_last && all_done()) {
      lapi_xfer_t x;
      memset(has_published, 0, sizeof has_published);
      memset(&x, 0, sizeof x);
      x.Mc.Xfer_type = LAPI_MC_XFER;
      x.Mc.group = everywhere;
      x.Mc.hdr_hdl = ENDED;
      x.Mc.uhdr = &here;
      x.Mc.uhdr_len = sizeof here;
      LAPI_OK(LAPI_Xfer(hndl, &x));
    }
    if (finished == want)
      break;
    LAPI_OK(LAPI_Probe(hndl));
  }
}

/* -------------------------------------------------------------------- programs */

/* Every place spawns trees of asyncs on arbitrary places. */
static void trees(lapi_group_t everywhere)
{
  long want = 0, level = 1, mine, all;
  for (int i = 0; i <= DEPTH; i++, level *= WIDTH)
    want += level;
  for (int round = 0; round < ROUNDS; round++) {
    LAPI_OK(LAPI_Gfence(hndl));
    ran_here = ran_by_thread = 0;
    queue_first = queue_last = 0;
    memset(owed, 0, sizeof owed);
    memset(has_published, 0, sizeof has_published);
    LAPI_OK(LAPI_Gfence(hndl));
    for (int p = 0; p < places; p++)
      rt_async((here + p + round) % places, DEPTH);
    rt_finish(everywhere);
    CHECK_EQ(queue_first, queue_last);
    mine = ran_here + ran_by_thread;
    LAPI_OK(LAPI_Gfence(hndl));
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, want * places * places);
  }
}

/* Each place puts a part into every other place's array and reads it back. */
static void copies(void)
{
  static long from[CELLS], back[CELLS];
  struct rt_switch puts = { 0 }, gets = { 0 };
  const int part = CELLS / places;
  for (int round = 1; round <= 20; round++) {
    const int count = round % 4 == 0 ? part : round;
    notices = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    for (int i = 0; i < count; i++)
      from[i] = here * 1000000L + round * 10000L + i;
    for (int p = 0; p < places; p++)
      rt_array_put(from, p, here * part, count, &puts);
    rt_switch_wait(&puts);
    LAPI_OK(LAPI_Gfence(hndl));
    CHECK_EQ(notices, places);
    for (int p = 0; p < places; p++)
      for (int i = 0; i < count; i++)
        CHECK_EQ(cells[p * part + i], p * 1000000L + round * 10000L + i);
    for (int p = 0; p < places; p++)
      rt_array_get(back + p * part, p, here * part, count, &gets);
    rt_switch_wait(&gets);
    for (int p = 0; p < places; p++)
      CHECK_BYTES(back + p * part, from, count * (long)sizeof(long), "the part at place %d", p);
  }
  LAPI_OK(LAPI_Gfence(hndl));
}

int main(int argc, char **argv)
{
  pthread_t thread;
  uint list[PLACES];
  lapi_group_t everywhere;
  int polling = -1;

  lapi_start("lapi_x10_runtime", &argc, &argv);
  here = me;
  places = nproc;
  CHECK(places <= PLACES, "%d places", places);
  LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &polling));
  CHECK_EQ(polling, 0);
  tf.Util_type = LAPI_GET_THREAD_FUNC;
  LAPI_OK(LAPI_Util(hndl, (lapi_util_t *)&tf));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)async_comes, ASYNC));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)copy_comes, COPIED));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)vector_comes, VECTOR));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)end_comes, ENDED));
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)cells, cells_of));
  for (int i = 0; i < places; i++)
    list[i] = (uint)i;
  LAPI_OK(LAPI_Group_create(hndl, (uint)places, list, &everywhere));
  LAPI_OK(LAPI_Gfence(hndl));
  rt_lock();                    /* held to the end; calls that wait or poll release it */
  CHECK_EQ(pthread_create(&thread, NULL, worker, NULL), 0);
  trees(everywhere);
  copies();
  worker_ends = 1;
  rt_unlock();
  CHECK_EQ(pthread_join(thread, NULL), 0);
  LAPI_OK(LAPI_Group_free(hndl, everywhere));
  return lapi_end();
}
