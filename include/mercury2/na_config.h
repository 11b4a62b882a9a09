/* na_config.h - the configuration that na_types.h needs. */
#ifndef MERCURY2_NA_CONFIG_H
#define MERCURY2_NA_CONFIG_H

#include "mercury_config.h"

#define NA_VERSION_MAJOR 4
#define NA_VERSION_MINOR 1
#define NA_VERSION_PATCH 0

#endif /* MERCURY2_NA_CONFIG_H */
