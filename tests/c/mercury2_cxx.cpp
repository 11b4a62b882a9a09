/* The headers of Mercury 2.4's interface in C++: structs and procs, options, a call of a process
 * to itself, pointers to the functions, utilities. */
// TEST: n=1
#include "check.h"

#include <mercury.h>
#include <mercury_atomic_queue.h>
#include <mercury_bulk.h>
#include <mercury_dl.h>
#include <mercury_log.h>
#include <mercury_macros.h>
#include <mercury_mem_pool.h>
#include <mercury_request.h>
#include <mercury_thread_pool.h>
#include <na_sm.h>

MERCURY_GEN_PROC(text_t, ((hg_string_t)(text))((int32_t)(n)))

static int ended, logged;

HG_LOG_DECL_REGISTER(app);
HG_LOG_SUBSYS_DECL_REGISTER(part, app);
static HG_LOG_DEBUG_DECL_LE(cxx, 4);
static HG_LOG_DEBUG_DECL_DLOG(cxx) = HG_LOG_DLOG_INITIALIZER(cxx, 4);
HG_LOG_DLOG_DECL_REGISTER(cxx);

static int count_lines(FILE *stream, const char *format, ...)
{
  logged += stream == stdout && strstr(format, "mercury->") != NULL;
  return 0;
}

static void utilities()
{
  hg_log_set_func(count_lines);
  hg_log_set_level(HG_LOG_LEVEL_INFO);
  hg_log_set_subsys("app,cxx");
  HG_LOG_SUBSYS_WRITE(part, app, HG_LOG_LEVEL_INFO, "%d", 1);
  HG_LOG_SUBSYS_WRITE(part, app, HG_LOG_LEVEL_DEBUG, "%d", 2);
  HG_LOG_WRITE(cxx, HG_LOG_LEVEL_DEBUG, "%d", 3);
  CHECK(logged == 1 && cxx_dlog_g.leadds == 1, "%d lines, %u places", logged, cxx_dlog_g.leadds);
  hg_atomic_queue *queue = hg_atomic_queue_alloc(2);
  CHECK(queue && hg_atomic_queue_push(queue, &logged) == HG_UTIL_SUCCESS, "push");
  CHECK(hg_atomic_queue_pop_mc(queue) == &logged, "pop");
  hg_atomic_queue_free(queue);
  hg_mem_pool *pool = hg_mem_pool_create(8, 1, 0, NULL, 0, NULL, NULL);
  CHECK(pool && hg_mem_pool_alloc(pool, 8, NULL), "a pool of memory");
  hg_mem_pool_destroy(pool);
}

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
  utilities();
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
