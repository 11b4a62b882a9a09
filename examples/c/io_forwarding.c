/*
 * I/O forwarding with Mercury: compute ranks ship their file calls to I/O ranks.
 *
 * On large machines the compute nodes do not mount the file system. A few I/O nodes do, and run the
 * file calls of the others. Here one rank in four is an I/O rank (at least one). The other ranks
 * write a checkpoint through them: open, write, close, stat, open, read, close. A single rank
 * serves itself.
 *
 *   - The data of a call is a bulk handle over many segments: the rows of a field, without the
 *     ghost cells between them. Files are read back into rows of another length.
 *   - A write of any length passes through a buffer of fixed size at the I/O rank. The I/O rank
 *     pulls each chunk from the client's memory while threads write the previous chunks to the
 *     file. A read works the same way in the other direction (io_forwarding_server.c).
 *   - Clients keep several calls in progress on all I/O ranks and compute digests meanwhile. At the
 *     end the digest of the written data is compared with that of the data read back. The ghost
 *     cells must be unchanged.
 *   - Errors of the file system are returned as errno values. The program tests a missing file, a
 *     file outside the directory, and a full device.
 *   - After SIGTERM an I/O rank completes the calls that it has started and answers new ones with
 *     ESHUTDOWN. The job ends normally with exit code 3. After SIGTERM a compute rank starts no
 *     further file; the exit code is 3 too.
 *   - Long transfers report their progress on standard error.
 *
 * To run it:
 *
 *   ./mpirun.sh -n 4 --example c/io_forwarding
 *   ./mpirun.sh -n 4 --example c/io_forwarding --size 256M --files 4 --dir /scratch/me
 *   ./mpirun.sh -n 4 --node-size 1 --example c/io_forwarding    # as if on four hosts
 *
 * Options, with their defaults:
 *
 *   --dir DIR        I/O rank R keeps its files in DIR/io-R (a temporary directory, removed at
 *                    the end)
 *   --size BYTES     size of each file (16M; K, M and G are powers of 1,024)
 *   --files N        files per compute rank (2)
 *   --io-ranks N     I/O ranks, distributed evenly over the ranks (one in four)
 *   --segment BYTES  length of the rows of a client's memory (64K)
 *   --chunk BYTES    bytes that an I/O rank moves at a time (1M)
 *   --buffer BYTES   size of an I/O rank's buffer (8M)
 *   --window N       calls with data that a client keeps in progress (2)
 *
 * As a service, server and clients are started by hand, without MPI, on one host or on several
 * (io_forwarding_service.c). In one shell,
 *
 *   io_forwarding serve --network na+sm --address /tmp/io.address --dir /scratch/me
 *
 * and in another one, any number of times,
 *
 *   io_forwarding client --address /tmp/io.address
 *   io_forwarding end --address /tmp/io.address
 *
 *   --network NAME   network of the server (na+sm): na+sm, or tcp://PLACE to reach other hosts
 *   --address FILE   the file that the server writes its address to, and clients read
 *
 * Exit codes: 0 if all digests agree, 1 if not or if an error occurs, 2 for invalid options, 3 if
 * SIGTERM ended the job early.
 */
#include "io_forwarding.h"

#include <mpi.h>
#include <stdio.h>
#include <time.h>

struct job job;
struct report report;
volatile sig_atomic_t terminated;

