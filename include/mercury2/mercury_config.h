/*
 * mercury_config.h - attributes and basic types of the headers of Mercury 2.4.
 *
 * These headers declare the calls of Mercury 2.4 by their own names. Some of the names also belong
 * to calls of the 2013 interface in the same library (../mercury.h), with other parameters. So each
 * call X is bound to the symbol mercury2_X here. A program may use both interfaces in different
 * source files.
 */
#ifndef MERCURY2_CONFIG_H
#define MERCURY2_CONFIG_H

#ifdef MERCURY_CONFIG_H
#error "one source file uses either include/mercury.h of 2013 or include/mercury2/mercury.h, not both"
#endif
#define MERCURY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mercury_compiler_attributes.h"

#define HG_VERSION_MAJOR 2
#define HG_VERSION_MINOR 4
#define HG_VERSION_PATCH 1

#ifdef __cplusplus
#define HG_PUBLIC extern "C"
#else
#define HG_PUBLIC extern
#endif
#define HG_EXPORT HG_PUBLIC
#define HG_PRIVATE HG_ATTR_ABI_HIDDEN
#define HG_INLINE __inline__
#define HG_LABEL(name) __asm__("mercury2_" #name)
#define HG_WARN_UNUSED_RESULT HG_ATTR_WARN_UNUSED_RESULT
#define HG_UNUSED HG_ATTR_UNUSED
#define HG_ATTRIBUTE_UNUSED HG_ATTR_UNUSED
#define HG_PACKED(x) HG_ATTR_PACKED(x)
#define HG_FALLTHROUGH HG_ATTR_FALLTHROUGH

/* Features of this implementation. */
#define HG_BUILD_SHARED_LIBS
#define HG_HAS_BOOST 1 /* MERCURY_GEN_PROC and related macros work without Boost */
#define HG_HAS_CHECKSUMS 1
#define HG_HAS_MULTI_PROGRESS

/* Older names. */
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
#define HG_TRUE 1
#define HG_FALSE 0

#endif /* MERCURY2_CONFIG_H */
