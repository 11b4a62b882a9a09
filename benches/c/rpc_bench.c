/*
 * Calls of Mercury's interface of 2013, compared with MPI messages and memcpy.
 *
 *   mpiexec -n 2 rpc_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Rank 0 is the client, rank 1 the server. PORTOLAN_RPC_CHECKSUM selects the checksum. Prints
 * `case<TAB>value`, medians of rounds that alternate with their references:
 *   null_poll, null_wait   microseconds of a call without parameters, while the server polls, or
 *                          waits in HG_Handler_process with a timeout
 *   mpi_round_trip         of 8 bytes there and back
 *   null_64, mpi_64        million calls per second, 64 in progress; for MPI two messages each
 *   in_4k, in_64k, in_1m   microseconds of a call with an input of this size
 *   mpi_4k, mpi_64k, mpi_1m  of a message of this size and an answer of 8 bytes; the message is
 *                          never written, so both processors' caches may keep it
 *   fresh_4k, fresh_64k, fresh_1m  the same, but the message is copied into place before it is
 *                          sent, as the input of a call is
 *   pull_1m, pull_16m      GB/s of HG_Bulk_transfer of memory of this size that HG_Bulk has
 *                          allocated at the client, as measured by the server
 *   memcpy_1m, memcpy_16m  of memcpy there
 *   pull_1024              of 1,024 segments of 1 KiB
 *   user_1m, user_16m, user_1024  the same for the program's own memory
 *   kernel_1m, kernel_16m  of the system call alone (process_vm_readv), between memory of the
 *                          same kind
 *   make_1m, calloc_1m     microseconds to allocate 1 MiB with HG_Bulk or calloc, write it and
 *                          free it
 *   idle_percent           per cent of a core that a waiting server uses
 *   idle_wake              microseconds of a call after 10 ms of silence
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <mercury.h>
#include <mercury_macros.h>
#include <portolan.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"

enum { FLIGHTS = 64, SEGMENTS = 1024, MOST_INPUT = 1 << 20 };

/* Raw bytes, preceded by their number. */
typedef struct {
  uint64_t size;
  void *bytes;
} bytes_t;

static hg_return_t hg_proc_bytes_t(hg_proc_t proc, void *data)
{
  bytes_t *b = data;
  hg_return_t rc = hg_proc_uint64_t(proc, &b->size);
  if (rc == HG_SUCCESS && hg_proc_get_op(proc) != HG_FREE) {
    void *at = hg_proc_save_ptr(proc, b->size);
    if (!at)
      return HG_OVERFLOW;
    if (hg_proc_get_op(proc) == HG_ENCODE)
      memcpy(at, b->bytes, b->size);
    else
      memcpy(b->bytes = malloc(b->size), at, b->size);
    rc = hg_proc_restore_ptr(proc, at, b->size);
  } else if (rc == HG_SUCCESS) {
    free(b->bytes);
  }
  return rc;
}

MERCURY_GEN_PROC(memory_t, ((hg_bulk_t)(bulk)))
MERCURY_GEN_PROC(number_t, ((double)(value)))

static int me;
static volatile int stop_called;
static na_class_t *network;
static na_addr_t server;
static hg_id_t null_id, take_id, pull_id, stop_id;

