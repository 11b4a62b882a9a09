/* Calls of Mercury 2.4's interface after MPI_Finalize: they return errors, and destroying the
 * remaining objects frees them. */
// TEST: mercury
#include "mercury2_check.h"

enum { MANY = 3 << 20 };

MERCURY_GEN_PROC(text_t, ((hg_const_string_t)(s)))

#define FAILS(call) CHECK((call) != HG_SUCCESS, "%s succeeds after MPI_Finalize", #call)

#define KEEP ((hg_id_t)1)

static hg_handle_t kept;

static hg_return_t keep_cb(hg_handle_t handle)
{
  kept = handle;
  return HG_SUCCESS;
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  (void)info;
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  char *text = check_calloc(MANY + 1), *memory = check_calloc(MANY), mine_bytes[400], theirs_bytes[400];
  void *at[1] = { memory };
  hg_size_t len[1] = { MANY };
  hg_bulk_t mine, theirs;
  hg_handle_t handle, never;
  hg_addr_t found;
  text_t in = { text };
  unsigned int count;

  start_mercury("mercury2_after", &argc, &argv);
  memset(text, 'x', MANY);
  hg_addr_t right = ranks[(me + 1) % nproc];
  MUST(HG_Register(hg_class, KEEP, hg_proc_text_t, hg_proc_text_t, keep_cb));
  MUST(HG_Bulk_create(hg_class, 1, at, len, HG_BULK_READWRITE, &mine));
  const hg_size_t bytes = HG_Bulk_get_serialize_size(mine, 0);
  CHECK(bytes <= sizeof mine_bytes, "%lu bytes", (unsigned long)bytes);
  MUST(HG_Bulk_serialize(mine_bytes, bytes, 0, mine));
  MPI_Sendrecv(mine_bytes, sizeof mine_bytes, MPI_BYTE, (me + nproc - 1) % nproc, 1, theirs_bytes,
               sizeof theirs_bytes, MPI_BYTE, (me + 1) % nproc, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MUST(HG_Bulk_deserialize(hg_class, &theirs, theirs_bytes, sizeof theirs_bytes));
  serve_barrier();

  MUST(HG_Create(context, right, KEEP, &handle));
  MUST(HG_Create(context, right, KEEP, &never));
  MUST(HG_Forward(never, on_end, NULL, &in));
  while (!kept)
    pump(context, 20);
  serve_barrier();
  if (nproc > 1)
    MUST(HG_Bulk_transfer(context, on_end, NULL, HG_BULK_PULL, right, theirs, 0, mine, 0, MANY, NULL));
  MPI_Finalize();

  for (int round = 0; round < 2; round++) {
    text[round ? MANY : 10] = 0;
    FAILS(HG_Forward(handle, on_end, NULL, &in));
    text[10] = 'x';
  }
  FAILS(HG_Progress(context, 3600 * 1000));
  MUST(HG_Cancel(never)); /* its callback runs */
  while (HG_Trigger(context, 0, 10, &count) == HG_SUCCESS && count > 0)
    ;
  FAILS(HG_Event_progress(context, &count));
  if (nproc > 1)
    FAILS(HG_Bulk_transfer(context, on_end, NULL, HG_BULK_PUSH, right, theirs, 0, mine, 0, MANY, NULL));
  FAILS(HG_Addr_lookup2(hg_class, "mpi://0", &found));
  CHECK(HG_Context_create(hg_class) == NULL, "a context after MPI_Finalize");
  CHECK(HG_Init("mpi", HG_TRUE) == NULL, "a class after MPI_Finalize");
  FAILS(HG_Respond(kept, NULL, NULL, &in));
  MUST(HG_Destroy(kept));
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(never));
  MUST(HG_Bulk_free(theirs));
  MUST(HG_Bulk_free(mine));
  for (int p = 0; p < nproc; p++)
    MUST(HG_Addr_free(hg_class, ranks[p]));
  MUST(HG_Context_destroy(context));
  MUST(HG_Finalize(hg_class));
  free(ranks);
  free(text);
  free(memory);
  return check_pass();
}
