/* Calls by Mercury 2.4's interface: functions by name and by number, inputs and outputs of any
 * length, user-defined heads, calls without a response. Handles are reused, reference-counted,
 * destroyed during their call, and cancelled. Contexts are selected by number. */
// TEST: mercury networks
#include "mercury2_check.h"

typedef struct {
  uint64_t cookie;
  uint32_t count;
  uint8_t *bytes;
} blob_t;

/* A proc written by hand, as users write them. */
static hg_return_t hg_proc_blob_t(hg_proc_t proc, void *data)
{
  blob_t *blob = data;
  hg_return_t ret = hg_proc_uint64_t(proc, &blob->cookie);
  if (ret == HG_SUCCESS)
    ret = hg_proc_uint32_t(proc, &blob->count);
  if (ret != HG_SUCCESS)
    return ret;
  switch (hg_proc_get_op(proc)) {
  case HG_DECODE:
    blob->bytes = malloc(blob->count ? blob->count : 1);
    /* fall through */
  case HG_ENCODE:
    return hg_proc_raw(proc, blob->bytes, blob->count);
  case HG_FREE:
    free(blob->bytes);
    blob->bytes = NULL;
  }
  return HG_SUCCESS;
}

/* A proc that fails. */
static hg_return_t hg_proc_refused_t(hg_proc_t proc, void *data)
{
  CHECK(hg_proc_get_class(proc) == hg_class, "the proc has another class");
  return *(int *)data ? HG_PERMISSION : HG_SUCCESS;
}

#define ECHO ((hg_id_t)0xabcdef0012340007) /* ids that differ in only one half */
#define QUIET ((hg_id_t)0xabcdef0112340007)
#define NEVER ((hg_id_t)0xabcdef0012340008)
#define FAILS ((hg_id_t)3)
#define WHERE ((hg_id_t)4)
#define ABSENT ((hg_id_t)5)
#define REFUSED ((hg_id_t)6)

static volatile int ended, quiet_ran, answered, created, freed, last_ret, in_context;
static hg_handle_t unanswered[64];
static int kept;

static hg_return_t on_answered(const struct hg_cb_info *info)
{
  CHECK(info->type == HG_CB_RESPOND && info->ret == HG_SUCCESS, "an answer: %d", (int)info->ret);
  answered += info->arg == &answered;
  return HG_SUCCESS;
}

static hg_return_t echo_cb(hg_handle_t handle)
{
  blob_t blob;
  void *extra = &extra;
  hg_size_t size = 1;
  const struct hg_info *info = HG_Get_info(handle);
  CHECK(info && info->hg_class == hg_class && info->context == context && info->id == ECHO,
        "the handle is about something else");
  MUST(HG_Get_input(handle, &blob));
  CHECK(HG_Get_input_payload_size(handle) == 12 + blob.count, "%lu bytes of %u",
        (unsigned long)HG_Get_input_payload_size(handle), blob.count);
  MUST(HG_Get_input_extra_buf(handle, &extra, &size));
  CHECK((extra != NULL) == (12 + blob.count > HG_Class_get_input_eager_size(hg_class)) &&
            (extra != NULL) == (size > 0),
        "%u bytes with an extra buffer of %lu", blob.count, (unsigned long)size);
  blob.cookie++;
  MUST(HG_Respond(handle, on_answered, (void *)&answered, &blob));
  MUST(HG_Free_input(handle, &blob));
  return HG_Destroy(handle);
}

static hg_return_t quiet_cb(hg_handle_t handle)
{
  blob_t blob;
  MUST(HG_Get_input(handle, &blob));
  quiet_ran += (int)blob.cookie;
  MUST(HG_Free_input(handle, &blob));
  return HG_Destroy(handle);
}

static hg_return_t never_cb(hg_handle_t handle)
{
  CHECK(kept < 64, "too many");
  unanswered[kept++] = handle;
  return HG_SUCCESS;
}

static hg_return_t fails_cb(hg_handle_t handle)
{
  MUST(HG_Destroy(handle));
  return HG_PERMISSION;
}

static hg_return_t where_cb(hg_handle_t handle)
{
  const struct hg_info *info = HG_Get_info(handle);
  blob_t out = { HG_Context_get_id(info->context), 0, NULL };
  CHECK_EQ(info->context_id, 0); /* the number of the caller's context */
  in_context = (int)out.cookie;
  MUST(HG_Respond(handle, NULL, NULL, &out));
  return HG_Destroy(handle);
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  CHECK(info->type == HG_CB_FORWARD && HG_Get_info(info->info.forward.handle) != NULL,
        "the handle of a callback is not there");
  last_ret = info->ret;
  ended++;
  return HG_SUCCESS;
}

