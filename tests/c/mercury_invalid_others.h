/*
 * mercury_invalid_others.h - faults of the other arguments of na.h and mercury*.h, and calls in the
 * wrong state: rows for mercury_invalid.c.
 */
#ifndef MERCURY_INVALID_OTHERS_H
#define MERCURY_INVALID_OTHERS_H

static na_class_t *alien;           /* a class over "self", and its context */
static na_context_t *alien_context;
static na_mem_handle_t read_only, unregistered;
static hg_bulk_t read_only_bulk;
static char none_after[32];         /* the address of a nonexistent rank */
static na_addr_t next;               /* the address of the next rank */
static na_op_id_t op;

#define NA(call, fault, code, expression) REFUSED("NA_" call, fault, code, NA_##expression)
#define HG(call, fault, code, expression) REFUSED("HG_" call, fault, code, HG_##expression)

static void na_names(void)
{
  static const struct { const char *name, *fault; int code; const char *code_name; } bad[] = {
#define NAME(text, fault, code) { text, fault, code, "`" #code "`" }
    NAME(none_after, "the address of a rank that is none", NA_ADDRNOTAVAIL),
    NAME("mpi://-1", "address mpi://-1", NA_INVALID_ARG),
    NAME("mpi://", "address mpi://", NA_INVALID_ARG),
    NAME("mpi://99999999999999999999", "address mpi://99999999999999999999", NA_INVALID_ARG),
    NAME("tcp://1", "an address of another network", NA_ADDRNOTAVAIL),
    NAME("", "an empty address", NA_INVALID_ARG),
    NAME("\xff\xfe", "an address that is not UTF-8", NA_INVALID_ARG),
    NAME(NULL, "a null address text", NA_INVALID_ARG),
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
#define LOOK(call, expression)                                                                  \
    if (row_begins(call, bad[i].fault, bad[i].code_name)) {                                     \
      row_ends(__FILE__, __LINE__, call, bad[i].fault, expression, bad[i].code, bad[i].code_name); \
      row_says(__FILE__, __LINE__, call, bad[i].fault);                                         \
    }
    LOOK("NA_Addr_lookup_wait", NA_Addr_lookup_wait(network, bad[i].name, &out.addr))
    LOOK("NA_Addr_lookup", NA_Addr_lookup(network, context, na_ended, NULL, bad[i].name, &op))
  }
}

static void na_arguments(void)
{
  rows_begin("na.h: classes and addresses");
  GIVES("NA_Initialize", "a null information string", "`NULL`", NA_Initialize(NULL, NA_FALSE) == NULL);
  GIVES("NA_Initialize", "an empty one", "`NULL`", NA_Initialize("", NA_FALSE) == NULL);
  GIVES("NA_Initialize", "a network that is none", "`NULL`", NA_Initialize("verbs", NA_FALSE) == NULL);
  NA("Finalize", "a class that has contexts", NA_BUSY, Finalize(network));
  NA("Progress", "a context of another class", NA_INVALID_ARG, Progress(network, alien_context, 0));
  NA("Context_destroy", "a context of another class", NA_INVALID_ARG, Context_destroy(alien, context));
  na_names();
  NA("Addr_lookup_wait", "a null pointer for the result", NA_INVALID_ARG, Addr_lookup_wait(network, "mpi://0", NULL));
  NA("Addr_self", "a null pointer for the result", NA_INVALID_ARG, Addr_self(network, NULL));
  NA("Addr_dup", "a null pointer for the result", NA_INVALID_ARG, Addr_dup(network, good.addr, NULL));
  NA("Addr_to_string", "a null buffer", NA_INVALID_ARG, Addr_to_string(network, NULL, 32, good.addr));
  NA("Addr_to_string", "a buffer of 3 bytes", NA_OVERFLOW, Addr_to_string(network, out.text, 3, good.addr));
  NA("Addr_to_string", "a buffer of 0 bytes", NA_OVERFLOW, Addr_to_string(network, out.text, 0, good.addr));
  NA("Cancel", "a null operation", NA_INVALID_ARG, Cancel(network, context, NULL));
  NA("Cancel", "an address of memory for the operation", NA_INVALID_ARG,
     Cancel(network, context, (na_op_id_t)(void *)here));
  GIVES("NA_Error_to_string", "code 4711", "a text with the number",
        strstr(NA_Error_to_string((na_return_t)4711), "4711") != NULL);
}

