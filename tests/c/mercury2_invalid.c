/*
 * mercury2_invalid.c - bad input to the calls of Mercury 2.4 (bad_input.h).
 *
 *   mercury2_invalid            each call with each fault of its arguments, during and after the
 *                               life of a class
 *   mercury2_invalid page       prints the tables of docs/errors-mercury.md; needs no launcher
 *   mercury2_invalid calls      prints the calls that have a row
 *
 * A refused call starts nothing and writes nothing. mercury_invalid.c has the calls of 2013.
 */
// TEST: faults
#define _GNU_SOURCE
#include "mercury2_check.h"

#include <mercury_core.h>
#include <mercury_proc_string.h>
#include <mercury_request.h>
#include <mercury_util.h>
#include <na.h>

#include "bad_input.h"
#include "mercury2_invalid_arguments.h"
#include "mercury2_invalid_calls.h"

/* ------------------------------------------------- faults of more than arguments */

#define H(call, fault, code, expression) BAD_CASE(call, fault, HG_CODE(code), expression)
#define NC(call, fault, code, expression) BAD_CASE(call, fault, NA_##code, "`NA_" #code "`", expression)
#define LEGAL(call, expression) H(call, "null, which the call allows", SUCCESS, expression)

static int answered_twice(void)
{
  const hg_handle_t of_caller = called(kept_id), of_server = kept;
  MUST(HG_Respond(of_server, NULL, NULL, &out.params));
  const int rc = HG_Respond(of_server, NULL, NULL, &out.params);
  forget(of_caller, of_server);
  return rc;
}

static int on_fresh(int buffer)     /* asks for the output of a call that was never forwarded */
{
  const hg_handle_t handle = created();
  const int rc = buffer ? HG_Get_output_buf(handle, &out.ptr, &out.size) : HG_Get_output(handle, &out.params);
  MUST(HG_Destroy(handle));
  return rc;
}

static int destroyed_too_often(void)
{
  const hg_handle_t handle = created();
  MUST(HG_Ref_incr(handle));
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(handle));
  return HG_Destroy(handle);
}

/* Forwards a handle whose call is under way, resets it, or destroys its context. */
static int under_way(char doing)
{
  const hg_handle_t handle = created();
  MUST(HG_Forward(handle, hg_ended, NULL, &out.params));
  const int rc = doing == 'f'   ? HG_Forward(handle, hg_ended, NULL, &out.params)
                 : doing == 'r' ? HG_Reset(handle, live.addr, one_id)
                                : HG_Context_destroy(live.ctx);
  one_more(HG_SUCCESS);
  MUST(HG_Destroy(handle));
  ended--;
  return rc;
}

static int without_a_proc(hg_return_t (*call)(hg_handle_t, void *))
{
  const hg_handle_t of_caller = called(bare_id), of_server = kept;
  const int rc = call(of_server, &out.params);
  forget(of_caller, of_server);
  return rc;
}

