/*
 * mercury_proc.h - parameters as bytes.
 *
 * A proc goes over parameters: it encodes them into a buffer, decodes them from one,
 * or frees what decoding has allocated (hg_proc_get_op says which). A function
 * hg_proc_TYPE(proc, pointer) serves all three; MERCURY_GEN_PROC (mercury_macros.h)
 * writes such functions for structs.
 *
 * The bytes: integers and floats are little-endian and have the size of their type,
 * one after the other without gaps; a string is its size with the terminating zero as
 * 8 bytes, then the bytes; a bulk handle is its size as 8 bytes, then its serialised
 * form; null strings and handles have the size 0.
 *
 * Calls that return hg_return_t return HG_OVERFLOW where the bytes end too early (or
 * a size in them says so), HG_PROTOCOL_ERROR where they make no sense,
 * HG_CHECKSUM_ERROR, HG_NOMEM, HG_INVALID_ARG. After its first error a proc goes on
 * failing with it, except that it frees. portolan_last_error() has the reason.
 * A proc is a pointer: a null one is refused, a freed one must not be used.
 */
#ifndef MERCURY_PROC_H
#define MERCURY_PROC_H

#include "mercury_types.h"
#include "mercury_error.h"
#include "mercury_bulk.h"

#include <stdlib.h>
#include <string.h>

/* Flags, for programs that share them with their procs. */
#define HG_PROC_SM (1 << 0)
#define HG_PROC_BULK_EAGER (1 << 1)

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ buffers */

/* A buffer on a page of its own, or NULL; free() frees it too. */
HG_EXPORT void *hg_proc_buf_alloc(hg_size_t size);
HG_EXPORT void hg_proc_buf_free(void *mem_ptr);

/* -------------------------------------------------------------------- procs */

/*
 * Makes a proc over a buffer, which may be NULL. With a hash other than HG_NOHASH
 * hg_proc_flush ends the bytes with a trailer or checks it: the number of bytes before
 * it (8 bytes), then the checksum over them.
 */
HG_EXPORT hg_return_t hg_proc_create(void *buf, hg_size_t buf_size, hg_proc_op_t op,
                                     hg_proc_hash_t hash, hg_proc_t *proc);

/*
 * The same without a trailer: after hg_proc_flush the caller sends or compares the
 * checksum by itself (hg_proc_checksum_get, hg_proc_checksum_verify).
 */
HG_EXPORT hg_return_t hg_proc_create_set(hg_class_t *hg_class, void *buf, hg_size_t buf_size,
                                         hg_proc_op_t op, hg_proc_hash_t hash,
                                         hg_proc_t *proc);

/* Starts again with another buffer. Flags and errors are forgotten. */
HG_EXPORT hg_return_t hg_proc_reset(hg_proc_t proc, void *buf, hg_size_t buf_size,
                                    hg_proc_op_t op);

HG_EXPORT hg_return_t hg_proc_free(hg_proc_t proc);

/* The hash of a name ("crc16", "crc32c", "crc64", "adler32", "none"). */
HG_EXPORT hg_return_t hg_proc_hash_from_name(const char *name, hg_proc_hash_t *hash);

HG_EXPORT hg_proc_op_t hg_proc_get_op(hg_proc_t proc);
HG_EXPORT hg_class_t *hg_proc_get_class(hg_proc_t proc);
HG_EXPORT void hg_proc_set_handle(hg_proc_t proc, hg_handle_t handle);
HG_EXPORT hg_handle_t hg_proc_get_handle(hg_proc_t proc);
HG_EXPORT void hg_proc_set_flags(hg_proc_t proc, uint8_t flags);
HG_EXPORT uint8_t hg_proc_get_flags(hg_proc_t proc);

/* Bytes of the buffer in use; of them used, and left. */
HG_EXPORT hg_size_t hg_proc_get_size(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_size_used(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_size_left(hg_proc_t proc);

/* Asks for a buffer of at least so many bytes; encoding does so by itself. */
HG_EXPORT hg_return_t hg_proc_set_size(hg_proc_t proc, hg_size_t buf_size);

/*
 * When encoding exceeds the proc's buffer, all that is encoded moves to an extra buffer.
 * Then hg_proc_get_size_used says how much of it is used. It is freed with the proc, or,
 * after hg_proc_set_extra_buf_is_mine(proc, HG_FALSE), by the caller.
 */
HG_EXPORT void *hg_proc_get_extra_buf(hg_proc_t proc);
HG_EXPORT hg_size_t hg_proc_get_extra_size(hg_proc_t proc);
HG_EXPORT hg_return_t hg_proc_set_extra_buf_is_mine(hg_proc_t proc, hg_bool_t mine);

/* Ends the pass: see hg_proc_create. */
HG_EXPORT hg_return_t hg_proc_flush(hg_proc_t proc);

/* The checksum of what was encoded or decoded; and whether another one equals it. */
HG_EXPORT hg_return_t hg_proc_checksum_get(hg_proc_t proc, void *hash, hg_size_t hash_size);
HG_EXPORT hg_return_t hg_proc_checksum_verify(hg_proc_t proc, const void *hash,
                                              hg_size_t hash_size);

/* Takes data that is not in the buffer into the checksum. */
HG_EXPORT void hg_proc_checksum_update(hg_proc_t proc, void *data, hg_size_t data_size);

/* ---------------------------------------------------------- encoding by hand */

/*
 * Reserves data_size bytes of the buffer (encoding) or goes past them (decoding) and
 * returns where they are; NULL for an error, and when freeing. The bytes are to be
 * written or read before anything else is encoded, and then given to
 * hg_proc_restore_ptr.
 */
HG_EXPORT void *hg_proc_save_ptr(hg_proc_t proc, hg_size_t data_size);
HG_EXPORT hg_return_t hg_proc_restore_ptr(hg_proc_t proc, void *data, hg_size_t data_size);

/* Where the proc stands in its buffer, and to make it stand elsewhere. */
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

/* data_size bytes as they are; the receiver must know how many. */
HG_EXPORT hg_return_t hg_proc_bytes(hg_proc_t proc, void *data, hg_size_t data_size);
HG_EXPORT hg_return_t hg_proc_raw(hg_proc_t proc, void *buf, hg_size_t buf_size);
HG_EXPORT hg_return_t hg_proc_memcpy(hg_proc_t proc, void *data, hg_size_t data_size);

/*
 * What generated functions call around the fields that they have decoded already, when
 * a later one fails: in between, the proc frees.
 */
HG_EXPORT void hg_proc_undo_begin(hg_proc_t proc);
HG_EXPORT void hg_proc_undo_end(hg_proc_t proc);

#ifdef __cplusplus
}
#endif

/* Other names of the same types. */
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

/* Names of the first text. */
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