static void na_messages(void)
{
  const na_tag_t tag = LISTED ? 0 : NA_Msg_get_max_tag(network) + 1;
  const na_size_t over = LISTED ? 0 : NA_Msg_get_max_unexpected_size(network) + 1;
  const na_size_t over_expected = LISTED ? 0 : NA_Msg_get_max_expected_size(network) + 1;
  static unsigned char large[1 << 18];
  rows_begin("na.h: messages");
#define SEND(kind, fault, code, buf, size, tag)                       \
  NA("Msg_send_" #kind, fault, code,                                  \
     Msg_send_##kind(network, context, na_ended, NULL, buf, size, good.addr, tag, &op))
  SEND(unexpected, "a null buffer with a size", NA_INVALID_ARG, NULL, 8, 1);
  SEND(unexpected, "a size above the largest", NA_MSGSIZE, large, over, 1);
  SEND(unexpected, "a size of UINT64_MAX", NA_INVALID_ARG, here, UINT64_MAX, 1);
  SEND(unexpected, "a tag above the largest", NA_INVALID_ARG, here, 8, tag);
  SEND(expected, "a null buffer with a size", NA_INVALID_ARG, NULL, 8, 1);
  SEND(expected, "a size above the largest", NA_MSGSIZE, large, over_expected, 1);
  SEND(expected, "a size of UINT64_MAX", NA_INVALID_ARG, here, UINT64_MAX, 1);
  SEND(expected, "a tag above the largest", NA_INVALID_ARG, here, 8, tag);
  NA("Msg_recv_unexpected", "a null buffer with a size", NA_INVALID_ARG,
     Msg_recv_unexpected(network, context, na_ended, NULL, NULL, 8, &op));
  NA("Msg_recv_expected", "a null buffer with a size", NA_INVALID_ARG,
     Msg_recv_expected(network, context, na_ended, NULL, NULL, 8, good.addr, 1, &op));
  NA("Msg_recv_expected", "a tag above the largest", NA_INVALID_ARG,
     Msg_recv_expected(network, context, na_ended, NULL, here, 8, good.addr, tag, &op));
}

/* Returns the bytes of a handle with one bit flipped. */
static const void *spoilt(const unsigned char *from, size_t size, size_t bit_of)
{
  static unsigned char bytes[ROOM];
  memcpy(bytes, from, size);
  bytes[bit_of] ^= 1;
  return bytes;
}

static void na_memory(void)
{
  struct na_segment segment = { (na_ptr_t)here, 8 }, wrapping = { (na_ptr_t)-4, 8 }, nowhere = { 0, 8 };
  rows_begin("na.h: memory");
#define CREATE(fault, code, buf, size, flags, to) \
  NA("Mem_handle_create", fault, code, Mem_handle_create(network, buf, size, flags, to))
  CREATE("null memory with a size", NA_INVALID_ARG, NULL, 8, NA_MEM_READWRITE, &out.mem);
  CREATE("a size of UINT64_MAX", NA_INVALID_ARG, here, UINT64_MAX, NA_MEM_READWRITE, &out.mem);
  CREATE("flags 0", NA_INVALID_ARG, here, 8, 0, &out.mem);
  CREATE("flags 4", NA_INVALID_ARG, here, 8, 4, &out.mem);
  CREATE("a null pointer for the result", NA_INVALID_ARG, here, 8, NA_MEM_READWRITE, NULL);
#define SEGMENTS(fault, code, list, count) \
  NA("Mem_handle_create_segments", fault, code, \
     Mem_handle_create_segments(network, list, count, NA_MEM_READWRITE, &out.mem))
  SEGMENTS("a null array with a count", NA_INVALID_ARG, NULL, 1);
  SEGMENTS("no segments", NA_INVALID_ARG, &segment, 0);
  /* The bytes of the array wrap around to 0, or exceed every memory. */
  SEGMENTS("2^60 segments", NA_INVALID_ARG, &segment, (na_size_t)1 << 60);
  SEGMENTS("2^58 segments, more than memory can list", NA_NOMEM, &segment, (na_size_t)1 << 58);
  SEGMENTS("an array that is not aligned", NA_INVALID_ARG, (struct na_segment *)(void *)((char *)&segment + 4), 1);
  SEGMENTS("a segment that leaves the address space", NA_INVALID_ARG, &wrapping, 1);
  SEGMENTS("a segment at the null address", NA_INVALID_ARG, &nowhere, 1);
  NA("Mem_handle_serialize", "a null buffer", NA_INVALID_ARG, Mem_handle_serialize(network, NULL, ROOM, good.mem));
  NA("Mem_handle_serialize", "a buffer that is too short", NA_OVERFLOW,
     Mem_handle_serialize(network, packed, packed_size - 1, good.mem));
#define UNPACK(fault, code, to, buf, size) \
  NA("Mem_handle_deserialize", fault, code, Mem_handle_deserialize(network, to, buf, size))
  UNPACK("a null pointer for the result", NA_INVALID_ARG, NULL, packed, packed_size);
  UNPACK("a null buffer with a size", NA_INVALID_ARG, &out.mem, NULL, packed_size);
  UNPACK("a size of UINT64_MAX", NA_INVALID_ARG, &out.mem, packed, UINT64_MAX);
  UNPACK("no bytes", NA_PROTOCOL_ERROR, &out.mem, packed, 0);
  UNPACK("bytes that are cut off", NA_PROTOCOL_ERROR, &out.mem, packed, packed_size - 1);
  UNPACK("bytes that are damaged", NA_CHECKSUM_ERROR, &out.mem, spoilt(packed, packed_size, packed_size / 2),
         packed_size);
  UNPACK("bytes of another kind", NA_PROTOCOL_ERROR, &out.mem, packed_bulk, packed_bulk_size);
#define MOVE(fault, code, local, from, remote, at, size)                                                  \
  NA("Put", fault, code, Put(network, context, na_ended, NULL, local, from, remote, at, size, good.addr, &op)); \
  NA("Get", fault, code, Get(network, context, na_ended, NULL, local, from, remote, at, size, good.addr, &op))
  MOVE("an offset past the local end", NA_OVERFLOW, good.mem, 17, good.remote, 0, 8);
  MOVE("an offset past the remote end", NA_OVERFLOW, good.mem, 0, good.remote, 17, 8);
  MOVE("a size past the ends", NA_OVERFLOW, good.mem, 0, good.remote, 0, 17);
  MOVE("a size of UINT64_MAX", NA_OVERFLOW, good.mem, 8, good.remote, 8, UINT64_MAX);
  MOVE("an offset of UINT64_MAX", NA_OVERFLOW, good.mem, UINT64_MAX, good.remote, 0, 8);
  MOVE("local memory that is not registered", NA_ACCESS, unregistered, 0, good.remote, 0, 8);
  NA("Put", "remote memory that is read-only", NA_PERMISSION,
     Put(network, context, na_ended, NULL, good.mem, 0, read_only, 0, 8, good.addr, &op));
  NA("Get", "local memory that is read-only", NA_PERMISSION,
     Get(network, context, na_ended, NULL, read_only, 0, good.remote, 0, 8, good.addr, &op));
  if (LISTED || nproc > 1) {
    NA("Put", "remote memory that is not the peer's", NA_INVALID_ARG,
       Put(network, context, na_ended, NULL, good.mem, 0, good.remote, 0, 8, next, &op));
  }
}

/* ------------------------------------------------------------- calls of 2013 */

static int answered_twice(void)
{
  const hg_request_t request = request_of(kept_id);
  const hg_handle_t handle = kept;
  MUST(HG_Handler_start_output(handle, &out.params));
  const int rc = HG_Handler_start_output(handle, &out.params);
  MUST(HG_Handler_free(handle));
  MUST(HG_Request_free(request));
  return rc;
}

static void hg_arguments(void)
{
  rows_begin("mercury.h, mercury_handler.h: the calls of 2013");
  HG("Init", "a null class", HG_INVALID_ARG, Init(NULL));
  HG("Init", "a class that was finalised", HG_INVALID_ARG, Init(gone.cls));
  HG("Init", "a second time", HG_BUSY, Init(network));
  NA("Finalize", "a class that carries calls", NA_BUSY, Finalize(network));
  HG("Initialized", "no place for the flag", HG_INVALID_ARG, Initialized(NULL, NULL));
  GIVES("HG_Register", "a null name", "0", HG_Register(NULL, NULL, NULL, NULL) == 0);
  GIVES("HG_Register", "an empty name", "0", HG_Register("", NULL, NULL, NULL) == 0);
  HG("Registered", "a null name", HG_INVALID_ARG, Registered(NULL, &out.flag, &out.id));
  HG("Registered", "no place for the flag", HG_INVALID_ARG, Registered("one", NULL, &out.id));
  HG("Forward", "a number of an unregistered function", HG_NO_MATCH, Forward(good.addr, 123456, &out.params, NULL, &out.request));
  HG("Forward", "a null input", HG_INVALID_ARG, Forward(good.addr, one_id, NULL, NULL, &out.request));
  HG("Forward", "no place for the request", HG_INVALID_ARG, Forward(good.addr, one_id, &out.params, NULL, NULL));
  HG("Wait_all", "-1 requests", HG_INVALID_ARG, Wait_all(-1, &good.request, 0, NULL));
  HG("Wait_all", "a null array of requests", HG_INVALID_ARG, Wait_all(1, NULL, 0, NULL));
  HG("Version_get", "null results", HG_SUCCESS, Version_get(NULL, NULL, NULL));
  GIVES("HG_Error_to_string", "code 4711", "a text with the number",
        strstr(HG_Error_to_string((hg_return_t)4711), "4711") != NULL);
  HG("Handler_get_input", "a null pointer for the input", HG_INVALID_ARG, Handler_get_input(good.served, NULL));
  HG("Handler_free_input", "a null input", HG_INVALID_ARG, Handler_free_input(good.served, NULL));
  HG("Handler_get_input_buf", "no place for the buffer", HG_INVALID_ARG,
     Handler_get_input_buf(good.served, NULL, &out.length));
  HG("Handler_get_output_buf", "a null pointer for the size", HG_INVALID_ARG,
     Handler_get_output_buf(good.served, &out.ptr, NULL));
  HG("Handler_start_output", "a null output", HG_INVALID_ARG, Handler_start_output(good.served, NULL));
  REFUSED("HG_Handler_start_output", "a call that was answered", HG_INVALID_ARG, answered_twice());
  HG("Handler_start_response", "more bytes than its buffer has", HG_OVERFLOW,
     Handler_start_response(good.served, NULL, 1 << 20));
  HG("Handler_start_response", "a size of SIZE_MAX", HG_INVALID_ARG,
     Handler_start_response(good.served, here, SIZE_MAX));
}

static void bulk_arguments(void)
{
  void *blocks[2] = { here, NULL };
  size_t sizes[2] = { 8, 8 }, huge[1] = { SIZE_MAX }, much[1] = { (size_t)1 << 50 };
  rows_begin("mercury_bulk.h");
  HG("Bulk_init", "a null class", HG_INVALID_ARG, Bulk_init(NULL));
  HG("Bulk_init", "a second time", HG_BUSY, Bulk_init(network));
  HG("Bulk_initialized", "no place for the flag", HG_INVALID_ARG, Bulk_initialized(NULL, NULL));
#define MAKE(fault, code, count, ptrs, sizes, flags, to) \
  HG("Bulk_handle_create", fault, code, Bulk_handle_create(count, ptrs, sizes, flags, to))
  MAKE("null sizes", HG_INVALID_ARG, 1, blocks, NULL, HG_BULK_READWRITE, &out.bulk);
  MAKE("no segments", HG_INVALID_ARG, 0, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("2^61 segments", HG_INVALID_ARG, (size_t)1 << 61, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("SIZE_MAX segments", HG_INVALID_ARG, SIZE_MAX, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("SIZE_MAX segments to be allocated", HG_INVALID_ARG, SIZE_MAX, NULL, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("a null segment behind a good one", HG_INVALID_ARG, 2, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("a segment that leaves the address space", HG_INVALID_ARG, 1, blocks, huge, HG_BULK_READWRITE, &out.bulk);
  MAKE("memory to be allocated, SIZE_MAX bytes", HG_NOMEM, 1, NULL, huge, HG_BULK_READWRITE, &out.bulk);
  MAKE("memory to be allocated, 2^50 bytes", HG_NOMEM, 1, NULL, much, HG_BULK_READWRITE, &out.bulk);
  MAKE("flags 0", HG_INVALID_ARG, 1, blocks, sizes, 0, &out.bulk);
  MAKE("flags 4", HG_INVALID_ARG, 1, blocks, sizes, 4, &out.bulk);
  MAKE("a null pointer for the result", HG_INVALID_ARG, 1, blocks, sizes, HG_BULK_READWRITE, NULL);
#define ACCESS(fault, code, bulk, offset, size, flags, ptrs, lengths) \
  HG("Bulk_handle_access", fault, code, Bulk_handle_access(bulk, offset, size, flags, 1, ptrs, lengths, &out.count))
  ACCESS("an offset past the end", HG_OVERFLOW, good.bulk, 17, 1, HG_BULK_READWRITE, &out.ptr, &out.length);
  ACCESS("a size past the end", HG_OVERFLOW, good.bulk, 8, 9, HG_BULK_READWRITE, &out.ptr, &out.length);
  ACCESS("a size of SIZE_MAX", HG_OVERFLOW, good.bulk, 8, SIZE_MAX, HG_BULK_READWRITE, &out.ptr, &out.length);
  HG("Bulk_handle_serialize", "a null buffer", HG_INVALID_ARG, Bulk_handle_serialize(NULL, ROOM, good.bulk));
  HG("Bulk_handle_serialize", "a buffer that is too short", HG_OVERFLOW,
     Bulk_handle_serialize(packed_bulk, packed_bulk_size - 1, good.bulk));
#define UNPACK_BULK(fault, code, to, buf, size) \
  HG("Bulk_handle_deserialize", fault, code, Bulk_handle_deserialize(to, buf, size))
  UNPACK_BULK("a null pointer for the result", HG_INVALID_ARG, NULL, packed_bulk, packed_bulk_size);
  UNPACK_BULK("a null buffer with a size", HG_INVALID_ARG, &out.bulk, NULL, packed_bulk_size);
  UNPACK_BULK("a size of SIZE_MAX", HG_INVALID_ARG, &out.bulk, packed_bulk, SIZE_MAX);
  UNPACK_BULK("no bytes", HG_PROTOCOL_ERROR, &out.bulk, packed_bulk, 0);
  UNPACK_BULK("bytes that are cut off", HG_PROTOCOL_ERROR, &out.bulk, packed_bulk, packed_bulk_size - 1);
  UNPACK_BULK("bytes that are damaged", HG_CHECKSUM_ERROR, &out.bulk,
              spoilt(packed_bulk, packed_bulk_size, packed_bulk_size / 2), packed_bulk_size);
  UNPACK_BULK("bytes of another kind", HG_PROTOCOL_ERROR, &out.bulk, packed, packed_size);
#define TRANSFER_ROWS(fault, code, op, origin, at, local, from, size) \
  HG("Bulk_transfer", fault, code, Bulk_transfer(op, good.addr, origin, at, local, from, size, &out.ptr))
  TRANSFER_ROWS("an operation that is none", HG_INVALID_ARG, (hg_bulk_op_t)2, good.origin, 0, good.bulk, 0, 8);
  TRANSFER_ROWS("operation -1", HG_INVALID_ARG, (hg_bulk_op_t)-1, good.origin, 0, good.bulk, 0, 8);
  TRANSFER_ROWS("an offset past the origin's end", HG_OVERFLOW, HG_BULK_PULL, good.origin, 17, good.bulk, 0, 8);
  TRANSFER_ROWS("an offset past the local end", HG_OVERFLOW, HG_BULK_PULL, good.origin, 0, good.bulk, 17, 8);
  TRANSFER_ROWS("a size past the ends", HG_OVERFLOW, HG_BULK_PULL, good.origin, 0, good.bulk, 0, 17);
  TRANSFER_ROWS("a size of SIZE_MAX", HG_OVERFLOW, HG_BULK_PUSH, good.origin, 8, good.bulk, 8, SIZE_MAX);
  TRANSFER_ROWS("pushing to what is read-only", HG_PERMISSION, HG_BULK_PUSH, read_only_bulk, 0, good.bulk, 0, 8);
  TRANSFER_ROWS("pulling into what is read-only", HG_PERMISSION, HG_BULK_PULL, good.origin, 0, read_only_bulk, 0, 8);
  HG("Bulk_transfer", "no place for the request", HG_INVALID_ARG,
     Bulk_transfer(HG_BULK_PULL, good.addr, good.origin, 0, good.bulk, 0, 8, NULL));
}

#endif /* MERCURY_INVALID_OTHERS_H */