static void cases(void)
{
  LEGAL("HG_Finalize", HG_Finalize(NULL));
  LEGAL("HG_Context_destroy", HG_Context_destroy(NULL));
  LEGAL("HG_Addr_free", HG_Addr_free(live.cls, HG_ADDR_NULL));
  LEGAL("HG_Bulk_free", HG_Bulk_free(HG_BULK_NULL));
  LEGAL("HG_Destroy", HG_Destroy(HG_HANDLE_NULL));
  LEGAL("NA_Finalize", (int)NA_Finalize(NULL));
  LEGAL("NA_Context_destroy", (int)NA_Context_destroy(live.ncls, NULL));
  GIVES("HG_Init", "a null or empty information string, or a network that is none", "`NULL`",
        HG_Init(NULL, HG_FALSE) == NULL && HG_Init("", HG_FALSE) == NULL && HG_Init("verbs", HG_FALSE) == NULL);
  GIVES("HG_Init_opt", "a network class that was finalised", "`NULL`",
        HG_Init_opt("self", HG_FALSE, &(struct hg_init_info){ .na_class = gone.ncls }) == NULL);
  GIVES("HG_Init_opt2", "a version to come", "`NULL`", HG_Init_opt2("self", HG_TRUE, HG_VERSION(2, 5), NULL) == NULL);
  H("HG_Finalize", "a class that has contexts", BUSY, HG_Finalize(live.cls));
  GIVES("HG_Context_get_id, HG_Bulk_get_context_id", "a null handle", "0",
        HG_Context_get_id(NULL) == 0 && HG_Bulk_get_context_id(HG_BULK_NULL) == 0);
  GIVES("HG_Event_get_wait_fd, HG_Event_ready", "a null context", "-1, false",
        HG_Event_get_wait_fd(NULL) == -1 && !HG_Event_ready(NULL));
  GIVES("HG_Register_name", "an empty name", "0", HG_Register_name(live.cls, "", NULL, NULL, NULL) == 0);
  GIVES("HG_Addr_cmp", "one null address", "false", !HG_Addr_cmp(live.cls, HG_ADDR_NULL, live.addr));
  H("HG_Destroy", "a handle without a further reference", INVALID_ARG, destroyed_too_often());
  H("HG_Reset", "a call that is under way", BUSY, under_way('r'));
  H("HG_Forward", "a call that is under way", BUSY, under_way('f'));
  H("HG_Context_destroy", "a context that has handles", BUSY, under_way('d'));
  H("HG_Cancel", "a call that is served", OPNOTSUPPORTED, HG_Cancel(live.served));
  H("HG_Get_output", "a call that was never forwarded", INVALID_ARG, on_fresh(0));
  H("HG_Get_output_buf", "a call that was never forwarded", INVALID_ARG, on_fresh(1));
  H("HG_Get_input", "a function without procs", FAULT, without_a_proc(HG_Get_input));
  H("HG_Free_input", "a function without procs", FAULT, without_a_proc(HG_Free_input));
  H("HG_Respond", "a call that was answered", INVALID_ARG, answered_twice());
  H("HG_Bulk_create", "null sizes", INVALID_ARG,
    HG_Bulk_create(live.cls, 1, (void *[]){ here }, NULL, HG_BULK_READWRITE, &out.bulk));
  H("HG_Bulk_create_attr", "memory of a GPU", OPNOTSUPPORTED,
    HG_Bulk_create_attr(live.cls, 1, (void *[]){ here }, &(hg_size_t){ 8 }, HG_BULK_READWRITE,
                        &(struct hg_bulk_attr){ HG_MEM_TYPE_CUDA, 0 }, &out.bulk));
#define MOVES(fault, kind, from, into)                                                                     \
  H("HG_Bulk_transfer", fault, PERMISSION,                                                                 \
    HG_Bulk_transfer(live.ctx, hg_ended, NULL, kind, live.addr, from, 0, into, 0, 8, &out.op))
  MOVES("pushing to what is read-only", HG_BULK_PUSH, read_only_bulk, live.bulk);
  MOVES("pulling into what is read-only", HG_BULK_PULL, live.origin, read_only_bulk);
  H("HG_Bulk_bind_transfer", "an origin's handle that is not bound", INVALID_ARG,
    HG_Bulk_bind_transfer(live.ctx, hg_ended, NULL, HG_BULK_PULL, read_only_bulk, 0, live.bulk, 0, 8, &out.op));
  H("HG_Bulk_cancel", "a null operation", INVALID_ARG, HG_Bulk_cancel(HG_OP_ID_NULL));
  H("HG_Bulk_cancel", "an address of memory", INVALID_ARG, HG_Bulk_cancel((hg_op_id_t)(void *)here));
  GIVES("NA_Initialize", "a null information string, or a network that is none", "`NULL`",
        NA_Initialize(NULL, false) == NULL && NA_Initialize("verbs", false) == NULL);
  NC("NA_Finalize", "a class that has contexts", BUSY, NA_Finalize(na));
  NC("NA_Poll", "a context of another class", INVALID_ARG, NA_Poll(na, alien_context, NULL));
  NC("NA_Context_destroy", "a context of another class", INVALID_ARG, NA_Context_destroy(alien, live.nctx));
  NC("NA_Msg_multi_recv_unexpected", "any receive of several messages", OPNOTSUPPORTED,
     NA_Msg_multi_recv_unexpected(na, live.nctx, na_ended, NULL, here, 8, NULL, NULL));
  GIVES("hg_proc_get_class, hg_proc_get_handle, hg_proc_get_extra_buf, hg_proc_save_ptr", "a null proc", "`NULL`",
        hg_proc_get_class(NULL) == NULL && hg_proc_get_handle(NULL) == NULL && hg_proc_get_extra_buf(NULL) == NULL &&
          hg_proc_save_ptr(NULL, 8) == NULL);
  GIVES("hg_proc_get_flags, hg_proc_get_size, hg_proc_get_size_used, hg_proc_get_size_left, hg_proc_get_extra_size",
        "a null proc", "0",
        hg_proc_get_flags(NULL) == 0 && hg_proc_get_size(NULL) == 0 && hg_proc_get_size_used(NULL) == 0 &&
          hg_proc_get_size_left(NULL) == 0 && hg_proc_get_extra_size(NULL) == 0);
  GIVES("hg_proc_set_handle, hg_proc_set_flags, hg_proc_checksum_update", "a null proc", "nothing happens",
        (hg_proc_set_handle(NULL, NULL), hg_proc_set_flags(NULL, 1), hg_proc_checksum_update(NULL, here, 1), 1));
  H("hg_proc_set_extra_buf_is_mine", "a null proc", INVALID_ARG, hg_proc_set_extra_buf_is_mine(NULL, 1));
  LEGAL("hg_proc_free", hg_proc_free(NULL));
  H("hg_proc_checksum_get", "a null proc", INVALID_ARG, hg_proc_checksum_get(NULL, here, 8));
  H("hg_proc_checksum_verify", "a null proc", INVALID_ARG, hg_proc_checksum_verify(NULL, here, 8));
  GIVES("hg_string_object_swap", "a null object", "`NULL`", hg_string_object_swap(NULL, out.text) == NULL);
  GIVES("HG_Core_context_get_id, HG_Core_event_get_wait_fd, HG_Core_event_ready", "a null context", "0, -1, false",
        HG_Core_context_get_id(NULL) == 0 && HG_Core_event_get_wait_fd(NULL) == -1 && !HG_Core_event_ready(NULL));
  GIVES("NA_Poll_get_fd, NA_Poll_try_wait", "a null class", "-1, false",
        NA_Poll_get_fd(NULL, NULL) == -1 && !NA_Poll_try_wait(NULL, NULL));
  H("hg_proc_restore_ptr", "a place that the proc did not give", INVALID_ARG, hg_proc_restore_ptr(encoder, here, 8));
  H("hg_proc_hg_bulk_t", "a null proc", INVALID_ARG, hg_proc_hg_bulk_t(NULL, &number));
  H("hg_proc_hg_bulk_t", "a null place", INVALID_ARG, hg_proc_hg_bulk_t(encoder, NULL));
}

