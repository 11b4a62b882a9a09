/*
 * mercury2_invalid_arguments.h - the arguments of Mercury 2.4's calls with their faults, and what the
 * calls of mercury2_invalid.c make, use up and return.
 */
#ifndef MERCURY2_INVALID_ARGUMENTS_H
#define MERCURY2_INVALID_ARGUMENTS_H

MERCURY_GEN_PROC(one_t, ((int32_t)(x)))

enum { ROOM = 512 };

static unsigned char here[ROOM], packed[ROOM], packed_mem[ROOM], packed_addr[ROOM], large[1 << 18], proc_bytes[64];
static unsigned char packed_core[ROOM];
static size_t packed_size, packed_mem_size, packed_addr_size, packed_core_size;
static volatile int ended;          /* callbacks that ran */
static hg_id_t one_id, kept_id, bare_id;
static volatile hg_handle_t kept;   /* a call that its handler has not answered */
static na_class_t *na, *alien;
static na_context_t *alien_context;
static na_mem_handle_t *read_only, *unregistered;
static hg_bulk_t read_only_bulk;
static hg_proc_t encoder, made_proc;
static long long number = 77;

/* A handle of each kind. HG: class, context, address, handle of a call that is served, of a call of
 * one's own, bulk handles. NA: class, context, address, memory handles. HG Core: class, context, address,
 * handle. */
static struct handles {
  hg_class_t *cls;
  hg_context_t *ctx;
  hg_addr_t addr;
  hg_handle_t served, made;
  hg_bulk_t bulk, origin;
  na_class_t *ncls;
  na_context_t *nctx;
  na_addr_t *naddr;
  na_mem_handle_t *mem, *remote;
  hg_core_class_t *core;
  hg_core_context_t *cctx;
  hg_core_addr_t caddr;
  hg_core_handle_t chandle;
} live, gone;

/* Results of the calls. */
static struct {
  hg_addr_t addr;
  hg_bulk_t bulk;
  hg_handle_t handle;
  hg_id_t id;
  hg_op_id_t op;
  na_addr_t *naddr;
  na_mem_handle_t *mem;
  hg_core_addr_t caddr;
  hg_core_handle_t chandle;
  hg_proc_cb_t procs[2];
  struct hg_diag_counters counters;
  uint8_t flag;
  unsigned int count;
  uint32_t segments;
  void *ptr;
  hg_size_t size;
  size_t length;
  char text[CHECK_ADDRESS];
  one_t params;
} out;

/* ------------------------------------------------------------------- arguments */

#define HG_CODE(code) HG_##code, "`HG_" #code "`"
#define F(name, code, ...) BAD_FAULT(ALL_RANKS, name, HG_CODE(code), __VA_ARGS__)
#define N(name, code, ...) BAD_FAULT(ALL_RANKS, name, NA_##code, "`NA_" #code "`", __VA_ARGS__)
#define NULL_IS_BAD F("null", INVALID_ARG, good = NULL)
#define NULL_IS_BAD_NA N("null", INVALID_ARG, good = NULL)

