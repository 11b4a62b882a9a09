/*
 * In all interfaces, statistics count each call once, as the call that the program makes. They count
 * neither the calls inside it nor the calls that start and end an interface.
 */
// TEST: n=2
// TEST: n=2 path=message
// TEST: n=3 node-size=1
#include "check.h"
#include <cp.h>
#include <lapi.h>
#include <x10/x10lib.h>

/* Calls that a program may have made, by kind; the others must be 0. */
typedef struct {
  int call;
  unsigned long long times;
} expected_t;

static void expect_all(const char *what, const expected_t *expected, int kinds)
{
  portolan_stats_t s;
  memset(&s, 0, sizeof s);
  s.size = sizeof s;
  CHECK_EQ(portolan_stats_get(&s), 0);
  CHECK_EQ(s.complete, 1);
  for (int call = 0; call <= PORTOLAN_CALL_OTHER; call++) {
    unsigned long long times = 0;
    for (int i = 0; i < kinds; i++)
      if (expected[i].call == call)
        times = expected[i].times;
    CHECK(s.call[call].calls == times, "%s: %llu calls of kind %d instead of %llu", what,
          (unsigned long long)s.call[call].calls, call, times);
  }
  /* All ranks have compared before one continues. */
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(portolan_stats_reset(), 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

#define EXPECT(what, ...)                                                             \
  do {                                                                                \
    const expected_t expected_[] = { __VA_ARGS__ };                                   \
    expect_all(what, expected_, (int)(sizeof expected_ / sizeof *expected_));         \
  } while (0)

static void count_armci(void)
{
  ARMCI_Group group;
  double record[2] = { (double)me, 1 };
  int *list = (int *)check_calloc(nproc * (long)sizeof(int)), number;
  void **table = (void **)check_calloc(nproc * (long)sizeof(void *));
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;

  for (int rank = 0; rank < nproc; rank++)
    list[rank] = rank;
  CHECK_OK(ARMCI_Init());
  EXPECT("ARMCI_Init", { PORTOLAN_CALL_OTHER, 0 });
  CHECK(armci_notify(right) > 0, "no notification");
  EXPECT("armci_notify", { PORTOLAN_CALL_NOTIFY, 1 });
  CHECK(armci_notify_wait(left, &number) > 0, "no notification");
  EXPECT("armci_notify_wait", { PORTOLAN_CALL_WAIT_FOR_A_NOTIFICATION, 1 });
  armci_msg_sel(record, (int)sizeof record, (char *)"max", ARMCI_DOUBLE, 1);
  CHECK(record[0] == nproc - 1, "selected %g", record[0]);
  EXPECT("armci_msg_sel", { PORTOLAN_CALL_REDUCE, 1 });
  armci_msg_gop_scope(SCOPE_NODE, record, 2, (char *)"min", ARMCI_DOUBLE);
  EXPECT("armci_msg_gop_scope", { PORTOLAN_CALL_REDUCE, armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1) > 1 });
  table[me] = table;
  armci_exchange_address(table, nproc);
  EXPECT("armci_exchange_address", { PORTOLAN_CALL_EXCHANGE, 1 });
  ARMCI_Group_create(nproc, list, &group);
  EXPECT("ARMCI_Group_create", { PORTOLAN_CALL_OTHER, 1 });
  ARMCI_Group_free(&group);
  EXPECT("ARMCI_Group_free", { PORTOLAN_CALL_OTHER, 1 });
  CHECK_OK(ARMCI_Create_mutexes(1));
  EXPECT("ARMCI_Create_mutexes", { PORTOLAN_CALL_ALLOCATE, 1 });
  CHECK_OK(ARMCI_Destroy_mutexes());
  EXPECT("ARMCI_Destroy_mutexes", { PORTOLAN_CALL_FREE, 1 });
  ARMCI_Barrier();
  EXPECT("ARMCI_Barrier", { PORTOLAN_CALL_BARRIER, 1 });
  free(list);
  free(table);
}

static void nothing(async_arg_t *args, int n)
{
  (void)args;
  (void)n;
}

static void count_x10(void)
{
  x10_async_handler_t handlers[] = { nothing };
  const int right = (me + 1) % nproc;

  CHECK_EQ(x10_init(handlers, 1), X10_OK);
  EXPECT("x10_init", { PORTOLAN_CALL_OTHER, 0 });
  CHECK_EQ(x10_fence(), X10_OK);
  EXPECT("x10_fence", { PORTOLAN_CALL_FENCE_TO_ALL, 1 });
  CHECK_EQ(x10_gfence(), X10_OK);
  EXPECT("x10_gfence", { PORTOLAN_CALL_BARRIER, 1 });
  /* The fence sends the message. */
  CHECK_EQ(x10_asyncSpawnInlineAgg(right, 0, nothing, 1), X10_OK);
  CHECK_EQ(x10_gfence(), X10_OK);
  EXPECT("x10_gfence after an async", { PORTOLAN_CALL_AGGREGATED_MESSAGE, 1 }, { PORTOLAN_CALL_BARRIER, 1 });
  CHECK_EQ(x10_finalize(), X10_OK);
  EXPECT("x10_finalize", { PORTOLAN_CALL_BARRIER, 1 });
}

static void count_lapi(void)
{
  static struct {
    lapi_cntr_t arrived;
    int number;
  } mine, *theirs;
  static lapi_cntr_t done;
  static int old;
  int one = 1;
  lapi_handle_t handle;
  lapi_info_t info;
  void **table = (void **)check_calloc(nproc * (long)sizeof(void *));
  const unsigned right = (unsigned)(me + 1) % (unsigned)nproc;

  memset(&info, 0, sizeof info);
  CHECK_EQ(LAPI_Init(&handle, &info), LAPI_SUCCESS);
  EXPECT("LAPI_Init", { PORTOLAN_CALL_OTHER, 0 });
  CHECK_EQ(LAPI_Address_init(handle, &mine, table), LAPI_SUCCESS);
  EXPECT("LAPI_Address_init", { PORTOLAN_CALL_EXCHANGE, 1 });
  theirs = table[right];
  /* The target counts, and then the origin. */
  CHECK_EQ(LAPI_Put(handle, right, sizeof one, &theirs->number, &one, &theirs->arrived, NULL, &done), LAPI_SUCCESS);
  CHECK_EQ(LAPI_Waitcntr(handle, &done, 1, NULL), LAPI_SUCCESS);
  EXPECT("LAPI_Put", { PORTOLAN_CALL_NON_BLOCKING_PUT, 1 });
  CHECK_EQ(LAPI_Rmw(handle, FETCH_AND_ADD, right, &theirs->number, &one, &old, &done), LAPI_SUCCESS);
  CHECK_EQ(LAPI_Waitcntr(handle, &done, 1, NULL), LAPI_SUCCESS);
  EXPECT("LAPI_Rmw", { PORTOLAN_CALL_READ_MODIFY_WRITE, 1 });
  CHECK_EQ(LAPI_Fence(handle), LAPI_SUCCESS);
  EXPECT("LAPI_Fence", { PORTOLAN_CALL_FENCE_TO_ALL, 1 });
  CHECK_EQ(LAPI_Gfence(handle), LAPI_SUCCESS);
  EXPECT("LAPI_Gfence", { PORTOLAN_CALL_BARRIER, 1 });
  CHECK_EQ(LAPI_Term(handle), LAPI_SUCCESS);
  EXPECT("LAPI_Term", { PORTOLAN_CALL_BARRIER, 1 });
  free(table);
}

static void count_compose(void)
{
  char from[16] = { 1 };
  void **to = (void **)check_calloc(nproc * (long)sizeof(void *));
  const int right = (me + 1) % nproc;
  int simple, mapped;

  CHECK_EQ(cp_init(), 0);
  EXPECT("cp_init", { PORTOLAN_CALL_OTHER, 0 });
  CHECK_EQ(cp_malloc(to, 64), 0);
  EXPECT("cp_malloc", { PORTOLAN_CALL_ALLOCATE, 1 });
  simple = cp_create(right);
  CHECK_EQ(cp_add_adxblock(simple, from, to[right], sizeof from), 0);
  mapped = cp_map(simple);
  CHECK(mapped > 0, "%s", cp_errmsg());
  EXPECT("cp_map", { PORTOLAN_CALL_OTHER, 0 });
  CHECK_EQ(cp_sync(), 0);
  EXPECT("cp_sync", { PORTOLAN_CALL_BARRIER, 1 });
  CHECK_EQ(cp_perform(mapped), 0);
  CHECK_EQ(cp_waitfor(1), 0);
  EXPECT("cp_perform", { PORTOLAN_CALL_PERFORM, 1 }, { PORTOLAN_CALL_WAIT_FOR_A_NOTIFICATION, 1 });
  CHECK_EQ(cp_sync(), 0);
  CHECK_EQ(cp_free(to[me]), 0);
  EXPECT("cp_free", { PORTOLAN_CALL_BARRIER, 1 }, { PORTOLAN_CALL_FREE, 1 });
  CHECK_EQ(cp_finalize(), 0);
  EXPECT("cp_finalize", { PORTOLAN_CALL_BARRIER, 1 });
  free(to);
}

int main(int argc, char **argv)
{
  setenv("PORTOLAN_STATS", "1", 1);
  check_start_mpi("counted", &argc, &argv);
  count_armci();
  count_x10();
  count_lapi();
  count_compose();
  return check_end();
}
