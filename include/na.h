/*
 * na.h - the network abstraction of Mercury: classes, contexts, addresses, messages,
 * memory. Link with -lna (or -lmercury).
 *
 * Information strings: "mpi" reaches the ranks of the job, "mpi+dynamic" also jobs that
 * were launched apart, "self" only the process itself. Addresses are "mpi://RANK",
 * "mpi+dynamic://HOST:PORT" and "self". The first NA_Initialize over MPI and the last
 * NA_Finalize are collective over the job; nothing else is. The n-th class of a process
 * talks to the n-th of the others.
 *
 * Operations return at once. They end in NA_Progress; their callbacks run in
 * NA_Trigger, and nowhere else. Buffers belong to the operation until then.
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
typedef struct na_context na_context_t;       /* where operations end */
typedef struct na_addr *na_addr_t;            /* an address */
typedef struct na_mem_handle *na_mem_handle_t; /* memory that is exposed */
typedef struct na_op_id *na_op_id_t;          /* an operation */

#define NA_ADDR_NULL ((na_addr_t)0)
#define NA_MEM_HANDLE_NULL ((na_mem_handle_t)0)
#define NA_OP_ID_NULL ((na_op_id_t)0)
/* For an operation that will not be cancelled; NULL does as well. */
#define NA_OP_ID_IGNORE ((na_op_id_t *)1)

/* Longest address as text, with the terminating zero. */
#define NA_MAX_ADDR_LEN 1024
/* Longest time-out, in milliseconds: an hour. */
#define NA_MAX_IDLE_TIME (3600 * 1000)

/* A piece of memory. */
struct na_segment {
  na_ptr_t address;
  na_size_t size;
};

/* What others may do with memory. */
#define NA_MEM_READ_ONLY 0x01
#define NA_MEM_WRITE_ONLY 0x02
#define NA_MEM_READWRITE 0x03

/* What a call returns. The numbers are those of hg_return_t. */
typedef enum na_return {
  NA_FAIL = -1,          /* for no reason named below */
  NA_SUCCESS = 0,
  NA_NOENTRY = 1,        /* no such thing */
  NA_PROTOCOL_ERROR = 2, /* bytes that make no sense */
  NA_CHECKSUM_ERROR = 3, /* damaged bytes */
  NA_TIMEOUT = 4,        /* the time-out is over */
  NA_NOMEM = 5,          /* no memory */
  NA_INVALID_ARG = 6,    /* an argument makes no sense */
  NA_OVERFLOW = 7,       /* past the end */
  NA_MSGSIZE = 8,        /* a message that is too long */
  NA_ERROR = 9,          /* MPI has failed */
  NA_PERMISSION = 10,    /* not permitted */
  NA_INTERRUPT = 11,     /* interrupted */
  NA_AGAIN = 12,         /* to be tried again */
  NA_ACCESS = 13,        /* memory may not be used like that */
  NA_FAULT = 14,         /* no such memory */
  NA_BUSY = 15,          /* in use */
  NA_EXIST = 16,         /* exists already */
  NA_NODEV = 17,         /* no such network */
  NA_PROTONOSUPPORT = 18, /* no such protocol */
  NA_OPNOTSUPPORTED = 19, /* no such operation */
  NA_ADDRINUSE = 20,     /* the address is in use */
  NA_ADDRNOTAVAIL = 21,  /* no such address */
  NA_HOSTUNREACH = 22,   /* the peer cannot be reached */
  NA_CANCELED = 23,      /* cancelled */
  NA_IO_ERROR = 24       /* input or output has failed */
} na_return_t;

/* Other names of the same. */
#define NA_INVALID_PARAM NA_INVALID_ARG
#define NA_SIZE_ERROR NA_MSGSIZE
#define NA_PERMISSION_ERROR NA_PERMISSION
#define NA_NOMEM_ERROR NA_NOMEM
#define NA_ADDRINUSE_ERROR NA_ADDRINUSE
#define NA_ALIGNMENT_ERROR NA_ACCESS

/* What an operation was. */
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
  na_addr_t addr; /* to be freed by NA_Addr_free */
};

struct na_cb_info_recv_unexpected {
  na_size_t actual_buf_size;
  na_addr_t source; /* to be freed by NA_Addr_free */
  na_tag_t tag;
};

struct na_cb_info_recv_expected {
  na_size_t actual_buf_size;
};

