/* HG Core of Mercury 2.4's interface: calls with encoded bytes, posted contexts, addresses as
 * bytes, attached data. */
// TEST: mercury networks
#include "mercury2_check.h"

#define SUM ((hg_id_t)0x1122334455667788)

static hg_core_class_t *core;
static hg_core_context_t *core_context;
static volatile int ended, answered, looked_up;
static int data = 5, freed, created;

static void on_free(void *arg) { freed += arg == &data; }

static hg_return_t on_create(hg_core_handle_t handle, void *arg)
{
  created++;
  return HG_Core_set_data(handle, arg, NULL);
}

static hg_return_t on_answered(const struct hg_core_cb_info *info)
{
  CHECK(info->type == HG_CB_RESPOND && info->ret == HG_SUCCESS, "an answer");
  answered++;
  return HG_Core_destroy(info->info.respond.handle);
}

static hg_return_t sum_cb(hg_core_handle_t handle)
{
  void *in, *out;
  hg_size_t in_size, out_size;
  const struct hg_core_info *info = HG_Core_get_info(handle);
  uint64_t sum = 0;
  CHECK(info->core_class == core && info->context == core_context && info->id == SUM, "another handle");
  CHECK(HG_Core_get_data(handle) == &data && HG_Core_get_rpc_data(handle) == &data, "other data");
  MUST(HG_Core_get_input(handle, &in, &in_size));
  CHECK(in_size == HG_Core_get_input_payload_size(handle), "%lu bytes", (unsigned long)in_size);
  for (hg_size_t i = 0; i < in_size; i++)
    sum += ((unsigned char *)in)[i];
  MUST(HG_Core_release_input(handle));
  MUST(HG_Core_get_output(handle, &out, &out_size));
  CHECK(out_size >= 8, "%lu bytes for an output", (unsigned long)out_size);
  memcpy(out, &sum, 8);
  MUST_BE(HG_MSGSIZE, HG_Core_respond(handle, on_answered, NULL, 0, out_size + 1));
  return HG_Core_respond(handle, on_answered, NULL, 0, 8);
}

static hg_return_t on_end(const struct hg_core_cb_info *info)
{
  const hg_core_handle_t handle = info->info.forward.handle;
  void *out;
  hg_size_t size;
  CHECK(info->type == HG_CB_FORWARD && info->ret == HG_SUCCESS, "%s", HG_Error_to_string(info->ret));
  MUST(HG_Core_get_output(handle, &out, &size));
  CHECK(size == 8 && HG_Core_get_output_payload_size(handle) == 8, "%lu bytes", (unsigned long)size);
  memcpy(info->arg, out, 8);
  ended++;
  return HG_SUCCESS;
}

static hg_return_t on_lookup(const struct hg_core_cb_info *info)
{
  CHECK(info->type == HG_CB_LOOKUP && info->ret == HG_SUCCESS, "a look-up");
  *(hg_core_addr_t *)info->arg = info->info.lookup.addr;
  looked_up++;
  return HG_SUCCESS;
}

static void core_pump(void)
{
  unsigned int ran = 0;
  hg_return_t rc = HG_Core_progress(core_context, 10);
  CHECK(rc == HG_SUCCESS || rc == HG_TIMEOUT, "%s", HG_Error_to_string(rc));
  CHECK(rc == HG_TIMEOUT || HG_Core_context_get_completion_count(core_context) > 0, "nothing waits");
  rc = HG_Core_trigger(core_context, 0, 100, &ran);
  CHECK(rc == (ran ? HG_SUCCESS : HG_TIMEOUT), "%s", HG_Error_to_string(rc));
}

