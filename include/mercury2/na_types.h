/*
 * na_types.h - Mercury 2.4: the types of the network layer.
 */
#ifndef NA_TYPES_H
#define NA_TYPES_H

#include "na_config.h"

#include <limits.h>

typedef struct na_class na_class_t;
typedef struct na_context na_context_t;
typedef struct na_addr na_addr_t;
typedef struct na_op_id na_op_id_t;
typedef struct na_mem_handle na_mem_handle_t;
typedef uint32_t na_tag_t;
typedef uint64_t na_offset_t;

enum na_addr_format { NA_ADDR_UNSPEC, NA_ADDR_IPV4, NA_ADDR_IPV6, NA_ADDR_NATIVE };

enum na_traffic_class {
  NA_TC_UNSPEC,
  NA_TC_BEST_EFFORT,
  NA_TC_LOW_LATENCY,
  NA_TC_BULK_DATA,
  NA_TC_DEDICATED_ACCESS,
  NA_TC_SCAVENGER,
  NA_TC_NETWORK_CTRL
};

enum na_mem_type {
  NA_MEM_TYPE_HOST,
  NA_MEM_TYPE_CUDA,
  NA_MEM_TYPE_ROCM,
  NA_MEM_TYPE_ZE,
  NA_MEM_TYPE_MAX,
  NA_MEM_TYPE_UNKNOWN = NA_MEM_TYPE_MAX
};

/*
 * Preferences for a network. auth_key is the key of processes that connect over tcp. The other
 * members have no effect.
 */
struct na_init_info {
  const char *ip_subnet;
  const char *auth_key;
  size_t max_unexpected_size;
  size_t max_expected_size;
  uint8_t progress_mode;
  enum na_addr_format addr_format;
  uint8_t max_contexts;
  uint8_t thread_mode;
  bool request_mem_device;
  enum na_traffic_class traffic_class;
};

/* The earlier version of na_init_info, which hg_init_info contains. */
struct na_init_info_4_0 {
  const char *ip_subnet;
  const char *auth_key;
  size_t max_unexpected_size;
  size_t max_expected_size;
  uint8_t progress_mode;
  enum na_addr_format addr_format;
  uint8_t max_contexts;
  uint8_t thread_mode;
  bool request_mem_device;
};

struct na_segment {
  void *base;
  size_t len;
};

/* An entry in a list of networks. */
struct na_protocol_info {
  struct na_protocol_info *next;
  char *class_name;
  char *protocol_name;
  char *device_name;
};

#define NA_RETURN_VALUES \
  X(NA_SUCCESS)          \
  X(NA_PERMISSION)       \
  X(NA_NOENTRY)          \
  X(NA_INTERRUPT)        \
  X(NA_AGAIN)            \
  X(NA_NOMEM)            \
  X(NA_ACCESS)           \
  X(NA_FAULT)            \
  X(NA_BUSY)             \
  X(NA_EXIST)            \
  X(NA_NODEV)            \
  X(NA_INVALID_ARG)      \
  X(NA_PROTOCOL_ERROR)   \
  X(NA_OVERFLOW)         \
  X(NA_MSGSIZE)          \
  X(NA_PROTONOSUPPORT)   \
  X(NA_OPNOTSUPPORTED)   \
  X(NA_ADDRINUSE)        \
  X(NA_ADDRNOTAVAIL)     \
  X(NA_HOSTUNREACH)      \
  X(NA_TIMEOUT)          \
  X(NA_CANCELED)         \
  X(NA_IO_ERROR)         \
  X(NA_HOSTFIREWALL)     \
  X(NA_RETURN_MAX)
#define X(name) name,
typedef enum na_return { NA_RETURN_VALUES } na_return_t;
#undef X

/* The operation of a callback. */
#define NA_CB_TYPES                \
  X(NA_CB_SEND_UNEXPECTED)         \
  X(NA_CB_RECV_UNEXPECTED)         \
  X(NA_CB_MULTI_RECV_UNEXPECTED)   \
  X(NA_CB_SEND_EXPECTED)           \
  X(NA_CB_RECV_EXPECTED)           \
  X(NA_CB_PUT)                     \
  X(NA_CB_GET)                     \
  X(NA_CB_MAX)
#define X(name) name,
typedef enum na_cb_type { NA_CB_TYPES } na_cb_type_t;
#undef X

struct na_cb_info_recv_unexpected {
  size_t actual_buf_size;
  na_addr_t *source; /* free with NA_Addr_free; NULL if ret is neither NA_SUCCESS nor NA_MSGSIZE */
  na_tag_t tag;
};

struct na_cb_info_multi_recv_unexpected {
  size_t actual_buf_size;
  na_addr_t *source;
  na_tag_t tag;
  void *actual_buf;
  bool last;
};

struct na_cb_info_recv_expected {
  size_t actual_buf_size;
};

struct na_cb_info {
  union {
    struct na_cb_info_recv_unexpected recv_unexpected;
    struct na_cb_info_multi_recv_unexpected multi_recv_unexpected;
    struct na_cb_info_recv_expected recv_expected;
  } info;
  void *arg;
  na_cb_type_t type;
  na_return_t ret;
};

typedef void (*na_cb_t)(const struct na_cb_info *callback_info);

/* Flags of NA_Addr_deserialize, accepted without effect. */
enum na_addr_flags { NA_ADDR_FIREWALL = 1 << 0 };

#define NA_SEND (1 << 0)
#define NA_RECV (1 << 1)
#define NA_MULTI_RECV (1 << 2)
#define NA_ALLOC_MAX (1 << 3)
#define NA_OP_SINGLE 0x00
#define NA_OP_MULTI 0x01

#define NA_VERSION(major, minor) (((major) << 16) | (minor))
#define NA_MAJOR(version) ((version) >> 16)
#define NA_MINOR(version) ((version) & 0xffff)
#define NA_VERSION_GE(v1, v2) ((v1) >= (v2))
#define NA_VERSION_LT(v1, v2) ((v1) < (v2))

#define NA_OPT_MULTI_RECV (1 << 0)
#define NA_OPT_FIREWALL_ADDR (1 << 1)
#define NA_MAX_IDLE_TIME (3600 * 1000)
#define NA_CONTEXT_ID_MAX UINT8_MAX
#define NA_TAG_MAX UINT_MAX

#define NA_MEM_READ_ONLY 0x01
#define NA_MEM_WRITE_ONLY 0x02
#define NA_MEM_READWRITE 0x03

#define NA_NO_BLOCK 0x01
#define NA_NO_RETRY 0x02
#define NA_THREAD_MODE_SINGLE_CLS (0x01)
#define NA_THREAD_MODE_SINGLE_CTX (0x02)
#define NA_THREAD_MODE_SINGLE (NA_THREAD_MODE_SINGLE_CLS | NA_THREAD_MODE_SINGLE_CTX)

#ifdef __cplusplus
static inline struct na_init_info na_init_info_default(void)
{
  struct na_init_info info = {};
  info.max_contexts = 1;
  return info;
}
static inline struct na_init_info_4_0 na_init_info_4_0_default(void)
{
  struct na_init_info_4_0 info = {};
  info.max_contexts = 1;
  return info;
}
#define NA_INIT_INFO_INITIALIZER (na_init_info_default())
#define NA_INIT_INFO_INITIALIZER_4_0 (na_init_info_4_0_default())
#else
#define NA_INIT_INFO_INITIALIZER ((struct na_init_info){.max_contexts = 1})
#define NA_INIT_INFO_INITIALIZER_4_0 ((struct na_init_info_4_0){.max_contexts = 1})
#endif

#endif /* NA_TYPES_H */
