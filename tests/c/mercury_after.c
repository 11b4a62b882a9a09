/* Calls of NA and of both HG interfaces (2013 and current) after MPI_Finalize: they return
 * errors, and destroying the remaining objects frees them. */
// TEST: mercury
#include "mercury_check.h"

enum { MANY = 3 << 20 };

MERCURY_GEN_PROC(numbers_t, ((uint64_t)(x))((hg_const_string_t)(s)))

#define FAILS(call) CHECK((call) != 0, "%s succeeds after MPI_Finalize", #call)

static hg_handle_t kept;

static hg_return_t echo_cb(hg_handle_t handle)
{
  numbers_t in;
  MUST(HG_Get_input(handle, &in));
  MUST(HG_Respond(handle, NULL, NULL, &in));
  MUST(HG_Free_input(handle, &in));
  return HG_Destroy(handle);
}

static hg_return_t keep_cb(hg_handle_t handle)
{
  kept = handle;
  return HG_SUCCESS;
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  *(int *)info->arg += 1;
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  char name[64], *text = check_calloc(MANY + 1), theirs_bytes[400], mine_bytes[400];
  char *memory = check_calloc(MANY);
  void *at[1] = { memory };
  hg_size_t len[1] = { MANY };
  hg_addr_t right = HG_ADDR_NULL;
  na_addr_t next = NA_ADDR_NULL;
  hg_bulk_t mine, theirs;
  hg_handle_t handle, forwarded, never;
  hg_request_t request;
  int ended = 0;
  hg_bool_t flag;
  numbers_t in = { 7, text }, out;
  unsigned int count;

  start_network("mercury_after", &argc, &argv);
  memset(text, 'x', MANY);
  context = NA_Context_create(network);
  CHECK(context != NULL, "NA_Context_create: %s", portolan_last_error());
  MUST(HG_Init(network)); /* the 2013 interface */
  hg_id_t old_id = MERCURY_REGISTER("old", numbers_t, numbers_t, echo_cb);
  hg_class_t *hg = HG_Init_opt("mpi", HG_TRUE, NULL);
  CHECK(hg != NULL, "HG_Init_opt: %s", portolan_last_error());
  hg_context_t *serving = HG_Context_create(hg);
  hg_id_t echo = HG_Register_name(hg, "echo", hg_proc_numbers_t, hg_proc_numbers_t, echo_cb);
  hg_id_t keep = HG_Register_name(hg, "keep", hg_proc_numbers_t, hg_proc_numbers_t, keep_cb);
  snprintf(name, sizeof name, "mpi://%d", (me + 1) % nproc);
  MUST(HG_Addr_lookup2(hg, name, &right));
  MUST(NA_Addr_lookup_wait(network, name, &next));
  MUST(HG_Bulk_create(hg, 1, at, len, HG_BULK_READWRITE, &mine));
  const size_t bytes = (size_t)HG_Bulk_get_serialize_size(mine, 0);
  CHECK(bytes <= sizeof mine_bytes, "%lu bytes", (unsigned long)bytes);
  MUST(HG_Bulk_serialize(mine_bytes, bytes, 0, mine));
  MPI_Sendrecv(mine_bytes, sizeof mine_bytes, MPI_BYTE, (me + nproc - 1) % nproc, 1, theirs_bytes,
               sizeof theirs_bytes, MPI_BYTE, (me + 1) % nproc, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MUST(HG_Bulk_deserialize(hg, &theirs, theirs_bytes, sizeof theirs_bytes));

  /* A call that completes, one that never does, one of the 2013 interface, and a transfer. */
  MUST(HG_Create(serving, right, echo, &handle));
  MUST(HG_Create(serving, right, echo, &forwarded));
  MUST(HG_Create(serving, right, keep, &never));
  MUST(HG_Forward_handle(forwarded, on_end, &ended, &in));
  MUST(HG_Forward_handle(never, on_end, &ended, &in));
  const double begun = check_seconds();
  while (ended < 1 || !kept) {
    HG_Progress(serving, 20);
    HG_Trigger(serving, 0, 10, &count);
    CHECK(check_seconds() - begun < CHECK_HANG, "%d have ended", ended);
  }
  /* Serves the other ranks until all have arrived. */
  MPI_Request all;
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int done = 0; !done; MPI_Test(&all, &done, MPI_STATUS_IGNORE)) {
    HG_Progress(serving, 0);
    HG_Trigger(serving, 0, 10, &count);
  }
  MUST(HG_Forward(next, old_id, &in, &out, &request));
  if (nproc > 1)
    MUST(HG_Bulk_transfer_cb(serving, on_end, &ended, HG_BULK_PULL, right, theirs, 0, mine, 0, MANY,
                             HG_OP_ID_IGNORE));
  MPI_Finalize();

  for (int round = 0; round < 2; round++) {
    text[round ? MANY : 10] = 0;
    FAILS(HG_Forward_handle(handle, on_end, &ended, &in));
    text[10] = 'x';
  }
  FAILS(HG_Progress(serving, 3600 * 1000));
  while (HG_Trigger(serving, 0, 10, &count) == HG_SUCCESS)
    ;
  FAILS(HG_Trigger(serving, 3600 * 1000, 1, &count));
  if (nproc > 1)
    FAILS(HG_Bulk_transfer_cb(serving, on_end, &ended, HG_BULK_PUSH, right, theirs, 0, mine, 0, MANY,
                              HG_OP_ID_IGNORE));
  FAILS(HG_Addr_lookup2(hg, "mpi://0", &right));
  CHECK(HG_Context_create(hg) == NULL, "a context after MPI_Finalize");
  CHECK(HG_Init_opt("mpi", HG_TRUE, NULL) == NULL, "a class after MPI_Finalize");
  FAILS(HG_Respond(kept, NULL, NULL, &in));
  MUST(HG_Destroy(kept));
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(forwarded));
  MUST(HG_Destroy(never));
  MUST(HG_Bulk_free(theirs));
  MUST(HG_Bulk_free(mine));
  MUST(HG_Context_destroy(serving));
  MUST(HG_Class_finalize(hg));

  hg_request_t another;
  hg_status_t status;
  FAILS(HG_Forward(next, old_id, &in, &out, &another));
  if (nproc > 1)
    FAILS(HG_Wait(request, 3600 * 1000, HG_STATUS_IGNORE));
  HG_Request_free(request);
  FAILS(HG_Handler_process(3600 * 1000, &status));
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
