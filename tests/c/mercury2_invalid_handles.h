/*
 * mercury2_invalid_handles.h - the calls of Mercury 2.4 that take handles, and the faults of these
 * handles: two tables. mercury2_invalid.c combines each call with each fault that applies to it.
 */
#ifndef MERCURY2_INVALID_HANDLES_H
#define MERCURY2_INVALID_HANDLES_H

MERCURY_GEN_PROC(one_t, ((int32_t)(x)))

enum { ROOM = 512 };

static unsigned char here[ROOM], packed[ROOM], packed_mem[ROOM], packed_addr[ROOM];
static size_t packed_size, packed_mem_size, packed_addr_size;
static volatile int ended;          /* callbacks that ran */
static hg_id_t one_id, kept_id, bare_id;
static volatile hg_handle_t kept;   /* a call that its handler has not answered */
static na_class_t *na;

/* A handle of each kind. HG: class, context, address, handle of a call that is served, of a call of
 * one's own, bulk handles. NA: class, context, address, memory handles. */
struct handles {
  hg_class_t *cls;
  hg_context_t *ctx;
  hg_addr_t addr;
  hg_handle_t served, made;
  hg_bulk_t bulk, origin;
  na_class_t *ncls;
  na_context_t *nctx;
  na_addr_t *naddr;
  na_mem_handle_t *mem, *remote;
};
static struct handles good, gone, in;

/* Results of the calls. */
static struct {
  hg_addr_t addr;
  hg_bulk_t bulk;
  hg_handle_t handle;
  hg_id_t id;
  hg_op_id_t op;
  na_addr_t *naddr;
  na_mem_handle_t *mem;
  hg_proc_cb_t procs[2];
  struct hg_diag_counters counters;
  uint8_t flag;
  unsigned int count;
  uint32_t segments;
  void *ptr;
  hg_size_t size;
  char text[CHECK_ADDRESS];
  one_t params;
} out;

static void good_input(void) { in = good; }
static int all_good(void) { return memcmp(&in, &good, sizeof in) == 0; }

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

/* Returns the handle of a call to this process. A call of `one` has ended, others are kept. */
static hg_handle_t called(hg_id_t id)
{
  hg_handle_t handle;
  one_t params = { 7 };
  MUST(HG_Create(good.ctx, good.addr, id, &handle));
  kept = HG_HANDLE_NULL;
  MUST(HG_Forward(handle, hg_ended, NULL, &params));
  if (id == one_id)
    one_more(HG_SUCCESS);
  while (id != one_id && kept == HG_HANDLE_NULL)
    pump(good.ctx, 20);
  return handle;
}

/* Destroys both handles of a kept call when it has ended. */
static void forget(hg_handle_t made, hg_handle_t served)
{
  MUST(HG_Destroy(served));
  one_more(HG_SUCCESS);
  ended--;
  MUST(HG_Destroy(made));
}

/* Runs a call that consumes a served handle. Replaces the good handle by a fresh one. */
static int on_served(hg_return_t (*call)(hg_handle_t))
{
  if (in.served != good.served)
    return call(in.served);
  const hg_handle_t made = called(kept_id), served = kept;
  const int rc = call(served);
  forget(made, served);
  return rc;
}

static hg_return_t respond(hg_handle_t handle) { return HG_Respond(handle, NULL, NULL, &out.params); }

/* Calls that return no code report a rejection by 0 or NULL. */
static int no(int is) { return is ? HG_SUCCESS : HG_INVALID_ARG; }
static int at_its_time(int rc) { return rc == HG_TIMEOUT ? HG_SUCCESS : rc; }

