/* mercury_param.h - Mercury 2.4: MIN, MAX and powerof2 of <sys/param.h>. */
#ifndef MERCURY_PARAM_H
#define MERCURY_PARAM_H

#include "mercury_util_config.h"

#include <sys/param.h>

#endif /* MERCURY_PARAM_H */
