/*
 * mercury2_invalid.c - bad input to the calls of Mercury 2.4, from tables.
 *
 *   mercury2_invalid             each call with each fault that applies to it, during and after the
 *                                life of a class
 *   mercury2_invalid markdown    prints the tables as in docs/errors-mercury.md; needs no launcher
 *
 * A refused call starts nothing, writes nothing and sets its error text. mercury_invalid.c has the
 * calls of 2013.
 */
// TEST: faults
#include "mercury2_check.h"

#include <mercury_core.h>
#include <na.h>

#include "refusals.h"
#include "mercury2_invalid_handles.h"

static na_class_t *alien;           /* another class, and its context */
static na_context_t *alien_context;
static na_mem_handle_t *read_only, *unregistered;
static hg_bulk_t read_only_bulk;
static hg_proc_t encoder, made_proc;
static long long number = 77;
static unsigned char proc_bytes[64];

#define HG(call, fault, code, expression) REFUSED("HG_" call, fault, code, HG_##expression)
#define NA(call, fault, code, expression) REFUSED("NA_" call, fault, code, NA_##expression)

/* ------------------------------------------------------------ calls in a wrong state */

static int answered_twice(void)
{
  const hg_handle_t made = called(kept_id), served = kept;
  MUST(HG_Respond(served, NULL, NULL, &out.params));
  const int rc = HG_Respond(served, NULL, NULL, &out.params);
  forget(made, served);
  return rc;
}

static int on_fresh(int (*call)(hg_handle_t))
{
  hg_handle_t handle;
  MUST(HG_Create(good.ctx, good.addr, one_id, &handle));
  const int rc = call(handle);
  MUST(HG_Destroy(handle));
  return rc;
}

static int get_output(hg_handle_t handle) { return HG_Get_output(handle, &out.params); }
static int get_output_buf(hg_handle_t handle) { return HG_Get_output_buf(handle, &out.ptr, &out.size); }

static int destroyed_too_often(void)
{
  hg_handle_t handle;
  MUST(HG_Create(good.ctx, good.addr, one_id, &handle));
  MUST(HG_Ref_incr(handle));
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(handle));
  return HG_Destroy(handle);
}

/* Forwards a handle whose call is under way, resets it, or destroys its context. */
static int under_way(char what)
{
  hg_handle_t handle;
  MUST(HG_Create(good.ctx, good.addr, one_id, &handle));
  MUST(HG_Forward(handle, hg_ended, NULL, &out.params));
  const int rc = what == 'f'   ? HG_Forward(handle, hg_ended, NULL, &out.params)
                 : what == 'r' ? HG_Reset(handle, good.addr, one_id)
                               : HG_Context_destroy(good.ctx);
  one_more(HG_SUCCESS);
  MUST(HG_Destroy(handle));
  ended--;
  return rc;
}

static int without_a_proc(hg_return_t (*call)(hg_handle_t, void *))
{
  const hg_handle_t made = called(bare_id), served = kept;
  const int rc = call(served, &out.params);
  forget(made, served);
  return rc;
}

/* ------------------------------------------------------------------------ arguments */

