/*
 * Polling mode: handlers run only within calls of their task, on the calling thread. Other
 * operations continue outside of calls.
 */
// TEST: lapi lapi-moving
// TEST: n=3 thread=0 node-size=1
#include "lapi_check.h"

#include <pthread.h>

enum { NOTE = 1, VECTOR = 2, NUMBERED = 3, NOTE_OFTEN = 4 };

/* The completion that a note requests. */
enum { PLAIN, COMPLETED, AT_ONCE };
typedef struct {
  long mode, number;
} note_t;

static volatile int outside, headers, completions, hooks;
static int threads;                 /* handlers may run on the library's threads */
static pthread_t caller;
static unsigned char *room;
static void **flag_of, **word_of, **tgt_of;
static volatile long flag, word;
static lapi_cntr_t tgt, cmpl;
static int has_thread;

enum { LONG = 300000, SHORT = 500 };

static void inside(void)
{
  CHECK(threads || !outside, "a handler ran outside of the calls");
  CHECK(threads || pthread_equal(caller, pthread_self()), "a handler ran on another thread");
}

static void completion(lapi_handle_t *h, void *info)
{
  int value;

  (void)info;
  inside();
  /* a completion handler may communicate and wait */
  LAPI_OK(LAPI_Fence(*h));
  LAPI_OK(LAPI_Qenv(*h, NUM_TASKS, &value));
  completions++;
}

static void quick(lapi_handle_t *h, void *info)
{
  (void)h, (void)info;
  inside();
  completions++;
}

static void *note(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                  void **info)
{
  lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;
  const note_t *n = uhdr;

  (void)h, (void)info;
  CHECK_EQ(*len, sizeof *n);
  inside();
  headers++;
  if (n->mode != PLAIN)
    *comp_h = n->mode == COMPLETED ? completion : quick;
  if (n->mode == AT_ONCE)
    ri->ret_flags = LAPI_SEND_REPLY;
  return *msg_len ? room : NULL;
}

static lapi_vec_t *vector(lapi_handle_t *h, void *uhdr, uint *len, ulong *len_vec,
                          compl_hndlr_t **comp_h, void **info)
{
  static void *at[1];
  static ulong bytes[1];
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, bytes };

  (void)h, (void)uhdr, (void)len, (void)info;
  inside();
  headers++;
  at[0] = room;
  bytes[0] = len_vec[0];
  *comp_h = completion;
  return &v;
}

/* Computes for some seconds outside of all calls. */
static void compute(double seconds)
{
  const double begun = check_seconds();
  while (check_seconds() - begun < seconds)
    sched_yield();
}

/* Numbers of handlers that send_all_kinds() runs by sending one message of each kind. */
enum { HEADERS = 6, COMPLETIONS = 4 };

static unsigned char *data;

static void send_all_kinds(int to)
{
  static void *from[1];
  static ulong length[1];
  lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, from, length };
  note_t n = { PLAIN, 0 };
  const uint task = (uint)to;

  from[0] = data;
  LAPI_OK(LAPI_Amsend(hndl, task, (void *)NOTE, &n, sizeof n, NULL, 0, NULL, NULL, &cmpl));
  LAPI_OK(LAPI_Amsend(hndl, task, (void *)NOTE, &n, sizeof n, data, LONG, NULL, NULL, &cmpl));
  n.mode = COMPLETED;
  LAPI_OK(LAPI_Amsend(hndl, task, (void *)NOTE, &n, sizeof n, data, SHORT, NULL, NULL, &cmpl));
  n.mode = AT_ONCE;
  LAPI_OK(LAPI_Amsend(hndl, task, (void *)NOTE, &n, sizeof n, data, LONG, NULL, NULL, &cmpl));
  length[0] = SHORT;
  LAPI_OK(LAPI_Amsendv(hndl, task, (void *)VECTOR, NULL, 0, &v, NULL, NULL, &cmpl));
  length[0] = LONG;
  LAPI_OK(LAPI_Amsendv(hndl, task, (void *)VECTOR, NULL, 0, &v, NULL, NULL, &cmpl));
}

