/*
 * mercury.h - function shipping: calls that run on another rank. Link with -lmercury.
 *
 * The first part is the interface of 2013. A process has one class, which HG_Init creates over a
 * network class. The second part contains the calls of current Mercury whose names do not clash
 * with it.
 *
 * Inputs and outputs may have any length: if one does not fit in a message, the receiver pulls it.
 * If the server fails (the function is not registered, the input cannot be decoded, or the handler
 * fails), HG_Wait returns that error at the client. A null or freed handle is HG_INVALID_ARG, but
 * HG_Destroy, HG_Addr_free, HG_Bulk_free and HG_Bulk_handle_free accept NULL.
 * docs/errors-mercury.md lists the errors of each call.
 */
#ifndef MERCURY_H
#define MERCURY_H

#include "na.h"
#include "mercury_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Passed to HG_Wait_all to ignore the statuses. */
#define HG_STATUSES_IGNORE ((hg_status_t *)0)

/*
 * Initialises Mercury over a network class. Also calls HG_Bulk_init with the same class, unless it
 * was called before.
 */
HG_EXPORT hg_return_t HG_Init(na_class_t *na_class);

HG_EXPORT hg_return_t HG_Finalize(void);

/* Reports whether HG_Init was called, and with which class. na_class may be NULL. */
HG_EXPORT hg_return_t HG_Initialized(hg_bool_t *flag, na_class_t **na_class);

/*
 * Registers a function and returns its number. A name has the same number in every process. rpc_cb
 * may be NULL on a client. Returns 0 on failure, for example if another name has the same number.
 */
HG_EXPORT hg_id_t HG_Register(const char *func_name, hg_proc_cb_t in_proc_cb,
                              hg_proc_cb_t out_proc_cb, hg_rpc_cb_t rpc_cb);

HG_EXPORT hg_return_t HG_Registered(const char *func_name, hg_bool_t *flag, hg_id_t *id);

/*
 * Forwards a call. If addr is this process's own address, the call runs here before HG_Forward
 * returns. HG_Wait fills out_struct.
 */
HG_EXPORT hg_return_t HG_Forward(na_addr_t addr, hg_id_t id, void *in_struct, void *out_struct,
                                 hg_request_t *request);

/*
 * Waits for a call. The status says whether the call has ended. Without a status, the code
 * HG_TIMEOUT says that it has not. Meanwhile runs calls that arrive from other processes, as
 * HG_Handler_process does.
 */
HG_EXPORT hg_return_t HG_Wait(hg_request_t request, unsigned int timeout, hg_status_t *status);

HG_EXPORT hg_return_t HG_Wait_all(int count, hg_request_t array_of_requests[],
                                  unsigned int timeout, hg_status_t array_of_statuses[]);

/*
 * Frees a request and the memory that decoding the output allocated. Cancels a call that has not
 * ended.
 */
HG_EXPORT hg_return_t HG_Request_free(hg_request_t request);

/* Returns the name and the meaning of a code. */
HG_EXPORT const char *HG_Error_to_string(hg_return_t errnum);

HG_EXPORT hg_return_t HG_Version_get(unsigned int *major, unsigned int *minor,
                                     unsigned int *patch);

/* ------------------------------------------------------------------ current Mercury */

typedef struct hg_context hg_context_t;
typedef na_addr_t hg_addr_t;
typedef na_op_id_t hg_op_id_t;

#define HG_ADDR_NULL ((hg_addr_t)0)
#define HG_OP_ID_NULL ((hg_op_id_t)0)
#define HG_OP_ID_IGNORE ((hg_op_id_t *)1)

/* The properties of a handle. */
struct hg_info {
  hg_class_t *hg_class;
  hg_context_t *context;
  hg_addr_t addr; /* freed with the handle */
  hg_uint8_t context_id;
  hg_id_t id;
};

/* Options of a class. Zeros select the defaults. */
struct hg_init_info {
  na_class_t *na_class;  /* a network to use instead of creating one */
  const char *checksum;  /* crc64, crc32c, crc16, adler32 or none; NULL selects
                            PORTOLAN_RPC_CHECKSUM */
};

#define HG_INIT_INFO_INITIALIZER { NULL, NULL }

typedef enum hg_cb_type { HG_CB_LOOKUP, HG_CB_FORWARD, HG_CB_RESPOND, HG_CB_BULK } hg_cb_type_t;

/* The hg_bulk_op_t of mercury_bulk.h. */
typedef enum hg_bulk_op {
  HG_BULK_PUSH, /* to the origin */
  HG_BULK_PULL  /* from the origin */
} hg_bulk_op_t;

struct hg_cb_info_lookup {
  hg_addr_t addr; /* free with HG_Addr_free */
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

/* HG_Init(info, listen) of current Mercury. The options may be NULL. Returns NULL on failure. */
HG_EXPORT hg_class_t *HG_Init_opt(const char *na_info_string, hg_bool_t na_listen,
                                  const struct hg_init_info *hg_init_info);
/* HG_Finalize(class) of current Mercury. */
HG_EXPORT hg_return_t HG_Class_finalize(hg_class_t *hg_class);

HG_EXPORT hg_context_t *HG_Context_create(hg_class_t *hg_class);
/*
 * Cancels the operations in progress and runs their callbacks. Returns HG_BUSY if called in a
 * callback of the context.
 */
HG_EXPORT hg_return_t HG_Context_destroy(hg_context_t *context);
HG_EXPORT hg_class_t *HG_Context_get_class(hg_context_t *context);

/* Calls of other processes and callbacks run only in HG_Trigger. */
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
/* Makes calls of the function have no response. Such a call ends when it has been sent. */
HG_EXPORT hg_return_t HG_Registered_disable_response(hg_class_t *hg_class, hg_id_t id,
                                                     hg_bool_t disable);

HG_EXPORT hg_return_t HG_Addr_lookup1(hg_context_t *context, hg_cb_t callback, void *arg,
                                      const char *name, hg_op_id_t *op_id);
HG_EXPORT hg_return_t HG_Addr_lookup2(hg_class_t *hg_class, const char *name, hg_addr_t *addr);
HG_EXPORT hg_return_t HG_Addr_free(hg_class_t *hg_class, hg_addr_t addr);
HG_EXPORT hg_return_t HG_Addr_self(hg_class_t *hg_class, hg_addr_t *addr);
HG_EXPORT hg_return_t HG_Addr_dup(hg_class_t *hg_class, hg_addr_t addr, hg_addr_t *new_addr);
HG_EXPORT hg_bool_t HG_Addr_cmp(hg_class_t *hg_class, hg_addr_t addr1, hg_addr_t addr2);
/* If buf is NULL, stores the required size in *buf_size. */
HG_EXPORT hg_return_t HG_Addr_to_string(hg_class_t *hg_class, char *buf, hg_size_t *buf_size,
                                        hg_addr_t addr);

/*
 * A handle may be forwarded any number of times, one call at a time. HG_Reset can supply an address
 * and an id later if they are null and 0 here. A handle that is destroyed during its call remains
 * until the callback has run.
 */
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

/* HG_Forward(handle, ...) of current Mercury. */
HG_EXPORT hg_return_t HG_Forward_handle(hg_handle_t handle, hg_cb_t callback, void *arg,
                                        void *in_struct);
HG_EXPORT hg_return_t HG_Respond(hg_handle_t handle, hg_cb_t callback, void *arg,
                                 void *out_struct);
/* Cancels a call. The callback receives HG_CANCELED. The server may still run the call. */
HG_EXPORT hg_return_t HG_Cancel(hg_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_H */
