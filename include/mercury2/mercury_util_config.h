/*
 * mercury_util_config.h - Mercury 2.4: what the headers of the utilities share.
 *
 * The utilities are static inline functions, except for mercury_request.h and mercury_util.h.
 * A call returns HG_UTIL_SUCCESS or HG_UTIL_FAIL unless its header says otherwise.
 */
#ifndef MERCURY_UTIL_CONFIG_H
#define MERCURY_UTIL_CONFIG_H

/* Strict C hides the declarations of POSIX otherwise. Include this header first. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mercury_config.h"

#define HG_UTIL_VERSION_MAJOR 4
#define HG_UTIL_VERSION_MINOR 1
#define HG_UTIL_VERSION_PATCH 0

#define HG_UTIL_SUCCESS 0
#define HG_UTIL_FAIL (-1)

#define HG_UTIL_INLINE __inline__
#define HG_UTIL_ALIGNED(x, a) HG_ATTR_ALIGNED(x, a)
#define HG_UTIL_PRINTF(fmt, first) HG_ATTR_PRINTF(fmt, first)
#define HG_UTIL_PUBLIC HG_PUBLIC
#define HG_UTIL_PRIVATE HG_ATTR_ABI_HIDDEN
#define HG_UTIL_PLUGIN HG_ATTR_ABI_EXPORT

#define HG_UTIL_BUILD_SHARED_LIBS
#define HG_UTIL_HAS_ATTR_CONSTRUCTOR_PRIORITY
#define HG_UTIL_ATOMIC_LONG_WIDTH __SIZEOF_LONG__
#define HG_UTIL_HAS_CLOCK_GETTIME
#define HG_UTIL_HAS_CLOCK_MONOTONIC_COARSE
#define HG_UTIL_HAS_EVENTFD_T
#define HG_UTIL_HAS_PTHREAD_CONDATTR_SETCLOCK
#define HG_UTIL_HAS_PTHREAD_MUTEX_ADAPTIVE_NP
#define HG_UTIL_HAS_PTHREAD_SPINLOCK_T
#define HG_UTIL_HAS_SYSEPOLL_H
#define HG_UTIL_HAS_SYSEVENTFD_H
#define HG_UTIL_HAS_SYSPARAM_H
#define HG_UTIL_HAS_SYSQUEUE_H
#define HG_UTIL_HAS_SYSTIME_H
#define HG_UTIL_HAS_TIME_H

#endif /* MERCURY_UTIL_CONFIG_H */
