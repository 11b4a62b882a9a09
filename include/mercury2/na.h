/*
 * na.h - Mercury 2.4: the network layer.
 *
 * Classes, contexts and addresses of HG are also classes, contexts and addresses of NA; a program
 * gets them by HG_Core_class_get_na and the like. Messages have no header, and there is no receive
 * of several messages (NA_OPT_MULTI_RECV). Messages go to the peer's class, whatever its context.
 */
#ifndef NA_H
#define NA_H

#include "na_types.h"

/* Library and classes. */
HG_PUBLIC void NA_Version_get(unsigned int *major, unsigned int *minor, unsigned int *patch)
    HG_LABEL(NA_Version_get);
HG_PUBLIC na_return_t NA_Get_protocol_info(const char *info_string, struct na_protocol_info
    **na_protocol_info_p) HG_LABEL(NA_Get_protocol_info);
HG_PUBLIC void NA_Free_protocol_info(struct na_protocol_info *na_protocol_info)
    HG_LABEL(NA_Free_protocol_info);
HG_PUBLIC na_class_t *NA_Initialize(const char *info_string, bool listen)
    HG_LABEL(NA_Initialize) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_class_t *NA_Initialize_opt(const char *info_string, bool listen, const struct
    na_init_info *na_init_info) HG_LABEL(NA_Initialize_opt) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_class_t *NA_Initialize_opt2(const char *info_string, bool listen, unsigned int
    version, const struct na_init_info *na_init_info)
    HG_LABEL(NA_Initialize_opt2) HG_WARN_UNUSED_RESULT;
static NA_INLINE NA_UNUSED void na_init_info_dup_4_0(struct na_init_info *new_info,
                                                     const struct na_init_info_4_0 *old_info)
{
  new_info->ip_subnet = old_info->ip_subnet;
  new_info->auth_key = old_info->auth_key;
  new_info->max_unexpected_size = old_info->max_unexpected_size;
  new_info->max_expected_size = old_info->max_expected_size;
  new_info->progress_mode = old_info->progress_mode;
  new_info->addr_format = old_info->addr_format;
  new_info->max_contexts = old_info->max_contexts;
  new_info->thread_mode = old_info->thread_mode;
  new_info->request_mem_device = old_info->request_mem_device;
  new_info->traffic_class = NA_TC_UNSPEC;
}
HG_PUBLIC na_return_t NA_Finalize(na_class_t *na_class) HG_LABEL(NA_Finalize);
HG_PUBLIC void NA_Cleanup(void) HG_LABEL(NA_Cleanup);
HG_PUBLIC bool NA_Has_opt_feature(na_class_t *na_class, unsigned long flags)
    HG_LABEL(NA_Has_opt_feature) HG_WARN_UNUSED_RESULT;
HG_PUBLIC void NA_Set_log_level(const char *level) HG_LABEL(NA_Set_log_level);
HG_PUBLIC void NA_Diag_dump_counters(void) HG_LABEL(NA_Diag_dump_counters);
HG_PUBLIC const char *NA_Get_class_name(const na_class_t *na_class)
    HG_LABEL(NA_Get_class_name) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const char *NA_Get_class_protocol(const na_class_t *na_class)
    HG_LABEL(NA_Get_class_protocol) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool NA_Is_listening(const na_class_t *na_class)
    HG_LABEL(NA_Is_listening) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const char *NA_Error_to_string(na_return_t errnum)
    HG_LABEL(NA_Error_to_string) HG_WARN_UNUSED_RESULT;

/* Contexts and operations. */
HG_PUBLIC na_context_t *NA_Context_create(na_class_t *na_class)
    HG_LABEL(NA_Context_create) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_context_t *NA_Context_create_id(na_class_t *na_class, uint8_t id)
    HG_LABEL(NA_Context_create_id) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Context_destroy(na_class_t *na_class, na_context_t *context)
    HG_LABEL(NA_Context_destroy);
HG_PUBLIC unsigned int NA_Context_get_completion_count(const na_context_t *context)
    HG_LABEL(NA_Context_get_completion_count) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_op_id_t *NA_Op_create(na_class_t *na_class, unsigned long flags)
    HG_LABEL(NA_Op_create) HG_WARN_UNUSED_RESULT;
HG_PUBLIC void NA_Op_destroy(na_class_t *na_class, na_op_id_t *op_id) HG_LABEL(NA_Op_destroy);

/* Addresses. */
HG_PUBLIC na_return_t NA_Addr_lookup(na_class_t *na_class, const char *name, na_addr_t **addr_p)
    HG_LABEL(NA_Addr_lookup);