static void on_free(void *data) { freed += data == (void *)&freed; }

static hg_return_t on_create(hg_handle_t handle, void *arg)
{
  created++;
  return HG_Set_data(handle, arg, on_free);
}

static void call(hg_handle_t handle, void *in)
{
  const int before = ended;
  MUST(HG_Forward(handle, on_end, NULL, in));
  pump_until(&ended, before + 1, "a call");
}

enum { LENGTHS = 9 };

/* Inputs and outputs of various lengths. */
static void lengths(int to)
{
  static const uint32_t all[LENGTHS] = { 0, 1, 100, 4000, 65000, 66000, 70000, 300000, 2000000 };
  hg_handle_t handle;
  MUST(HG_Create(context, ranks[to], ECHO, &handle));
  for (size_t i = 0; i < LENGTHS; i++) {
    blob_t in = { i, all[i], malloc(all[i] + 1) }, out;
    for (uint32_t b = 0; b < in.count; b++)
      in.bytes[b] = (uint8_t)(b * 7 + i + (unsigned)me);
    call(handle, &in);
    CHECK(last_ret == HG_SUCCESS, "%u bytes: %s", in.count, HG_Error_to_string((hg_return_t)last_ret));
    MUST(HG_Get_output(handle, &out));
    CHECK(out.cookie == i + 1 && out.count == in.count && memcmp(in.bytes, out.bytes, in.count) == 0,
          "%u bytes have come back as others", in.count);
    CHECK(HG_Get_output_payload_size(handle) == 12 + in.count, "%lu bytes",
          (unsigned long)HG_Get_output_payload_size(handle));
    MUST(HG_Free_output(handle, &out));
    free(in.bytes);
  }
  MUST(HG_Destroy(handle));
}

/* Handles: created empty, reset, reference-counted. */
static void handles(int to)
{
  hg_handle_t handle;
  blob_t in = { 5, 0, NULL };
  MUST(HG_Create(context, HG_ADDR_NULL, 0, &handle));
  MUST_BE(HG_INVALID_ARG, HG_Forward(handle, on_end, NULL, &in));
  MUST_BE(HG_NOENTRY, HG_Reset(handle, ranks[to], 0x999));
  MUST(HG_Reset(handle, ranks[to], ECHO));
  CHECK(HG_Get_info(handle)->addr == ranks[to] && HG_Get_info(handle)->id == ECHO, "reset");
  MUST(HG_Ref_incr(handle));
  CHECK(HG_Ref_get(handle) == 2, "%d holders", (int)HG_Ref_get(handle));
  MUST(HG_Destroy(handle));
  call(handle, &in);
  CHECK(HG_Ref_get(handle) == 1, "%d holders after its call", (int)HG_Ref_get(handle));
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(HG_HANDLE_NULL));
}

/* User-defined heads. */
static hg_return_t head_cb(hg_handle_t handle)
{
  uint64_t *head;
  void *buf;
  hg_size_t size;
  blob_t blob;
  MUST(HG_Get_input_buf(handle, &buf, &size));
  head = buf;
  MUST(HG_Get_input(handle, &blob));
  CHECK(size > 16 && head[0] == 11 && head[1] == blob.count, "the head is %lu", (unsigned long)head[0]);
  MUST(HG_Release_input_buf(handle));
  MUST(HG_Get_output_buf(handle, &buf, NULL));
  *(uint64_t *)buf = 33;
  MUST(HG_Respond(handle, NULL, NULL, &blob));
  MUST(HG_Free_input(handle, &blob));
  return HG_Destroy(handle);
}

