/*
 * mercury.h - Mercury 2.4: functions that run in another process.
 *
 * Link with -lmercury2. The networks are "na+sm" (processes of one host), "tcp" (processes of any
 * host), "mpi" (the ranks of the job) and "self". docs/mercury.md lists the differences from
 * Mercury.
 */
#ifndef MERCURY_H
#define MERCURY_H

#include "mercury_header.h"
#include "mercury_types.h"

#include "mercury_core.h"

#include <stdio.h>

/* Library. */
HG_PUBLIC hg_return_t HG_Version_get(unsigned int *major_p, unsigned int *minor_p, unsigned int
    *patch_p) HG_LABEL(HG_Version_get);
HG_PUBLIC const char *HG_Error_to_string(hg_return_t errnum)
    HG_LABEL(HG_Error_to_string) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Get_na_protocol_info(const char *info_string, struct na_protocol_info
    **na_protocol_info_p) HG_LABEL(HG_Get_na_protocol_info);
HG_PUBLIC void HG_Free_na_protocol_info(struct na_protocol_info *na_protocol_info)
    HG_LABEL(HG_Free_na_protocol_info);
HG_PUBLIC void HG_Set_log_level(const char *level) HG_LABEL(HG_Set_log_level);
HG_PUBLIC void HG_Set_log_subsys(const char *subsys) HG_LABEL(HG_Set_log_subsys);
HG_PUBLIC void HG_Set_log_func(int (*log_func)(FILE *stream, const char *format, ...))
    HG_LABEL(HG_Set_log_func);
HG_PUBLIC void HG_Set_log_stream(const char *level, FILE *stream) HG_LABEL(HG_Set_log_stream);
HG_PUBLIC void HG_Diag_dump_counters(void) HG_LABEL(HG_Diag_dump_counters);

/* Classes. */
HG_PUBLIC hg_class_t *HG_Init(const char *na_info_string, uint8_t na_listen)
    HG_LABEL(HG_Init) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_class_t *HG_Init_opt(const char *na_info_string, uint8_t na_listen, const struct
    hg_init_info *hg_init_info) HG_LABEL(HG_Init_opt) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_class_t *HG_Init_opt2(const char *na_info_string, uint8_t na_listen, unsigned int
    version, const struct hg_init_info *hg_init_info)
    HG_LABEL(HG_Init_opt2) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Finalize(hg_class_t *hg_class) HG_LABEL(HG_Finalize);