static int context_made(hg_context_t *made) { return made == NULL ? (int)HG_INVALID_ARG : (int)HG_Context_destroy(made); }
static int ncontext_made(na_context_t *made) { return made == NULL ? (int)NA_INVALID_ARG : (int)NA_Context_destroy(good.ncls, made); }
static int addr_made(int rc) { return rc ? rc : (int)HG_Addr_free(good.cls, out.addr); }
static int bulk_made(int rc) { return rc ? rc : (int)HG_Bulk_free(out.bulk); }
static int naddr_made(int rc) { if (rc == 0) NA_Addr_free(good.ncls, out.naddr); return rc; }
static int mem_made(int rc) { if (rc == 0) NA_Mem_handle_free(good.ncls, out.mem); return rc; }
static int ref_taken(int rc) { return rc ? rc : (int)HG_Destroy(in.made); }
static int bulk_ref_taken(int rc) { return rc ? rc : (int)HG_Bulk_free(in.bulk); }

/* Calls that consume a good handle get a fresh one instead. */
static hg_addr_t spare_addr(void)
{
  hg_addr_t addr = in.addr;
  if (all_good())
    MUST(HG_Addr_self(good.cls, &addr));
  return addr;
}

static hg_handle_t spare_made(void)
{
  hg_handle_t handle = in.made;
  if (all_good())
    MUST(HG_Create(good.ctx, good.addr, one_id, &handle));
  return handle;
}

static hg_bulk_t spare_bulk(void)
{
  hg_bulk_t bulk = in.bulk;
  if (all_good())
    MUST(HG_Bulk_create(good.cls, 1, NULL, &(hg_size_t){ 8 }, HG_BULK_READWRITE, &bulk));
  return bulk;
}

static int unposted(void)
{
  if (!all_good())
    return HG_Context_unpost(in.ctx);
  hg_context_t *fresh = HG_Context_create(good.cls);
  const int rc = HG_Context_unpost(fresh);
  MUST(HG_Context_destroy(fresh));
  return rc;
}

static int create(void)             /* leaves no trace if it succeeds, as an address may be null */
{
  hg_handle_t handle;
  const int rc = HG_Create(in.ctx, in.addr, one_id, &handle);
  return rc ? rc : (int)HG_Destroy(handle);
}

enum { CLS = 1, CTX = 2, ADDR = 4, SERVED = 8, MADE = 16, EITHER = 32, BULK = 64, ORIGIN = 128,
       NCLS = 256, NCTX = 512, NADDR = 1024, MEM = 2048, REMOTE = 4096,
       /* null is legal */
       CLS_OR_NULL = 1 << 13, CTX_OR_NULL = 1 << 14, ADDR_OR_NULL = 1 << 15, EITHER_OR_NULL = 1 << 16,
       BULK_OR_NULL = 1 << 17, NCLS_OR_NULL = 1 << 18, NCTX_OR_NULL = 1 << 19,
       /* comparing with null gives an answer */
       ADDR_COMPARED = 1 << 20, NADDR_COMPARED = 1 << 21 };

