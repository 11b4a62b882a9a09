/*
 * mercury_checksum.h - incremental checksums.
 *
 * Methods are selected by name: "crc16" (CRC-16/T10-DIF, 2 bytes), "crc32c" (CRC-32/ISCSI, 4
 * bytes), "crc64" (CRC-64/XZ, 8 bytes), "adler32" (4 bytes). Values are little-endian. Calls that
 * return int return 0, or -1 on an error; portolan_last_error() returns the reason. A null checksum
 * is an error. A freed checksum must not be used.
 */
#ifndef MERCURY_CHECKSUM_H
#define MERCURY_CHECKSUM_H

#include "mercury_config.h"

typedef void *hg_checksum_t;

#define HG_CHECKSUM_NULL ((hg_checksum_t)0)

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a checksum of no data. */
HG_UTIL_EXPORT int hg_checksum_init(const char *hash_method, hg_checksum_t *checksum);

/* Destroys a checksum. A null checksum is an error. */
HG_UTIL_EXPORT int hg_checksum_destroy(hg_checksum_t checksum);

/* Resets a checksum to no data. */
HG_UTIL_EXPORT int hg_checksum_reset(hg_checksum_t checksum);

/* Returns the size of the value in bytes, or 0 for a null checksum. */
HG_UTIL_EXPORT size_t hg_checksum_get_size(hg_checksum_t checksum);

/*
 * Copies the value into buf, whose size must be at least that of the value. More data may be added
 * afterwards. If finalize is not 0, fills the rest of buf with zeros.
 */
HG_UTIL_EXPORT int hg_checksum_get(hg_checksum_t checksum, void *buf, size_t size,
                                   int finalize);

/* Adds data to a checksum. */
HG_UTIL_EXPORT int hg_checksum_update(hg_checksum_t checksum, const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_CHECKSUM_H */
