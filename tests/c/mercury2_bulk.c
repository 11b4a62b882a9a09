/* Bulk data with Mercury 2.4's interface: segments, access, push and pull with offsets, handles as
 * parameters, bound handles that a third process uses, permissions, cancellation. */
// TEST: mercury networks
#include "mercury2_check.h"

MERCURY_GEN_PROC(bulk_in_t, ((hg_bulk_t)(bulk))((int32_t)(hops)))
MERCURY_GEN_PROC(bulk_out_t, ((int32_t)(ok)))

#define SEGMENTS 3
static const hg_size_t sizes[SEGMENTS] = { 100, 70000, 1200000 };
#define TOTAL ((hg_size_t)1270100)

static hg_id_t pull_id;
static volatile int ended, last_ret;
static hg_bulk_t kept = HG_BULK_NULL; /* of a call that has ended */

typedef struct {
  hg_handle_t handle;
  bulk_in_t in;
  hg_bulk_t local;
} work_t;

static unsigned char byte_at(hg_size_t i, int rank) { return (unsigned char)(i * 31 + (hg_size_t)rank); }

static void answer(work_t *work, int ok)
{
  bulk_out_t out = { ok };
  if (kept == HG_BULK_NULL) {
    kept = work->in.bulk;
    MUST(HG_Bulk_ref_incr(kept));
  }
  MUST(HG_Respond(work->handle, NULL, NULL, &out));
  MUST(HG_Bulk_free(work->local));
  MUST(HG_Free_input(work->handle, &work->in));
  MUST(HG_Destroy(work->handle));
  free(work);
}

static hg_return_t on_pushed(const struct hg_cb_info *info)
{
  CHECK(info->type == HG_CB_BULK && info->ret == HG_SUCCESS && info->info.bulk.op == HG_BULK_PUSH,
        "a push: %s", HG_Error_to_string(info->ret));
  answer(info->arg, 1);
  return HG_SUCCESS;
}

/* All of the data has arrived: inverts it and pushes it back. */
static hg_return_t on_pulled(const struct hg_cb_info *info)
{
  work_t *work = info->arg;
  void *at;
  hg_size_t size;
  uint32_t count;
  CHECK(info->type == HG_CB_BULK && info->ret == HG_SUCCESS && info->info.bulk.op == HG_BULK_PULL &&
            info->info.bulk.size == TOTAL && info->info.bulk.local_handle == work->local,
        "a pull: %s", HG_Error_to_string(info->ret));
  MUST(HG_Bulk_access(work->local, 0, TOTAL, HG_BULK_READWRITE, 1, &at, &size, &count));
  CHECK(count == 1 && size == TOTAL, "%u segments", (unsigned)count);
  for (hg_size_t i = 0; i < TOTAL; i++)
    ((unsigned char *)at)[i] ^= 0xff;
  if (HG_Bulk_get_addr(work->in.bulk))
    MUST(HG_Bulk_bind_transfer(context, on_pushed, work, HG_BULK_PUSH, work->in.bulk, 0, work->local, 0,
                               TOTAL, HG_OP_ID_IGNORE));
  else
    MUST(HG_Bulk_transfer_id(context, on_pushed, work, HG_BULK_PUSH, HG_Get_info(work->handle)->addr, 0,
                             work->in.bulk, 0, work->local, 0, TOTAL, HG_OP_ID_IGNORE));
  return HG_SUCCESS;
}

static hg_return_t on_passed(const struct hg_cb_info *info)
{
  work_t *work = info->arg;
  bulk_out_t out;
  CHECK(info->ret == HG_SUCCESS, "the third process: %s", HG_Error_to_string(info->ret));
  MUST(HG_Get_output(info->info.forward.handle, &out));
  answer(work, out.ok);
  MUST(HG_Free_output(info->info.forward.handle, &out));
  return HG_Destroy(info->info.forward.handle);
}