/* ------------------------------------------------------------------------ life */

static void make_handles(void)
{
  hg_size_t sixteen = 16;
  void *at = here + 64;
  live.cls = hg_class;
  live.ctx = context;
  one_id = MERCURY_REGISTER(hg_class, "one", one_t, one_t, one_cb);
  kept_id = MERCURY_REGISTER(hg_class, "kept", one_t, one_t, keep_cb);
  bare_id = HG_Register_name(hg_class, "bare", NULL, NULL, keep_cb);
  MUST(HG_Addr_self(hg_class, &live.addr));
  MUST(HG_Addr_self(hg_class, &gone.addr));
  MUST(HG_Addr_free(hg_class, gone.addr));
  gone.ctx = HG_Context_create(hg_class);
  MUST(HG_Context_destroy(gone.ctx));
  gone.cls = HG_Init("self", HG_FALSE);
  MUST(HG_Finalize(gone.cls));
  live.made = called(one_id);
  gone.made = gone.served = called(one_id);
  MUST(HG_Destroy(gone.made));
  MUST(HG_Bulk_create(hg_class, 1, &at, &sixteen, HG_BULK_READWRITE, &live.bulk));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &sixteen, HG_BULK_READWRITE, &live.origin));
  MUST(HG_Bulk_create(hg_class, 1, &at, &sixteen, HG_BULK_READ_ONLY, &read_only_bulk));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &sixteen, HG_BULK_READWRITE, &gone.bulk));
  MUST(HG_Bulk_free(gone.bulk));
  gone.origin = gone.bulk;
  packed_size = HG_Bulk_get_serialize_size(live.bulk, 0);
  MUST(HG_Bulk_serialize(packed, sizeof packed, 0, live.bulk));
  MUST(HG_Bulk_bind(live.bulk, context));
  MUST(HG_Bulk_bind(live.origin, context));

  live.core = HG_Core_init(check_network(), HG_TRUE);
  live.cctx = HG_Core_context_create(live.core);
  MUST(HG_Core_register(live.core, 6, core_cb));
  gone.cctx = HG_Core_context_create(live.core);
  MUST(HG_Core_context_destroy(gone.cctx));
  gone.core = HG_Core_init("self", HG_FALSE);
  MUST(HG_Core_finalize(gone.core));
  MUST(HG_Core_addr_self(live.core, &live.caddr));
  MUST(HG_Core_addr_self(live.core, &gone.caddr));
  MUST(HG_Core_addr_free(gone.caddr));
  MUST(HG_Core_create(live.cctx, live.caddr, 6, &live.chandle));
  MUST(HG_Core_create(live.cctx, live.caddr, 6, &gone.chandle));
  MUST(HG_Core_destroy(gone.chandle));
  packed_core_size = HG_Core_addr_get_serialize_size(live.caddr, 0);
  MUST(HG_Core_addr_serialize(packed_core, ROOM, 0, live.caddr));

  na = live.ncls = NA_Initialize("self", true);
  live.nctx = NA_Context_create(na);
  gone.nctx = NA_Context_create(na);
  MUST((hg_return_t)NA_Context_destroy(na, gone.nctx));
  gone.ncls = NA_Initialize("self", false);
  MUST((hg_return_t)NA_Finalize(gone.ncls));
  alien = NA_Initialize("self", false);
  alien_context = NA_Context_create(alien);
  MUST((hg_return_t)NA_Addr_self(na, &live.naddr));
  MUST((hg_return_t)NA_Addr_self(na, &gone.naddr));
  NA_Addr_free(na, gone.naddr);
  packed_addr_size = NA_Addr_get_serialize_size(na, live.naddr);
  MUST((hg_return_t)NA_Addr_serialize(na, packed_addr, ROOM, live.naddr));
  na_mem_handle_t **mems[] = { &live.mem, &live.remote, &unregistered, &gone.mem };
  for (int i = 0; i < 4; i++)
    MUST((hg_return_t)NA_Mem_handle_create(na, here + 128, 16, NA_MEM_READWRITE, mems[i]));
  MUST((hg_return_t)NA_Mem_handle_create(na, here + 128, 16, NA_MEM_READ_ONLY, &read_only));
  NA_Mem_handle_free(na, gone.mem);
  gone.remote = gone.mem;
  MUST((hg_return_t)NA_Mem_register(na, live.remote, NA_MEM_TYPE_HOST, 0));
  MUST((hg_return_t)NA_Mem_register(na, read_only, NA_MEM_TYPE_HOST, 0));
  packed_mem_size = NA_Mem_handle_get_serialize_size(na, live.remote);
  MUST((hg_return_t)NA_Mem_handle_serialize(na, packed_mem, sizeof packed_mem, live.remote));
  MUST(hg_proc_create_set(hg_class, proc_bytes, sizeof proc_bytes, HG_ENCODE, HG_CRC64, &encoder));
}

