/*
 * mercury_mem_pool.h - Mercury 2.4: chunks of memory of one size, from blocks that the program may
 * register, for example with a network. A pool without a free chunk gets another block. Several
 * threads may use a pool.
 */
#ifndef MERCURY_MEM_POOL_H
#define MERCURY_MEM_POOL_H

#include "mercury_mem.h"
#include "mercury_queue.h"
#include "mercury_thread_condition.h"

#include <string.h>

/* Registers a block, and writes a handle that deregistration gets. */
typedef int (*hg_mem_pool_register_func_t)(const void *buf, size_t size, unsigned long flags,
                                           void **handle, void *arg);
typedef int (*hg_mem_pool_deregister_func_t)(void *handle, void *arg);

struct hg_mem_pool_block_ {
  STAILQ_ENTRY(hg_mem_pool_block_) entry;
  char *memory; /* of all chunks */
  void *mr_handle;
  size_t free_count;
  void **free_chunks; /* a stack */
};

struct hg_mem_pool {
  hg_thread_mutex_t mutex;
  hg_thread_cond_t extended;
  bool extending;
  STAILQ_HEAD(, hg_mem_pool_block_) blocks;
  size_t chunk_size;
  size_t chunk_stride; /* from a chunk to the next one */
  size_t chunk_count;  /* of each block */
  hg_mem_pool_register_func_t register_func;
  hg_mem_pool_deregister_func_t deregister_func;
  unsigned long flags;
  void *arg;
};

/* Returns a registered block whose bytes are 0, or NULL. */
static HG_UTIL_INLINE struct hg_mem_pool_block_ *hg_mem_pool_block_new_(struct hg_mem_pool *pool)
{
  const size_t size = pool->chunk_count * pool->chunk_stride;
  struct hg_mem_pool_block_ *block = (struct hg_mem_pool_block_ *)calloc(1, sizeof *block);
  if (!block)
    return NULL;
  block->free_chunks = (void **)calloc(pool->chunk_count, sizeof *block->free_chunks);
  block->memory = (char *)hg_mem_aligned_alloc((size_t)hg_mem_get_page_size(), size);
  if (block->free_chunks && block->memory) {
    memset(block->memory, 0, size);
    if (!pool->register_func ||
        pool->register_func(block->memory, size, pool->flags, &block->mr_handle, pool->arg) ==
            HG_UTIL_SUCCESS) {
      while (block->free_count < pool->chunk_count) {
        const size_t last = pool->chunk_count - ++block->free_count;
        block->free_chunks[block->free_count - 1] = block->memory + last * pool->chunk_stride;
      }
      return block;
    }
  }
  hg_mem_aligned_free(block->memory);
  free(block->free_chunks);
  free(block);
  return NULL;
}

/* Deregisters and frees all blocks. Chunks that are still in use become invalid. */
static HG_UTIL_INLINE void hg_mem_pool_destroy(struct hg_mem_pool *hg_mem_pool)
{
  struct hg_mem_pool_block_ *block;
  if (!hg_mem_pool)
    return;
  while ((block = STAILQ_FIRST(&hg_mem_pool->blocks)) != NULL) {
    STAILQ_REMOVE_HEAD(&hg_mem_pool->blocks, entry);
    if (block->mr_handle && hg_mem_pool->deregister_func)
      (void)hg_mem_pool->deregister_func(block->mr_handle, hg_mem_pool->arg);
    hg_mem_aligned_free(block->memory);
    free(block->free_chunks);
    free(block);
  }
  (void)hg_thread_mutex_destroy(&hg_mem_pool->mutex);
  (void)hg_thread_cond_destroy(&hg_mem_pool->extended);
  free(hg_mem_pool);
}

/*
 * Returns a pool with block_count blocks of chunk_count chunks, or NULL. The functions may be NULL.
 * Chunks are aligned to 16 bytes.
 */
static HG_UTIL_INLINE struct hg_mem_pool *
hg_mem_pool_create(size_t chunk_size, size_t chunk_count, size_t block_count,
                   hg_mem_pool_register_func_t register_func, unsigned long flags,
                   hg_mem_pool_deregister_func_t deregister_func, void *arg)
{
  const size_t stride = chunk_size ? (chunk_size + 15) / 16 * 16 : 16;
  struct hg_mem_pool *pool;
  if (stride < chunk_size || chunk_count == 0 || chunk_count > SIZE_MAX / stride)
    return NULL;
  pool = (struct hg_mem_pool *)calloc(1, sizeof *pool);
  if (!pool)
    return NULL;
  STAILQ_INIT(&pool->blocks);
  pool->chunk_size = chunk_size;
  pool->chunk_stride = stride;
  pool->chunk_count = chunk_count;
  pool->register_func = register_func;
  pool->deregister_func = deregister_func;
  pool->flags = flags;
  pool->arg = arg;
  if (hg_thread_mutex_init(&pool->mutex) != HG_UTIL_SUCCESS) {
    free(pool);
    return NULL;
  }
  if (hg_thread_cond_init(&pool->extended) != HG_UTIL_SUCCESS) {
    (void)hg_thread_mutex_destroy(&pool->mutex);
    free(pool);
    return NULL;
  }
  for (; block_count > 0; block_count--) {
    struct hg_mem_pool_block_ *block = hg_mem_pool_block_new_(pool);
    if (!block) {
      hg_mem_pool_destroy(pool);
      return NULL;
    }
    STAILQ_INSERT_TAIL(&pool->blocks, block, entry);
  }
  return pool;
}