#define HG_CALLS(X)                                                                                       \
  X(HG_Finalize, CLS_OR_NULL, HG_Finalize(in.cls == good.cls ? HG_Init("self", HG_FALSE) : in.cls))       \
  X(HG_Class_get_name, CLS, no(HG_Class_get_name(in.cls) != NULL))                                        \
  X(HG_Class_get_protocol, CLS, no(HG_Class_get_protocol(in.cls) != NULL))                                \
  X(HG_Class_is_listening, CLS, no(HG_Class_is_listening(in.cls)))                                        \
  X(HG_Class_get_input_eager_size, CLS, no(HG_Class_get_input_eager_size(in.cls) != 0))                   \
  X(HG_Class_get_output_eager_size, CLS, no(HG_Class_get_output_eager_size(in.cls) != 0))                 \
  X(HG_Class_set_input_offset, CLS, HG_Class_set_input_offset(in.cls, 0))                                 \
  X(HG_Class_set_output_offset, CLS, HG_Class_set_output_offset(in.cls, 0))                               \
  X(HG_Class_set_data, CLS, HG_Class_set_data(in.cls, here, NULL))                                        \
  X(HG_Class_get_data, CLS, no(HG_Class_get_data(in.cls) != NULL))                                        \
  X(HG_Class_get_counters, CLS, HG_Class_get_counters(in.cls, &out.counters))                             \
  X(HG_Class_set_handle_create_callback, CLS, HG_Class_set_handle_create_callback(in.cls, NULL, NULL))    \
  X(HG_Context_create, CLS, context_made(HG_Context_create(in.cls)))                                      \
  X(HG_Context_create_id, CLS, context_made(HG_Context_create_id(in.cls, 7)))                             \
  X(HG_Context_destroy, CTX_OR_NULL, HG_Context_destroy(in.ctx == good.ctx ? HG_Context_create(good.cls) : in.ctx)) \
  X(HG_Context_unpost, CTX, unposted())                                                                   \
  X(HG_Context_get_class, CTX, no(HG_Context_get_class(in.ctx) != NULL))                                  \
  X(HG_Context_set_data, CTX, HG_Context_set_data(in.ctx, here, NULL))                                    \
  X(HG_Context_get_data, CTX, no(HG_Context_get_data(in.ctx) != NULL))                                    \
  X(HG_Progress, CTX, at_its_time(HG_Progress(in.ctx, 0)))                                                \
  X(HG_Trigger, CTX, at_its_time(HG_Trigger(in.ctx, 0, 1, &out.count)))                                   \
  X(HG_Event_progress, CTX, HG_Event_progress(in.ctx, &out.count))                                        \
  X(HG_Event_trigger, CTX, HG_Event_trigger(in.ctx, 1, &out.count))                                       \
  X(HG_Register_name, CLS, no(HG_Register_name(in.cls, "spare", NULL, NULL, NULL) != 0))                  \
  X(HG_Registered_name, CLS, HG_Registered_name(in.cls, "spare", &out.id, &out.flag))                     \
  X(HG_Register, CLS, HG_Register(in.cls, 5, NULL, NULL, NULL))                                           \
  X(HG_Registered, CLS, HG_Registered(in.cls, 5, &out.flag))                                              \
  X(HG_Registered_proc_cb, CLS, HG_Registered_proc_cb(in.cls, 5, &out.flag, &out.procs[0], &out.procs[1])) \
  X(HG_Register_data, CLS, HG_Register_data(in.cls, 5, here, NULL))                                       \
  X(HG_Registered_data, CLS, no(HG_Registered_data(in.cls, 5) != NULL))                                   \
  X(HG_Registered_disable_response, CLS, HG_Registered_disable_response(in.cls, 5, 0))                    \
  X(HG_Registered_disabled_response, CLS, HG_Registered_disabled_response(in.cls, 5, &out.flag))          \
  X(HG_Deregister, CLS, HG_Deregister(in.cls, 5))                                                         \
  X(HG_Addr_lookup1, CTX, one_more(HG_Addr_lookup1(in.ctx, hg_ended, NULL, "mpi://0", HG_OP_ID_IGNORE)))  \
  X(HG_Addr_lookup2, CLS, addr_made(HG_Addr_lookup2(in.cls, "mpi://0", &out.addr)))                       \
  X(HG_Addr_free, CLS | ADDR_OR_NULL, HG_Addr_free(in.cls, spare_addr()))                                 \
  X(HG_Addr_set_remove, CLS | ADDR, HG_Addr_set_remove(in.cls, in.addr))                                  \
  X(HG_Addr_self, CLS, addr_made(HG_Addr_self(in.cls, &out.addr)))                                        \
  X(HG_Addr_dup, CLS | ADDR, addr_made(HG_Addr_dup(in.cls, in.addr, &out.addr)))                          \
  X(HG_Addr_cmp, CLS | ADDR_COMPARED, no(HG_Addr_cmp(in.cls, in.addr, good.addr)))                        \
  X(HG_Addr_to_string, CLS | ADDR, HG_Addr_to_string(in.cls, out.text, &(hg_size_t){ sizeof out.text }, in.addr)) \
  X(HG_Create, CTX | ADDR_OR_NULL, create())                                                              \
  X(HG_Destroy, EITHER_OR_NULL, HG_Destroy(spare_made()))                                                 \
  X(HG_Ref_incr, EITHER, ref_taken(HG_Ref_incr(in.made)))                                                 \
  X(HG_Ref_get, EITHER, no(HG_Ref_get(in.made) > 0))                                                      \
  X(HG_Get_info, EITHER, no(HG_Get_info(in.made) != NULL))                                                \
  X(HG_Set_data, EITHER, HG_Set_data(in.made, here, NULL))                                                \
  X(HG_Get_data, EITHER, no(HG_Get_data(in.made) != NULL))                                                \
  X(HG_Set_target_id, EITHER, HG_Set_target_id(in.made, 0))                                               \
  X(HG_Get_input, SERVED, HG_Get_input(in.served, &out.params))                                           \
  X(HG_Free_input, EITHER, HG_Free_input(in.made == good.made ? in.served : in.made, &out.params))        \
  X(HG_Get_input_buf, EITHER, HG_Get_input_buf(in.made, &out.ptr, &out.size))                             \
  X(HG_Get_input_extra_buf, EITHER, HG_Get_input_extra_buf(in.made, &out.ptr, &out.size))                 \
  X(HG_Release_input_buf, SERVED, HG_Release_input_buf(in.served))                                        \
  X(HG_Respond, SERVED, on_served(respond))                                                               \
  X(HG_Get_output, MADE, HG_Get_output(in.made, &out.params))                                             \
  X(HG_Free_output, EITHER, HG_Free_output(in.made, &out.params))                                         \
  X(HG_Get_output_payload_size, EITHER, no(HG_Get_output_payload_size(in.made) != 0))                     \
  X(HG_Get_input_payload_size, EITHER, no(HG_Get_input_payload_size(in.made) != 0))                       \
  X(HG_Get_output_buf, EITHER, HG_Get_output_buf(in.made, &out.ptr, &out.size))                           \
  X(HG_Get_output_extra_buf, EITHER, HG_Get_output_extra_buf(in.made, &out.ptr, &out.size))               \
  X(HG_Forward, MADE, one_more(HG_Forward(in.made, hg_ended, NULL, &out.params)))                         \
  X(HG_Reset, MADE, HG_Reset(in.made, good.addr, one_id))                                                 \
  X(HG_Cancel, EITHER, HG_Cancel(in.made))                                                                \
  X(HG_Bulk_create, CLS,                                                                                  \
    bulk_made(HG_Bulk_create(in.cls, 1, NULL, &(hg_size_t){ 8 }, HG_BULK_READWRITE, &out.bulk)))          \
  X(HG_Bulk_create_attr, CLS,                                                                             \
    bulk_made(HG_Bulk_create_attr(in.cls, 1, NULL, &(hg_size_t){ 8 }, HG_BULK_READWRITE, NULL, &out.bulk))) \
  X(HG_Bulk_free, BULK_OR_NULL, HG_Bulk_free(spare_bulk()))                                               \
  X(HG_Bulk_ref_incr, BULK, bulk_ref_taken(HG_Bulk_ref_incr(in.bulk)))                                    \
  X(HG_Bulk_bind, CTX | BULK, HG_Bulk_bind(in.bulk, in.ctx))                                              \
  X(HG_Bulk_get_addr, BULK, no(HG_Bulk_get_addr(in.bulk) != NULL))                                        \
  X(HG_Bulk_access, BULK, HG_Bulk_access(in.bulk, 0, 8, HG_BULK_READWRITE, 1, &out.ptr, &out.size, &out.segments)) \
  X(HG_Bulk_get_size, BULK, no(HG_Bulk_get_size(in.bulk) != 0))                                           \
  X(HG_Bulk_get_segment_count, BULK, no(HG_Bulk_get_segment_count(in.bulk) != 0))                         \
  X(HG_Bulk_get_flags, BULK, no(HG_Bulk_get_flags(in.bulk) != 0))                                         \
  X(HG_Bulk_get_serialize_size, BULK, no(HG_Bulk_get_serialize_size(in.bulk, 0) != 0))                    \
  X(HG_Bulk_serialize, BULK, HG_Bulk_serialize(here + ROOM / 2, ROOM / 2, 0, in.bulk))                    \
  X(HG_Bulk_deserialize, CLS, bulk_made(HG_Bulk_deserialize(in.cls, &out.bulk, packed, packed_size)))     \
  X(HG_Bulk_transfer, CTX | ADDR | BULK | ORIGIN,                                                         \
    one_more(HG_Bulk_transfer(in.ctx, hg_ended, NULL, HG_BULK_PULL, in.addr, in.origin, 0, in.bulk, 0, 8, NULL))) \
  X(HG_Bulk_transfer_id, CTX | ADDR | BULK | ORIGIN,                                                      \
    one_more(HG_Bulk_transfer_id(in.ctx, hg_ended, NULL, HG_BULK_PULL, in.addr, 0, in.origin, 0, in.bulk, 0, 8, NULL))) \
  X(HG_Bulk_bind_transfer, CTX | BULK | ORIGIN,                                                           \
    one_more(HG_Bulk_bind_transfer(in.ctx, hg_ended, NULL, HG_BULK_PULL, in.origin, 0, in.bulk, 0, 8, NULL)))

