/* Every function of the Mercury headers is in the library; otherwise this program does not link.
 * The types must have the library's layout. */
// TEST: n=1
#include "mercury_check.h"

#include <mercury_checksum.h>
#include <mercury_proc.h>
#include <mercury_string_object.h>

typedef void (*function)(void);

static const struct {
  const char *name;
  function address;
} table[] = {
#define NAME(name) { #name, (function)name },
  /* na.h */
  NAME(NA_Initialize) NAME(NA_Finalize) NAME(NA_Is_listening) NAME(NA_Context_create)
  NAME(NA_Context_destroy) NAME(NA_Addr_lookup) NAME(NA_Addr_lookup_wait) NAME(NA_Addr_free)
  NAME(NA_Addr_self) NAME(NA_Addr_dup) NAME(NA_Addr_is_self) NAME(NA_Addr_to_string)
  NAME(NA_Msg_get_max_expected_size) NAME(NA_Msg_get_max_unexpected_size)
  NAME(NA_Msg_get_max_tag) NAME(NA_Msg_send_unexpected) NAME(NA_Msg_recv_unexpected)
  NAME(NA_Msg_send_expected) NAME(NA_Msg_recv_expected) NAME(NA_Mem_handle_create)
  NAME(NA_Mem_handle_create_segments) NAME(NA_Mem_handle_free) NAME(NA_Mem_register)
  NAME(NA_Mem_deregister) NAME(NA_Mem_handle_get_serialize_size)
  NAME(NA_Mem_handle_serialize) NAME(NA_Mem_handle_deserialize) NAME(NA_Put) NAME(NA_Get)
  NAME(NA_Progress) NAME(NA_Trigger) NAME(NA_Cancel) NAME(NA_Error_to_string)
  /* mercury.h */
  NAME(HG_Init) NAME(HG_Finalize) NAME(HG_Initialized) NAME(HG_Register) NAME(HG_Registered)
  NAME(HG_Forward) NAME(HG_Wait) NAME(HG_Wait_all) NAME(HG_Request_free)
  NAME(HG_Error_to_string) NAME(HG_Version_get)
  /* mercury_handler.h */
  NAME(HG_Handler_process) NAME(HG_Handler_get_addr) NAME(HG_Handler_get_input)
  NAME(HG_Handler_free_input) NAME(HG_Handler_start_output) NAME(HG_Handler_get_input_buf)
  NAME(HG_Handler_get_output_buf) NAME(HG_Handler_start_response) NAME(HG_Handler_free)
  NAME(HG_Get_input) NAME(HG_Free_input) NAME(HG_Destroy)
  /* mercury_bulk.h */
  NAME(HG_Bulk_init) NAME(HG_Bulk_finalize) NAME(HG_Bulk_initialized)
  NAME(HG_Bulk_handle_create) NAME(HG_Bulk_handle_free) NAME(HG_Bulk_handle_access)
  NAME(HG_Bulk_handle_get_size) NAME(HG_Bulk_handle_get_segment_count)
  NAME(HG_Bulk_handle_get_serialize_size) NAME(HG_Bulk_handle_serialize)
  NAME(HG_Bulk_handle_deserialize) NAME(HG_Bulk_transfer) NAME(HG_Bulk_wait)
  NAME(HG_Bulk_free) NAME(HG_Bulk_access) NAME(HG_Bulk_get_size) NAME(HG_Bulk_get_segment_count)
  /* mercury_proc.h */
  NAME(hg_proc_buf_alloc) NAME(hg_proc_buf_free) NAME(hg_proc_create)
  NAME(hg_proc_create_set) NAME(hg_proc_reset) NAME(hg_proc_free)
  NAME(hg_proc_hash_from_name) NAME(hg_proc_get_op) NAME(hg_proc_get_class)
  NAME(hg_proc_set_handle) NAME(hg_proc_get_handle) NAME(hg_proc_set_flags)
  NAME(hg_proc_get_flags) NAME(hg_proc_get_size) NAME(hg_proc_get_size_used)
  NAME(hg_proc_get_size_left) NAME(hg_proc_set_size) NAME(hg_proc_get_extra_buf)
  NAME(hg_proc_get_extra_size) NAME(hg_proc_set_extra_buf_is_mine) NAME(hg_proc_flush)
  NAME(hg_proc_checksum_get) NAME(hg_proc_checksum_verify) NAME(hg_proc_checksum_update)
  NAME(hg_proc_save_ptr) NAME(hg_proc_restore_ptr) NAME(hg_proc_get_buf_ptr)
  NAME(hg_proc_set_buf_ptr) NAME(hg_proc_int8_t) NAME(hg_proc_uint8_t) NAME(hg_proc_int16_t)
  NAME(hg_proc_uint16_t) NAME(hg_proc_int32_t) NAME(hg_proc_uint32_t) NAME(hg_proc_int64_t)
  NAME(hg_proc_uint64_t) NAME(hg_proc_float) NAME(hg_proc_double) NAME(hg_proc_bool)
  NAME(hg_proc_hg_bulk_t) NAME(hg_proc_bytes) NAME(hg_proc_raw) NAME(hg_proc_memcpy)
  NAME(hg_proc_undo_begin) NAME(hg_proc_undo_end)
  /* mercury_proc_string.h */
  NAME(hg_proc_hg_string_t) NAME(hg_proc_hg_const_string_t) NAME(hg_proc_hg_string_object_t)
  /* mercury_string_object.h */
  NAME(hg_string_object_init) NAME(hg_string_object_init_char)
  NAME(hg_string_object_init_const_char) NAME(hg_string_object_free)
  NAME(hg_string_object_dup) NAME(hg_string_object_swap)
  /* mercury_checksum.h */
  NAME(hg_checksum_init) NAME(hg_checksum_destroy) NAME(hg_checksum_reset)
  NAME(hg_checksum_get_size) NAME(hg_checksum_get) NAME(hg_checksum_update)
};

int main(int argc, char **argv)
{
  const int count = (int)(sizeof table / sizeof table[0]);

  check_start_mpi("mercury_symbols", &argc, &argv);
  CHECK_EQ(count, 133);
  for (int i = 0; i < count; i++) {
    CHECK(table[i].address != NULL, "%s is missing", table[i].name);
    for (int j = 0; j < i; j++)
      CHECK(strcmp(table[i].name, table[j].name) != 0, "%s is listed twice", table[i].name);
  }
  CHECK_EQ(sizeof(na_size_t), 8);
  CHECK_EQ(sizeof(na_bool_t), 1);
  CHECK_EQ(sizeof(na_tag_t), 4);
  CHECK_EQ(sizeof(struct na_segment), 16);
  CHECK_EQ(offsetof(struct na_cb_info, ret), 8);
  CHECK_EQ(offsetof(struct na_cb_info, type), 12);
  CHECK_EQ(offsetof(struct na_cb_info, info), 16);
  CHECK_EQ(offsetof(struct na_cb_info_recv_unexpected, source), 8);
  CHECK_EQ(offsetof(struct na_cb_info_recv_unexpected, tag), 16);
  CHECK_EQ(sizeof(hg_id_t), 4);
  CHECK_EQ(sizeof(hg_status_t), 1);
  CHECK_EQ((int)NA_MEM_READ_ONLY | (int)NA_MEM_WRITE_ONLY, NA_MEM_READWRITE);
  CHECK_EQ((int)NA_CANCELED, (int)HG_CANCELED);
  CHECK_EQ((int)NA_IO_ERROR, (int)HG_IO_ERROR);
  CHECK_EQ((int)NA_TIMEOUT, (int)HG_TIMEOUT);
  return check_end_mpi();
}
