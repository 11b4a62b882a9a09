/* mercury_thread_spin.h - Mercury 2.4: spin locks over pthreads. */
#ifndef MERCURY_THREAD_SPIN_H
#define MERCURY_THREAD_SPIN_H

#include "mercury_util_config.h"

#include "mercury_thread_annotation.h"

#include <pthread.h>

typedef pthread_spinlock_t hg_thread_spin_t;

static HG_UTIL_INLINE int hg_thread_spin_init(hg_thread_spin_t *lock)
{
  return pthread_spin_init(lock, PTHREAD_PROCESS_PRIVATE) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE int hg_thread_spin_destroy(hg_thread_spin_t *lock)
{
  return pthread_spin_destroy(lock) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_spin_lock(hg_thread_spin_t *lock)
{
  (void)pthread_spin_lock(lock);
}

static HG_UTIL_INLINE int hg_thread_spin_try_lock(hg_thread_spin_t *lock)
{
  return pthread_spin_trylock(lock) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static HG_UTIL_INLINE void hg_thread_spin_unlock(hg_thread_spin_t *lock)
{
  (void)pthread_spin_unlock(lock);
}

#endif /* MERCURY_THREAD_SPIN_H */
