/*
 * mercury_core_header.h - the headers of requests and responses are internal to the library. This
 * header gives their sizes, and the numbers in Mercury's own headers.
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
