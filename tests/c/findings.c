/* Makes the faults that portolan-report finds, or does the same work without them:
 * `findings faults [STEP]` and `findings mended [STEP]` run one step or all. `findings computes`
 * keeps rank 0 outside of all calls while the others wait for a response from it. */
// TEST: n=3 node-size=1 -- mended
// TEST: n=2 -- faults
#include "check.h"

enum { WORDS = 4000, TURNS = 30, COUNTS = 20000, ROWS = 2048, SHAPES = 1000, APART = 512, FENCES = 1500, LONGER = 1024, SEGMENTS = 40 };

static int faults;
static void **base;
static char *here;
static int right;

/* Faulty: single words. Mended: an aggregate handle combines them. */
static void small_puts(void)
{
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  if (!faults)
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
  for (long i = 0; i < WORDS; i++) {
    char *word = check_at(base, right, 8 * (2 * i % ROWS));
    if (faults)
      CHECK_OK(ARMCI_Put(here, word, 8, right));
    else
      CHECK_OK(ARMCI_NbPut(here, word, 8, right, &handle));
  }
  if (!faults)
    CHECK_OK(ARMCI_Wait(&handle));
}

/* Faulty: one mutex for all ranks. Mended: one for each. */
static void locks(void)
{
  const int owner = faults ? 0 : me;
  CHECK_OK(ARMCI_Create_mutexes(1));
  for (int i = 0; i < TURNS; i++) {
    ARMCI_Lock(0, owner);
    check_nap(1);
    ARMCI_Unlock(0, owner);
  }
  CHECK_OK(ARMCI_Destroy_mutexes());
}

/* Faulty: all ranks except the owner use one counter, while the owner polls it. Mended: each
 * rank uses the counter of its right neighbour. */
static void counters(void)
{
  const int owner = faults ? 0 : right;
  volatile long *mine = base[0];
  long old = 0;
  if (me == 0 && faults && nproc > 1)
    while (*mine < COUNTS)
      check_nap(1);
  else
    while (old < (faults ? COUNTS : 100))
      CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, base[owner], 1, owner));
}

/* Faulty: runs of 8 bytes, each in a cache line of its own. Mended: runs of 1024 bytes. The
 * contiguous puts before them show the bandwidth of the path. */
static void shapes(void)
{
  const int run = faults ? 8 : LONGER, bytes = 8 * ROWS;
  int count[2] = { run, bytes / run }, stride = faults ? APART : 2 * LONGER;
  void **to = check_segment(APART * ROWS);
  char *from = check_calloc(APART * ROWS);
  for (int i = 0; i < SHAPES; i++)
    CHECK_OK(ARMCI_Put(from, to[right], bytes, right));
  ARMCI_Barrier();
  for (int i = 0; i < SHAPES; i++)
    CHECK_OK(ARMCI_PutS(from, &stride, to[right], &stride, count, 1, right));
  check_free_segment(to);
  free(from);
}

/* Faulty: a fence after each put. Mended: one after all puts. */
static void fences(void)
{
  for (int i = 0; i < FENCES; i++) {
    CHECK_OK(ARMCI_Put(here, base[right], LONGER, right));
    if (faults)
      ARMCI_Fence(right);
  }
  ARMCI_Fence(right);
}

/* Faulty: rank 1 has all the work. Mended: every rank has its share. */
static void balance(void)
{
  for (int i = 0; i < TURNS; i++) {
    if (!faults || me == 1)
      check_nap(8);
    ARMCI_Barrier();
  }
}

/* Faulty: rank 0 has all the work, and the others wait for it in MPI. Mended: every rank has it. */
static void broadcasts(void)
{
  long word = me;
  for (int i = 0; i < TURNS; i++) {
    if (!faults || me == 0)
      check_nap(8);
    CHECK_EQ(MPI_Bcast(&word, 1, MPI_LONG, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK_EQ(word, 0);
  }
}

/* Faulty: allocates memory for each step. Mended: allocates once. */
static void allocations(void)
{
  for (int i = 0; i < (faults ? SEGMENTS : 1); i++)
    check_free_segment(check_segment(100000));
}

int main(int argc, char **argv)
{
  const char *what;
  check_start("findings", &argc, &argv);
  CHECK(argc > 1, "findings faults, mended or computes, and a step");
  what = argv[1];
  faults = strcmp(what, "faults") == 0;
  right = (me + 1) % nproc;
  base = check_segment(16 * ROWS);
  here = check_calloc(16 * ROWS);
  if (strcmp(what, "computes") == 0) {
    if (me == 0)
      check_nap(300);
    else
      CHECK_OK(ARMCI_Get(base[0], here, 8, 0));
  } else {
    void (*const steps[])(void) = { small_puts, locks, counters, shapes, fences, balance, broadcasts, allocations };
    const char *names[] = { "small", "lock", "counter", "strided", "fences", "imbalance", "broadcast", "allocation" };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
      if (argc > 2 && strcmp(argv[2], names[i]) != 0)
        continue;
      ARMCI_Barrier();
      portolan_region_begin(names[i]);
      steps[i]();
      portolan_region_end();
    }
  }
  check_free_segment(base);
  free(here);
  return check_end();
}
