/*
 * mercury_checksum.h - checksums that accumulate.
 *
 * A method is chosen by name: "crc16" (CRC-16/T10-DIF, 2 bytes), "crc32c"
 * (CRC-32/ISCSI, 4), "crc64" (CRC-64/XZ, 8), "adler32" (4). Values are
 * little-endian. Calls that return int return 0, or -1 for an error, of which
 * portolan_last_error() has the reason. A null checksum is refused; a freed one must not
 * be used.
 */
#ifndef MERCURY_CHECKSUM_H
#define MERCURY_CHECKSUM_H

#include "mercury_config.h"

typedef void *hg_checksum_t;

#define HG_CHECKSUM_NULL ((hg_checksum_t)0)

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a checksum of nothing yet. */
HG_UTIL_EXPORT int hg_checksum_init(const char *hash_method, hg_checksum_t *checksum);

/* Destroys it; a null one is an error. */
HG_UTIL_EXPORT int hg_checksum_destroy(hg_checksum_t checksum);

/* Makes it one of nothing again. */
HG_UTIL_EXPORT int hg_checksum_reset(hg_checksum_t checksum);

/* Bytes of its value; 0 for a null one. */
HG_UTIL_EXPORT size_t hg_checksum_get_size(hg_checksum_t checksum);

/* Copies its value into buf, which must have room for it; more data may follow.
 * With finalize, what is left of the buf's size is filled with zeros. */
HG_UTIL_EXPORT int hg_checksum_get(hg_checksum_t checksum, void *buf, size_t size,
                                   int finalize);

/* Takes in further data. */
HG_UTIL_EXPORT int hg_checksum_update(hg_checksum_t checksum, const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* MERCURY_CHECKSUM_H */
