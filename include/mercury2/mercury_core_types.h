/* mercury_core_types.h - types and codes of Mercury 2.4 that both of its layers use. */
#ifndef MERCURY_CORE_TYPES_H
#define MERCURY_CORE_TYPES_H

#include "mercury_config.h"
#include "na_types.h"

typedef uint64_t hg_size_t;
typedef uint64_t hg_id_t;

typedef enum hg_checksum_level {
  HG_CHECKSUM_NONE,
  HG_CHECKSUM_RPC_HEADERS,
  HG_CHECKSUM_RPC_PAYLOAD
} hg_checksum_level_t;

/*
 * Options of a class. Initialise with HG_INIT_INFO_INITIALIZER. Options without a comment are
 * accepted and have no effect.
 */
struct hg_init_info {
  struct na_init_info_4_0 na_init_info; /* auth_key, see na_types.h */
  na_class_t *na_class; /* a class of NA_Initialize (../na.h) to build on */
  uint32_t request_post_init;
  int32_t request_post_incr;
  uint8_t auto_sm; /* over tcp: processes of one user on one host that both set it use shared
                      memory */
  const char *sm_info_string;
  hg_checksum_level_t checksum_level; /* RPC_PAYLOAD: checksum parameters even if
                                         PORTOLAN_RPC_CHECKSUM is none */
  uint8_t no_bulk_eager; /* bulk handles in parameters do not carry short read-only memory */
  uint8_t no_loopback;
  uint8_t stats;
  uint8_t no_multi_recv;
  uint8_t release_input_early;
  enum na_traffic_class traffic_class;
  bool no_overflow; /* fail with HG_OVERFLOW if parameters exceed a message; needs HG_Init_opt2 with
                       a version of at least HG_VERSION(2, 4) */
  unsigned int multi_recv_op_max;
  unsigned int multi_recv_copy_threshold;
};

/* Return codes. */
typedef enum hg_return {
  HG_SUCCESS,
  HG_PERMISSION,
  HG_NOENTRY,
  HG_INTERRUPT,
  HG_AGAIN,
  HG_NOMEM,
  HG_ACCESS,
  HG_FAULT,
  HG_BUSY,
  HG_EXIST,
  HG_NODEV,
  HG_INVALID_ARG,
  HG_PROTOCOL_ERROR,
  HG_OVERFLOW,
  HG_MSGSIZE,
  HG_PROTONOSUPPORT,
  HG_OPNOTSUPPORTED,
  HG_ADDRINUSE,
  HG_ADDRNOTAVAIL,
  HG_HOSTUNREACH,
  HG_TIMEOUT,
  HG_CANCELED,
  HG_IO_ERROR,
  HG_HOSTFIREWALL,
  HG_CHECKSUM_ERROR,
  HG_NA_ERROR,
  HG_OTHER_ERROR,
  HG_RETURN_MAX
} hg_return_t;

#define HG_RETURN_VALUES \
  X(HG_SUCCESS)          \
  X(HG_PERMISSION)       \
  X(HG_NOENTRY)          \
  X(HG_INTERRUPT)        \
  X(HG_AGAIN)            \
  X(HG_NOMEM)            \
  X(HG_ACCESS)           \
  X(HG_FAULT)            \
  X(HG_BUSY)             \
  X(HG_EXIST)            \
  X(HG_NODEV)            \
  X(HG_INVALID_ARG)      \
  X(HG_PROTOCOL_ERROR)   \
  X(HG_OVERFLOW)         \
  X(HG_MSGSIZE)          \
  X(HG_PROTONOSUPPORT)   \
  X(HG_OPNOTSUPPORTED)   \
  X(HG_ADDRINUSE)        \
  X(HG_ADDRNOTAVAIL)     \
  X(HG_HOSTUNREACH)      \
  X(HG_TIMEOUT)          \
  X(HG_CANCELED)         \
  X(HG_IO_ERROR)         \
  X(HG_HOSTFIREWALL)     \
  X(HG_CHECKSUM_ERROR)   \
  X(HG_NA_ERROR)         \
  X(HG_OTHER_ERROR)      \
  X(HG_RETURN_MAX)

/* Older names. */
#define HG_INVALID_PARAM HG_INVALID_ARG
#define HG_SIZE_ERROR HG_MSGSIZE
#define HG_NOMEM_ERROR HG_NOMEM
#define HG_NO_MATCH HG_NOENTRY

/* The kind of a callback. */
typedef enum hg_cb_type { HG_CB_LOOKUP, HG_CB_FORWARD, HG_CB_RESPOND, HG_CB_BULK } hg_cb_type_t;

typedef enum { HG_UNDEF, HG_INPUT, HG_OUTPUT } hg_op_t;

/* The operation of a proc. */
typedef enum { HG_ENCODE, HG_DECODE, HG_FREE } hg_proc_op_t;

#define HG_CORE_SM (1 << 0)

/* Counters of a class. */
struct hg_diag_counters {
  uint64_t rpc_req_sent_count;
  uint64_t rpc_req_recv_count;
  uint64_t rpc_resp_sent_count;
  uint64_t rpc_resp_recv_count;
  uint64_t rpc_req_extra_count;
  uint64_t rpc_resp_extra_count;
  uint64_t rpc_req_recv_active_count;
  uint64_t rpc_multi_recv_copy_count;
  uint64_t bulk_count;
};

#define HG_VERSION(major, minor) (((major) << 16) | (minor))
#define HG_MAJOR(version) ((version) >> 16)
#define HG_MINOR(version) ((version) & 0xffff)
#define HG_VERSION_GE(v1, v2) ((v1) >= (v2))
#define HG_VERSION_LT(v1, v2) ((v1) < (v2))

#define HG_MAX_IDLE_TIME (3600 * 1000)
#define HG_SIZE_MAX (UINT64_MAX)

#ifdef __cplusplus
static inline struct hg_init_info hg_init_info_default(void)
{
  struct hg_init_info info = {};
  info.na_init_info = NA_INIT_INFO_INITIALIZER_4_0;
  return info;
}
#define HG_INIT_INFO_INITIALIZER (hg_init_info_default())
#else
#define HG_INIT_INFO_INITIALIZER ((struct hg_init_info){.na_init_info = {.max_contexts = 1}})
#endif

#endif /* MERCURY_CORE_TYPES_H */
