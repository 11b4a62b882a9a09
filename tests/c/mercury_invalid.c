/*
 * mercury_invalid.c - bad input to every call of na.h and mercury*.h, from tables.
 *
 *   mercury_invalid             each call with each fault that applies to it, before, during and
 *                               after the life of a class
 *   mercury_invalid markdown    prints the tables as in docs/errors-mercury-2013.md; needs no launcher
 *
 * A refused call starts nothing, writes nothing and sets its error text. mercury_errors.c tests
 * servers that receive rubbish and procs that fail at the other side. mercury2_invalid.c has the
 * calls of 2.4.
 */
// TEST: faults
#include "mercury_check.h"
#include <mercury_checksum.h>
#include "refusals.h"
#include "mercury_invalid_handles.h"
#include "mercury_invalid_others.h"
#include "mercury_invalid_proc.h"

/* ------------------------------------------------------------- before and after */

static void nothing_is_initialised(void)
{
  void *blocks[1] = { here };
  size_t sizes[1] = { 8 };
  rows_begin("Before HG_Init, after HG_Finalize");
  HG("Finalize", "not initialised", HG_FAIL, Finalize());
  GIVES("HG_Register", "not initialised", "0", HG_Register("one", NULL, NULL, NULL) == 0);
  HG("Registered", "not initialised", HG_FAIL, Registered("one", &out.flag, &out.id));
  HG("Forward", "not initialised", HG_FAIL, Forward(good.addr, 1, &out.params, NULL, &out.request));
  HG("Wait", "not initialised", HG_FAIL, Wait(good.request, 0, &out.status));
  HG("Wait_all", "not initialised", HG_FAIL, Wait_all(1, &good.request, 0, &out.status));
  HG("Handler_process", "not initialised", HG_FAIL, Handler_process(0, &out.status));
  HG("Bulk_finalize", "not initialised", HG_FAIL, Bulk_finalize());
  HG("Bulk_handle_create", "not initialised", HG_FAIL,
     Bulk_handle_create(1, blocks, sizes, HG_BULK_READWRITE, &out.bulk));
  HG("Bulk_transfer", "not initialised", HG_FAIL,
     Bulk_transfer(HG_BULK_PULL, good.addr, good.origin, 0, good.bulk, 0, 8, &out.ptr));
  HG("Bulk_wait", "not initialised", HG_FAIL, Bulk_wait(good.transfer, 0, &out.status));
}

/* After the end all handles are stale: every call reports that, or that nothing is initialised. */
static void handles_name_nothing(void)
{
  static const struct refusals_call *tables[] = { na_calls, hg_calls };
  const struct handles were = good;
  memset(&good, 1, sizeof good);    /* no handle is the good one, so no call makes another */
  for (int t = 0; t < 2; t++)
    for (const struct refusals_call *call = tables[t]; call->name; call++) {
      in = gone;
      if (row_begins(call->name, "handles that name nothing", "")) {
        const int rc = call->run();
        const int may = call->traits & BULK_OR_NULL;
        if (rc == HG_SUCCESS && may) { /* null because none was created: nothing to free */
          watch_ends(call->name, "handles that name nothing");
          continue;
        }
        CHECK(rc == HG_INVALID_ARG || rc == HG_FAIL, "%s with handles that name nothing: %d", call->name, rc);
        row_says(__FILE__, __LINE__, call->name, "handles that name nothing");
        watch_ends(call->name, "handles that name nothing");
      }
    }
  good = were;
}

/* ------------------------------------------------------------------------ life */

static void make_handles(void)
{
  size_t sixteen = 16;
  void *at = here + 64;
  MUST(NA_Addr_self(network, &good.addr));
  next = address_of((me + 1) % nproc);
  MUST(NA_Addr_self(network, &gone.addr));
  MUST(NA_Addr_free(network, gone.addr));
  snprintf(none_after, sizeof none_after, "mpi://%d", nproc);
  good.cls = network;
  good.ctx = context = NA_Context_create(network);
  gone.ctx = NA_Context_create(network);
  MUST(NA_Context_destroy(network, gone.ctx));
  gone.cls = NA_Initialize("self", NA_FALSE);
  MUST(NA_Finalize(gone.cls));
  alien = NA_Initialize("self", NA_FALSE);
  alien_context = NA_Context_create(alien);
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &good.mem));
  MUST(NA_Mem_handle_create(network, here + 16, 16, NA_MEM_READWRITE, &good.remote));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READ_ONLY, &read_only));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &unregistered));
  MUST(NA_Mem_handle_create(network, here, 16, NA_MEM_READWRITE, &gone.mem));
  MUST(NA_Mem_handle_free(network, gone.mem));
  gone.remote = gone.mem;
  MUST(NA_Mem_register(network, good.mem));
  MUST(NA_Mem_register(network, good.remote));
  MUST(NA_Mem_register(network, read_only));
  packed_size = NA_Mem_handle_get_serialize_size(network, good.mem);

  one_id = MERCURY_REGISTER("one", one_t, one_t, one_cb);
  kept_id = MERCURY_REGISTER("kept", one_t, one_t, keep_cb);
  const hg_request_t unanswered = request_of(kept_id);
  gone.served = kept;
  MUST(HG_Handler_free(gone.served));
  MUST(HG_Request_free(unanswered));
  good.request = request_of(one_id);
  gone.request = request_of(one_id);
  MUST(HG_Request_free(gone.request));
  MUST(HG_Bulk_handle_create(1, &at, &sixteen, HG_BULK_READWRITE, &good.bulk));
  MUST(HG_Bulk_handle_create(1, NULL, &sixteen, HG_BULK_READWRITE, &good.origin));
  MUST(HG_Bulk_handle_create(1, &at, &sixteen, HG_BULK_READ_ONLY, &read_only_bulk));
  MUST(HG_Bulk_handle_create(1, NULL, &sixteen, HG_BULK_READWRITE, &gone.bulk));
  MUST(HG_Bulk_handle_free(gone.bulk));
  gone.origin = gone.bulk;
  packed_bulk_size = HG_Bulk_handle_get_serialize_size(good.bulk);
  MUST(HG_Bulk_transfer(HG_BULK_PULL, good.addr, good.origin, 0, good.bulk, 0, 8, &gone.transfer));
  MUST(HG_Bulk_wait(gone.transfer, 10000, HG_STATUS_IGNORE));
  good.transfer = &ended;           /* not a request: makes a wait start one of its own */
  CHECK(packed_size <= ROOM && packed_bulk_size <= ROOM, "handles are long");
}

