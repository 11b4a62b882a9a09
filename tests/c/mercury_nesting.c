/* Nested handlers: each forwards a call and waits for it. A chain that is too deep for the stack fails
 * at once and leaves nothing behind. The check rpc_life of tests/ranks nests less deep. */
// TEST: mercury networks
#include "mercury_check.h"

#include <pthread.h>
#include <sys/resource.h>

MERCURY_GEN_PROC(depth_t, ((uint64_t)(depth)) ((uint64_t)(run)))
MERCURY_GEN_PROC(levels_t, ((uint64_t)(levels)) ((int32_t)(code)))

static hg_id_t descend_id;
static uint64_t run = 1; /* calls of earlier runs must not arrive any more */
static int calls;

/* Calls the rank that called this one, until the depth is zero. */
static hg_return_t descend_cb(hg_handle_t handle)
{
  depth_t in;
  levels_t out = { 0, HG_SUCCESS };
  MUST(HG_Handler_get_input(handle, &in));
  CHECK_EQ(in.run, run);
  calls++;
  if (in.depth > 0) {
    hg_request_t request;
    hg_status_t status = HG_FALSE;
    in.depth--;
    MUST(HG_Forward(HG_Handler_get_addr(handle), descend_id, &in, &out, &request));
    const hg_return_t rc = HG_Wait(request, 60000, &status);
    CHECK(status, "a call has not ended");
    if (rc != HG_SUCCESS)
      out.code = rc, out.levels = 0;
    MUST(HG_Request_free(request));
  }
  out.levels++;
  MUST(HG_Handler_start_output(handle, &out));
  return HG_Handler_free(handle);
}

static levels_t descend(int rank, uint64_t depth)
{
  depth_t in = { depth, run };
  levels_t out = { 0, HG_SUCCESS };
  hg_request_t request;
  hg_status_t status = HG_FALSE;
  MUST(HG_Forward(ranks[rank], descend_id, &in, &out, &request));
  const hg_return_t rc = HG_Wait(request, 60000, &status);
  CHECK(status, "a call of depth %d has not ended", (int)depth);
  if (rc != HG_SUCCESS)
    out.code = rc;
  MUST(HG_Request_free(request));
  return out;
}

/* Runs on a thread with a small stack; the bound is three quarters of it. */
static void *too_deep(void *argument)
{
  (void)argument;
  levels_t out = descend(me, 1000000);
  CHECK_EQ(out.code, HG_NOMEM);
  CHECK(out.levels > 20, "%d levels", (int)out.levels);
  const int before = calls;
  run++;
  out = descend(me, 10);
  CHECK(out.code == HG_SUCCESS && out.levels == 11, "after it: %s", HG_Error_to_string(out.code));
  CHECK_EQ(calls, before + 11);
  return NULL;
}

static void on_a_small_stack(void)
{
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK(pthread_attr_init(&attributes) == 0, "pthread_attr_init");
  CHECK(pthread_attr_setstacksize(&attributes, 512 << 10) == 0, "pthread_attr_setstacksize");
  CHECK(pthread_create(&thread, &attributes, too_deep, NULL) == 0, "pthread_create");
  CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
  pthread_attr_destroy(&attributes);
}

/* Nests too deep with another rank, whose main thread has the system's default stack. */
static void too_deep_for_two(void)
{
  struct rlimit stack;
  CHECK(getrlimit(RLIMIT_STACK, &stack) == 0, "getrlimit");
  if (nproc != 2 || stack.rlim_cur > (16 << 20))
    return;
  if (me == 0) {
    const levels_t out = descend(1, 1000000);
    CHECK_EQ(out.code, HG_NOMEM);
    CHECK(out.levels > 400, "%d levels", (int)out.levels);
  }
  serve_barrier();
  run++;
  serve_barrier();
  CHECK_EQ(descend(1 - me, 10).levels, 11);
  serve_barrier();
}

int main(int argc, char **argv)
{
  start_network("mercury_nesting", &argc, &argv);
  MUST(HG_Init(network));
  descend_id = MERCURY_REGISTER("descend", depth_t, levels_t, descend_cb);
  look_up_ranks();
  MPI_Barrier(MPI_COMM_WORLD);
  if (nproc == 1)
    on_a_small_stack();
  too_deep_for_two();
  return end_shipping();
}
