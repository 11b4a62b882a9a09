/* mercury_mem.h - Mercury 2.4: aligned, huge and shared memory. */
#ifndef MERCURY_MEM_H
#define MERCURY_MEM_H

#include "mercury_util_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HG_MEM_CACHE_LINE_SIZE 64
#define HG_MEM_PAGE_SIZE 4096

static HG_UTIL_INLINE long hg_mem_get_page_size(void)
{
  return sysconf(_SC_PAGESIZE);
}

/* Returns the size of the kernel's default huge pages in bytes, or a negative number. */
static HG_UTIL_INLINE long hg_mem_get_hugepage_size(void)
{
  char line[128];
  long kib = -1;
  FILE *info = fopen("/proc/meminfo", "r");
  if (!info)
    return HG_UTIL_FAIL;
  while (kib < 0 && fgets(line, sizeof line, info))
    if (sscanf(line, "Hugepagesize: %ld", &kib) != 1)
      kib = -1;
  (void)fclose(info);
  return kib < 0 ? (long)HG_UTIL_FAIL : kib * 1024;
}

/* Returns NULL on failure. */
static HG_UTIL_INLINE void *hg_mem_aligned_alloc(size_t alignment, size_t size)
{
  void *memory = NULL;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static HG_UTIL_INLINE void hg_mem_aligned_free(void *memory)
{
  free(memory);
}

/* Returns huge pages, or NULL if the system has none. The size is a multiple of a huge page. */
static HG_UTIL_INLINE void *hg_mem_huge_alloc(size_t size)
{
#ifdef MAP_HUGETLB
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
#else
  (void)size;
  return NULL;
#endif
}

static HG_UTIL_INLINE int hg_mem_huge_free(void *memory, size_t size)
{
  return munmap(memory, size) == 0 ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

/* Returns the bytes of a header, rounded up to the alignment. */
static HG_UTIL_INLINE size_t hg_mem_header_room_(size_t header_size, size_t alignment)
{
  return alignment ? (header_size + alignment - 1) / alignment * alignment : header_size;
}

/*
 * Returns aligned memory of `size` bytes that has `header_size` bytes directly before it, or NULL.
 */
static HG_UTIL_INLINE void *hg_mem_header_alloc(size_t header_size, size_t alignment, size_t size)
{
  const size_t room = hg_mem_header_room_(header_size, alignment);
  char *memory = (char *)(alignment ? hg_mem_aligned_alloc(alignment, room + size)
                                    : malloc(room + size));
  return memory ? memory + room : NULL;
}

static HG_UTIL_INLINE void hg_mem_header_free(size_t header_size, size_t alignment, void *memory)
{
  if (memory)
    free((char *)memory - hg_mem_header_room_(header_size, alignment));
}

/* Maps shared memory by its name, and with `create` creates it first. Returns NULL on failure. */
static HG_UTIL_INLINE void *hg_mem_shm_map(const char *name, size_t size, bool create)
{
  void *memory = MAP_FAILED;
  struct stat status;
  const int fd = shm_open(name, O_RDWR | (create ? O_CREAT : 0), S_IRUSR | S_IWUSR);
  if (fd < 0)
    return NULL;
  if ((!create || ftruncate(fd, (off_t)size) == 0) && fstat(fd, &status) == 0 &&
      (size_t)status.st_size >= size)
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  (void)close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

/* Unmaps shared memory, and removes its name unless that is NULL. */
static HG_UTIL_INLINE int hg_mem_shm_unmap(const char *name, void *memory, size_t size)
{
  int ok = !memory || munmap(memory, size) == 0;
  if (name && shm_unlink(name) != 0)
    ok = 0;
  return ok ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

#endif /* MERCURY_MEM_H */
