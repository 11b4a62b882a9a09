/*
 * na.h - the network abstraction of Mercury: classes, contexts, addresses, messages, memory. Link
 * with -lna (or -lmercury).
 *
 * Information strings: "mpi" reaches the ranks of the job, "na+sm" processes of the same user on
 * this host, "tcp" processes on any host, and "self" only this process. Addresses are "mpi://RANK",
 * "na+sm://PID-N", "tcp://HOST:PORT" and "self". The first NA_Initialize over MPI and the last
 * NA_Finalize over MPI are collective over the job; no other call is. Over MPI, the n-th class of a
 * process communicates with the n-th class of other processes.
 *
 * Operations return immediately. They complete in NA_Progress, and their callbacks run only in
 * NA_Trigger. Until then the operation uses its buffers.
 */
#ifndef NA_H
#define NA_H

#include "mercury_config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NA_EXPORT extern
#define NA_WARN_UNUSED_RESULT HG_WARN_UNUSED_RESULT

typedef int8_t na_int8_t;
typedef uint8_t na_uint8_t;
typedef int16_t na_int16_t;
typedef uint16_t na_uint16_t;
typedef int32_t na_int32_t;
typedef uint32_t na_uint32_t;
typedef int64_t na_int64_t;
typedef uint64_t na_uint64_t;
typedef uint8_t na_bool_t;
typedef uint64_t na_ptr_t;
typedef uint64_t na_size_t;
typedef uint64_t na_offset_t;
typedef uint32_t na_tag_t;

#define NA_TRUE 1
#define NA_FALSE 0

typedef struct na_class na_class_t;           /* a network */
typedef struct na_context na_context_t;       /* progress and completions of operations */
typedef struct na_addr *na_addr_t;            /* an address */
typedef struct na_mem_handle *na_mem_handle_t; /* registered memory */
typedef struct na_op_id *na_op_id_t;          /* an operation */

#define NA_ADDR_NULL ((na_addr_t)0)
#define NA_MEM_HANDLE_NULL ((na_mem_handle_t)0)
#define NA_OP_ID_NULL ((na_op_id_t)0)
/* For an operation that will not be cancelled. NULL works too. */
#define NA_OP_ID_IGNORE ((na_op_id_t *)1)

/* Maximum length of an address as text, including the terminating zero. */
#define NA_MAX_ADDR_LEN 1024
/* Maximum timeout in milliseconds: one hour. */
#define NA_MAX_IDLE_TIME (3600 * 1000)

/* A segment of memory. */
struct na_segment {
  na_ptr_t address;
  na_size_t size;
};

/* Accesses that other processes may make to memory. */
#define NA_MEM_READ_ONLY 0x01
#define NA_MEM_WRITE_ONLY 0x02
#define NA_MEM_READWRITE 0x03

/* Return codes. The numbers match those of hg_return_t. */
typedef enum na_return {
  NA_FAIL = -1,          /* another failure */
  NA_SUCCESS = 0,
  NA_NOENTRY = 1,        /* no such entry */
  NA_PROTOCOL_ERROR = 2, /* invalid bytes */
  NA_CHECKSUM_ERROR = 3, /* damaged bytes */
  NA_TIMEOUT = 4,        /* timeout expired */
  NA_NOMEM = 5,          /* out of memory */
  NA_INVALID_ARG = 6,    /* invalid argument */
  NA_OVERFLOW = 7,       /* past the end of a buffer */
  NA_MSGSIZE = 8,        /* message too long */
  NA_ERROR = 9,          /* MPI failed */
  NA_PERMISSION = 10,    /* not permitted */
  NA_INTERRUPT = 11,     /* interrupted */
  NA_AGAIN = 12,         /* try again */
  NA_ACCESS = 13,        /* access to the memory not permitted */
  NA_FAULT = 14,         /* no such memory */
  NA_BUSY = 15,          /* in use */
  NA_EXIST = 16,         /* exists already */
  NA_NODEV = 17,         /* no such network */
  NA_PROTONOSUPPORT = 18, /* no such protocol */
  NA_OPNOTSUPPORTED = 19, /* no such operation */
  NA_ADDRINUSE = 20,     /* address in use */
  NA_ADDRNOTAVAIL = 21,  /* no such address */
  NA_HOSTUNREACH = 22,   /* peer unreachable */
  NA_CANCELED = 23,      /* cancelled */
  NA_IO_ERROR = 24       /* input/output error */
} na_return_t;

