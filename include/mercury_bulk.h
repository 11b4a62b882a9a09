/*
 * mercury_bulk.h - bulk data: memory as a parameter of calls, and its transfers. Link with
 * -lmercury.
 */
#ifndef MERCURY_BULK_H
#define MERCURY_BULK_H

#include "mercury_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Accesses that other processes may make to the memory. */
#define HG_BULK_READ_ONLY NA_MEM_READ_ONLY
#define HG_BULK_WRITE_ONLY NA_MEM_WRITE_ONLY
#define HG_BULK_READWRITE NA_MEM_READWRITE

typedef enum hg_bulk_op {
  HG_BULK_PUSH, /* to the origin */
  HG_BULK_PULL  /* from the origin */
} hg_bulk_op_t;

/* Initialises the bulk interface. The class may differ from that of HG_Init. */
HG_EXPORT hg_return_t HG_Bulk_init(na_class_t *na_class);

HG_EXPORT hg_return_t HG_Bulk_finalize(void);

/* Reports whether HG_Bulk_init was called, and with which class. na_class may be NULL. */
HG_EXPORT hg_return_t HG_Bulk_initialized(hg_bool_t *flag, na_class_t **na_class);

/*
 * Creates a handle over segments of memory. If buf_ptrs is NULL, allocates zeroed memory that is
 * freed with the handle.
 */
HG_EXPORT hg_return_t HG_Bulk_handle_create(size_t count, void **buf_ptrs,
                                            const size_t *buf_sizes, unsigned long flags,
                                            hg_bulk_t *handle);

HG_EXPORT hg_return_t HG_Bulk_handle_free(hg_bulk_t handle);

/*
 * Returns the segments of a range of this process's own memory, without copying. Outputs that are
 * not needed may be NULL. Returns HG_ACCESS if the memory belongs to another process.
 */
HG_EXPORT hg_return_t HG_Bulk_handle_access(hg_bulk_t handle, size_t offset, size_t size,
                                            unsigned long flags, unsigned int max_count,
                                            void **buf_ptrs, size_t *buf_sizes,
                                            unsigned int *actual_count);

HG_EXPORT size_t HG_Bulk_handle_get_size(hg_bulk_t handle);

HG_EXPORT size_t HG_Bulk_handle_get_segment_count(hg_bulk_t handle);

HG_EXPORT size_t HG_Bulk_handle_get_serialize_size(hg_bulk_t handle);

HG_EXPORT hg_return_t HG_Bulk_handle_serialize(void *buf, size_t buf_size, hg_bulk_t handle);

HG_EXPORT hg_return_t HG_Bulk_handle_deserialize(hg_bulk_t *handle, const void *buf,
                                                 size_t buf_size);

/*
 * Starts a transfer. Ranges may cross segment boundaries on either side. Several transfers may be
 * in progress. Buffers must stay valid until their transfer has ended.
 */
HG_EXPORT hg_return_t HG_Bulk_transfer(hg_bulk_op_t op, na_addr_t origin_addr,
                                       hg_bulk_t origin_handle, size_t origin_offset,
                                       hg_bulk_t local_handle, size_t local_offset, size_t size,
                                       hg_bulk_request_t *request);

/*
 * Waits for a transfer. The status says whether the transfer has ended. If it has, the request is
 * freed.
 */
HG_EXPORT hg_return_t HG_Bulk_wait(hg_bulk_request_t request, unsigned int timeout,
                                   hg_status_t *status);

/* Names in Mercury 0.9 for HG_Bulk_handle_free, _get_size, _get_segment_count and _access. */
HG_EXPORT hg_return_t HG_Bulk_free(hg_bulk_t handle);
HG_EXPORT hg_size_t HG_Bulk_get_size(hg_bulk_t handle);
HG_EXPORT hg_uint32_t HG_Bulk_get_segment_count(hg_bulk_t handle);
HG_EXPORT hg_return_t HG_Bulk_access(hg_bulk_t handle, hg_size_t offset, hg_size_t size,
                                     hg_uint8_t flags, hg_uint32_t max_count, void **buf_ptrs,
                                     hg_size_t *buf_sizes, hg_uint32_t *actual_count);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_BULK_H */
