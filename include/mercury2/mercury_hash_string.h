/* mercury_hash_string.h - Mercury 2.4: a hash of a string (djb2, as in Mercury). */
#ifndef MERCURY_HASH_STRING_H
#define MERCURY_HASH_STRING_H

#include "mercury_util_config.h"

static HG_UTIL_INLINE unsigned int hg_hash_string(const char *string)
{
  unsigned int hash = 5381;
  for (; *string; string++)
    hash = hash * 33 + (unsigned char)*string;
  return hash;
}

#endif /* MERCURY_HASH_STRING_H */