static void works(void)
{
  hg_request_t request;
  refusals_also = "";
  MUST(HG_Forward(good.addr, kept_id, &out.params, &out.params, &request));
  good.served = kept;
  calls_work(na_calls, good_input);
  pump_until(&ended, NA_ENDS, "callbacks");
  calls_work(hg_calls, good_input);
  refusals_also = NULL;
  CHECK(strstr(HG_Error_to_string(HG_NO_MATCH), "HG_NO_MATCH") != NULL, "names of codes");
  CHECK(strstr(NA_Error_to_string(NA_CANCELED), "NA_CANCELED") != NULL, "names of codes");
}

static void drop_all(void)
{
  MUST(HG_Handler_free(good.served));
  MUST(HG_Bulk_handle_free(good.bulk));
  MUST(HG_Bulk_handle_free(good.origin));
  MUST(HG_Bulk_handle_free(read_only_bulk));
  MUST(HG_Finalize());
  MUST(NA_Mem_handle_free(network, good.mem));
  MUST(NA_Mem_handle_free(network, good.remote));
  MUST(NA_Mem_handle_free(network, read_only));
  MUST(NA_Mem_handle_free(network, unregistered));
  MUST(NA_Addr_free(network, good.addr));
  MUST(NA_Addr_free(network, next));
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Context_destroy(alien, alien_context));
  MUST(NA_Finalize(alien));
  MUST(NA_Finalize(network));
}

/* ------------------------------------------------------------------------ main */

static void tables_of_faults(void)
{
  if (LISTED)
    printf("# Bad input to Mercury of 2013\n\n"
           "The tables list wrong arguments to the calls of `na.h` and `mercury*.h`, and the results.\n"
           "`mercury_invalid markdown` prints this page, and tests/c/mercury_invalid.c tests every line. A call\n"
           "that is refused starts nothing and writes nothing; its text is `portolan_last_error()`. Calls without\n"
           "a code return 0 or `NULL` instead of `NA_INVALID_ARG` or `HG_INVALID_ARG`.\n\n"
           "## Handles: na.h\n\n");
  calls_with_faults(na_calls, na_faults, good_input, "NA_");
  if (LISTED)
    printf("\n## Handles: mercury*.h\n\n");
  calls_with_faults(hg_calls, hg_faults, good_input, "HG_");
  na_arguments();
  na_messages();
  na_memory();
  hg_arguments();
  bulk_arguments();
}

static void without_a_network(void)
{
  proc_making();
  proc_types();
  strings_and_checksums();
}

static void stale(void) { CHECK(ARMCI_Absolute_id(NULL, 0) == -1, "a rank of no group"); }

int main(int argc, char **argv)
{
  if (refusals_listed(argc, argv)) {
    tables_of_faults();
    nothing_is_initialised();
    without_a_network();
    return 0;
  }
  check_start_mpi("mercury_invalid", &argc, &argv);
  refusals_stale = stale;
  check_fill(here, 3, ROOM);
  watch("memory", here, ROOM);
  watch("results", &out, sizeof out);
  watch("callbacks that ran", &ended, sizeof ended);
  nothing_is_initialised();
  handles_name_nothing();

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
  tables_of_faults();
  without_a_network();
  MUST(hg_proc_free(encoder));
  CHECK_EQ(hg_checksum_destroy(good_sum), 0);
  serve_barrier();
  drop_all();
  gone = good;                      /* the handles that were good */
  nothing_is_initialised();
  handles_name_nothing();
  if (me == 0)
    printf("%d calls with faults had the outcome that is documented\n", refusals);
  return check_end_mpi();
}
