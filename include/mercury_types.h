/*
 * mercury_types.h - types, constants and error codes that the Mercury headers share.
 */
#ifndef MERCURY_TYPES_H
#define MERCURY_TYPES_H

#include "mercury_config.h"
#include "na.h"

typedef uint32_t hg_id_t;          /* a registered function */
typedef hg_bool_t hg_status_t;     /* whether an operation is complete */
typedef int32_t hg_error_t;        /* an error code */
typedef void *hg_request_t;        /* a call under way */
typedef void *hg_handle_t;         /* a call at its server */
typedef void *hg_proc_t;           /* a pass over parameters */
typedef void *hg_bulk_t;           /* memory that is exposed */
typedef void *hg_bulk_request_t;   /* a transfer under way */

typedef struct hg_class hg_class_t; /* a class of functions, for today's calls */

#define HG_REQUEST_NULL ((hg_request_t)0)
#define HG_HANDLE_NULL ((hg_handle_t)0)
#define HG_PROC_NULL ((hg_proc_t)0)
#define HG_BULK_NULL ((hg_bulk_t)0)
#define HG_BULK_REQUEST_NULL ((hg_bulk_request_t)0)

/* For a status that is not wanted. */
#define HG_STATUS_IGNORE ((hg_status_t *)1)

/* The longest time-out, in milliseconds: an hour. */
#define HG_MAX_IDLE_TIME (3600 * 1000)

/* What a call returns. */
typedef enum hg_return {
  HG_FAIL = -1,       /* for no reason named below */
  HG_SUCCESS = 0,
  HG_NO_MATCH,        /* no such function */
  HG_PROTOCOL_ERROR,  /* bytes that make no sense */
  HG_CHECKSUM_ERROR,  /* checksums differ, or not all parameters were decoded */
  HG_TIMEOUT,         /* the time-out is over */
  HG_NOMEM,           /* no memory */
  HG_INVALID_ARG,     /* an argument makes no sense */
  HG_OVERFLOW,        /* past the end of a buffer */
  HG_MSGSIZE,         /* a message that is too long */
  HG_NA_ERROR,        /* the network layer has failed */
  HG_PERMISSION,      /* not permitted */
  HG_INTERRUPT,       /* interrupted */
  HG_AGAIN,           /* to be tried again */
  HG_ACCESS,          /* memory may not be used like that */
  HG_FAULT,           /* no such memory */
  HG_BUSY,            /* in use */
  HG_EXIST,           /* exists already */
  HG_NODEV,           /* no such network */
  HG_PROTONOSUPPORT,  /* no such protocol */
  HG_OPNOTSUPPORTED,  /* no such operation */
  HG_ADDRINUSE,       /* the address is in use */
  HG_ADDRNOTAVAIL,    /* no such address */
  HG_HOSTUNREACH,     /* the peer cannot be reached */
  HG_CANCELED,        /* cancelled */
  HG_IO_ERROR,        /* input or output has failed */
  HG_RETURN_MAX
} hg_return_t;

/* Other names of the same. */
#define HG_NOENTRY HG_NO_MATCH
#define HG_INVALID_PARAM HG_INVALID_ARG
#define HG_SIZE_ERROR HG_MSGSIZE
#define HG_NOMEM_ERROR HG_NOMEM
#define HG_OTHER_ERROR HG_FAIL

/* What a proc does with parameters: makes bytes of them, makes them of bytes, or
 * frees what that has allocated. */
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

/* Goes over the parameters in a struct. */
typedef hg_return_t (*hg_proc_cb_t)(hg_proc_t proc, void *data);

/* Runs a call at its server. */
typedef hg_return_t (*hg_rpc_cb_t)(hg_handle_t handle);
typedef hg_rpc_cb_t hg_handler_cb_t;

#endif /* MERCURY_TYPES_H */
