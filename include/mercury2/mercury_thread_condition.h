/* mercury_thread_condition.h - Mercury 2.4: condition variables over pthreads. */
#ifndef MERCURY_THREAD_CONDITION_H
#define MERCURY_THREAD_CONDITION_H

#include "mercury_thread_mutex.h"
#include "mercury_time.h"

typedef pthread_cond_t hg_thread_cond_t;

/* Initialises a condition whose timed waits use the monotonic clock. */
static HG_UTIL_INLINE int hg_thread_cond_init(hg_thread_cond_t *cond)
{
  pthread_condattr_t attr;
  int rc;
  if (pthread_condattr_init(&attr))
    return HG_UTIL_FAIL;
  rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  if (rc == 0)
    rc = pthread_cond_init(cond, &attr);
  (void)pthread_condattr_destroy(&attr);
  return rc == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_cond_destroy(hg_thread_cond_t *cond)
{
  return pthread_cond_destroy(cond) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_cond_signal(hg_thread_cond_t *cond)
{
  return pthread_cond_signal(cond) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_cond_broadcast(hg_thread_cond_t *cond)
{
  return pthread_cond_broadcast(cond) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_cond_wait(hg_thread_cond_t *cond, hg_thread_mutex_t *mutex)
{
  return pthread_cond_wait(cond, mutex) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/* Waits for at most the given milliseconds. */
static HG_UTIL_INLINE int hg_thread_cond_timedwait(hg_thread_cond_t *cond,
                                                   hg_thread_mutex_t *mutex, unsigned int timeout)
{
  hg_time_t end;
  if (hg_time_get_current(&end) != HG_UTIL_SUCCESS)
    return HG_UTIL_FAIL;
  end = hg_time_add(end, hg_time_from_ms(timeout));
  return pthread_cond_timedwait(cond, mutex, &end) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

#endif /* MERCURY_THREAD_CONDITION_H */
