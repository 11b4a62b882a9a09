/*
 * mercury.h - function shipping: calls that run on another rank. Link with -lmercury.
 *
 * The calls of 2013 come first. There is one class for the process, made by HG_Init over
 * a network class. Those of today's Mercury follow where their names do not clash.
 *
 * Inputs and outputs may have any length: what does not fit a message is pulled by the
 * other side. An error at the server (a function that is not registered, an input that
 * cannot be decoded, a handler that fails) is what HG_Wait returns at the client.
 * Null and freed handles are HG_INVALID_ARG; docs/errors-mercury.md lists what each call
 * refuses.
 */
#ifndef MERCURY_H
#define MERCURY_H

#include "na.h"
#include "mercury_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the statuses of several requests are not wanted. */
#define HG_STATUSES_IGNORE ((hg_status_t *)0)

/* Calls HG_Bulk_init with the same class, unless that was called before. */
HG_EXPORT hg_return_t HG_Init(na_class_t *na_class);

HG_EXPORT hg_return_t HG_Finalize(void);

/* Whether HG_Init was called, and with which class (may be NULL). */
HG_EXPORT hg_return_t HG_Initialized(hg_bool_t *flag, na_class_t **na_class);

/* The same name has the same number everywhere; rpc_cb may be NULL on a client. 0 where
 * that fails, as for a name whose number another name has. */
HG_EXPORT hg_id_t HG_Register(const char *func_name, hg_proc_cb_t in_proc_cb,
                              hg_proc_cb_t out_proc_cb, hg_rpc_cb_t rpc_cb);

HG_EXPORT hg_return_t HG_Registered(const char *func_name, hg_bool_t *flag, hg_id_t *id);

/* Where addr is this process's own, the call runs at once, here. out_struct is filled
 * by HG_Wait. */
HG_EXPORT hg_return_t HG_Forward(na_addr_t addr, hg_id_t id, void *in_struct, void *out_struct,
                                 hg_request_t *request);

/* The status says whether the call has ended. Calls of others that come meanwhile are
 * run, as by HG_Handler_process. */
HG_EXPORT hg_return_t HG_Wait(hg_request_t request, unsigned int timeout, hg_status_t *status);

HG_EXPORT hg_return_t HG_Wait_all(int count, hg_request_t array_of_requests[],
                                  unsigned int timeout, hg_status_t array_of_statuses[]);

/* Frees what decoding the output has allocated. A call that has not ended is cancelled. */
HG_EXPORT hg_return_t HG_Request_free(hg_request_t request);

/* Name and meaning of a code. */
HG_EXPORT const char *HG_Error_to_string(hg_return_t errnum);

HG_EXPORT hg_return_t HG_Version_get(unsigned int *major, unsigned int *minor,
                                     unsigned int *patch);

/* ------------------------------------------------------------------ today's calls */

typedef struct hg_context hg_context_t;
typedef na_addr_t hg_addr_t;
typedef na_op_id_t hg_op_id_t;

#define HG_ADDR_NULL ((hg_addr_t)0)
#define HG_OP_ID_NULL ((hg_op_id_t)0)
#define HG_OP_ID_IGNORE ((hg_op_id_t *)1)

/* What a handle is for. */
struct hg_info {
  hg_class_t *hg_class;
  hg_context_t *context;
  hg_addr_t addr; /* freed with the handle */
  hg_uint8_t context_id;
  hg_id_t id;
};

/* What a class is made with; zeros choose defaults. */
struct hg_init_info {
  na_class_t *na_class;  /* a network to use instead of one of its own */
  const char *checksum;  /* crc64, crc32c, crc16, adler32, none */
};

#define HG_INIT_INFO_INITIALIZER { NULL, NULL }

typedef enum hg_cb_type { HG_CB_LOOKUP, HG_CB_FORWARD, HG_CB_RESPOND, HG_CB_BULK } hg_cb_type_t;

/* hg_bulk_op_t of mercury_bulk.h. */
typedef enum hg_bulk_op {
  HG_BULK_PUSH, /* to the origin */
  HG_BULK_PULL  /* from the origin */
} hg_bulk_op_t;

struct hg_cb_info_lookup {
  hg_addr_t addr; /* to be freed by HG_Addr_free */
};

struct hg_cb_info_forward {
  hg_handle_t handle;
};

struct hg_cb_info_respond {
  hg_handle_t handle;
};

struct hg_cb_info_bulk {
  hg_bulk_t origin_handle;
  hg_bulk_t local_handle;
  hg_bulk_op_t op;
  hg_size_t size;
};

struct hg_cb_info {
  void *arg;
  hg_return_t ret;
  hg_cb_type_t type;
  union {
    struct hg_cb_info_lookup lookup;
    struct hg_cb_info_forward forward;
    struct hg_cb_info_respond respond;
    struct hg_cb_info_bulk bulk;
  } info;
};

typedef hg_return_t (*hg_cb_t)(const struct hg_cb_info *callback_info);

