/*
 * mercury_invalid_handles.h - the calls of na.h and mercury*.h that take handles, and the faults of
 * these handles: two tables. mercury_invalid.c combines each call with each fault that applies to
 * it.
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
static struct handles good, gone, in;

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

static void good_input(void) { in = good; }

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
  MUST(HG_Forward(good.addr, id, &params, &params, &request));
  return request;
}

/* Runs a call that consumes its handle. Replaces the good handle by a fresh one. */
static int on_served(hg_return_t (*call)(hg_handle_t))
{
  if (in.served != good.served)
    return call(in.served);
  const hg_request_t request = request_of(kept_id);
  const hg_handle_t handle = kept;
  const int rc = call(handle);
  HG_Handler_free(handle);          /* fails if the call has freed it */
  MUST(HG_Request_free(request));
  return rc;
}

static hg_return_t start_output(hg_handle_t h) { return HG_Handler_start_output(h, &out.params); }
static hg_return_t start_response(hg_handle_t h) { return HG_Handler_start_response(h, NULL, 8); }

/* Calls that return no code report a rejection by 0 or NULL. */
static int no(int is) { return is ? HG_SUCCESS : HG_INVALID_ARG; }
static int at_its_time(int rc) { return rc == HG_TIMEOUT ? HG_SUCCESS : rc; }

static int context_made(na_context_t *made) { return made == NULL ? NA_INVALID_ARG : NA_Context_destroy(good.cls, made); }
static int addr_made(int rc) { return rc ? rc : NA_Addr_free(good.cls, out.addr); }
static int mem_made(int rc) { return rc ? rc : NA_Mem_handle_free(good.cls, out.mem); }

/* Calls that consume a good handle get a fresh one instead. */
static int all_good(void) { return memcmp(&in, &good, sizeof in) == 0; }

static na_addr_t spare_addr(void)
{
  na_addr_t addr = in.addr;
  if (all_good())
    MUST(NA_Addr_self(good.cls, &addr));
  return addr;
}

static hg_bulk_t spare_bulk(void)
{
  hg_bulk_t bulk = in.bulk;
  size_t size = 8;
  if (all_good())
    MUST(HG_Bulk_handle_create(1, NULL, &size, HG_BULK_READWRITE, &bulk));
  return bulk;
}

static na_mem_handle_t spare_mem(void)
{
  na_mem_handle_t mem = in.mem;
  if (all_good())
    MUST(NA_Mem_handle_create(good.cls, here, 8, NA_MEM_READWRITE, &mem));
  return mem;
}

/* A bulk transfer of this process with itself. */
static int moved(int rc) { return rc ? rc : HG_Bulk_wait(out.ptr, 10000, HG_STATUS_IGNORE); }

static hg_bulk_request_t spare_transfer(void)
{
  hg_bulk_request_t request = in.transfer;
  if (all_good())
    MUST(HG_Bulk_transfer(HG_BULK_PULL, good.addr, good.origin, 0, good.bulk, 0, 8, &request));
  return request;
}

enum { CLS = 1, CTX = 2, ADDR = 4, MEM = 8, REMOTE = 16, REQUEST = 32, TRANSFER = 64, BULK = 128, ORIGIN = 256,
       SERVED = 512,
       BULK_OR_NULL = 1024 };       /* null is legal: nothing to free */

