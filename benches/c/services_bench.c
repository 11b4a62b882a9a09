/*
 * Calls between a server and a client that are started separately, with Mercury 2.4's interface.
 * The program uses nothing else, so it also builds against Mercury itself, for comparison.
 *
 *   services_bench serve NETWORK FILE     writes the server's address into FILE
 *   services_bench call FILE [--quick]    measures, and ends the server
 *   services_bench socket [--quick]       measures a plain TCP socket
 *
 * Prints `case<TAB>value`, medians of rounds:
 *   null_wait  microseconds of a call without parameters, both sides wait in HG_Progress
 *   null_32    million calls per second, 32 in progress
 *   pull_4k, pull_1m, pull_16m  GiB/s of HG_Bulk_transfer of memory of this size of the client, as
 *              measured by the server
 *   pull_1m_own, pull_16m_own  the same, of memory that HG_Bulk_create allocated for the client
 *   socket_1m  GiB/s of 1 MiB that a process reads from a socket of another one after asking for it
 */
#define _GNU_SOURCE
#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_proc.h>
#include <mercury_proc_bulk.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FLIGHTS = 32, ROUNDS = 9, ADDRESS = 512 };

static hg_class_t *hg;
static hg_context_t *context;
static hg_addr_t server;
static hg_id_t null_id, pull_id, stop_id;
static int stopped, quick;

static void must(int good, const char *what)
{
  if (!good) {
    fprintf(stderr, "services_bench: %s failed\n", what);
    exit(1);
  }
}
#define MUST(call) must((call) == HG_SUCCESS, #call)

static double now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Prints the median of the values of several rounds. */
static void report(const char *name, double (*round)(void))
{
  double values[ROUNDS];
  round(); /* warm up */
  for (int i = 0; i < ROUNDS; i++)
    values[i] = round();
  qsort(values, ROUNDS, sizeof *values, by_value);
  printf("%s\t%.4f\n", name, values[ROUNDS / 2]);
  fflush(stdout);
}

static void turn(unsigned int timeout)
{
  unsigned int count;
  HG_Progress(context, timeout);
  do {
    count = 0;
    HG_Trigger(context, 0, 64, &count);
  } while (count > 0);
}

/* ------------------------------------------------------------------ parameters */

struct pull_in {
  hg_bulk_t memory;
  uint64_t times;
};

static hg_return_t proc_pull_in(hg_proc_t proc, void *data)
{
  struct pull_in *in = data;
  hg_return_t code = hg_proc_hg_bulk_t(proc, &in->memory);
  return code == HG_SUCCESS ? hg_proc_uint64_t(proc, &in->times) : code;
}

static hg_return_t proc_number(hg_proc_t proc, void *data)
{
  return hg_proc_uint64_t(proc, data);
}

/* ---------------------------------------------------------------------- server */

