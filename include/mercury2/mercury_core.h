/*
 * mercury_core.h - the lower layer of Mercury 2.4: calls of functions with encoded bytes.
 *
 * At the origin, HG_Core_get_input returns the buffer for the encoded input, and HG_Core_forward
 * sends the given number of bytes of it. At the target, HG_Core_get_input returns the input that
 * has arrived. HG_Core_get_output and HG_Core_respond do the same for the response. Classes,
 * contexts, addresses and handles are the same objects in both layers.
 *
 * If a message was sent with HG_CORE_MORE_DATA, its receiver first runs more_data_acquire_callback.
 * This callback gets the rest of the data, for example by a bulk transfer. When it has the data, it
 * or another thread calls done_callback. more_data_release_callback runs before the handle is freed
 * or used again.
 */
#ifndef MERCURY_CORE_H
#define MERCURY_CORE_H

#include "mercury_core_header.h"
#include "mercury_core_types.h"

typedef struct hg_core_class hg_core_class_t;
typedef struct hg_core_context hg_core_context_t;
typedef struct hg_core_addr *hg_core_addr_t;
typedef struct hg_core_handle *hg_core_handle_t;
typedef struct hg_core_op_id *hg_core_op_id_t;

struct hg_core_info {
  hg_core_class_t *core_class;
  hg_core_context_t *context;
  hg_core_addr_t addr;
  hg_id_t id;
  uint8_t context_id;
};

struct hg_core_cb_info_lookup {
  hg_core_addr_t addr;
};

struct hg_core_cb_info_forward {
  hg_core_handle_t handle;
};

struct hg_core_cb_info_respond {
  hg_core_handle_t handle;
};

struct hg_core_cb_info {
  union {
    struct hg_core_cb_info_lookup lookup;
    struct hg_core_cb_info_forward forward;
    struct hg_core_cb_info_respond respond;
  } info;
  void *arg;
  hg_cb_type_t type;
  hg_return_t ret;
};

typedef hg_return_t (*hg_core_rpc_cb_t)(hg_core_handle_t handle);
typedef hg_return_t (*hg_core_cb_t)(const struct hg_core_cb_info *callback_info);

#define HG_CORE_ADDR_NULL ((hg_core_addr_t)0)
#define HG_CORE_HANDLE_NULL ((hg_core_handle_t)0)
#define HG_CORE_OP_ID_NULL ((hg_core_op_id_t)0)
#define HG_CORE_OP_ID_IGNORE ((hg_core_op_id_t *)1)

#define HG_CORE_MORE_DATA (1 << 0)

/* Classes. */
HG_PUBLIC hg_return_t HG_Core_get_na_protocol_info(const char *info_string, struct
    na_protocol_info **na_protocol_info_p) HG_LABEL(HG_Core_get_na_protocol_info);
HG_PUBLIC void HG_Core_free_na_protocol_info(struct na_protocol_info *na_protocol_info)
    HG_LABEL(HG_Core_free_na_protocol_info);
HG_PUBLIC hg_core_class_t *HG_Core_init(const char *na_info_string, uint8_t na_listen)
    HG_LABEL(HG_Core_init) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_core_class_t *HG_Core_init_opt(const char *na_info_string, uint8_t na_listen, const
    struct hg_init_info *hg_init_info) HG_LABEL(HG_Core_init_opt) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_core_class_t *HG_Core_init_opt2(const char *na_info_string, uint8_t na_listen,
    unsigned int version, const struct hg_init_info *hg_init_info)
    HG_LABEL(HG_Core_init_opt2) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_finalize(hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_finalize);
HG_PUBLIC void HG_Core_cleanup(void) HG_LABEL(HG_Core_cleanup);
HG_PUBLIC hg_return_t HG_Core_set_more_data_callback(hg_core_class_t *hg_core_class, hg_return_t
    (*more_data_acquire_callback)(hg_core_handle_t, hg_op_t, void
    (*done_callback)(hg_core_handle_t, hg_return_t)), void
    (*more_data_release_callback)(hg_core_handle_t)) HG_LABEL(HG_Core_set_more_data_callback);
