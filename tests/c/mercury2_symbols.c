/* Every function in the headers of Mercury 2.4's interface is in the library, by its label and, for
 * dlsym, by its name. Types and codes have the layouts and values of Mercury 2.4, and the interface
 * of 2013 remains separate. */
// TEST: n=1
#define _GNU_SOURCE
#include "mercury2_check.h"

#include <dlfcn.h>
#include <mercury_core_header.h>
#include <mercury_request.h>
#include <mercury_time.h>
#include <mercury_util.h>
#include <na.h>
#include <net/if.h>

typedef void (*function)(void);

static const struct {
  const char *name;
  function address;
} table[] = {
#define NAME(name) { #name, (function)name },
  /* mercury.h */
  NAME(HG_Version_get) NAME(HG_Error_to_string) NAME(HG_Get_na_protocol_info)
  NAME(HG_Free_na_protocol_info) NAME(HG_Set_log_level) NAME(HG_Set_log_subsys)
  NAME(HG_Set_log_func) NAME(HG_Set_log_stream) NAME(HG_Diag_dump_counters) NAME(HG_Init)
  NAME(HG_Init_opt) NAME(HG_Init_opt2) NAME(HG_Finalize) NAME(HG_Cleanup)
  NAME(HG_Class_get_name) NAME(HG_Class_get_protocol) NAME(HG_Class_is_listening)
  NAME(HG_Class_get_input_eager_size) NAME(HG_Class_get_output_eager_size)
  NAME(HG_Class_set_input_offset) NAME(HG_Class_set_output_offset) NAME(HG_Class_set_data)
  NAME(HG_Class_get_data) NAME(HG_Class_get_counters)
  NAME(HG_Class_set_handle_create_callback) NAME(HG_Context_create)
  NAME(HG_Context_create_id) NAME(HG_Context_destroy) NAME(HG_Context_unpost)
  NAME(HG_Context_get_class) NAME(HG_Context_get_id) NAME(HG_Context_set_data)
  NAME(HG_Context_get_data) NAME(HG_Register_name) NAME(HG_Registered_name)
  NAME(HG_Register) NAME(HG_Deregister) NAME(HG_Registered) NAME(HG_Registered_proc_cb)
  NAME(HG_Register_data) NAME(HG_Registered_data) NAME(HG_Registered_disable_response)
  NAME(HG_Registered_disabled_response) NAME(HG_Addr_lookup1) NAME(HG_Addr_lookup2)
  NAME(HG_Addr_free) NAME(HG_Addr_set_remove) NAME(HG_Addr_self) NAME(HG_Addr_dup)
  NAME(HG_Addr_cmp) NAME(HG_Addr_to_string) NAME(HG_Create) NAME(HG_Destroy) NAME(HG_Reset)
  NAME(HG_Ref_incr) NAME(HG_Ref_get) NAME(HG_Get_info) NAME(HG_Set_data) NAME(HG_Get_data)
  NAME(HG_Set_target_id) NAME(HG_Get_input_payload_size) NAME(HG_Get_input)
  NAME(HG_Free_input) NAME(HG_Get_output_payload_size) NAME(HG_Get_output)
  NAME(HG_Free_output) NAME(HG_Get_input_buf) NAME(HG_Release_input_buf)
  NAME(HG_Get_output_buf) NAME(HG_Get_input_extra_buf) NAME(HG_Get_output_extra_buf)
  NAME(HG_Forward) NAME(HG_Respond) NAME(HG_Cancel) NAME(HG_Progress) NAME(HG_Trigger)
  NAME(HG_Event_get_wait_fd) NAME(HG_Event_ready) NAME(HG_Event_progress)
  NAME(HG_Event_trigger)
  /* mercury_bulk.h */
  NAME(HG_Bulk_create) NAME(HG_Bulk_create_attr) NAME(HG_Bulk_free) NAME(HG_Bulk_ref_incr)
  NAME(HG_Bulk_bind) NAME(HG_Bulk_get_addr) NAME(HG_Bulk_get_context_id)
  NAME(HG_Bulk_access) NAME(HG_Bulk_get_size) NAME(HG_Bulk_get_segment_count)
  NAME(HG_Bulk_get_flags) NAME(HG_Bulk_get_serialize_size) NAME(HG_Bulk_serialize)
  NAME(HG_Bulk_deserialize) NAME(HG_Bulk_transfer) NAME(HG_Bulk_bind_transfer)
  NAME(HG_Bulk_transfer_id) NAME(HG_Bulk_cancel)
  /* mercury_core.h */
  NAME(HG_Core_get_na_protocol_info) NAME(HG_Core_free_na_protocol_info) NAME(HG_Core_init)
  NAME(HG_Core_init_opt) NAME(HG_Core_init_opt2) NAME(HG_Core_finalize)
  NAME(HG_Core_cleanup) NAME(HG_Core_set_more_data_callback) NAME(HG_Core_class_get_name)
  NAME(HG_Core_class_get_protocol) NAME(HG_Core_class_is_listening)
  NAME(HG_Core_class_get_na) NAME(HG_Core_class_get_input_eager_size)
  NAME(HG_Core_class_get_output_eager_size) NAME(HG_Core_class_set_data)
  NAME(HG_Core_class_get_data) NAME(HG_Core_class_get_counters)
  NAME(HG_Core_context_create) NAME(HG_Core_context_create_id)
  NAME(HG_Core_context_destroy) NAME(HG_Core_context_get_class)
  NAME(HG_Core_context_get_na) NAME(HG_Core_context_get_id) NAME(HG_Core_context_set_data)
  NAME(HG_Core_context_get_data) NAME(HG_Core_context_get_completion_count)
  NAME(HG_Core_context_set_handle_create_callback) NAME(HG_Core_context_post)
  NAME(HG_Core_context_unpost) NAME(HG_Core_register) NAME(HG_Core_deregister)
  NAME(HG_Core_registered) NAME(HG_Core_register_data) NAME(HG_Core_registered_data)
  NAME(HG_Core_registered_disable_response) NAME(HG_Core_registered_disabled_response)
  NAME(HG_Core_addr_lookup1) NAME(HG_Core_addr_lookup2) NAME(HG_Core_addr_free)
  NAME(HG_Core_addr_set_remove) NAME(HG_Core_addr_get_na) NAME(HG_Core_addr_self)
  NAME(HG_Core_addr_dup) NAME(HG_Core_addr_cmp) NAME(HG_Core_addr_is_self)
  NAME(HG_Core_addr_to_string) NAME(HG_Core_addr_get_serialize_size)
  NAME(HG_Core_addr_serialize) NAME(HG_Core_addr_deserialize) NAME(HG_Core_create)
  NAME(HG_Core_destroy) NAME(HG_Core_reset) NAME(HG_Core_ref_incr) NAME(HG_Core_ref_get)
  NAME(HG_Core_set_data) NAME(HG_Core_get_data) NAME(HG_Core_get_info)
  NAME(HG_Core_get_rpc_data) NAME(HG_Core_set_target_id)
  NAME(HG_Core_get_input_payload_size) NAME(HG_Core_get_input) NAME(HG_Core_release_input)
  NAME(HG_Core_get_output_payload_size) NAME(HG_Core_get_output) NAME(HG_Core_forward)
  NAME(HG_Core_respond) NAME(HG_Core_cancel) NAME(HG_Core_progress) NAME(HG_Core_trigger)
  NAME(HG_Core_event_get_wait_fd) NAME(HG_Core_event_ready) NAME(HG_Core_event_progress)
  NAME(HG_Core_event_trigger)
  /* mercury_proc.h */
  NAME(hg_proc_create) NAME(hg_proc_create_set) NAME(hg_proc_free) NAME(hg_proc_reset)
  NAME(hg_proc_get_class) NAME(hg_proc_set_handle) NAME(hg_proc_get_handle)
  NAME(hg_proc_get_op) NAME(hg_proc_set_flags) NAME(hg_proc_get_flags)
  NAME(hg_proc_get_size) NAME(hg_proc_get_size_used) NAME(hg_proc_set_size)
  NAME(hg_proc_get_size_left) NAME(hg_proc_save_ptr) NAME(hg_proc_restore_ptr)
  NAME(hg_proc_get_extra_buf) NAME(hg_proc_get_extra_size)
  NAME(hg_proc_set_extra_buf_is_mine) NAME(hg_proc_flush) NAME(hg_proc_checksum_get)
  NAME(hg_proc_checksum_verify) NAME(hg_proc_checksum_update) NAME(hg_proc_int8_t)
  NAME(hg_proc_uint8_t) NAME(hg_proc_int16_t) NAME(hg_proc_uint16_t) NAME(hg_proc_int32_t)
  NAME(hg_proc_uint32_t) NAME(hg_proc_int64_t) NAME(hg_proc_uint64_t) NAME(hg_proc_bytes)
  /* mercury_proc_bulk.h */
  NAME(hg_proc_hg_bulk_t)
  /* mercury_string_object.h */
  NAME(hg_string_object_init) NAME(hg_string_object_init_char)
  NAME(hg_string_object_init_const_char) NAME(hg_string_object_free)
  NAME(hg_string_object_dup) NAME(hg_string_object_swap)
  /* mercury_proc_string.h */
  NAME(hg_proc_hg_const_string_t) NAME(hg_proc_hg_string_t)
  NAME(hg_proc_hg_string_object_t)
  /* mercury_request.h */
  NAME(hg_request_init) NAME(hg_request_finalize) NAME(hg_request_create)
  NAME(hg_request_destroy) NAME(hg_request_reset) NAME(hg_request_complete)
  NAME(hg_request_wait) NAME(hg_request_waitall) NAME(hg_request_set_data)
  NAME(hg_request_get_data)
  /* mercury_util.h */
  NAME(HG_Util_version_get) NAME(HG_Util_set_log_level)
  /* na.h */
  NAME(NA_Version_get) NAME(NA_Get_protocol_info) NAME(NA_Free_protocol_info)
  NAME(NA_Initialize) NAME(NA_Initialize_opt) NAME(NA_Initialize_opt2) NAME(NA_Finalize)
  NAME(NA_Cleanup) NAME(NA_Has_opt_feature) NAME(NA_Set_log_level) NAME(NA_Diag_dump_counters)
  NAME(NA_Get_class_name) NAME(NA_Get_class_protocol) NAME(NA_Is_listening)
  NAME(NA_Error_to_string) NAME(NA_Context_create) NAME(NA_Context_create_id)
  NAME(NA_Context_destroy) NAME(NA_Context_get_completion_count) NAME(NA_Op_create)
  NAME(NA_Op_destroy) NAME(NA_Addr_lookup) NAME(NA_Addr_free) NAME(NA_Addr_set_remove)
  NAME(NA_Addr_self) NAME(NA_Addr_dup) NAME(NA_Addr_cmp) NAME(NA_Addr_is_self)
  NAME(NA_Addr_to_string) NAME(NA_Addr_get_serialize_size) NAME(NA_Addr_serialize)
  NAME(NA_Addr_deserialize) NAME(NA_Msg_get_max_unexpected_size)
  NAME(NA_Msg_get_max_expected_size) NAME(NA_Msg_get_unexpected_header_size)
  NAME(NA_Msg_get_expected_header_size) NAME(NA_Msg_get_max_tag) NAME(NA_Msg_buf_alloc)
  NAME(NA_Msg_buf_free) NAME(NA_Msg_init_unexpected) NAME(NA_Msg_init_expected)
  NAME(NA_Msg_send_unexpected) NAME(NA_Msg_recv_unexpected) NAME(NA_Msg_multi_recv_unexpected)
  NAME(NA_Msg_send_expected) NAME(NA_Msg_recv_expected) NAME(NA_Mem_handle_create)
  NAME(NA_Mem_handle_create_segments) NAME(NA_Mem_handle_free)
  NAME(NA_Mem_handle_get_max_segments) NAME(NA_Mem_register) NAME(NA_Mem_deregister)
  NAME(NA_Mem_handle_get_serialize_size) NAME(NA_Mem_handle_serialize)
  NAME(NA_Mem_handle_deserialize) NAME(NA_Put) NAME(NA_Get) NAME(NA_Poll_get_fd)
  NAME(NA_Poll_try_wait) NAME(NA_Poll) NAME(NA_Poll_wait) NAME(NA_Progress) NAME(NA_Trigger)
  NAME(NA_Cancel)
#undef NAME
};