static void hg_arguments(void)
{
  const struct { const char *name, *fault; int code; const char *code_name; } names[] = {
#define NAME(text, fault, code) { text, fault, code, "`" #code "`" }
    NAME("mpi://1000000", "the address of a rank that is none", HG_ADDRNOTAVAIL),
    NAME("mpi://-1", "address mpi://-1", HG_INVALID_ARG),
    NAME("mpi://99999999999999999999", "address mpi://99999999999999999999", HG_INVALID_ARG),
    NAME("tcp://1", "an address of another network", HG_ADDRNOTAVAIL),
    NAME("", "an empty address", HG_INVALID_ARG),
    NAME("\xff\xfe", "an address that is not UTF-8", HG_INVALID_ARG),
    NAME(NULL, "a null address text", HG_INVALID_ARG),
  };
  rows_begin("mercury.h");
  GIVES("HG_Init", "a null information string", "`NULL`", HG_Init(NULL, HG_FALSE) == NULL);
  GIVES("HG_Init", "an empty one", "`NULL`", HG_Init("", HG_FALSE) == NULL);
  GIVES("HG_Init", "a network that is none", "`NULL`", HG_Init("verbs", HG_FALSE) == NULL);
  GIVES("HG_Init_opt", "a network class that was finalised", "`NULL`",
        HG_Init_opt("self", HG_FALSE, &(struct hg_init_info){ .na_class = gone.ncls }) == NULL);
  GIVES("HG_Init_opt2", "a version to come", "`NULL`", HG_Init_opt2("self", HG_TRUE, HG_VERSION(2, 5), NULL) == NULL);
  HG("Finalize", "a class that has contexts", HG_BUSY, Finalize(good.cls));
  HG("Class_get_counters", "a null pointer for the result", HG_INVALID_ARG, Class_get_counters(good.cls, NULL));
  HG("Class_set_input_offset", "an offset above the capacity of a message", HG_INVALID_ARG,
     Class_set_input_offset(good.cls, HG_SIZE_MAX));
  HG("Class_set_output_offset", "an offset above the capacity of a message", HG_INVALID_ARG,
     Class_set_output_offset(good.cls, HG_SIZE_MAX));
  GIVES("HG_Context_get_id, HG_Bulk_get_context_id", "a null handle", "0",
        HG_Context_get_id(NULL) == 0 && HG_Bulk_get_context_id(HG_BULK_NULL) == 0);
  GIVES("HG_Event_get_wait_fd, HG_Event_ready", "a null context", "-1, false",
        HG_Event_get_wait_fd(NULL) == -1 && !HG_Event_ready(NULL));
  GIVES("HG_Register_name", "a null name", "0", HG_Register_name(good.cls, NULL, NULL, NULL, NULL) == 0);
  GIVES("HG_Register_name", "an empty name", "0", HG_Register_name(good.cls, "", NULL, NULL, NULL) == 0);
  HG("Registered_name", "a null name", HG_INVALID_ARG, Registered_name(good.cls, NULL, &out.id, &out.flag));
  HG("Registered_name", "no place for the flag", HG_INVALID_ARG, Registered_name(good.cls, "one", &out.id, NULL));
  HG("Registered", "no place for the flag", HG_INVALID_ARG, Registered(good.cls, one_id, NULL));
#define UNKNOWN "the id of an unregistered function"
  HG("Deregister", UNKNOWN, HG_NOENTRY, Deregister(good.cls, 1234));
  HG("Register_data", UNKNOWN, HG_NOENTRY, Register_data(good.cls, 1234, here, NULL));
  HG("Registered_disable_response", UNKNOWN, HG_NOENTRY, Registered_disable_response(good.cls, 1234, 1));
  HG("Registered_disabled_response", UNKNOWN, HG_NOENTRY, Registered_disabled_response(good.cls, 1234, &out.flag));
  HG("Registered_disabled_response", "no place for the flag", HG_INVALID_ARG,
     Registered_disabled_response(good.cls, one_id, NULL));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
#define LOOK(call, expression)                                                                        \
    if (row_begins(call, names[i].fault, names[i].code_name)) {                                       \
      row_ends(__FILE__, __LINE__, call, names[i].fault, expression, names[i].code, names[i].code_name); \
      row_says(__FILE__, __LINE__, call, names[i].fault);                                             \
    }
    LOOK("HG_Addr_lookup1", HG_Addr_lookup1(good.ctx, hg_ended, NULL, names[i].name, &out.op))
    LOOK("HG_Addr_lookup2", HG_Addr_lookup2(good.cls, names[i].name, &out.addr))
  }
  HG("Addr_lookup2", "a null pointer for the result", HG_INVALID_ARG, Addr_lookup2(good.cls, "mpi://0", NULL));
  HG("Addr_self", "a null pointer for the result", HG_INVALID_ARG, Addr_self(good.cls, NULL));
  HG("Addr_dup", "a null pointer for the result", HG_INVALID_ARG, Addr_dup(good.cls, good.addr, NULL));
  HG("Addr_to_string", "a null pointer for the size", HG_INVALID_ARG, Addr_to_string(good.cls, out.text, NULL, good.addr));
  HG("Addr_to_string", "a buffer of 3 bytes", HG_OVERFLOW,
     Addr_to_string(good.cls, out.text, &(hg_size_t){ 3 }, good.addr));
  GIVES("HG_Addr_cmp", "one null address", "false", !HG_Addr_cmp(good.cls, HG_ADDR_NULL, good.addr));
  HG("Create", UNKNOWN, HG_NOENTRY, Create(good.ctx, good.addr, 1234, &out.handle));
  HG("Create", "a null pointer for the result", HG_INVALID_ARG, Create(good.ctx, good.addr, one_id, NULL));
  HG("Create", "an address that was freed", HG_INVALID_ARG, Create(good.ctx, gone.addr, one_id, &out.handle));
  REFUSED("HG_Destroy", "a handle without a further reference", HG_INVALID_ARG, destroyed_too_often());
  HG("Reset", UNKNOWN, HG_NOENTRY, Reset(good.made, good.addr, 1234));
  HG("Reset", "an address that was freed", HG_INVALID_ARG, Reset(good.made, gone.addr, one_id));
  REFUSED("HG_Reset", "a call that is under way", HG_BUSY, under_way('r'));
  REFUSED("HG_Forward", "a call that is under way", HG_BUSY, under_way('f'));
  REFUSED("HG_Context_destroy", "a context that has handles", HG_BUSY, under_way('d'));
  HG("Cancel", "a call that is served", HG_OPNOTSUPPORTED, Cancel(good.served));
  REFUSED("HG_Get_output", "a call that was never forwarded", HG_INVALID_ARG, on_fresh(get_output));
  REFUSED("HG_Get_output_buf", "a call that was never forwarded", HG_INVALID_ARG, on_fresh(get_output_buf));
  HG("Get_output", "a null pointer for the output", HG_INVALID_ARG, Get_output(good.made, NULL));
  HG("Free_output", "a null output", HG_INVALID_ARG, Free_output(good.made, NULL));
  HG("Get_input", "a null pointer for the input", HG_INVALID_ARG, Get_input(good.served, NULL));
  HG("Free_input", "a null input", HG_INVALID_ARG, Free_input(good.served, NULL));
  REFUSED("HG_Get_input", "a function without procs", HG_FAULT, without_a_proc(HG_Get_input));
  REFUSED("HG_Free_input", "a function without procs", HG_FAULT, without_a_proc(HG_Free_input));
  HG("Get_input_buf", "no place for the buffer", HG_INVALID_ARG, Get_input_buf(good.served, NULL, &out.size));
  HG("Get_input_extra_buf", "no place for the buffer", HG_INVALID_ARG, Get_input_extra_buf(good.served, NULL, &out.size));
  REFUSED("HG_Respond", "a call that was answered", HG_INVALID_ARG, answered_twice());
}

