/* The lock nests and belongs to a thread; its holder's own asyncs run at once, and the others after it is
 * released. The check `x10` of tests/ranks has more asyncs for locked places. */
// TEST: x10
#include "x10_check.h"

#include <pthread.h>

static volatile int inside, hits;

static void touch(async_arg_t *args, int n)
{
  (void)args;
  (void)n;
  CHECK(!inside, "an async runs while its place is locked");
  hits++;
}

static void own(async_arg_t *args, int n) { (void)args; (void)n; hits += 1000; }

static void nests(void)
{
  hits = 0;
  GOOD(x10_gfence());
  for (int i = 0; i < 4; i++)
    GOOD(x10_lock());
  inside = 1;
  if (nproc > 1)
    MPI_Barrier(MPI_COMM_WORLD);    /* all places hold their locks */
  /* the holder's own async runs at once */
  GOOD(x10_asyncSpawnInline(me, 0, own));
  CHECK_EQ(hits, 1000);
  if (nproc > 1)
    GOOD(x10_asyncSpawnInline((me + 1) % nproc, 0, touch));
  for (int i = 0; i < 3; i++)
    GOOD(x10_unlock());
  const double until = check_seconds() + 0.02;
  while (check_seconds() < until)
    CHECK_EQ(hits, 1000);
  FAILS(x10_fence(), "lock");
  FAILS(x10_gfence(), "lock");
  FAILS(x10_finalize(), "lock");
  inside = 0;
  GOOD(x10_unlock());
  GOOD(x10_gfence());
  CHECK_EQ(hits, nproc > 1 ? 1001 : 1000);
  FAILS(x10_unlock(), "lock");
  FAILS(x10_unlock(), "lock");
}

/* An async may lock and unlock, without any effect. */
static void locks(async_arg_t *args, int n)
{
  (void)args;
  (void)n;
  GOOD(x10_lock());
  GOOD(x10_lock());
  hits++;
  GOOD(x10_unlock());
  GOOD(x10_unlock());
  FAILS(x10_unlock(), "lock");
}

static void in_asyncs(void)
{
  hits = 0;
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++)
    GOOD(x10_asyncSpawnInline(p, 0, locks));
  GOOD(x10_gfence());
  CHECK_EQ(hits, nproc);
}

static volatile int other_has;

static void *other_thread(void *unused)
{
  CHECK_EQ(x10_unlock(), X10_ERR_LAPI);         /* held by another thread */
  GOOD(x10_lock());                             /* waits for the first thread */
  CHECK(!inside, "two threads hold the lock");
  other_has = 1;
  GOOD(x10_unlock());
  return unused;
}

static void threads(void)
{
  pthread_t thread;
  int level;

  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE)
    return;
  other_has = 0;
  GOOD(x10_lock());
  inside = 1;
  CHECK_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
  check_linger();
  CHECK_EQ(other_has, 0);
  inside = 0;
  GOOD(x10_unlock());
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(other_has, 1);
  GOOD(x10_gfence());
}

int main(int argc, char **argv)
{
  x_start("x10_lock", &argc, &argv);
  nests();
  in_asyncs();
  threads();
  return x_end();
}
