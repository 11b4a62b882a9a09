/*
 * faults.c - faults from outside the program: killed and absent ranks, targets that compute or are
 * stopped, too little memory, few descriptors, floods. `faults CASE [NUMBER]` runs one case;
 * tests/driver/src/faults knows how each case must end and checks what it leaves behind.
 *
 * Cases that must end the job print "EXPECT-END CASE" once everything is set up.
 */
// TEST: faults
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <lapi.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void **base;
static int victim;                  /* the last rank */
static long number;                 /* NUMBER */

static void ready(const char *name)
{
  ARMCI_Barrier();
  if (me == 0) {
    printf("EXPECT-END %s\n", name);
    check_linger();
  }
  ARMCI_Barrier();
}

static void nap(double seconds)
{
  struct timespec time = { (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };
  while (nanosleep(&time, &time) && errno == EINTR) {}
}

static void compute(double seconds)
{
  for (const double end = check_seconds() + seconds; check_seconds() < end;) {}
}

static void die(void) { kill(getpid(), SIGKILL); }

static void survived(const char *name)
{
  printf("FAIL faults %s: rank %d went on\n", name, me);
  fflush(stdout);
}

/* ----------------------------------------------------- a rank is killed */

static void kill_holder(void)       /* the victim holds a mutex that all others want */
{
  CHECK_OK(ARMCI_Create_mutexes(1));
  ready("kill-holder");
  if (me == victim) {
    ARMCI_Lock(0, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    nap(0.5);
    die();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ARMCI_Lock(0, 0);
  survived("kill-holder");
}

static void kill_fence(void)        /* others fence on it */
{
  char *buffer = check_calloc(1 << 16);
  ready("kill-fence");
  if (me == victim) {
    nap(0.5);
    die();
  }
  for (;;) {
    CHECK_OK(ARMCI_Put(buffer, base[victim], 1 << 16, victim));
    ARMCI_Fence(victim);
    CHECK_OK(ARMCI_Get(base[victim], buffer, 1 << 16, victim));
  }
}

static void kill_collective(void)   /* in the middle of a collective */
{
  double values[1000] = { 0 };
  ready("kill-collective");
  for (int round = 0;; round++) {
    if (me == victim && round == 20)
      die();
    armci_msg_dgop(values, 1000, (char[]){ "+" });
    ARMCI_Barrier();
  }
}

static void *killer(void *unused)
{
  (void)unused;
  nap(0.05 + 0.001 * (double)number);
  die();
  return NULL;
}

static void kill_allocate(void)     /* at a random time during allocation and traffic */
{
  pthread_t thread;
  void **table = check_calloc(nproc * (long)sizeof(void *));
  char *buffer = check_calloc(1 << 20);
  ready("kill-allocate");
  if (me == victim)
    CHECK_EQ(pthread_create(&thread, NULL, killer, NULL), 0);
  for (long round = 0;; round++) {
    const long bytes = round % 3 ? 1 << 20 : 20 << 20;
    CHECK_OK(ARMCI_Malloc(table, bytes));
    CHECK_OK(ARMCI_Put(buffer, table[(me + 1) % nproc], 1 << 20, (me + 1) % nproc));
    ARMCI_Barrier();
    CHECK_OK(ARMCI_Free(table[me]));
  }
}

/* ------------------------------------------------ a rank leaves too early */

static void exit_early(void)        /* by exit, with status 0 */
{
  ready("exit-early");
  if (me == victim)
    exit(0);
  ARMCI_Barrier();
  survived("exit-early");
}

static void exit_status(void)
{
  ready("exit-status");
  if (me == victim)
    exit(3);
  ARMCI_Barrier();
  survived("exit-status");
}

static void exit_all(void)          /* all leave main without ARMCI_Finalize or MPI_Finalize */
{
  ready("exit-all");
  exit(0);
}

/* --------------------------------------------------------------- slow targets */

/* Performs each kind of operation on rank 0; returns the longest round in seconds. */
static double visit(int rounds)
{
  double longest = 0;
  char *data = check_calloc(1 << 18), *back = check_calloc(1 << 18);
  for (int round = 0; round < rounds; round++) {
    const double begun = check_seconds();
    double one = 1;
    long old = 0;
    check_fill(data, me + round, 1 << 18);
    char *place = check_at(base, 0, 64 + ((long)me << 18)); /* after the two counters */
    CHECK_OK(ARMCI_Put(data, place, 1 << 18, 0));
    CHECK_OK(ARMCI_Get(place, back, 1 << 18, 0));
    CHECK_BYTES(back, data, 1 << 18, "round %d, what was put", round);
    CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &one, &one, base[0], 8, 0));
    CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, check_at(base, 0, 8), 1, 0));
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
    ARMCI_Fence(0);
    const double took = check_seconds() - begun;
    if (took > longest)
      longest = took;
  }
  free(data);
  free(back);
  return longest;
}

