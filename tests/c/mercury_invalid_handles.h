/*
 * mercury_invalid_handles.h - the calls of na.h and mercury*.h that take handles, for
 * mercury_invalid.c.
 */
#ifndef MERCURY_INVALID_HANDLES_H
#define MERCURY_INVALID_HANDLES_H

MERCURY_GEN_PROC(one_t, ((int32_t)(x)))

enum { ROOM = 256 };

static unsigned char here[ROOM], packed[ROOM], packed_bulk[ROOM];
static size_t packed_size, packed_bulk_size;
static int ended;                   /* callbacks that ran */
static hg_id_t one_id, kept_id;
static hg_handle_t kept;            /* a call that its handler has not answered */

/* A handle of each kind. NA: class, context, address, memory. HG: request, bulk request, bulk
 * handle, handle of a served call. */
struct handles {
  na_class_t *cls;
  na_context_t *ctx;
  na_addr_t addr;
  na_mem_handle_t mem, remote;
  hg_request_t request;
  hg_bulk_request_t transfer;
  hg_bulk_t bulk, origin;
  hg_handle_t served;
};
static struct handles live, gone;

/* Results of the calls. */
static struct {
  na_addr_t addr;
  na_mem_handle_t mem;
  hg_bulk_t bulk;
  hg_request_t request;
  hg_handle_t handle;
  hg_status_t status;
  hg_bool_t flag;
  hg_id_t id;
  hg_size_t size;
  unsigned int count;
  void *ptr;
  size_t length;
  char text[32];
  one_t params;
} out;

static na_return_t na_ended(const struct na_cb_info *info)
{
  (void)info;
  ended++;
  return NA_SUCCESS;
}

static hg_return_t one_cb(hg_handle_t handle)
{
  one_t params;
  MUST(HG_Handler_get_input(handle, &params));
  MUST(HG_Handler_start_output(handle, &params));
  return HG_Handler_free(handle);
}

/* Leaves the call unanswered. */
static hg_return_t keep_cb(hg_handle_t handle)
{
  kept = handle;
  return HG_SUCCESS;
}

/* Returns a request of a call to this process, which has run on return. */
static hg_request_t request_of(hg_id_t id)
{
  static one_t params = { 7 };
  hg_request_t request;
  MUST(HG_Forward(live.addr, id, &params, &params, &request));
  return request;
}

static na_class_t *alien;           /* a class over "self", and its context */
static na_context_t *alien_context;
static na_mem_handle_t read_only, unregistered;
static hg_bulk_t read_only_bulk;
static char none_after[32];         /* the address of a nonexistent rank */
static na_addr_t next;               /* the address of the next rank */
static na_op_id_t op;
static unsigned char large[1 << 18];

/* Returns the bytes of a handle with one bit flipped. */
static const void *spoilt(const unsigned char *from, size_t bytes)
{
  static unsigned char copy[ROOM];
  memcpy(copy, from, bytes);
  copy[bytes / 2] ^= 1;
  return copy;
}

/* Returns the bytes of a handle of another kind, in a buffer that is long enough. */
static const void *spoilt_other(const unsigned char *from)
{
  static unsigned char copy[ROOM];
  return memcpy(copy, from, ROOM);
}

/* ------------------------------------------------------------------- arguments */

#define N(name, ...) BAD_FAULT(ALL_RANKS, name, NA_INVALID_ARG, "`NA_INVALID_ARG`", __VA_ARGS__)
#define F(name, ...) BAD_FAULT(ALL_RANKS, name, HG_INVALID_ARG, "`HG_INVALID_ARG`", __VA_ARGS__)
#define CASE(call, fault, code, expression) BAD_CASE(call, fault, code, "`" #code "`", expression)

