/*
 * mercury_proc.h - encoding and decoding of parameters.
 *
 * A proc processes parameters: it encodes them into a buffer, decodes them from a buffer, or frees
 * what decoding has allocated. hg_proc_get_op returns the operation. A function
 * hg_proc_TYPE(proc, pointer) handles all three operations. MERCURY_GEN_PROC (mercury_macros.h)
 * generates such functions for structs.
 *
 * Encoding. Integers and floats are little-endian, have the size of their type and follow each
 * other without gaps. A string is its size, including the terminating zero, as 8 bytes, then its
 * bytes, then 2 bytes that are 0 and that decoding ignores. A bulk handle is its size as 8 bytes,
 * then its serialised form. A null string or handle is only a size of 0.
 *
 * Errors. Calls that return hg_return_t return HG_OVERFLOW if the bytes end too early (or a size in
 * them exceeds the bytes), HG_PROTOCOL_ERROR if the bytes are invalid, HG_CHECKSUM_ERROR, HG_NOMEM
 * or HG_INVALID_ARG. After its first error a proc keeps failing with that error, but it can still
 * free. portolan_last_error() returns the reason. A null proc is an error. A freed proc must not be
 * used.
 */
#ifndef MERCURY_PROC_H
#define MERCURY_PROC_H

#include "mercury_types.h"
#include "mercury_error.h"
#include "mercury_bulk.h"

#include <stdlib.h>
#include <string.h>

/* Flags that programs may set for their own procs. */
#define HG_PROC_SM (1 << 0)
#define HG_PROC_BULK_EAGER (1 << 1)

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ buffers */

/* Allocates a page-aligned buffer. Returns NULL on failure. free() may free it too. */
HG_EXPORT void *hg_proc_buf_alloc(hg_size_t size);
HG_EXPORT void hg_proc_buf_free(void *mem_ptr);

/* -------------------------------------------------------------------- procs */

/*
 * Creates a proc over a buffer, which may be NULL. With a hash other than HG_NOHASH, hg_proc_flush
 * appends or checks a trailer: the number of bytes before it (8 bytes), then their checksum.
 */
HG_EXPORT hg_return_t hg_proc_create(void *buf, hg_size_t buf_size, hg_proc_op_t op,
                                     hg_proc_hash_t hash, hg_proc_t *proc);

/*
 * Like hg_proc_create, without a trailer. After hg_proc_flush the caller sends or compares the
 * checksum itself (hg_proc_checksum_get, hg_proc_checksum_verify).
 */
HG_EXPORT hg_return_t hg_proc_create_set(hg_class_t *hg_class, void *buf, hg_size_t buf_size,
                                         hg_proc_op_t op, hg_proc_hash_t hash,
                                         hg_proc_t *proc);

/* Restarts the proc on another buffer. Clears flags and errors. */
HG_EXPORT hg_return_t hg_proc_reset(hg_proc_t proc, void *buf, hg_size_t buf_size,
                                    hg_proc_op_t op);

HG_EXPORT hg_return_t hg_proc_free(hg_proc_t proc);

/* Stores the hash with the given name ("crc16", "crc32c", "crc64", "adler32", "none"). */
HG_EXPORT hg_return_t hg_proc_hash_from_name(const char *name, hg_proc_hash_t *hash);

HG_EXPORT hg_proc_op_t hg_proc_get_op(hg_proc_t proc);
HG_EXPORT hg_class_t *hg_proc_get_class(hg_proc_t proc);
HG_EXPORT void hg_proc_set_handle(hg_proc_t proc, hg_handle_t handle);
HG_EXPORT hg_handle_t hg_proc_get_handle(hg_proc_t proc);
HG_EXPORT void hg_proc_set_flags(hg_proc_t proc, uint8_t flags);
HG_EXPORT uint8_t hg_proc_get_flags(hg_proc_t proc);