#define NA_CALLS(X)                                                                                       \
  X(NA_Finalize, CLS, NA_Finalize(in.cls == good.cls ? NA_Initialize("self", NA_FALSE) : in.cls))         \
  X(NA_Is_listening, CLS, no(NA_Is_listening(in.cls)))                                                    \
  X(NA_Context_create, CLS, context_made(NA_Context_create(in.cls)))                                      \
  X(NA_Context_destroy, CLS | CTX,                                                                        \
    NA_Context_destroy(in.cls, all_good() ? NA_Context_create(good.cls) : in.ctx))                        \
  X(NA_Addr_lookup, CLS | CTX, NA_Addr_lookup(in.cls, in.ctx, na_ended, NULL, "mpi://0", NA_OP_ID_IGNORE)) \
  X(NA_Addr_lookup_wait, CLS, addr_made(NA_Addr_lookup_wait(in.cls, "mpi://0", &out.addr)))               \
  X(NA_Addr_free, CLS | ADDR, NA_Addr_free(in.cls, spare_addr()))                                         \
  X(NA_Addr_self, CLS, addr_made(NA_Addr_self(in.cls, &out.addr)))                                        \
  X(NA_Addr_dup, CLS | ADDR, addr_made(NA_Addr_dup(in.cls, in.addr, &out.addr)))                          \
  X(NA_Addr_is_self, CLS | ADDR, no(NA_Addr_is_self(in.cls, in.addr)))                                    \
  X(NA_Addr_to_string, CLS | ADDR, NA_Addr_to_string(in.cls, out.text, sizeof out.text, in.addr))         \
  X(NA_Msg_get_max_expected_size, CLS, no(NA_Msg_get_max_expected_size(in.cls) != 0))                     \
  X(NA_Msg_get_max_unexpected_size, CLS, no(NA_Msg_get_max_unexpected_size(in.cls) != 0))                 \
  X(NA_Msg_get_max_tag, CLS, no(NA_Msg_get_max_tag(in.cls) != 0))                                         \
  X(NA_Msg_recv_unexpected, CLS | CTX, NA_Msg_recv_unexpected(in.cls, in.ctx, na_ended, NULL, here, 8, NULL)) \
  X(NA_Msg_send_unexpected, CLS | CTX | ADDR,                                                             \
    NA_Msg_send_unexpected(in.cls, in.ctx, na_ended, NULL, here, 8, in.addr, 1, NULL))                    \
  X(NA_Msg_recv_expected, CLS | CTX | ADDR,                                                               \
    NA_Msg_recv_expected(in.cls, in.ctx, na_ended, NULL, here, 8, in.addr, 2, NULL))                      \
  X(NA_Msg_send_expected, CLS | CTX | ADDR,                                                               \
    NA_Msg_send_expected(in.cls, in.ctx, na_ended, NULL, here, 8, in.addr, 2, NULL))                      \
  X(NA_Mem_handle_create, CLS, mem_made(NA_Mem_handle_create(in.cls, here, 8, NA_MEM_READWRITE, &out.mem))) \
  X(NA_Mem_handle_create_segments, CLS,                                                                   \
    mem_made(NA_Mem_handle_create_segments(in.cls, &(struct na_segment){ (na_ptr_t)here, 8 }, 1,          \
                                           NA_MEM_READWRITE, &out.mem)))                                  \
  X(NA_Mem_handle_free, CLS | MEM, NA_Mem_handle_free(in.cls, spare_mem()))                               \
  X(NA_Mem_deregister, CLS | MEM, NA_Mem_deregister(in.cls, in.mem))                                      \
  X(NA_Mem_register, CLS | MEM, NA_Mem_register(in.cls, in.mem))                                          \
  X(NA_Mem_handle_get_serialize_size, CLS | MEM, no(NA_Mem_handle_get_serialize_size(in.cls, in.mem) != 0)) \
  X(NA_Mem_handle_serialize, CLS | MEM, NA_Mem_handle_serialize(in.cls, packed, sizeof packed, in.mem))   \
  X(NA_Mem_handle_deserialize, CLS,                                                                       \
    mem_made(NA_Mem_handle_deserialize(in.cls, &out.mem, packed, packed_size)))                           \
  X(NA_Put, CLS | CTX | ADDR | MEM | REMOTE,                                                              \
    NA_Put(in.cls, in.ctx, na_ended, NULL, in.mem, 0, in.remote, 0, 8, in.addr, NULL))                    \
  X(NA_Get, CLS | CTX | ADDR | MEM | REMOTE,                                                              \
    NA_Get(in.cls, in.ctx, na_ended, NULL, in.mem, 0, in.remote, 0, 8, in.addr, NULL))                    \
  X(NA_Progress, CLS | CTX, at_its_time(NA_Progress(in.cls, in.ctx, 0)))                                  \
  X(NA_Trigger, CTX, at_its_time(NA_Trigger(in.ctx, 0, 100, &out.count)))