static void heads(int to)
{
  hg_id_t id = HG_Register_name(hg_class, "head", hg_proc_blob_t, hg_proc_blob_t, head_cb);
  hg_handle_t handle;
  MUST_BE(HG_INVALID_ARG, HG_Class_set_input_offset(hg_class, HG_Class_get_input_eager_size(hg_class) + 1));
  MUST(HG_Class_set_input_offset(hg_class, 16));
  MUST(HG_Class_set_output_offset(hg_class, 8));
  serve_barrier();
  MUST(HG_Create(context, ranks[to], id, &handle));
  for (uint32_t count = 100; count < 300000; count *= 11) {
    blob_t in = { 0, count, calloc(1, count) }, out;
    void *buf;
    MUST(HG_Get_input_buf(handle, &buf, NULL));
    ((uint64_t *)buf)[0] = 11;
    ((uint64_t *)buf)[1] = count;
    call(handle, &in);
    CHECK(last_ret == HG_SUCCESS, "%u bytes: %d", count, last_ret);
    MUST(HG_Get_output_buf(handle, &buf, NULL));
    CHECK(*(uint64_t *)buf == 33, "the head of the output is %lu", (unsigned long)*(uint64_t *)buf);
    MUST(HG_Get_output(handle, &out));
    CHECK(out.count == count, "%u", out.count);
    MUST(HG_Free_output(handle, &out));
    free(in.bytes);
  }
  MUST(HG_Destroy(handle));
  serve_barrier();
  MUST(HG_Class_set_input_offset(hg_class, 0));
  MUST(HG_Class_set_output_offset(hg_class, 0));
  serve_barrier();
}

/* Calls that fail, are cancelled, or lack a response. */
static void ends(int to)
{
  hg_handle_t handle;
  blob_t in = { 1, 0, NULL }, out;
  int refuse = 1;
  uint8_t disabled = 0;
  MUST(HG_Create(context, ranks[to], FAILS, &handle));
  call(handle, &in);
  CHECK(last_ret == HG_PERMISSION, "a handler that fails: %d", last_ret);
  MUST_BE(HG_PERMISSION, HG_Get_output(handle, &out));
  MUST(HG_Reset(handle, HG_ADDR_NULL, ABSENT));
  call(handle, NULL);
  CHECK(last_ret == HG_NOENTRY, "a function that is not there: %d", last_ret);
  MUST(HG_Reset(handle, HG_ADDR_NULL, REFUSED));
  MUST_BE(HG_PERMISSION, HG_Forward(handle, on_end, NULL, &refuse));
  MUST(HG_Reset(handle, HG_ADDR_NULL, NEVER));
  const int before = ended;
  MUST(HG_Cancel(handle)); /* nothing to cancel */
  MUST(HG_Forward(handle, on_end, NULL, &in));
  MUST(HG_Cancel(handle));
  pump_until(&ended, before + 1, "a cancelled call");
  CHECK(last_ret == HG_CANCELED, "a cancelled call: %d", last_ret);
  MUST(HG_Registered_disabled_response(hg_class, QUIET, &disabled));
  CHECK(disabled == 1, "calls without response have one");
  MUST(HG_Reset(handle, HG_ADDR_NULL, QUIET));
  for (int i = 0; i < 5; i++)
    call(handle, &in);
  CHECK(last_ret == HG_SUCCESS, "a call without response: %d", last_ret);
  MUST(HG_Destroy(handle));
}

/* A second context, selected by its number. */
static void contexts(int to)
{
  hg_context_t *numbered = HG_Context_create_id(hg_class, 201);
  hg_handle_t handle;
  MPI_Request request;
  int done = 0, there = 0;
  CHECK(numbered && HG_Context_get_id(numbered) == 201 && HG_Context_get_id(context) == 0,
        "the contexts' numbers");
  CHECK(HG_Context_get_class(numbered) == hg_class, "the context's class");
  serve_barrier();
  MUST(HG_Create(context, ranks[to], WHERE, &handle));
  for (int i = 0; i < 2; i++) {
    blob_t out;
    MUST(HG_Set_target_id(handle, (uint8_t)(i * 201)));
    CHECK(HG_Get_info(handle)->context_id == i * 201, "the target's context");
    const int before = ended;
    MUST(HG_Forward(handle, on_end, NULL, &(blob_t){ 0, 0, NULL }));
    while (ended == before) {
      pump(context, 1);
      pump(numbered, 0);
    }
    CHECK(last_ret == HG_SUCCESS, "context %d: %d", i * 201, last_ret);
    MUST(HG_Get_output(handle, &out));
    CHECK((int)out.cookie == i * 201, "it has run in context %d, not %d", (int)out.cookie, i * 201);
    MUST(HG_Free_output(handle, &out));
    there++;
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    pump(context, 0);
    pump(numbered, 0);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    sched_yield();
  }
  MUST(HG_Context_destroy(numbered));
  serve_barrier();
  MUST(HG_Set_target_id(handle, 77));
  blob_t none = { 0, 0, NULL };
  if (to == me) {
    MUST_BE(HG_NOENTRY, HG_Forward(handle, on_end, NULL, &none));
  } else {
    call(handle, &none);
    CHECK(last_ret == HG_NOENTRY, "a context that is not there: %d", last_ret);
  }
  MUST(HG_Destroy(handle));
}

