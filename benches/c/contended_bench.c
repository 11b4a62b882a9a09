/*
 * Operations in which ranks wait for each other, for machines on which other work competes for the
 * cores. scripts/bench.py contended creates that work and runs the programs.
 *
 *   mpiexec -n N contended_bench [--seconds S] [--only CASE,...] [--skip CASE,...]
 *
 * One source makes three programs: with -DPEER=1 the cases of any ARMCI, with -DPEER=2 those of MPI
 * alone, otherwise all cases of Portolan. Each case runs for S seconds (0.5). Prints
 * `case<TAB>value`, the mean microseconds of an operation:
 *   barrier      ARMCI_Barrier or MPI_Barrier
 *   allreduce8   armci_msg_dgop or MPI_Allreduce of 8 bytes
 *   round_trip   rank 0 and rank 1 send 8 bytes there and back: armci_msg_snd, or MPI_Send
 *   notify       the same with ARMCI_Put and armci_notify
 *   lock         ARMCI_Lock and ARMCI_Unlock of one mutex by all ranks, per pair of calls
 *   fetch_add    of rank 0 to rank 1, which computes
 *   message      LAPI_Amsend until the counter of its completion has returned
 *   null_call    HG_Forward, while the server waits
 *   futex        two processes that wake each other through futex words: the limit
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PEER
#define PEER 0
#endif
#if PEER != 2
#include <armci.h>
#endif
#if PEER == 0
#include <lapi.h>
#include <mercury.h>
#include <mercury_macros.h>
#endif

#include "bench.h"

enum { TAG = 7 };

static double seconds = 0.5;
static int me, ranks;

/* Returns the answer of rank 0. */
static int agreed(int yes)
{
#if PEER == 2
  MPI_Bcast(&yes, 1, MPI_INT, 0, MPI_COMM_WORLD);
#else
  armci_msg_brdcst(&yes, sizeof yes, 0);
#endif
  return yes;
}

static void meet(void)
{
#if PEER == 2
  MPI_Barrier(MPI_COMM_WORLD);
#else
  ARMCI_Barrier();
#endif
}

static void result(const char *name, double time, long operations)
{
  if (me == 0)
    report(name, time / (double)operations * 1e6);
}

/* All ranks call the operation, in batches of about 2 ms. The time between batches is not counted. */
static void together(const char *name, operation op)
{
  double spent = 0;
  long done = 0, batch = 1;
  if (!wanted(name))
    return;
  meet();
  do {
    const double begun = now();
    for (long i = 0; i < batch; i++)
      op();
    spent += now() - begun;
    done += batch;
    const int grow = agreed(batch < 1 << 14 && spent / (double)done * (double)batch < 2e-3);
    if (grow)
      batch *= 2;
  } while (agreed(spent < seconds));
  result(name, spent, done);
}

/* Rank 0 calls the operation, while the others call `other` until rank 0 says that they stop. */
static void alone(const char *name, operation op, operation other, operation stop)
{
  if (!wanted(name))
    return;
  meet();
  if (me == 0) {
    const double begun = now();
    double spent = 0;
    long done = 0;
    for (; spent < seconds; done++) {
      op();
      spent = now() - begun;
    }
    stop();
    result(name, spent, done);
  } else if (other) {
    other();
  }
  meet();
}

/* ---------------------------------------------------------------------------- cases */

static double value = 1;

static void barrier(void) { meet(); }

static void allreduce8(void)
{
#if PEER == 2
  double sum;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
  static char plus[] = "+";
  value = 1;
  armci_msg_dgop(&value, 1, plus);
#endif
}