static void none_while_computing(void)
{
  for (int to = 0; to < nproc && nproc > 1; to++) {
    headers = completions = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    MPI_Barrier(MPI_COMM_WORLD);
    outside = 1;
    if (me == (to + 1) % nproc) {
      outside = 0;
      send_all_kinds(to);
      outside = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == to) {
      compute(1);
      CHECK_EQ(headers, 0);
      CHECK_EQ(completions, 0);
      outside = 0;
      while (completions < COMPLETIONS)
        LAPI_OK(LAPI_Probe(hndl));
      CHECK_EQ(headers, HEADERS);
      CHECK_BYTES(room, data, LONG, "what a vector brought");
    }
    outside = 0;
    if (me == (to + 1) % nproc)
      LAPI_WAIT(&cmpl, HEADERS);
    LAPI_OK(LAPI_Gfence(hndl));
  }
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
  note_t n = { PLAIN, 0 };
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
  case 10:
    LAPI_OK(LAPI_Amsend(hndl, task, (void *)NOTE_OFTEN, &n, sizeof n, NULL, 0, NULL, NULL, NULL));
    break;
  case 11:
    LAPI_OK(LAPI_Amsendv(hndl, task, (void *)(NOTE_OFTEN + 1), NULL, 0, &from, NULL, NULL, NULL));
    break;
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

static void *often(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len, compl_hndlr_t **comp_h,
                   void **info)
{
  (void)h, (void)uhdr, (void)len, (void)msg_len, (void)comp_h, (void)info;
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
    if (me == 0) {
      note_t n = { PLAIN, which };
      LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)NOTE, &n, sizeof n, NULL, 0, NULL, NULL, &cmpl));
    }
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

/* Calls that concern only this task run no handlers. */
static void local_calls(void)
{
  headers = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0 && nproc > 1) {
    note_t n = { PLAIN, 0 };
    LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)NOTE, &n, sizeof n, NULL, 0, NULL, NULL, &cmpl));
  }
  outside = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == nproc - 1) {
    char text[LAPI_MAX_ERR_STRING];
    void *at = NULL;
    int value = 0;
    for (int i = 0; i < 1000; i++) {
      LAPI_OK(LAPI_Addr_set(hndl, (void *)note, NOTE));
      LAPI_OK(LAPI_Addr_get(hndl, &at, NOTE));
      LAPI_OK(LAPI_Setcntr(hndl, &mine, i));
      LAPI_OK(LAPI_Qenv(hndl, TASK_ID, &value));
      LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
      LAPI_OK(LAPI_Msg_string(LAPI_ERR_TGT, text));
    }
    CHECK_EQ(headers, 0);
  }
  outside = 0;
  if (me == 0 && nproc > 1)
    LAPI_WAIT(&cmpl, 1);
  LAPI_OK(LAPI_Gfence(hndl));
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
      note_t n = { PLAIN, 0 };
      lapi_cntr_t done;
      lapi_zero(&done);
      for (int i = 0; i < 100; i++)
        LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)NOTE, &n, sizeof n, data, SHORT, NULL, NULL, &cmpl));
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

/* A fence covers messages that wait at the target. */
static void fences(void)
{
  if (nproc > 1) {
    memset(room, 0, LONG);
    flag = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
      note_t n = { PLAIN, 0 };
      unsigned char *back = check_calloc(LONG);
      lapi_cntr_t got;
      lapi_zero(&got);
      for (int i = 0; i < 3; i++)
        LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)NOTE, &n, sizeof n, data, LONG, NULL, NULL, &cmpl));
      LAPI_OK(LAPI_Fence(hndl));
      LAPI_OK(LAPI_Get(hndl, (uint)(nproc - 1), LONG, tgt_of[nproc - 1], back, NULL, &got));
      LAPI_WAIT(&got, 1);
      CHECK_BYTES(back, data, LONG, "behind a fence");
      long seen = 0;
      LAPI_OK(LAPI_Get(hndl, (uint)(nproc - 1), 8, flag_of[nproc - 1], &seen, NULL, &got));
      LAPI_WAIT(&got, 1);
      CHECK_EQ(seen, 1);            /* the fence waited until then */
      LAPI_WAIT(&cmpl, 3);
      free(back);
    } else if (me == nproc - 1) {
      outside = 1;
      compute(0.3);
      outside = 0;
      flag = 1;
    }
  }
  LAPI_OK(LAPI_Gfence(hndl));
}

/* ------------------------------------------------------------ back-pressure */

static long next_of[64];

static void *numbered(lapi_handle_t *h, void *uhdr, uint *len, ulong *msg_len,
                      compl_hndlr_t **comp_h, void **info)
{
  const lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;
  const note_t *n = uhdr;

  (void)h, (void)len, (void)comp_h, (void)info;
  inside();
  CHECK_EQ(n->number, next_of[ri->src]);
  next_of[ri->src]++;
  return *msg_len ? room : NULL;
}

