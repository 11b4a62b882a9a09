/* The handle of short memory that others only read carries its bytes: a pull gets the bytes that
 * the memory had when the handle was encoded. */
// TEST: mercury
#include "mercury2_check.h"

enum { SEGMENTS = 3, SHORT = 300, LONG = 9000 };

MERCURY_GEN_PROC(pull_t, ((hg_bulk_t)(bulk))((uint64_t)(size)))
MERCURY_GEN_PROC(sum_t, ((int32_t)(code))((uint64_t)(sum)))

static hg_id_t pull_id;
static volatile int ended;
static uint64_t sum;
static int flags = -1;

static uint64_t sum_of(const unsigned char *bytes, hg_size_t size)
{
  uint64_t total = 0;
  for (hg_size_t i = 0; i < size; i++)
    total += bytes[i] * (i + 1);
  return total;
}

struct pulled {
  hg_handle_t handle;
  void *memory;
};

static hg_return_t on_transfer(const struct hg_cb_info *info)
{
  struct pulled *pulled = info->arg;
  sum_t out = {info->ret, sum_of(pulled->memory, info->info.bulk.size)};
  MUST(HG_Bulk_free(info->info.bulk.local_handle));
  MUST(HG_Respond(pulled->handle, NULL, NULL, &out));
  MUST(HG_Destroy(pulled->handle));
  free(pulled->memory);
  free(pulled);
  return HG_SUCCESS;
}

static hg_return_t pull_cb(hg_handle_t handle)
{
  struct pulled *pulled = check_calloc(sizeof *pulled);
  pull_t in;
  hg_bulk_t local;
  MUST(HG_Get_input(handle, &in));
  pulled->handle = handle;
  pulled->memory = check_calloc((long)in.size);
  MUST(HG_Bulk_create(hg_class, 1, &pulled->memory, &in.size, HG_BULK_WRITE_ONLY, &local));
  MUST(HG_Bulk_transfer(context, on_transfer, pulled, HG_BULK_PULL, HG_Get_info(handle)->addr, in.bulk, 7, local, 0,
                        in.size, HG_OP_ID_IGNORE));
  return HG_Free_input(handle, &in);
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  sum_t out;
  MUST(info->ret);
  MUST(HG_Get_output(info->info.forward.handle, &out));
  CHECK(out.code == HG_SUCCESS, "the transfer ends with %d", (int)out.code);
  sum = out.sum;
  MUST(HG_Free_output(info->info.forward.handle, &out));
  ended++;
  return HG_SUCCESS;
}

static void fill(unsigned char *bytes, hg_size_t size)
{
  for (hg_size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 7 + (hg_size_t)me);
}

/* Another rank pulls. Short memory may change directly after HG_Forward. */
static void call(int rank, hg_size_t size)
{
  static unsigned char ours[LONG];
  const int before = ended, is_short = size == SHORT && rank != me;
  void *at[SEGMENTS] = {ours, ours + 10, ours + 10};
  hg_size_t sizes[SEGMENTS] = {10, 0, size - 10};
  pull_t in = {.size = size - 9};
  hg_handle_t handle;
  fill(ours, size);
  const uint64_t expected = sum_of(ours + 7, in.size);
  MUST(HG_Bulk_create(hg_class, SEGMENTS, at, sizes, HG_BULK_READ_ONLY, &in.bulk));
  MUST(HG_Create(context, ranks[rank], pull_id, &handle));
  MUST(HG_Forward(handle, on_end, NULL, &in));
  if (is_short)
    memset(ours, 0, size);
  pump_until(&ended, before + 1, "a call");
  CHECK(sum == expected, "rank %d pulls other bytes", rank);
  MUST(HG_Bulk_free(in.bulk));
  MUST(HG_Destroy(handle));
}

static hg_return_t on_pulled(const struct hg_cb_info *info)
{
  MUST(info->ret);
  MUST(HG_Bulk_free(info->info.bulk.local_handle));
  ended++;
  return HG_SUCCESS;
}