HG_PUBLIC void HG_Cleanup(void) HG_LABEL(HG_Cleanup);
HG_PUBLIC const char *HG_Class_get_name(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_get_name) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const char *HG_Class_get_protocol(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_get_protocol) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool HG_Class_is_listening(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_is_listening) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_size_t HG_Class_get_input_eager_size(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_get_input_eager_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_size_t HG_Class_get_output_eager_size(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_get_output_eager_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Class_set_input_offset(hg_class_t *hg_class, hg_size_t offset)
    HG_LABEL(HG_Class_set_input_offset);
HG_PUBLIC hg_return_t HG_Class_set_output_offset(hg_class_t *hg_class, hg_size_t offset)
    HG_LABEL(HG_Class_set_output_offset);
HG_PUBLIC hg_return_t HG_Class_set_data(hg_class_t *hg_class, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Class_set_data);
HG_PUBLIC void *HG_Class_get_data(const hg_class_t *hg_class)
    HG_LABEL(HG_Class_get_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Class_get_counters(const hg_class_t *hg_class, struct hg_diag_counters
    *diag_counters) HG_LABEL(HG_Class_get_counters);
HG_PUBLIC hg_return_t HG_Class_set_handle_create_callback(hg_class_t *hg_class, hg_return_t
    (*callback)(hg_handle_t, void *), void *arg) HG_LABEL(HG_Class_set_handle_create_callback);

/* Contexts. */
HG_PUBLIC hg_context_t *HG_Context_create(hg_class_t *hg_class)
    HG_LABEL(HG_Context_create) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_context_t *HG_Context_create_id(hg_class_t *hg_class, uint8_t id)
    HG_LABEL(HG_Context_create_id) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Context_destroy(hg_context_t *context) HG_LABEL(HG_Context_destroy);
HG_PUBLIC hg_return_t HG_Context_unpost(hg_context_t *context) HG_LABEL(HG_Context_unpost);
HG_PUBLIC hg_class_t *HG_Context_get_class(const hg_context_t *context)
    HG_LABEL(HG_Context_get_class) HG_WARN_UNUSED_RESULT;
HG_PUBLIC uint8_t HG_Context_get_id(const hg_context_t *context)
    HG_LABEL(HG_Context_get_id) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Context_set_data(hg_context_t *context, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Context_set_data);
HG_PUBLIC void *HG_Context_get_data(const hg_context_t *context)
    HG_LABEL(HG_Context_get_data) HG_WARN_UNUSED_RESULT;

/* Functions. */
HG_PUBLIC hg_id_t HG_Register_name(hg_class_t *hg_class, const char *func_name, hg_proc_cb_t
    in_proc_cb, hg_proc_cb_t out_proc_cb, hg_rpc_cb_t rpc_cb) HG_LABEL(HG_Register_name);
HG_PUBLIC hg_return_t HG_Registered_name(hg_class_t *hg_class, const char *func_name, hg_id_t
    *id_p, uint8_t *flag_p) HG_LABEL(HG_Registered_name);
HG_PUBLIC hg_return_t HG_Register(hg_class_t *hg_class, hg_id_t id, hg_proc_cb_t in_proc_cb,
    hg_proc_cb_t out_proc_cb, hg_rpc_cb_t rpc_cb) HG_LABEL(HG_Register);
HG_PUBLIC hg_return_t HG_Deregister(hg_class_t *hg_class, hg_id_t id) HG_LABEL(HG_Deregister);
HG_PUBLIC hg_return_t HG_Registered(hg_class_t *hg_class, hg_id_t id, uint8_t *flag_p)
    HG_LABEL(HG_Registered);
HG_PUBLIC hg_return_t HG_Registered_proc_cb(hg_class_t *hg_class, hg_id_t id, uint8_t *flag_p,
    hg_proc_cb_t *in_proc_cb_p, hg_proc_cb_t *out_proc_cb_p) HG_LABEL(HG_Registered_proc_cb);
HG_PUBLIC hg_return_t HG_Register_data(hg_class_t *hg_class, hg_id_t id, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Register_data);
HG_PUBLIC void *HG_Registered_data(hg_class_t *hg_class, hg_id_t id)
    HG_LABEL(HG_Registered_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Registered_disable_response(hg_class_t *hg_class, hg_id_t id, uint8_t
    disable) HG_LABEL(HG_Registered_disable_response);
HG_PUBLIC hg_return_t HG_Registered_disabled_response(hg_class_t *hg_class, hg_id_t id, uint8_t
    *disabled_p) HG_LABEL(HG_Registered_disabled_response);

/* Addresses. */
HG_PUBLIC hg_return_t HG_Addr_lookup1(hg_context_t *context, hg_cb_t callback, void *arg, const
    char *name, hg_op_id_t *op_id_p) HG_LABEL(HG_Addr_lookup1);
#ifndef HG_Addr_lookup
#define HG_Addr_lookup HG_Addr_lookup1
#endif
HG_PUBLIC hg_return_t HG_Addr_lookup2(hg_class_t *hg_class, const char *name, hg_addr_t *addr_p)
    HG_LABEL(HG_Addr_lookup2);
HG_PUBLIC hg_return_t HG_Addr_free(hg_class_t *hg_class, hg_addr_t addr) HG_LABEL(HG_Addr_free);
HG_PUBLIC hg_return_t HG_Addr_set_remove(hg_class_t *hg_class, hg_addr_t addr)
    HG_LABEL(HG_Addr_set_remove);
HG_PUBLIC hg_return_t HG_Addr_self(hg_class_t *hg_class, hg_addr_t *addr_p)
    HG_LABEL(HG_Addr_self);
HG_PUBLIC hg_return_t HG_Addr_dup(hg_class_t *hg_class, hg_addr_t addr, hg_addr_t *new_addr_p)
    HG_LABEL(HG_Addr_dup);
HG_PUBLIC uint8_t HG_Addr_cmp(hg_class_t *hg_class, hg_addr_t addr1, hg_addr_t addr2)
    HG_LABEL(HG_Addr_cmp) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Addr_to_string(hg_class_t *hg_class, char *buf, hg_size_t *buf_size_p,
    hg_addr_t addr) HG_LABEL(HG_Addr_to_string);

/* Handles. */
HG_PUBLIC hg_return_t HG_Create(hg_context_t *context, hg_addr_t addr, hg_id_t id, hg_handle_t
    *handle_p) HG_LABEL(HG_Create);
HG_PUBLIC hg_return_t HG_Destroy(hg_handle_t handle) HG_LABEL(HG_Destroy);
HG_PUBLIC hg_return_t HG_Reset(hg_handle_t handle, hg_addr_t addr, hg_id_t id)
    HG_LABEL(HG_Reset);
HG_PUBLIC hg_return_t HG_Ref_incr(hg_handle_t handle) HG_LABEL(HG_Ref_incr);
HG_PUBLIC int32_t HG_Ref_get(hg_handle_t handle) HG_LABEL(HG_Ref_get) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const struct hg_info *HG_Get_info(hg_handle_t handle)
    HG_LABEL(HG_Get_info) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Set_data(hg_handle_t handle, void *data, void (*free_callback)(void *))
    HG_LABEL(HG_Set_data);
HG_PUBLIC void *HG_Get_data(hg_handle_t handle) HG_LABEL(HG_Get_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Set_target_id(hg_handle_t handle, uint8_t id)
    HG_LABEL(HG_Set_target_id);

/* Inputs and outputs. */
HG_PUBLIC hg_size_t HG_Get_input_payload_size(hg_handle_t handle)
    HG_LABEL(HG_Get_input_payload_size);
HG_PUBLIC hg_return_t HG_Get_input(hg_handle_t handle, void *in_struct) HG_LABEL(HG_Get_input);
HG_PUBLIC hg_return_t HG_Free_input(hg_handle_t handle, void *in_struct)
    HG_LABEL(HG_Free_input);
HG_PUBLIC hg_size_t HG_Get_output_payload_size(hg_handle_t handle)
    HG_LABEL(HG_Get_output_payload_size);
HG_PUBLIC hg_return_t HG_Get_output(hg_handle_t handle, void *out_struct)
    HG_LABEL(HG_Get_output);
HG_PUBLIC hg_return_t HG_Free_output(hg_handle_t handle, void *out_struct)
    HG_LABEL(HG_Free_output);
HG_PUBLIC hg_return_t HG_Get_input_buf(hg_handle_t handle, void **in_buf_p, hg_size_t
    *in_buf_size_p) HG_LABEL(HG_Get_input_buf);
HG_PUBLIC hg_return_t HG_Release_input_buf(hg_handle_t handle) HG_LABEL(HG_Release_input_buf);
HG_PUBLIC hg_return_t HG_Get_output_buf(hg_handle_t handle, void **out_buf_p, hg_size_t
    *out_buf_size_p) HG_LABEL(HG_Get_output_buf);
HG_PUBLIC hg_return_t HG_Get_input_extra_buf(hg_handle_t handle, void **in_buf_p, hg_size_t
    *in_buf_size_p) HG_LABEL(HG_Get_input_extra_buf);
HG_PUBLIC hg_return_t HG_Get_output_extra_buf(hg_handle_t handle, void **out_buf_p, hg_size_t
    *out_buf_size_p) HG_LABEL(HG_Get_output_extra_buf);

/* Calls. */
HG_PUBLIC hg_return_t HG_Forward(hg_handle_t handle, hg_cb_t callback, void *arg, void
    *in_struct) HG_LABEL(HG_Forward);
HG_PUBLIC hg_return_t HG_Respond(hg_handle_t handle, hg_cb_t callback, void *arg, void
    *out_struct) HG_LABEL(HG_Respond);
HG_PUBLIC hg_return_t HG_Cancel(hg_handle_t handle) HG_LABEL(HG_Cancel);

/* Progress. */
HG_PUBLIC hg_return_t HG_Progress(hg_context_t *context, unsigned int timeout)
    HG_LABEL(HG_Progress);
HG_PUBLIC hg_return_t HG_Trigger(hg_context_t *context, unsigned int timeout, unsigned int
    max_count, unsigned int *actual_count_p) HG_LABEL(HG_Trigger);
HG_PUBLIC int HG_Event_get_wait_fd(const hg_context_t *context)
    HG_LABEL(HG_Event_get_wait_fd) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool HG_Event_ready(hg_context_t *context)
    HG_LABEL(HG_Event_ready) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Event_progress(hg_context_t *context, unsigned int *count_p)
    HG_LABEL(HG_Event_progress);
HG_PUBLIC hg_return_t HG_Event_trigger(hg_context_t *context, unsigned int max_count, unsigned
    int *actual_count_p) HG_LABEL(HG_Event_trigger);

#endif /* MERCURY_H */