#define NA_CALLS(X)                                                                                       \
  X(NA_Finalize, NCLS_OR_NULL, NA_Finalize(in.ncls == good.ncls ? NA_Initialize("self", false) : in.ncls)) \
  X(NA_Is_listening, NCLS, no(NA_Is_listening(in.ncls)))                                                  \
  X(NA_Get_class_name, NCLS, no(NA_Get_class_name(in.ncls) != NULL))                                      \
  X(NA_Get_class_protocol, NCLS, no(NA_Get_class_protocol(in.ncls) != NULL))                              \
  X(NA_Context_create, NCLS, ncontext_made(NA_Context_create(in.ncls)))                                   \
  X(NA_Context_create_id, NCLS, ncontext_made(NA_Context_create_id(in.ncls, 0)))                          \
  X(NA_Context_destroy, NCTX_OR_NULL,                                                                     \
    NA_Context_destroy(good.ncls, all_good() ? NA_Context_create(good.ncls) : in.nctx))                   \
  X(NA_Addr_lookup, NCLS, naddr_made(NA_Addr_lookup(in.ncls, "self", &out.naddr)))                        \
  X(NA_Addr_set_remove, NCLS | NADDR, NA_Addr_set_remove(in.ncls, in.naddr))                              \
  X(NA_Addr_self, NCLS, naddr_made(NA_Addr_self(in.ncls, &out.naddr)))                                    \
  X(NA_Addr_dup, NCLS | NADDR, naddr_made(NA_Addr_dup(in.ncls, in.naddr, &out.naddr)))                    \
  X(NA_Addr_cmp, NCLS | NADDR_COMPARED, no(NA_Addr_cmp(in.ncls, in.naddr, good.naddr)))                   \
  X(NA_Addr_is_self, NCLS | NADDR, no(NA_Addr_is_self(in.ncls, in.naddr)))                                \
  X(NA_Addr_to_string, NCLS | NADDR, NA_Addr_to_string(in.ncls, out.text, &(size_t){ sizeof out.text }, in.naddr)) \
  X(NA_Addr_get_serialize_size, NCLS | NADDR, no(NA_Addr_get_serialize_size(in.ncls, in.naddr) != 0))     \
  X(NA_Addr_serialize, NCLS | NADDR, NA_Addr_serialize(in.ncls, out.text, sizeof out.text, in.naddr))     \
  X(NA_Addr_deserialize, NCLS,                                                                            \
    naddr_made(NA_Addr_deserialize(in.ncls, &out.naddr, packed_addr, packed_addr_size, 0)))               \
  X(NA_Msg_get_max_unexpected_size, NCLS, no(NA_Msg_get_max_unexpected_size(in.ncls) != 0))               \
  X(NA_Msg_get_max_expected_size, NCLS, no(NA_Msg_get_max_expected_size(in.ncls) != 0))                   \
  X(NA_Msg_get_max_tag, NCLS, no(NA_Msg_get_max_tag(in.ncls) != 0))                                       \
  X(NA_Msg_recv_unexpected, NCLS | NCTX,                                                                  \
    NA_Msg_recv_unexpected(in.ncls, in.nctx, na_ended, NULL, here, 8, NULL, NULL))                        \
  X(NA_Msg_send_unexpected, NCLS | NCTX | NADDR,                                                          \
    NA_Msg_send_unexpected(in.ncls, in.nctx, na_ended, NULL, here, 8, NULL, in.naddr, 0, 1, NULL))        \
  X(NA_Msg_recv_expected, NCLS | NCTX | NADDR,                                                            \
    NA_Msg_recv_expected(in.ncls, in.nctx, na_ended, NULL, here, 8, NULL, in.naddr, 0, 2, NULL))          \
  X(NA_Msg_send_expected, NCLS | NCTX | NADDR,                                                            \
    NA_Msg_send_expected(in.ncls, in.nctx, na_ended, NULL, here, 8, NULL, in.naddr, 0, 2, NULL))          \
  X(NA_Mem_handle_create, NCLS, mem_made(NA_Mem_handle_create(in.ncls, here, 8, NA_MEM_READWRITE, &out.mem))) \
  X(NA_Mem_handle_create_segments, NCLS,                                                                  \
    mem_made(NA_Mem_handle_create_segments(in.ncls, &(struct na_segment){ here, 8 }, 1,         \
                                           NA_MEM_READWRITE, &out.mem)))                                  \
  X(NA_Mem_handle_get_max_segments, NCLS, no(NA_Mem_handle_get_max_segments(in.ncls) != 0))               \
  X(NA_Mem_register, NCLS | MEM, NA_Mem_register(in.ncls, in.mem, NA_MEM_TYPE_HOST, 0))                   \
  X(NA_Mem_deregister, NCLS | MEM, NA_Mem_deregister(in.ncls, in.mem))                                    \
  X(NA_Mem_handle_get_serialize_size, NCLS | MEM, no(NA_Mem_handle_get_serialize_size(in.ncls, in.mem) != 0)) \
  X(NA_Mem_handle_serialize, NCLS | MEM, NA_Mem_handle_serialize(in.ncls, here + ROOM / 2, ROOM / 2, in.mem)) \
  X(NA_Mem_handle_deserialize, NCLS,                                                                      \
    mem_made(NA_Mem_handle_deserialize(in.ncls, &out.mem, packed_mem, packed_mem_size)))                  \
  X(NA_Poll, NCLS | NCTX, NA_Poll(in.ncls, in.nctx, &out.count))                                          \
  X(NA_Poll_wait, NCLS | NCTX, at_its_time(NA_Poll_wait(in.ncls, in.nctx, 0, &out.count)))                \
  X(NA_Progress, NCLS | NCTX, at_its_time(NA_Progress(in.ncls, in.nctx, 0)))                              \
  X(NA_Trigger, NCTX, NA_Trigger(in.nctx, 100, &out.count))                                               \
  X(NA_Put, NCLS | NCTX | NADDR | REMOTE,                                                                 \
    NA_Put(in.ncls, in.nctx, na_ended, NULL, good.remote, 0, in.remote, 0, 8, in.naddr, 0, NULL))         \
  X(NA_Get, NCLS | NCTX | NADDR | REMOTE,                                                                 \
    NA_Get(in.ncls, in.nctx, na_ended, NULL, in.remote, 0, good.remote, 0, 8, in.naddr, 0, NULL))