/* What a callback is told. Where a message is longer than its buffer, ret is
 * NA_SIZE_ERROR, actual_buf_size is its length, and the buffer is untouched. */
struct na_cb_info {
  void *arg;          /* as it was given with the operation */
  na_return_t ret;    /* how the operation ended */
  na_cb_type_t type;
  union {
    struct na_cb_info_lookup lookup;
    struct na_cb_info_recv_unexpected recv_unexpected;
    struct na_cb_info_recv_expected recv_expected;
  } info;
};

typedef na_return_t (*na_cb_t)(const struct na_cb_info *callback_info);

/* ------------------------------------------------------------ classes, contexts */

/* NULL where that fails; portolan_last_error() says why. */
NA_EXPORT na_class_t *NA_Initialize(const char *info_string,
                                    na_bool_t listen) NA_WARN_UNUSED_RESULT;

/* NA_BUSY while the class has contexts. What is pending is cancelled. */
NA_EXPORT na_return_t NA_Finalize(na_class_t *na_class);

NA_EXPORT na_bool_t NA_Is_listening(na_class_t *na_class);

NA_EXPORT na_context_t *NA_Context_create(na_class_t *na_class);

/* What is pending in the context is cancelled; its callbacks do not run. */
NA_EXPORT na_return_t NA_Context_destroy(na_class_t *na_class, na_context_t *context);

/* -------------------------------------------------------------------- addresses */

NA_EXPORT na_return_t NA_Addr_lookup(na_class_t *na_class, na_context_t *context,
                                     na_cb_t callback, void *arg, const char *name,
                                     na_op_id_t *op_id);

/* The same at once, without a context. */
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

/* None is lost: what the destination does not take in is kept, there up to a window of
 * some hundred kilobytes or more, beyond that here, where the send then ends late. */
NA_EXPORT na_return_t NA_Msg_send_unexpected(na_class_t *na_class, na_context_t *context,
                                             na_cb_t callback, void *arg, const void *buf,
                                             na_size_t buf_size, na_addr_t dest, na_tag_t tag,
                                             na_op_id_t *op_id);

/* From anybody, with any tag. */
NA_EXPORT na_return_t NA_Msg_recv_unexpected(na_class_t *na_class, na_context_t *context,
                                             na_cb_t callback, void *arg, void *buf,
                                             na_size_t buf_size, na_op_id_t *op_id);

/* The receive is to be posted first. A message that comes before its receive is kept
 * for it, as an unexpected one is. */
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

/* When it returns nobody reads or writes the memory any more, whoever keeps its description. */
NA_EXPORT na_return_t NA_Mem_deregister(na_class_t *na_class, na_mem_handle_t mem_handle);

NA_EXPORT na_size_t NA_Mem_handle_get_serialize_size(
    na_class_t *na_class, na_mem_handle_t mem_handle) NA_WARN_UNUSED_RESULT;

NA_EXPORT na_return_t NA_Mem_handle_serialize(na_class_t *na_class, void *buf,
                                              na_size_t buf_size, na_mem_handle_t mem_handle);

/* NA_PROTOCOL_ERROR or NA_CHECKSUM_ERROR for bytes that are no handle. */
NA_EXPORT na_return_t NA_Mem_handle_deserialize(na_class_t *na_class,
                                                na_mem_handle_t *mem_handle, const void *buf,
                                                na_size_t buf_size);

/* NA_PERMISSION where a handle does not allow it, NA_ACCESS where the memory is not
 * registered, NA_OVERFLOW past an end. */
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

/* NA_SUCCESS when a callback waits, NA_TIMEOUT when none does. */
NA_EXPORT na_return_t NA_Progress(na_class_t *na_class, na_context_t *context,
                                  unsigned int timeout);

/* NA_TIMEOUT when no callback has run. */
NA_EXPORT na_return_t NA_Trigger(na_context_t *context, unsigned int timeout,
                                 unsigned int max_count, unsigned int *actual_count);

/* The operation ends with NA_CANCELED, unless it has ended. */
NA_EXPORT na_return_t NA_Cancel(na_class_t *na_class, na_context_t *context, na_op_id_t op_id);

/* Name and meaning of a code. */
NA_EXPORT const char *NA_Error_to_string(na_return_t errnum);

#ifdef __cplusplus
}
#endif

#endif /* NA_H */