/* A handle that may be null, and one that may not. */
#define HANDLE(X, type, name, function, field, other)                                          \
  ARG(type, function##_or_null, name,                                                          \
      X("an address of memory", good = (type)(void *)here) X("that was freed", good = gone.field) \
      X("a handle of another kind", good = (type)(void *)live.other))                          \
  ARG(type, function##_not_null, name " that cannot be null", X("null", good = NULL))          \
  static type function(type good) { return function##_not_null(function##_or_null(good)); }
HANDLE(N, na_class_t *, "class", cls, cls, ctx)
HANDLE(N, na_context_t *, "context", ctx, ctx, cls)
HANDLE(N, na_addr_t, "peer's address", addr, addr, mem)
HANDLE(N, na_mem_handle_t, "memory handle", mem, mem, addr)
HANDLE(N, na_mem_handle_t, "remote memory handle", remote, remote, bulk)
HANDLE(F, na_addr_t, "peer's address of a call", peer, addr, bulk)
HANDLE(F, hg_request_t, "request", request, request, bulk)
HANDLE(F, hg_bulk_request_t, "bulk request", transfer, transfer, request)
HANDLE(F, hg_bulk_t, "bulk handle", bulk, bulk, mem)
HANDLE(F, hg_bulk_t, "origin's bulk handle", origin, origin, remote)
HANDLE(F, hg_handle_t, "handle of a served call", served, served, request)

/* Arguments other than handles. */
#define NC(name, code, ...) BAD_FAULT(ALL_RANKS, name, NA_##code, "`NA_" #code "`", __VA_ARGS__)
#define FC(name, code, ...) BAD_FAULT(ALL_RANKS, name, HG_##code, "`HG_" #code "`", __VA_ARGS__)
ARG(const char *, name_of, "name of an address",
    N("null", good = NULL) N("empty", good = "") N("not UTF-8", good = "\xff\xfe") N("mpi://", good = "mpi://")
    N("mpi://-1", good = "mpi://-1") N("mpi://99999999999999999999", good = "mpi://99999999999999999999")
    NC("of a rank that is none", ADDRNOTAVAIL, good = none_after) NC("of another network", ADDRNOTAVAIL, good = "tcp://1"))
ARG(void *, nto, "place for a result of NA", N("null", good = NULL))
ARG(na_size_t, text_size, "size of a text", NC("3 bytes", OVERFLOW, good = 3) NC("0", OVERFLOW, good = 0))
ARG(void *, text, "buffer of a text", N("null", good = NULL))
ARG(void *, message, "buffer of a message", N("null", good = NULL))
#define LARGEST(kind) NC("above the largest", MSGSIZE, good = NA_Msg_get_max_##kind##_size(network) + 1)
ARG(na_size_t, unexpected, "size of an unexpected message", LARGEST(unexpected) N("UINT64_MAX", good = UINT64_MAX))
ARG(na_size_t, expected, "size of an expected message", LARGEST(expected) N("UINT64_MAX", good = UINT64_MAX))
ARG(na_tag_t, tag, "tag", N("above the largest", good = NA_Msg_get_max_tag(network) + 1))
ARG(void *, region, "memory", N("null", good = NULL))
ARG(na_size_t, region_size, "size of memory", N("UINT64_MAX", good = UINT64_MAX))
ARG(unsigned long, nflags, "NA flags", N("0", good = 0) N("4", good = 4))
ARG(struct na_segment *, nsegments, "NA segments",
    N("null", good = NULL) N("not aligned", good = (struct na_segment *)(void *)((char *)good + 4))
    N("beyond the address space", good->address = (na_ptr_t)-4) N("at the null address", good->address = 0))
/* The bytes of the array wrap around to 0, or exceed every memory. */
ARG(na_size_t, nsegment_count, "number of NA segments",
    N("0", good = 0) N("2^60", good = (na_size_t)1 << 60)
    NC("2^58, more than memory can list", NOMEM, good = (na_size_t)1 << 58))
ARG(void *, mem_room, "buffer for a memory handle", N("null", good = NULL))
ARG(na_size_t, mem_room_size, "size of the buffer for a memory handle", NC("too short", OVERFLOW, good = packed_size - 1))
ARG(const void *, mem_bytes, "bytes of a memory handle",
    N("null", good = NULL) NC("damaged", CHECKSUM_ERROR, good = spoilt(packed, packed_size))
    NC("of another kind", PROTOCOL_ERROR, good = spoilt_other(packed_bulk)))
ARG(na_size_t, mem_bytes_size, "size of the bytes of a memory handle",
    N("UINT64_MAX", good = UINT64_MAX) NC("0", PROTOCOL_ERROR, good = 0)
    NC("cut off", PROTOCOL_ERROR, good = packed_size - 1))
#define PAST NC("past the end", OVERFLOW, good = 17) NC("UINT64_MAX", OVERFLOW, good = UINT64_MAX)
ARG(na_offset_t, from_local, "offset in local memory", PAST)
ARG(na_offset_t, from_remote, "offset in remote memory", PAST)
ARG(na_size_t, moves, "bytes of NA to move", PAST)
ARG(na_mem_handle_t, registered, "local memory handle", NC("not registered", ACCESS, good = unregistered))

ARG(hg_id_t, id, "number of a function", FC("not registered", NO_MATCH, good = 123456))
ARG(void *, params, "parameters of a function", F("null", good = NULL))
ARG(void *, to, "place for a result", F("null", good = NULL))
ARG(size_t, response, "size of a response", FC("more than its buffer has", OVERFLOW, good = 1 << 20))
ARG(size_t, segments, "number of segments",
    F("0", good = 0) F("2^61", good = (size_t)1 << 61) F("SIZE_MAX", good = SIZE_MAX))
ARG(void **, blocks, "segments", F("null behind a good one", good[1] = NULL))
ARG(size_t *, sizes, "sizes of segments", F("beyond the address space", good[0] = SIZE_MAX))
ARG(size_t *, memory, "sizes of memory to be allocated",
    FC("SIZE_MAX", NOMEM, good[0] = SIZE_MAX) FC("2^50", NOMEM, good[0] = (size_t)1 << 50))
ARG(unsigned long, flags, "flags", F("0", good = 0) F("4", good = 4))
ARG(size_t, offset, "offset in a bulk handle", FC("past the end", OVERFLOW, good = 17))
ARG(size_t, origin_offset, "offset in the origin's bulk handle", FC("past the end", OVERFLOW, good = 17))
ARG(size_t, size, "bytes to move or access", FC("past the ends", OVERFLOW, good = 17) FC("SIZE_MAX", OVERFLOW, good = SIZE_MAX))
ARG(hg_bulk_op_t, way, "operation", F("2", good = (hg_bulk_op_t)2) F("-1", good = (hg_bulk_op_t)-1))
ARG(void *, room, "buffer for a bulk handle", F("null", good = NULL))
ARG(size_t, room_size, "size of the buffer for a bulk handle", FC("too short", OVERFLOW, good = packed_bulk_size - 1))
ARG(const void *, bytes_of, "bytes of a bulk handle",
    F("null", good = NULL) FC("damaged", CHECKSUM_ERROR, good = spoilt(packed_bulk, packed_bulk_size))
    FC("of another kind", PROTOCOL_ERROR, good = spoilt_other(packed)))
ARG(size_t, bytes_size, "size of the bytes of a bulk handle",
    F("SIZE_MAX", good = SIZE_MAX) FC("0", PROTOCOL_ERROR, good = 0)
    FC("cut off", PROTOCOL_ERROR, good = packed_bulk_size - 1))

/* --------------------------------------- what calls make, use up, and return */

static int is_good(void) { return bad_now == GOOD_CALL; }
static hg_request_t used;           /* the request of a call whose handle a row uses up */

static hg_handle_t to_serve(void)
{
  if (!is_good())
    return live.served;
  used = request_of(kept_id);
  return kept;
}

static int served_up(int rc)
{
  if (is_good()) {
    HG_Handler_free(kept);          /* fails if the call has freed it */
    MUST(HG_Request_free(used));
  }
  return rc;
}

static int at_its_time(int rc) { return rc == HG_TIMEOUT ? HG_SUCCESS : rc; }
static int context_made(na_context_t *made) { return made ? (int)NA_Context_destroy(live.cls, made) : REFUSED; }
static int addr_made(int rc) { return rc ? rc : (int)NA_Addr_free(live.cls, out.addr); }
static int mem_made(int rc) { return rc ? rc : (int)NA_Mem_handle_free(live.cls, out.mem); }
static int bulk_made(int rc) { return rc ? rc : (int)HG_Bulk_handle_free(out.bulk); }
static int request_made(int rc) { return rc ? rc : (int)HG_Request_free(out.request); }
static int moved(int rc) { return rc ? rc : (int)HG_Bulk_wait(out.ptr, 10000, HG_STATUS_IGNORE); }

static na_addr_t spare_addr(void)
{
  na_addr_t it = live.addr;
  if (is_good())
    MUST(NA_Addr_self(live.cls, &it));
  return it;
}

static hg_bulk_t spare_bulk(void)
{
  hg_bulk_t it = live.bulk;
  if (is_good())
    MUST(HG_Bulk_handle_create(1, NULL, &(size_t){ 8 }, HG_BULK_READWRITE, &it));
  return it;
}

static na_mem_handle_t spare_mem(void)
{
  na_mem_handle_t it = live.mem;
  if (is_good())
    MUST(NA_Mem_handle_create(live.cls, here, 8, NA_MEM_READWRITE, &it));
  return it;
}

static hg_bulk_request_t spare_transfer(void)
{
  hg_bulk_request_t it = live.transfer;
  if (is_good())
    MUST(HG_Bulk_transfer(HG_BULK_PULL, live.addr, live.origin, 0, live.bulk, 0, 8, &it));
  return it;
}

/* ---------------------------------------------------------------------- tables */

/* A call that returns `none` instead of a code. */
#define GETS(none, name, ...) BAD_ROW(#name, none, (__VA_ARGS__), name(__VA_ARGS__) ? 0 : REFUSED)
#define NA_LIVE cls(live.cls), ctx(live.ctx)
#define NA_START NA_LIVE, na_ended, NULL
#define NA_ADDR cls(live.cls), addr(live.addr)
enum { NA_ENDS = 7 };               /* callbacks that these calls run with good input */

static void na_calls(void)
{
  CODE(NA_Finalize, cls(is_good() ? NA_Initialize("self", NA_FALSE) : live.cls));
  GETS("false", NA_Is_listening, cls(live.cls));
  OUTCOME("`NULL`", context_made, NA_Context_create, cls(live.cls));
  CODE(NA_Context_destroy, cls(live.cls), ctx(is_good() ? NA_Context_create(live.cls) : live.ctx));
  CODE(NA_Addr_lookup, NA_START, name_of("mpi://0"), NA_OP_ID_IGNORE);
  AS(addr_made, NA_Addr_lookup_wait, cls(live.cls), name_of("mpi://0"), nto(&out.addr));
  CODE(NA_Addr_free, cls(live.cls), addr(spare_addr()));
  AS(addr_made, NA_Addr_self, cls(live.cls), nto(&out.addr));
  AS(addr_made, NA_Addr_dup, NA_ADDR, nto(&out.addr));
  GETS("false", NA_Addr_is_self, NA_ADDR);
  CODE(NA_Addr_to_string, cls(live.cls), text(out.text), text_size(sizeof out.text), addr(live.addr));
  GETS("0", NA_Msg_get_max_expected_size, cls(live.cls));
  GETS("0", NA_Msg_get_max_unexpected_size, cls(live.cls));
  GETS("0", NA_Msg_get_max_tag, cls(live.cls));
  CODE(NA_Msg_recv_unexpected, NA_START, message(large), 8, NULL);
  CODE(NA_Msg_send_unexpected, NA_START, message(large), unexpected(8), addr(live.addr), tag(1), NULL);
  CODE(NA_Msg_recv_expected, NA_START, message(large), 8, addr(live.addr), tag(2), NULL);
  CODE(NA_Msg_send_expected, NA_START, message(large), expected(8), addr(live.addr), tag(2), NULL);
  AS(mem_made, NA_Mem_handle_create, cls(live.cls), region(here), region_size(8), nflags(NA_MEM_READWRITE), nto(&out.mem));
  AS(mem_made, NA_Mem_handle_create_segments, cls(live.cls), nsegments(&(struct na_segment){ (na_ptr_t)here, 8 }), nsegment_count(1),
     NA_MEM_READWRITE, &out.mem);
  CODE(NA_Mem_handle_free, cls(live.cls), mem(spare_mem()));
  CODE(NA_Mem_deregister, cls(live.cls), mem(live.mem));
  CODE(NA_Mem_register, cls(live.cls), mem(live.mem));
  GETS("0", NA_Mem_handle_get_serialize_size, cls(live.cls), mem(live.mem));
  CODE(NA_Mem_handle_serialize, cls(live.cls), mem_room(packed), mem_room_size(sizeof packed), mem(live.mem));
  AS(mem_made, NA_Mem_handle_deserialize, cls(live.cls), nto(&out.mem), mem_bytes(packed), mem_bytes_size(packed_size));
  CODE(NA_Put, NA_START, registered(mem(live.mem)), from_local(0), remote(live.remote), from_remote(0), moves(8),
        addr(live.addr), NULL);
  CODE(NA_Get, NA_START, registered(mem(live.mem)), from_local(0), remote(live.remote), from_remote(0), moves(8),
        addr(live.addr), NULL);
  AS(at_its_time, NA_Progress, NA_LIVE, 0);
  AS(at_its_time, NA_Trigger, ctx(live.ctx), 0, 100, &out.count);
}

static void hg_started(void)        /* calls that need HG_Init */
{
  AS(request_made, HG_Forward, peer(live.addr), id(one_id), params(&out.params), NULL, to(&out.request));
  CODE(HG_Wait, request(live.request), 10000, &out.status);
  CODE(HG_Wait_all, 1, &(hg_request_t){ request(live.request) }, 10000, &out.status);
  AS(moved, HG_Bulk_transfer, way(HG_BULK_PULL), peer(live.addr), origin(live.origin), origin_offset(0),
     bulk(live.bulk), offset(0), size(8), to(&out.ptr));
  CODE(HG_Bulk_wait, transfer(spare_transfer()), 10000, &out.status);
}

static void hg_made(void)
{
  AS(bulk_made, HG_Bulk_handle_create, segments(2), blocks((void *[]){ here, here + 8 }), sizes((size_t[]){ 8, 8 }),
     flags(HG_BULK_READWRITE), to(&out.bulk));
  AS(bulk_made, HG_Bulk_handle_create, 1, NULL, memory((size_t[]){ 8 }), HG_BULK_READWRITE, to(&out.bulk));
  AS(bulk_made, HG_Bulk_handle_deserialize, to(&out.bulk), bytes_of(packed_bulk), bytes_size(packed_bulk_size));
}

static void hg_freed(void)          /* null is legal */
{
  CODE(HG_Bulk_handle_free, bulk_or_null(spare_bulk()));
  CODE(HG_Bulk_free, bulk_or_null(spare_bulk()));
  NO_FAULT(HG_Handler_process); NO_FAULT(HG_Bulk_finalize);
}

static void hg_calls(void)
{
  CODE(HG_Request_free, request(is_good() ? request_of(one_id) : live.request));
  GETS("`NULL`", HG_Handler_get_addr, served(live.served));
  CODE(HG_Handler_get_input, served(live.served), params(&out.params));
  CODE(HG_Handler_free_input, served(live.served), params(&out.params));
  CODE(HG_Handler_get_input_buf, served(live.served), to(&out.ptr), to(&out.length));
  CODE(HG_Handler_get_output_buf, served(live.served), to(&out.ptr), to(&out.length));
  AS(served_up, HG_Handler_start_output, served(to_serve()), params(&out.params));
  AS(served_up, HG_Handler_start_response, served(to_serve()), NULL, response(8));
  AS(served_up, HG_Handler_free, served(to_serve()));
  CODE(HG_Bulk_handle_access, bulk(live.bulk), offset(0), size(8), HG_BULK_READWRITE, 1, &out.ptr, &out.length, &out.count);
  GETS("0", HG_Bulk_handle_get_size, bulk(live.bulk));
  GETS("0", HG_Bulk_handle_get_segment_count, bulk(live.bulk));
  GETS("0", HG_Bulk_handle_get_serialize_size, bulk(live.bulk));
  CODE(HG_Bulk_handle_serialize, room(packed_bulk), room_size(sizeof packed_bulk), bulk(live.bulk));
  /* The names of Mercury 0.9. */
  CODE(HG_Get_input, served(live.served), params(&out.params));
  CODE(HG_Free_input, served(live.served), params(&out.params));
  AS(served_up, HG_Destroy, served(to_serve()));
  CODE(HG_Bulk_access, bulk(live.bulk), 0, 8, HG_BULK_READWRITE, 1, &out.ptr, &out.size, &out.count);
  GETS("0", HG_Bulk_get_size, bulk(live.bulk));
  GETS("0", HG_Bulk_get_segment_count, bulk(live.bulk));
}

#endif /* MERCURY_INVALID_HANDLES_H */
