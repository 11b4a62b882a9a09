/* na_config.h - the configuration that na_types.h needs. */
#ifndef MERCURY2_NA_CONFIG_H
#define MERCURY2_NA_CONFIG_H

#include "mercury_config.h"

#define NA_VERSION_MAJOR 6
#define NA_VERSION_MINOR 0
#define NA_VERSION_PATCH 0

#endif /* MERCURY2_NA_CONFIG_H */
