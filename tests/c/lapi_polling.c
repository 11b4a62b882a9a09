/*
 * Polling mode: which calls run handlers, and which operations continue outside of calls. The check
 * `lapi` of tests/ranks tests that handlers run only in calls, on the calling thread.
 */
// TEST: lapi lapi-moving
// TEST: n=3 thread=0 node-size=1
#include "lapi_check.h"

#include <pthread.h>

enum { NOTE = 1, OFTEN, LONG = 300000, SHORT = 500 };

static volatile int outside, headers, hooks;
static int threads;                 /* handlers may run on the library's threads */
static pthread_t caller;
static unsigned char *room, *data;
static void **flag_of, **word_of, **room_of;
static volatile long flag, word;
static lapi_cntr_t cmpl;
static int has_thread;

static void inside(void)
{
  CHECK(threads || !outside, "a handler ran outside of the calls");
  CHECK(threads || pthread_equal(caller, pthread_self()), "a handler ran on another thread");
}

HEADER_HANDLER(note)
{
  inside();
  headers++;
  return *msg_len ? room : NULL;
}

static void send_note(int to, ulong bytes)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)NOTE, NULL, 0, data, bytes, NULL, NULL, &cmpl));
}

/* Computes for some seconds outside of all calls. */
static void compute(double seconds)
{
  const double begun = check_seconds();
  while (check_seconds() - begun < seconds)
    sched_yield();
}

/* ----------------------------------------------------- each of the calls */

static long here, there;
static void **there_of;
static void *vec_from[1] = { &here };
static void *vec_to[1];
static ulong vec_bytes[1] = { sizeof here };
static lapi_cntr_t mine;

static void call(int which, int to)
{
  lapi_vec_t from = { LAPI_GEN_IOVECTOR, 1, vec_from, vec_bytes };
  lapi_vec_t into = { LAPI_GEN_IOVECTOR, 1, vec_to, vec_bytes };
  lapi_msg_info_t state;
  lapi_xfer_t x;
  const uint task = (uint)to;
  int value, one = 1;

  vec_to[0] = there_of[to];
  switch (which) {
  case 0: LAPI_OK(LAPI_Probe(hndl)); break;
  case 1: LAPI_OK(LAPI_Msgpoll(hndl, 1, &state)); break;
  case 2: LAPI_OK(LAPI_Getcntr(hndl, &mine, &value)); break;
  case 3: LAPI_OK(LAPI_Waitcntr(hndl, &mine, 0, &value)); break;
  case 4: LAPI_OK(LAPI_Fence(hndl)); break;
  case 5: LAPI_OK(LAPI_Put(hndl, task, sizeof here, there_of[to], &here, NULL, NULL, NULL)); break;
  case 6: LAPI_OK(LAPI_Get(hndl, task, sizeof here, there_of[to], &here, NULL, NULL)); break;
  case 7: LAPI_OK(LAPI_Putv(hndl, task, &into, &from, NULL, NULL, NULL)); break;
  case 8: LAPI_OK(LAPI_Getv(hndl, task, &into, &from, NULL, NULL)); break;
  case 9: LAPI_OK(LAPI_Rmw(hndl, FETCH_AND_ADD, task, (int *)there_of[to], &one, NULL, NULL)); break;
  case 10: LAPI_OK(LAPI_Amsend(hndl, task, (void *)OFTEN, NULL, 0, NULL, 0, NULL, NULL, NULL)); break;
  case 11: LAPI_OK(LAPI_Amsendv(hndl, task, (void *)(OFTEN + 1), NULL, 0, &from, NULL, NULL, NULL)); break;
  case 12:
    memset(&x, 0, sizeof x);
    x.Put.Xfer_type = LAPI_PUT_XFER;
    x.Put.tgt = task;
    x.Put.tgt_addr = (lapi_long_t)there_of[to];
    x.Put.org_addr = &here;
    x.Put.len = sizeof here;
    LAPI_OK(LAPI_Xfer(hndl, &x));
    break;
  case 13:
    LAPI_OK(LAPI_Setcntr(hndl, &mine, 1));
    LAPI_OK(LAPI_Nopoll_wait(hndl, &mine, 1, &value));
    break;
  }
}
enum { CALLS = 14 };

HEADER_HANDLER(often)
{
  inside();
  return NULL;
}

static lapi_vec_t *often_vector(lapi_handle_t *h, void *uhdr, uint *len, ulong *len_vec,
                                compl_hndlr_t **comp_h, void **info)
{
  static long taken;
  static void *at[1] = { &taken };
  static ulong bytes[1] = { sizeof taken };
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, bytes };

  (void)h, (void)uhdr, (void)len, (void)len_vec, (void)comp_h, (void)info;
  inside();
  return &v;
}

static void each_call(void)
{
  there_of = lapi_exchange(&there);
  lapi_zero(&mine);
  for (int which = 0; which < CALLS && nproc > 1; which++) {
    headers = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    MPI_Barrier(MPI_COMM_WORLD);    /* no task is in a LAPI call now */
    if (me == 0)
      send_note(nproc - 1, 0);
    outside = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == nproc - 1) {
      CHECK_EQ(headers, 0);
      outside = 0;
      while (headers == 0)          /* MPI may deliver it after the barrier */
        call(which, 0);
    }
    outside = 0;
    if (me == 0)
      LAPI_WAIT(&cmpl, 1);
    LAPI_OK(LAPI_Gfence(hndl));
  }
  free(there_of);
}

