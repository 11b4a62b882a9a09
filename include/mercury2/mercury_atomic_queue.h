/*
 * mercury_atomic_queue.h - Mercury 2.4: a bounded queue of pointers without locks. Any number of
 * threads push. Either any number of threads pop (pop_mc), or one (pop_sc).
 */
#ifndef MERCURY_ATOMIC_QUEUE_H
#define MERCURY_ATOMIC_QUEUE_H

#include "mercury_atomic.h"
#include "mercury_mem.h"

#include <sched.h>

/* Tells the processor that the thread waits in a loop. */
#ifndef cpu_spinwait
#if defined(__x86_64__) || defined(__i386__)
#define cpu_spinwait() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_spinwait() __asm__ __volatile__("isb")
#elif defined(__arm__)
#define cpu_spinwait() __asm__ __volatile__("yield")
#else
#define cpu_spinwait() __asm__ __volatile__("")
#endif
#endif

/*
 * Heads and tails count all entries since the beginning, modulo 2^32. An entry is claimed when a
 * head moves, and the tail follows in the same order when the entry is written or read.
 */
struct hg_atomic_queue {
  hg_atomic_int32_t prod_head;
  hg_atomic_int32_t prod_tail;
  unsigned int prod_size;
  unsigned int prod_mask;
  uint64_t drops; /* pushes that have found the queue full */
  HG_UTIL_ALIGNED(hg_atomic_int32_t cons_head, HG_MEM_CACHE_LINE_SIZE);
  hg_atomic_int32_t cons_tail;
  unsigned int cons_size;
  unsigned int cons_mask;
  __extension__ HG_UTIL_ALIGNED(hg_atomic_int64_t ring[], HG_MEM_CACHE_LINE_SIZE);
};

/*
 * Returns a queue for at most count - 1 entries, or NULL if count is not a power of 2 or memory is
 * exhausted.
 */
static HG_UTIL_INLINE struct hg_atomic_queue *hg_atomic_queue_alloc(unsigned int count)
{
  struct hg_atomic_queue *queue;
  if (count == 0 || (count & (count - 1)) != 0)
    return NULL;
  queue = (struct hg_atomic_queue *)hg_mem_aligned_alloc(
      HG_MEM_CACHE_LINE_SIZE, sizeof *queue + count * sizeof(hg_atomic_int64_t));
  if (!queue)
    return NULL;
  hg_atomic_init32(&queue->prod_head, 0);
  hg_atomic_init32(&queue->prod_tail, 0);
  hg_atomic_init32(&queue->cons_head, 0);
  hg_atomic_init32(&queue->cons_tail, 0);
  queue->prod_size = queue->cons_size = count;
  queue->prod_mask = queue->cons_mask = count - 1;
  queue->drops = 0;
  return queue;
}

static HG_UTIL_INLINE void hg_atomic_queue_free(struct hg_atomic_queue *hg_atomic_queue)
{
  hg_mem_aligned_free(hg_atomic_queue);
}

static HG_UTIL_INLINE int32_t hg_atomic_queue_plus_(int32_t at, uint32_t entries)
{
  return (int32_t)((uint32_t)at + entries);
}

/* Moves a tail past the claimed entry when all earlier ones are done. */
static HG_UTIL_INLINE void hg_atomic_queue_done_(hg_atomic_int32_t *tail, int32_t claimed)
{
  unsigned int spins = 0;
  while (hg_atomic_get32(tail) != claimed)
    if (++spins % 128 == 0)
      (void)sched_yield();
    else
      cpu_spinwait();
  hg_atomic_set32(tail, hg_atomic_queue_plus_(claimed, 1));
}

/* Fails if the queue is full. */
static HG_UTIL_INLINE int hg_atomic_queue_push(struct hg_atomic_queue *hg_atomic_queue, void *entry)
{
  struct hg_atomic_queue *queue = hg_atomic_queue;
  int32_t head;
  for (;;) {
    uint32_t used;
    head = hg_atomic_get32(&queue->prod_head);
    used = (uint32_t)head - (uint32_t)hg_atomic_get32(&queue->cons_tail);
    if (used < queue->prod_mask) {
      if (hg_atomic_cas32(&queue->prod_head, head, hg_atomic_queue_plus_(head, 1)))
        break;
    } else if (head == hg_atomic_get32(&queue->prod_head)) { /* else the head was out of date */
      (void)__atomic_fetch_add(&queue->drops, 1, __ATOMIC_RELAXED);
      return HG_UTIL_FAIL;
    }
  }
  hg_atomic_set64(&queue->ring[(uint32_t)head & queue->prod_mask], (int64_t)(intptr_t)entry);
  hg_atomic_queue_done_(&queue->prod_tail, head);
  return HG_UTIL_SUCCESS;
}

static HG_UTIL_INLINE void *hg_atomic_queue_take_(struct hg_atomic_queue *queue, int32_t head)
{
  int64_t *from = &queue->ring[(uint32_t)head & queue->cons_mask];
  void *entry = (void *)(intptr_t)hg_atomic_get64(from);
  hg_atomic_queue_done_(&queue->cons_tail, head);
  return entry;
}

/* Returns the oldest entry, or NULL if there is none. Several threads may pop. */
static HG_UTIL_INLINE void *hg_atomic_queue_pop_mc(struct hg_atomic_queue *hg_atomic_queue)
{
  int32_t head;
  do {
    head = hg_atomic_get32(&hg_atomic_queue->cons_head);
    if (head == hg_atomic_get32(&hg_atomic_queue->prod_tail))
      return NULL;
  } while (
      !hg_atomic_cas32(&hg_atomic_queue->cons_head, head, hg_atomic_queue_plus_(head, 1)));
  return hg_atomic_queue_take_(hg_atomic_queue, head);
}

/* Returns the oldest entry, or NULL if there is none. No other thread may pop meanwhile. */
static HG_UTIL_INLINE void *hg_atomic_queue_pop_sc(struct hg_atomic_queue *hg_atomic_queue)
{
  const int32_t head = hg_atomic_get32(&hg_atomic_queue->cons_head);
  if (head == hg_atomic_get32(&hg_atomic_queue->prod_tail))
    return NULL;
  hg_atomic_set32(&hg_atomic_queue->cons_head, hg_atomic_queue_plus_(head, 1));
  return hg_atomic_queue_take_(hg_atomic_queue, head);
}

static HG_UTIL_INLINE bool hg_atomic_queue_is_empty(const struct hg_atomic_queue *hg_atomic_queue)
{
  const int32_t head = hg_atomic_get32(&hg_atomic_queue->cons_head);
  return head == hg_atomic_get32(&hg_atomic_queue->prod_tail);
}

/* Returns the number of entries, which other threads may change meanwhile. */
static HG_UTIL_INLINE unsigned int
hg_atomic_queue_count(const struct hg_atomic_queue *hg_atomic_queue)
{
  const uint32_t tail = (uint32_t)hg_atomic_get32(&hg_atomic_queue->cons_tail);
  const uint32_t used = (uint32_t)hg_atomic_get32(&hg_atomic_queue->prod_tail) - tail;
  return used < hg_atomic_queue->prod_mask ? used : hg_atomic_queue->prod_mask;
}

#endif /* MERCURY_ATOMIC_QUEUE_H */