static hg_return_t pull_cb(hg_handle_t handle)
{
  work_t *work = check_calloc(sizeof *work);
  const hg_size_t size = TOTAL;
  hg_op_id_t op;
  work->handle = handle;
  MUST(HG_Get_input(handle, &work->in));
  CHECK(HG_Bulk_get_size(work->in.bulk) == TOTAL &&
            HG_Bulk_get_segment_count(work->in.bulk) == SEGMENTS &&
            HG_Bulk_get_flags(work->in.bulk) == HG_BULK_READWRITE,
        "another bulk handle has come");
  if (work->in.hops > 0) { /* another process does the transfer */
    bulk_in_t in = { work->in.bulk, work->in.hops - 1 };
    hg_handle_t next;
    MUST(HG_Create(context, ranks[(me + 1) % nproc], pull_id, &next));
    return HG_Forward(next, on_passed, work, &in);
  }
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &work->local));
  if (HG_Bulk_get_addr(work->in.bulk)) {
    CHECK(HG_Bulk_get_context_id(work->in.bulk) == 0, "another context");
    MUST(HG_Bulk_bind_transfer(context, on_pulled, work, HG_BULK_PULL, work->in.bulk, 0, work->local, 0,
                               TOTAL, &op));
  } else {
    MUST(HG_Bulk_transfer(context, on_pulled, work, HG_BULK_PULL, HG_Get_info(handle)->addr,
                          work->in.bulk, 0, work->local, 0, TOTAL, &op));
  }
  return HG_SUCCESS;
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  bulk_out_t out;
  CHECK(info->ret == HG_SUCCESS, "%s", HG_Error_to_string(info->ret));
  MUST(HG_Get_output(info->info.forward.handle, &out));
  CHECK(out.ok == 1, "%d", (int)out.ok);
  MUST(HG_Free_output(info->info.forward.handle, &out));
  ended++;
  return HG_SUCCESS;
}

static hg_return_t on_bulk(const struct hg_cb_info *info)
{
  last_ret = info->ret;
  ended++;
  return HG_SUCCESS;
}

/* Sends a handle over segments as a parameter; its memory is pulled, changed and pushed. */
static void as_parameter(int to, int bind, int hops)
{
  unsigned char *memory[SEGMENTS];
  hg_bulk_t bulk;
  hg_handle_t handle;
  const int before = ended;
  for (int s = 0; s < SEGMENTS; s++)
    memory[s] = malloc(sizes[s]);
  for (hg_size_t s = 0, i = 0; s < SEGMENTS; s++)
    for (hg_size_t b = 0; b < sizes[s]; b++, i++)
      memory[s][b] = byte_at(i, me);
  MUST(HG_Bulk_create(hg_class, SEGMENTS, (void **)memory, sizes, HG_BULK_READWRITE, &bulk));
  if (bind) {
    MUST(HG_Bulk_bind(bulk, context));
    CHECK(HG_Addr_cmp(hg_class, HG_Bulk_get_addr(bulk), ranks[me]), "it is bound to another");
  }
  bulk_in_t in = { bulk, hops };
  MUST(HG_Create(context, ranks[to], pull_id, &handle));
  MUST(HG_Forward(handle, on_end, NULL, &in));
  MUST(HG_Bulk_free(bulk)); /* the call keeps the memory exposed until it ends */
  pump_until(&ended, before + 1, "a bulk handle as a parameter");
  for (hg_size_t s = 0, i = 0; s < SEGMENTS; s++)
    for (hg_size_t b = 0; b < sizes[s]; b++, i++)
      CHECK(memory[s][b] == (byte_at(i, me) ^ 0xff), "byte %lu of segment %lu", (unsigned long)b,
            (unsigned long)s);
  MUST(HG_Destroy(handle));
  for (int s = 0; s < SEGMENTS; s++)
    free(memory[s]);
}

/* The memory of a call is exposed until the call ends, and not longer. */
static void after_its_call(int owner)
{
  const int before = ended;
  const hg_size_t size = 100;
  hg_bulk_t local;
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &local));
  hg_return_t rc = HG_Bulk_transfer(context, on_bulk, NULL, HG_BULK_PUSH, ranks[owner], kept, 0, local, 0, size,
                                    HG_OP_ID_IGNORE);
  if (rc == HG_SUCCESS) {
    pump_until(&ended, before + 1, "a late transfer");
    rc = (hg_return_t)last_ret;
  }
  CHECK(rc != HG_SUCCESS, "memory is accessed after its call");
  MUST(HG_Bulk_free(local));
  MUST(HG_Bulk_free(kept));
}

/* Bytes that end before the handle. */
static void refuse_beginnings(hg_bulk_t bulk)
{
  char bytes[4096];
  hg_bulk_t none;
  const hg_size_t size = HG_Bulk_get_serialize_size(bulk, 0);
  MUST(HG_Bulk_serialize(bytes, sizeof bytes, 0, bulk));
  for (hg_size_t few = 0; few < size; few++)
    MUST_BE(HG_OVERFLOW, HG_Bulk_deserialize(hg_class, &none, bytes, few));
}

