/* na_config.h - Mercury 2.4: version and attributes of the network layer. */
#ifndef MERCURY2_NA_CONFIG_H
#define MERCURY2_NA_CONFIG_H

#include "mercury_config.h"

#define NA_VERSION_MAJOR 6
#define NA_VERSION_MINOR 0
#define NA_VERSION_PATCH 0

#define NA_BUILD_SHARED_LIBS
#define NA_PUBLIC HG_ATTR_ABI_IMPORT
#define NA_PRIVATE HG_ATTR_ABI_HIDDEN
#define NA_PLUGIN
#define NA_PLUGIN_VISIBILITY NA_PRIVATE
#define NA_INLINE __inline__
#define NA_WARN_UNUSED_RESULT HG_ATTR_WARN_UNUSED_RESULT
#define NA_UNUSED HG_ATTR_UNUSED
#define NA_ALIGNED(x, a) HG_ATTR_ALIGNED(x, a)
#define NA_PRINTF(fmt, first) HG_ATTR_PRINTF(fmt, first)
#define NA_PACKED(x) HG_ATTR_PACKED(x)
#define NA_FALLTHROUGH HG_ATTR_FALLTHROUGH

#define NA_HAS_SM /* na+sm */

#endif /* MERCURY2_NA_CONFIG_H */
