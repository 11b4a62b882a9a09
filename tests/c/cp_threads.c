/* The start and the end of cp.h: nothing is performed before the first cp_sync, and cp_finalize
 * is refused, without effect, while another thread is in a call. */
// TEST: armci moving
#include "cp_check.h"

#include <pthread.h>

static char from[8] = "hello", to[8];
static volatile int waits;

static void *waiter(void *unused)
{
  (void)unused;
  waits = 1;
  CP(cp_waitfor(1));
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  int level;

  cp_start("cp_threads", &argc, &argv);
  MPI_Query_thread(&level);
  void **all = cp_addresses(to);
  const int mapped = cp_block((me + 1) % nproc, from, all[(me + 1) % nproc], sizeof from);
  CP_FAILS(cp_perform(mapped), CP_ERR_STATE, "sync");
  CP_FAILS(cp_waitfor(0), CP_ERR_STATE, "sync");
  CP_FAILS(cp_arrived(), CP_ERR_STATE, "sync");
  CP(cp_sync());
  if (level == MPI_THREAD_MULTIPLE) {
    CHECK_EQ(pthread_create(&thread, NULL, waiter, NULL), 0);
    while (!waits)
      check_nap(1);
    check_nap(50);
    CP_FAILS(cp_finalize(), CP_ERR_STATE, "thread");
    CHECK(cp_comptype(mapped) > 0, "the composition is gone: %s", cp_errmsg());
    MPI_Barrier(MPI_COMM_WORLD);
    CP(cp_perform(mapped));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(strcmp(to, "hello"), 0);
  }
  return cp_end();
}
