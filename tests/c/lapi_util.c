/*
 * The lock and the conditions of LAPI_Util. Covers the owner of the lock, exclusion of handlers
 * while a thread holds it, calls of the owner that wait or poll, which let handlers run and then
 * return the lock, and conditions.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

#include <errno.h>
#include <pthread.h>

enum { MARK = 1, MOVE, STORE, STEPS = 2000 };

static lapi_thread_func_t tf;
static lapi_cntr_t tgt, org, cmpl;
static void **tgt_of, **word_of;
static volatile long ran, word;
static int right, left;

/* ------------------------------------------------------------------- handlers */

HEADER_HANDLER(mark)
{
  *comp_h = NULL;
  ran = ran + 1;
  return NULL;
}

/* Two numbers that are equal unless a thread is between the two updates. */
static volatile long first, second;

static void move_both(void)
{
  const long a = first;
  sched_yield();
  first = a + 1;
  sched_yield();
  second = second + 1;
}

HEADER_HANDLER(move)
{
  *comp_h = NULL;
  CHECK_EQ(first, second);
  move_both();
  return NULL;
}

static lapi_cond_t stored;
static volatile long store;

/* Handlers run under the lock. They may take it again, and signal. */
HEADER_HANDLER(put_in_store)
{
  pthread_t owner;
  *comp_h = NULL;
  CHECK_EQ(tf.mutex_lock(*h), 0);
  CHECK_EQ(tf.mutex_getowner(*h, &owner), 0);
  CHECK(pthread_equal(owner, pthread_self()), "a handler does not have the lock");
  store = store + 1;
  CHECK_EQ(tf.cond_signal(*h, &stored), 0);
  CHECK_EQ(tf.mutex_unlock(*h), 0);
  return NULL;
}

/* ----------------------------------------------------------------- who has it */

static pthread_t owner(void)
{
  pthread_t thread;
  CHECK_EQ(tf.mutex_getowner(hndl, &thread), 0);
  return thread;
}

struct tried { int lock, unlock; };

static void *try_elsewhere(void *result)
{
  struct tried *tried = (struct tried *)result;
  tried->unlock = tf.mutex_unlock(hndl);
  tried->lock = tf.mutex_trylock(hndl);
  if (tried->lock == 0)
    CHECK_EQ(tf.mutex_unlock(hndl), 0);
  return NULL;
}

