/*
 * check.h - shared by the C tests: start and end, checks that name the file and line, a deadline,
 * and a few helpers. Include it before anything else.
 *
 * A test prints "PASS <name>" once, from rank 0, when all ranks are done. The first failed check
 * prints "FAIL <name> ..." and aborts the job with status 1.
 *
 * If PORTOLAN_TEST_RANKS is set, the job must have that number of ranks. PORTOLAN_TEST_SECONDS is
 * the deadline in seconds (default 50).
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <armci.h>
#include <armcix.h>
#include <portolan.h>

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Seconds after which a wait counts as a hang. The runner's deadline, measured by a clock that
 * allows for the load, comes first. */
#define CHECK_HANG 600

static const char *check_name = "?";
static int me = -1;                 /* rank in MPI_COMM_WORLD */
static int nproc = 0;
static unsigned long long check_state = 1;

/* Launchers drop output written just before an abort, so give them a moment. */
static inline void check_linger(void)
{
  struct timespec moment = { 0, 100000000 };
  fflush(stdout);
  nanosleep(&moment, NULL);
}

static inline void check_fail(const char *file, int line, const char *format, ...)
{
  int up = 0, down = 0;
  va_list args;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  printf("FAIL %s rank %d of %d, %s:%d: ", check_name, me, nproc, file, line);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf("\n");
  check_linger();
  if (up && !down)
    MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

/* Checks a condition; the message has the format of printf. */
#define CHECK(cond, ...)                                                            \
  do {                                                                              \
    if (!(cond))                                                                    \
      check_fail(__FILE__, __LINE__, __VA_ARGS__);                                  \
  } while (0)

/* Checks that two integers are equal. */
#define CHECK_EQ(got, want)                                                         \
  do {                                                                              \
    long long check_got = (long long)(got), check_want = (long long)(want);         \
    CHECK(check_got == check_want, "%s is %lld, expected %lld", #got,               \
          check_got, check_want);                                                   \
  } while (0)

/* Checks that a call succeeds. */
#define CHECK_OK(call)                                                              \
  do {                                                                              \
    int check_rc = (call);                                                          \
    CHECK(check_rc == ARMCI_SUCCESS, "%s returned %d (%s)", #call, check_rc,        \
          portolan_last_error());                                                   \
  } while (0)

/* Checks that two byte ranges are equal; the message names the first difference. */
#define CHECK_BYTES(got, want, len, ...)                                            \
  do {                                                                              \
    long check_first = check_differ((got), (want), (len));                          \
    if (check_first >= 0) {                                                         \
      char check_text[200];                                                         \
      snprintf(check_text, sizeof check_text, __VA_ARGS__);                         \
      check_fail(__FILE__, __LINE__, "%s: byte %ld is 0x%02x, expected 0x%02x",     \
                 check_text, check_first, ((const unsigned char *)(got))[check_first], \
                 ((const unsigned char *)(want))[check_first]);                     \
    }                                                                               \
  } while (0)

static inline long check_differ(const void *a, const void *b, long len)
{
  const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
  for (long i = 0; i < len; i++)
    if (x[i] != y[i])
      return i;
  return -1;
}

static inline void check_deadline(int signal_number)
{
  static const char text[] = "FAIL deadline passed, a call hangs in ";
  ssize_t ignored = write(1, text, sizeof text - 1);
  ignored += write(1, check_name, strlen(check_name));
  ignored += write(1, "\n", 1);
  (void)ignored;
  _exit(signal_number ? 1 : 2);
}

/* Starts the clock only, for programs that start MPI themselves or do without it. */
static inline void check_begin(const char *name)
{
  const char *seconds = getenv("PORTOLAN_TEST_SECONDS");
  check_name = name;
  signal(SIGALRM, check_deadline);
  alarm(seconds ? (unsigned)atoi(seconds) : 50u);
}

/* Starts MPI only, for tests of calls before ARMCI_Init. */
static inline void check_start_mpi(const char *name, int *argc, char ***argv)
{
  const char *ranks = getenv("PORTOLAN_TEST_RANKS");
  check_begin(name);
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  if (ranks)
    CHECK(nproc == atoi(ranks), "the job has %d ranks, not %s: started by another MPI?",
          nproc, ranks);
}

static inline void check_start(const char *name, int *argc, char ***argv)
{
  check_start_mpi(name, argc, argv);
  CHECK_OK(ARMCI_Init());
}

/* Ends a test after MPI_Finalize, or without MPI. */
static inline int check_pass(void)
{
  if (me <= 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  return 0;
}

/* Ends a test after ARMCI_Finalize, once all ranks have reached this call. */
static inline int check_end_mpi(void)
{
  MPI_Barrier(MPI_COMM_WORLD);
  check_pass();
  MPI_Finalize();
  return 0;
}

static inline int check_end(void)
{
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Finalize());
  return check_end_mpi();
}

/* ------------------------------------------------------------------ helpers */

/* Returns the next number of a fixed pseudo-random sequence, below the bound. */
static inline int check_random(int bound)
{
  check_state = check_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((check_state >> 33) % (unsigned long long)bound);
}

/* Returns byte i of a pattern. */
static inline unsigned char check_byte(int seed, long i)
{
  return (unsigned char)((seed * 131 + i * 7 + (i >> 8) * 13 + 1) & 0xff);
}

static inline void check_fill(void *buffer, int seed, long len)
{
  for (long i = 0; i < len; i++)
    ((unsigned char *)buffer)[i] = check_byte(seed, i);
}

static inline void *check_calloc(long len)
{
  void *buffer = calloc(len > 0 ? (size_t)len : 1, 1);
  CHECK(buffer != NULL, "no memory for %ld bytes", len);
  return buffer;
}

/* Allocates a segment of len zero bytes on each rank; returns the table of addresses. */
static inline void **check_segment(long len)
{
  void **base = (void **)check_calloc(nproc * (long)sizeof(void *));
  CHECK_OK(ARMCI_Malloc(base, len));
  if (len > 0) {
    CHECK(base[me] != NULL, "no address for %ld bytes", len);
    memset(base[me], 0, (size_t)len);
  }
  ARMCI_Barrier();
  return base;
}

static inline void check_free_segment(void **base)
{
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
}

static inline char *check_at(void **base, int proc, long offset)
{
  return (char *)base[proc] + offset;
}

static inline void check_nap(int milliseconds)
{
  struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
  nanosleep(&time, NULL);
}

static inline double check_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif /* CHECK_H */
