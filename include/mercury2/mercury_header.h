/* mercury_header.h - parameters have no header of their own, so its size is 0. */
#ifndef MERCURY_HEADER_H
#define MERCURY_HEADER_H

#include "mercury_core_types.h"

static inline HG_ATTRIBUTE_UNUSED size_t hg_header_get_size(hg_op_t op)
{
  (void)op;
  return 0;
}

#endif /* MERCURY_HEADER_H */
