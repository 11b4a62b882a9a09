/*
 * mercury_thread_pool.h - Mercury 2.4: a fixed number of threads that start posted work in order.
 */
#ifndef MERCURY_THREAD_POOL_H
#define MERCURY_THREAD_POOL_H

#include "mercury_queue.h"
#include "mercury_thread.h"
#include "mercury_thread_condition.h"

#include <stdlib.h>

/* Work to run. The caller keeps it valid until `func` has begun. */
struct hg_thread_work {
  hg_thread_func_t func;
  void *args;
  STAILQ_ENTRY(hg_thread_work) entry;
};

typedef struct hg_thread_pool {
  STAILQ_HEAD(, hg_thread_work) queue;
  hg_thread_mutex_t mutex;
  hg_thread_cond_t cond;
  int shutdown;
  unsigned int thread_count;
  hg_thread_t *threads;
} hg_thread_pool_t;

/* Runs work until the pool shuts down and its queue is empty. */
static HG_UTIL_INLINE hg_thread_ret_t hg_thread_pool_worker_(void *of)
{
  hg_thread_pool_t *pool = (hg_thread_pool_t *)of;
  struct hg_thread_work *work;
  hg_thread_mutex_lock(&pool->mutex);
  for (;;) {
    while ((work = STAILQ_FIRST(&pool->queue)) == NULL && !pool->shutdown)
      (void)hg_thread_cond_wait(&pool->cond, &pool->mutex);
    if (work == NULL)
      break;
    STAILQ_REMOVE_HEAD(&pool->queue, entry);
    hg_thread_mutex_unlock(&pool->mutex);
    (void)work->func(work->args);
    hg_thread_mutex_lock(&pool->mutex);
  }
  hg_thread_mutex_unlock(&pool->mutex);
  return NULL;
}

/* Runs the work that was posted, ends the threads and frees the pool. */
static HG_UTIL_INLINE int hg_thread_pool_destroy(hg_thread_pool_t *pool)
{
  int ret = HG_UTIL_SUCCESS;
  if (!pool)
    return HG_UTIL_SUCCESS;
  hg_thread_mutex_lock(&pool->mutex);
  pool->shutdown = 1;
  (void)hg_thread_cond_broadcast(&pool->cond);
  hg_thread_mutex_unlock(&pool->mutex);
  while (pool->thread_count > 0)
    if (hg_thread_join(pool->threads[--pool->thread_count]) != HG_UTIL_SUCCESS)
      ret = HG_UTIL_FAIL;
  (void)hg_thread_mutex_destroy(&pool->mutex);
  (void)hg_thread_cond_destroy(&pool->cond);
  free(pool->threads);
  free(pool);
  return ret;
}

static HG_UTIL_INLINE int hg_thread_pool_init(unsigned int thread_count, hg_thread_pool_t **pool_p)
{
  hg_thread_pool_t *pool;
  if (!pool_p)
    return HG_UTIL_FAIL;
  pool = (hg_thread_pool_t *)calloc(1, sizeof *pool);
  if (!pool)
    return HG_UTIL_FAIL;
  STAILQ_INIT(&pool->queue);
  pool->threads = (hg_thread_t *)calloc(thread_count ? thread_count : 1, sizeof *pool->threads);
  if (!pool->threads || hg_thread_mutex_init(&pool->mutex) != HG_UTIL_SUCCESS) {
    free(pool->threads);
    free(pool);
    return HG_UTIL_FAIL;
  }
  if (hg_thread_cond_init(&pool->cond) != HG_UTIL_SUCCESS) {
    (void)hg_thread_mutex_destroy(&pool->mutex);
    free(pool->threads);
    free(pool);
    return HG_UTIL_FAIL;
  }
  for (; pool->thread_count < thread_count; pool->thread_count++)
    if (hg_thread_create(&pool->threads[pool->thread_count], hg_thread_pool_worker_, pool) !=
        HG_UTIL_SUCCESS) {
      (void)hg_thread_pool_destroy(pool);
      return HG_UTIL_FAIL;
    }
  *pool_p = pool;
  return HG_UTIL_SUCCESS;
}

static HG_UTIL_INLINE int hg_thread_pool_post(hg_thread_pool_t *pool, struct hg_thread_work *work)
{
  int ret = HG_UTIL_FAIL;
  if (!pool || !work || !work->func)
    return HG_UTIL_FAIL;
  hg_thread_mutex_lock(&pool->mutex);
  if (!pool->shutdown) {
    STAILQ_INSERT_TAIL(&pool->queue, work, entry);
    ret = hg_thread_cond_signal(&pool->cond);
  }
  hg_thread_mutex_unlock(&pool->mutex);
  return ret;
}

#endif /* MERCURY_THREAD_POOL_H */
