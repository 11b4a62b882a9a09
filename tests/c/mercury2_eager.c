/* The handle of short memory that others only read carries its bytes: a pull gets the bytes that
 * the memory had when the handle was encoded. Procs encode it so, unless the class forbids it. */
// TEST: mercury
#include "mercury2_check.h"

enum { SHORT = 300 };

static volatile int ended;
static int flags = -1;

static void fill(unsigned char *bytes, hg_size_t size)
{
  for (hg_size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 7 + (hg_size_t)me);
}

static hg_return_t on_pulled(const struct hg_cb_info *info)
{
  MUST(info->ret);
  MUST(HG_Bulk_free(info->info.bulk.local_handle));
  ended++;
  return HG_SUCCESS;
}

/* With the flag, a proc encodes `more` additional bytes. */
static void by_proc(hg_bulk_t bulk, hg_size_t more)
{
  char bytes[1000];
  hg_size_t used[2];
  for (int eager = 0; eager < 2; eager++) {
    hg_proc_t proc;
    MUST(hg_proc_create_set(hg_class, bytes, sizeof bytes, HG_ENCODE, HG_NOHASH, &proc));
    hg_proc_set_flags(proc, eager ? HG_PROC_BULK_EAGER : 0);
    MUST(hg_proc_hg_bulk_t(proc, &bulk));
    used[eager] = hg_proc_get_size_used(proc);
    MUST(hg_proc_free(proc));
  }
  CHECK(used[1] == used[0] + more, "%lu and %lu bytes", (unsigned long)used[0], (unsigned long)used[1]);
}

/* The bytes are there even if the owner has freed the memory. */
static void serialized(void)
{
  unsigned char ours[SHORT], theirs[SHORT], bytes[1000], received[1000];
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc, before = ended;
  void *at[] = { ours, ours + 10, ours + 10 }, *there = theirs;
  const hg_size_t sizes[] = { 10, 0, SHORT - 10 }, size = SHORT, pulled = SHORT - 7;
  hg_bulk_t bulk, writable, copy, local;
  fill(ours, size);
  MUST(HG_Bulk_create(hg_class, 3, at, sizes, HG_BULK_READ_ONLY, &bulk));
  MUST(HG_Bulk_create(hg_class, 3, at, sizes, HG_BULK_READWRITE, &writable));
  const hg_size_t plain = HG_Bulk_get_serialize_size(bulk, 0), eager = HG_Bulk_get_serialize_size(bulk, HG_BULK_EAGER);
  CHECK(eager == plain + size && eager <= sizeof bytes, "%lu bytes", (unsigned long)eager);
  CHECK(HG_Bulk_get_serialize_size(writable, HG_BULK_EAGER) == HG_Bulk_get_serialize_size(writable, 0),
        "writable memory is not copied");
  MUST(HG_Bulk_serialize(bytes, eager, HG_BULK_EAGER, bulk));
  MUST_BE(HG_OVERFLOW, HG_Bulk_serialize(bytes, eager - 1, HG_BULK_EAGER, bulk));
  for (hg_size_t few = plain; few < eager; few += 50)
    MUST_BE(HG_OVERFLOW, HG_Bulk_deserialize(hg_class, &copy, bytes, few));
  by_proc(bulk, eager - plain);
  by_proc(writable, 0);
  MUST(HG_Bulk_free(bulk));
  MUST(HG_Bulk_free(writable));
  memset(ours, 0, sizeof ours);
  MPI_Sendrecv(bytes, sizeof bytes, MPI_BYTE, right, 1, received, sizeof received, MPI_BYTE, left, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (nproc == 1) {
    MUST_BE(HG_FAULT, HG_Bulk_deserialize(hg_class, &copy, received, eager));
    return;
  }
  MUST(HG_Bulk_deserialize(hg_class, &copy, received, eager));
  MUST(HG_Bulk_create(hg_class, 1, &there, &size, HG_BULK_WRITE_ONLY, &local));
  MUST(HG_Bulk_transfer(context, on_pulled, NULL, HG_BULK_PULL, ranks[left], copy, 7, local, 0, pulled,
                        HG_OP_ID_IGNORE));
  pump_until(&ended, before + 1, "a pull");
  for (hg_size_t i = 0; i < pulled; i++)
    CHECK(theirs[i] == (unsigned char)((i + 7) * 7 + (hg_size_t)left), "byte %d of rank %d", (int)i, left);
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
  serialized();
  option(0);
  option(1);
  return end_mercury();
}
