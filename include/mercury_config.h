/*
 * mercury_config.h - basic types and attributes of the Mercury headers. It depends only on the C
 * library.
 */
#ifndef MERCURY_CONFIG_H
#define MERCURY_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#define HG_VERSION_MAJOR 0
#define HG_VERSION_MINOR 7
#define HG_VERSION_PATCH 0

/* Attributes of declarations. */
#define HG_EXPORT extern
#define HG_PUBLIC extern
#define HG_UTIL_EXPORT extern
#define HG_INLINE inline
#if defined(__GNUC__)
#define HG_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define HG_ATTRIBUTE_UNUSED __attribute__((unused))
#else
#define HG_WARN_UNUSED_RESULT
#define HG_ATTRIBUTE_UNUSED
#endif

/* Features of this implementation. */
#define HG_HAS_BOOST 1 /* MERCURY_GEN_PROC and related macros work without Boost */
#define MERCURY_HAS_BOOST 1
#define HG_HAS_CHECKSUMS 1

typedef int8_t hg_int8_t;
typedef uint8_t hg_uint8_t;
typedef int16_t hg_int16_t;
typedef uint16_t hg_uint16_t;
typedef int32_t hg_int32_t;
typedef uint32_t hg_uint32_t;
typedef int64_t hg_int64_t;
typedef uint64_t hg_uint64_t;
typedef uint8_t hg_bool_t;
typedef uint64_t hg_ptr_t;
typedef uint64_t hg_size_t;

#define HG_TRUE 1
#define HG_FALSE 0

#define HG_UTIL_TRUE 1
#define HG_UTIL_FALSE 0
#define HG_UTIL_SUCCESS 0
#define HG_UTIL_FAIL (-1)

#endif /* MERCURY_CONFIG_H */
