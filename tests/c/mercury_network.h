/*
 * mercury_network.h - the network that the tests of Mercury run over, and the addresses of all ranks
 * on it. The variable PORTOLAN_TEST_NETWORK names the network; the default is mpi.
 */
#ifndef MERCURY_NETWORK_H
#define MERCURY_NETWORK_H

#include "check.h"

enum { CHECK_ADDRESS = 300 };

static char *check_names;

static inline const char *check_network(void)
{
  const char *name = getenv("PORTOLAN_TEST_NETWORK");
  return name ? name : "mpi";
}

/* Returns whether the network reaches ranks through MPI. */
static inline int check_over_mpi(void)
{
  return strcmp(check_network(), "mpi") == 0;
}

/* Tells the address of this rank to all ranks. Collective. */
static inline void check_share_name(const char *own)
{
  char name[CHECK_ADDRESS] = "";
  snprintf(name, sizeof name, "%s", own);
  free(check_names);
  check_names = check_calloc((long)nproc * CHECK_ADDRESS);
  MPI_Allgather(name, CHECK_ADDRESS, MPI_CHAR, check_names, CHECK_ADDRESS, MPI_CHAR, MPI_COMM_WORLD);
}

static inline const char *check_name_of(int rank)
{
  return check_names + (long)rank * CHECK_ADDRESS;
}

#endif /* MERCURY_NETWORK_H */
