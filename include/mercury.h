/*
 * mercury.h - function shipping: calls that run on another rank. Link with -lmercury.
 *
 * This is the interface of 2013, of the releases before Mercury 0.9. A process has one class, which
 * HG_Init creates over a network class. mercury2/ has the interface of Mercury 2.4, with classes,
 * contexts and callbacks.
 *
 * Inputs and outputs may have any length: if one does not fit in a message, the receiver pulls it.
 * If the server fails (the function is not registered, the input cannot be decoded, or the handler
 * fails), HG_Wait returns that error at the client. A null or freed handle is HG_INVALID_ARG, but
 * HG_Bulk_handle_free accepts NULL. docs/errors-mercury-2013.md lists the errors of each call.
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

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_H */
