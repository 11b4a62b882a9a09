/*
 * mercury_invalid.c - bad input to every call of na.h and mercury*.h (bad_input.h).
 *
 *   mercury_invalid             each call with each fault that applies to it, before, during and
 *                               after the life of a class
 *   mercury_invalid page        prints the tables of docs/errors-mercury-2013.md; needs no launcher
 *   mercury_invalid calls       prints the calls that have a row
 *
 * A refused call starts nothing and writes nothing. mercury_rpc.c tests procs that fail at the other
 * side. mercury2_invalid.c has the calls of 2.4.
 */
// TEST: faults
#define _GNU_SOURCE
#include "mercury_check.h"
#include <mercury_checksum.h>
#include "bad_input.h"
#include "mercury_invalid_handles.h"
#include "mercury_invalid_others.h"
#include "mercury_invalid_proc.h"

/* ------------------------------------------------------------- before and after */

static void nothing_is_initialised(void)
{
  void *blocks[1] = { here };
  size_t sizes[1] = { 8 };
  HG("Finalize", "not initialised", HG_FAIL, Finalize());
  GIVES("HG_Register", "not initialised", "0", HG_Register("one", NULL, NULL, NULL) == 0);
  HG("Registered", "not initialised", HG_FAIL, Registered("one", &out.flag, &out.id));
  HG("Forward", "not initialised", HG_FAIL, Forward(live.addr, 1, &out.params, NULL, &out.request));
  HG("Wait", "not initialised", HG_FAIL, Wait(live.request, 0, &out.status));
  HG("Wait_all", "not initialised", HG_FAIL, Wait_all(1, &live.request, 0, &out.status));
  HG("Handler_process", "not initialised", HG_FAIL, Handler_process(0, &out.status));
  HG("Bulk_finalize", "not initialised", HG_FAIL, Bulk_finalize());
  HG("Bulk_handle_create", "not initialised", HG_FAIL,
     Bulk_handle_create(1, blocks, sizes, HG_BULK_READWRITE, &out.bulk));
  HG("Bulk_transfer", "not initialised", HG_FAIL,
     Bulk_transfer(HG_BULK_PULL, live.addr, live.origin, 0, live.bulk, 0, 8, &out.ptr));
  HG("Bulk_wait", "not initialised", HG_FAIL, Bulk_wait(live.transfer, 0, &out.status));
}

/* After the end all handles are stale: every call reports that, or that nothing is initialised. */
static void handles_name_nothing(void)
{
  live = gone;
  bad_no_runtime = (struct bad_fault){ NULL, "handles that name nothing", "", HG_INVALID_ARG, ALL_RANKS };
  bad_input(na_calls, NO_RUNTIME);
  bad_input(hg_calls, NO_RUNTIME);
  bad_no_runtime.code = HG_FAIL;
  bad_input(hg_started, NO_RUNTIME);
}

/* ------------------------------------------------------------------------ life */

static void make_handles(void)
{
  size_t sixteen = 16;
  void *at = here + 64;
  MUST(NA_Addr_self(network, &live.addr));
  next = address_of((me + 1) % nproc);
  MUST(NA_Addr_self(network, &gone.addr));
  MUST(NA_Addr_free(network, gone.addr));
  snprintf(none_after, sizeof none_after, "mpi://%d", nproc);
  live.cls = network;
  live.ctx = context = NA_Context_create(network);
  gone.ctx = NA_Context_create(network);
  MUST(NA_Context_destroy(network, gone.ctx));
  gone.cls = NA_Initialize("self", NA_FALSE);
  MUST(NA_Finalize(gone.cls));
  alien = NA_Initialize("self", NA_FALSE);
  alien_context = NA_Context_create(alien);
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &live.mem));
  MUST(NA_Mem_handle_create(network, here + 16, 16, NA_MEM_READWRITE, &live.remote));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READ_ONLY, &read_only));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &unregistered));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &gone.mem));
  MUST(NA_Mem_handle_free(network, gone.mem));
  gone.remote = gone.mem;
  MUST(NA_Mem_register(network, live.mem));
  MUST(NA_Mem_register(network, live.remote));
  MUST(NA_Mem_register(network, read_only));
  packed_size = NA_Mem_handle_get_serialize_size(network, live.mem);

  one_id = MERCURY_REGISTER("one", one_t, one_t, one_cb);
  kept_id = MERCURY_REGISTER("kept", one_t, one_t, keep_cb);
  const hg_request_t unanswered = request_of(kept_id);
  gone.served = kept;
  MUST(HG_Handler_free(gone.served));
  MUST(HG_Request_free(unanswered));
  live.request = request_of(one_id);
  gone.request = request_of(one_id);
  MUST(HG_Request_free(gone.request));
  MUST(HG_Bulk_handle_create(1, &at, &sixteen, HG_BULK_READWRITE, &live.bulk));
  MUST(HG_Bulk_handle_create(1, NULL, &sixteen, HG_BULK_READWRITE, &live.origin));
  MUST(HG_Bulk_handle_create(1, &at, &sixteen, HG_BULK_READ_ONLY, &read_only_bulk));
  MUST(HG_Bulk_handle_create(1, NULL, &sixteen, HG_BULK_READWRITE, &gone.bulk));
  MUST(HG_Bulk_handle_free(gone.bulk));
  gone.origin = gone.bulk;
  packed_bulk_size = HG_Bulk_handle_get_serialize_size(live.bulk);
  MUST(HG_Bulk_transfer(HG_BULK_PULL, live.addr, live.origin, 0, live.bulk, 0, 8, &gone.transfer));
  MUST(HG_Bulk_wait(gone.transfer, 10000, HG_STATUS_IGNORE));
  live.transfer = (hg_bulk_request_t)&ended; /* not a request */
  CHECK(packed_size <= ROOM && packed_bulk_size <= ROOM, "handles are long");
}

