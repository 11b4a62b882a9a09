/*
 * mercury_na.h - what the tests of the network abstraction share: a callback that notes what
 * it is told.
 */
#ifndef MERCURY_NA_H
#define MERCURY_NA_H

#include "mercury_check.h"

static int ended, cancelled;

/* What the last callback was told. */
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