#define IS(name, what, value) typedef char is_##name[(what) == (value) ? 1 : -1]
IS(ret_first, HG_SUCCESS, 0);
IS(ret_perm, HG_PERMISSION, 1);
IS(ret_noentry, HG_NOENTRY, 2);
IS(ret_again, HG_AGAIN, 4);
IS(ret_nomem, HG_NOMEM, 5);
IS(ret_fault, HG_FAULT, 7);
IS(ret_busy, HG_BUSY, 8);
IS(ret_invalid, HG_INVALID_ARG, 11);
IS(ret_overflow, HG_OVERFLOW, 13);
IS(ret_msgsize, HG_MSGSIZE, 14);
IS(ret_timeout, HG_TIMEOUT, 20);
IS(ret_canceled, HG_CANCELED, 21);
IS(ret_checksum, HG_CHECKSUM_ERROR, 24);
IS(ret_other, HG_OTHER_ERROR, 26);
IS(ret_max, HG_RETURN_MAX, 27);
IS(na_max, NA_RETURN_MAX, 24);
IS(na_get, NA_CB_GET, 6);
IS(na_cb, sizeof(struct na_cb_info), 56);
IS(na_cb_arg, offsetof(struct na_cb_info, arg), 40);
IS(old_names, HG_NO_MATCH, HG_NOENTRY);
IS(cb_bulk, HG_CB_BULK, 3);
IS(pull, HG_BULK_PULL, 1);
IS(rw, HG_BULK_READWRITE, 3);
IS(encode, HG_ENCODE, 0);
IS(decode, HG_DECODE, 1);
IS(crc64, HG_CRC64, 2);
IS(nohash, HG_NOHASH, 3);
IS(id, sizeof(hg_id_t), 8);
IS(size, sizeof(hg_size_t), 8);
IS(info, sizeof(struct hg_info), 40);
IS(info_id, offsetof(struct hg_info, id), 24);
IS(info_context, offsetof(struct hg_info, context_id), 32);
IS(cb, sizeof(struct hg_cb_info), 48);
IS(cb_arg, offsetof(struct hg_cb_info, arg), 32);
IS(cb_type, offsetof(struct hg_cb_info, type), 40);
IS(cb_ret, offsetof(struct hg_cb_info, ret), 44);
IS(cb_size, offsetof(struct hg_cb_info_bulk, size), 24);
IS(core_cb, sizeof(struct hg_core_cb_info), 24);
IS(core_info, sizeof(struct hg_core_info), 40);
IS(na_info, sizeof(struct na_init_info_4_0), 48);
IS(init_class, offsetof(struct hg_init_info, na_class), 48);
IS(init_sm, offsetof(struct hg_init_info, auto_sm), 64);
IS(init_sum, offsetof(struct hg_init_info, checksum_level), 80);
IS(init_early, offsetof(struct hg_init_info, release_input_early), 88);
IS(init_overflow, offsetof(struct hg_init_info, no_overflow), 96);
IS(init, sizeof(struct hg_init_info), 112);
IS(counters, sizeof(struct hg_diag_counters), 72);
IS(attr, sizeof(struct hg_bulk_attr), 16);
IS(string, sizeof(hg_string_object_t), 16);
IS(version, HG_VERSION(2, 4), 0x20004);
IS(identifier, HG_CORE_IDENTIFIER, 0xd7);
IS(protocol, HG_CORE_PROTOCOL_VERSION, 5);
IS(core_checksums, HG_CORE_HAS_CHECKSUMS, 128);
IS(long_width, HG_UTIL_ATOMIC_LONG_WIDTH, sizeof(long));
IS(stamp, HG_UTIL_STAMP_MAX, 128);
HG_ATTR_PACKED_PUSH struct packed {
  char first;
  int second;
} HG_ATTR_PACKED_POP;
IS(packed, sizeof(struct packed), 5);
#ifndef HG_HAS_MULTI_PROGRESS
#error "threads may make progress in one context"
#endif

