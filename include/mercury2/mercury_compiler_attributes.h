/* mercury_compiler_attributes.h - Mercury 2.4: attributes of GCC and Clang. */
#ifndef MERCURY_COMPILER_ATTRIBUTES_H
#define MERCURY_COMPILER_ATTRIBUTES_H

/* Avoids an empty translation unit if the header is compiled alone. */
#include <stddef.h>

#define HG_ATTR_ABI_IMPORT __attribute__((visibility("default")))
#define HG_ATTR_ABI_EXPORT __attribute__((visibility("default")))
#define HG_ATTR_ABI_HIDDEN __attribute__((visibility("hidden")))
#define HG_ATTR_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define HG_ATTR_UNUSED __attribute__((unused))
#define HG_ATTR_ALIGNED(x, a) x __attribute__((aligned(a)))
#define HG_ATTR_PACKED_PUSH
#define HG_ATTR_PACKED_POP __attribute__((packed))
#define HG_ATTR_PACKED(x) HG_ATTR_PACKED_PUSH x HG_ATTR_PACKED_POP
#define HG_ATTR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define HG_ATTR_CONSTRUCTOR __attribute__((constructor))
#define HG_ATTR_CONSTRUCTOR_PRIORITY(x) __attribute__((constructor(x)))
#define HG_ATTR_DESTRUCTOR __attribute__((destructor))
#if defined(__has_attribute)
#if __has_attribute(fallthrough)
#define HG_ATTR_FALLTHROUGH __attribute__((fallthrough))
#endif
#endif
#ifndef HG_ATTR_FALLTHROUGH
#define HG_ATTR_FALLTHROUGH \
  do {                      \
  } while (0)
#endif

#endif /* MERCURY_COMPILER_ATTRIBUTES_H */
