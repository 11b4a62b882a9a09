/* A typical Mercury 2.4 program: a server that adds numbers and its clients, an address by
 * callback, and requests to wait for callbacks. Only the network name belongs to this library. */
// TEST: mercury networks
// TEST: n=2 build=static
// TEST: n=2 build=pkg-config
#include "check.h"

#include <mercury.h>
#include <mercury_macros.h>
#include <mercury_request.h>

MERCURY_GEN_PROC(sum_in_t, ((int32_t)(x))((int32_t)(y)))
MERCURY_GEN_PROC(sum_out_t, ((int32_t)(ret)))

static hg_class_t *hg_class;
static hg_context_t *hg_context;
static int served;

static hg_return_t sum(hg_handle_t handle)
{
  sum_in_t in;
  sum_out_t out;
  hg_return_t ret = HG_Get_input(handle, &in);
  CHECK(ret == HG_SUCCESS, "HG_Get_input: %s", HG_Error_to_string(ret));
  out.ret = in.x + in.y;
  served++;
  ret = HG_Respond(handle, NULL, NULL, &out);
  CHECK(ret == HG_SUCCESS, "HG_Respond: %s", HG_Error_to_string(ret));
  HG_Free_input(handle, &in);
  HG_Destroy(handle);
  return HG_SUCCESS;
}

static int progress(unsigned int timeout, void *arg)
{
  (void)arg;
  return HG_Progress(hg_context, timeout) == HG_SUCCESS ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

static int trigger(unsigned int timeout, unsigned int *flag, void *arg)
{
  unsigned int count = 0;
  hg_return_t ret = HG_Trigger(hg_context, timeout, 1, &count);
  (void)arg;
  *flag = count > 0;
  return ret == HG_SUCCESS ? HG_UTIL_SUCCESS : HG_UTIL_FAIL;
}

struct lookup {
  hg_request_t *request;
  hg_addr_t addr;
};

static hg_return_t lookup_cb(const struct hg_cb_info *info)
{
  struct lookup *lookup = info->arg;
  lookup->addr = info->info.lookup.addr;
  hg_request_complete(lookup->request);
  return HG_SUCCESS;
}

static hg_return_t sum_completed(const struct hg_cb_info *info)
{
  sum_out_t out;
  hg_request_t *request = info->arg;
  HG_Get_output(info->info.forward.handle, &out);
  *(int *)hg_request_get_data(request) = out.ret;
  HG_Free_output(info->info.forward.handle, &out);
  hg_request_complete(request);
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_example", &argc, &argv);
  hg_class = HG_Init("mpi", me == 0);
  CHECK(hg_class != NULL, "HG_Init");
  hg_context = HG_Context_create(hg_class);
  hg_id_t id = MERCURY_REGISTER(hg_class, "sum", sum_in_t, sum_out_t, me == 0 ? sum : NULL);
  char server[128] = "";
  hg_request_class_t *requests = hg_request_init(progress, trigger, NULL);
  CHECK(requests != NULL && hg_request_init(NULL, trigger, NULL) == NULL, "hg_request_init");
  if (me == 0) {
    hg_addr_t self;
    hg_size_t size = sizeof server;
    HG_Addr_self(hg_class, &self);
    HG_Addr_to_string(hg_class, server, &size, self);
    HG_Addr_free(hg_class, self);
  }
  MPI_Bcast(server, sizeof server, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (me == 0) {
    const double begun = check_seconds();
    while (served < 100 * (nproc - 1)) {
      unsigned int count;
      hg_return_t ret;
      do
        ret = HG_Trigger(hg_context, 0, 1, &count);
      while (ret == HG_SUCCESS && count);
      HG_Progress(hg_context, 100);
      CHECK(check_seconds() - begun < CHECK_HANG, "%d calls", served);
    }
  } else {
    struct lookup lookup = { hg_request_create(requests), HG_ADDR_NULL };
    hg_handle_t handle;
    unsigned int flag = 0;
    int result;
    HG_Addr_lookup(hg_context, lookup_cb, &lookup, server, HG_OP_ID_IGNORE);
    hg_request_wait(lookup.request, HG_MAX_IDLE_TIME, &flag);
    CHECK(flag == 1 && lookup.addr != HG_ADDR_NULL, "no address");
    hg_request_set_data(lookup.request, &result);
    HG_Create(hg_context, lookup.addr, id, &handle);
    for (int i = 0; i < 100; i++) {
      sum_in_t in = { i, me };
      HG_Forward(handle, sum_completed, lookup.request, &in);
      hg_request_waitall(1, &lookup.request, HG_MAX_IDLE_TIME, &flag);
      CHECK(flag == 1 && result == i + me, "%d and %d are %d", i, me, result);
    }
    CHECK(hg_request_wait(lookup.request, 1, &flag) == 0 && flag == 0, "it is complete once more");
    CHECK(hg_request_wait(NULL, 1, &flag) < 0, "no request");
    HG_Destroy(handle);
    HG_Addr_free(hg_class, lookup.addr);
    hg_request_destroy(lookup.request);
  }
  hg_request_finalize(requests, NULL);
  hg_return_t ret = HG_Context_destroy(hg_context);
  CHECK(ret == HG_SUCCESS, "HG_Context_destroy: %s", HG_Error_to_string(ret));
  ret = HG_Finalize(hg_class);
  CHECK(ret == HG_SUCCESS, "HG_Finalize: %s", HG_Error_to_string(ret));
  return check_end_mpi();
}