/* Size of the current buffer in bytes, and how many of these bytes are used and left. */
HG_EXPORT hg_size_t hg_proc_get_size(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_size_used(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_size_left(hg_proc_t proc);

/* Ensures a buffer of at least buf_size bytes. Encoding does so automatically. */
HG_EXPORT hg_return_t hg_proc_set_size(hg_proc_t proc, hg_size_t buf_size);

/*
 * When encoding exceeds the proc's buffer, all encoded bytes move to an extra buffer, and
 * hg_proc_get_size_used returns how much of the extra buffer is used. The extra buffer is freed
 * with the proc. After hg_proc_set_extra_buf_is_mine(proc, HG_FALSE) the caller frees it.
 */
HG_EXPORT void *hg_proc_get_extra_buf(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_extra_size(hg_proc_t proc);
HG_EXPORT hg_return_t hg_proc_set_extra_buf_is_mine(hg_proc_t proc, hg_bool_t mine);

/* Ends the pass. See hg_proc_create. */
HG_EXPORT hg_return_t hg_proc_flush(hg_proc_t proc);

/* Return the checksum of the bytes encoded or decoded so far, and compare it with another one. */
HG_EXPORT hg_return_t hg_proc_checksum_get(hg_proc_t proc, void *hash, hg_size_t hash_size);
HG_EXPORT hg_return_t hg_proc_checksum_verify(hg_proc_t proc, const void *hash,
                                              hg_size_t hash_size);

/* Adds data that is not in the buffer to the checksum. */
HG_EXPORT void hg_proc_checksum_update(hg_proc_t proc, void *data, hg_size_t data_size);

/* ---------------------------------------------------------- manual encoding */

/*
 * hg_proc_save_ptr reserves data_size bytes of the buffer (encoding) or skips them (decoding) and
 * returns their address. Returns NULL on an error, and if the proc frees. Write or read the bytes
 * before encoding or decoding anything else, then pass them to hg_proc_restore_ptr.
 */
HG_EXPORT void *hg_proc_save_ptr(hg_proc_t proc, hg_size_t data_size);
HG_EXPORT hg_return_t hg_proc_restore_ptr(hg_proc_t proc, void *data, hg_size_t data_size);

/* Get and set the current position in the buffer. */
HG_EXPORT void *hg_proc_get_buf_ptr(hg_proc_t proc);
HG_EXPORT hg_return_t hg_proc_set_buf_ptr(hg_proc_t proc, void *buf_ptr);

/* ------------------------------------------------------------------ basic types */

HG_EXPORT hg_return_t hg_proc_int8_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_uint8_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_int16_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_uint16_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_int32_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_uint32_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_int64_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_uint64_t(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_float(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_double(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_bool(hg_proc_t proc, void *data);
HG_EXPORT hg_return_t hg_proc_hg_bulk_t(hg_proc_t proc, void *data);

/* Process data_size raw bytes. The receiver must know the number. */
HG_EXPORT hg_return_t hg_proc_bytes(hg_proc_t proc, void *data, hg_size_t data_size);
HG_EXPORT hg_return_t hg_proc_raw(hg_proc_t proc, void *buf, hg_size_t buf_size);
HG_EXPORT hg_return_t hg_proc_memcpy(hg_proc_t proc, void *data, hg_size_t data_size);

/*
 * Generated functions call these around the freeing of fields that were decoded before a later
 * field failed. Between the two calls the proc frees.
 */
HG_EXPORT void hg_proc_undo_begin(hg_proc_t proc);
HG_EXPORT void hg_proc_undo_end(hg_proc_t proc);

#ifdef __cplusplus
}
#endif

/* Alternative names of the same types. */
#define hg_proc_hg_int8_t hg_proc_int8_t
#define hg_proc_hg_uint8_t hg_proc_uint8_t
#define hg_proc_hg_int16_t hg_proc_int16_t
#define hg_proc_hg_uint16_t hg_proc_uint16_t
#define hg_proc_hg_int32_t hg_proc_int32_t
#define hg_proc_hg_uint32_t hg_proc_uint32_t
#define hg_proc_hg_int64_t hg_proc_int64_t
#define hg_proc_hg_uint64_t hg_proc_uint64_t
#define hg_proc_hg_bool_t hg_proc_uint8_t
#define hg_proc_hg_ptr_t hg_proc_uint64_t
#define hg_proc_hg_size_t hg_proc_uint64_t
#define hg_proc_hg_id_t hg_proc_uint32_t
#define hg_proc_hg_status_t hg_proc_uint8_t
#define hg_proc_hg_error_t hg_proc_int32_t
#define hg_proc_char hg_proc_uint8_t
#define hg_proc__Bool hg_proc_bool
#if SIZE_MAX == UINT64_MAX
#define hg_proc_size_t hg_proc_uint64_t
#endif

/* Names of the first published interface. */
#define fs_proc_t hg_proc_t
#define fs_proc_int8_t hg_proc_int8_t
#define fs_proc_uint8_t hg_proc_uint8_t
#define fs_proc_int16_t hg_proc_int16_t
#define fs_proc_uint16_t hg_proc_uint16_t
#define fs_proc_int32_t hg_proc_int32_t
#define fs_proc_uint32_t hg_proc_uint32_t
#define fs_proc_int64_t hg_proc_int64_t
#define fs_proc_uint64_t hg_proc_uint64_t
#define fs_proc_raw hg_proc_raw

#include "mercury_proc_string.h"

#endif /* MERCURY_PROC_H */