static void bulk_arguments(void)
{
  void *blocks[2] = { here, NULL };
  hg_size_t sizes[2] = { 8, 8 }, huge[1] = { HG_SIZE_MAX }, much[1] = { (hg_size_t)1 << 50 };
  rows_begin("mercury_bulk.h");
#define MAKE(fault, code, count, ptrs, sizes, flags, to) \
  HG("Bulk_create", fault, code, Bulk_create(good.cls, count, ptrs, sizes, flags, to))
  MAKE("null sizes", HG_INVALID_ARG, 1, blocks, NULL, HG_BULK_READWRITE, &out.bulk);
  MAKE("no segments", HG_INVALID_ARG, 0, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("a null segment behind a good one", HG_INVALID_ARG, 2, blocks, sizes, HG_BULK_READWRITE, &out.bulk);
  MAKE("a segment that leaves the address space", HG_INVALID_ARG, 1, blocks, huge, HG_BULK_READWRITE, &out.bulk);
  MAKE("memory to be allocated, UINT64_MAX bytes", HG_NOMEM, 1, NULL, huge, HG_BULK_READWRITE, &out.bulk);
  MAKE("memory to be allocated, 2^50 bytes", HG_NOMEM, 1, NULL, much, HG_BULK_READWRITE, &out.bulk);
  MAKE("flags 0", HG_INVALID_ARG, 1, blocks, sizes, 0, &out.bulk);
  MAKE("flags 16", HG_INVALID_ARG, 1, blocks, sizes, 16, &out.bulk);
  MAKE("a null pointer for the result", HG_INVALID_ARG, 1, blocks, sizes, HG_BULK_READWRITE, NULL);
  HG("Bulk_create_attr", "memory of a GPU", HG_OPNOTSUPPORTED,
     Bulk_create_attr(good.cls, 1, blocks, sizes, HG_BULK_READWRITE,
                      &(struct hg_bulk_attr){ HG_MEM_TYPE_CUDA, 0 }, &out.bulk));
  HG("Bulk_access", "an offset past the end", HG_INVALID_ARG,
     Bulk_access(good.bulk, 17, 1, HG_BULK_READWRITE, 1, &out.ptr, &out.size, &out.segments));
  HG("Bulk_serialize", "a null buffer", HG_INVALID_ARG, Bulk_serialize(NULL, ROOM, 0, good.bulk));
  HG("Bulk_serialize", "a buffer that is too short", HG_OVERFLOW, Bulk_serialize(here, packed_size - 1, 0, good.bulk));
#define UNPACK(fault, code, to, buf, size) \
  HG("Bulk_deserialize", fault, code, Bulk_deserialize(good.cls, to, buf, size))
  UNPACK("a null pointer for the result", HG_INVALID_ARG, NULL, packed, packed_size);
  UNPACK("a null buffer with a size", HG_INVALID_ARG, &out.bulk, NULL, packed_size);
  UNPACK("a size of UINT64_MAX", HG_INVALID_ARG, &out.bulk, packed, HG_SIZE_MAX);
  UNPACK("no bytes", HG_OVERFLOW, &out.bulk, packed, 0);
  UNPACK("bytes that are cut off", HG_OVERFLOW, &out.bulk, packed, packed_size - 1);
  UNPACK("bytes of another kind", HG_PROTOCOL_ERROR, &out.bulk, packed_mem, packed_mem_size);
#define MOVE(fault, code, kind, origin, at, local, from, size) \
  HG("Bulk_transfer", fault, code,                           \
     Bulk_transfer(good.ctx, hg_ended, NULL, kind, good.addr, origin, at, local, from, size, &out.op))
  MOVE("an operation that is none", HG_INVALID_ARG, (hg_bulk_op_t)2, good.origin, 0, good.bulk, 0, 8);
  MOVE("operation -1", HG_INVALID_ARG, (hg_bulk_op_t)-1, good.origin, 0, good.bulk, 0, 8);
  MOVE("an offset past the origin's end", HG_INVALID_ARG, HG_BULK_PULL, good.origin, 17, good.bulk, 0, 8);
  MOVE("an offset past the local end", HG_INVALID_ARG, HG_BULK_PULL, good.origin, 0, good.bulk, 17, 8);
  MOVE("a size past the ends", HG_INVALID_ARG, HG_BULK_PULL, good.origin, 0, good.bulk, 0, 17);
  MOVE("a size of UINT64_MAX", HG_INVALID_ARG, HG_BULK_PUSH, good.origin, 8, good.bulk, 8, HG_SIZE_MAX);
  MOVE("pushing to what is read-only", HG_PERMISSION, HG_BULK_PUSH, read_only_bulk, 0, good.bulk, 0, 8);
  MOVE("pulling into what is read-only", HG_PERMISSION, HG_BULK_PULL, good.origin, 0, read_only_bulk, 0, 8);
  HG("Bulk_bind_transfer", "an origin's handle that is not bound", HG_INVALID_ARG,
     Bulk_bind_transfer(good.ctx, hg_ended, NULL, HG_BULK_PULL, read_only_bulk, 0, good.bulk, 0, 8, &out.op));
  HG("Bulk_cancel", "a null operation", HG_INVALID_ARG, Bulk_cancel(HG_OP_ID_NULL));
  HG("Bulk_cancel", "an address of memory for the operation", HG_INVALID_ARG, Bulk_cancel((hg_op_id_t)(void *)here));
}

static void na_arguments(void)
{
  const size_t over = LISTED ? 0 : NA_Msg_get_max_unexpected_size(na) + 1;
  const size_t over_expected = LISTED ? 0 : NA_Msg_get_max_expected_size(na) + 1;
  const na_tag_t tag = LISTED ? 0 : NA_Msg_get_max_tag(na) + 1;
  static unsigned char large[1 << 18];
  struct na_segment segment = { here, 8 }, wrapping = { (void *)(uintptr_t)-4, 8 };
  rows_begin("na.h");
  GIVES("NA_Initialize", "a null information string", "`NULL`", NA_Initialize(NULL, false) == NULL);
  GIVES("NA_Initialize", "a network that is none", "`NULL`", NA_Initialize("verbs", false) == NULL);
  NA("Finalize", "a class that has contexts", NA_BUSY, Finalize(na));
  NA("Poll", "a context of another class", NA_INVALID_ARG, Poll(na, alien_context, NULL));
  NA("Context_destroy", "a context of another class", NA_INVALID_ARG, Context_destroy(alien, good.nctx));
  NA("Addr_lookup", "a null address text", NA_INVALID_ARG, Addr_lookup(na, NULL, &out.naddr));
  NA("Addr_lookup", "a null pointer for the result", NA_INVALID_ARG, Addr_lookup(na, "self", NULL));
  NA("Addr_self", "a null pointer for the result", NA_INVALID_ARG, Addr_self(na, NULL));
  NA("Addr_dup", "a null pointer for the result", NA_INVALID_ARG, Addr_dup(na, good.naddr, NULL));
  NA("Addr_to_string", "a buffer of 3 bytes", NA_OVERFLOW, Addr_to_string(na, out.text, &(size_t){ 3 }, good.naddr));
  NA("Addr_serialize", "a buffer of 3 bytes", NA_OVERFLOW, Addr_serialize(na, out.text, 3, good.naddr));
  NA("Addr_deserialize", "bytes that are cut off", NA_OVERFLOW,
     Addr_deserialize(na, &out.naddr, packed_addr, packed_addr_size - 1, 0));
  NA("Addr_deserialize", "a size of UINT64_MAX", NA_INVALID_ARG, Addr_deserialize(na, &out.naddr, packed_addr, SIZE_MAX, 0));
#define SEND(kind, fault, code, buf, size, tag) \
  NA("Msg_send_" #kind, fault, code,            \
     Msg_send_##kind(na, good.nctx, na_ended, NULL, buf, size, NULL, good.naddr, 0, tag, NULL))
  SEND(unexpected, "a null buffer with a size", NA_INVALID_ARG, NULL, 8, 1);
  SEND(unexpected, "a size above the largest", NA_MSGSIZE, large, over, 1);
  SEND(unexpected, "a size of UINT64_MAX", NA_INVALID_ARG, here, SIZE_MAX, 1);
  SEND(unexpected, "a tag above the largest", NA_INVALID_ARG, here, 8, tag);
  SEND(expected, "a null buffer with a size", NA_INVALID_ARG, NULL, 8, 1);
  SEND(expected, "a size above the largest", NA_MSGSIZE, large, over_expected, 1);
  SEND(expected, "a tag above the largest", NA_INVALID_ARG, here, 8, tag);
  NA("Msg_recv_unexpected", "a null buffer with a size", NA_INVALID_ARG,
     Msg_recv_unexpected(na, good.nctx, na_ended, NULL, NULL, 8, NULL, NULL));
  NA("Msg_recv_expected", "a null buffer with a size", NA_INVALID_ARG,
     Msg_recv_expected(na, good.nctx, na_ended, NULL, NULL, 8, NULL, good.naddr, 0, 1, NULL));
  NA("Msg_multi_recv_unexpected", "any receive of several messages", NA_OPNOTSUPPORTED,
     Msg_multi_recv_unexpected(na, good.nctx, na_ended, NULL, here, 8, NULL, NULL));
  NA("Mem_handle_create", "null memory with a size", NA_INVALID_ARG,
     Mem_handle_create(na, NULL, 8, NA_MEM_READWRITE, &out.mem));
  NA("Mem_handle_create", "a size of UINT64_MAX", NA_INVALID_ARG,
     Mem_handle_create(na, here, SIZE_MAX, NA_MEM_READWRITE, &out.mem));
  NA("Mem_handle_create", "flags 0", NA_INVALID_ARG, Mem_handle_create(na, here, 8, 0, &out.mem));
  NA("Mem_handle_create", "a null pointer for the result", NA_INVALID_ARG,
     Mem_handle_create(na, here, 8, NA_MEM_READWRITE, NULL));
#define SEGMENTS(fault, code, list, count) \
  NA("Mem_handle_create_segments", fault, code, \
     Mem_handle_create_segments(na, list, count, NA_MEM_READWRITE, &out.mem))
  SEGMENTS("a null array with a count", NA_INVALID_ARG, NULL, 1);
  SEGMENTS("no segments", NA_INVALID_ARG, &segment, 0);
  SEGMENTS("2^60 segments", NA_INVALID_ARG, &segment, (size_t)1 << 60);
  SEGMENTS("2^58 segments, more than memory can list", NA_NOMEM, &segment, (size_t)1 << 58);
  SEGMENTS("an array that is not aligned", NA_INVALID_ARG, (struct na_segment *)(void *)((char *)&segment + 4), 1);
  SEGMENTS("a segment that leaves the address space", NA_INVALID_ARG, &wrapping, 1);
  NA("Mem_register", "memory of a GPU", NA_OPNOTSUPPORTED, Mem_register(na, good.mem, NA_MEM_TYPE_CUDA, 0));
  NA("Mem_handle_serialize", "a buffer that is too short", NA_OVERFLOW,
     Mem_handle_serialize(na, here, packed_mem_size - 1, good.mem));
  NA("Mem_handle_deserialize", "bytes that are cut off", NA_OVERFLOW,
     Mem_handle_deserialize(na, &out.mem, packed_mem, packed_mem_size - 1));
  NA("Mem_handle_deserialize", "bytes of another kind", NA_PROTOCOL_ERROR,
     Mem_handle_deserialize(na, &out.mem, packed, packed_size));
#define TRANSFER(call, fault, code, local, from, remote, at, size) \
  NA(#call, fault, code, call(na, good.nctx, na_ended, NULL, local, from, remote, at, size, good.naddr, 0, NULL))
  TRANSFER(Put, "an offset past the local end", NA_OVERFLOW, good.remote, 17, good.remote, 0, 8);
  TRANSFER(Get, "an offset past the remote end", NA_OVERFLOW, good.remote, 0, good.remote, 17, 8);
  TRANSFER(Put, "an offset of UINT64_MAX", NA_OVERFLOW, good.remote, UINT64_MAX, good.remote, 0, 8);
  TRANSFER(Get, "a size of UINT64_MAX", NA_OVERFLOW, good.remote, 8, good.remote, 8, SIZE_MAX);
  TRANSFER(Put, "local memory that is not registered", NA_ACCESS, unregistered, 0, good.remote, 0, 8);
  TRANSFER(Put, "remote memory that is read-only", NA_PERMISSION, good.remote, 0, read_only, 0, 8);
  TRANSFER(Get, "local memory that is read-only", NA_PERMISSION, read_only, 0, good.remote, 0, 8);
}

/* The procs, whose numbers and checks differ from 2013; mercury_invalid.c tests the rest. */
static void proc_arguments(void)
{
  rows_begin("mercury_proc.h");
#define PROC(call, fault, code, expression) REFUSED("hg_proc_" call, fault, code, hg_proc_##expression)
  PROC("create", "a null class", HG_INVALID_ARG, create(NULL, HG_CRC64, &made_proc));
  PROC("create", "an unknown checksum", HG_INVALID_ARG, create(good.cls, (hg_proc_hash_t)77, &made_proc));
  PROC("create_set", "a null class", HG_INVALID_ARG, create_set(NULL, here, 8, HG_ENCODE, HG_NOHASH, &made_proc));
  PROC("create_set", "a null buffer with a size", HG_INVALID_ARG,
       create_set(good.cls, NULL, 8, HG_ENCODE, HG_NOHASH, &made_proc));
  PROC("create_set", "-1 for what to do", HG_INVALID_ARG,
       create_set(good.cls, here, 8, (hg_proc_op_t)-1, HG_NOHASH, &made_proc));
  PROC("reset", "a null proc", HG_INVALID_ARG, reset(NULL, here, 8, HG_ENCODE));
  PROC("flush", "a null proc", HG_INVALID_ARG, flush(NULL));
  PROC("restore_ptr", "a place that the proc did not give", HG_INVALID_ARG, restore_ptr(encoder, here, 8));
  PROC("int32_t", "a null proc", HG_INVALID_ARG, int32_t(NULL, &number));
  PROC("hg_bulk_t", "a null proc", HG_INVALID_ARG, hg_bulk_t(NULL, &number));
  PROC("hg_bulk_t", "a null place", HG_INVALID_ARG, hg_bulk_t(encoder, NULL));
}

/* ------------------------------------------------------------------------ life */

static void make_handles(void)
{
  hg_size_t sixteen = 16;
  void *at = here + 64;
  good.cls = hg_class;
  good.ctx = context;
  one_id = MERCURY_REGISTER(hg_class, "one", one_t, one_t, one_cb);
  kept_id = MERCURY_REGISTER(hg_class, "kept", one_t, one_t, keep_cb);
  bare_id = HG_Register_name(hg_class, "bare", NULL, NULL, keep_cb);
  MUST(HG_Addr_self(hg_class, &good.addr));
  MUST(HG_Addr_self(hg_class, &gone.addr));
  MUST(HG_Addr_free(hg_class, gone.addr));
  gone.ctx = HG_Context_create(hg_class);
  MUST(HG_Context_destroy(gone.ctx));
  gone.cls = HG_Init("self", HG_FALSE);
  MUST(HG_Finalize(gone.cls));
  good.made = called(one_id);
  gone.made = gone.served = called(one_id);
  MUST(HG_Destroy(gone.made));
  MUST(HG_Bulk_create(hg_class, 1, &at, &sixteen, HG_BULK_READWRITE, &good.bulk));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &sixteen, HG_BULK_READWRITE, &good.origin));
  MUST(HG_Bulk_create(hg_class, 1, &at, &sixteen, HG_BULK_READ_ONLY, &read_only_bulk));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &sixteen, HG_BULK_READWRITE, &gone.bulk));
  MUST(HG_Bulk_free(gone.bulk));
  gone.origin = gone.bulk;
  packed_size = HG_Bulk_get_serialize_size(good.bulk, 0);
  MUST(HG_Bulk_serialize(packed, sizeof packed, 0, good.bulk));
  MUST(HG_Bulk_bind(good.bulk, context));
  MUST(HG_Bulk_bind(good.origin, context));

  na = good.ncls = NA_Initialize("self", true);
  good.nctx = NA_Context_create(na);
  gone.nctx = NA_Context_create(na);
  MUST((hg_return_t)NA_Context_destroy(na, gone.nctx));
  gone.ncls = NA_Initialize("self", false);
  MUST((hg_return_t)NA_Finalize(gone.ncls));
  alien = NA_Initialize("self", false);
  alien_context = NA_Context_create(alien);
  MUST((hg_return_t)NA_Addr_self(na, &good.naddr));
  MUST((hg_return_t)NA_Addr_self(na, &gone.naddr));
  NA_Addr_free(na, gone.naddr);
  packed_addr_size = NA_Addr_get_serialize_size(na, good.naddr);
  MUST((hg_return_t)NA_Addr_serialize(na, packed_addr, ROOM, good.naddr));
  na_mem_handle_t **mems[] = { &good.mem, &good.remote, &unregistered, &gone.mem };
  for (int i = 0; i < 4; i++)
    MUST((hg_return_t)NA_Mem_handle_create(na, here + 128, 16, NA_MEM_READWRITE, mems[i]));
  MUST((hg_return_t)NA_Mem_handle_create(na, here + 128, 16, NA_MEM_READ_ONLY, &read_only));
  NA_Mem_handle_free(na, gone.mem);
  gone.remote = gone.mem;
  MUST((hg_return_t)NA_Mem_register(na, good.remote, NA_MEM_TYPE_HOST, 0));
  MUST((hg_return_t)NA_Mem_register(na, read_only, NA_MEM_TYPE_HOST, 0));
  packed_mem_size = NA_Mem_handle_get_serialize_size(na, good.remote);
  MUST((hg_return_t)NA_Mem_handle_serialize(na, packed_mem, sizeof packed_mem, good.remote));
  MUST(hg_proc_create_set(hg_class, proc_bytes, sizeof proc_bytes, HG_ENCODE, HG_CRC64, &encoder));
}

