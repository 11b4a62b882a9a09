/* Calls of NA and of HG (2013) after MPI_Finalize: they return errors, and destroying the remaining
 * objects frees them. */
// TEST: mercury
#include "mercury_check.h"

enum { MANY = 3 << 20 };

MERCURY_GEN_PROC(numbers_t, ((uint64_t)(x))((hg_const_string_t)(s)))

#define FAILS(call) CHECK((call) != 0, "%s succeeds after MPI_Finalize", #call)

static hg_handle_t kept;

static hg_return_t keep_cb(hg_handle_t handle)
{
  kept = handle;
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  char *text = check_calloc(MANY + 1), *memory = check_calloc(MANY), theirs_bytes[400], mine_bytes[400];
  void *at[1] = { memory };
  size_t len[1] = { MANY };
  hg_bulk_t mine, theirs;
  hg_request_t request, another;
  hg_bulk_request_t transfer = HG_BULK_REQUEST_NULL;
  hg_status_t status;
  hg_bool_t flag;
  numbers_t in = { 7, text }, out;
  unsigned int count;

  start_network("mercury_after", &argc, &argv);
  memset(text, 'x', MANY);
  context = NA_Context_create(network);
  CHECK(context != NULL, "NA_Context_create: %s", portolan_last_error());
  MUST(HG_Init(network));
  const hg_id_t keep = MERCURY_REGISTER("keep", numbers_t, numbers_t, keep_cb);
  na_addr_t next = address_of((me + 1) % nproc);
  MUST(HG_Bulk_handle_create(1, at, len, HG_BULK_READWRITE, &mine));
  const size_t bytes = HG_Bulk_handle_get_serialize_size(mine);
  CHECK(bytes <= sizeof mine_bytes, "%lu bytes", (unsigned long)bytes);
  MUST(HG_Bulk_handle_serialize(mine_bytes, bytes, mine));
  MPI_Sendrecv(mine_bytes, sizeof mine_bytes, MPI_BYTE, (me + nproc - 1) % nproc, 1, theirs_bytes,
               sizeof theirs_bytes, MPI_BYTE, (me + 1) % nproc, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MUST(HG_Bulk_handle_deserialize(&theirs, theirs_bytes, sizeof theirs_bytes));

  /* A call that is never answered, and a transfer. */
  MUST(HG_Forward(next, keep, &in, &out, &request));
  const double begun = check_seconds();
  while (!kept) {
    HG_Handler_process(20, HG_STATUS_IGNORE);
    CHECK(check_seconds() - begun < CHECK_HANG, "no call has come");
  }
  serve_barrier();
  if (nproc > 1)
    MUST(HG_Bulk_transfer(HG_BULK_PULL, next, theirs, 0, mine, 0, MANY, &transfer));
  MPI_Finalize();

  FAILS(HG_Forward(next, keep, &in, &out, &another));
  if (nproc > 1) {
    FAILS(HG_Wait(request, 3600 * 1000, HG_STATUS_IGNORE));
    HG_Bulk_wait(transfer, 3600 * 1000, &status); /* it may have ended before */
    FAILS(HG_Bulk_transfer(HG_BULK_PUSH, next, theirs, 0, mine, 0, MANY, &transfer));
  }
  HG_Request_free(request);
  FAILS(HG_Handler_process(3600 * 1000, &status));
  FAILS(HG_Handler_start_output(kept, &in));
  MUST(HG_Handler_free(kept));
  MUST(HG_Bulk_handle_free(theirs));
  MUST(HG_Bulk_handle_free(mine));
  FAILS(NA_Msg_send_unexpected(network, context, NULL, NULL, text, 99, next, 1, NA_OP_ID_IGNORE));
  FAILS(NA_Msg_send_expected(network, context, NULL, NULL, text, 9999, next, 1, NA_OP_ID_IGNORE));
  FAILS(NA_Msg_recv_unexpected(network, context, NULL, NULL, text, 99, NA_OP_ID_IGNORE));
  FAILS(NA_Msg_recv_expected(network, context, NULL, NULL, text, 99, next, 1, NA_OP_ID_IGNORE));
  FAILS(NA_Addr_lookup_wait(network, "mpi://0", &next));
  FAILS(NA_Progress(network, context, 3600 * 1000));
  FAILS(NA_Trigger(context, 3600 * 1000, 1, &count));
  na_mem_handle_t whole;
  MUST(NA_Mem_handle_create(network, memory, MANY, NA_MEM_READWRITE, &whole));
  MUST(NA_Mem_register(network, whole));
  MUST(NA_Mem_deregister(network, whole));
  MUST(NA_Mem_handle_free(network, whole));
  MUST(HG_Initialized(&flag, NULL));
  MUST(HG_Finalize());
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  free(text);
  free(memory);
  if (me == 0) {
    printf("PASS %s\n", check_name);
    fflush(stdout);
  }
  return 0;
}