static void must(hg_return_t rc, const char *call)
{
  if (rc == HG_SUCCESS)
    return;
  fprintf(stderr, "%s: %s: %s\n", call, HG_Error_to_string(rc), portolan_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

/* ------------------------------------------------------------------------- server */

static hg_return_t null_called(hg_handle_t handle)
{
  MUST(HG_Handler_start_output(handle, NULL));
  return HG_Handler_free(handle);
}

static hg_return_t stop_called_now(hg_handle_t handle)
{
  stop_called = 1;
  return null_called(handle);
}

static hg_return_t take_called(hg_handle_t handle)
{
  bytes_t in;
  number_t out;
  MUST(HG_Handler_get_input(handle, &in));
  out.value = (double)in.size;
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

/* Pulls the caller's memory and answers with the time in seconds. */
static hg_return_t pull_called(hg_handle_t handle)
{
  static char *room;
  static size_t room_size;
  memory_t in;
  number_t out;
  hg_bulk_t local;
  hg_bulk_request_t request;
  hg_status_t done = HG_FALSE;
  MUST(HG_Handler_get_input(handle, &in));
  size_t size = HG_Bulk_handle_get_size(in.bulk);
  if (size > room_size) {
    free(room);
    room = malloc(room_size = size);
  }
  void *at = room;
  memset(room, 1, size);
  MUST(HG_Bulk_handle_create(1, &at, &size, HG_BULK_READWRITE, &local));
  const double begun = now();
  MUST(HG_Bulk_transfer(HG_BULK_PULL, HG_Handler_get_addr(handle), in.bulk, 0, local, 0, size, &request));
  while (!done)
    MUST(HG_Bulk_wait(request, 1000, &done));
  out.value = now() - begun;
  if (room[size - 1] != 7)
    must(HG_FAULT, "the last byte of the client's memory");
  MUST(HG_Bulk_handle_free(local));
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

/* ------------------------------------------------------------------------- client */

static void call(hg_id_t id, void *in, void *out)
{
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  MUST(HG_Forward(server, id, in, out, &request));
  while (!done)
    MUST(HG_Wait(request, 1000, &done));
  MUST(HG_Request_free(request));
}

/*
 * Runs the client while the server waits for up to `timeout` milliseconds at a time. Returns the
 * client's figure.
 */
static double phase(unsigned int timeout, double (*client)(void))
{
  double value = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1) {
    stop_called = 0;
    while (!stop_called)
      HG_Handler_process(timeout, HG_STATUS_IGNORE);
  } else {
    value = client();
    call(stop_id, NULL, NULL);
  }
  return value;
}

static long calls;
static size_t bytes;
static size_t segments;
static int of_user; /* whether the memory is the program's own */

static double null_calls(void)
{
  const double begun = now();
  for (long i = 0; i < calls; i++)
    call(null_id, NULL, NULL);
  return (now() - begun) / (double)calls * 1e6;
}

/* Keeps FLIGHTS calls in progress: waits for the oldest one and forwards it again. */
static double many_calls(void)
{
  hg_request_t requests[FLIGHTS];
  const double begun = now();
  for (int i = 0; i < FLIGHTS; i++)
    MUST(HG_Forward(server, null_id, NULL, NULL, &requests[i]));
  for (long i = 0; i < calls; i++) {
    const int n = (int)(i % FLIGHTS);
    hg_status_t done = HG_FALSE;
    while (!done)
      MUST(HG_Wait(requests[n], 1000, &done));
    MUST(HG_Request_free(requests[n]));
    if (i + FLIGHTS < calls)
      MUST(HG_Forward(server, null_id, NULL, NULL, &requests[n]));
  }
  return (double)calls / (now() - begun) * 1e-6;
}

static double input_calls(void)
{
  static char input[MOST_INPUT];
  bytes_t in = { bytes, input };
  number_t out;
  const double begun = now();
  for (long i = 0; i < calls; i++) {
    call(take_id, &in, &out);
    if (out.value != (double)bytes)
      must(HG_FAULT, "the size of the input");
  }
  return (now() - begun) / (double)calls * 1e6;
}

/* Fills all memory of a handle. */
static void fill(hg_bulk_t bulk)
{
  void **at = malloc(segments * sizeof *at);
  size_t *sizes = malloc(segments * sizeof *sizes);
  unsigned int count;
  MUST(HG_Bulk_handle_access(bulk, 0, bytes, HG_BULK_READWRITE, (unsigned int)segments, at, sizes,
                             &count));
  for (unsigned int i = 0; i < count; i++)
    memset(at[i], 7, sizes[i]);
  free(at);
  free(sizes);
}

static double pull_calls(void)
{
  static double times[MAX_REPS];
  const size_t each = bytes / segments, gap = segments > 1 ? 64 : 0;
  char *memory = malloc(segments * (each + gap));
  void **at = malloc(segments * sizeof *at);
  size_t *sizes = malloc(segments * sizeof *sizes);
  memory_t in;
  for (size_t i = 0; i < segments; i++) {
    at[i] = memory + i * (each + gap);
    sizes[i] = each;
  }
  MUST(HG_Bulk_handle_create(segments, of_user ? at : NULL, sizes, HG_BULK_READWRITE, &in.bulk));
  fill(in.bulk);
  for (long i = 0; i < calls; i++) {
    number_t out;
    call(pull_id, &in, &out);
    times[i] = out.value;
  }
  MUST(HG_Bulk_handle_free(in.bulk));
  free(memory);
  free(at);
  free(sizes);
  return (double)bytes / median(times, (int)calls) * 1e-9;
}

static double make_memory(void)
{
  const double begun = now();
  for (long i = 0; i < calls; i++) {
    hg_bulk_t bulk;
    MUST(HG_Bulk_handle_create(1, NULL, &bytes, HG_BULK_READWRITE, &bulk));
    fill(bulk);
    MUST(HG_Bulk_handle_free(bulk));
  }
  return (now() - begun) / (double)calls * 1e6;
}

static double calloc_memory(void)
{
  const double begun = now();
  for (long i = 0; i < calls; i++) {
    char *memory = calloc(1, bytes);
    memset(memory, 7, bytes);
    __asm__ volatile("" : : "r"(memory) : "memory");
    free(memory);
  }
  return (now() - begun) / (double)calls * 1e6;
}

static double idle_calls(void)
{
  static double times[MAX_REPS];
  for (long i = 0; i < calls; i++) {
    const struct timespec silence = { 0, 10000000 };
    nanosleep(&silence, NULL);
    const double begun = now();
    call(null_id, NULL, NULL);
    times[i] = (now() - begun) * 1e6;
  }
  return median(times, (int)calls);
}

static double no_calls(void)
{
  const struct timespec silence = { bench_quick ? 2 : 5, 0 };
  nanosleep(&silence, NULL);
  return 0;
}

/* -------------------------------------------------------------------------- references */

static int written; /* whether to write the message before each send */

static double mpi_round_trips(void)
{
  static char message[MOST_INPUT], input[MOST_INPUT];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = now();
  for (long i = 0; i < calls; i++) {
    if (me == 0) {
      if (written) {
        memcpy(message, input, bytes);
        __asm__ volatile("" : : "r"(message) : "memory");
      }
      MPI_Send(message, (int)bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
      MPI_Recv(message, 8, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(message, (int)bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(message, 8, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
    }
  }
  return (now() - begun) / (double)calls * 1e6;
}

static double mpi_round_trips_written(void)
{
  written = 1;
  const double value = mpi_round_trips();
  written = 0;
  return value;
}

static double mpi_many(void)
{
  static uint64_t out[FLIGHTS], into[FLIGHTS];
  MPI_Request there[FLIGHTS], back[FLIGHTS];
  MPI_Status statuses[FLIGHTS];
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = now();
  for (long i = 0; i < calls; i += FLIGHTS) {
    for (int n = 0; n < FLIGHTS; n++)
      MPI_Irecv(&into[n], 8, MPI_BYTE, 1 - me, 10, MPI_COMM_WORLD, &back[n]);
    if (me == 1)
      MPI_Waitall(FLIGHTS, back, statuses);
    for (int n = 0; n < FLIGHTS; n++)
      MPI_Isend(&out[n], 8, MPI_BYTE, 1 - me, 10, MPI_COMM_WORLD, &there[n]);
    MPI_Waitall(FLIGHTS, there, statuses);
    if (me == 0)
      MPI_Waitall(FLIGHTS, back, statuses);
  }
  return (double)calls / (now() - begun) * 1e-6;
}

static double copies(void)
{
  static double times[MAX_REPS];
  char *from = malloc(bytes), *to = malloc(bytes);
  memset(from, 7, bytes);
  memset(to, 1, bytes);
  for (long i = 0; i < calls; i++) {
    const double begun = now();
    memcpy(to, from, bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
    times[i] = now() - begun;
  }
  free(from);
  free(to);
  return (double)bytes / median(times, (int)calls) * 1e-9;
}

/* The server reads the client's memory with process_vm_readv, calls times. */
static double kernel_copies(void)
{
  static double times[MAX_REPS];
  char *memory = malloc(bytes);
  uint64_t there[2] = { (uint64_t)getpid(), (uint64_t)(uintptr_t)memory };
  double rate = 0;
  memset(memory, me == 0 ? 7 : 1, bytes);
  MPI_Bcast(there, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (me == 1) {
    for (long i = 0; i < calls; i++) {
      struct iovec to = { memory, bytes }, from = { (void *)(uintptr_t)there[1], bytes };
      memset(memory, 1, bytes); /* as before a pull */
      const double begun = now();
      if (process_vm_readv((pid_t)there[0], &to, 1, &from, 1, 0) != (ssize_t)bytes)
        must(HG_FAULT, "process_vm_readv");
      times[i] = now() - begun;
    }
    rate = (double)bytes / median(times, (int)calls) * 1e-9;
  }
  MPI_Bcast(&rate, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  free(memory);
  return rate;
}

/* ------------------------------------------------------------------------------ cases */

typedef struct {
  const char *name; /* NULL ends a list */
  double (*run)(void);
} reference_t;

enum { MOST_REFERENCES = 2 };

/* Reports the medians of a case and of its references, which run alternately. */
static void beside(const char *name, unsigned int timeout, double (*client)(void),
                   const reference_t *references)
{
  double ours[MAX_REPS], theirs[MOST_REFERENCES][MAX_REPS];
  const int rounds = bench_quick ? 3 : 11;
  if (!wanted(name))
    return;
  phase(timeout, client);
  for (int i = 0; i < rounds; i++) {
    ours[i] = phase(timeout, client);
    for (int n = 0; references[n].name; n++)
      theirs[n][i] = references[n].run();
  }
  if (me == 0) {
    report(name, median(ours, rounds));
    for (int n = 0; references[n].name; n++)
      report(references[n].name, median(theirs[n], rounds));
  }
}

static double processor_seconds(void)
{
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
         1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void idle(void)
{
  const double begun = now(), before = processor_seconds();
  double percent;
  if (!wanted("idle_percent"))
    return;
  phase(1000, no_calls);
  percent = 100 * (processor_seconds() - before) / (now() - begun);
  MPI_Bcast(&percent, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  if (me == 0)
    report("idle_percent", percent);
}

int main(int argc, char **argv)
{
  int at = 1, ranks;
  const char *unknown;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if ((unknown = bench_argument(argv, &at)) != NULL || ranks != 2) {
    if (me == 0)
      fprintf(stderr, "rpc_bench: %s\n", unknown ? unknown : "wants two ranks");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  network = NA_Initialize("mpi", NA_TRUE);
  if (!network)
    must(HG_FAIL, "NA_Initialize");
  MUST(HG_Init(network));
  null_id = MERCURY_REGISTER("null", void, void, null_called);
  stop_id = MERCURY_REGISTER("stop", void, void, stop_called_now);
  take_id = MERCURY_REGISTER("take", bytes_t, number_t, take_called);
  pull_id = MERCURY_REGISTER("pull", memory_t, number_t, pull_called);
  must((hg_return_t)NA_Addr_lookup_wait(network, "mpi://1", &server), "NA_Addr_lookup_wait");

  bytes = 8;
  calls = bench_quick ? 5000 : 20000;
  const reference_t none[] = { { NULL, NULL } };
  const reference_t round_trip[] = { { "mpi_round_trip", mpi_round_trips }, { NULL, NULL } };
  const reference_t many[] = { { "mpi_64", mpi_many }, { NULL, NULL } };
  beside("null_poll", 0, null_calls, round_trip);
  beside("null_wait", 100, null_calls, none);
  calls = FLIGHTS * (bench_quick ? 1500 : 8000);
  beside("null_64", 0, many_calls, many);
  calls = bench_quick ? 500 : 2000;
  bytes = 4 << 10;
  const reference_t of_4k[] = { { "mpi_4k", mpi_round_trips },
                                { "fresh_4k", mpi_round_trips_written },
                                { NULL, NULL } };
  const reference_t of_64k[] = { { "mpi_64k", mpi_round_trips },
                                 { "fresh_64k", mpi_round_trips_written },
                                 { NULL, NULL } };
  const reference_t of_1m[] = { { "mpi_1m", mpi_round_trips },
                                { "fresh_1m", mpi_round_trips_written },
                                { NULL, NULL } };
  beside("in_4k", 0, input_calls, of_4k);
  calls = bench_quick ? 100 : 500;
  bytes = 64 << 10;
  beside("in_64k", 0, input_calls, of_64k);
  calls = bench_quick ? 20 : 100;
  bytes = 1 << 20;
  beside("in_1m", 0, input_calls, of_1m);
  for (of_user = 0; of_user < 2; of_user++) {
    calls = 50;
    segments = 1;
    bytes = 1 << 20;
    const reference_t copy_1m[] = { { of_user ? "kernel_1m" : "memcpy_1m", of_user ? kernel_copies : copies },
                                    { NULL, NULL } };
    const reference_t copy_16m[] = { { of_user ? "kernel_16m" : "memcpy_16m", of_user ? kernel_copies : copies },
                                     { NULL, NULL } };
    beside(of_user ? "user_1m" : "pull_1m", 0, pull_calls, copy_1m);
    segments = SEGMENTS;
    beside(of_user ? "user_1024" : "pull_1024", 0, pull_calls, none);
    calls = 9;
    segments = 1;
    bytes = 16 << 20;
    beside(of_user ? "user_16m" : "pull_16m", 0, pull_calls, copy_16m);
  }
  const reference_t of_calloc[] = { { "calloc_1m", calloc_memory }, { NULL, NULL } };
  calls = bench_quick ? 20 : 100;
  segments = 1;
  bytes = 1 << 20;
  beside("make_1m", 0, make_memory, of_calloc);
  idle();
  calls = bench_quick ? 20 : 60;
  beside("idle_wake", 1000, idle_calls, none);

  NA_Addr_free(network, server);
  MUST(HG_Bulk_finalize());
  MUST(HG_Finalize());
  NA_Finalize(network);
  MPI_Finalize();
  return 0;
}
