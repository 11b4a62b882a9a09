/*
 * mercury2_check.h - shared by the tests of Mercury 2.4's interface: calls that must succeed or
 * fail with a given code, a class with a context, barriers that make progress.
 */
#ifndef MERCURY2_CHECK_H
#define MERCURY2_CHECK_H

#include "check.h"
#include "mercury_network.h"

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_macros.h>

static hg_class_t *hg_class;
static hg_context_t *context;
static hg_addr_t *ranks; /* the addresses of all ranks */

#define MUST(call) MUST_BE(HG_SUCCESS, call)
#define MUST_BE(code, call)                                                               \
  do {                                                                                    \
    hg_return_t must_rc = (call);                                                         \
    CHECK(must_rc == (code), "%s returned %d, %s, expected %s (%s)", #call, (int)must_rc, \
          HG_Error_to_string(must_rc), #code, portolan_last_error());                     \
  } while (0)

/* Makes progress for at most the given milliseconds, and runs all ready callbacks. */
static inline void pump(hg_context_t *in, unsigned int milliseconds)
{
  unsigned int ran = 0;
  hg_return_t rc = HG_Progress(in, milliseconds);
  CHECK(rc == HG_SUCCESS || rc == HG_TIMEOUT, "HG_Progress: %s", HG_Error_to_string(rc));
  do
    rc = HG_Trigger(in, 0, 1, &ran);
  while (rc == HG_SUCCESS && ran > 0);
  CHECK(rc == HG_SUCCESS || rc == HG_TIMEOUT, "HG_Trigger: %s", HG_Error_to_string(rc));
}

/* Calls pump() until the counter has this value. */
static inline void pump_until(volatile int *counter, int value, const char *what)
{
  const double begun = check_seconds();
  while (*counter < value) {
    pump(context, 20);
    CHECK(check_seconds() - begun < CHECK_HANG, "%s: %d of %d", what, *counter, value);
  }
}

/* A barrier during which every rank serves requests. */
static inline void serve_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    pump(context, 0);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
}

static inline hg_addr_t address_of(int rank)
{
  hg_addr_t address = HG_ADDR_NULL;
  MUST(HG_Addr_lookup2(hg_class, check_name_of(rank), &address));
  return address;
}

/* Tells the other ranks the address of the class. */
static inline void share_own_address(void)
{
  char name[CHECK_ADDRESS];
  hg_size_t size = sizeof name;
  hg_addr_t self;
  MUST(HG_Addr_self(hg_class, &self));
  MUST(HG_Addr_to_string(hg_class, name, &size, self));
  MUST(HG_Addr_free(hg_class, self));
  check_share_name(name);
}

static inline void start_mercury(const char *name, int *argc, char ***argv)
{
  check_start_mpi(name, argc, argv);
  hg_class = HG_Init(check_network(), HG_TRUE);
  CHECK(hg_class != NULL, "HG_Init: %s", portolan_last_error());
  share_own_address();
  context = HG_Context_create(hg_class);
  CHECK(context != NULL, "HG_Context_create: %s", portolan_last_error());
  ranks = check_calloc(nproc * (long)sizeof *ranks);
  for (int p = 0; p < nproc; p++)
    ranks[p] = address_of(p);
}

static inline int end_mercury(void)
{
  serve_barrier();
  for (int p = 0; p < nproc; p++)
    MUST(HG_Addr_free(hg_class, ranks[p]));
  free(ranks);
  MUST(HG_Context_destroy(context));
  MUST(HG_Finalize(hg_class));
  return check_end_mpi();
}

#endif /* MERCURY2_CHECK_H */