HG_PUBLIC const char *HG_Core_class_get_name(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_name) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const char *HG_Core_class_get_protocol(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_protocol) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool HG_Core_class_is_listening(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_is_listening) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_class_t *HG_Core_class_get_na(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_na) HG_WARN_UNUSED_RESULT;
/* NULL, here and below: shared memory between processes over tcp is internal to the library. */
static HG_INLINE HG_WARN_UNUSED_RESULT na_class_t *
HG_Core_class_get_na_sm(const hg_core_class_t *hg_core_class)
{
  (void)hg_core_class;
  return NULL;
}
HG_PUBLIC hg_size_t HG_Core_class_get_input_eager_size(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_input_eager_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_size_t HG_Core_class_get_output_eager_size(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_output_eager_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_class_set_data(hg_core_class_t *hg_core_class, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Core_class_set_data);
HG_PUBLIC void *HG_Core_class_get_data(const hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_class_get_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_class_get_counters(const hg_core_class_t *hg_core_class, struct
    hg_diag_counters *diag_counters) HG_LABEL(HG_Core_class_get_counters);

/* Contexts. A context accepts calls of other processes after HG_Core_context_post. */
HG_PUBLIC hg_core_context_t *HG_Core_context_create(hg_core_class_t *hg_core_class)
    HG_LABEL(HG_Core_context_create) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_core_context_t *HG_Core_context_create_id(hg_core_class_t *hg_core_class, uint8_t
    id) HG_LABEL(HG_Core_context_create_id) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_context_destroy(hg_core_context_t *context)
    HG_LABEL(HG_Core_context_destroy);
HG_PUBLIC hg_core_class_t *HG_Core_context_get_class(const hg_core_context_t *context)
    HG_LABEL(HG_Core_context_get_class) HG_WARN_UNUSED_RESULT;
HG_PUBLIC na_context_t *HG_Core_context_get_na(const hg_core_context_t *context)
    HG_LABEL(HG_Core_context_get_na) HG_WARN_UNUSED_RESULT;
static HG_INLINE HG_WARN_UNUSED_RESULT na_context_t *
HG_Core_context_get_na_sm(const hg_core_context_t *context)
{
  (void)context;
  return NULL;
}
HG_PUBLIC uint8_t HG_Core_context_get_id(const hg_core_context_t *context)
    HG_LABEL(HG_Core_context_get_id) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_context_set_data(hg_core_context_t *context, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Core_context_set_data);
HG_PUBLIC void *HG_Core_context_get_data(const hg_core_context_t *context)
    HG_LABEL(HG_Core_context_get_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC unsigned int HG_Core_context_get_completion_count(const hg_core_context_t *context)
    HG_LABEL(HG_Core_context_get_completion_count) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_context_set_handle_create_callback(hg_core_context_t *context,
    hg_return_t (*callback)(hg_core_handle_t, void *), void *arg)
    HG_LABEL(HG_Core_context_set_handle_create_callback);
HG_PUBLIC hg_return_t HG_Core_context_post(hg_core_context_t *context)
    HG_LABEL(HG_Core_context_post);
HG_PUBLIC hg_return_t HG_Core_context_unpost(hg_core_context_t *context)
    HG_LABEL(HG_Core_context_unpost);

/* Functions. */
HG_PUBLIC hg_return_t HG_Core_register(hg_core_class_t *hg_core_class, hg_id_t id,
    hg_core_rpc_cb_t rpc_cb) HG_LABEL(HG_Core_register);
HG_PUBLIC hg_return_t HG_Core_deregister(hg_core_class_t *hg_core_class, hg_id_t id)
    HG_LABEL(HG_Core_deregister);
HG_PUBLIC hg_return_t HG_Core_registered(hg_core_class_t *hg_core_class, hg_id_t id, uint8_t
    *flag_p) HG_LABEL(HG_Core_registered);
HG_PUBLIC hg_return_t HG_Core_register_data(hg_core_class_t *hg_core_class, hg_id_t id, void
    *data, void (*free_callback)(void *)) HG_LABEL(HG_Core_register_data);
HG_PUBLIC void *HG_Core_registered_data(hg_core_class_t *hg_core_class, hg_id_t id)
    HG_LABEL(HG_Core_registered_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_registered_disable_response(hg_core_class_t *hg_core_class,
    hg_id_t id, uint8_t disable) HG_LABEL(HG_Core_registered_disable_response);
HG_PUBLIC hg_return_t HG_Core_registered_disabled_response(hg_core_class_t *hg_core_class,
    hg_id_t id, uint8_t *disabled_p) HG_LABEL(HG_Core_registered_disabled_response);

/* Addresses. */
HG_PUBLIC hg_return_t HG_Core_addr_lookup1(hg_core_context_t *context, hg_core_cb_t callback,
    void *arg, const char *name, hg_core_op_id_t *op_id) HG_LABEL(HG_Core_addr_lookup1);
HG_PUBLIC hg_return_t HG_Core_addr_lookup2(hg_core_class_t *hg_core_class, const char *name,
    hg_core_addr_t *addr_p) HG_LABEL(HG_Core_addr_lookup2);
HG_PUBLIC hg_return_t HG_Core_addr_free(hg_core_addr_t addr) HG_LABEL(HG_Core_addr_free);
HG_PUBLIC hg_return_t HG_Core_addr_set_remove(hg_core_addr_t addr)
    HG_LABEL(HG_Core_addr_set_remove);
HG_PUBLIC na_addr_t *HG_Core_addr_get_na(hg_core_addr_t addr)
    HG_LABEL(HG_Core_addr_get_na) HG_WARN_UNUSED_RESULT;
static HG_INLINE HG_WARN_UNUSED_RESULT na_addr_t *HG_Core_addr_get_na_sm(hg_core_addr_t addr)
{
  (void)addr;
  return NULL;
}
HG_PUBLIC hg_return_t HG_Core_addr_self(hg_core_class_t *hg_core_class, hg_core_addr_t *addr_p)
    HG_LABEL(HG_Core_addr_self);
HG_PUBLIC hg_return_t HG_Core_addr_dup(hg_core_addr_t addr, hg_core_addr_t *new_addr_p)
    HG_LABEL(HG_Core_addr_dup);
HG_PUBLIC uint8_t HG_Core_addr_cmp(hg_core_addr_t addr1, hg_core_addr_t addr2)
    HG_LABEL(HG_Core_addr_cmp) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool HG_Core_addr_is_self(hg_core_addr_t addr)
    HG_LABEL(HG_Core_addr_is_self) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_addr_to_string(char *buf, hg_size_t *buf_size, hg_core_addr_t
    addr) HG_LABEL(HG_Core_addr_to_string);
HG_PUBLIC hg_size_t HG_Core_addr_get_serialize_size(hg_core_addr_t addr, unsigned long flags)
    HG_LABEL(HG_Core_addr_get_serialize_size) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_addr_serialize(void *buf, hg_size_t buf_size, unsigned long flags,
    hg_core_addr_t addr) HG_LABEL(HG_Core_addr_serialize);
HG_PUBLIC hg_return_t HG_Core_addr_deserialize(hg_core_class_t *hg_core_class, hg_core_addr_t
    *addr_p, const void *buf, hg_size_t buf_size, uint64_t flags)
    HG_LABEL(HG_Core_addr_deserialize);

/* Handles. */
HG_PUBLIC hg_return_t HG_Core_create(hg_core_context_t *context, hg_core_addr_t addr, hg_id_t
    id, hg_core_handle_t *handle_p) HG_LABEL(HG_Core_create);
HG_PUBLIC hg_return_t HG_Core_destroy(hg_core_handle_t handle) HG_LABEL(HG_Core_destroy);
HG_PUBLIC hg_return_t HG_Core_reset(hg_core_handle_t handle, hg_core_addr_t addr, hg_id_t id)
    HG_LABEL(HG_Core_reset);
HG_PUBLIC hg_return_t HG_Core_ref_incr(hg_core_handle_t handle) HG_LABEL(HG_Core_ref_incr);
HG_PUBLIC int32_t HG_Core_ref_get(hg_core_handle_t handle)
    HG_LABEL(HG_Core_ref_get) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_set_data(hg_core_handle_t handle, void *data, void
    (*free_callback)(void *)) HG_LABEL(HG_Core_set_data);
HG_PUBLIC void *HG_Core_get_data(hg_core_handle_t handle)
    HG_LABEL(HG_Core_get_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const struct hg_core_info *HG_Core_get_info(hg_core_handle_t handle)
    HG_LABEL(HG_Core_get_info) HG_WARN_UNUSED_RESULT;
HG_PUBLIC const void *HG_Core_get_rpc_data(hg_core_handle_t handle)
    HG_LABEL(HG_Core_get_rpc_data) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_set_target_id(hg_core_handle_t handle, uint8_t id)
    HG_LABEL(HG_Core_set_target_id);
HG_PUBLIC size_t HG_Core_get_input_payload_size(hg_core_handle_t handle)
    HG_LABEL(HG_Core_get_input_payload_size);
HG_PUBLIC hg_return_t HG_Core_get_input(hg_core_handle_t handle, void **in_buf_p, hg_size_t
    *in_buf_size_p) HG_LABEL(HG_Core_get_input);
HG_PUBLIC hg_return_t HG_Core_release_input(hg_core_handle_t handle)
    HG_LABEL(HG_Core_release_input);
HG_PUBLIC size_t HG_Core_get_output_payload_size(hg_core_handle_t handle)
    HG_LABEL(HG_Core_get_output_payload_size);
HG_PUBLIC hg_return_t HG_Core_get_output(hg_core_handle_t handle, void **out_buf_p, hg_size_t
    *out_buf_size_p) HG_LABEL(HG_Core_get_output);
HG_PUBLIC hg_return_t HG_Core_forward(hg_core_handle_t handle, hg_core_cb_t callback, void *arg,
    uint8_t flags, hg_size_t payload_size) HG_LABEL(HG_Core_forward);
HG_PUBLIC hg_return_t HG_Core_respond(hg_core_handle_t handle, hg_core_cb_t callback, void *arg,
    uint8_t flags, hg_size_t payload_size) HG_LABEL(HG_Core_respond);
HG_PUBLIC hg_return_t HG_Core_cancel(hg_core_handle_t handle) HG_LABEL(HG_Core_cancel);

/* Progress. */
HG_PUBLIC hg_return_t HG_Core_progress(hg_core_context_t *context, unsigned int timeout)
    HG_LABEL(HG_Core_progress);
HG_PUBLIC hg_return_t HG_Core_trigger(hg_core_context_t *context, unsigned int timeout, unsigned
    int max_count, unsigned int *actual_count_p) HG_LABEL(HG_Core_trigger);
HG_PUBLIC int HG_Core_event_get_wait_fd(const hg_core_context_t *context)
    HG_LABEL(HG_Core_event_get_wait_fd) HG_WARN_UNUSED_RESULT;
HG_PUBLIC bool HG_Core_event_ready(hg_core_context_t *context)
    HG_LABEL(HG_Core_event_ready) HG_WARN_UNUSED_RESULT;
HG_PUBLIC hg_return_t HG_Core_event_progress(hg_core_context_t *context, unsigned int *count_p)
    HG_LABEL(HG_Core_event_progress);
HG_PUBLIC hg_return_t HG_Core_event_trigger(hg_core_context_t *context, unsigned int max_count,
    unsigned int *actual_count_p) HG_LABEL(HG_Core_event_trigger);

#endif /* MERCURY_CORE_H */
