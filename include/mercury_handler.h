/*
 * mercury_handler.h - function shipping at the server: running calls. Link with -lmercury.
 *
 * A handler (hg_rpc_cb_t) decodes its input, does its work, responds and frees its handle. It may
 * respond and free the handle after it has returned. If a handler returns an error, the call fails
 * at the client with that error, and the handle is freed. Freeing a handle without a response also
 * makes the call fail.
 */
#ifndef MERCURY_HANDLER_H
#define MERCURY_HANDLER_H

#include "na.h"
#include "mercury_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for calls and runs them. The status says whether any have run. */
HG_EXPORT hg_return_t HG_Handler_process(unsigned int timeout, hg_status_t *status);

/* Returns the address of the caller, which is freed with the handle. NA_Addr_dup copies it. */
HG_EXPORT na_addr_t HG_Handler_get_addr(hg_handle_t handle);

HG_EXPORT hg_return_t HG_Handler_get_input(hg_handle_t handle, void *in_struct);

HG_EXPORT hg_return_t HG_Handler_free_input(hg_handle_t handle, void *in_struct);

HG_EXPORT hg_return_t HG_Handler_start_output(hg_handle_t handle, void *out_struct);

/*
 * The parts of HG_Handler_get_input and HG_Handler_start_output. HG_Handler_get_input_buf returns
 * the encoded input without copying it. HG_Handler_get_output_buf returns a buffer for the encoded
 * output. HG_Handler_start_response responds with size bytes of that buffer, or of buf if buf is
 * not NULL. The bytes have the format of a proc with the checksum of the class.
 */
HG_EXPORT hg_return_t HG_Handler_get_input_buf(hg_handle_t handle, void **in_buf,
                                               size_t *in_buf_size);
HG_EXPORT hg_return_t HG_Handler_get_output_buf(hg_handle_t handle, void **out_buf,
                                                size_t *out_buf_size);
HG_EXPORT hg_return_t HG_Handler_start_response(hg_handle_t handle, const void *buf, size_t size);

HG_EXPORT hg_return_t HG_Handler_free(hg_handle_t handle);

/* Names in Mercury 0.9 for HG_Handler_get_input, _free_input and _free. */
HG_EXPORT hg_return_t HG_Get_input(hg_handle_t handle, void *in_struct);
HG_EXPORT hg_return_t HG_Free_input(hg_handle_t handle, void *in_struct);
HG_EXPORT hg_return_t HG_Destroy(hg_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_HANDLER_H */