HG_PUBLIC void NA_Addr_free(na_class_t *na_class, na_addr_t *addr) HG_LABEL(NA_Addr_free);
HG_PUBLIC na_return_t NA_Addr_set_remove(na_class_t *na_class, na_addr_t *addr)
    HG_LABEL(NA_Addr_set_remove);
HG_PUBLIC na_return_t NA_Addr_self(na_class_t *na_class, na_addr_t **addr_p)
    HG_LABEL(NA_Addr_self);
HG_PUBLIC na_return_t NA_Addr_dup(na_class_t *na_class, na_addr_t *addr, na_addr_t **new_addr_p)
    HG_LABEL(NA_Addr_dup);
HG_PUBLIC bool NA_Addr_cmp(na_class_t *na_class, na_addr_t *addr1, na_addr_t *addr2)
    HG_LABEL(NA_Addr_cmp) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool NA_Addr_is_self(na_class_t *na_class, na_addr_t *addr)
    HG_LABEL(NA_Addr_is_self) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Addr_to_string(na_class_t *na_class, char *buf, size_t *buf_size,
    na_addr_t *addr) HG_LABEL(NA_Addr_to_string);
HG_PUBLIC size_t NA_Addr_get_serialize_size(na_class_t *na_class, na_addr_t *addr)
    HG_LABEL(NA_Addr_get_serialize_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Addr_serialize(na_class_t *na_class, void *buf, size_t buf_size,
    na_addr_t *addr) HG_LABEL(NA_Addr_serialize);
HG_PUBLIC na_return_t NA_Addr_deserialize(na_class_t *na_class, na_addr_t **addr_p, const void
    *buf, size_t buf_size, uint64_t flags) HG_LABEL(NA_Addr_deserialize);

/*
 * Messages. The bytes of a send are copied before the call returns. The buffer of a receive must
 * stay valid until its callback has run. `op_id` comes from NA_Op_create, or is NULL.
 */
HG_PUBLIC size_t NA_Msg_get_max_unexpected_size(const na_class_t *na_class)
    HG_LABEL(NA_Msg_get_max_unexpected_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC size_t NA_Msg_get_max_expected_size(const na_class_t *na_class)
    HG_LABEL(NA_Msg_get_max_expected_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC size_t NA_Msg_get_unexpected_header_size(const na_class_t *na_class)
    HG_LABEL(NA_Msg_get_unexpected_header_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC size_t NA_Msg_get_expected_header_size(const na_class_t *na_class)
    HG_LABEL(NA_Msg_get_expected_header_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_tag_t NA_Msg_get_max_tag(const na_class_t *na_class)
    HG_LABEL(NA_Msg_get_max_tag) HG_WARN_UNUSED_RESULT;
HG_PUBLIC void *NA_Msg_buf_alloc(na_class_t *na_class, size_t buf_size, unsigned long flags, void
    **plugin_data_p) HG_LABEL(NA_Msg_buf_alloc) HG_WARN_UNUSED_RESULT;
HG_PUBLIC void NA_Msg_buf_free(na_class_t *na_class, void *buf, void *plugin_data)
    HG_LABEL(NA_Msg_buf_free);
HG_PUBLIC na_return_t NA_Msg_init_unexpected(na_class_t *na_class, void *buf, size_t buf_size)
    HG_LABEL(NA_Msg_init_unexpected);
HG_PUBLIC na_return_t NA_Msg_init_expected(na_class_t *na_class, void *buf, size_t buf_size)
    HG_LABEL(NA_Msg_init_expected);
HG_PUBLIC na_return_t NA_Msg_send_unexpected(na_class_t *na_class, na_context_t *context, na_cb_t
    callback, void *arg, const void *buf, size_t buf_size, void *plugin_data, na_addr_t *dest_addr,
    uint8_t dest_id, na_tag_t tag, na_op_id_t *op_id) HG_LABEL(NA_Msg_send_unexpected);
HG_PUBLIC na_return_t NA_Msg_recv_unexpected(na_class_t *na_class, na_context_t *context, na_cb_t
    callback, void *arg, void *buf, size_t buf_size, void *plugin_data, na_op_id_t *op_id)
    HG_LABEL(NA_Msg_recv_unexpected);
HG_PUBLIC na_return_t NA_Msg_multi_recv_unexpected(na_class_t *na_class, na_context_t *context,
    na_cb_t callback, void *arg, void *buf, size_t buf_size, void *plugin_data, na_op_id_t *op_id)
    HG_LABEL(NA_Msg_multi_recv_unexpected);
HG_PUBLIC na_return_t NA_Msg_send_expected(na_class_t *na_class, na_context_t *context, na_cb_t
    callback, void *arg, const void *buf, size_t buf_size, void *plugin_data, na_addr_t *dest_addr,
    uint8_t dest_id, na_tag_t tag, na_op_id_t *op_id) HG_LABEL(NA_Msg_send_expected);
HG_PUBLIC na_return_t NA_Msg_recv_expected(na_class_t *na_class, na_context_t *context, na_cb_t
    callback, void *arg, void *buf, size_t buf_size, void *plugin_data, na_addr_t *source_addr,
    uint8_t source_id, na_tag_t tag, na_op_id_t *op_id) HG_LABEL(NA_Msg_recv_expected);

/* Memory that other processes read and write. */
HG_PUBLIC na_return_t NA_Mem_handle_create(na_class_t *na_class, void *buf, size_t buf_size,
    unsigned long flags, na_mem_handle_t **mem_handle_p) HG_LABEL(NA_Mem_handle_create);
HG_PUBLIC na_return_t NA_Mem_handle_create_segments(na_class_t *na_class, struct na_segment
    *segments, size_t segment_count, unsigned long flags, na_mem_handle_t **mem_handle_p)
    HG_LABEL(NA_Mem_handle_create_segments);
HG_PUBLIC void NA_Mem_handle_free(na_class_t *na_class, na_mem_handle_t *mem_handle)
    HG_LABEL(NA_Mem_handle_free);
HG_PUBLIC size_t NA_Mem_handle_get_max_segments(const na_class_t *na_class)
    HG_LABEL(NA_Mem_handle_get_max_segments) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Mem_register(na_class_t *na_class, na_mem_handle_t *mem_handle, enum
    na_mem_type mem_type, uint64_t device) HG_LABEL(NA_Mem_register);
HG_PUBLIC na_return_t NA_Mem_deregister(na_class_t *na_class, na_mem_handle_t *mem_handle)
    HG_LABEL(NA_Mem_deregister);
HG_PUBLIC size_t NA_Mem_handle_get_serialize_size(na_class_t *na_class, na_mem_handle_t
    *mem_handle) HG_LABEL(NA_Mem_handle_get_serialize_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Mem_handle_serialize(na_class_t *na_class, void *buf, size_t buf_size,
    na_mem_handle_t *mem_handle) HG_LABEL(NA_Mem_handle_serialize);
HG_PUBLIC na_return_t NA_Mem_handle_deserialize(na_class_t *na_class, na_mem_handle_t
    **mem_handle_p, const void *buf, size_t buf_size) HG_LABEL(NA_Mem_handle_deserialize);
HG_PUBLIC na_return_t NA_Put(na_class_t *na_class, na_context_t *context, na_cb_t callback, void
    *arg, na_mem_handle_t *local_mem_handle, na_offset_t local_offset, na_mem_handle_t
    *remote_mem_handle, na_offset_t remote_offset, size_t data_size, na_addr_t *remote_addr, uint8_t
    remote_id, na_op_id_t *op_id) HG_LABEL(NA_Put);
HG_PUBLIC na_return_t NA_Get(na_class_t *na_class, na_context_t *context, na_cb_t callback, void
    *arg, na_mem_handle_t *local_mem_handle, na_offset_t local_offset, na_mem_handle_t
    *remote_mem_handle, na_offset_t remote_offset, size_t data_size, na_addr_t *remote_addr, uint8_t
    remote_id, na_op_id_t *op_id) HG_LABEL(NA_Get);

/*
 * Progress. The file descriptor of NA_Poll_get_fd is readable when the context has work; it is
 * negative if the network must be polled. A program calls NA_Poll_try_wait before it waits for the
 * descriptor, and waits only if the call returns true.
 */
HG_PUBLIC int NA_Poll_get_fd(na_class_t *na_class, na_context_t *context)
    HG_LABEL(NA_Poll_get_fd) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool NA_Poll_try_wait(na_class_t *na_class, na_context_t *context)
    HG_LABEL(NA_Poll_try_wait) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_return_t NA_Poll(na_class_t *na_class, na_context_t *context, unsigned int *count_p)
    HG_LABEL(NA_Poll);
HG_PUBLIC na_return_t NA_Poll_wait(na_class_t *na_class, na_context_t *context, unsigned int
    timeout_ms, unsigned int *count_p) HG_LABEL(NA_Poll_wait);
HG_PUBLIC na_return_t NA_Progress(na_class_t *na_class, na_context_t *context, unsigned int
    timeout_ms) HG_LABEL(NA_Progress);
HG_PUBLIC na_return_t NA_Trigger(na_context_t *context, unsigned int max_count, unsigned int
    *actual_count) HG_LABEL(NA_Trigger);
HG_PUBLIC na_return_t NA_Cancel(na_class_t *na_class, na_context_t *context, na_op_id_t *op_id)
    HG_LABEL(NA_Cancel);

#endif /* NA_H */