/* HG_Init(info, listen) of today; options may be NULL. NULL where that fails. */
HG_EXPORT hg_class_t *HG_Init_opt(const char *na_info_string, hg_bool_t na_listen,
                                  const struct hg_init_info *hg_init_info);
/* HG_Finalize(class) of today. */
HG_EXPORT hg_return_t HG_Class_finalize(hg_class_t *hg_class);

HG_EXPORT hg_context_t *HG_Context_create(hg_class_t *hg_class);
/* Cancels what is under way and runs its callbacks; HG_BUSY in a callback of the context. */
HG_EXPORT hg_return_t HG_Context_destroy(hg_context_t *context);
HG_EXPORT hg_class_t *HG_Context_get_class(hg_context_t *context);

/* Calls of others, and callbacks, run in HG_Trigger and nowhere else. */
HG_EXPORT hg_return_t HG_Progress(hg_context_t *context, unsigned int timeout);
HG_EXPORT hg_return_t HG_Trigger(hg_context_t *context, unsigned int timeout,
                                 unsigned int max_count, unsigned int *actual_count);

HG_EXPORT hg_id_t HG_Register_name(hg_class_t *hg_class, const char *func_name,
                                   hg_proc_cb_t in_proc_cb, hg_proc_cb_t out_proc_cb,
                                   hg_rpc_cb_t rpc_cb);
HG_EXPORT hg_return_t HG_Registered_name(hg_class_t *hg_class, const char *func_name, hg_id_t *id,
                                         hg_bool_t *flag);
HG_EXPORT hg_return_t HG_Deregister(hg_class_t *hg_class, hg_id_t id);
HG_EXPORT hg_return_t HG_Register_data(hg_class_t *hg_class, hg_id_t id, void *data,
                                       void (*free_callback)(void *));
HG_EXPORT void *HG_Registered_data(hg_class_t *hg_class, hg_id_t id);
/* Calls of the function have no answer: they end when they have left. */
HG_EXPORT hg_return_t HG_Registered_disable_response(hg_class_t *hg_class, hg_id_t id,
                                                     hg_bool_t disable);

HG_EXPORT hg_return_t HG_Addr_lookup1(hg_context_t *context, hg_cb_t callback, void *arg,
                                      const char *name, hg_op_id_t *op_id);
HG_EXPORT hg_return_t HG_Addr_lookup2(hg_class_t *hg_class, const char *name, hg_addr_t *addr);
HG_EXPORT hg_return_t HG_Addr_free(hg_class_t *hg_class, hg_addr_t addr);
HG_EXPORT hg_return_t HG_Addr_self(hg_class_t *hg_class, hg_addr_t *addr);
HG_EXPORT hg_return_t HG_Addr_dup(hg_class_t *hg_class, hg_addr_t addr, hg_addr_t *new_addr);
HG_EXPORT hg_bool_t HG_Addr_cmp(hg_class_t *hg_class, hg_addr_t addr1, hg_addr_t addr2);
/* Without a buffer, *buf_size is what is needed. */
HG_EXPORT hg_return_t HG_Addr_to_string(hg_class_t *hg_class, char *buf, hg_size_t *buf_size,
                                        hg_addr_t addr);

/* A handle is made once and forwarded as often as one likes, one call at a time. A null
 * address and id 0 are told later, by HG_Reset. Destroyed while its call is under way, it
 * stays until the callback has run. */
HG_EXPORT hg_return_t HG_Create(hg_context_t *context, hg_addr_t addr, hg_id_t id,
                                hg_handle_t *handle);
HG_EXPORT hg_return_t HG_Destroy(hg_handle_t handle);
HG_EXPORT hg_return_t HG_Reset(hg_handle_t handle, hg_addr_t addr, hg_id_t id);
HG_EXPORT hg_return_t HG_Ref_incr(hg_handle_t handle);
HG_EXPORT hg_int32_t HG_Ref_get(hg_handle_t handle);
HG_EXPORT const struct hg_info *HG_Get_info(hg_handle_t handle);
HG_EXPORT hg_return_t HG_Set_data(hg_handle_t handle, void *data, void (*free_callback)(void *));
HG_EXPORT void *HG_Get_data(hg_handle_t handle);

HG_EXPORT hg_return_t HG_Get_input(hg_handle_t handle, void *in_struct);
HG_EXPORT hg_return_t HG_Free_input(hg_handle_t handle, void *in_struct);
HG_EXPORT hg_return_t HG_Get_output(hg_handle_t handle, void *out_struct);
HG_EXPORT hg_return_t HG_Free_output(hg_handle_t handle, void *out_struct);

/* HG_Forward(handle, ...) of today. */
HG_EXPORT hg_return_t HG_Forward_handle(hg_handle_t handle, hg_cb_t callback, void *arg,
                                        void *in_struct);
HG_EXPORT hg_return_t HG_Respond(hg_handle_t handle, hg_cb_t callback, void *arg,
                                 void *out_struct);
/* The callback gets HG_CANCELED; the server may run the call all the same. */
HG_EXPORT hg_return_t HG_Cancel(hg_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_H */
