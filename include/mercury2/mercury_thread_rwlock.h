/* mercury_thread_rwlock.h - Mercury 2.4: read-write locks over pthreads. */
#ifndef MERCURY_THREAD_RWLOCK_H
#define MERCURY_THREAD_RWLOCK_H

#include "mercury_util_config.h"

#include "mercury_thread_annotation.h"

#include <pthread.h>

typedef pthread_rwlock_t hg_thread_rwlock_t;

static HG_UTIL_INLINE int hg_thread_rwlock_init(hg_thread_rwlock_t *rwlock)
{
  return pthread_rwlock_init(rwlock, NULL) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_rwlock_destroy(hg_thread_rwlock_t *rwlock)
{
  return pthread_rwlock_destroy(rwlock) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_rwlock_rdlock(hg_thread_rwlock_t *rwlock)
{
  (void)pthread_rwlock_rdlock(rwlock);
}

static HG_UTIL_INLINE int hg_thread_rwlock_try_rdlock(hg_thread_rwlock_t *rwlock)
{
  return pthread_rwlock_tryrdlock(rwlock) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_rwlock_release_rdlock(hg_thread_rwlock_t *rwlock)
{
  (void)pthread_rwlock_unlock(rwlock);
}

static HG_UTIL_INLINE void hg_thread_rwlock_wrlock(hg_thread_rwlock_t *rwlock)
{
  (void)pthread_rwlock_wrlock(rwlock);
}

static HG_UTIL_INLINE int hg_thread_rwlock_try_wrlock(hg_thread_rwlock_t *rwlock)
{
  return pthread_rwlock_trywrlock(rwlock) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_rwlock_release_wrlock(hg_thread_rwlock_t *rwlock)
{
  (void)pthread_rwlock_unlock(rwlock);
}

#endif /* MERCURY_THREAD_RWLOCK_H */
