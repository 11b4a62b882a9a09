/* Memory handles of the network abstraction: put and get across segments, permissions,
 * serialisation. */
// TEST: mercury networks
#include "mercury_na.h"

enum { PARTS = 5 };
static const na_size_t part_sizes[PARTS] = { 100, 1, 4096, 33, 70000 };
enum { WHOLE = 100 + 1 + 4096 + 33 + 70000 };

/* A handle over segments with gaps between them, and the deserialised handle of the neighbour. */
struct memory {
  unsigned char *base;
  struct na_segment segments[PARTS];
  na_mem_handle_t mine, theirs;
};

static na_mem_handle_t exchange(na_mem_handle_t mine, int to, int from)
{
  na_size_t size = NA_Mem_handle_get_serialize_size(network, mine), other = 0;
  unsigned char *out = check_calloc((long)size), *in;
  na_mem_handle_t handle = NA_MEM_HANDLE_NULL;

  CHECK(size > 0, "the serialised size is 0");
  MUST(NA_Mem_handle_serialize(network, out, size, mine));
  MPI_Sendrecv(&size, 8, MPI_BYTE, to, 1, &other, 8, MPI_BYTE, from, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  in = check_calloc((long)other);
  MPI_Sendrecv(out, (int)size, MPI_BYTE, to, 2, in, (int)other, MPI_BYTE, from, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MUST(NA_Mem_handle_deserialize(network, &handle, in, other));
  free(out);
  free(in);
  return handle;
}

static unsigned char *part(struct memory *m, int i)
{
  return (unsigned char *)(size_t)m->segments[i].address;
}

static void fill_parts(struct memory *m, int seed)
{
  long at = 0;
  for (int i = 0; i < PARTS; i++)
    for (na_size_t j = 0; j < part_sizes[i]; j++)
      part(m, i)[j] = check_byte(seed, at++);
}

static void expose(struct memory *m, unsigned long flags)
{
  size_t at = 64;
  m->base = check_calloc(WHOLE + (PARTS + 1) * 64);
  for (int i = 0; i < PARTS; i++) {
    m->segments[i].address = (na_ptr_t)(size_t)(m->base + at);
    m->segments[i].size = part_sizes[i];
    at += part_sizes[i] + 64;
  }
  MUST(NA_Mem_handle_create_segments(network, m->segments, PARTS, flags, &m->mine));
  MUST(NA_Mem_register(network, m->mine));
}

static void move(int put, na_mem_handle_t local, na_offset_t lo, na_mem_handle_t remote,
                 na_offset_t ro, na_size_t size, na_addr_t peer)
{
  const int before = ended;
  if (put)
    MUST(NA_Put(network, context, note, NULL, local, lo, remote, ro, size, peer, NULL));
  else
    MUST(NA_Get(network, context, note, NULL, local, lo, remote, ro, size, peer, NULL));
  pump_until(&ended, before + 1, "transfer");
  CHECK_EQ(last.ret, NA_SUCCESS);
  CHECK_EQ(last.type, put ? NA_CB_PUT : NA_CB_GET);
}

static void memory(void)
{
  static const na_offset_t offsets[] = { 0, 1, 99, 100, 101, 4197, WHOLE - 1, WHOLE };
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  const int count = sizeof offsets / sizeof *offsets;
  struct memory m;
  unsigned char *flat = check_calloc(WHOLE), *want = check_calloc(WHOLE);
  na_mem_handle_t local, theirs;
  na_addr_t peer = address_of(right);

  expose(&m, NA_MEM_READWRITE);
  MUST(NA_Mem_handle_create(network, flat, WHOLE, NA_MEM_READWRITE, &local));
  theirs = exchange(m.mine, left, right); /* sends to the left, receives from the right */

  fill_parts(&m, 300 + me);
  pump_barrier();
  MUST_BE(NA_ACCESS, NA_Get(network, context, note, NULL, local, 0, theirs, 0, 1, peer, NULL));
  MUST(NA_Mem_register(network, local));
  check_fill(want, 300 + right, WHOLE);
  for (int i = 0; i < count; i++)
    for (int j = i; j < count; j++) {
      const na_size_t size = offsets[j] - offsets[i];
      memset(flat, 0, WHOLE);
      move(0, local, WHOLE - size, theirs, offsets[i], size, peer);
      CHECK_BYTES(flat + WHOLE - size, want + offsets[i], (long)size, "get from %d to %d",
                  (int)offsets[i], (int)offsets[j]);
      for (na_size_t k = 0; k < WHOLE - size; k++)
        CHECK_EQ(flat[k], 0);
    }
  pump_barrier();

  /* Puts from a handle of several segments into another one. */
  check_fill(flat, 700 + me, WHOLE);
  for (int i = 0; i + 1 < count; i++)
    move(1, local, offsets[i], theirs, offsets[i], offsets[i + 1] - offsets[i], peer);
  pump_barrier();
  long at = 0;
  for (int i = 0; i < PARTS; i++) {
    for (na_size_t j = 0; j < part_sizes[i]; j++, at++)
      CHECK_EQ(part(&m, i)[j], check_byte(700 + left, at));
    for (int j = 1; j <= 64; j++) /* the gaps are unchanged */
      CHECK_EQ(part(&m, i)[-j], 0);
  }
  pump_barrier();

  if (nproc > 1) /* `theirs` is not local */
    MUST_BE(NA_INVALID_PARAM,
            NA_Get(network, context, note, NULL, theirs, 0, theirs, 0, 1, peer, NULL));
  MUST(NA_Mem_deregister(network, local));
  MUST_BE(NA_ACCESS, NA_Put(network, context, note, NULL, local, 0, theirs, 0, 1, peer, NULL));
  pump_barrier();
  MUST(NA_Mem_handle_free(network, theirs));
  MUST(NA_Mem_handle_free(network, local));
  MUST(NA_Mem_handle_free(network, m.mine));
  MUST(NA_Addr_free(network, peer));
  free(m.base);
  free(flat);
  free(want);
}

/* Read-only and write-only memory, on the remote and on the local side. */
static void permissions(void)
{
  static const unsigned long flags[] = { NA_MEM_READ_ONLY, NA_MEM_WRITE_ONLY, NA_MEM_READWRITE };
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  unsigned char bytes[3][16], other[3][16];
  na_mem_handle_t mine[3], local[3], theirs[3];
  na_addr_t peer = address_of(right);

  for (int i = 0; i < 3; i++) {
    memset(bytes[i], me + 1, 16);
    MUST(NA_Mem_handle_create(network, bytes[i], 16, flags[i], &mine[i]));
    MUST(NA_Mem_handle_create(network, other[i], 16, flags[i], &local[i]));
    MUST(NA_Mem_register(network, mine[i]));
    MUST(NA_Mem_register(network, local[i]));
    theirs[i] = exchange(mine[i], left, right);
  }
  for (int l = 0; l < 3; l++)
    for (int r = 0; r < 3; r++) {
      const int may_get = l != 0 && r != 1, may_put = l != 1 && r != 0;
      if (may_get)
        move(0, local[l], 0, theirs[r], 0, 16, peer);
      else
        MUST_BE(NA_PERMISSION,
                NA_Get(network, context, note, NULL, local[l], 0, theirs[r], 0, 16, peer, NULL));
      if (may_put)
        move(1, local[l], 0, theirs[r], 0, 16, peer);
      else
        MUST_BE(NA_PERMISSION,
                NA_Put(network, context, note, NULL, local[l], 0, theirs[r], 0, 16, peer, NULL));
    }
  pump_barrier();
  for (int i = 0; i < 3; i++) {
    MUST(NA_Mem_handle_free(network, mine[i]));
    MUST(NA_Mem_handle_free(network, local[i]));
    MUST(NA_Mem_handle_free(network, theirs[i]));
  }
  MUST(NA_Addr_free(network, peer));
  pump_barrier();
}

int main(int argc, char **argv)
{
  start_na("mercury_mem", &argc, &argv);
  memory();
  permissions();
  return end_na();
}