int main(int argc, char **argv)
{
  start_mercury("mercury2_rpc", &argc, &argv);
  const int to = (me + 1) % nproc;
  uint8_t flag = 9;
  hg_id_t id = 0;
  hg_proc_cb_t in_proc = NULL, out_proc = NULL;
  int data = 7;

  MUST(HG_Class_set_handle_create_callback(hg_class, on_create, (void *)&freed));
  const hg_id_t open_id = MERCURY_REGISTER(hg_class, "open", void, void, never_cb);
  CHECK(open_id != 0, "open: %s", portolan_last_error());
  MUST(HG_Registered_name(hg_class, "open", &id, &flag));
  CHECK(flag == 1 && id == open_id, "open is registered as another");
  MUST(HG_Registered_name(hg_class, "close", &id, &flag));
  CHECK(flag == 0, "close is registered");
  MUST(HG_Register(hg_class, ECHO, hg_proc_blob_t, hg_proc_blob_t, echo_cb));
  MUST(HG_Register(hg_class, QUIET, hg_proc_blob_t, NULL, quiet_cb));
  MUST(HG_Registered_disable_response(hg_class, QUIET, HG_TRUE));
  MUST(HG_Register(hg_class, NEVER, hg_proc_blob_t, NULL, never_cb));
  MUST(HG_Register(hg_class, FAILS, hg_proc_blob_t, hg_proc_blob_t, fails_cb));
  MUST(HG_Register(hg_class, WHERE, hg_proc_blob_t, hg_proc_blob_t, where_cb));
  MUST(HG_Register(hg_class, ABSENT, NULL, NULL, NULL));
  MUST(HG_Register(hg_class, REFUSED, hg_proc_refused_t, NULL, NULL));
  MUST(HG_Registered_proc_cb(hg_class, QUIET, &flag, &in_proc, &out_proc));
  CHECK(flag == 1 && in_proc == hg_proc_blob_t && out_proc == NULL, "other procs");
  MUST(HG_Register_data(hg_class, ECHO, &data, NULL));
  CHECK(HG_Registered_data(hg_class, ECHO) == &data && !HG_Registered_data(hg_class, QUIET), "data");
  MUST(HG_Class_set_data(hg_class, &data, NULL));
  MUST(HG_Context_set_data(context, &data, NULL));
  CHECK(HG_Class_get_data(hg_class) == &data && HG_Context_get_data(context) == &data, "data");
  CHECK(HG_Class_is_listening(hg_class), "the class does not listen");
  serve_barrier();

  for (int p = 0; p < 2; p++)
    lengths(p ? me : to);
  pump_until(&answered, 2 * LENGTHS, "callbacks of answers");
  handles(to);
  handles(me);
  serve_barrier();
  heads(to);
  ends(to);
  serve_barrier();
  pump_until(&quiet_ran, 5, "calls without response");
  for (int i = 0; i < kept; i++)
    MUST(HG_Destroy(unanswered[i]));
  contexts(to);
  serve_barrier();

  struct hg_diag_counters counters;
  MUST(HG_Class_get_counters(hg_class, &counters));
  CHECK(counters.rpc_req_sent_count > 20 && counters.rpc_req_recv_count > 20 &&
            counters.rpc_resp_sent_count > 20 && counters.rpc_resp_recv_count > 20 &&
            counters.rpc_req_extra_count > 0 && counters.rpc_resp_extra_count > 0 &&
            counters.rpc_req_recv_active_count == 0,
        "the counters are wrong: %lu sent, %lu received, %lu active, %lu and %lu with extra data",
        (unsigned long)counters.rpc_req_sent_count, (unsigned long)counters.rpc_req_recv_count,
        (unsigned long)counters.rpc_req_recv_active_count, (unsigned long)counters.rpc_req_extra_count,
        (unsigned long)counters.rpc_resp_extra_count);
  CHECK(created > 0 && created == freed, "%d handles were made, %d freed", created, freed);
  MUST(HG_Deregister(hg_class, ECHO));
  MUST_BE(HG_NOENTRY, HG_Deregister(hg_class, ECHO));
  MUST(HG_Registered(hg_class, ECHO, &flag));
  CHECK(flag == 0, "it is still registered");
  return end_mercury();
}
