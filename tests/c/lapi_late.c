/* LAPI_Init fails after it has joined the engine, because no handler number is left: each context
 * uses six of 65,536. The failed call leaves nothing: it fails again in the same way, the other
 * interface goes on and still stops the engine, and LAPI starts in the next engine. */
// TEST: release n=1
// TEST: release n=2
#include "lapi_check.h"

enum { MOST = 14000 };

int main(int argc, char **argv)
{
  static const char why[] = "handler numbers are in use";
  lapi_info_t info;
  int rc = LAPI_SUCCESS, lives = 0;

  check_start("lapi_late", &argc, &argv);
  memset(&info, 0, sizeof info);
  for (; lives < MOST && (rc = LAPI_Init(&hndl, &info)) == LAPI_SUCCESS; lives++)
    LAPI_OK(LAPI_Term(hndl));
  CHECK(rc != LAPI_SUCCESS, "%d contexts did not use up the numbers", lives);
  CHECK(strstr(portolan_last_error(), why) != NULL, "%s", portolan_last_error());
  CHECK_EQ(LAPI_Init(&hndl, &info), rc);
  CHECK(strstr(portolan_last_error(), why) != NULL, "%s", portolan_last_error());
  ARMCI_Barrier();

  CHECK_OK(ARMCI_Finalize());
  CHECK(portolan_path_name(0) == NULL, "the engine runs without a user");
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Term(hndl));
  CHECK(portolan_path_name(0) == NULL, "the engine runs without a user");
  return check_end_mpi();
}