static void core_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    unsigned int count;
    MUST(HG_Core_event_progress(core_context, &count));
    MUST(HG_Core_event_trigger(core_context, 10, &count));
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    sched_yield();
  }
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_core", &argc, &argv);
  struct hg_init_info options = HG_INIT_INFO_INITIALIZER;
  options.checksum_level = HG_CHECKSUM_RPC_PAYLOAD;
  core = HG_Core_init_opt2(check_network(), HG_TRUE, HG_VERSION(2, 4), &options);
  CHECK(core != NULL, "HG_Core_init_opt2: %s", portolan_last_error());
  core_context = HG_Core_context_create(core);
  CHECK(core_context != NULL && HG_Core_context_get_class(core_context) == core, "the context");
  CHECK(HG_Core_class_is_listening(core), "the class");
  CHECK(!check_over_mpi() || strcmp(HG_Core_class_get_name(core), "mpi") == 0, "the class");
  if (HG_Core_event_get_wait_fd(core_context) < 0)
    CHECK(HG_Core_event_ready(core_context), "the context must be polled");
  MUST(HG_Core_context_set_handle_create_callback(core_context, on_create, &data));
  for (int i = 0; i < 2; i++) { /* data that is replaced is not freed */
    MUST(HG_Core_class_set_data(core, &data, on_free));
    MUST(HG_Core_context_set_data(core_context, &data, on_free));
  }
  CHECK(HG_Core_class_get_data(core) == &data && HG_Core_context_get_data(core_context) == &data, "data");
  MUST(HG_Core_set_more_data_callback(core, NULL, NULL));
  MUST(HG_Core_register(core, SUM, sum_cb));
  for (int i = 0; i < 2; i++)
    MUST(HG_Core_register_data(core, SUM, &data, on_free));
  CHECK(freed == 0, "%d data are freed", freed);
  CHECK(HG_Core_registered_data(core, SUM) == &data, "data of a function");
  MUST(HG_Core_context_post(core_context));
  core_barrier();

  /* Addresses: by callback, by name, as bytes, and the own address. */
  char text[CHECK_ADDRESS], bytes[CHECK_ADDRESS];
  hg_core_addr_t addr = NULL, again, own, dup;
  hg_size_t size = sizeof text;
  const int to = (me + 1) % nproc;
  MUST(HG_Core_addr_self(core, &own));
  MUST(HG_Core_addr_to_string(text, &size, own));
  MUST(HG_Core_addr_free(own));
  check_share_name(text);
  const char *name = check_name_of(to);
  MUST(HG_Core_addr_lookup1(core_context, on_lookup, &addr, name, HG_CORE_OP_ID_IGNORE));
  while (!looked_up)
    core_pump();
  size = HG_Core_addr_get_serialize_size(addr, 0);
  CHECK(size > 0 && size <= sizeof bytes, "%lu bytes of an address", (unsigned long)size);
  MUST(HG_Core_addr_serialize(bytes, sizeof bytes, 0, addr));
  MUST(HG_Core_addr_deserialize(core, &again, bytes, size, 0));
  MUST_BE(HG_OVERFLOW, HG_Core_addr_deserialize(core, &own, bytes, size - 1, 0));
  MUST_BE(HG_PROTOCOL_ERROR, HG_Core_addr_deserialize(core, &own, "\xff", 2, 0));
  MUST(HG_Core_addr_self(core, &own));
  MUST(HG_Core_addr_dup(addr, &dup));
  CHECK(HG_Core_addr_cmp(addr, again) && HG_Core_addr_cmp(addr, dup), "addresses differ");
  CHECK(HG_Core_addr_cmp(addr, own) == (nproc == 1) && HG_Core_addr_is_self(own), "one's own address");
  size = 2;
  MUST_BE(HG_OVERFLOW, HG_Core_addr_to_string(text, &size, addr));
  CHECK(size == strlen(name) + 1, "%lu bytes of text", (unsigned long)size);
  MUST(HG_Core_addr_to_string(text, &size, addr));
  CHECK(strcmp(text, name) == 0, "%s is %s", name, text);
  MUST(HG_Core_addr_set_remove(again));
  MUST(HG_Core_addr_free(again));
  MUST(HG_Core_addr_free(dup));

  for (int own_too = 0; own_too < 2; own_too++) {
    hg_core_handle_t handle;
    void *in;
    uint64_t sum = 0, expected = 0;
    const int before = ended;
    MUST(HG_Core_create(core_context, own_too ? own : addr, SUM, &handle));
    MUST(HG_Core_get_input(handle, &in, &size));
    CHECK(size == HG_Core_class_get_input_eager_size(core) && size > 1000, "%lu bytes", (unsigned long)size);
    for (int i = 0; i < 1000; i++)
      expected += ((unsigned char *)in)[i] = (unsigned char)(i * me + 3);
    MUST_BE(HG_MSGSIZE, HG_Core_forward(handle, on_end, &sum, 0, size + 1));
    MUST(HG_Core_forward(handle, on_end, &sum, 0, 1000));
    while (ended == before)
      core_pump();
    CHECK(sum == expected, "the sum is %lu, not %lu", (unsigned long)sum, (unsigned long)expected);
    MUST(HG_Core_destroy(handle));
  }
  while (answered < 2)
    core_pump();
  core_barrier();
  MUST(HG_Core_addr_free(own));
  MUST(HG_Core_addr_free(addr));
  struct hg_diag_counters counters;
  MUST(HG_Core_class_get_counters(core, &counters));
  CHECK(counters.rpc_req_recv_count == 2 && created == 4, "%d handles", created);
  MUST(HG_Core_context_unpost(core_context));
  MUST_BE(HG_BUSY, HG_Core_finalize(core));
  MUST(HG_Core_context_destroy(core_context));
  CHECK(freed == 1, "the context's data");
  MUST(HG_Core_deregister(core, SUM));
  MUST(HG_Core_finalize(core));
  CHECK(freed == 3, "%d of 3 data are freed", freed);
  return check_end_mpi();
}
