/*
 * Ping-pong with active messages, and with MPI_Send and MPI_Recv in the same program.
 *
 *   mpiexec -n 2 lapi_ping_pong [longest [seconds]]
 *
 * Ranks 0 and 1 send messages of 8 bytes to `longest` (4 MiB) back and forth. For each length the
 * table shows the half round trip in microseconds and the bandwidth of both methods, and the ratio
 * LAPI / MPI of the times: below 1, LAPI is faster. Each number is the median of several turns of
 * about `seconds` (0.02) each, in which the two methods alternate. The program checks the contents
 * outside the timed code.
 *
 * The exit status is 0 if all contents agree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <lapi.h>

enum { PING = 1, TURNS = 7 };

static lapi_handle_t hndl;
static lapi_cntr_t arrived;
static void *arrived_of[2];
static unsigned char *in, *out;
static int me;

static void ok(int code, const char *call)
{
  char text[LAPI_MAX_ERR_STRING];
  if (code == LAPI_SUCCESS)
    return;
  LAPI_Msg_string(code, text);
  fprintf(stderr, "%s: %s\n", call, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define OK(call) ok(call, #call)

/* Short messages are copied from the packet. Long ones go directly to their destination. */
static void *header(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len,
                    compl_hndlr_t **comp_h, void **user_info)
{
  lapi_return_info_t *info = (lapi_return_info_t *)msg_len;
  (void)h, (void)uhdr, (void)uhdr_len, (void)comp_h, (void)user_info;
  if (!info->udata_one_pkt_ptr)
    return in;
  memcpy(in, info->udata_one_pkt_ptr, info->msg_len);
  return NULL;
}

static void lapi_send(size_t length)
{
  OK(LAPI_Amsend(hndl, (uint)(1 - me), (void *)PING, NULL, 0, out, length, arrived_of[1 - me],
                 NULL, NULL));
}

static void lapi_receive(size_t length)
{
  (void)length;
  OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
}

static void mpi_send(size_t length)
{
  MPI_Send(out, (int)length, MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD);
}

static void mpi_receive(size_t length)
{
  MPI_Recv(in, (int)length, MPI_BYTE, 1 - me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

typedef struct {
  void (*send)(size_t), (*receive)(size_t);
} way_t;

static const way_t lapi = { lapi_send, lapi_receive }, mpi = { mpi_send, mpi_receive };

/* Returns half a round trip in seconds. */
static double turn(const way_t *way, size_t length, long rounds)
{
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  for (long i = 0; i < rounds; i++) {
    if (me == 0) {
      way->send(length);
      way->receive(length);
    } else {
      way->receive(length);
      way->send(length);
    }
  }
  const double half = (MPI_Wtime() - begun) / (double)(2 * rounds);
  OK(LAPI_Fence(hndl));             /* the data may be changed again */
  return half;
}

/* Makes one round trip with contents that differ by rank, method and length, and checks them. */
static void check(const way_t *way, size_t length, int seed)
{
  for (size_t i = 0; i < length; i++)
    out[i] = (unsigned char)(seed + 31 * me + (int)(i * 7 + (i >> 9)));
  memset(in, 0xaa, length);
  turn(way, length, 1);
  for (size_t i = 0; i < length; i++)
    if (in[i] != (unsigned char)(seed + 31 * (1 - me) + (int)(i * 7 + (i >> 9)))) {
      fprintf(stderr, "rank %d: byte %zu of %zu is wrong\n", me, i, length);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int by_size(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(size_t length, double seconds)
{
  double l[TURNS], m[TURNS];
  long rounds;

  check(&lapi, length, 1);
  check(&mpi, length, 2);
  rounds = (long)(seconds / (2 * turn(&lapi, length, 10)));
  rounds = rounds < 10 ? 10 : rounds > 100000 ? 100000 : rounds;
  MPI_Bcast(&rounds, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  for (int i = 0; i < TURNS; i++) {
    l[i] = turn(&lapi, length, rounds);
    m[i] = turn(&mpi, length, rounds);
  }
  check(&lapi, length, 3);
  qsort(l, TURNS, sizeof *l, by_size);
  qsort(m, TURNS, sizeof *m, by_size);
  const double x = l[TURNS / 2], y = m[TURNS / 2];
  if (me == 0)
    printf("%9zu  %9.2f %9.0f  %9.2f %9.0f  %6.2f\n", length, 1e6 * x, (double)length / x / 1e6,
           1e6 * y, (double)length / y / 1e6, x / y);
}

int main(int argc, char **argv)
{
  const size_t longest = argc > 1 ? strtoul(argv[1], NULL, 0) : 4ul << 20;
  const double seconds = argc > 2 ? atof(argv[2]) : 0.02;
  lapi_info_t info;
  int ranks;

  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (ranks != 2 || longest > 1ul << 30) {
    if (me == 0)
      fprintf(stderr, "start it on 2 ranks, with at most 1 GiB\n");
    MPI_Finalize();
    return 1;
  }
  memset(&info, 0, sizeof info);
  OK(LAPI_Init(&hndl, &info));
  OK(LAPI_Setcntr(hndl, &arrived, 0));
  OK(LAPI_Addr_set(hndl, (void *)header, PING));
  OK(LAPI_Address_init(hndl, &arrived, arrived_of));
  in = malloc(longest + 8);
  out = malloc(longest + 8);
  if (!in || !out) {
    fprintf(stderr, "no memory for %zu bytes\n", longest);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(in, 0, longest + 8);
  memset(out, 0, longest + 8);
  OK(LAPI_Gfence(hndl));

  if (me == 0)
    printf("%9s  %9s %9s  %9s %9s  %6s\n", "bytes", "LAPI us", "MB/s", "MPI us", "MB/s", "ratio");
  for (size_t length = 8; length <= longest; length *= 2)
    measure(length, seconds);
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Term(hndl));
  free(in);
  free(out);
  if (me == 0)
    printf("contents agree\n");
  MPI_Finalize();
  return 0;
}
