/* mercury_thread.h - Mercury 2.4: threads over pthreads. */
#ifndef MERCURY_THREAD_H
#define MERCURY_THREAD_H

/* Before the first header of the system, as in Mercury. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mercury_util_config.h"

#include <pthread.h>
#include <sched.h>

typedef pthread_t hg_thread_t;
typedef void *(*hg_thread_func_t)(void *);
typedef void *hg_thread_ret_t;
typedef pthread_key_t hg_thread_key_t;
#define HG_THREAD_RETURN_TYPE hg_thread_ret_t

#define HG_THREAD_OK_(call) ((call) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL)

static HG_UTIL_INLINE void hg_thread_init(hg_thread_t *thread)
{
  *thread = 0;
}

static HG_UTIL_INLINE int hg_thread_create(hg_thread_t *thread, hg_thread_func_t f, void *data)
{
  return HG_THREAD_OK_(pthread_create(thread, NULL, f, data));
}

static HG_UTIL_INLINE void hg_thread_exit(hg_thread_ret_t ret)
{
  pthread_exit(ret);
}

static HG_UTIL_INLINE int hg_thread_join(hg_thread_t thread)
{
  return HG_THREAD_OK_(pthread_join(thread, NULL));
}

static HG_UTIL_INLINE int hg_thread_cancel(hg_thread_t thread)
{
  return HG_THREAD_OK_(pthread_cancel(thread));
}

static HG_UTIL_INLINE int hg_thread_yield(void)
{
  return HG_THREAD_OK_(sched_yield());
}

static HG_UTIL_INLINE hg_thread_t hg_thread_self(void)
{
  return pthread_self();
}

static HG_UTIL_INLINE int hg_thread_equal(hg_thread_t t1, hg_thread_t t2)
{
  return pthread_equal(t1, t2);
}

static HG_UTIL_INLINE int hg_thread_key_create(hg_thread_key_t *key)
{
  return HG_THREAD_OK_(pthread_key_create(key, NULL));
}

static HG_UTIL_INLINE int hg_thread_key_delete(hg_thread_key_t key)
{
  return HG_THREAD_OK_(pthread_key_delete(key));
}

static HG_UTIL_INLINE void *hg_thread_getspecific(hg_thread_key_t key)
{
  return pthread_getspecific(key);
}

static HG_UTIL_INLINE int hg_thread_setspecific(hg_thread_key_t key, const void *value)
{
  return HG_THREAD_OK_(pthread_setspecific(key, value));
}

/*
 * The C library has the type in any case. It hides CPU_SET and the functions from files that have
 * included another header without _GNU_SOURCE, so the functions have names of our own here.
 */
#if defined(__GLIBC__) || defined(CPU_SETSIZE)
typedef cpu_set_t hg_cpu_set_t;
HG_PUBLIC int hg_thread_getaffinity_(pthread_t thread, size_t size,
    cpu_set_t *cpu_mask) __asm__("pthread_getaffinity_np");
HG_PUBLIC int hg_thread_setaffinity_(pthread_t thread, size_t size,
    const cpu_set_t *cpu_mask) __asm__("pthread_setaffinity_np");

static HG_UTIL_INLINE int hg_thread_getaffinity(hg_thread_t thread, hg_cpu_set_t *cpu_mask)
{
  return HG_THREAD_OK_(hg_thread_getaffinity_(thread, sizeof *cpu_mask, cpu_mask));
}

static HG_UTIL_INLINE int hg_thread_setaffinity(hg_thread_t thread, const hg_cpu_set_t *cpu_mask)
{
  return HG_THREAD_OK_(hg_thread_setaffinity_(thread, sizeof *cpu_mask, cpu_mask));
}
#endif

#endif /* MERCURY_THREAD_H */