static void works(void)
{
  hg_request_t request;
  MUST(HG_Forward(live.addr, kept_id, &out.params, &out.params, &request));
  live.served = kept;
  bad_input(na_calls, GOOD_CALLS);
  pump_until(&ended, NA_ENDS, "callbacks");
  bad_input(hg_calls, GOOD_CALLS);
  bad_input(hg_started, GOOD_CALLS);
  bad_input(hg_made, GOOD_CALLS);
  bad_input(hg_freed, GOOD_CALLS);
  CHECK(strstr(HG_Error_to_string(HG_NO_MATCH), "HG_NO_MATCH") != NULL, "names of codes");
  CHECK(strstr(NA_Error_to_string(NA_CANCELED), "NA_CANCELED") != NULL, "names of codes");
}

static void drop_all(void)
{
  MUST(HG_Handler_free(live.served));
  MUST(HG_Bulk_handle_free(live.bulk));
  MUST(HG_Bulk_handle_free(live.origin));
  MUST(HG_Bulk_handle_free(read_only_bulk));
  MUST(HG_Finalize());
  MUST(NA_Mem_handle_free(network, live.mem));
  MUST(NA_Mem_handle_free(network, live.remote));
  MUST(NA_Mem_handle_free(network, read_only));
  MUST(NA_Mem_handle_free(network, unregistered));
  MUST(NA_Addr_free(network, live.addr));
  MUST(NA_Addr_free(network, next));
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Context_destroy(alien, alien_context));
  MUST(NA_Finalize(alien));
  MUST(NA_Finalize(network));
}

/* ------------------------------------------------------------------------ main */

static void (*const tables[])(void) = {
  na_calls, hg_calls, hg_started, hg_made, hg_freed, na_arguments, na_memory, hg_arguments, bulk_arguments, proc_making, proc_rows,
  proc_types, strings_and_checksums, nothing_is_initialised, NULL
};

static void stale(void) { CHECK(ARMCI_Absolute_id(NULL, 0) == -1, "a rank of no group"); }

int main(int argc, char **argv)
{
  if (bad_list(argc, argv, tables))
    return 0;
  check_start_mpi("mercury_invalid", &argc, &argv);
  bad_stale = stale;
  check_fill(here, 3, ROOM);
  watch("memory", here, ROOM);
  watch("results", &out, sizeof out);
  watch("callbacks that ran", &ended, sizeof ended);
  bad_input(nothing_is_initialised, FAULTS);
  handles_name_nothing();
  bad_watches = 0;

  join_network("mpi");
  MUST(HG_Init(network));
  make_handles();
  works();
  MUST(hg_proc_create(bytes, sizeof bytes, HG_ENCODE, HG_CRC64, &encoder));
  CHECK_EQ(hg_checksum_init("crc64", &good_sum), 0);
  watch("a proc's buffer", bytes, sizeof bytes);
  watch("a proc", &made_proc, sizeof made_proc);
  watch("a number", &number, sizeof number);
  watch("a hash", &hash, sizeof hash);
  watch("a checksum", &sum, sizeof sum);
  serve_barrier();
  for (int i = 0; tables[i] != nothing_is_initialised; i++)
    bad_input(tables[i], FAULTS);
  MUST(hg_proc_free(encoder));
  CHECK_EQ(hg_checksum_destroy(good_sum), 0);
  serve_barrier();
  drop_all();
  gone = live;                      /* the handles that were live */
  nothing_is_initialised();
  handles_name_nothing();
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", bad_refused);
  return check_end_mpi();
}