typedef int (*version)(unsigned int *, unsigned int *, unsigned int *);

static int lines;
static int count_line(FILE *stream, const char *format, ...)
{
  (void)stream;
  lines += strcmp(format, "%s") == 0;
  return 1;
}

/* An error is a line of the log, or nothing at the level none. It is never printed past the log. */
static void failure_is_logged(const char *with)
{
  for (int is_on = 0; is_on < 2; is_on++) {
    const int kept = dup(STDERR_FILENO);
    FILE *caught = tmpfile();
    CHECK(kept >= 0 && caught && dup2(fileno(caught), STDERR_FILENO) >= 0, "standard error");
    HG_Set_log_level(is_on ? "info" : "none");
    lines = 0;
    hg_class_t *none = HG_Init("ofi+verbs", HG_TRUE);
    dup2(kept, STDERR_FILENO);
    close(kept);
    CHECK(none == NULL, "ofi+verbs is a network");
    CHECK(lines == is_on, "%s: %d lines of the log at level %s", with, lines, is_on ? "info" : "none");
    CHECK(fseek(caught, 0, SEEK_END) == 0 && ftell(caught) == 0, "%s: %ld bytes past the log", with,
          ftell(caught));
    fclose(caught);
  }
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_symbols", &argc, &argv);
  /* Load by the path beside this library: in some MPIs UCX interposes dlopen, which then searches
   * with UCX's own library path. */
  Dl_info ours;
  char path[4096];
  CHECK(dladdr(*(void **)&table[0].address, &ours) != 0, "no file has %s", table[0].name);
  const char *end = strrchr(ours.dli_fname, '/');
  snprintf(path, sizeof path, "%.*slibmercury2.so.0",
           end == NULL ? 0 : (int)(end + 1 - ours.dli_fname), ours.dli_fname);
  void *library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL, "%s: %s", path, dlerror());
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    char label[128];
    snprintf(label, sizeof label, "mercury2_%s", table[i].name);
    CHECK(table[i].address != NULL, "%s is null", table[i].name);
    CHECK(dlsym(RTLD_DEFAULT, label) == *(void **)&table[i].address, "%s is another", label);
    CHECK(dlsym(library, table[i].name) != NULL, "%s: %s", table[i].name, dlerror());
  }

  unsigned int major = 9, minor = 9, patch = 9;
  MUST(HG_Version_get(&major, &minor, &patch));
  CHECK(major == 2 && minor == 4 && patch == 1, "the version is %u.%u.%u", major, minor, patch);
  version by_name;
  void *whole = dlopen("libportolan.so.0", RTLD_NOW);
  CHECK(whole != NULL, "libportolan.so.0: %s", dlerror());
  *(void **)&by_name = dlsym(whole, "HG_Version_get");
  CHECK(by_name(&major, &minor, &patch) == 0 && major == 0 && minor == 7,
        "the version of 2013 is %u.%u", major, minor);
  *(void **)&by_name = dlsym(library, "HG_Version_get");
  CHECK(by_name(&major, &minor, NULL) == 0 && major == 2 && minor == 4, "by name it is %u.%u", major, minor);