static hg_return_t null_called(hg_handle_t handle)
{
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

static hg_return_t stop_called(hg_handle_t handle)
{
  stopped = 1;
  return null_called(handle);
}

/* A series of pulls of one memory, one after the other. */
struct pulls {
  hg_handle_t handle;
  struct pull_in in;
  hg_bulk_t local;
  hg_size_t size;
  uint64_t done;
  double begun;
};

static hg_return_t pulled(const struct hg_cb_info *info)
{
  struct pulls *pulls = info->arg;
  MUST(info->ret);
  if (pulls->done++ < pulls->in.times) {
    if (pulls->done == 1)
      pulls->begun = now(); /* the first one warms up */
    MUST(HG_Bulk_transfer(context, pulled, pulls, HG_BULK_PULL, HG_Get_info(pulls->handle)->addr,
                          pulls->in.memory, 0, pulls->local, 0, pulls->size, HG_OP_ID_IGNORE));
    return HG_SUCCESS;
  }
  uint64_t nanoseconds = (uint64_t)((now() - pulls->begun) * 1e9);
  MUST(HG_Respond(pulls->handle, NULL, NULL, &nanoseconds));
  MUST(HG_Bulk_free(pulls->local));
  MUST(HG_Free_input(pulls->handle, &pulls->in));
  MUST(HG_Destroy(pulls->handle));
  free(pulls);
  return HG_SUCCESS;
}

static hg_return_t pull_called(hg_handle_t handle)
{
  struct pulls *pulls = calloc(1, sizeof *pulls);
  must(pulls != NULL, "calloc");
  pulls->handle = handle;
  MUST(HG_Get_input(handle, &pulls->in));
  pulls->size = HG_Bulk_get_size(pulls->in.memory);
  MUST(HG_Bulk_create(hg, 1, NULL, &pulls->size, HG_BULK_WRITE_ONLY, &pulls->local));
  MUST(HG_Bulk_transfer(context, pulled, pulls, HG_BULK_PULL, HG_Get_info(handle)->addr,
                        pulls->in.memory, 0, pulls->local, 0, pulls->size, HG_OP_ID_IGNORE));
  return HG_SUCCESS;
}

static void start(const char *network, int listen)
{
  hg = HG_Init(network, listen ? HG_TRUE : HG_FALSE);
  must(hg != NULL, network);
  context = HG_Context_create(hg);
  must(context != NULL, "HG_Context_create");
  null_id = HG_Register_name(hg, "bench.null", NULL, NULL, null_called);
  pull_id = HG_Register_name(hg, "bench.pull", proc_pull_in, proc_number, pull_called);
  stop_id = HG_Register_name(hg, "bench.stop", NULL, NULL, stop_called);
}

static void end(void)
{
  MUST(HG_Context_destroy(context));
  MUST(HG_Finalize(hg));
}

static void serve(const char *network, const char *file)
{
  char text[ADDRESS], new[4096];
  hg_size_t size = sizeof text;
  hg_addr_t own;
  FILE *out;
  start(network, 1);
  MUST(HG_Addr_self(hg, &own));
  MUST(HG_Addr_to_string(hg, text, &size, own));
  MUST(HG_Addr_free(hg, own));
  snprintf(new, sizeof new, "%s.new", file);
  must((out = fopen(new, "w")) != NULL && fputs(text, out) >= 0 && fclose(out) == 0, new);
  must(rename(new, file) == 0, file);
  while (!stopped)
    turn(1000);
  for (int i = 0; i < 20; i++)
    turn(5); /* the last answer leaves */
  end();
}

/* ---------------------------------------------------------------------- client */

static int under_way;
static double measured;

static hg_return_t answered(const struct hg_cb_info *info)
{
  MUST(info->ret);
  under_way--;
  return HG_SUCCESS;
}

static void wait_for(int most)
{
  while (under_way > most)
    turn(1000);
}

static double null_calls(void)
{
  const int calls = quick ? 500 : 5000;
  hg_handle_t handle;
  MUST(HG_Create(context, server, null_id, &handle));
  const double begun = now();
  for (int i = 0; i < calls; i++) {
    under_way++;
    MUST(HG_Forward(handle, answered, NULL, NULL));
    wait_for(0);
  }
  const double time = now() - begun;
  MUST(HG_Destroy(handle));
  return time / calls * 1e6;
}

struct flight {
  hg_handle_t handle;
  int *left;
};

static hg_return_t again(const struct hg_cb_info *info)
{
  struct flight *flight = info->arg;
  MUST(info->ret);
  if (*flight->left > 0) {
    --*flight->left;
    return HG_Forward(flight->handle, again, flight, NULL);
  }
  under_way--;
  return HG_SUCCESS;
}

static double many_calls(void)
{
  const int calls = quick ? 5000 : 100000;
  int left = calls - FLIGHTS;
  struct flight flights[FLIGHTS];
  for (int i = 0; i < FLIGHTS; i++) {
    flights[i].left = &left;
    MUST(HG_Create(context, server, null_id, &flights[i].handle));
  }
  const double begun = now();
  for (int i = 0; i < FLIGHTS; i++) {
    under_way++;
    MUST(HG_Forward(flights[i].handle, again, &flights[i], NULL));
  }
  wait_for(0);
  const double time = now() - begun;
  for (int i = 0; i < FLIGHTS; i++)
    MUST(HG_Destroy(flights[i].handle));
  return calls / time / 1e6;
}

static struct pull_in pulling;
static hg_size_t pull_size;

static hg_return_t pull_ended(const struct hg_cb_info *info)
{
  uint64_t nanoseconds;
  MUST(info->ret);
  MUST(HG_Get_output(info->info.forward.handle, &nanoseconds));
  measured = (double)nanoseconds;
  MUST(HG_Free_output(info->info.forward.handle, &nanoseconds));
  under_way--;
  return HG_SUCCESS;
}

static double pull_calls(void)
{
  hg_handle_t handle;
  MUST(HG_Create(context, server, pull_id, &handle));
  under_way++;
  MUST(HG_Forward(handle, pull_ended, NULL, &pulling));
  wait_for(0);
  MUST(HG_Destroy(handle));
  return (double)pull_size * (double)pulling.times / measured * 1e9 / (1 << 30);
}

/* Measures pulls of `memory`, or of memory that Mercury allocates if it is null. */
static void pull_from(const char *name, void *memory, hg_size_t size, uint64_t times)
{
  void *segment = memory;
  hg_uint32_t count;
  pull_size = size;
  pulling.times = quick ? 1 + times / 20 : times;
  MUST(HG_Bulk_create(hg, 1, memory ? &memory : NULL, &size, HG_BULK_READ_ONLY, &pulling.memory));
  if (memory == NULL)
    MUST(HG_Bulk_access(pulling.memory, 0, size, HG_BULK_READWRITE, 1, &segment, &size, &count));
  memset(segment, 7, size);
  report(name, pull_calls);
  MUST(HG_Bulk_free(pulling.memory));
}

static void pull(const char *name, hg_size_t size, uint64_t times)
{
  void *memory = malloc(size);
  must(memory != NULL, "malloc");
  pull_from(name, memory, size, times);
  free(memory);
}

static void call(const char *file)
{
  char address[ADDRESS] = "", network[ADDRESS];
  hg_handle_t handle;
  FILE *in = fopen(file, "r");
  must(in && fgets(address, sizeof address, in), file);
  fclose(in);
  snprintf(network, sizeof network, "%.*s", (int)(strstr(address, "://") - address), address);
  start(network, 0);
  MUST(HG_Addr_lookup2(hg, address, &server));
  report("null_wait", null_calls);
  report("null_32", many_calls);
  pull("pull_4k", 4 << 10, 2000);
  pull("pull_1m", 1 << 20, 200);
  pull("pull_16m", 16 << 20, 20);
  pull_from("pull_1m_own", NULL, 1 << 20, 200);
  pull_from("pull_16m_own", NULL, 16 << 20, 20);
  MUST(HG_Create(context, server, stop_id, &handle));
  under_way++;
  MUST(HG_Forward(handle, answered, NULL, NULL));
  wait_for(0);
  MUST(HG_Destroy(handle));
  MUST(HG_Addr_free(hg, server));
  end();
}

/* ---------------------------------------------------------------- plain socket */

static int peer;
static char *bytes;

static int whole(int out, size_t size)
{
  for (size_t done = 0; done < size;) {
    const ssize_t n = out ? write(peer, bytes + done, size - done) : read(peer, bytes + done, size - done);
    if (n <= 0)
      return 0;
    done += (size_t)n;
  }
  return 1;
}

static double socket_reads(void)
{
  const int times = quick ? 10 : 200;
  const double begun = now();
  for (int i = 0; i < times; i++)
    must(write(peer, "x", 1) == 1 && whole(0, 1 << 20), "the socket");
  return (double)times / 1024 / (now() - begun);
}

static void sockets(void)
{
  struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof at;
  const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  must((bytes = calloc(1, 1 << 20)) != NULL, "calloc");
  must(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0 &&
           getsockname(listener, (struct sockaddr *)&at, &size) == 0, "listen");
  const pid_t child = fork();
  if (child == 0) {
    char asked;
    peer = accept(listener, NULL, NULL);
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    while (read(peer, &asked, 1) == 1 && whole(1, 1 << 20))
      ;
    _exit(0);
  }
  peer = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(peer, (struct sockaddr *)&at, size) == 0, "connect");
  setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  report("socket_1m", socket_reads);
  close(peer);
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
  quick = argc > 2 && strcmp(argv[argc - 1], "--quick") == 0;
  if (argc >= 4 && strcmp(argv[1], "serve") == 0)
    serve(argv[2], argv[3]);
  else if (argc >= 3 && strcmp(argv[1], "call") == 0)
    call(argv[2]);
  else if (argc >= 2 && strcmp(argv[1], "socket") == 0)
    sockets();
  else {
    fprintf(stderr, "usage: services_bench serve NETWORK FILE | call FILE [--quick] | socket [--quick]\n");
    return 2;
  }
  return 0;
}