/* Handles without transfers. */
static void handles(void)
{
  hg_bulk_t bulk, copy, none = HG_BULK_NULL;
  void *at[SEGMENTS];
  hg_size_t len[SEGMENTS];
  uint32_t count = 9;
  char bytes[4096];
  struct hg_bulk_attr attr = { HG_MEM_TYPE_HOST, 0 };
  MUST(HG_Bulk_create_attr(hg_class, SEGMENTS, NULL, sizes, HG_BULK_READ_ONLY, &attr, &bulk));
  /* The owner has full access to its own memory; output arrays are optional. */
  MUST(HG_Bulk_access(bulk, 50, 100, HG_BULK_READWRITE, SEGMENTS, at, len, &count));
  CHECK(count == 2 && len[0] == 50 && len[1] == 50, "%u segments", (unsigned)count);
  MUST(HG_Bulk_access(bulk, 0, 10, HG_BULK_READWRITE, 1, at, NULL, NULL));
  MUST(HG_Bulk_access(bulk, 0, TOTAL, HG_BULK_READWRITE, 2, NULL, NULL, &count));
  CHECK(count == 2, "%u of two segments", (unsigned)count);
  /* A range ends with the memory. If nothing is wanted, nothing is written. */
  MUST(HG_Bulk_access(bulk, 50, TOTAL, HG_BULK_READ_ONLY, SEGMENTS, at, len, &count));
  CHECK(count == SEGMENTS && len[0] == 50, "%u segments", (unsigned)count);
  count = 9;
  MUST(HG_Bulk_access(bulk, 0, 0, HG_BULK_READ_ONLY, 1, at, len, &count));
  MUST(HG_Bulk_access(bulk, 0, 10, HG_BULK_READ_ONLY, 0, at, len, &count));
  CHECK(count == 9, "%u segments of nothing", (unsigned)count);
  const hg_size_t size = HG_Bulk_get_serialize_size(bulk, 0);
  CHECK(size > 0 && size <= sizeof bytes, "%lu bytes", (unsigned long)size);
  MUST(HG_Bulk_serialize(bytes, sizeof bytes, 0, bulk));
  MUST(HG_Bulk_deserialize(hg_class, &copy, bytes, size));
  CHECK(HG_Bulk_get_size(copy) == TOTAL && HG_Bulk_get_addr(copy) == HG_ADDR_NULL, "the copy is another");
  refuse_beginnings(bulk);
  bytes[0] ^= 1;
  MUST_BE(HG_PROTOCOL_ERROR, HG_Bulk_deserialize(hg_class, &none, bytes, size));
  MUST(HG_Bulk_ref_incr(copy));
  MUST(HG_Bulk_free(copy));
  CHECK(HG_Bulk_get_size(copy) == TOTAL, "it has gone with its first holder");
  MUST(HG_Bulk_free(copy));
  CHECK(HG_Bulk_get_size(copy) == 0, "it is there without a holder");
  MUST(HG_Bulk_free(HG_BULK_NULL));

  /* A refused transfer, empty ones and cancelled ones. */
  hg_bulk_t local;
  hg_op_id_t op = HG_OP_ID_NULL;
  MUST(HG_Bulk_create(hg_class, SEGMENTS, NULL, sizes, HG_BULK_READWRITE, &local));
  MUST(HG_Bulk_bind(local, context));
  refuse_beginnings(local);
#define TRANSFER(op_, origin_offset, local_offset, size_)                                         \
  HG_Bulk_transfer(context, on_bulk, NULL, op_, ranks[me], bulk, origin_offset, local,            \
                   local_offset, size_, &op)
  MUST_BE(HG_INVALID_ARG, TRANSFER(HG_BULK_PULL, 0, HG_SIZE_MAX, 2));
  int before = ended;
  MUST(TRANSFER(HG_BULK_PULL, 0, 0, 0));
  MUST(TRANSFER(HG_BULK_PULL, 7, 9, 1000));
  pump_until(&ended, before + 2, "transfers to oneself");
  CHECK(last_ret == HG_SUCCESS, "%d", last_ret);
  MUST(HG_Bulk_cancel(op)); /* already ended */
  before = ended;
  MUST(TRANSFER(HG_BULK_PULL, 0, 0, TOTAL));
  MUST(HG_Bulk_cancel(op));
  pump_until(&ended, before + 1, "a cancelled transfer");
  CHECK(last_ret == HG_SUCCESS || last_ret == HG_CANCELED, "%d", last_ret);
  MUST(HG_Bulk_free(local));
  MUST(HG_Bulk_free(bulk));
}

int main(int argc, char **argv)
{
  start_mercury("mercury2_bulk", &argc, &argv);
  pull_id = MERCURY_REGISTER(hg_class, "pull", bulk_in_t, bulk_out_t, pull_cb);
  serve_barrier();
  handles();
  serve_barrier();
  as_parameter((me + 1) % nproc, 0, 0);
  serve_barrier();
  after_its_call((me + nproc - 1) % nproc);
  serve_barrier();
  as_parameter((me + 1) % nproc, 1, 0);
  as_parameter((me + 1) % nproc, 1, 1); /* the process two ranks to the right transfers */
  as_parameter(me, 1, 2);
  struct hg_diag_counters counters;
  serve_barrier();
  MUST(HG_Class_get_counters(hg_class, &counters));
  CHECK(counters.bulk_count >= 8, "%lu transfers", (unsigned long)counters.bulk_count);
  return end_mercury();
}