/* Returns a block with a free chunk, or NULL. The caller holds the lock, as below. */
static HG_UTIL_INLINE struct hg_mem_pool_block_ *hg_mem_pool_free_block_(struct hg_mem_pool *pool)
{
  struct hg_mem_pool_block_ *block;
  STAILQ_FOREACH(block, &pool->blocks, entry) {
    if (block->free_count > 0)
      return block;
  }
  return NULL;
}

/* Adds a block, without the lock while it is registered. */
static HG_UTIL_INLINE int hg_mem_pool_extend_(struct hg_mem_pool *pool)
{
  struct hg_mem_pool_block_ *block;
  pool->extending = true;
  hg_thread_mutex_unlock(&pool->mutex);
  block = hg_mem_pool_block_new_(pool);
  hg_thread_mutex_lock(&pool->mutex);
  if (block)
    STAILQ_INSERT_TAIL(&pool->blocks, block, entry);
  pool->extending = false;
  (void)hg_thread_cond_broadcast(&pool->extended);
  return block ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/*
 * Returns a chunk, and writes the handle of its block unless mr_handle is NULL. Returns NULL if the
 * size is larger than a chunk, if mr_handle is NULL in a pool with registration, or on failure.
 */
static HG_UTIL_INLINE void *hg_mem_pool_alloc(struct hg_mem_pool *hg_mem_pool, size_t size,
                                              void **mr_handle)
{
  struct hg_mem_pool_block_ *block;
  void *chunk = NULL;
  if (size > hg_mem_pool->chunk_size || (!mr_handle && hg_mem_pool->register_func))
    return NULL;
  hg_thread_mutex_lock(&hg_mem_pool->mutex);
  while ((block = hg_mem_pool_free_block_(hg_mem_pool)) == NULL)
    if (hg_mem_pool->extending)
      (void)hg_thread_cond_wait(&hg_mem_pool->extended, &hg_mem_pool->mutex);
    else if (hg_mem_pool_extend_(hg_mem_pool) != HG_UTIL_SUCCESS)
      break;
  if (block) {
    chunk = block->free_chunks[--block->free_count];
    if (mr_handle)
      *mr_handle = block->mr_handle;
  }
  hg_thread_mutex_unlock(&hg_mem_pool->mutex);
  return chunk;
}

/* Returns the block of a chunk, or NULL. */
static HG_UTIL_INLINE struct hg_mem_pool_block_ *hg_mem_pool_block_of_(struct hg_mem_pool *pool,
                                                                       const void *chunk)
{
  const size_t size = pool->chunk_count * pool->chunk_stride;
  struct hg_mem_pool_block_ *block;
  STAILQ_FOREACH(block, &pool->blocks, entry) {
    if ((uintptr_t)chunk - (uintptr_t)block->memory < size)
      return block;
  }
  return NULL;
}

/* Returns a chunk to the pool. The handle is not needed. */
static HG_UTIL_INLINE void hg_mem_pool_free(struct hg_mem_pool *hg_mem_pool, void *mem_ptr,
                                            void *mr_handle)
{
  struct hg_mem_pool_block_ *block;
  (void)mr_handle;
  hg_thread_mutex_lock(&hg_mem_pool->mutex);
  block = hg_mem_pool_block_of_(hg_mem_pool, mem_ptr);
  if (block && block->free_count < hg_mem_pool->chunk_count)
    block->free_chunks[block->free_count++] = mem_ptr;
  hg_thread_mutex_unlock(&hg_mem_pool->mutex);
}

/* Returns the number of bytes from the beginning of the registered block to a chunk of it. */
static HG_UTIL_INLINE size_t hg_mem_pool_chunk_offset(struct hg_mem_pool *hg_mem_pool,
                                                      void *mem_ptr, void *mr_handle)
{
  struct hg_mem_pool_block_ *block;
  (void)mr_handle;
  hg_thread_mutex_lock(&hg_mem_pool->mutex);
  block = hg_mem_pool_block_of_(hg_mem_pool, mem_ptr);
  hg_thread_mutex_unlock(&hg_mem_pool->mutex);
  return block ? (size_t)((char *)mem_ptr - block->memory) : 0;
}

#endif /* MERCURY_MEM_POOL_H */
