/* C++ exceptions that proc functions, RPC callbacks and callbacks of calls throw: they reach the
 * program's handler, and the class works on. */
// TEST: n=1
#include "check.h"

#include <mercury.h>
#include <mercury_macros.h>
#include <stdexcept>

static hg_class_t *hg_class;
static hg_context_t *context;
static hg_addr_t self;
static int ended, thrown;
static const char *where = "";

static void throw_in(const char *place)
{
  if (!strcmp(where, place))
    throw std::runtime_error(place);
}

static hg_return_t proc_number(hg_proc_t proc, void *data)
{
  throw_in(hg_proc_get_op(proc) == HG_ENCODE ? "encode" : "decode");
  return hg_proc_int32_t(proc, data);
}

static hg_return_t twice(hg_handle_t handle)
{
  int32_t n = 0;
  try {
    CHECK(HG_Get_input(handle, &n) == HG_SUCCESS, "input");
    CHECK(HG_Free_input(handle, &n) == HG_SUCCESS, "free");
  } catch (std::runtime_error &error) {
    CHECK(!strcmp(error.what(), "decode"), "%s", error.what());
    thrown++;
    n = 21;
    where = "";
  }
  n *= 2;
  CHECK(HG_Respond(handle, NULL, NULL, &n) == HG_SUCCESS, "respond");
  HG_Destroy(handle);
  throw_in("handler");
  return HG_SUCCESS;
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  int32_t n = 0;
  CHECK(info->ret == HG_SUCCESS, "the call ends with %d", (int)info->ret);
  CHECK(HG_Get_output(info->info.forward.handle, &n) == HG_SUCCESS && n == 42, "output %d", (int)n);
  HG_Free_output(info->info.forward.handle, &n);
  ended++;
  throw_in("callback");
  return HG_SUCCESS;
}

/* Makes a call during which the function `place` throws once. */
static void call(hg_handle_t handle, const char *place)
{
  int32_t n = 21;
  ended = thrown = 0;
  where = place;
  try {
    CHECK(HG_Forward(handle, on_end, NULL, &n) == HG_SUCCESS, "forward");
  } catch (std::runtime_error &error) {
    CHECK(!strcmp(error.what(), "encode"), "%s", error.what());
    thrown++;
    where = "";
    CHECK(HG_Forward(handle, on_end, NULL, &n) == HG_SUCCESS, "forward after an exception");
  }
  const double begun = check_seconds();
  while (!ended) {
    unsigned int count;
    HG_Progress(context, 10);
    try {
      HG_Trigger(context, 0, 10, &count);
    } catch (std::runtime_error &error) {
      CHECK(!strcmp(error.what(), place), "%s", error.what());
      thrown++;
      where = "";
    }
    CHECK(check_seconds() - begun < CHECK_HANG, "%s: the call does not end", place);
  }
  CHECK(thrown == (*place != 0), "%s: %d exceptions", place, thrown);
  where = "";
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_exceptions", &argc, &argv);
  for (const char *network : {"self", "na+sm", "tcp"}) {
    hg_class = HG_Init(network, HG_TRUE);
    CHECK(hg_class != NULL, "HG_Init: %s", portolan_last_error());
    context = HG_Context_create(hg_class);
    const hg_id_t id = HG_Register_name(hg_class, "twice", proc_number, hg_proc_int32_t, twice);
    hg_handle_t handle;
    CHECK(HG_Addr_self(hg_class, &self) == HG_SUCCESS, "self");
    CHECK(HG_Create(context, self, id, &handle) == HG_SUCCESS, "create");
    for (const char *place : {"", "encode", "decode", "handler", "callback", ""})
      call(handle, place);
    CHECK(HG_Destroy(handle) == HG_SUCCESS && HG_Addr_free(hg_class, self) == HG_SUCCESS, "free");
    CHECK(HG_Context_destroy(context) == HG_SUCCESS && HG_Finalize(hg_class) == HG_SUCCESS, "end");
  }
  return check_end_mpi();
}