static void check_visits(long visits)
{
  ARMCI_Barrier();
  if (me == 0) {
    CHECK_EQ(*(double *)base[0], visits);
    CHECK_EQ(*(long *)check_at(base, 0, 8), visits);
  }
  ARMCI_Barrier();
}

static void slow_target(void)       /* rank 0 computes without any call until the others are done */
{
  const long visits = 20L * (nproc - 1);
  CHECK_OK(ARMCI_Create_mutexes(1));
  ARMCI_Barrier();
  if (me == 0) {
    const volatile long *made = (volatile long *)check_at(base, 0, 8);
    while (*made < visits) {}
  } else {
    printf("rank %d: the slowest round took %.4f s\n", me, visit(20));
  }
  check_visits(visits);
  CHECK_OK(ARMCI_Destroy_mutexes());
}

static void stopped_target(void)    /* rank 0 is stopped for five seconds, then continued */
{
  const int seconds = number > 0 ? (int)number : 5;
  CHECK_OK(ARMCI_Create_mutexes(1));
  ARMCI_Barrier();
  if (me == 0) {
    const pid_t self = getpid(), child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {               /* async-signal-safe calls only: the parent has threads */
      struct timespec time = { seconds, 0 }, little = { 0, 100000000 };
      nanosleep(&little, NULL);
      kill(self, SIGSTOP);
      nanosleep(&time, NULL);
      kill(self, SIGCONT);
      _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    visit(10);
  } else {
    nap(0.3);
    printf("rank %d: the slowest round took %.4f s\n", me, visit(10));
  }
  check_visits(10L * nproc);
  CHECK_OK(ARMCI_Destroy_mutexes());
}

/* ------------------------------------------------------------- scarce resources */

static long status_line(const char *name)  /* a field of /proc/self/status, in KiB */
{
  char line[200];
  long value = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
      value = atol(line + strlen(name) + 1);
  if (file)
    fclose(file);
  return value;
}

static int descriptors(void)
{
  int count = 0;
  for (int fd = 0; fd < 5000; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

/* Checks that segments still work, in all of their bytes. */
static void still_works(long bytes)
{
  void **table = check_calloc(nproc * (long)sizeof(void *));
  const int right = (me + 1) % nproc;
  CHECK_OK(ARMCI_Malloc(table, bytes));
  memset(table[me], me, (size_t)bytes);
  ARMCI_Barrier();
  char got = 99;
  CHECK_OK(ARMCI_Get((char *)table[right] + bytes - 1, &got, 1, right));
  CHECK_EQ(got, right);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Free(table[me]));
  free(table);
}

static void small_shm(void)         /* the shared-memory directory has NUMBER MiB */
{
  void **table = check_calloc(nproc * (long)sizeof(void *));
  for (int round = 0; round < 3; round++) {
    CHECK_EQ(ARMCI_Malloc(table, number << 20), PORTOLAN_ERR_MEMORY);
    CHECK(strstr(portolan_last_error(), "free") != NULL, "what is free: %s", portolan_last_error());
    CHECK_EQ(ARMCI_Malloc(table, me == nproc - 1 ? 2 * number << 20 : 8), PORTOLAN_ERR_MEMORY);
    still_works(100000);
  }
  free(table);
}

static void no_memory(void)         /* one rank has a limit on its address space */
{
  void **table = check_calloc(nproc * (long)sizeof(void *));
  struct rlimit limit;
  CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  if (me == nproc - 1) {
    limit.rlim_cur = ((rlim_t)status_line("VmSize") << 10) + (64u << 20);
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ARMCI_Barrier();
  for (int round = 0; round < 3; round++) {
    CHECK_EQ(ARMCI_Malloc(table, 256L << 20), PORTOLAN_ERR_MEMORY);
    for (int p = 0; p < nproc; p++)
      CHECK(table[p] == NULL, "a failed ARMCI_Malloc set the address of rank %d", p);
    if (me == nproc - 1)
      CHECK(ARMCI_Malloc_local(256L << 20) == NULL, "local memory beyond the limit");
    still_works(100000);
  }
  free(table);
}

static void few_descriptors(void)   /* NUMBER segments of 64 KiB, then of all sizes */
{
  const long count = number > 0 ? number : 1000;
  struct rlimit limit = { 64, 64 };
  void ***tables = check_calloc(count * (long)sizeof(void **));
  int failures = 0;
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const int before = descriptors();
  for (long i = 0; i < count; i++) {
    tables[i] = check_calloc(nproc * (long)sizeof(void *));
    CHECK_OK(ARMCI_Malloc(tables[i], 65536));
    memset(tables[i][me], (int)i, 65536);
  }
  const int after = descriptors();
  ARMCI_Barrier();
  for (long i = 0; i < count; i++) {
    unsigned char got = 0;
    CHECK_OK(ARMCI_Get((char *)tables[i][(me + 1) % nproc] + 65535, &got, 1, (me + 1) % nproc));
    CHECK_EQ(got, i & 0xff);
  }
  ARMCI_Barrier();
  for (long i = 0; i < count; i++)
    CHECK_OK(ARMCI_Free(tables[i][me]));
  printf("rank %d: %d descriptors before, %d with %ld segments of 64 KiB\n", me, before, after, count);
  /* Large segments have a file each, so descriptors run out; all ranks get the error. */
  long got = 0;
  for (; got < 100 && !failures; got++) {
    const int rc = ARMCI_Malloc(tables[got], 9L << 20);
    failures = rc != ARMCI_SUCCESS;
    CHECK(rc == ARMCI_SUCCESS || rc == PORTOLAN_ERR_MEMORY, "code %d: %s", rc, portolan_last_error());
  }
  got -= failures;
  printf("rank %d: %ld segments of 9 MiB, %d descriptors%s\n", me, got, descriptors(),
         failures ? ", then an error" : "");
  for (long i = 0; i < got; i++)
    CHECK_OK(ARMCI_Free(tables[i][me]));
  still_works(100000);
  for (long i = 0; i < count; i++)
    free(tables[i]);
  free(tables);
}

/* --------------------------------------------------------------------- floods */

static volatile long arrived;       /* incremented by the handler, which runs alone */

static void *count_message(lapi_handle_t *handle, void *head, uint *head_len, ulong *len,
                           compl_hndlr_t **completion, void **user_info)
{
  (void)handle, (void)head, (void)head_len, (void)len, (void)user_info;
  *completion = NULL;
  arrived++;
  return NULL;
}

/* Rank 0 makes no calls for a while, and the others together send NUMBER puts, NUMBER accumulates
 * and NUMBER messages. */
static void flood(void)
{
  const long total = number > 0 ? number : 100000, each = total / (nproc - 1);
  lapi_handle_t lapi;
  lapi_info_t info;
  double one = 1;
  memset(&info, 0, sizeof info);
  CHECK_EQ(LAPI_Init(&lapi, &info), LAPI_SUCCESS);
  void **handlers = check_calloc(nproc * (long)sizeof(void *));
  CHECK_EQ(LAPI_Address_init(lapi, (void *)&count_message, handlers), LAPI_SUCCESS);
  ARMCI_Barrier();
  FILE *clear = fopen("/proc/self/clear_refs", "w");  /* reset the high-water mark */
  if (clear) {
    fputs("5", clear);
    fclose(clear);
  }
  const long before = status_line("VmHWM");
  ARMCI_Barrier();
  const double begun = check_seconds();
  if (me == 0) {
    nap(0.5);
  } else {
    for (long i = 0; i < each; i++)
      CHECK_OK(ARMCI_PutValueLong(i, check_at(base, 0, 4096 + 8 * (i % 512)), 0));
    for (long i = 0; i < each; i++)
      CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &one, &one, base[0], 8, 0));
    for (long i = 0; i < each; i++)
      CHECK_EQ(LAPI_Amsend(lapi, 0, handlers[0], NULL, 0, NULL, 0, NULL, NULL, NULL), LAPI_SUCCESS);
  }
  CHECK_EQ(LAPI_Gfence(lapi), LAPI_SUCCESS);
  ARMCI_Barrier();
  if (me == 0) {
    const long grown = status_line("VmHWM") - before, bound = ((nproc - 1) * (4L << 10)) + (48L << 10);
    printf("rank 0: 3 times %ld in %.1f s, %ld KiB more memory\n", each * (nproc - 1), check_seconds() - begun, grown);
    CHECK_EQ(arrived, each * (nproc - 1));
    CHECK_EQ(*(double *)base[0], each * (nproc - 1));
    for (long i = 0; i < 512; i++) {
      const long last = each - 1 - (each - 1 - i % 512) % 512;
      if (i < each)
        CHECK_EQ(((long *)base[0])[512 + i], last);
    }
    CHECK(grown < bound, "rank 0 took %ld KiB more memory, which is above %ld", grown, bound);
  }
  free(handlers);
  CHECK_EQ(LAPI_Term(lapi), LAPI_SUCCESS);
}

/* --------------------------------------------------------------- the watchdog */

static void hang_barrier(void)
{
  ready("hang-barrier");
  if (me == victim)
    for (;;)
      nap(1);
  ARMCI_Barrier();
}

static void hang_lock(void)
{
  CHECK_OK(ARMCI_Create_mutexes(1));
  ready("hang-lock");
  if (me == victim)
    ARMCI_Lock(0, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == victim)
    for (;;)
      nap(1);
  ARMCI_Lock(0, 0);
}

static void hang_receive(void)
{
  int item = 0;
  ready("hang-receive");
  if (me == victim)
    for (;;)
      nap(1);
  armci_msg_rcv(77, &item, sizeof item, NULL, victim);
}

/* The target is stopped and answers nothing. If puts complete without it (MPICH 4.2 writes to
 * shared memory directly), the accumulate still needs it on MPIs whose windows wait for their
 * target. */
static void hang_fence(void)
{
  long one = 1;
  int scale = 1;
  ready("hang-fence");
  if (me == victim)
    kill(getpid(), SIGSTOP);
  nap(0.3);
  CHECK_OK(ARMCI_PutValueLong(one, base[victim], victim));
  CHECK_OK(ARMCI_NbAcc(ARMCI_ACC_INT, &scale, &one, base[victim], sizeof scale, victim, NULL));
  ARMCI_Fence(victim);
  for (;;)
    nap(1);
}

static void sleeps(lapi_handle_t *handle, void *unused)
{
  (void)handle, (void)unused;
  nap(3600);
}

static void *asleep(lapi_handle_t *handle, void *head, uint *head_len, ulong *len, compl_hndlr_t **completion,
                    void **user_info)
{
  (void)handle, (void)head, (void)head_len, (void)len;
  *completion = sleeps;
  *user_info = NULL;
  return NULL;
}

static void hang_term(void)         /* a completion handler does not return */
{
  lapi_handle_t lapi;
  lapi_info_t info;
  void **handlers = check_calloc(nproc * (long)sizeof(void *));
  memset(&info, 0, sizeof info);
  CHECK_EQ(LAPI_Init(&lapi, &info), LAPI_SUCCESS);
  CHECK_EQ(LAPI_Address_init(lapi, (void *)&asleep, handlers), LAPI_SUCCESS);
  ready("hang-term");
  if (me == 0)
    CHECK_EQ(LAPI_Amsend(lapi, (uint)victim, handlers[victim], NULL, 0, NULL, 0, NULL, NULL, NULL), LAPI_SUCCESS);
  LAPI_Term(lapi);
  survived("hang-term");
}

static void asked(void)             /* SIGUSR1 to a rank that computes and to ranks that wait */
{
  if (me == victim) {
    raise(SIGUSR1);
    compute(2);
  } else {
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
      struct timespec half = { 0, 500000000 };
      nanosleep(&half, NULL);
      kill(self, SIGUSR1);
      _exit(0);
    }
  }
  ARMCI_Barrier();
}

