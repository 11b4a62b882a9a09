/*
 * mercury_na.h - shared by the tests of the network abstraction: a callback that records its
 * arguments.
 */
#ifndef MERCURY_NA_H
#define MERCURY_NA_H

#include "mercury_check.h"

static int ended, cancelled;

/* The arguments of the last callback. */
static struct na_cb_info last;

static inline na_return_t note(const struct na_cb_info *info)
{
  last = *info;
  if (info->ret == NA_CANCELED)
    cancelled++;
  ended++;
  return NA_SUCCESS;
}

static inline void start_na(const char *name, int *argc, char ***argv)
{
  start_network(name, argc, argv);
  context = NA_Context_create(network);
  CHECK(context != NULL, "no context: %s", portolan_last_error());
}

static inline int end_na(void)
{
  pump_barrier();
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  MUST_BE(NA_INVALID_PARAM, NA_Finalize(network));
  return check_end_mpi();
}

#endif /* MERCURY_NA_H */
