/*
 * mercury_error.h - macros with which Mercury programs report errors. Define HG_ERROR_QUIET before
 * including this header to silence them.
 */
#ifndef MERCURY_ERROR_H
#define MERCURY_ERROR_H

#include "mercury_types.h"

#include <stdio.h>

#ifdef HG_ERROR_QUIET
#define HG_ERROR_DEFAULT(text) ((void)(text))
#else
#define HG_ERROR_DEFAULT(text) \
  ((void)fprintf(stderr, "Error in %s:%d (%s): %s.\n", __FILE__, __LINE__, __func__, (text)))
#endif

#define HG_WARNING_DEFAULT(text) HG_ERROR_DEFAULT(text)

/* Names of the first published interface. */
#ifndef S_SUCCESS
#define S_SUCCESS HG_SUCCESS
#endif
#ifndef S_FAIL
#define S_FAIL HG_FAIL
#endif
#ifndef S_ERROR_DEFAULT
#define S_ERROR_DEFAULT(text) HG_ERROR_DEFAULT(text)
#endif

#endif /* MERCURY_ERROR_H */