static void send8(long word, int to)
{
#if PEER == 2
  MPI_Send(&word, 8, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
#else
  armci_msg_snd(TAG, &word, 8, to);
#endif
}

static long receive8(int from)
{
  long word = 0;
#if PEER == 2
  MPI_Recv(&word, 8, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
  int length;
  armci_msg_rcv(TAG, &word, 8, &length, from);
#endif
  return word;
}

static void ping(void)
{
  send8(1, 1);
  receive8(1);
}

static void pong(void)
{
  long go_on = me == 1;
  while (go_on) {
    go_on = receive8(0);
    send8(go_on, 0);
  }
}

static void end_pong(void)
{
  send8(0, 1);
  receive8(1);
}

#if PEER == 2
/* Two words of shared memory, each changed by one process and slept on by the other. */
static uint32_t *bells;

static void ring(uint32_t *bell, uint32_t number)
{
  __atomic_store_n(bell, number, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void heard(const uint32_t *bell, uint32_t before)
{
  while (__atomic_load_n(bell, __ATOMIC_SEQ_CST) == before)
    syscall(SYS_futex, bell, FUTEX_WAIT, before, NULL, NULL, 0);
}

static uint32_t rings;

static void futex_ping(void)
{
  rings = rings % 1000000 + 1;
  const uint32_t before = bells[16];
  ring(&bells[0], rings);
  heard(&bells[16], before);
}

static void futex_pong(void)
{
  uint32_t before = 0;
  while (me == 1 && before != UINT32_MAX) {
    heard(&bells[0], before);
    before = bells[0];
    ring(&bells[16], before);
  }
}

static void end_futex(void) { ring(&bells[0], UINT32_MAX); }

static void futex(void)
{
  MPI_Win window;
  MPI_Aint size;
  int unit;
  if (!wanted("futex"))
    return;
  MPI_Win_allocate_shared(me == 0 ? 128 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bells, &window);
  MPI_Win_shared_query(window, 0, &size, &unit, &bells);
  if (me == 0)
    memset(bells, 0, 128);
  MPI_Barrier(MPI_COMM_WORLD);
  alone("futex", futex_ping, futex_pong, end_futex);
  MPI_Win_free(&window);
}
#else
static long *words; /* memory of rank 1 */
static long fetched;

static void nothing(void) {}

static void fetch_add(void) { ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &fetched, words, 1, 1); }

/* Rank 1 computes. The other ranks wait in a barrier. */
static void compute(void)
{
  volatile double x = 1;
  const double begun = now();
  while (me == 1 && now() - begun < seconds)
    for (int i = 0; i < 1000; i++)
      x = x * 1.0000001 + 1e-9;
}

/* All ranks lock and unlock, and count what they did in the time. */
static void lock(void)
{
  double done = 0;
  if (!wanted("lock"))
    return;
  meet();
  const double begun = now();
  while (now() - begun < seconds) {
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
    done++;
  }
  static char plus[] = "+";
  armci_msg_dgop(&done, 1, plus);
  result("lock", seconds, (long)done);
}
#endif

#if PEER == 0
static int seen;

static void notify_ping(void)
{
  long one = 1;
  ARMCI_Put(&one, words, sizeof one, 1);
  armci_notify(1);
  armci_notify_wait(1, &seen);
}

static void notify_pong(void)
{
  long go_on = me == 1;
  while (go_on) {
    armci_notify_wait(0, &seen);
    go_on = words[0];
    armci_notify(0);
  }
}

static void end_notify(void)
{
  long none = 0;
  ARMCI_Put(&none, words, sizeof none, 1);
  armci_notify(1);
  armci_notify_wait(1, &seen);
}

static lapi_handle_t context;

static void *arrived(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len,
                     compl_hndlr_t **comp_h, void **user_info)
{
  (void)h, (void)uhdr, (void)uhdr_len, (void)msg_len, (void)comp_h, (void)user_info;
  return NULL;
}

static void message(void)
{
  lapi_cntr_t done;
  int left;
  LAPI_Setcntr(context, &done, 0);
  if (LAPI_Amsend(context, 1, (void *)1, NULL, 0, NULL, 0, NULL, NULL, &done) != LAPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
  LAPI_Waitcntr(context, &done, 1, &left);
}

static void messages(void)
{
  lapi_info_t info;
  if (!wanted("message"))
    return;
  memset(&info, 0, sizeof info);
  if (LAPI_Init(&context, &info) != LAPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
  LAPI_Addr_set(context, (void *)arrived, 1);
  LAPI_Gfence(context);
  alone("message", message, nothing, nothing);
  LAPI_Term(context);
}

static na_class_t *network;
static na_addr_t server;
static hg_id_t null_id, stop_id;
static int stopped;

static hg_return_t null_called(hg_handle_t handle)
{
  HG_Handler_start_output(handle, NULL);
  return HG_Handler_free(handle);
}

static hg_return_t stop_called(hg_handle_t handle)
{
  stopped = 1;
  return null_called(handle);
}

static void forward(hg_id_t id)
{
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  if (HG_Forward(server, id, NULL, NULL, &request) != HG_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
  while (!done)
    HG_Wait(request, 1000, &done);
  HG_Request_free(request);
}

static void null_call(void) { forward(null_id); }
static void end_serving(void) { forward(stop_id); }

static void serve(void)
{
  while (me == 1 && !stopped)
    HG_Handler_process(1000, HG_STATUS_IGNORE);
}

static void calls(void)
{
  if (!wanted("null_call"))
    return;
  network = NA_Initialize("mpi", NA_TRUE);
  if (!network || HG_Init(network) != HG_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
  null_id = MERCURY_REGISTER("null", void, void, null_called);
  stop_id = MERCURY_REGISTER("stop", void, void, stop_called);
  if (NA_Addr_lookup_wait(network, "mpi://1", &server) != NA_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
  alone("null_call", null_call, serve, end_serving);
  NA_Addr_free(network, server);
  HG_Finalize();
  NA_Finalize(network);
}
#endif

int main(int argc, char **argv)
{
  int at = 1;
  const char *unknown;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  while ((unknown = bench_argument(argv, &at)) != NULL) {
    if (strcmp(unknown, "--seconds") != 0 || !argv[at] || ranks < 2) {
      fprintf(stderr, "contended_bench: wants two ranks or more, does not know %s\n", unknown);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    seconds = atof(argv[at++]);
  }
#if PEER != 2
  void **segments = malloc((size_t)ranks * sizeof *segments);
  ARMCI_Init();
  ARMCI_Malloc(segments, 128);
  memset(segments[me], 0, 128);
  words = segments[1];
  ARMCI_Create_mutexes(me == 0 ? 1 : 0);
#endif
  together("barrier", barrier);
  together("allreduce8", allreduce8);
  alone("round_trip", ping, pong, end_pong);
#if PEER != 2
  lock();
  alone("fetch_add", fetch_add, compute, nothing);
#else
  futex();
#endif
#if PEER == 0
  alone("notify", notify_ping, notify_pong, end_notify);
  messages();
  calls();
#endif
#if PEER != 2
  ARMCI_Destroy_mutexes();
  ARMCI_Free(segments[me]);
  ARMCI_Finalize();
  free(segments);
#endif
  MPI_Finalize();
  return 0;
}
