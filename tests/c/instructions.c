/* The calls whose instructions are counted (tests/driver/src/programs/instructions.rs): `instructions
 * CALL`. Rank 0 repeats the call in measured(), which callgrind counts; rank 1 serves. Run alone,
 * the program checks that the calls work. */
// TEST: n=2 -- put
// TEST: n=2 node-size=1 path=message -- put
// TEST: n=2 -- message
// TEST: n=2 -- call
#include "check.h"
#include <lapi.h>
#include <mercury.h>
#include <mercury_handler.h>

/* CALLS is small enough that rank 0 never waits for the other rank, whose speed must not affect the
 * count. */
enum { CALLS = 20, WARM = 200 };

static void **base;
static double value = 1, back;
static long added;

static lapi_handle_t lapi;
static lapi_cntr_t left;
static int handled;

static na_class_t *network;
static na_addr_t server;
static hg_id_t null_id;
static hg_request_t request;
static int served;

static void *there(void) { return base[1]; }

static void put(int n) { (void)n; ARMCI_Put(&value, there(), 8, 1); }
static void put_nb(int n)
{
  armci_hdl_t handle;
  (void)n;
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_NbPut(&value, there(), 8, 1, &handle);
  ARMCI_Wait(&handle);
}

static void get(int n) { (void)n; ARMCI_Get(there(), &back, 8, 1); }
static void add(int n) { (void)n; ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &added, (long *)there() + 1, 1, 1); }

static void accumulate(int n)
{
  double scale = 1;
  (void)n;
  ARMCI_Acc(ARMCI_ACC_DBL, &scale, &value, (double *)there() + 2, 8, 1);
}

static void rows(int n)
{
  static double block[8];
  double scale = 1;
  int from = 8, to = 16, count[2] = { 8, 8 };
  (void)n;
  ARMCI_AccS(ARMCI_ACC_DBL, &scale, block, &from, (double *)there() + 4, &to, count, 1, 1);
}

static void lock(int n)
{
  (void)n;
  ARMCI_Lock(0, 1);
  ARMCI_Unlock(0, 1);
}

static void *header_handler(lapi_handle_t *handle, void *header, uint *len, ulong *data, compl_hndlr_t **completion,
                            void **argument)
{
  (void)handle, (void)header, (void)len, (void)data, (void)argument;
  *completion = NULL;
  __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void message(int n)
{
  (void)n;
  LAPI_Amsend(lapi, 1, (void *)header_handler, &value, sizeof value, NULL, 0, NULL, &left, NULL);
}

static hg_return_t null_called(hg_handle_t handle)
{
  served++;
  HG_Handler_start_output(handle, NULL);
  return HG_Handler_free(handle);
}

static void forward(int n) { (void)n; HG_Forward(server, null_id, NULL, NULL, &request); }

static __attribute__((noinline)) void measured(void (*call)(int), int times)
{
  for (int n = 0; n < times; n++)
    call(n);
}

static void armci(void (*call)(int))
{
  base = check_segment(4096);
  CHECK_OK(ARMCI_Create_mutexes(1));
  ARMCI_Barrier();
  if (me == 0) {
    for (int n = 0; n < WARM / CALLS; n++) {
      for (int i = 0; i < CALLS; i++)
        call(i);
      ARMCI_Fence(1);
    }
    measured(call, CALLS);
    ARMCI_Fence(1);
  }
  ARMCI_Barrier();
  if (call == add && me == 1)
    CHECK_EQ(((long *)base[1])[1], WARM + CALLS);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Destroy_mutexes());
  check_free_segment(base);
}

static void lapi_messages(void)
{
  lapi_info_t info = { 0 };
  int ignored;
  CHECK_EQ(LAPI_Init(&lapi, &info), LAPI_SUCCESS);
  LAPI_Setcntr(lapi, &left, 0);
  LAPI_Gfence(lapi);
  for (int turn = 0; turn <= WARM / CALLS; turn++) {
    if (me == 0 && turn < WARM / CALLS)
      for (int i = 0; i < CALLS; i++)
        message(i);
    else if (me == 0)
      measured(message, CALLS);
    if (me == 0)
      LAPI_Waitcntr(lapi, &left, CALLS, &ignored);
    LAPI_Gfence(lapi);
  }
  if (me == 1)
    CHECK_EQ(handled, WARM + CALLS);
  LAPI_Gfence(lapi);
  LAPI_Term(lapi);
}

static void calls(void)
{
  network = NA_Initialize("mpi", 1);
  CHECK(network != NULL, "NA_Initialize: %s", portolan_last_error());
  CHECK_EQ(HG_Init(network), HG_SUCCESS);
  null_id = HG_Register("instructions_null", NULL, NULL, null_called);
  CHECK_EQ(NA_Addr_lookup_wait(network, "mpi://1", &server), NA_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 1)
    while (served < WARM + CALLS)
      HG_Handler_process(100, HG_STATUS_IGNORE);
  for (int n = 0; me == 0 && n < WARM + CALLS; n++) {
    hg_status_t done = HG_FALSE;
    if (n < WARM)
      forward(n);
    else
      measured(forward, 1);
    while (!done)
      CHECK_EQ(HG_Wait(request, 1000, &done), HG_SUCCESS);
    HG_Request_free(request);
  }
  NA_Addr_free(network, server);
  CHECK_EQ(HG_Finalize(), HG_SUCCESS);
  CHECK_EQ(NA_Finalize(network), NA_SUCCESS);
}

int main(int argc, char **argv)
{
  static const struct { const char *name; void (*call)(int); } NAMES[] = {
    { "put", put }, { "put_nb", put_nb }, { "get", get }, { "accumulate", accumulate }, { "fetch_and_add", add }, { "lock", lock },
    { "accumulate_rows", rows },
  };
  const char *name = argc > 1 ? argv[1] : "put";
  check_start("instructions", &argc, &argv);
  CHECK(nproc == 2, "two ranks, not %d", nproc);
  for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++)
    if (strcmp(name, NAMES[n].name) == 0)
      armci(NAMES[n].call);
  if (strcmp(name, "message") == 0)
    lapi_messages();
  if (strcmp(name, "call") == 0)
    calls();
  return check_end();
}