void give_up(const char *what, const char *why)
{
  fprintf(stderr, "rank %d: %s: %s\n", job.rank, what, why);
  if (!job.by_hand)
    MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

void must(hg_return_t code, const char *call)
{
  if (code != HG_SUCCESS)
    give_up(call, HG_Error_to_string(code));
}

double seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void register_calls(int serving)
{
#define REGISTER(name) \
  MERCURY_REGISTER(job.hg, "io." #name, name##_in_t, name##_out_t, serving ? name##_called : NULL)
#define REGISTER_MOVE(name) \
  MERCURY_REGISTER(job.hg, "io." #name, move_in_t, move_out_t, serving ? name##_called : NULL)
  job.calls.open = REGISTER(open);
  job.calls.write = REGISTER_MOVE(write);
  job.calls.read = REGISTER_MOVE(read);
  job.calls.stat = REGISTER(stat);
  job.calls.close = REGISTER(close);
  job.calls.leave = MERCURY_REGISTER(job.hg, "io.leave", void, void, serving ? leave_called : NULL);
  job.calls.end = MERCURY_REGISTER(job.hg, "io.end", void, void, serving ? end_called : NULL);
  if (!job.calls.open || !job.calls.write || !job.calls.read || !job.calls.stat || !job.calls.close ||
      !job.calls.leave || !job.calls.end)
    give_up("MERCURY_REGISTER", "a call cannot be registered");
#undef REGISTER
#undef REGISTER_MOVE
}

void open_network(const char *info, int serving)
{
  job.hg = HG_Init(info, serving ? HG_TRUE : HG_FALSE);
  job.context = job.hg ? HG_Context_create(job.hg) : NULL;
  if (!job.context)
    give_up(info, "the network cannot be opened");
  register_calls(serving);
}

void close_network(void)
{
  MUST(HG_Context_destroy(job.context));
  MUST(HG_Finalize(job.hg));
}

void own_address(char text[ADDRESS_SIZE])
{
  hg_size_t size = ADDRESS_SIZE;
  hg_addr_t own;
  MUST(HG_Addr_self(job.hg, &own));
  MUST(HG_Addr_to_string(job.hg, text, &size, own));
  MUST(HG_Addr_free(job.hg, own));
}

/* -------------------------------------------------------------------------------- job */

static void noted(int signal)
{
  (void)signal;
  terminated = 1;
}

static const char usage[] =
    "usage: io_forwarding [--dir DIR] [--size BYTES] [--files N] [--io-ranks N]\n"
    "                     [--segment BYTES] [--chunk BYTES] [--buffer BYTES] [--window N]\n"
    "       io_forwarding serve --address FILE [--network NAME] [OPTIONS]\n"
    "       io_forwarding client|end --address FILE [OPTIONS]\n";

/* Parses a positive number with an optional suffix K, M or G. Returns 0 if it is invalid. */
static size_t number_of(const char *text)
{
  char *after;
  unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &after, 10) : 0;
  const char *units = "KMG", *unit;
  if (n == 0)
    return 0;
  if (*after && !after[1] && (unit = strchr(units, *after & ~0x20)) != NULL)
    n <<= 10 * (unit - units + 1);
  else if (*after)
    return 0;
  return (size_t)n;
}

int parse_options(int argc, char **argv)
{
  struct options *o = &job.options;
  struct {
    const char *name;
    size_t *value;
  } numbers[] = { { "--size", &o->size },       { "--files", &o->files },   { "--io-ranks", &o->io_ranks },
                  { "--segment", &o->segment }, { "--chunk", &o->chunk },   { "--buffer", &o->buffer },
                  { "--window", &o->window } };
  const size_t known = sizeof numbers / sizeof *numbers;
  const struct {
    const char *name, **value;
  } texts[] = { { "--dir", &o->dir }, { "--network", &o->network }, { "--address", &o->address } };
  *o = (struct options){ NULL, "na+sm", NULL, 16 << 20, 2, 0, 64 << 10, 1 << 20, 8 << 20, 2 };
  for (int i = 1; i < argc; i += 2) {
    size_t n = 0, text = 0;
    if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
      if (job.rank == 0)
        fputs(usage, stdout);
      return 0;
    }
    while (n < known && strcmp(argv[i], numbers[n].name) != 0)
      n++;
    while (text < 3 && strcmp(argv[i], texts[text].name) != 0)
      text++;
    if (argv[i + 1] && text < 3)
      *texts[text].value = argv[i + 1];
    else if (!argv[i + 1] || n == known || (*numbers[n].value = number_of(argv[i + 1])) == 0)
      n = known + 1;
    if (n > known || o->files > 1 << 20) {
      if (job.rank == 0)
        fprintf(stderr, "io_forwarding: '%s %s' makes no sense\n%s", argv[i],
                argv[i + 1] ? argv[i + 1] : "", usage);
      return 2;
    }
  }
  if (o->chunk > o->buffer || o->size / o->segment > 1 << 20) {
    if (job.rank == 0)
      fprintf(stderr, "io_forwarding: a chunk must fit the buffer, and a file have at most a million "
                      "segments\n");
    return 2;
  }
  return -1;
}

/*
 * Assigns the roles. I/O ranks are distributed evenly; a single rank has both roles. Returns
 * whether this rank is an I/O rank.
 */
static int assign_roles(void)
{
  const size_t most = job.ranks > 1 ? (size_t)job.ranks - 1 : 1;
  size_t count = job.options.io_ranks ? job.options.io_ranks : (size_t)job.ranks / 4;
  int serving = 0;
  count = count < 1 ? 1 : count > most ? most : count;
  job.servers = malloc((size_t)job.ranks * sizeof *job.servers);
  job.clients = malloc((size_t)job.ranks * sizeof *job.clients);
  if (!job.servers || !job.clients)
    give_up("the roles", "no memory");
  for (size_t i = 0; i < count; i++)
    job.servers[job.server_count++] = (int)(i * (size_t)job.ranks / count);
  for (int rank = 0, next = 0; rank < job.ranks; rank++) {
    const int serves = next < job.server_count && job.servers[next] == rank;
    next += serves;
    if (serves && rank == job.rank)
      serving = 1;
    if (!serves || job.ranks == 1)
      job.clients[job.client_count++] = rank;
  }
  return serving;
}

/* Gathers the addresses of the I/O ranks. */
static void share_addresses(void)
{
  char own[ADDRESS_SIZE] = "", (*all)[ADDRESS_SIZE] = calloc((size_t)job.ranks, sizeof *all);
  job.addresses = calloc((size_t)job.server_count, sizeof *job.addresses);
  if (!all || !job.addresses)
    give_up("the addresses", "no memory");
  own_address(own);
  MPI_Allgather(own, ADDRESS_SIZE, MPI_CHAR, all, ADDRESS_SIZE, MPI_CHAR, MPI_COMM_WORLD);
  for (int i = 0; i < job.server_count; i++)
    memcpy(job.addresses[i], all[job.servers[i]], ADDRESS_SIZE);
  free(all);
}

/* Reduces and prints the results of all ranks. Returns the exit code. */
static int summary(void)
{
  long long counts[6] = { report.written, report.compared, report.differ,
                          report.failed,  report.stopped || terminated, 0 };
  double times[2] = { report.writing, report.reading };
  const long long files = (long long)job.options.files * job.client_count;
  const double mib = (double)job.options.size / 1048576;
  MPI_Allreduce(MPI_IN_PLACE, counts, 5, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const long long written = counts[0], compared = counts[1], differ = counts[2], failed = counts[3];
  if (job.rank == job.clients[0] && report.errors) {
    print_errors();
  }
  if (job.rank == 0) {
    if (written)
      printf("wrote %lld files in %.2f s, %.0f MiB/s\n", written, times[0], (double)written * mib / times[0]);
    if (compared)
      printf("read %lld files in %.2f s, %.0f MiB/s\n", compared, times[1], (double)compared * mib / times[1]);
  }
  int code = 1;
  char end[128];
  if (differ || failed) {
    snprintf(end, sizeof end, "%lld of %lld digests differ, %lld failures", differ, compared, failed);
  } else if (compared == files) {
    code = 0;
    snprintf(end, sizeof end, "all %lld digests agree", files);
  } else if (counts[4]) {
    code = 3;
    snprintf(end, sizeof end, "ended early by SIGTERM: %lld of %lld files written whole, %lld compared, none differs",
             written, files, compared);
  } else {
    snprintf(end, sizeof end, "only %lld of %lld files were compared", compared, files);
  }
  if (job.rank == 0)
    printf("io_forwarding: %s\n", end);
  fflush(stdout);
  return code;
}

int main(int argc, char **argv)
{
  static char lines[BUFSIZ];
  int code, serving;
  signal(SIGTERM, noted);
  if (argc > 1 && argv[1][0] != '-')
    return run_by_hand(argc - 1, argv + 1);
  MPI_Init(&argc, &argv);
  /*
   * The ranks share the terminal, and MPICH's MPI_Init makes stdout unbuffered. Without a buffer
   * the end of a line is written separately, and output of another rank may appear before it. The
   * program supplies the buffer, because glibc would otherwise keep its buffer of one byte.
   */
  setvbuf(stdout, lines, _IOLBF, sizeof lines);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  if ((code = parse_options(argc, argv)) >= 0) {
    MPI_Finalize();
    return code;
  }
  serving = assign_roles();
  open_network("mpi+static", 1); /* Mercury's name for the ranks of one job */
  share_addresses();
  if (serving)
    server_start();
  if (job.rank == 0) {
    printf("%d compute ranks, %d I/O ranks: %zu files of %zu bytes for each compute rank, chunks of %zu "
           "bytes through a buffer of %zu\n",
           job.client_count, job.server_count, job.options.files, job.options.size, job.options.chunk,
           job.options.buffer);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* all ranks have now registered the calls that they serve */
  if (!serving || job.ranks == 1)
    run_client();
  if (serving) {
    while (!server_is_done())
      server_step(100);
    server_stop();
  }
  code = summary();
  close_network();
  MPI_Finalize();
  free(job.addresses);
  free(job.servers);
  free(job.clients);
  return code;
}
