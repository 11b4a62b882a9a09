/*
 * A program that ignores that its interface has not started: its next call ends the job. A signal
 * handler shows a crash as FAIL.
 *
 *   init_ignored armci|x10|lapi|compose      the call must not return
 *   init_ignored again                       calls that may follow: an end, and another start
 */
// TEST: abort n=2 -- {armci,x10,lapi,compose}
// TEST: n=2 -- again
#include "check.h"

#include <cp.h>
#include <lapi.h>
#include <x10/x10lib.h>

static void crashed(int signal)
{
  static const char text[] = "FAIL init_ignored: the program has crashed\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
    _exit(3);
  _exit(signal == SIGSEGV ? 0 : 1);            /* only an end by the library counts */
}

static void set_wrong(int wrong)
{
  if (wrong)
    setenv("PORTOLAN_CHUNK_BYTES", "many", 1);
  else
    unsetenv("PORTOLAN_CHUNK_BYTES");
}

/* The outputs of the second call are used at once, as programs do. */
static void ignored(const char *face)
{
  void *parts[64] = { NULL };
  if (!strcmp(face, "armci")) {
    ARMCI_Init();
    ARMCI_Malloc(parts, 8);
  } else if (!strcmp(face, "compose")) {
    cp_init();
    cp_malloc(parts, 8);
  } else if (!strcmp(face, "x10")) {
    x10_init(NULL, 0);
    x10_addr_init(parts, (void **)parts);
  } else {
    lapi_info_t info;
    lapi_handle_t handle = 0;
    memset(&info, 0, sizeof info);
    LAPI_Init(&handle, &info);
    LAPI_Address_init(handle, parts, parts);
  }
  *(volatile long *)parts[me] = 1;
  printf("FAIL init_ignored: the call returned\n");
}

static void again(void)
{
  lapi_info_t info;
  lapi_handle_t handle = 0;
  memset(&info, 0, sizeof info);
  set_wrong(1);
  CHECK(ARMCI_Init() != ARMCI_SUCCESS && ARMCI_Init() != ARMCI_SUCCESS, "started");
  CHECK(ARMCI_Initialized() == 0 && strstr(portolan_last_error(), "many"), "%s", portolan_last_error());
  CHECK_OK(ARMCI_Finalize());
  CHECK(x10_init(NULL, 0) != X10_OK && x10_finalize() != X10_OK, "started");
  CHECK(LAPI_Init(&handle, &info) != LAPI_SUCCESS, "started");
  CHECK_EQ(LAPI_Term(handle), LAPI_ERR_HNDL_INVALID);
  CHECK(cp_init() < 0 && cp_finalize() == 0, "started");
  set_wrong(0);
  CHECK_OK(ARMCI_Init());
  CHECK(ARMCI_Malloc(NULL, 8) != ARMCI_SUCCESS, "an error like any other");
  CHECK(cp_nprocs() == nproc && cp_destroy(77) < 0, "compose runs with ARMCI");
  CHECK_EQ(x10_init(NULL, 0), X10_OK);
  CHECK_EQ(x10_finalize(), X10_OK);
  CHECK_OK(ARMCI_Finalize());
  CHECK(ARMCI_Malloc(NULL, 8) == PORTOLAN_ERR_STATE, "after the end");
}

int main(int argc, char **argv)
{
  check_start_mpi("init_ignored", &argc, &argv);
  if (argc == 2 && !strcmp(argv[1], "again")) {
    again();
    return check_end_mpi();
  }
  signal(SIGSEGV, crashed);
  set_wrong(1);
  if (me == 0) {
    printf("EXPECT-ABORT %s\n", argv[1]);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ignored(argv[1]);
  return check_end_mpi();
}