static void drop_all(hg_handle_t caller)
{
  MUST(hg_proc_free(encoder));
  forget(caller, good.served);
  MUST(HG_Destroy(good.made));
  MUST(HG_Bulk_free(good.bulk));
  MUST(HG_Bulk_free(good.origin));
  MUST(HG_Bulk_free(read_only_bulk));
  MUST(HG_Addr_free(hg_class, good.addr));
  na_mem_handle_t *mems[] = { good.mem, good.remote, unregistered, read_only };
  for (int i = 0; i < 4; i++)
    NA_Mem_handle_free(na, mems[i]);
  NA_Addr_free(na, good.naddr);
  MUST((hg_return_t)NA_Context_destroy(na, good.nctx));
  MUST((hg_return_t)NA_Context_destroy(alien, alien_context));
  MUST((hg_return_t)NA_Finalize(alien));
  MUST((hg_return_t)NA_Finalize(na));
}

static void tables_of_faults(void)
{
  if (LISTED)
    printf("# Bad input to Mercury 2.4\n\n"
           "The tables list wrong arguments to the calls of `mercury2/*.h`, and the results. `mercury2_invalid\n"
           "markdown` prints this page, and tests/c/mercury2_invalid.c tests every line. A call that is refused\n"
           "starts nothing and writes nothing; its text is `portolan_last_error()` of `portolan.h`. Calls without\n"
           "a code return 0, -1 or `NULL` instead of `HG_INVALID_ARG` or `NA_INVALID_ARG`.\n"
           "[errors-mercury-2013.md](errors-mercury-2013.md) has the calls of 2013.\n\n"
           "## Handles: mercury.h, mercury_bulk.h\n\n");
  calls_with_faults(hg_calls, hg_faults, good_input, "HG_");
  if (LISTED)
    printf("\n## Handles: na.h\n\n");
  calls_with_faults(na_calls, na_faults, good_input, "NA_");
  hg_arguments();
  bulk_arguments();
  na_arguments();
  proc_arguments();
}

