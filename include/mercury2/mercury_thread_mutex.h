/* mercury_thread_mutex.h - Mercury 2.4: mutexes over pthreads. */
#ifndef MERCURY_THREAD_MUTEX_H
#define MERCURY_THREAD_MUTEX_H

#include "mercury_util_config.h"

#include "mercury_thread_annotation.h"

#include <pthread.h>

typedef pthread_mutex_t hg_thread_mutex_t;
#define HG_THREAD_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER

static HG_UTIL_INLINE int hg_thread_mutex_init(hg_thread_mutex_t *mutex)
{
  return pthread_mutex_init(mutex, NULL) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_mutex_init_fast(hg_thread_mutex_t *mutex)
{
  return pthread_mutex_init(mutex, NULL) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_mutex_destroy(hg_thread_mutex_t *mutex)
{
  return pthread_mutex_destroy(mutex) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_mutex_lock(hg_thread_mutex_t *mutex)
{
  (void)pthread_mutex_lock(mutex);
}

static HG_UTIL_INLINE int hg_thread_mutex_try_lock(hg_thread_mutex_t *mutex)
{
  return pthread_mutex_trylock(mutex) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_mutex_unlock(hg_thread_mutex_t *mutex)
{
  (void)pthread_mutex_unlock(mutex);
}

#endif /* MERCURY_THREAD_MUTEX_H */
