/*
 * mercury_core_header.h - the sizes of the headers of requests and responses, whose contents are
 * internal to the library, and constants of Mercury's own headers.
 */
#ifndef MERCURY_CORE_HEADER_H
#define MERCURY_CORE_HEADER_H

#include "mercury_core_types.h"

#define HG_CORE_IDENTIFIER (('H' << 1) | ('G'))
#define HG_CORE_PROTOCOL_VERSION 0x05
#define HG_CORE_HAS_CHECKSUMS (1 << 7)

static inline HG_ATTRIBUTE_UNUSED size_t hg_core_header_request_get_size(void) { return 16; }
static inline HG_ATTRIBUTE_UNUSED size_t hg_core_header_response_get_size(void) { return 16; }

#endif /* MERCURY_CORE_HEADER_H */