/* Each call with handles that were all freed. */
static void handles_name_nothing(void)
{
  static const struct refusals_call *tables[] = { hg_calls, na_calls };
  for (int t = 0; t < 2; t++)
    for (const struct refusals_call *call = tables[t]; call->name; call++) {
      in = gone;
      if (row_begins(call->name, "handles that name nothing", "")) {
        const int rc = call->run();
        CHECK(rc == HG_INVALID_ARG, "%s with handles that name nothing: %d", call->name, rc);
        row_says(__FILE__, __LINE__, call->name, "handles that name nothing");
        watch_ends(call->name, "handles that name nothing");
      }
    }
}

static void stale(void) { CHECK(HG_Context_get_class(NULL) == NULL, "the class of no context"); }

int main(int argc, char **argv)
{
  if (refusals_listed(argc, argv)) {
    tables_of_faults();
    return 0;
  }
  start_mercury("mercury2_invalid", &argc, &argv);
  refusals_stale = stale;
  check_fill(here, 3, ROOM);
  make_handles();
  serve_barrier();
  const hg_handle_t caller = called(kept_id);
  good.served = kept;
  refusals_also = "";
  calls_work(hg_calls, good_input);
  calls_work(na_calls, good_input);
  for (unsigned int ran = 1; ran > 0;) {
    (void)NA_Poll(na, good.nctx, NULL);
    MUST((hg_return_t)NA_Trigger(good.nctx, 100, &ran));
  }
  refusals_also = NULL;
  watch("memory", here, ROOM);
  watch("results", &out, sizeof out);
  watch("callbacks that ran", (const void *)&ended, sizeof ended);
  watch("a proc", &made_proc, sizeof made_proc);
  watch("a number", &number, sizeof number);
  serve_barrier();
  tables_of_faults();
  serve_barrier();
  drop_all(caller);
  handles_name_nothing();
  return end_mercury();
}
