/* Invalid arguments to Mercury 2.4's interface: null, freed and foreign handles, null output
 * pointers, unknown names and numbers. None of them leaks or loses anything. */
// TEST: mercury networks
#include "mercury2_check.h"

#include <mercury_core.h>

#define NO_CLASS ((hg_class_t *)0)
#define NO_CONTEXT ((hg_context_t *)0)
#define FOREIGN(type) ((type)(uintptr_t)0x1234)
#define BAD(call) MUST_BE(HG_INVALID_ARG, call)

static hg_return_t nothing(hg_handle_t handle)
{
  int32_t x;
  BAD(HG_Get_input(handle, NULL));
  MUST_BE(HG_FAULT, HG_Get_input(handle, &x)); /* no proc is registered */
  MUST_BE(HG_FAULT, HG_Free_input(handle, &x));
  BAD(HG_Get_output(handle, &x));
  BAD(HG_Reset(handle, ranks[0], 0));
  BAD(HG_Forward(handle, NULL, NULL, NULL));
  MUST_BE(HG_OPNOTSUPPORTED, HG_Cancel(handle));
  BAD(HG_Get_input_buf(handle, NULL, NULL));
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

static volatile int ended;
static hg_return_t on_end(const struct hg_cb_info *info)
{
  CHECK(info->ret == HG_SUCCESS, "%s", HG_Error_to_string(info->ret));
  ended++;
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  start_mercury("mercury2_invalid", &argc, &argv);
  hg_id_t id = HG_Register_name(hg_class, "nothing", NULL, NULL, nothing), other;
  hg_handle_t handle, gone;
  hg_addr_t addr, freed;
  hg_core_addr_t core_addr;
  hg_bulk_t bulk, other_bulk;
  uint8_t flag;
  unsigned int count;
  void *at;
  hg_size_t size = 8;
  char text[8];
  CHECK(id != 0, "%s", portolan_last_error());
  serve_barrier();

  CHECK(HG_Init_opt2("na+sm", HG_TRUE, HG_VERSION(2, 5), NULL) == NULL, "a version to come");
  CHECK(HG_Init(NULL, HG_TRUE) == NULL && HG_Init("", HG_TRUE) == NULL, "a class of nothing");
  MUST(HG_Finalize(NULL));
  BAD(HG_Finalize(FOREIGN(hg_class_t *)));
  MUST_BE(HG_BUSY, HG_Finalize(hg_class));
  CHECK(HG_Class_get_name(NO_CLASS) == NULL && HG_Class_get_protocol(NO_CLASS) == NULL, "a name");
  CHECK(!HG_Class_is_listening(NO_CLASS) && HG_Class_get_input_eager_size(NO_CLASS) == 0, "a size");
  BAD(HG_Class_set_data(NO_CLASS, &flag, NULL));
  BAD(HG_Class_get_counters(hg_class, NULL));
  BAD(HG_Class_set_output_offset(hg_class, HG_SIZE_MAX));
  CHECK(HG_Context_create(NO_CLASS) == NULL && HG_Context_get_class(NO_CONTEXT) == NULL, "a context");
  BAD(HG_Context_destroy(FOREIGN(hg_context_t *)));
  BAD(HG_Context_unpost(NO_CONTEXT));
  BAD(HG_Context_set_data(NO_CONTEXT, NULL, NULL));
  BAD(HG_Progress(NO_CONTEXT, 0));
  BAD(HG_Trigger((hg_context_t *)hg_class, 0, 1, &count));
  BAD(HG_Event_progress(NO_CONTEXT, &count));
  BAD(HG_Event_trigger(NO_CONTEXT, 1, &count));
  CHECK(!HG_Event_ready(NO_CONTEXT) && HG_Event_get_wait_fd(NO_CONTEXT) < 0, "an event");
  MUST_BE(HG_TIMEOUT, HG_Trigger(context, 0, 1, &count));
  MUST(HG_Trigger(context, 0, 0, NULL));

  CHECK(HG_Register_name(hg_class, NULL, NULL, NULL, NULL) == 0, "no name");
  CHECK(HG_Register_name(hg_class, "", NULL, NULL, NULL) == 0, "an empty name");
  BAD(HG_Register(NO_CLASS, 5, NULL, NULL, NULL));
  BAD(HG_Registered(hg_class, 5, NULL));
  BAD(HG_Registered_name(hg_class, NULL, &other, &flag));
  MUST(HG_Registered_name(hg_class, "nothing", NULL, &flag));
  MUST_BE(HG_NOENTRY, HG_Deregister(hg_class, 5));
  MUST_BE(HG_NOENTRY, HG_Register_data(hg_class, 5, &flag, NULL));
  MUST_BE(HG_NOENTRY, HG_Registered_disable_response(hg_class, 5, 1));
  MUST_BE(HG_NOENTRY, HG_Registered_disabled_response(hg_class, 5, &flag));
  BAD(HG_Registered_disabled_response(hg_class, id, NULL));

  BAD(HG_Addr_lookup2(hg_class, NULL, &addr));
  BAD(HG_Addr_lookup2(hg_class, "mpi://0", NULL));
  if (check_over_mpi())
    MUST_BE(HG_ADDRNOTAVAIL, HG_Addr_lookup2(hg_class, "tcp://host:1", &addr));
  MUST_BE(HG_ADDRNOTAVAIL, HG_Addr_lookup2(hg_class, "mpi://1000000", &addr));
  BAD(HG_Addr_lookup1(context, NULL, NULL, NULL, NULL));
  BAD(HG_Addr_self(hg_class, NULL));
  MUST(HG_Addr_free(hg_class, HG_ADDR_NULL));
  BAD(HG_Addr_free(NO_CLASS, ranks[0]));
  BAD(HG_Addr_dup(hg_class, HG_ADDR_NULL, &addr));
  BAD(HG_Addr_dup(hg_class, ranks[0], NULL));
  BAD(HG_Addr_to_string(hg_class, text, NULL, ranks[0]));
  MUST(HG_Addr_to_string(hg_class, NULL, &size, ranks[0]));
  CHECK(size >= 5, "%lu", (unsigned long)size);
  CHECK(!HG_Addr_cmp(hg_class, ranks[0], HG_ADDR_NULL), "equal to nothing");
  MUST(HG_Addr_self(hg_class, &freed));
  MUST(HG_Addr_free(hg_class, freed));
  BAD(HG_Addr_free(hg_class, freed));
  BAD(HG_Addr_set_remove(hg_class, freed));

  BAD(HG_Create(NO_CONTEXT, ranks[0], id, &handle));
  BAD(HG_Create(context, ranks[0], id, NULL));
  BAD(HG_Create(context, freed, id, &handle));
  MUST_BE(HG_NOENTRY, HG_Create(context, ranks[0], 77, &handle));
  MUST(HG_Create(context, ranks[0], id, &gone));
  MUST(HG_Destroy(gone));
  BAD(HG_Destroy(gone));
  BAD(HG_Reset(gone, ranks[0], id));
  BAD(HG_Ref_incr(gone));
  CHECK(HG_Ref_get(gone) < 0 && !HG_Get_info(gone) && !HG_Get_data(gone), "a freed handle");
  BAD(HG_Set_data(gone, NULL, NULL));
  BAD(HG_Set_target_id(gone, 1));
  BAD(HG_Forward(gone, NULL, NULL, NULL));
  BAD(HG_Respond(HG_HANDLE_NULL, NULL, NULL, NULL));
  BAD(HG_Cancel(HG_HANDLE_NULL));
  BAD(HG_Get_input(HG_HANDLE_NULL, &flag));
  BAD(HG_Release_input_buf(HG_HANDLE_NULL));
  CHECK(HG_Get_input_payload_size(gone) == 0 && HG_Get_output_payload_size(gone) == 0, "a size");
  MUST(HG_Create(context, ranks[(me + 1) % nproc], id, &handle));
  BAD(HG_Respond(handle, NULL, NULL, NULL));
  BAD(HG_Get_input(handle, &flag));
  BAD(HG_Get_output(handle, &flag)); /* not forwarded */
  BAD(HG_Get_output_buf(handle, &at, &size));
  MUST(HG_Forward(handle, on_end, NULL, NULL));
  pump_until(&ended, 1, "a call without anything");
  MUST_BE(HG_FAULT, HG_Get_output(handle, &flag));
  MUST(HG_Get_output_extra_buf(handle, &at, &size));
  CHECK(at == NULL && size == 0, "an extra buffer");
  MUST(HG_Destroy(handle));

  const hg_size_t ten = 10;
  hg_op_id_t op;
  BAD(HG_Bulk_create(NO_CLASS, 1, NULL, &ten, HG_BULK_READWRITE, &bulk));
  BAD(HG_Bulk_create(hg_class, 1, NULL, &ten, 0, &bulk));
  BAD(HG_Bulk_create(hg_class, 1, NULL, &ten, HG_BULK_READWRITE, NULL));
  BAD(HG_Bulk_create(hg_class, 1, NULL, NULL, HG_BULK_READWRITE, &bulk));
  BAD(HG_Bulk_create(hg_class, 0, NULL, &ten, HG_BULK_READWRITE, &bulk));
  BAD(HG_Bulk_free(FOREIGN(hg_bulk_t)));
  BAD(HG_Bulk_ref_incr(HG_BULK_NULL));
  BAD(HG_Bulk_access(HG_BULK_NULL, 0, 0, 1, 0, NULL, NULL, NULL));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &ten, HG_BULK_READWRITE, &bulk));
  BAD(HG_Bulk_bind(bulk, NO_CONTEXT));
  BAD(HG_Bulk_serialize(NULL, 100, 0, bulk));
  BAD(HG_Bulk_deserialize(hg_class, NULL, text, 8));
  BAD(HG_Bulk_deserialize(hg_class, &other_bulk, text, HG_SIZE_MAX));
  BAD(HG_Core_addr_deserialize((hg_core_class_t *)hg_class, &core_addr, text, HG_SIZE_MAX, 0));
  BAD(HG_Bulk_transfer(NO_CONTEXT, NULL, NULL, HG_BULK_PULL, ranks[0], bulk, 0, bulk, 0, 1, &op));
  BAD(HG_Bulk_transfer(context, NULL, NULL, HG_BULK_PULL, HG_ADDR_NULL, bulk, 0, bulk, 0, 1, &op));
  BAD(HG_Bulk_transfer(context, NULL, NULL, HG_BULK_PULL, ranks[0], HG_BULK_NULL, 0, bulk, 0, 1, &op));
  BAD(HG_Bulk_cancel(HG_OP_ID_NULL));
  MUST(HG_Bulk_free(bulk));
  BAD(HG_Bulk_free(bulk));
  CHECK(strstr(portolan_last_error(), "freed") != NULL, "%s", portolan_last_error());
  return end_mercury();
}