/* A handle that may be null, and one that may not. */
#define HANDLE(X, type, name, field, null, other)                                              \
  ARG(type, field##_or_null, name,                                                             \
      X("an address of memory", INVALID_ARG, good = (type)(void *)here)                        \
      X("that was freed", INVALID_ARG, good = gone.field)                                      \
      X("a handle of another kind", INVALID_ARG, good = (type)(void *)live.other))             \
  ARG(type, field##_not_null, name " that cannot be null", null)                               \
  static type field(type good) { return field##_not_null(field##_or_null(good)); }
HANDLE(F, hg_class_t *, "class", cls, NULL_IS_BAD, ctx)
HANDLE(F, hg_context_t *, "context", ctx, NULL_IS_BAD, cls)
HANDLE(F, hg_addr_t, "peer's address", addr, NULL_IS_BAD, bulk)
HANDLE(F, hg_bulk_t, "bulk handle", bulk, NULL_IS_BAD, addr)
HANDLE(F, hg_bulk_t, "origin's bulk handle", origin, NULL_IS_BAD, mem)
HANDLE(F, hg_handle_t, "handle of a served call", served, NULL_IS_BAD, bulk)
HANDLE(F, hg_handle_t, "handle of a call", made, NULL_IS_BAD, bulk)
HANDLE(N, na_class_t *, "NA class", ncls, NULL_IS_BAD_NA, nctx)
HANDLE(N, na_context_t *, "NA context", nctx, NULL_IS_BAD_NA, ncls)
HANDLE(N, na_addr_t *, "peer's NA address", naddr, NULL_IS_BAD_NA, mem)
HANDLE(N, na_mem_handle_t *, "memory handle", mem, NULL_IS_BAD_NA, naddr)
HANDLE(N, na_mem_handle_t *, "memory handle of a transfer", remote, NULL_IS_BAD_NA, bulk)
HANDLE(F, hg_core_class_t *, "core class", core, NULL_IS_BAD, cctx)
HANDLE(F, hg_core_context_t *, "core context", cctx, NULL_IS_BAD, core)
HANDLE(F, hg_core_addr_t, "core address", caddr, NULL_IS_BAD, chandle)
HANDLE(F, hg_core_handle_t, "core handle", chandle, NULL_IS_BAD, caddr)
ARG(hg_handle_t, not_made, "handle of a served call, only", F("of a call of one's own", INVALID_ARG, good = live.made))
ARG(hg_handle_t, not_served, "handle of a call of one's own, only", F("of a served call", INVALID_ARG, good = live.served))

ARG(hg_size_t, offset, "offset of a class", F("above the capacity of a message", INVALID_ARG, good = HG_SIZE_MAX))
ARG(void *, to, "place for a result", NULL_IS_BAD)
ARG(void *, nto, "place for a result of NA", NULL_IS_BAD_NA)
ARG(const char *, name_of, "name of a function", NULL_IS_BAD)
ARG(hg_id_t, id, "id of a function", F("that is not registered", NOENTRY, good = 1234))
ARG(const char *, peer, "name of an address",
    NULL_IS_BAD F("empty", INVALID_ARG, good = "") F("not UTF-8", INVALID_ARG, good = "\xff\xfe")
    F("mpi://-1", INVALID_ARG, good = "mpi://-1")
    F("mpi://99999999999999999999", INVALID_ARG, good = "mpi://99999999999999999999")
    F("of a rank that is none", ADDRNOTAVAIL, good = "mpi://1000000")
    F("of another network", ADDRNOTAVAIL, good = "tcp://1"))
ARG(hg_size_t *, text_size, "size of a text", NULL_IS_BAD F("3 bytes", OVERFLOW, *good = 3))
ARG(void *, params, "parameters of a function", NULL_IS_BAD)
ARG(uint32_t, segments, "number of segments", F("0", INVALID_ARG, good = 0))
ARG(void **, blocks, "segments",
    F("null behind a good one", INVALID_ARG, good[1] = NULL))
ARG(hg_size_t *, sizes, "sizes of segments",
    NULL_IS_BAD F("beyond the address space", INVALID_ARG, good[0] = HG_SIZE_MAX))
ARG(hg_size_t *, memory, "sizes of memory to be allocated",
    F("UINT64_MAX", NOMEM, good[0] = HG_SIZE_MAX) F("2^50", NOMEM, good[0] = (hg_size_t)1 << 50))
ARG(unsigned, flags, "flags", F("0", INVALID_ARG, good = 0) F("16", INVALID_ARG, good = 16))
ARG(hg_size_t, past, "offset in a bulk handle", F("past the end", INVALID_ARG, good = 17))
ARG(hg_size_t, past_origin, "offset in the origin's bulk handle", F("past the end", INVALID_ARG, good = 17))
ARG(hg_size_t, moved, "bytes to move",
    F("past the ends", INVALID_ARG, good = 17) F("UINT64_MAX", INVALID_ARG, good = HG_SIZE_MAX))
ARG(hg_bulk_op_t, way, "operation",
    F("2", INVALID_ARG, good = (hg_bulk_op_t)2) F("-1", INVALID_ARG, good = (hg_bulk_op_t)-1))
ARG(void *, room, "buffer for a bulk handle", NULL_IS_BAD)
ARG(hg_size_t, room_size, "size of the buffer for a bulk handle", F("too short", OVERFLOW, good = packed_size - 1))
ARG(void *, bytes, "bytes of a bulk handle", NULL_IS_BAD F("of another kind", PROTOCOL_ERROR, good = packed_mem))
ARG(hg_size_t, bytes_size, "size of the bytes of a bulk handle",
    F("UINT64_MAX", INVALID_ARG, good = HG_SIZE_MAX) F("0", OVERFLOW, good = 0)
    F("cut off", OVERFLOW, good = packed_size - 1))

ARG(const char *, npeer, "name of an NA address", NULL_IS_BAD_NA)
ARG(size_t *, ntext_size, "size of an NA text", N("3 bytes", OVERFLOW, *good = 3))
ARG(size_t, addr_room, "size of the buffer for an NA address", N("3 bytes", OVERFLOW, good = 3))
ARG(size_t, addr_size, "size of the bytes of an NA address",
    N("cut off", OVERFLOW, good = packed_addr_size - 1) N("UINT64_MAX", INVALID_ARG, good = SIZE_MAX))
ARG(void *, message, "buffer of a message", NULL_IS_BAD_NA)
ARG(size_t, unexpected, "size of an unexpected message",
    N("above the largest", MSGSIZE, good = NA_Msg_get_max_unexpected_size(na) + 1)
    N("UINT64_MAX", INVALID_ARG, good = SIZE_MAX))
ARG(size_t, expected, "size of an expected message",
    N("above the largest", MSGSIZE, good = NA_Msg_get_max_expected_size(na) + 1))
ARG(na_op_id_t *, nop, "NA operation", N("null", INVALID_ARG, good = NULL) N("an address of memory", INVALID_ARG, good = (na_op_id_t *)(void *)here))
ARG(na_tag_t, tag, "tag", N("above the largest", INVALID_ARG, good = NA_Msg_get_max_tag(na) + 1))
ARG(void *, region, "memory", NULL_IS_BAD_NA)
ARG(size_t, region_size, "size of memory", N("UINT64_MAX", INVALID_ARG, good = SIZE_MAX))
ARG(unsigned long, nflags, "NA flags", N("0", INVALID_ARG, good = 0))
ARG(struct na_segment *, nsegments, "NA segments",
    NULL_IS_BAD_NA N("not aligned", INVALID_ARG, good = (struct na_segment *)(void *)((char *)good + 4))
    N("beyond the address space", INVALID_ARG, good->base = (void *)(uintptr_t)-4))
ARG(size_t, nsegment_count, "number of NA segments",
    N("0", INVALID_ARG, good = 0) N("2^60", INVALID_ARG, good = (size_t)1 << 60)
    N("2^58, more than memory can list", NOMEM, good = (size_t)1 << 58))
ARG(enum na_mem_type, of_host, "kind of memory", N("of a GPU", OPNOTSUPPORTED, good = NA_MEM_TYPE_CUDA))
ARG(size_t, mem_room, "size of the buffer for a memory handle", N("too short", OVERFLOW, good = packed_mem_size - 1))
ARG(void *, mem_bytes, "bytes of a memory handle", N("of another kind", PROTOCOL_ERROR, good = packed))
ARG(size_t, mem_bytes_size, "size of the bytes of a memory handle", N("cut off", OVERFLOW, good = packed_mem_size - 1))
ARG(na_offset_t, npast, "offset in local memory",
    N("past the end", OVERFLOW, good = 17) N("UINT64_MAX", OVERFLOW, good = UINT64_MAX))
ARG(na_offset_t, npast_remote, "offset in remote memory",
    N("past the end", OVERFLOW, good = 17) N("UINT64_MAX", OVERFLOW, good = UINT64_MAX))
ARG(size_t, nmoved, "bytes of NA to move", N("UINT64_MAX", OVERFLOW, good = SIZE_MAX))
ARG(na_mem_handle_t *, registered, "local memory handle",
    N("not registered", ACCESS, good = unregistered))
ARG(na_mem_handle_t *, writable, "memory handle that is written to", N("read-only", PERMISSION, good = read_only))

ARG(hg_class_t *, proc_class, "class of a proc", NULL_IS_BAD)
ARG(hg_proc_hash_t, hash, "checksum", F("unknown", INVALID_ARG, good = (hg_proc_hash_t)77))
ARG(hg_proc_op_t, what, "what a proc does", F("-1", INVALID_ARG, good = (hg_proc_op_t)-1))
ARG(void *, proc_buffer, "buffer of a proc", NULL_IS_BAD)
ARG(hg_proc_t, proc, "proc", F("null", INVALID_ARG, good = NULL))
ARG(hg_string_object_t *, string, "string object", NULL_IS_BAD)

/* --------------------------------------- what calls make, use up, and return */

static int is_good(void) { return bad_now == GOOD_CALL; }

static hg_return_t hg_ended(const struct hg_cb_info *info)
{
  (void)info;
  ended++;
  return HG_SUCCESS;
}

static void na_ended(const struct na_cb_info *info)
{
  (void)info;
  ended++;
}

static hg_return_t one_cb(hg_handle_t handle)
{
  one_t params;
  MUST(HG_Get_input(handle, &params));
  MUST(HG_Respond(handle, NULL, NULL, &params));
  MUST(HG_Free_input(handle, &params));
  return HG_Destroy(handle);
}

/* Leaves the call unanswered. */
static hg_return_t keep_cb(hg_handle_t handle)
{
  kept = handle;
  return HG_SUCCESS;
}

/* Makes progress until one more callback of HG has run. */
static int one_more(int rc)
{
  if (rc == HG_SUCCESS)
    pump_until(&ended, ended + 1, "a callback");
  return rc;
}

static hg_handle_t created(void)
{
  hg_handle_t handle;
  MUST(HG_Create(live.ctx, live.addr, one_id, &handle));
  return handle;
}

/* Returns the handle of a call to this process. A call of `one` has ended, others are kept. */
static hg_handle_t called(hg_id_t function)
{
  hg_handle_t handle;
  one_t seven = { 7 };
  MUST(HG_Create(live.ctx, live.addr, function, &handle));
  kept = HG_HANDLE_NULL;
  MUST(HG_Forward(handle, hg_ended, NULL, &seven));
  if (function == one_id)
    one_more(HG_SUCCESS);
  while (function != one_id && kept == HG_HANDLE_NULL)
    pump(live.ctx, 20);
  return handle;
}

/* Destroys both handles of a kept call when it has ended. */
static void forget(hg_handle_t of_caller, hg_handle_t of_server)
{
  MUST(HG_Destroy(of_server));
  one_more(HG_SUCCESS);
  ended--;
  MUST(HG_Destroy(of_caller));
}

static hg_handle_t answered;        /* the caller's handle of a call that a row answers */

static hg_handle_t to_answer(void)
{
  if (!is_good())
    return live.served;
  answered = called(kept_id);
  return kept;
}

static int responded(int rc)
{
  if (is_good())
    forget(answered, kept);
  return rc;
}

static hg_return_t core_cb(hg_core_handle_t handle) { return HG_Core_destroy(handle); }
static int core_context_made(hg_core_context_t *made) { return made ? (int)HG_Core_context_destroy(made) : REFUSED; }
static int caddr_made(int rc) { return rc ? rc : (int)HG_Core_addr_free(out.caddr); }
static int chandle_made(int rc) { return rc ? rc : (int)HG_Core_destroy(out.chandle); }
static int cref_taken(int rc) { return rc ? rc : (int)HG_Core_destroy(live.chandle); }

static hg_core_addr_t spare_caddr(void)
{
  hg_core_addr_t it = live.caddr;
  if (is_good())
    MUST(HG_Core_addr_self(live.core, &it));
  return it;
}

static hg_core_handle_t spare_chandle(void)
{
  hg_core_handle_t it = live.chandle;
  if (is_good())
    MUST(HG_Core_create(live.cctx, live.caddr, 6, &it));
  return it;
}

static int at_its_time(int rc) { return rc == HG_TIMEOUT ? HG_SUCCESS : rc; }
static int hg_context_made(hg_context_t *made) { return made ? (int)HG_Context_destroy(made) : REFUSED; }
static int buffer_made(void *made) { return made ? (NA_Msg_buf_free(live.ncls, made, out.ptr), 0) : REFUSED; }
static int op_made(na_op_id_t *made) { return made ? (NA_Op_destroy(live.ncls, made), 0) : REFUSED; }
static int na_context_made(na_context_t *made) { return made ? (int)NA_Context_destroy(live.ncls, made) : REFUSED; }
static int addr_made(int rc) { return rc ? rc : (int)HG_Addr_free(live.cls, out.addr); }
static int bulk_made(int rc) { return rc ? rc : (int)HG_Bulk_free(out.bulk); }
static int handle_made(int rc) { return rc ? rc : (int)HG_Destroy(out.handle); }
static int naddr_made(int rc) { return rc ? rc : (NA_Addr_free(live.ncls, out.naddr), 0); }
static int mem_made(int rc) { return rc ? rc : (NA_Mem_handle_free(live.ncls, out.mem), 0); }
static int ref_taken(int rc) { return rc ? rc : (int)HG_Destroy(live.made); }
static int bulk_ref_taken(int rc) { return rc ? rc : (int)HG_Bulk_free(live.bulk); }

static hg_addr_t spare_addr(void)
{
  hg_addr_t it = live.addr;
  if (is_good())
    MUST(HG_Addr_self(live.cls, &it));
  return it;
}

static hg_bulk_t spare_bulk(void)
{
  hg_bulk_t it = live.bulk;
  if (is_good())
    MUST(HG_Bulk_create(live.cls, 1, NULL, &(hg_size_t){ 8 }, HG_BULK_READWRITE, &it));
  return it;
}

static hg_context_t *fresh;         /* a context for a row that must not use the good one */

static hg_context_t *spare_context(void) { return fresh = is_good() ? HG_Context_create(live.cls) : live.ctx; }

static int unposted(int rc)
{
  if (is_good())
    MUST(HG_Context_destroy(fresh));
  return rc;
}

static hg_string_object_t object, copy;

static int proc_made(int rc) { return rc ? rc : (int)hg_proc_free(made_proc); }

#endif /* MERCURY2_INVALID_ARGUMENTS_H */
