/* mercury_types.h - types, constants and error codes shared by the Mercury headers. */
#ifndef MERCURY_TYPES_H
#define MERCURY_TYPES_H

#include "mercury_config.h"
#include "na.h"

typedef uint32_t hg_id_t;          /* number of a registered function */
typedef hg_bool_t hg_status_t;     /* whether an operation is complete */
typedef int32_t hg_error_t;        /* an error code */
typedef void *hg_request_t;        /* a call in progress */
typedef void *hg_handle_t;         /* a call at its server */
typedef void *hg_proc_t;           /* an encoder or decoder of parameters */
typedef void *hg_bulk_t;           /* registered memory */
typedef void *hg_bulk_request_t;   /* a transfer in progress */

typedef struct hg_class hg_class_t; /* a class of functions, as a proc knows it */

#define HG_REQUEST_NULL ((hg_request_t)0)
#define HG_HANDLE_NULL ((hg_handle_t)0)
#define HG_PROC_NULL ((hg_proc_t)0)
#define HG_BULK_NULL ((hg_bulk_t)0)
#define HG_BULK_REQUEST_NULL ((hg_bulk_request_t)0)

/* Passed to a call to ignore the status. */
#define HG_STATUS_IGNORE ((hg_status_t *)1)

/* Maximum timeout in milliseconds: one hour. */
#define HG_MAX_IDLE_TIME (3600 * 1000)

/* Return codes. */
typedef enum hg_return {
  HG_FAIL = -1,       /* another failure */
  HG_SUCCESS = 0,
  HG_NO_MATCH,        /* no such function */
  HG_PROTOCOL_ERROR,  /* invalid bytes */
  HG_CHECKSUM_ERROR,  /* checksums differ, or not all parameters were decoded */
  HG_TIMEOUT,         /* timeout expired */
  HG_NOMEM,           /* out of memory */
  HG_INVALID_ARG,     /* invalid argument */
  HG_OVERFLOW,        /* past the end of a buffer */
  HG_MSGSIZE,         /* message too long */
  HG_NA_ERROR,        /* failure of the network layer */
  HG_PERMISSION,      /* not permitted */
  HG_INTERRUPT,       /* interrupted */
  HG_AGAIN,           /* try again */
  HG_ACCESS,          /* access to the memory not permitted */
  HG_FAULT,           /* no such memory */
  HG_BUSY,            /* in use */
  HG_EXIST,           /* exists already */
  HG_NODEV,           /* no such network */
  HG_PROTONOSUPPORT,  /* no such protocol */
  HG_OPNOTSUPPORTED,  /* no such operation */
  HG_ADDRINUSE,       /* address in use */
  HG_ADDRNOTAVAIL,    /* no such address */
  HG_HOSTUNREACH,     /* peer unreachable */
  HG_CANCELED,        /* cancelled */
  HG_IO_ERROR,        /* input/output error */
  HG_RETURN_MAX
} hg_return_t;

/* Alternative names. */
#define HG_NOENTRY HG_NO_MATCH
#define HG_INVALID_PARAM HG_INVALID_ARG
#define HG_SIZE_ERROR HG_MSGSIZE
#define HG_NOMEM_ERROR HG_NOMEM
#define HG_OTHER_ERROR HG_FAIL

/*
 * What a proc does with parameters: encode them, decode them, or free what decoding has allocated.
 */
typedef enum hg_proc_op {
  HG_ENCODE,
  HG_DECODE,
  HG_FREE,
  HG_INVALID
} hg_proc_op_t;

/* The checksum that a proc computes. */
typedef enum hg_proc_hash {
  HG_CRC16,   /* crc16: CRC-16/T10-DIF */
  HG_CRC64,   /* crc64: CRC-64/XZ */
  HG_NOHASH,  /* none */
  HG_CRC32,   /* crc32c: CRC-32/ISCSI */
  HG_ADLER32  /* adler32 */
} hg_proc_hash_t;

#define HG_CRC32C HG_CRC32

/* Encodes, decodes or frees the parameters in a struct. */
typedef hg_return_t (*hg_proc_cb_t)(hg_proc_t proc, void *data);

/* Runs a call at its server. */
typedef hg_return_t (*hg_rpc_cb_t)(hg_handle_t handle);
typedef hg_rpc_cb_t hg_handler_cb_t;

#endif /* MERCURY_TYPES_H */
