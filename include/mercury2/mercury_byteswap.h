/* mercury_byteswap.h - Mercury 2.4: bswap_16, bswap_32 and bswap_64 of <byteswap.h>. */
#ifndef MERCURY_BYTESWAP_H
#define MERCURY_BYTESWAP_H

#include "mercury_util_config.h"

#include <byteswap.h>

#endif /* MERCURY_BYTESWAP_H */
