/*
 * mercury_handler.h - function shipping at the server: running calls. Link with -lmercury.
 *
 * A handler (hg_rpc_cb_t) decodes its input, does its work, answers, and frees its
 * handle; it may do the last two later. One that returns an error fails the call at the
 * client with that error, and its handle is freed. So does freeing a handle without an
 * answer.
 */
#ifndef MERCURY_HANDLER_H
#define MERCURY_HANDLER_H

#include "na.h"
#include "mercury_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for calls and runs them; the status says whether any have run. */
HG_EXPORT hg_return_t HG_Handler_process(unsigned int timeout, hg_status_t *status);

/* The caller. It is freed with the handle; NA_Addr_dup keeps it. */
HG_EXPORT na_addr_t HG_Handler_get_addr(hg_handle_t handle);

HG_EXPORT hg_return_t HG_Handler_get_input(hg_handle_t handle, void *in_struct);

HG_EXPORT hg_return_t HG_Handler_free_input(hg_handle_t handle, void *in_struct);

HG_EXPORT hg_return_t HG_Handler_start_output(hg_handle_t handle, void *out_struct);

/* The three that the two above consist of: the encoded input, where it lies; a buffer for
 * the encoded output; and the answer, of size bytes of that buffer, or of another one, buf,
 * where that is not NULL. The bytes are those of a proc with the checksum of the class. */
HG_EXPORT hg_return_t HG_Handler_get_input_buf(hg_handle_t handle, void **in_buf,
                                               size_t *in_buf_size);
HG_EXPORT hg_return_t HG_Handler_get_output_buf(hg_handle_t handle, void **out_buf,
                                                size_t *out_buf_size);
HG_EXPORT hg_return_t HG_Handler_start_response(hg_handle_t handle, const void *buf, size_t size);

HG_EXPORT hg_return_t HG_Handler_free(hg_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_HANDLER_H */