static int elsewhere(void)
{
  pthread_t thread;
  struct tried tried = { -1, -1 };
  CHECK_EQ(pthread_create(&thread, NULL, try_elsewhere, &tried), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(tried.unlock, EPERM);
  return tried.lock;
}

/* A handler of the library may hold the lock when the other thread tries it, so it retries. */
static void is_free(void)
{
  while (elsewhere() != 0)
    sched_yield();
  CHECK(owner() == LAPI_NULL_THREAD_ID, "somebody has the lock");
}

static void is_mine(void)
{
  CHECK(pthread_equal(owner(), pthread_self()), "this thread does not have the lock");
  CHECK_EQ(elsewhere(), EBUSY);
}

static void ownership(void)
{
  CHECK_EQ(tf.Util_type, LAPI_GET_THREAD_FUNC);
  is_free();
  CHECK_EQ(tf.mutex_unlock(hndl), EPERM);
  CHECK_EQ(tf.mutex_lock(hndl), 0);
  is_mine();
  CHECK_EQ(tf.mutex_lock(hndl), 0);           /* the lock nests */
  CHECK_EQ(tf.mutex_trylock(hndl), 0);
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  is_mine();
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  is_free();
  while (tf.mutex_trylock(hndl) != 0)
    sched_yield();
  is_mine();
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  is_free();

  lapi_thread_func_t again;
  memset(&again, 0, sizeof again);
  again.Util_type = LAPI_GET_THREAD_FUNC;
  LAPI_OK(PLAPI_Util(hndl, (lapi_util_t *)&again));
  CHECK(again.mutex_lock == tf.mutex_lock && again.cond_destroy == tf.cond_destroy, "other functions");
  LAPI_CODE(tf.mutex_lock(hndl + 1), LAPI_ERR_HNDL_INVALID);
  LAPI_CODE(tf.mutex_unlock(LAPI_VOID_HANDLE), LAPI_ERR_HNDL_INVALID);
  LAPI_CODE(tf.mutex_getowner(hndl, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(tf.cond_wait(hndl, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(tf.cond_timedwait(hndl, &stored, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(tf.cond_signal(hndl, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(tf.cond_init(hndl, NULL), LAPI_ERR_RET_PTR_NULL);
  LAPI_CODE(tf.cond_destroy(hndl, NULL), LAPI_ERR_RET_PTR_NULL);
}

/* ------------------------------------------------------------------- exclusion */

/* Data under the lock stays consistent, whether the program or a handler changes it. */
static void exclusion(void)
{
  first = second = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  for (int i = 0; i < STEPS; i++) {
    LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)MOVE, NULL, 0, NULL, 0, NULL, NULL, NULL));
    CHECK_EQ(tf.mutex_lock(hndl), 0);
    CHECK_EQ(first, second);
    move_both();
    CHECK_EQ(first, second);
    CHECK_EQ(tf.mutex_unlock(hndl), 0);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(first, 2 * STEPS);
  CHECK_EQ(second, 2 * STEPS);
}

/* ------------------------------------------------- calls that give the lock up */

static const char *const names[] = { "LAPI_Waitcntr", "LAPI_Nopoll_wait", "LAPI_Probe", "LAPI_Msgpoll",
  "LAPI_Fence", "LAPI_Gfence", "LAPI_Address_init", "LAPI_Get", "LAPI_Rmw" };
enum { CALLS = sizeof names / sizeof names[0] };

/* Each task holds the lock, sends a message to its neighbour, and repeats the call until its own
 * message has arrived. */
static void one_call(int which)
{
  long value = 0;
  int in = 1, previous = -1;
  lapi_msg_info_t info;
  void **table;

  ran = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(tf.mutex_lock(hndl), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)MARK, NULL, 0, NULL, 0, tgt_of[right], NULL, NULL));
  while (which == 0 ? lapi_value(&tgt) == 0 && ran == 0 : ran == 0) {
    switch (which) {
    case 0: LAPI_WAIT(&tgt, 1); break;
    case 1: LAPI_OK(LAPI_Nopoll_wait(hndl, &tgt, 1, NULL)); break;
    case 2: LAPI_OK(LAPI_Probe(hndl)); break;
    case 3: LAPI_OK(LAPI_Msgpoll(hndl, 10, &info)); break;
    case 4: LAPI_OK(LAPI_Fence(hndl)); break;
    case 5: LAPI_OK(LAPI_Gfence(hndl)); break;
    case 6: table = lapi_exchange(&tgt); free(table); break;
    case 7:
      LAPI_OK(LAPI_Get(hndl, (uint)right, sizeof value, word_of[right], &value, NULL, &org));
      LAPI_WAIT(&org, 1);
      LAPI_OK(LAPI_Probe(hndl));
      break;
    default:
      LAPI_OK(LAPI_Rmw(hndl, FETCH_AND_ADD, (uint)right, (int *)word_of[right], &in, &previous, &org));
      LAPI_WAIT(&org, 1);
      LAPI_OK(LAPI_Probe(hndl));
    }
    is_mine();                                /* every call returns with the lock held */
    if (which >= 4 && which <= 6)
      break;                                  /* collective, or needed equally often at each task */
  }
  CHECK(pthread_equal(owner(), pthread_self()), "%s does not give the lock back", names[which]);
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(ran, 1);
  lapi_zero(&tgt);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* The lock ends with its context. */
static void at_the_end(void)
{
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  CHECK_EQ(tf.mutex_lock(hndl), 0);
  const lapi_handle_t old = hndl;
  LAPI_OK(LAPI_Term(hndl));
  LAPI_CODE(tf.mutex_unlock(old), LAPI_ERR_HNDL_INVALID);
  LAPI_OK(LAPI_Init(&hndl, &info));
  is_free();
  LAPI_OK(LAPI_Addr_set(hndl, (void *)mark, MARK));
  ran = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, NULL));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(ran, 1);
}

/* ------------------------------------------------------------------ conditions */

static void by_handlers(void)
{
  store = 0;
  CHECK_EQ(tf.cond_init(hndl, &stored), 0);
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(tf.cond_wait(hndl, &stored), EPERM);   /* without the lock */
  for (int i = 1; i <= 50; i++) {
    CHECK_EQ(tf.mutex_lock(hndl), 0);
    LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)STORE, NULL, 0, NULL, 0, NULL, NULL, NULL));
    while (store < i) {
      CHECK_EQ(tf.cond_wait(hndl, &stored), 0);
      CHECK(pthread_equal(owner(), pthread_self()), "cond_wait does not give the lock back");
    }
    CHECK_EQ(tf.mutex_unlock(hndl), 0);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(store, 50);
  CHECK_EQ(tf.cond_destroy(hndl, &stored), 0);
}

static void with_time(void)
{
  lapi_cond_t never;
  struct timespec time = { 1, 0 };            /* in the past */
  CHECK_EQ(tf.cond_init(hndl, &never), 0);
  CHECK_EQ(tf.mutex_lock(hndl), 0);
  CHECK_EQ(tf.cond_timedwait(hndl, &never, &time), ETIMEDOUT);
  is_mine();
  time.tv_nsec = 1000000000;
  CHECK_EQ(tf.cond_timedwait(hndl, &never, &time), EINVAL);
  time.tv_sec = -1;
  time.tv_nsec = 0;
  CHECK_EQ(tf.cond_timedwait(hndl, &never, &time), EINVAL);
  CHECK_EQ(clock_gettime(CLOCK_REALTIME, &time), 0);
  const struct timespec begun = time;
  time.tv_sec += 1;
  CHECK_EQ(tf.cond_timedwait(hndl, &never, &time), ETIMEDOUT);
  is_mine();
  struct timespec now;
  CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
  CHECK(now.tv_sec > begun.tv_sec, "cond_timedwait came back early");
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
  time.tv_sec += 3600;
  CHECK_EQ(tf.cond_init(hndl, &stored), 0);   /* ended by a signal long before the timeout */
  store = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(tf.mutex_lock(hndl), 0);
  LAPI_OK(LAPI_Amsend(hndl, (uint)left, (void *)STORE, NULL, 0, NULL, 0, NULL, NULL, NULL));
  while (store == 0)
    CHECK_EQ(tf.cond_timedwait(hndl, &stored, &time), 0);
  CHECK_EQ(tf.mutex_unlock(hndl), 0);
}

int main(int argc, char **argv)
{
  lapi_start("lapi_util", &argc, &argv);
  right = (me + 1) % nproc;
  left = (me + nproc - 1) % nproc;
  lapi_zero(&tgt);
  lapi_zero(&org);
  lapi_zero(&cmpl);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)mark, MARK));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)move, MOVE));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)put_in_store, STORE));
  tf.Util_type = LAPI_GET_THREAD_FUNC;
  LAPI_OK(LAPI_Util(hndl, (lapi_util_t *)&tf));
  tgt_of = lapi_exchange(&tgt);
  word_of = lapi_exchange((void *)&word);

  ownership();
  exclusion();
  for (int which = 0; which < CALLS; which++)
    one_call(which);
  by_handlers();
  with_time();
  LAPI_OK(LAPI_Gfence(hndl));
  at_the_end();
  free(tgt_of);
  free(word_of);
  return lapi_end();
}
