/*
 * mercury_core_header.h - the headers of requests and responses are internal to the library. This
 * header gives their sizes.
 */
#ifndef MERCURY_CORE_HEADER_H
#define MERCURY_CORE_HEADER_H

#include "mercury_core_types.h"

static inline HG_ATTRIBUTE_UNUSED size_t hg_core_header_request_get_size(void) { return 16; }
static inline HG_ATTRIBUTE_UNUSED size_t hg_core_header_response_get_size(void) { return 16; }

#endif /* MERCURY_CORE_HEADER_H */