/* ------------------------------------------------ what does not wait for calls */

/* Puts, gets, read-modify-writes and all of ARMCI continue while handlers wait. */
static void others_go_on(void)
{
  void **base = check_segment(64);
  const int to = nproc - 1;

  if (nproc > 1 && has_thread) {
    headers = 0;
    flag = word = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
      long seen = -1, one = 1, scale = 1, ten = 10;
      lapi_cntr_t done;
      lapi_zero(&done);
      for (int i = 0; i < 100; i++)
        send_note(to, SHORT);
      CHECK_OK(ARMCI_Put(&ten, base[to], 8, to));
      CHECK_OK(ARMCI_Acc(ARMCI_ACC_LNG, &scale, &one, base[to], 8, to));
      ARMCI_Fence(to);              /* covers ARMCI operations, not the waiting messages */
      CHECK_OK(ARMCI_Get(base[to], &seen, 8, to));
      CHECK_EQ(seen, 11);
      CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &seen, base[to], 5, to));
      CHECK_EQ(seen, 11);
      LAPI_OK(LAPI_Rmw64(hndl, FETCH_AND_ADD, (uint)to, word_of[to], (long long *)&ten, (long long *)&seen, &done));
      LAPI_WAIT(&done, 1);
      CHECK_EQ(seen, 0);
      LAPI_OK(LAPI_Get(hndl, (uint)to, 8, word_of[to], &seen, NULL, &done));
      LAPI_WAIT(&done, 1);
      CHECK_EQ(seen, 10);
      LAPI_OK(LAPI_Put(hndl, (uint)to, 8, flag_of[to], &one, NULL, NULL, &done));
      LAPI_WAIT(&done, 1);
    } else if (me == to) {
      outside = 1;
      while (!flag)                 /* makes no call until rank 0 has finished */
        sched_yield();
      CHECK_EQ(headers, 0);
      outside = 0;
      while (headers < 100)
        LAPI_OK(LAPI_Probe(hndl));
    }
    if (me == 0)
      LAPI_WAIT(&cmpl, 100);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  check_free_segment(base);
}

/* --------------------------------------- the handler of a get, at the origin */

static void got(lapi_handle_t *h, void *info)
{
  (void)h, (void)info;
  inside();
  hooks++;
}

static void at_the_origin(void)
{
  const int to = (me + 1) % nproc;
  static unsigned char back[LONG];
  lapi_xfer_t x;

  hooks = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  memset(&x, 0, sizeof x);
  x.Get.Xfer_type = LAPI_GET_XFER;
  x.Get.tgt = (uint)to;
  x.Get.tgt_addr = (lapi_long_t)room_of[to];
  x.Get.org_addr = back;
  x.Get.len = LONG;
  x.Get.chndlr = got;
  LAPI_OK(LAPI_Xfer(hndl, &x));
  outside = 1;
  compute(0.1);
  outside = 0;
  while (hooks < 1)
    LAPI_OK(LAPI_Probe(hndl));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(hooks, 1);
}

int main(int argc, char **argv)
{
  lapi_info_t info;
  int value;

  lapi_start("lapi_polling", &argc, &argv);
  caller = pthread_self();
  threads = 1;
  CHECK_OK(ARMCI_Init());
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK_EQ(value, 1);               /* the default */
  LAPI_OK(LAPI_Qenv(hndl, USE_THRESH, &has_thread));
  room = check_calloc(LONG);
  data = check_calloc(LONG);
  check_fill(data, 7, LONG);
  lapi_zero(&cmpl);
  room_of = lapi_exchange(room);
  flag_of = lapi_exchange((void *)&flag);
  word_of = lapi_exchange((void *)&word);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)note, NOTE));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)often, OFTEN));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)often_vector, OFTEN + 1));
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  threads = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  each_call();
  others_go_on();
  at_the_origin();
  LAPI_OK(LAPI_Term(hndl));

  memset(&info, 0, sizeof info);    /* polling mode from the start */
  info.protocol = (lapi_dev_t)(LAPI_INTERRUPT_OFF | LAPI_SHARE_PROTOCOL);
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK_EQ(value, 0);
  headers = 0;
  if (me == 0 && nproc > 1)         /* before any task has set the index */
    send_note(nproc - 1, LONG);
  outside = 1;
  compute(0.1);
  CHECK_EQ(headers, 0);
  outside = 0;
  LAPI_OK(LAPI_Addr_set(hndl, (void *)note, NOTE));
  if (me == 0 && nproc > 1)
    LAPI_WAIT(&cmpl, 1);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(headers, me == nproc - 1 && nproc > 1);
  CHECK_OK(ARMCI_Finalize());
  free(room_of);
  free(flag_of);
  free(word_of);
  free(room);
  free(data);
  return lapi_end();
}