/* Alternative names. */
#define NA_INVALID_PARAM NA_INVALID_ARG
#define NA_SIZE_ERROR NA_MSGSIZE
#define NA_PERMISSION_ERROR NA_PERMISSION
#define NA_NOMEM_ERROR NA_NOMEM
#define NA_ADDRINUSE_ERROR NA_ADDRINUSE
#define NA_ALIGNMENT_ERROR NA_ACCESS

/* The kind of an operation. */
typedef enum na_cb_type {
  NA_CB_LOOKUP,
  NA_CB_SEND_UNEXPECTED,
  NA_CB_RECV_UNEXPECTED,
  NA_CB_SEND_EXPECTED,
  NA_CB_RECV_EXPECTED,
  NA_CB_PUT,
  NA_CB_GET
} na_cb_type_t;

struct na_cb_info_lookup {
  na_addr_t addr; /* free with NA_Addr_free */
};

struct na_cb_info_recv_unexpected {
  na_size_t actual_buf_size;
  na_addr_t source; /* free with NA_Addr_free */
  na_tag_t tag;
};

struct na_cb_info_recv_expected {
  na_size_t actual_buf_size;
};

/*
 * The argument of a callback. If a message is longer than its buffer, ret is NA_SIZE_ERROR,
 * actual_buf_size is the length of the message, and the buffer is unchanged.
 */
struct na_cb_info {
  void *arg;          /* the arg passed to the operation */
  na_return_t ret;    /* result of the operation */
  na_cb_type_t type;
  union {
    struct na_cb_info_lookup lookup;
    struct na_cb_info_recv_unexpected recv_unexpected;
    struct na_cb_info_recv_expected recv_expected;
  } info;
};

typedef na_return_t (*na_cb_t)(const struct na_cb_info *callback_info);

/* ------------------------------------------------------------ classes, contexts */

/* Opens a network. Returns NULL on failure; portolan_last_error() returns the reason. */
NA_EXPORT na_class_t *NA_Initialize(const char *info_string,
                                    na_bool_t listen) NA_WARN_UNUSED_RESULT;

/* Closes a network. Returns NA_BUSY if the class still has contexts. Cancels pending operations. */
NA_EXPORT na_return_t NA_Finalize(na_class_t *na_class);

NA_EXPORT na_bool_t NA_Is_listening(na_class_t *na_class);

NA_EXPORT na_context_t *NA_Context_create(na_class_t *na_class);

/*
 * Destroys a context. Cancels its pending operations; their callbacks do not run. Returns NA_BUSY
 * while a put or get of the context is in progress.
 */
NA_EXPORT na_return_t NA_Context_destroy(na_class_t *na_class, na_context_t *context);

/* -------------------------------------------------------------------- addresses */

NA_EXPORT na_return_t NA_Addr_lookup(na_class_t *na_class, na_context_t *context,
                                     na_cb_t callback, void *arg, const char *name,
                                     na_op_id_t *op_id);

/* Like NA_Addr_lookup, but returns the address directly and needs no context. */
NA_EXPORT na_return_t NA_Addr_lookup_wait(na_class_t *na_class, const char *name,
                                          na_addr_t *addr);

NA_EXPORT na_return_t NA_Addr_free(na_class_t *na_class, na_addr_t addr);

NA_EXPORT na_return_t NA_Addr_self(na_class_t *na_class, na_addr_t *addr);

NA_EXPORT na_return_t NA_Addr_dup(na_class_t *na_class, na_addr_t addr, na_addr_t *new_addr);

NA_EXPORT na_bool_t NA_Addr_is_self(na_class_t *na_class, na_addr_t addr);

NA_EXPORT na_return_t NA_Addr_to_string(na_class_t *na_class, char *buf, na_size_t buf_size,
                                        na_addr_t addr);

/* --------------------------------------------------------------------- messages */

NA_EXPORT na_size_t NA_Msg_get_max_expected_size(na_class_t *na_class) NA_WARN_UNUSED_RESULT;

NA_EXPORT na_size_t NA_Msg_get_max_unexpected_size(na_class_t *na_class) NA_WARN_UNUSED_RESULT;

NA_EXPORT na_tag_t NA_Msg_get_max_tag(na_class_t *na_class) NA_WARN_UNUSED_RESULT;

/*
 * Sends a message. No message is lost. Messages without a receive are buffered at the destination
 * up to a window of at least 256 KiB, and beyond that at the sender, whose send then completes
 * later.
 */
NA_EXPORT na_return_t NA_Msg_send_unexpected(na_class_t *na_class, na_context_t *context,
                                             na_cb_t callback, void *arg, const void *buf,
                                             na_size_t buf_size, na_addr_t dest, na_tag_t tag,
                                             na_op_id_t *op_id);