static volatile int own_signals;
static void own_handler(int s) { (void)s, own_signals++; }

static const struct {
  const char *name;
  void (*run)(void);
  long bytes;                       /* segment size */
} all[] = {
  { "kill-holder", kill_holder, 64 },
  { "kill-fence", kill_fence, 1 << 16 },
  { "kill-collective", kill_collective, 64 },
  { "kill-allocate", kill_allocate, 64 },
  { "exit-early", exit_early, 64 },
  { "exit-status", exit_status, 64 },
  { "exit-all", exit_all, 64 },
  { "slow-target", slow_target, 0 },
  { "stopped-target", stopped_target, 0 },
  { "small-shm", small_shm, 64 },
  { "no-memory", no_memory, 64 },
  { "few-descriptors", few_descriptors, 64 },
  { "flood", flood, 16384 },
  { "hang-barrier", hang_barrier, 64 },
  { "hang-lock", hang_lock, 64 },
  { "hang-receive", hang_receive, 64 },
  { "hang-fence", hang_fence, 64 },
  { "hang-term", hang_term, 64 },
  { "asked", asked, 64 },
};

int main(int argc, char **argv)
{
  int which = -1;
  for (int i = 0; argc > 1 && i < (int)(sizeof all / sizeof all[0]); i++)
    if (strcmp(argv[1], all[i].name) == 0)
      which = i;
  if (argc > 1 && strcmp(argv[1], "own-handler") == 0) {
    signal(SIGUSR1, own_handler);   /* the program's own handler must stay */
    check_start("faults", &argc, &argv);
    raise(SIGUSR1);
    ARMCI_Barrier();
    CHECK_EQ(own_signals, 1);
    return check_end();
  }
  if (which < 0)
    return printf("FAIL faults: no such case\n"), 2;
  if (argc > 2)
    number = atol(argv[2]);
  check_start("faults", &argc, &argv);
  victim = nproc - 1;
  base = check_segment(all[which].bytes ? all[which].bytes : 64 + ((long)nproc << 18));
  all[which].run();
  check_free_segment(base);
  return check_end();
}
