/* Parameters that are too long for one message. The other side pulls them, from buffers that are
 * reused, by every path that the memory may take. */
// TEST: mercury networks
#include "mercury_check.h"

#define LONG_TIME 600000

/* Bytes of a pattern. The proc may inspect the extra buffer, which follows the first one, and
 * take ownership of it. */
typedef struct {
  int32_t seed;
  uint64_t size;
  int32_t looks; /* 1 inspects, 2 takes; not sent */
  unsigned char *bytes;
  void *taken;
} bytes_t;

/* An input and the requested length of the output. */
typedef struct {
  bytes_t bytes;
  uint64_t back;
} ask_t;

static hg_id_t ask_id;
static int asked;

static void look(hg_proc_t proc, bytes_t *b)
{
  unsigned char *extra = hg_proc_get_extra_buf(proc);
  const hg_size_t used = hg_proc_get_size_used(proc);
  CHECK(extra != NULL && hg_proc_get_extra_size(proc) >= used, "no extra buffer for %lu bytes",
        (unsigned long)b->size);
  CHECK_BYTES(extra + used - b->size, b->bytes, (long)b->size, "in the extra buffer");
  CHECK(hg_proc_get_extra_buf(proc) == extra, "it moves again");
  if (b->looks == 2) {
    MUST(hg_proc_set_extra_buf_is_mine(proc, HG_FALSE));
    b->taken = extra;
  }
}

static hg_return_t proc_bytes(hg_proc_t proc, void *data)
{
  bytes_t *b = data;
  hg_return_t rc = hg_proc_int32_t(proc, &b->seed);
  if (rc == HG_SUCCESS)
    rc = hg_proc_uint64_t(proc, &b->size);
  if (rc != HG_SUCCESS)
    return rc;
  if (hg_proc_get_op(proc) == HG_FREE) {
    free(b->bytes);
    return HG_SUCCESS;
  }
  if (hg_proc_get_op(proc) == HG_DECODE)
    b->bytes = check_calloc((long)b->size + 1);
  rc = hg_proc_raw(proc, b->bytes, b->size);
  if (hg_proc_get_op(proc) == HG_ENCODE && b->looks)
    look(proc, b);
  return rc;
}

static hg_return_t proc_ask(hg_proc_t proc, void *data)
{
  ask_t *ask = data;
  hg_return_t rc = proc_bytes(proc, &ask->bytes);
  return rc == HG_SUCCESS ? hg_proc_uint64_t(proc, &ask->back) : rc;
}

static void fill(bytes_t *b, int seed, uint64_t size)
{
  b->seed = seed;
  b->size = size;
  b->looks = 0;
  b->taken = NULL;
  b->bytes = check_calloc((long)size + 1);
  for (uint64_t i = 0; i < size; i++)
    b->bytes[i] = check_byte(seed, (long)i);
}

static void verify(const bytes_t *b, int seed, uint64_t size)
{
  CHECK_EQ(b->seed, seed);
  CHECK_EQ(b->size, size);
  for (uint64_t i = 0; i < size; i++)
    CHECK(b->bytes[i] == check_byte(seed, (long)i), "byte %lu of %lu is wrong", (unsigned long)i,
          (unsigned long)size);
}

static hg_return_t ask_cb(hg_handle_t handle)
{
  ask_t in;
  bytes_t out;
  MUST(HG_Handler_get_input(handle, &in));
  verify(&in.bytes, in.bytes.seed, in.bytes.size);
  fill(&out, in.bytes.seed + 1, in.back);
  if (asked++ % 3 == 1 && in.back > 100000)
    out.looks = 1 + asked % 2;
  MUST(HG_Handler_start_output(handle, &out));
  /* The input stays valid after the response. */
  verify(&in.bytes, in.bytes.seed, in.bytes.size);
  hg_proc_buf_free(out.taken);
  free(out.bytes);
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

static void ask(int rank, int seed, uint64_t size, uint64_t back, int looks)
{
  ask_t in = { .back = back };
  bytes_t out;
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  fill(&in.bytes, seed, size);
  in.bytes.looks = looks;
  MUST(HG_Forward(ranks[rank], ask_id, &in, &out, &request));
  /* The input is encoded when the call returns. */
  memset(in.bytes.bytes, 0xee, size);
  hg_proc_buf_free(in.bytes.taken);
  MUST(HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "%lu bytes and %lu back have not ended", (unsigned long)size, (unsigned long)back);
  verify(&out, seed + 1, back);
  free(in.bytes.bytes);
  MUST(HG_Request_free(request)); /* also frees the output */
}

static void lengths(int rank)
{
  static const uint64_t sizes[] = { 0,       1,       100,     3900,            3990,   4000,
                                    4040,    4050,    4064,    4070,            4096,   5000,
                                    65000,   65510,   65536,   65700,           65720,  65736,
                                    65744,   65752,   65760,   65768,           65776,  65784,
                                    65792,   65800,   66000,   70000,           9 << 20,
                                    131072,  150001,  400000,  (1 << 20) - 1,   300000, 1 << 20,
                                    66001,   3 << 20, 5000000, (17 << 20) + 33, 8,      90000 };
  const int count = sizeof sizes / sizeof *sizes;
  for (int i = 0; i < count; i++) {
    const uint64_t size = sizes[i], back = sizes[(i * 7 + 3) % count];
    ask(rank, i + me, size, back, size > 66000 ? i % 3 : 0);
  }
}

/* More calls at a time than the library has buffers to keep or to lend. */
static void many(int rank)
{
  enum { CALLS = 40 };
  ask_t in[CALLS];
  bytes_t out[CALLS];
  hg_request_t requests[CALLS];
  for (int i = 0; i < CALLS; i++) {
    fill(&in[i].bytes, 3 * i, (uint64_t)(66000 + 7000 * (i % 11)));
    in[i].back = (uint64_t)(30000 + 9000 * (i % 13));
    in[i].bytes.looks = i % 4 == 3;
    MUST(HG_Forward(ranks[rank], ask_id, &in[i], &out[i], &requests[i]));
  }
  for (int n = 0; n < CALLS; n++) {
    const int i = (n * 17 + 5) % CALLS;
    hg_status_t done = HG_FALSE;
    MUST(HG_Wait(requests[i], LONG_TIME, &done));
    CHECK(done, "call %d of many has not ended", i);
    verify(&out[i], 3 * i + 1, in[i].back);
    free(in[i].bytes.bytes);
    MUST(HG_Request_free(requests[i]));
  }
}

/* Buffers that are kept for the next call are bounded. */
static void nothing_grows(int rank)
{
  long before = 0;
  for (int i = 0; i < 120; i++) {
    if (i == 40)
      before = resident_kib();
    ask(rank, i, (uint64_t)(80000 + 37000 * (i % 29)), (uint64_t)(70000 + 41000 * (i % 23)), 0);
  }
  CHECK(resident_kib() - before < 48 * 1024, "%ld KiB more after 80 calls", resident_kib() - before);
}

int main(int argc, char **argv)
{
  start_network("mercury_long", &argc, &argv);
  MUST(HG_Init(network));
  ask_id = HG_Register("ask", proc_ask, proc_bytes, ask_cb);
  look_up_ranks();
  serve_barrier();
  for (int p = 0; p < nproc; p++)
    lengths((me + p) % nproc);
  serve_barrier();
  many((me + 1) % nproc);
  serve_barrier();
  nothing_grows((me + 1) % nproc);
  serve_barrier();
  return end_shipping();
}