#define X(code) \
  CHECK(strcmp(HG_Error_to_string(code), #code) == 0, #code " is %s", HG_Error_to_string(code));
  HG_RETURN_VALUES
#undef X
  CHECK(strcmp(HG_Error_to_string((hg_return_t)77), "HG_RETURN_MAX") == 0, "77 has a name");

  struct na_protocol_info *list = NULL;
  int found = 0;
  MUST(HG_Get_na_protocol_info(NULL, &list));
  for (struct na_protocol_info *p = list; p; p = p->next)
    found += strcmp(p->class_name, "mpi") == 0 && p->protocol_name && p->device_name;
  CHECK(found == 1, "%d networks over MPI", found);
  HG_Free_na_protocol_info(list);
  MUST(HG_Get_na_protocol_info("ofi+tcp", &list));
  found = 0;
  for (struct na_protocol_info *p = list; p; p = p->next) {
    CHECK(strcmp(p->protocol_name, "tcp") == 0 && if_nametoindex(p->device_name) > 0, "ofi+tcp over %s",
          p->device_name);
    found += strcmp(p->device_name, "lo") == 0;
  }
  CHECK(found == 1, "%d networks over lo", found);
  HG_Free_na_protocol_info(list);
  MUST(HG_Get_na_protocol_info("na+sm", &list));
  CHECK(list && !list->next && strcmp(list->device_name, "shm") == 0, "na+sm");
  HG_Free_na_protocol_info(list);
  MUST_BE(HG_PROTONOSUPPORT, HG_Get_na_protocol_info("ofi+verbs", &list));
  CHECK(strstr(portolan_last_error(), "ofi+tcp") != NULL, "%s", portolan_last_error());
  MUST_BE(HG_INVALID_ARG, HG_Get_na_protocol_info(NULL, NULL));
  HG_Free_na_protocol_info(NULL);

  /* The program chooses where log output goes. */
  HG_Set_log_func(count_line);
  HG_Set_log_stream("warning", stderr);
  HG_Set_log_subsys("hg");
  failure_is_logged("no class");
  hg_class_t *self = HG_Init("self", HG_TRUE);
  CHECK(self != NULL, "self: %s", portolan_last_error());
  CHECK(strcmp(HG_Class_get_name(self), "self") == 0, "the class is %s", HG_Class_get_name(self));
  HG_Diag_dump_counters();
  failure_is_logged("a class without MPI");
  MUST(HG_Finalize(self));
  hg_class_t *mpi = HG_Init("mpi", HG_FALSE);
  CHECK(mpi != NULL, "mpi: %s", portolan_last_error());
  CHECK(strcmp(HG_Class_get_name(mpi), "mpi") == 0 && strcmp(HG_Class_get_protocol(mpi), "static") == 0,
        "the class is %s, %s", HG_Class_get_name(mpi), HG_Class_get_protocol(mpi));
  failure_is_logged("a class over MPI");
  HG_Cleanup();
  MUST(HG_Finalize(mpi));
  HG_Set_log_func(NULL);
  dlclose(library);
  dlclose(whole);
  return check_end_mpi();
}