#define DEFINE_CALL(name, traits, expression) static int run_##name(void) { return expression; }
HG_CALLS(DEFINE_CALL)
NA_CALLS(DEFINE_CALL)
#define CALL_ROW(name, traits, expression) { #name, traits, run_##name },
static const struct refusals_call hg_calls[] = { HG_CALLS(CALL_ROW) { NULL, 0, NULL } };
static const struct refusals_call na_calls[] = { NA_CALLS(CALL_ROW) { NULL, 0, NULL } };

/* ------------------------------------------------------------------- faults */

/* Faults of each kind of handle: null, an address of the program, freed, another kind. */
#define FAULTS_OF(X, trait, null_trait, words, field, other)                                    \
  X(field##_null, "a null " words, trait, in.field = NULL)                                      \
  X(field##_address, "an address of memory for the " words, trait | null_trait, in.field = (void *)here) \
  X(field##_gone, "a " words " that was freed", trait | null_trait, in.field = gone.field)      \
  X(field##_other, "a handle of another kind for the " words, trait | null_trait, in.field = (void *)good.other)

#define HG_FAULTS(X)                                                       \
  FAULTS_OF(X, CLS, CLS_OR_NULL, "class", cls, ctx)                        \
  FAULTS_OF(X, CTX, CTX_OR_NULL, "context", ctx, cls)                      \
  FAULTS_OF(X, ADDR, ADDR_OR_NULL | ADDR_COMPARED, "peer's address", addr, bulk) \
  FAULTS_OF(X, BULK, BULK_OR_NULL, "bulk handle", bulk, addr)              \
  FAULTS_OF(X, ORIGIN, 0, "origin's bulk handle", origin, mem)             \
  FAULTS_OF(X, SERVED, 0, "handle of a call that is served", served, bulk) \
  X(served_made, "a handle of a call of one's own for it", SERVED, in.served = good.made) \
  FAULTS_OF(X, MADE | EITHER, EITHER_OR_NULL, "handle of a call of one's own", made, bulk) \
  X(made_served, "a handle of a call that is served for it", MADE, in.made = good.served)
#define NA_FAULTS(X)                                                       \
  FAULTS_OF(X, NCLS, NCLS_OR_NULL, "class", ncls, nctx)                    \
  FAULTS_OF(X, NCTX, NCTX_OR_NULL, "context", nctx, ncls)                  \
  FAULTS_OF(X, NADDR, NADDR_COMPARED, "peer's address", naddr, mem)        \
  FAULTS_OF(X, MEM, 0, "memory handle", mem, naddr)                        \
  FAULTS_OF(X, REMOTE, 0, "memory handle of a transfer", remote, bulk)

#define DEFINE_FAULT(id, name, traits, statement) static void spoil_##id(void) { statement; }
HG_FAULTS(DEFINE_FAULT)
NA_FAULTS(DEFINE_FAULT)
#define HG_FAULT_ROW(id, name, traits, statement) FAULT(name, traits, HG_INVALID_ARG, spoil_##id),
#define NA_FAULT_ROW(id, name, traits, statement) FAULT(name, traits, NA_INVALID_ARG, spoil_##id),
#define END_OF_FAULTS { NULL, 0, 0, NULL, NULL, NULL }
static const struct refusals_fault hg_faults[] = {
  HG_FAULTS(HG_FAULT_ROW)
  FAULT("a null class, which the call allows", CLS_OR_NULL, HG_SUCCESS, spoil_cls_null),
  FAULT("a null context, which the call allows", CTX_OR_NULL, HG_SUCCESS, spoil_ctx_null),
  FAULT("a null peer's address, which these calls allow", ADDR_OR_NULL, HG_SUCCESS, spoil_addr_null),
  FAULT("a null bulk handle, which the call allows", BULK_OR_NULL, HG_SUCCESS, spoil_bulk_null),
  FAULT("a null handle of a call, which the call allows", EITHER_OR_NULL, HG_SUCCESS, spoil_made_null),
  END_OF_FAULTS
};
static const struct refusals_fault na_faults[] = {
  NA_FAULTS(NA_FAULT_ROW)
  FAULT("a null class, which the call allows", NCLS_OR_NULL, NA_SUCCESS, spoil_ncls_null),
  FAULT("a null context, which the call allows", NCTX_OR_NULL, NA_SUCCESS, spoil_nctx_null),
  END_OF_FAULTS
};

#endif /* MERCURY2_INVALID_HANDLES_H */
