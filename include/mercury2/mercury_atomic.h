/*
 * mercury_atomic.h - Mercury 2.4: atomic integers. As in Mercury, hg_atomic_incr and hg_atomic_decr
 * return the new value; hg_atomic_or, hg_atomic_xor and hg_atomic_and return the previous one.
 */
#ifndef MERCURY_ATOMIC_H
#define MERCURY_ATOMIC_H

#include "mercury_util_config.h"

typedef int32_t hg_atomic_int32_t;
typedef int64_t hg_atomic_int64_t;

#define HG_ATOMIC_VAR_INIT(x) (x)

#define HG_ATOMIC_OF_(bits)                                                                       \
  static HG_UTIL_INLINE void hg_atomic_init##bits(hg_atomic_int##bits##_t *ptr,                   \
                                                  int##bits##_t value)                            \
  {                                                                                               \
    __atomic_store_n(ptr, value, __ATOMIC_RELAXED);                                               \
  }                                                                                               \
  static HG_UTIL_INLINE void hg_atomic_set##bits(hg_atomic_int##bits##_t *ptr,                    \
                                                 int##bits##_t value)                             \
  {                                                                                               \
    __atomic_store_n(ptr, value, __ATOMIC_RELEASE);                                               \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_get##bits(const hg_atomic_int##bits##_t *ptr)     \
  {                                                                                               \
    return __atomic_load_n(ptr, __ATOMIC_ACQUIRE);                                                \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_incr##bits(hg_atomic_int##bits##_t *ptr)          \
  {                                                                                               \
    return __atomic_add_fetch(ptr, 1, __ATOMIC_ACQ_REL);                                          \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_decr##bits(hg_atomic_int##bits##_t *ptr)          \
  {                                                                                               \
    return __atomic_sub_fetch(ptr, 1, __ATOMIC_ACQ_REL);                                          \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_or##bits(hg_atomic_int##bits##_t *ptr,            \
                                                         int##bits##_t value)                     \
  {                                                                                               \
    return __atomic_fetch_or(ptr, value, __ATOMIC_ACQ_REL);                                       \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_xor##bits(hg_atomic_int##bits##_t *ptr,           \
                                                          int##bits##_t value)                    \
  {                                                                                               \
    return __atomic_fetch_xor(ptr, value, __ATOMIC_ACQ_REL);                                      \
  }                                                                                               \
  static HG_UTIL_INLINE int##bits##_t hg_atomic_and##bits(hg_atomic_int##bits##_t *ptr,           \
                                                          int##bits##_t value)                    \
  {                                                                                               \
    return __atomic_fetch_and(ptr, value, __ATOMIC_ACQ_REL);                                      \
  }                                                                                               \
  static HG_UTIL_INLINE bool hg_atomic_cas##bits(hg_atomic_int##bits##_t *ptr,                    \
                                                 int##bits##_t compare, int##bits##_t swap)       \
  {                                                                                               \
    return __atomic_compare_exchange_n(ptr, &compare, swap, false, __ATOMIC_ACQ_REL,              \
                                       __ATOMIC_ACQUIRE);                                         \
  }

HG_ATOMIC_OF_(32)
HG_ATOMIC_OF_(64)

static HG_UTIL_INLINE void hg_atomic_fence(void)
{
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

#endif /* MERCURY_ATOMIC_H */