/* The bytes are there even if the owner has freed the memory. */
static void serialized(void)
{
  unsigned char ours[SHORT], theirs[SHORT], bytes[1000], received[1000];
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc, before = ended;
  void *at = ours, *there = theirs;
  hg_size_t size = SHORT;
  hg_bulk_t bulk, writable, copy, local;
  fill(ours, size);
  MUST(HG_Bulk_create(hg_class, 1, &at, &size, HG_BULK_READ_ONLY, &bulk));
  MUST(HG_Bulk_create(hg_class, 1, &at, &size, HG_BULK_READWRITE, &writable));
  const hg_size_t plain = HG_Bulk_get_serialize_size(bulk, 0), eager = HG_Bulk_get_serialize_size(bulk, HG_BULK_EAGER);
  CHECK(eager == plain + size && eager <= sizeof bytes, "%lu bytes", (unsigned long)eager);
  CHECK(HG_Bulk_get_serialize_size(writable, HG_BULK_EAGER) == HG_Bulk_get_serialize_size(writable, 0),
        "writable memory is not copied");
  MUST(HG_Bulk_serialize(bytes, eager, HG_BULK_EAGER, bulk));
  MUST_BE(HG_OVERFLOW, HG_Bulk_serialize(bytes, eager - 1, HG_BULK_EAGER, bulk));
  for (hg_size_t few = plain; few < eager; few += 50)
    MUST_BE(HG_OVERFLOW, HG_Bulk_deserialize(hg_class, &copy, bytes, few));
  MUST(HG_Bulk_free(bulk));
  MUST(HG_Bulk_free(writable));
  MPI_Sendrecv(bytes, sizeof bytes, MPI_BYTE, right, 1, received, sizeof received, MPI_BYTE, left, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (nproc == 1) {
    MUST_BE(HG_FAULT, HG_Bulk_deserialize(hg_class, &copy, received, eager));
    return;
  }
  MUST(HG_Bulk_deserialize(hg_class, &copy, received, eager));
  MUST(HG_Bulk_create(hg_class, 1, &there, &size, HG_BULK_WRITE_ONLY, &local));
  MUST(HG_Bulk_transfer(context, on_pulled, NULL, HG_BULK_PULL, ranks[left], copy, 0, local, 0, size,
                        HG_OP_ID_IGNORE));
  pump_until(&ended, before + 1, "a pull");
  CHECK(theirs[0] == (unsigned char)left && theirs[8] == (unsigned char)(56 + left), "the bytes of rank %d", left);
  MUST(HG_Bulk_free(copy));
}

static hg_return_t note_flags(hg_proc_t proc, void *data)
{
  (void)data;
  if (hg_proc_get_op(proc) == HG_ENCODE)
    flags = hg_proc_get_flags(proc);
  return HG_SUCCESS;
}

static hg_return_t on_noted(const struct hg_cb_info *info)
{
  (void)info;
  ended++;
  return HG_SUCCESS;
}

/* The option no_bulk_eager of a class. */
static void option(uint8_t no_bulk_eager)
{
  struct hg_init_info info = HG_INIT_INFO_INITIALIZER;
  info.no_bulk_eager = no_bulk_eager;
  hg_class_t *class = HG_Init_opt2("self", HG_TRUE, HG_VERSION(2, 4), &info);
  CHECK(class != NULL, "HG_Init_opt2: %s", portolan_last_error());
  hg_context_t *in = HG_Context_create(class);
  hg_id_t id = HG_Register_name(class, "note", note_flags, NULL, NULL);
  hg_addr_t self;
  hg_handle_t handle;
  const int before = ended;
  char nothing = 0;
  MUST(HG_Addr_self(class, &self));
  MUST(HG_Create(in, self, id, &handle));
  MUST(HG_Forward(handle, on_noted, NULL, &nothing));
  while (ended == before)
    pump(in, 1);
  CHECK(flags == (no_bulk_eager ? 0 : HG_PROC_BULK_EAGER), "the proc has the flags %d", flags);
  MUST(HG_Destroy(handle));
  MUST(HG_Addr_free(class, self));
  MUST(HG_Context_destroy(in));
  MUST(HG_Finalize(class));
}

int main(int argc, char **argv)
{
  start_mercury("mercury2_eager", &argc, &argv);
  pull_id = MERCURY_REGISTER(hg_class, "pull", pull_t, sum_t, pull_cb);
  serve_barrier();
  for (int rank = 0; rank < nproc; rank++) {
    call(rank, SHORT);
    call(rank, LONG);
  }
  serve_barrier();
  serialized();
  option(0);
  option(1);
  return end_mercury();
}
