/* The headers of Mercury 2.4's interface in C++: structs and procs, options, a call of a process
 * to itself, pointers to the functions. */
// TEST: n=1
#include "check.h"

#include <mercury.h>
#include <mercury_bulk.h>
#include <mercury_macros.h>
#include <mercury_request.h>

MERCURY_GEN_PROC(text_t, ((hg_string_t)(text))((int32_t)(n)))

static int ended;

static hg_return_t twice(hg_handle_t handle)
{
  text_t in, out;
  CHECK(HG_Get_input(handle, &in) == HG_SUCCESS, "input");
  out.text = in.text;
  out.n = 2 * in.n;
  CHECK(HG_Respond(handle, NULL, NULL, &out) == HG_SUCCESS, "respond");
  HG_Free_input(handle, &in);
  return HG_Destroy(handle);
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_cxx", &argc, &argv);
  hg_init_info options = HG_INIT_INFO_INITIALIZER;
  options.no_overflow = true;
  hg_class_t *hg_class = HG_Init_opt2("self", HG_TRUE, HG_VERSION(2, 4), &options);
  CHECK(hg_class != NULL, "HG_Init_opt2: %s", portolan_last_error());
  hg_context_t *context = HG_Context_create(hg_class);
  const hg_id_t id = MERCURY_REGISTER(hg_class, "twice", text_t, text_t, twice);
  hg_addr_t self;
  hg_handle_t handle;
  hg_return_t (*destroy)(hg_handle_t) = &HG_Destroy;
  CHECK(HG_Addr_self(hg_class, &self) == HG_SUCCESS, "self");
  CHECK(HG_Create(context, self, id, &handle) == HG_SUCCESS, "create");
  char text[] = "text";
  text_t in, out;
  in.text = text;
  in.n = 21;
  auto on_end = [](const hg_cb_info *info) -> hg_return_t {
    ended += info->ret == HG_SUCCESS;
    return HG_SUCCESS;
  };
  CHECK(HG_Forward(handle, on_end, NULL, &in) == HG_SUCCESS, "forward");
  while (!ended) {
    unsigned int count;
    HG_Progress(context, 10);
    HG_Trigger(context, 0, 10, &count);
  }
  CHECK(HG_Get_output(handle, &out) == HG_SUCCESS && out.n == 42 && !strcmp(out.text, "text"), "output");
  HG_Free_output(handle, &out);
  char *longer = static_cast<char *>(malloc(1000000));
  memset(longer, 'x', 999999);
  longer[999999] = 0;
  in.text = longer;
  CHECK(HG_Forward(handle, on_end, NULL, &in) == HG_OVERFLOW, "overflow buffers are disabled");
  free(longer);
  CHECK(destroy(handle) == HG_SUCCESS && HG_Addr_free(hg_class, self) == HG_SUCCESS, "free");
  CHECK(HG_Context_destroy(context) == HG_SUCCESS && HG_Finalize(hg_class) == HG_SUCCESS, "end");
  return check_end_mpi();
}