/* Receives from any process, with any tag. */
NA_EXPORT na_return_t NA_Msg_recv_unexpected(na_class_t *na_class, na_context_t *context,
                                             na_cb_t callback, void *arg, void *buf,
                                             na_size_t buf_size, na_op_id_t *op_id);

/*
 * Post the receive first. A message that arrives before its receive is buffered like an unexpected
 * message.
 */
NA_EXPORT na_return_t NA_Msg_send_expected(na_class_t *na_class, na_context_t *context,
                                           na_cb_t callback, void *arg, const void *buf,
                                           na_size_t buf_size, na_addr_t dest, na_tag_t tag,
                                           na_op_id_t *op_id);

NA_EXPORT na_return_t NA_Msg_recv_expected(na_class_t *na_class, na_context_t *context,
                                           na_cb_t callback, void *arg, void *buf,
                                           na_size_t buf_size, na_addr_t source, na_tag_t tag,
                                           na_op_id_t *op_id);

/* ----------------------------------------------------------------------- memory */

NA_EXPORT na_return_t NA_Mem_handle_create(na_class_t *na_class, void *buf, na_size_t buf_size,
                                           unsigned long flags, na_mem_handle_t *mem_handle);

NA_EXPORT na_return_t NA_Mem_handle_create_segments(na_class_t *na_class,
                                                    struct na_segment *segments,
                                                    na_size_t segment_count,
                                                    unsigned long flags,
                                                    na_mem_handle_t *mem_handle);

NA_EXPORT na_return_t NA_Mem_handle_free(na_class_t *na_class, na_mem_handle_t mem_handle);

NA_EXPORT na_return_t NA_Mem_register(na_class_t *na_class, na_mem_handle_t mem_handle);

/*
 * On return no process accesses the memory any more, even if it still has a description of the
 * memory.
 */
NA_EXPORT na_return_t NA_Mem_deregister(na_class_t *na_class, na_mem_handle_t mem_handle);

NA_EXPORT na_size_t NA_Mem_handle_get_serialize_size(
    na_class_t *na_class, na_mem_handle_t mem_handle) NA_WARN_UNUSED_RESULT;

NA_EXPORT na_return_t NA_Mem_handle_serialize(na_class_t *na_class, void *buf,
                                              na_size_t buf_size, na_mem_handle_t mem_handle);

/* Returns NA_PROTOCOL_ERROR or NA_CHECKSUM_ERROR if the bytes are not a memory handle. */
NA_EXPORT na_return_t NA_Mem_handle_deserialize(na_class_t *na_class,
                                                na_mem_handle_t *mem_handle, const void *buf,
                                                na_size_t buf_size);

/*
 * NA_Put and NA_Get fail with NA_PERMISSION if a handle does not allow the access, NA_ACCESS if the
 * memory is not registered, and NA_OVERFLOW if a range exceeds the memory. If only the owner of the
 * remote memory knows the error, the callback receives it.
 */
NA_EXPORT na_return_t NA_Put(na_class_t *na_class, na_context_t *context, na_cb_t callback,
                             void *arg, na_mem_handle_t local_mem_handle,
                             na_offset_t local_offset, na_mem_handle_t remote_mem_handle,
                             na_offset_t remote_offset, na_size_t data_size,
                             na_addr_t remote_addr, na_op_id_t *op_id);

NA_EXPORT na_return_t NA_Get(na_class_t *na_class, na_context_t *context, na_cb_t callback,
                             void *arg, na_mem_handle_t local_mem_handle,
                             na_offset_t local_offset, na_mem_handle_t remote_mem_handle,
                             na_offset_t remote_offset, na_size_t data_size,
                             na_addr_t remote_addr, na_op_id_t *op_id);

/* --------------------------------------------------------------------- progress */

/* Returns NA_SUCCESS if a callback is ready, or NA_TIMEOUT if none is. */
NA_EXPORT na_return_t NA_Progress(na_class_t *na_class, na_context_t *context,
                                  unsigned int timeout);

/* Returns NA_TIMEOUT if no callback has run. */
NA_EXPORT na_return_t NA_Trigger(na_context_t *context, unsigned int timeout,
                                 unsigned int max_count, unsigned int *actual_count);

/* Cancels an operation, which ends with NA_CANCELED unless it has already ended. */
NA_EXPORT na_return_t NA_Cancel(na_class_t *na_class, na_context_t *context, na_op_id_t op_id);

/* Returns the name and the meaning of a code. */
NA_EXPORT const char *NA_Error_to_string(na_return_t errnum);

#ifdef __cplusplus
}
#endif

#endif /* NA_H */