/* All tasks send to all, more than a target can hold, and one computes at first. */
static void floods(void)
{
  enum { N = 6000, BYTES = 2000 };

  memset(next_of, 0, sizeof next_of);
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == nproc - 1) {
    outside = 1;
    compute(0.3);
    outside = 0;
  }
  for (long i = 0; i < N; i++)
    for (int to = 0; to < nproc; to++) {
      note_t n = { PLAIN, i };
      LAPI_OK(LAPI_Amsend(hndl, (uint)to, (void *)NUMBERED, &n, sizeof n, data, BYTES, NULL, NULL, NULL));
    }
  LAPI_OK(LAPI_Gfence(hndl));
  for (int from = 0; from < nproc; from++)
    CHECK_EQ(next_of[from], N);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* ------------------------------------------- handlers that run at the origin */

static void left(lapi_handle_t *h, void *info, lapi_sh_info_t *state)
{
  (void)h, (void)info, (void)state;
  inside();
  hooks++;
}

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
  note_t n = { PLAIN, 0 };
  lapi_xfer_t x;

  hooks = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  memset(&x, 0, sizeof x);
  x.Am.Xfer_type = LAPI_AM_XFER;
  x.Am.tgt = (uint)to;
  x.Am.hdr_hdl = NOTE;
  x.Am.uhdr = &n;
  x.Am.uhdr_len = sizeof n;
  x.Am.udata = data;
  x.Am.udata_len = LONG;
  x.Am.shdlr = left;
  LAPI_OK(LAPI_Xfer(hndl, &x));
  memset(&x, 0, sizeof x);
  x.Get.Xfer_type = LAPI_GET_XFER;
  x.Get.tgt = (uint)to;
  x.Get.tgt_addr = (lapi_long_t)tgt_of[to];
  x.Get.org_addr = back;
  x.Get.len = LONG;
  x.Get.chndlr = got;
  LAPI_OK(LAPI_Xfer(hndl, &x));
  outside = 1;
  compute(0.1);
  outside = 0;
  while (hooks < 2)
    LAPI_OK(LAPI_Probe(hndl));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(hooks, 2);
}

int main(int argc, char **argv)
{
  lapi_info_t info;
  int value;

  lapi_start("lapi_polling", &argc, &argv);
  CHECK(nproc <= 64, "at most 64 ranks");
  caller = pthread_self();
  threads = 1;
  CHECK_OK(ARMCI_Init());
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK_EQ(value, 1);               /* the default */
  LAPI_OK(LAPI_Qenv(hndl, USE_THRESH, &has_thread));
  room = check_calloc(LONG);
  data = check_calloc(LONG);
  check_fill(data, 7, LONG);
  lapi_zero(&tgt);
  lapi_zero(&cmpl);
  tgt_of = lapi_exchange(room);
  flag_of = lapi_exchange((void *)&flag);
  word_of = lapi_exchange((void *)&word);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)note, NOTE));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)vector, VECTOR));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)numbered, NUMBERED));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)often, NOTE_OFTEN));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)often_vector, NOTE_OFTEN + 1));
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Senv(hndl, INTERRUPT_SET, 0));
  threads = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  none_while_computing();
  each_call();
  local_calls();
  others_go_on();
  fences();
  floods();
  at_the_origin();
  LAPI_OK(LAPI_Term(hndl));

  memset(&info, 0, sizeof info);    /* polling mode from the start */
  info.protocol = (lapi_dev_t)(LAPI_INTERRUPT_OFF | LAPI_SHARE_PROTOCOL);
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Qenv(hndl, INTERRUPT_SET, &value));
  CHECK_EQ(value, 0);
  headers = completions = 0;
  if (me == 0 && nproc > 1)         /* before any task has set the index */
    send_all_kinds(nproc - 1);
  outside = 1;
  compute(0.1);
  CHECK_EQ(headers, 0);
  outside = 0;
  LAPI_OK(LAPI_Addr_set(hndl, (void *)note, NOTE));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)vector, VECTOR));
  if (me == 0 && nproc > 1)
    LAPI_WAIT(&cmpl, HEADERS);
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == nproc - 1 && nproc > 1)
    CHECK_EQ(headers, HEADERS);
  CHECK_OK(ARMCI_Finalize());
  free(tgt_of);
  free(flag_of);
  free(word_of);
  free(room);
  free(data);
  return lapi_end();
}
