/* mercury_bulk.h - Mercury 2.4: memory that other processes read and write. */
#ifndef MERCURY_BULK_H
#define MERCURY_BULK_H

#include "mercury_types.h"

#define HG_BULK_READ_ONLY (1 << 0)
#define HG_BULK_WRITE_ONLY (1 << 1)
#define HG_BULK_READWRITE (HG_BULK_READ_ONLY | HG_BULK_WRITE_ONLY)

/*
 * Flags of HG_Bulk_serialize. With HG_BULK_EAGER, the serialised form of a HG_BULK_READ_ONLY handle
 * of this process contains the current data, and a transfer copies the data from there. HG_BULK_SM
 * has no effect: the library uses shared memory whenever it can.
 */
#define HG_BULK_EAGER (1 << 2)
#define HG_BULK_SM (1 << 3)

/* Handles. */
HG_PUBLIC hg_return_t HG_Bulk_create(hg_class_t *hg_class, uint32_t count, void **buf_ptrs,
    const hg_size_t *buf_sizes, uint8_t flags, hg_bulk_t *handle) HG_LABEL(HG_Bulk_create);
HG_PUBLIC hg_return_t HG_Bulk_create_attr(hg_class_t *hg_class, uint32_t count, void **buf_ptrs,
    const hg_size_t *buf_sizes, uint8_t flags, const struct hg_bulk_attr *attrs, hg_bulk_t
    *handle) HG_LABEL(HG_Bulk_create_attr);
HG_PUBLIC hg_return_t HG_Bulk_free(hg_bulk_t handle) HG_LABEL(HG_Bulk_free);
HG_PUBLIC hg_return_t HG_Bulk_ref_incr(hg_bulk_t handle) HG_LABEL(HG_Bulk_ref_incr);
HG_PUBLIC hg_return_t HG_Bulk_bind(hg_bulk_t handle, hg_context_t *context)
    HG_LABEL(HG_Bulk_bind);
HG_PUBLIC hg_addr_t HG_Bulk_get_addr(hg_bulk_t handle) HG_LABEL(HG_Bulk_get_addr);
HG_PUBLIC uint8_t HG_Bulk_get_context_id(hg_bulk_t handle) HG_LABEL(HG_Bulk_get_context_id);
HG_PUBLIC hg_return_t HG_Bulk_access(hg_bulk_t handle, hg_size_t offset, hg_size_t size, uint8_t
    flags, uint32_t max_count, void **buf_ptrs, hg_size_t *buf_sizes, uint32_t *actual_count)
    HG_LABEL(HG_Bulk_access);
HG_PUBLIC hg_size_t HG_Bulk_get_size(hg_bulk_t handle) HG_LABEL(HG_Bulk_get_size);
HG_PUBLIC uint32_t HG_Bulk_get_segment_count(hg_bulk_t handle)
    HG_LABEL(HG_Bulk_get_segment_count);
HG_PUBLIC uint8_t HG_Bulk_get_flags(hg_bulk_t handle) HG_LABEL(HG_Bulk_get_flags);
HG_PUBLIC hg_size_t HG_Bulk_get_serialize_size(hg_bulk_t handle, unsigned long flags)
    HG_LABEL(HG_Bulk_get_serialize_size);
HG_PUBLIC hg_return_t HG_Bulk_serialize(void *buf, hg_size_t buf_size, unsigned long flags,
    hg_bulk_t handle) HG_LABEL(HG_Bulk_serialize);
HG_PUBLIC hg_return_t HG_Bulk_deserialize(hg_class_t *hg_class, hg_bulk_t *handle, const void
    *buf, hg_size_t buf_size) HG_LABEL(HG_Bulk_deserialize);

/* Transfers. */
HG_PUBLIC hg_return_t HG_Bulk_transfer(hg_context_t *context, hg_cb_t callback, void *arg,
    hg_bulk_op_t op, hg_addr_t origin_addr, hg_bulk_t origin_handle, hg_size_t origin_offset,
    hg_bulk_t local_handle, hg_size_t local_offset, hg_size_t size, hg_op_id_t *op_id)
    HG_LABEL(HG_Bulk_transfer);
HG_PUBLIC hg_return_t HG_Bulk_bind_transfer(hg_context_t *context, hg_cb_t callback, void *arg,
    hg_bulk_op_t op, hg_bulk_t origin_handle, hg_size_t origin_offset, hg_bulk_t local_handle,
    hg_size_t local_offset, hg_size_t size, hg_op_id_t *op_id) HG_LABEL(HG_Bulk_bind_transfer);
HG_PUBLIC hg_return_t HG_Bulk_transfer_id(hg_context_t *context, hg_cb_t callback, void *arg,
    hg_bulk_op_t op, hg_addr_t origin_addr, uint8_t origin_id, hg_bulk_t origin_handle,
    hg_size_t origin_offset, hg_bulk_t local_handle, hg_size_t local_offset, hg_size_t size,
    hg_op_id_t *op_id) HG_LABEL(HG_Bulk_transfer_id);
HG_PUBLIC hg_return_t HG_Bulk_cancel(hg_op_id_t op_id) HG_LABEL(HG_Bulk_cancel);

#endif /* MERCURY_BULK_H */