enum { NA_ENDS = 7 };               /* callbacks that these calls run with good input */

#define HG_CALLS(X)                                                                                       \
  X(HG_Forward, ADDR, request_made(HG_Forward(in.addr, one_id, &out.params, NULL, &out.request)))           \
  X(HG_Wait, REQUEST, HG_Wait(in.request, 10000, &out.status))                                            \
  X(HG_Wait_all, REQUEST, HG_Wait_all(1, &in.request, 10000, &out.status))                                \
  X(HG_Request_free, REQUEST, HG_Request_free(in.request == good.request ? request_of(one_id) : in.request)) \
  X(HG_Handler_get_addr, SERVED, no(HG_Handler_get_addr(in.served) != NULL))                              \
  X(HG_Handler_get_input, SERVED, HG_Handler_get_input(in.served, &out.params))                           \
  X(HG_Handler_free_input, SERVED, HG_Handler_free_input(in.served, &out.params))                         \
  X(HG_Handler_get_input_buf, SERVED, HG_Handler_get_input_buf(in.served, &out.ptr, &out.length))         \
  X(HG_Handler_get_output_buf, SERVED, HG_Handler_get_output_buf(in.served, &out.ptr, &out.length))       \
  X(HG_Handler_start_output, SERVED, on_served(start_output))                                             \
  X(HG_Handler_start_response, SERVED, on_served(start_response))                                         \
  X(HG_Handler_free, SERVED, on_served(HG_Handler_free))                                                  \
  X(HG_Bulk_handle_free, BULK_OR_NULL, HG_Bulk_handle_free(spare_bulk()))                                         \
  X(HG_Bulk_handle_access, BULK,                                                                          \
    HG_Bulk_handle_access(in.bulk, 0, 8, HG_BULK_READWRITE, 1, &out.ptr, &out.length, &out.count))        \
  X(HG_Bulk_handle_get_size, BULK, no(HG_Bulk_handle_get_size(in.bulk) != 0))                             \
  X(HG_Bulk_handle_get_segment_count, BULK, no(HG_Bulk_handle_get_segment_count(in.bulk) != 0))           \
  X(HG_Bulk_handle_get_serialize_size, BULK, no(HG_Bulk_handle_get_serialize_size(in.bulk) != 0))         \
  X(HG_Bulk_handle_serialize, BULK, HG_Bulk_handle_serialize(packed_bulk, sizeof packed_bulk, in.bulk))   \
  X(HG_Bulk_transfer, ADDR | BULK | ORIGIN,                                                               \
    moved(HG_Bulk_transfer(HG_BULK_PULL, in.addr, in.origin, 0, in.bulk, 0, 8, &out.ptr)))                \
  X(HG_Bulk_wait, TRANSFER, HG_Bulk_wait(spare_transfer(), 10000, &out.status))                           \
  /* the names of Mercury 0.9 */                                                                          \
  X(HG_Get_input, SERVED, HG_Get_input(in.served, &out.params))                                           \
  X(HG_Free_input, SERVED, HG_Free_input(in.served, &out.params))                                         \
  X(HG_Destroy, SERVED, on_served(HG_Destroy))                                                            \
  X(HG_Bulk_free, BULK_OR_NULL, HG_Bulk_free(spare_bulk()))                                               \
  X(HG_Bulk_access, BULK, HG_Bulk_access(in.bulk, 0, 8, HG_BULK_READWRITE, 1, &out.ptr, &out.size, &out.count)) \
  X(HG_Bulk_get_size, BULK, no(HG_Bulk_get_size(in.bulk) != 0))                                           \
  X(HG_Bulk_get_segment_count, BULK, no(HG_Bulk_get_segment_count(in.bulk) != 0))

