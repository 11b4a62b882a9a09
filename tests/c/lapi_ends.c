/*
 * Tasks that do not begin or end LAPI together, and threads that call while another ends it.
 */
// TEST: n={1,2} -- race
// TEST: n=2 node-size=1 -- race
// TEST: n={1,2,3} -- {info,null}
// TEST: n=2 node-size=1 -- info
// TEST: n=2 -- again
// TEST: n=2 node-size=1 -- finalize
// TEST: n=2 -- {quit,quit-early}
// TEST: release n=3 -- {quit,quit-early}
// TEST: abort n=2 -- {alone,early}
// TEST: abort n=2 node-size=1 -- alone
#include "lapi_check.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { ROUNDS = 40, THREADS = 3 };

static volatile lapi_handle_t current;
static volatile int round_number, over;

static void begin(void)
{
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  LAPI_OK(LAPI_Init(&hndl, &info));
}

/* Calls until another thread has ended the context, and then waits for the next one. */
static void *call(void *unused)
{
  int seen = 0, rc;
  (void)unused;
  while (!over) {
    if (round_number == seen) {
      sched_yield();
      continue;
    }
    seen = round_number;
    while ((rc = LAPI_Probe(current)) == LAPI_SUCCESS)
      ;
    CHECK(rc == LAPI_ERR_HNDL_INVALID, "LAPI_Probe returned %s", lapi_text(rc));
  }
  return NULL;
}

static int race(void)
{
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, call, NULL), 0);
  for (int i = 0; i < ROUNDS; i++) {
    begin();
    current = hndl;
    round_number++;
    sched_yield();
    LAPI_OK(LAPI_Gfence(hndl));
    LAPI_OK(LAPI_Term(hndl));
  }
  over = 1;
  for (int i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_join(threads[i], NULL), 0);
  return check_end_mpi();
}

/* The last task passes wrong arguments, so LAPI_Init fails on all tasks. The next one works. */
static int late(int null)
{
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  if (me == nproc - 1) {
    info.info6 = 7;
    LAPI_CODE(LAPI_Init(&hndl, null ? NULL : &info),
              null ? LAPI_ERR_INFO_NULL : LAPI_ERR_INFO_NONZERO);
  } else {
    LAPI_CODE(LAPI_Init(&hndl, &info), LAPI_ERR_UNKNOWN);
    CHECK(strstr(portolan_last_error(), "fails on all tasks"), "%s", portolan_last_error());
  }
  begin();
  return lapi_end();
}

/* Task 1 ends LAPI, while the others are busy elsewhere for longer than it waits for them. */
static int leave(int again)
{
  begin();
  LAPI_OK(LAPI_Gfence(hndl));
  if (me != 1)
    sleep(11);
  LAPI_OK(LAPI_Term(hndl));
  LAPI_CODE(LAPI_Probe(hndl), LAPI_ERR_HNDL_INVALID);
  if (!again)
    return check_end_mpi();
  begin();
  return lapi_end();
}

/* Task 1 aborts the program by LAPI_Term and exit, while the others wait for it. */
static int alone(void)
{
  static lapi_cntr_t counter;
  begin();
  LAPI_OK(LAPI_Setcntr(hndl, &counter, 0));
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 1) {
    printf("EXPECT-ABORT alone\n");
    check_linger();
    LAPI_OK(LAPI_Term(hndl));
    exit(1);
  }
  LAPI_OK(LAPI_Waitcntr(hndl, &counter, 1, NULL));
  CHECK(0, "the counter was reached");
  return 0;
}

/* Task 1 passes wrong arguments to LAPI_Init and ends the program, while the others go on. */
static int early(void)
{
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  if (me == 1) {
    info.info6 = 7;
    LAPI_CODE(LAPI_Init(&hndl, &info), LAPI_ERR_INFO_NONZERO);
    printf("EXPECT-ABORT early\n");
    check_linger();
    exit(1);
  }
  LAPI_CODE(LAPI_Init(&hndl, &info), LAPI_ERR_UNKNOWN);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(0, "task 1 was there");
  return 0;
}

/* Task 1 exits with status 0 after LAPI_Term, or after a LAPI_Init that has failed. Its exit waits
 * for the others, which go on and end as usual. The program leaves MPI to LAPI. */
static int quit(int is_early)
{
  const char *rank = getenv("PMI_RANK");
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  if (rank == NULL)
    rank = getenv("OMPI_COMM_WORLD_RANK");
  CHECK(rank != NULL, "the launcher names no rank");
  me = atoi(rank);
  check_name = "lapi_ends";
  if (is_early) {
    info.info6 = me == 1 ? 7 : 0;
    LAPI_CODE(LAPI_Init(&hndl, &info), me == 1 ? LAPI_ERR_INFO_NONZERO : LAPI_ERR_UNKNOWN);
    if (me == 1)
      exit(0);
    sleep(2);
  } else {
    static lapi_cntr_t counter;
    begin();
    LAPI_OK(LAPI_Gfence(hndl));
    if (me == 1) {
      LAPI_OK(LAPI_Term(hndl));
      exit(0);
    }
    sleep(12);
    LAPI_OK(LAPI_Setcntr(hndl, &counter, 0));
    LAPI_OK(LAPI_Term(hndl));
  }
  return check_pass();
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "quit") == 0 || strcmp(what, "quit-early") == 0)
    return quit(strcmp(what, "quit-early") == 0);
  check_start_mpi("lapi_ends", &argc, &argv);
  if (strcmp(what, "race") == 0)
    return race();
  if (strcmp(what, "info") == 0 || strcmp(what, "null") == 0)
    return late(strcmp(what, "null") == 0);
  if (strcmp(what, "again") == 0 || strcmp(what, "finalize") == 0)
    return leave(strcmp(what, "again") == 0);
  if (strcmp(what, "alone") == 0)
    return alone();
  if (strcmp(what, "early") == 0)
    return early();
  printf("FAIL lapi_ends: no such case\n");
  return 1;
}
