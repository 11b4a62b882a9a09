/*
 * mercury_check.h - shared by the tests of Mercury, on top of check.h: calls that must succeed or
 * fail with a given code, barriers that make progress, a class and a context.
 */
#ifndef MERCURY_CHECK_H
#define MERCURY_CHECK_H

#include "check.h"
#include "mercury_network.h"

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_handler.h>
#include <mercury_macros.h>

static na_class_t *network;
static na_context_t *context;

/* Checks that a call of NA or HG succeeds, or returns the given code. */
#define MUST(call)                                                                   \
  do {                                                                               \
    int must_rc = (int)(call);                                                       \
    CHECK(must_rc == 0, "%s returned %d, %s (%s)", #call, must_rc,                   \
          HG_Error_to_string((hg_return_t)must_rc), portolan_last_error());          \
  } while (0)

#define MUST_BE(code, call)                                                          \
  do {                                                                               \
    int must_rc = (int)(call);                                                       \
    CHECK(must_rc == (int)(code), "%s returned %d, %s, expected %s", #call, must_rc, \
          HG_Error_to_string((hg_return_t)must_rc), #code);                          \
  } while (0)

/* Makes progress for at most the given milliseconds, and runs all ready callbacks. */
static inline void pump(unsigned int milliseconds)
{
  unsigned int ran = 0;
  NA_Progress(network, context, milliseconds);
  NA_Trigger(context, 0, 1000, &ran);
}

/* Calls pump() until the counter has this value. */
static inline void pump_until(volatile int *counter, int value, const char *what)
{
  const double begun = check_seconds();
  while (*counter < value) {
    pump(20);
    CHECK(check_seconds() - begun < CHECK_HANG, "%s: %d of %d", what, *counter, value);
  }
}

/* A barrier during which every rank makes progress. */
static inline void pump_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    NA_Progress(network, context, 0);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
}

/* A barrier during which every rank serves by HG_Handler_process. */
static inline void serve_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    HG_Handler_process(0, HG_STATUS_IGNORE);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
}

static inline na_addr_t address_of(int rank)
{
  na_addr_t address = NA_ADDR_NULL;
  MUST(NA_Addr_lookup_wait(network, check_name_of(rank), &address));
  return address;
}

/* Initialises the network, and sends its address to all ranks. Collective. */
static inline void join_network(const char *info)
{
  char own[CHECK_ADDRESS];
  na_addr_t self;
  network = NA_Initialize(info, NA_TRUE);
  CHECK(network != NULL, "NA_Initialize: %s", portolan_last_error());
  MUST(NA_Addr_self(network, &self));
  MUST(NA_Addr_to_string(network, own, sizeof own, self));
  MUST(NA_Addr_free(network, self));
  check_share_name(own);
}

static inline void start_network(const char *name, int *argc, char ***argv)
{
  check_start_mpi(name, argc, argv);
  join_network(check_network());
}

/* The addresses of all ranks, for RPC tests. */
static na_addr_t *ranks;

static inline void look_up_ranks(void)
{
  ranks = check_calloc(nproc * (long)sizeof *ranks);
  for (int p = 0; p < nproc; p++)
    ranks[p] = address_of(p);
}

static inline void forget_ranks(void)
{
  for (int p = 0; ranks && p < nproc; p++)
    MUST(NA_Addr_free(network, ranks[p]));
  free(ranks);
}

/* Ends an RPC test. */
static inline int end_shipping(void)
{
  forget_ranks();
  MUST(HG_Finalize());
  MUST(NA_Finalize(network));
  return check_end_mpi();
}

#endif /* MERCURY_CHECK_H */
