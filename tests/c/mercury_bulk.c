/* Bulk data of 2013: handles over segments and as parameters, access without a copy, push and pull
 * across segment boundaries, a class of its own. mercury_na.c tests permissions, and the check rpc_bulk of
 * tests/ranks other ranges. */
// TEST: mercury networks
#include "mercury_check.h"

MERCURY_GEN_PROC(move_in_t, ((hg_bulk_t)(bulk)) ((uint64_t)(offset)) ((uint64_t)(size))
                              ((int32_t)(what)) ((int32_t)(seed)))
MERCURY_GEN_PROC(move_out_t, ((int32_t)(code)) ((uint64_t)(size)) ((uint64_t)(segments)))

#define LONG_TIME 600000

static hg_id_t move_id;

enum { PULL, PUSH, ACCESS, SEGMENTS = 4 };
static const size_t sizes[SEGMENTS] = { 1000, 1, 0, 700000 };
enum { TOTAL = 701001 };

/* Pulls a range of the caller's memory and checks it, or pushes a pattern into it, or accesses it
 * directly, which works only for a call to oneself. */
static hg_return_t move_cb(hg_handle_t handle)
{
  move_in_t in;
  move_out_t out = { 0, 0, 0 };
  hg_bulk_t local = HG_BULK_NULL;
  hg_bulk_request_t request;
  hg_status_t done = HG_FALSE;
  unsigned int count = 0;

  MUST(HG_Handler_get_input(handle, &in));
  unsigned char *bytes = check_calloc((long)in.size + 1), *want = check_calloc(TOTAL);
  size_t parts[2] = { in.size / 3, in.size - in.size / 3 }, got[4];
  void *at[4] = { bytes, bytes + parts[0] };
  out.size = HG_Bulk_handle_get_size(in.bulk);
  out.segments = HG_Bulk_handle_get_segment_count(in.bulk);
  check_fill(want, in.seed, TOTAL);
  if (in.what == ACCESS) {
    out.code = HG_Bulk_handle_access(in.bulk, in.offset, in.size, HG_BULK_READWRITE, 4, at, got, &count);
    out.segments = count;
    for (unsigned int i = 0; out.code == HG_SUCCESS && i < count; i++)
      memset(at[i], in.seed, got[i]);
  } else {
    MUST(HG_Bulk_handle_create(2, at, parts, HG_BULK_READWRITE, &local));
    if (in.what == PUSH)
      memcpy(bytes, want + in.offset, in.size);
    out.code = HG_Bulk_transfer(in.what == PUSH ? HG_BULK_PUSH : HG_BULK_PULL,
                                HG_Handler_get_addr(handle), in.bulk, in.offset, local, 0, in.size,
                                &request);
    if (out.code == HG_SUCCESS) {
      out.code = HG_Bulk_wait(request, LONG_TIME, &done);
      CHECK(done, "a transfer has not ended");
      if (out.code == HG_SUCCESS)
        CHECK_BYTES(bytes, want + in.offset, (long)in.size, "bytes from %d", (int)in.offset);
    }
  }
  MUST(HG_Bulk_handle_free(local));
  free(bytes);
  free(want);
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free_input(handle, &in)); /* frees the caller's handle here */
  return HG_Handler_free(handle);
}

static move_out_t move(int rank, hg_bulk_t bulk, size_t offset, size_t size, int what, int seed)
{
  move_in_t in = { bulk, offset, size, what, seed };
  move_out_t out = { -1, 0, 0 };
  hg_request_t request;
  MUST(HG_Forward(ranks[rank], move_id, &in, &out, &request));
  MUST(HG_Wait(request, LONG_TIME, HG_STATUS_IGNORE));
  MUST(HG_Request_free(request));
  return out;
}

