/* mercury_proc.h - Mercury 2.4: encoding and decoding of parameters. */
#ifndef MERCURY_PROC_H
#define MERCURY_PROC_H

#include "mercury_types.h"

#include <string.h>

typedef enum { HG_CRC16, HG_CRC32, HG_CRC64, HG_NOHASH } hg_proc_hash_t;

#define HG_PROC_SM (1 << 0)
#define HG_PROC_BULK_EAGER (1 << 1)

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

/* Process one value, or size bytes. On failure store the code in ret and jump to label. */
#define HG_PROC_TYPE(proc, type, data, label, ret) HG_PROC_BYTES(proc, data, sizeof(type), label, ret)
#define HG_PROC_BYTES(proc, data, size, label, ret) \
  do {                                              \
    ret = hg_proc_bytes(proc, data, size);          \
    if (unlikely(ret != HG_SUCCESS)) goto label;    \
  } while (0)

/* Procs. */
HG_PUBLIC hg_return_t hg_proc_create(hg_class_t *hg_class, hg_proc_hash_t hash, hg_proc_t
    *proc_p) HG_LABEL(hg_proc_create);
HG_PUBLIC hg_return_t hg_proc_create_set(hg_class_t *hg_class, void *buf, hg_size_t buf_size,
    hg_proc_op_t op, hg_proc_hash_t hash, hg_proc_t *proc_p) HG_LABEL(hg_proc_create_set);
HG_PUBLIC hg_return_t hg_proc_free(hg_proc_t proc) HG_LABEL(hg_proc_free);
HG_PUBLIC hg_return_t hg_proc_reset(hg_proc_t proc, void *buf, hg_size_t buf_size, hg_proc_op_t
    op) HG_LABEL(hg_proc_reset);
HG_PUBLIC hg_class_t *hg_proc_get_class(hg_proc_t proc) HG_LABEL(hg_proc_get_class);
HG_PUBLIC void hg_proc_set_handle(hg_proc_t proc, hg_handle_t handle)
    HG_LABEL(hg_proc_set_handle);
HG_PUBLIC hg_handle_t hg_proc_get_handle(hg_proc_t proc) HG_LABEL(hg_proc_get_handle);
HG_PUBLIC hg_proc_op_t hg_proc_get_op(hg_proc_t proc) HG_LABEL(hg_proc_get_op);
HG_PUBLIC void hg_proc_set_flags(hg_proc_t proc, uint8_t flags) HG_LABEL(hg_proc_set_flags);
HG_PUBLIC uint8_t hg_proc_get_flags(hg_proc_t proc) HG_LABEL(hg_proc_get_flags);
HG_PUBLIC hg_size_t hg_proc_get_size(hg_proc_t proc) HG_LABEL(hg_proc_get_size);
HG_PUBLIC hg_size_t hg_proc_get_size_used(hg_proc_t proc) HG_LABEL(hg_proc_get_size_used);
HG_PUBLIC hg_return_t hg_proc_set_size(hg_proc_t proc, hg_size_t buf_size)
    HG_LABEL(hg_proc_set_size);
HG_PUBLIC hg_size_t hg_proc_get_size_left(hg_proc_t proc) HG_LABEL(hg_proc_get_size_left);
HG_PUBLIC void *hg_proc_save_ptr(hg_proc_t proc, hg_size_t data_size)
    HG_LABEL(hg_proc_save_ptr);
HG_PUBLIC hg_return_t hg_proc_restore_ptr(hg_proc_t proc, void *data, hg_size_t data_size)
    HG_LABEL(hg_proc_restore_ptr);
HG_PUBLIC void *hg_proc_get_extra_buf(hg_proc_t proc) HG_LABEL(hg_proc_get_extra_buf);
HG_PUBLIC hg_size_t hg_proc_get_extra_size(hg_proc_t proc) HG_LABEL(hg_proc_get_extra_size);
HG_PUBLIC hg_return_t hg_proc_set_extra_buf_is_mine(hg_proc_t proc, uint8_t mine)
    HG_LABEL(hg_proc_set_extra_buf_is_mine);
HG_PUBLIC hg_return_t hg_proc_flush(hg_proc_t proc) HG_LABEL(hg_proc_flush);
HG_PUBLIC hg_return_t hg_proc_checksum_get(hg_proc_t proc, void *hash, hg_size_t hash_size)
    HG_LABEL(hg_proc_checksum_get);
HG_PUBLIC hg_return_t hg_proc_checksum_verify(hg_proc_t proc, const void *hash, hg_size_t
    hash_size) HG_LABEL(hg_proc_checksum_verify);
HG_PUBLIC void hg_proc_checksum_update(hg_proc_t proc, void *data, hg_size_t data_size)
    HG_LABEL(hg_proc_checksum_update);

/* Types. */
HG_PUBLIC hg_return_t hg_proc_int8_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_int8_t);
HG_PUBLIC hg_return_t hg_proc_uint8_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_uint8_t);
HG_PUBLIC hg_return_t hg_proc_int16_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_int16_t);
HG_PUBLIC hg_return_t hg_proc_uint16_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_uint16_t);
HG_PUBLIC hg_return_t hg_proc_int32_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_int32_t);
HG_PUBLIC hg_return_t hg_proc_uint32_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_uint32_t);
HG_PUBLIC hg_return_t hg_proc_int64_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_int64_t);
HG_PUBLIC hg_return_t hg_proc_uint64_t(hg_proc_t proc, void *data) HG_LABEL(hg_proc_uint64_t);
HG_PUBLIC hg_return_t hg_proc_bytes(hg_proc_t proc, void *data, hg_size_t data_size)
    HG_LABEL(hg_proc_bytes);

#define hg_proc_hg_size_t hg_proc_uint64_t
#define hg_proc_hg_id_t hg_proc_uint64_t

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

#define hg_proc_memcpy hg_proc_raw
#define hg_proc_raw hg_proc_bytes

#endif /* MERCURY_PROC_H */
