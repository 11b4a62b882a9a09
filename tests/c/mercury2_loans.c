/* A program frees its bulk handle directly after HG_Forward: the call keeps the memory exposed
 * until it ends, and not longer. */
// TEST: mercury
#include "mercury2_check.h"

enum { MOST = 100000 };

MERCURY_GEN_PROC(access_t, ((hg_bulk_t)(bulk))((uint64_t)(size))((uint8_t)(push)))
MERCURY_GEN_PROC(done_t, ((int32_t)(code)))

static hg_id_t access_id;
static char theirs[MOST], ours[MOST];
static volatile int ended, checked;
static hg_bulk_t last = HG_BULK_NULL;

static hg_return_t on_transfer(const struct hg_cb_info *info)
{
  hg_handle_t handle = info->arg;
  done_t out = {info->ret};
  MUST(HG_Bulk_free(info->info.bulk.local_handle));
  MUST(HG_Respond(handle, NULL, NULL, &out));
  return HG_Destroy(handle);
}

static hg_return_t access_cb(hg_handle_t handle)
{
  access_t in;
  MUST(HG_Get_input(handle, &in));
  void *memory = theirs;
  hg_size_t size = in.size;
  hg_bulk_t local;
  memset(theirs, 'B', sizeof theirs);
  MUST(HG_Bulk_create(hg_class, 1, &memory, &size, HG_BULK_READWRITE, &local));
  MUST(HG_Bulk_transfer(context, on_transfer, handle, in.push ? HG_BULK_PUSH : HG_BULK_PULL,
                        HG_Get_info(handle)->addr, in.bulk, 0, local, 0, size, HG_OP_ID_IGNORE));
  if (!HG_Addr_cmp(hg_class, HG_Get_info(handle)->addr, ranks[me])) {
    if (last != HG_BULK_NULL)
      MUST(HG_Bulk_free(last));
    MUST(HG_Bulk_ref_incr(in.bulk));
    last = in.bulk;
  }
  return HG_Free_input(handle, &in);
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  done_t out;
  MUST(info->ret);
  MUST(HG_Get_output(info->info.forward.handle, &out));
  CHECK(out.code == HG_SUCCESS, "the transfer ends with %d", (int)out.code);
  MUST(HG_Free_output(info->info.forward.handle, &out));
  ended++;
  return HG_SUCCESS;
}

static hg_return_t on_late(const struct hg_cb_info *info)
{
  CHECK(info->ret != HG_SUCCESS, "memory is accessed after the call has ended");
  checked++;
  return HG_SUCCESS;
}

static void call(int rank, hg_size_t size, int push)
{
  const int before = ended;
  void *memory = ours;
  access_t in = {.size = size, .push = (uint8_t)push};
  hg_handle_t handle;
  memset(ours, 'A', sizeof ours);
  MUST(HG_Bulk_create(hg_class, 1, &memory, &size, push ? HG_BULK_WRITE_ONLY : HG_BULK_READ_ONLY, &in.bulk));
  MUST(HG_Create(context, ranks[rank], access_id, &handle));
  MUST(HG_Forward(handle, on_end, NULL, &in));
  MUST(HG_Bulk_free(in.bulk));
  pump_until(&ended, before + 1, "a call");
  MUST(HG_Destroy(handle));
  CHECK(ours[0] == (push ? 'B' : 'A') && ours[size - 1] == ours[0], "the bytes of rank %d", rank);
}

int main(int argc, char **argv)
{
  start_mercury("mercury2_loans", &argc, &argv);
  access_id = MERCURY_REGISTER(hg_class, "access", access_t, done_t, access_cb);
  serve_barrier();
  const int next = (me + 1) % nproc;
  for (int push = 0; push < 2; push++)
    for (hg_size_t size = 196; size <= MOST; size += MOST - 196) {
      call(me, size, push);
      call(next, size, push);
    }
  serve_barrier();
  /* The last call of the previous rank has ended. */
  if (nproc > 1) {
    void *memory = theirs;
    hg_size_t size = 196;
    hg_bulk_t local;
    MUST(HG_Bulk_create(hg_class, 1, &memory, &size, HG_BULK_READWRITE, &local));
    hg_addr_t from = ranks[(me + nproc - 1) % nproc];
    const hg_return_t rc =
        HG_Bulk_transfer(context, on_late, NULL, HG_BULK_PUSH, from, last, 0, local, 0, size, HG_OP_ID_IGNORE);
    if (rc == HG_SUCCESS)
      pump_until(&checked, 1, "a late transfer");
    MUST(HG_Bulk_free(local));
  }
  if (last != HG_BULK_NULL)
    MUST(HG_Bulk_free(last));
  return end_mercury();
}