static void drop_all(hg_handle_t caller)
{
  MUST(hg_proc_free(encoder));
  forget(caller, live.served);
  MUST(HG_Destroy(live.made));
  MUST(HG_Bulk_free(live.bulk));
  MUST(HG_Bulk_free(live.origin));
  MUST(HG_Bulk_free(read_only_bulk));
  MUST(HG_Addr_free(hg_class, live.addr));
  MUST(HG_Core_destroy(live.chandle));
  MUST(HG_Core_addr_free(live.caddr));
  MUST(HG_Core_context_destroy(live.cctx));
  MUST(HG_Core_finalize(live.core));
  na_mem_handle_t *mems[] = { live.mem, live.remote, unregistered, read_only };
  for (int i = 0; i < 4; i++)
    NA_Mem_handle_free(na, mems[i]);
  NA_Addr_free(na, live.naddr);
  MUST((hg_return_t)NA_Context_destroy(na, live.nctx));
  MUST((hg_return_t)NA_Context_destroy(alien, alien_context));
  MUST((hg_return_t)NA_Finalize(alien));
  MUST((hg_return_t)NA_Finalize(na));
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = { hg_calls, na_calls, proc_calls, core_calls, core_faults, na_faults, other_calls, cases, NULL };

static void stale(void) { CHECK(HG_Context_get_class(NULL) == NULL, "the class of no context"); }

int main(int argc, char **argv)
{
  if (bad_list(argc, argv, tables))
    return 0;
  start_mercury("mercury2_invalid", &argc, &argv);
  bad_stale = stale;
  check_fill(here, 3, ROOM);
  make_handles();
  serve_barrier();
  const hg_handle_t caller = called(kept_id);
  live.served = kept;
  bad_input(hg_calls, GOOD_CALLS);
  bad_input(na_calls, GOOD_CALLS);
  bad_input(proc_calls, GOOD_CALLS);
  bad_input(core_calls, GOOD_CALLS);
  for (unsigned int ran = 1; ran > 0;) {
    (void)NA_Poll(na, live.nctx, NULL);
    MUST((hg_return_t)NA_Trigger(live.nctx, 100, &ran));
  }
  watch("memory", here, ROOM);
  watch("results", &out, sizeof out);
  watch("callbacks that ran", (const void *)(uintptr_t)&ended, sizeof ended);
  watch("a proc", &made_proc, sizeof made_proc);
  watch("a number", &number, sizeof number);
  MUST(HG_Register(hg_class, 5, NULL, NULL, NULL));
  MUST(HG_Core_register(live.core, 5, core_cb));
  serve_barrier();
  for (int i = 0; tables[i]; i++)
    bad_input(tables[i], FAULTS);
  serve_barrier();
  bad_watches = 0;
  drop_all(caller);
  live = gone;                      /* each call with handles that were freed */
  bad_no_runtime = (struct bad_fault){ NULL, "freed handles", "`HG_INVALID_ARG`", HG_INVALID_ARG, ALL_RANKS };
  bad_input(hg_calls, NO_RUNTIME);
  bad_input(na_calls, NO_RUNTIME);
  bad_input(core_calls, NO_RUNTIME);
  return end_mercury();
}