static int request_made(int rc) { return rc ? rc : HG_Request_free(out.request); }

#define DEFINE_CALL(name, traits, expression) static int run_##name(void) { return expression; }
NA_CALLS(DEFINE_CALL)
HG_CALLS(DEFINE_CALL)
#define CALL_ROW(name, traits, expression) { #name, traits, run_##name },
static const struct refusals_call na_calls[] = { NA_CALLS(CALL_ROW) { NULL, 0, NULL } };
static const struct refusals_call hg_calls[] = { HG_CALLS(CALL_ROW) { NULL, 0, NULL } };

/* ------------------------------------------------------------------- faults */

/* Faults of each kind of handle: null, an address of the program, freed, another kind. */
#define FAULTS_OF(X, trait, words, field, other)                                     \
  X(field##_null, "a null " words, trait, in.field = NULL)                           \
  FAULTS_BUT_NULL(X, trait, words, field, other)
#define FAULTS_BUT_NULL(X, trait, words, field, other)                               \
  X(field##_address, "an address of memory for the " words, trait, in.field = (void *)here) \
  X(field##_gone, "a " words " that was freed", trait, in.field = gone.field)        \
  X(field##_other, "a handle of another kind for the " words, trait, in.field = (void *)good.other)

#define NA_FAULTS(X)                                              \
  FAULTS_OF(X, CLS, "class", cls, ctx)                            \
  FAULTS_OF(X, CTX, "context", ctx, cls)                          \
  FAULTS_OF(X, ADDR, "peer's address", addr, mem)                 \
  FAULTS_OF(X, MEM, "memory handle", mem, addr)                   \
  FAULTS_OF(X, REMOTE, "remote memory handle", remote, bulk)
#define HG_FAULTS(X)                                              \
  FAULTS_OF(X, ADDR, "peer's address", addr, bulk)                \
  FAULTS_OF(X, REQUEST, "request", request, bulk)                 \
  FAULTS_OF(X, TRANSFER, "bulk request", transfer, request)       \
  X(bulk_null, "a null bulk handle", BULK, in.bulk = NULL)        \
  FAULTS_BUT_NULL(X, BULK | BULK_OR_NULL, "bulk handle", bulk, mem) \
  FAULTS_OF(X, ORIGIN, "origin's bulk handle", origin, remote)    \
  FAULTS_OF(X, SERVED, "handle of a call that is served", served, request)

#define DEFINE_FAULT(id, name, traits, statement) static void spoil_##id(void) { statement; }
#define DEFINE_NA_FAULT(id, name, traits, statement) DEFINE_FAULT(na_##id, name, traits, statement)
#define DEFINE_HG_FAULT(id, name, traits, statement) DEFINE_FAULT(hg_##id, name, traits, statement)
NA_FAULTS(DEFINE_NA_FAULT)
HG_FAULTS(DEFINE_HG_FAULT)
#define NA_FAULT_ROW(id, name, traits, statement) FAULT(name, traits, NA_INVALID_ARG, spoil_na_##id),
#define HG_FAULT_ROW(id, name, traits, statement) FAULT(name, traits, HG_INVALID_ARG, spoil_hg_##id),
static const struct refusals_fault na_faults[] = { NA_FAULTS(NA_FAULT_ROW) { NULL, 0, 0, NULL, NULL, NULL } };
static const struct refusals_fault hg_faults[] = {
  HG_FAULTS(HG_FAULT_ROW)
  FAULT("a null bulk handle, which these calls allow", BULK_OR_NULL, HG_SUCCESS, spoil_hg_bulk_null),
  { NULL, 0, 0, NULL, NULL, NULL }
};

#endif /* MERCURY_INVALID_HANDLES_H */
