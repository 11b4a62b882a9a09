/* mercury_util.h - Mercury 2.4: version and log of the utilities. */
#ifndef MERCURY_UTIL_H
#define MERCURY_UTIL_H

#include "mercury_util_config.h"

/* Writes the version of the utilities. Null pointers are skipped. */
HG_UTIL_PUBLIC void HG_Util_version_get(unsigned int *major, unsigned int *minor,
    unsigned int *patch) HG_LABEL(HG_Util_version_get);
/* Sets the level of the library's log, like HG_Set_log_level. */
HG_UTIL_PUBLIC void HG_Util_set_log_level(const char *level) HG_LABEL(HG_Util_set_log_level);

#endif /* MERCURY_UTIL_H */
