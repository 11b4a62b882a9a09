/* cp_check.h - shared by the tests of cp.h, in addition to check.h. */
#ifndef CP_CHECK_H
#define CP_CHECK_H

#include "check.h"
#include <cp.h>

/* Checks that a call succeeds; yields its return value. */
#define CP(call) cp_must(__FILE__, __LINE__, #call, (call))

/* Checks that a call fails with this code and an error text that contains `text`. */
#define CP_FAILS(call, code, text) cp_must_fail(__FILE__, __LINE__, #call, (call), (code), (text))

static inline int cp_must(const char *file, int line, const char *call, int got)
{
  if (got < 0)
    check_fail(file, line, "%s returned %d (%s)", call, got, cp_errmsg());
  return got;
}

static inline void cp_must_fail(const char *file, int line, const char *call, int got, int code,
                                const char *text)
{
  if (got != code)
    check_fail(file, line, "%s returned %d, expected %d (%s)", call, got, code, cp_errmsg());
  if (strstr(cp_errmsg(), text) == NULL)
    check_fail(file, line, "%s: \"%s\" does not say \"%s\"", call, cp_errmsg(), text);
}

static inline void cp_start(const char *name, int *argc, char ***argv)
{
  check_start_mpi(name, argc, argv);
  CP(cp_init());
  CHECK_EQ(cp_rank(), me);
  CHECK_EQ(cp_nprocs(), nproc);
}

static inline int cp_end(void)
{
  CP(cp_sync());
  CP(cp_finalize());
  return check_end_mpi();
}

/* Allocates len zero bytes on each rank; returns the table of addresses. */
static inline void **cp_segment(size_t len)
{
  void **base = check_calloc(nproc * (long)sizeof(void *));
  CP(cp_malloc(base, len));
  if (len > 0) {
    CHECK(base[me] != NULL, "no address for %lu bytes", (unsigned long)len);
    memset(base[me], 0, len);
  }
  CP(cp_sync());
  return base;
}

static inline void cp_free_segment(void **base)
{
  CP(cp_sync());
  CP(cp_free(base[me]));
  free(base);
}

/* Gathers the address that each rank passes. */
static inline void **cp_addresses(void *mine)
{
  void **all = check_calloc(nproc * (long)sizeof(void *));
  MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  return all;
}

/* Returns a mapped composition of one block. */
static inline int cp_block(int target, void *local, void *remote, unsigned len)
{
  const int simple = CP(cp_create(target));
  CP(cp_add_adxblock(simple, local, remote, len));
  const int mapped = CP(cp_map(simple));
  CP(cp_destroy(simple));
  return mapped;
}

#endif /* CP_CHECK_H */