static void bulk_data(int rank)
{
  static const size_t ends[] = { 0, 999, 1001, 50000, TOTAL };
  static unsigned char base[TOTAL + 5 * 64], want[TOTAL];
  unsigned char *memory[SEGMENTS];
  void *at[SEGMENTS];
  size_t got[SEGMENTS];
  unsigned int count = 99;
  hg_bulk_t bulk;

  for (int i = 0, room = 64; i < SEGMENTS; room += (int)sizes[i++] + 64)
    at[i] = memory[i] = base + room;
  MUST(HG_Bulk_handle_create(SEGMENTS, at, sizes, HG_BULK_READWRITE, &bulk));
  for (int i = 0; i < 4; i++) {
    const size_t size = ends[i + 1] - ends[i];
    memset(base, 0, sizeof base);
    move_out_t out = move(rank, bulk, ends[i], size, PUSH, me);
    CHECK(out.code == HG_SUCCESS && out.size == TOTAL && out.segments == SEGMENTS, "a push: %d",
          (int)out.code);
    memset(want, 0, TOTAL);
    for (size_t n = 0; n < size; n++)
      want[ends[i] + n] = check_byte(me, (long)(ends[i] + n));
    CHECK_BYTES(memory[0], want, 1000, "push from %d", (int)ends[i]);
    CHECK_EQ(memory[1][0], want[1000]);
    CHECK_BYTES(memory[3], want + 1001, 700000, "push from %d", (int)ends[i]);
    for (int s = 0; s < SEGMENTS; s++)
      CHECK(memory[s][-1] == 0 && memory[s][sizes[s]] == 0, "the gap at segment %d", s);
    CHECK_EQ(move(rank, bulk, ends[i], size, PULL, me).code, HG_SUCCESS);
  }
  CHECK_EQ(move(rank, bulk, 1, TOTAL, PULL, 0).code, HG_OVERFLOW);
  CHECK_EQ(move(rank, bulk, ~(size_t)0, 2, PUSH, 0).code, HG_OVERFLOW);
  const move_out_t out = move(rank, bulk, 999, 5, ACCESS, 42);
  if (rank == me)
    CHECK(out.code == HG_SUCCESS && out.segments == 3 && memory[0][999] == 42 && memory[3][2] == 42 &&
            memory[3][3] != 42, "access to the own memory: %d", (int)out.code);
  else
    CHECK_EQ(out.code, HG_ACCESS);

  /* Unwanted outputs are null, and the owner needs no flags. */
  MUST(HG_Bulk_handle_access(bulk, 500, 501, 0, SEGMENTS, at, got, &count));
  CHECK(count == 2 && at[0] == memory[0] + 500 && at[1] == memory[1] && got[0] == 500 && got[1] == 1,
        "access to %u segments", count);
  MUST(HG_Bulk_handle_access(bulk, 0, TOTAL, HG_BULK_READWRITE, 2, NULL, NULL, &count));
  CHECK_EQ(count, 2);
  at[0] = NULL;
  MUST(HG_Bulk_access(bulk, 500, 1, HG_BULK_READWRITE, 1, at, NULL, NULL));
  CHECK(at[0] == memory[0] + 500, "access without sizes");
  MUST_BE(HG_OVERFLOW, HG_Bulk_handle_access(bulk, 1, TOTAL, HG_BULK_READ_ONLY, 2, at, got, &count));
  MUST(HG_Bulk_handle_free(bulk));
  MUST(HG_Bulk_handle_free(HG_BULK_NULL));

  /* Memory of the library is zeroed, and a transfer to oneself is a copy. */
  const size_t size = 100;
  hg_bulk_t source, target;
  hg_bulk_request_t request;
  MUST(HG_Bulk_handle_create(1, NULL, (size_t[]){ size }, HG_BULK_WRITE_ONLY, &target));
  MUST(HG_Bulk_handle_create(1, (void *[]){ want }, &size, HG_BULK_READ_ONLY, &source));
  check_fill(want, 5, 100);
  MUST(HG_Bulk_transfer(HG_BULK_PULL, ranks[me], source, 10, target, 20, 50, &request));
  MUST(HG_Bulk_wait(request, LONG_TIME, HG_STATUS_IGNORE));
  MUST(HG_Bulk_handle_access(target, 0, size, HG_BULK_READWRITE, 1, at, NULL, NULL));
  const unsigned char *copy = at[0];
  CHECK_BYTES(copy + 20, want + 10, 50, "a copy");
  CHECK(copy[19] == 0 && copy[70] == 0, "more is copied");
  MUST(HG_Bulk_handle_free(source));
  MUST(HG_Bulk_handle_free(target));
}

/* The bulk layer on its own class, which HG_Init leaves alone. Only ranks have the same addresses in
 * both classes. */
static void own_class(void)
{
  na_class_t *other, *which = NULL;
  hg_bool_t flag = HG_FALSE;

  MUST(HG_Finalize());
  MUST_BE(HG_FAIL, HG_Bulk_finalize()); /* HG_Finalize ended it, since HG_Init had started it */
  other = NA_Initialize(check_network(), NA_TRUE);
  CHECK(other != NULL, "a second class: %s", portolan_last_error());
  MUST(HG_Bulk_init(other));
  MUST_BE(HG_BUSY, HG_Bulk_init(network));
  MUST(HG_Init(network));
  MUST(HG_Bulk_initialized(&flag, &which));
  CHECK(flag && which == other, "HG_Init has changed the bulk class");
  MERCURY_REGISTER("move", move_in_t, move_out_t, move_cb);
  MPI_Barrier(MPI_COMM_WORLD);
  bulk_data((me + 1) % nproc);
  serve_barrier();
  MUST(HG_Finalize());
  MUST(HG_Bulk_initialized(&flag, NULL));
  CHECK(flag, "HG_Finalize has ended what it had not begun");
  MUST_BE(NA_BUSY, NA_Finalize(other));
  MUST(HG_Bulk_finalize());
  MUST(NA_Finalize(other));
}

int main(int argc, char **argv)
{
  start_network("mercury_bulk", &argc, &argv);
  MUST(HG_Init(network));
  move_id = MERCURY_REGISTER("move", move_in_t, move_out_t, move_cb);
  look_up_ranks();
  serve_barrier();
  bulk_data((me + 1) % nproc);
  bulk_data(me);
  serve_barrier();
  if (check_over_mpi())
    own_class();
  else
    MUST(HG_Finalize());
  forget_ranks();
  MUST(NA_Finalize(network)); /* HG is already finalised */
  return check_end_mpi();
}
