/* Bulk data: handles over segments, access without a copy, serialised handles as parameters, push
 * and pull across segment boundaries. mercury_mem.c tests permissions, and
 * mercury_invalid.c the arguments that a call rejects. */
// TEST: mercury networks
#include "mercury_check.h"

MERCURY_GEN_PROC(move_in_t, ((hg_bulk_t)(bulk)) ((uint64_t)(offset)) ((uint64_t)(size))
                              ((int32_t)(push)) ((int32_t)(seed)))
MERCURY_GEN_PROC(move_out_t, ((int32_t)(code)) ((uint64_t)(size)) ((uint64_t)(segments)))

#define LONG_TIME 600000

static hg_id_t move_id, own_id;

static unsigned char pattern(int seed, size_t i)
{
  return check_byte(seed, (long)i);
}

/* ------------------------------------------------------------------------- handlers */

/* Pulls a range of the caller's memory and checks it, or pushes a pattern into it. The local handle
 * has its own segment boundaries. */
static hg_return_t move_cb(hg_handle_t handle)
{
  move_in_t in;
  move_out_t out = { 0, 0, 0 };
  hg_bulk_t local;
  hg_bulk_request_t request;
  hg_status_t done = HG_FALSE;
  void *at[64];
  size_t sizes[64], parts[3];
  unsigned int count = 0;

  MUST(HG_Handler_get_input(handle, &in));
  out.size = HG_Bulk_handle_get_size(in.bulk);
  out.segments = HG_Bulk_handle_get_segment_count(in.bulk);
  parts[0] = in.size / 3;
  parts[1] = 1;
  parts[2] = in.size - parts[0];
  MUST(HG_Bulk_handle_create(3, NULL, parts, HG_BULK_READWRITE, &local));
  CHECK_EQ(HG_Bulk_handle_get_size(local), in.size + 1);
  MUST(HG_Bulk_handle_access(local, 0, in.size + 1, HG_BULK_READWRITE, 64, at, sizes, &count));
  if (in.push) {
    size_t i = 0;
    for (unsigned int s = 0; s < count; s++)
      for (size_t j = 0; j < sizes[s] && i < in.size; j++, i++)
        ((unsigned char *)at[s])[j] = pattern(in.seed, in.offset + i);
  }
  out.code = HG_Bulk_transfer(in.push ? HG_BULK_PUSH : HG_BULK_PULL, HG_Handler_get_addr(handle),
                              in.bulk, in.offset, local, 0, in.size, &request);
  if (out.code == HG_SUCCESS) {
    out.code = HG_Bulk_wait(request, LONG_TIME, &done);
    CHECK(done, "a transfer has not ended");
  }
  if (out.code == HG_SUCCESS && !in.push) {
    size_t i = 0;
    for (unsigned int s = 0; s < count; s++)
      for (size_t j = 0; j < sizes[s] && i < in.size; j++, i++)
        CHECK_EQ(((unsigned char *)at[s])[j], pattern(in.seed, in.offset + i));
  }
  MUST(HG_Bulk_handle_free(local));
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free_input(handle, &in)); /* frees the caller's handle here */
  return HG_Handler_free(handle);
}

/* Accesses the caller's memory directly, which works only for a call to oneself; access to another
 * process's memory is refused. */
static hg_return_t own_cb(hg_handle_t handle)
{
  move_in_t in;
  move_out_t out = { 0, 0, 0 };
  void *at[4];
  size_t sizes[4];
  unsigned int count = 0;

  MUST(HG_Handler_get_input(handle, &in));
  out.code = HG_Bulk_handle_access(in.bulk, in.offset, in.size, HG_BULK_READWRITE, 4, at, sizes, &count);
  out.segments = count;
  for (unsigned int i = 0; out.code == HG_SUCCESS && i < count; i++)
    memset(at[i], in.seed, sizes[i]);
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

/* -------------------------------------------------------------------------- clients */

static move_out_t call(hg_id_t id, int rank, hg_bulk_t bulk, size_t offset, size_t size, int push,
                       int seed)
{
  move_in_t in = { bulk, offset, size, push, seed };
  move_out_t out = { -1, 0, 0 };
  hg_request_t request;
  hg_status_t done = HG_FALSE;

  MUST(HG_Forward(ranks[rank], id, &in, &out, &request));
  MUST(HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "the call has not ended");
  MUST(HG_Request_free(request));
  return out;
}

enum { SEGMENTS = 7 };
static const size_t lengths[SEGMENTS] = { 1000, 1, 0, 123457, 64, 4096, 700000 };

struct scattered {
  unsigned char *base;
  void *at[SEGMENTS];
  size_t total;
  hg_bulk_t bulk;
};

static void scatter(struct scattered *s, unsigned long flags)
{
  size_t room = 64;
  for (int i = 0; i < SEGMENTS; i++)
    room += lengths[i] + 64;
  s->base = check_calloc((long)room);
  s->total = 0;
  room = 64;
  for (int i = 0; i < SEGMENTS; i++) {
    s->at[i] = s->base + room;
    room += lengths[i] + 64;
    s->total += lengths[i];
  }
  MUST(HG_Bulk_handle_create(SEGMENTS, s->at, lengths, flags, &s->bulk));
  CHECK_EQ(HG_Bulk_handle_get_size(s->bulk), s->total);
  CHECK_EQ(HG_Bulk_handle_get_segment_count(s->bulk), SEGMENTS);
}

static void fill(struct scattered *s, int seed)
{
  size_t i = 0;
  for (int p = 0; p < SEGMENTS; p++)
    for (size_t j = 0; j < lengths[p]; j++, i++)
      ((unsigned char *)s->at[p])[j] = pattern(seed, i);
}

static void look(struct scattered *s, int seed, size_t from, size_t to)
{
  size_t i = 0;
  for (int p = 0; p < SEGMENTS; p++) {
    for (size_t j = 0; j < lengths[p]; j++, i++)
      CHECK_EQ(((unsigned char *)s->at[p])[j], i >= from && i < to ? pattern(seed, i) : 0);
    for (int j = 1; j <= 64; j++)
      CHECK_EQ(((unsigned char *)s->at[p])[-j], 0);
  }
}

/* Push and pull of ranges with arbitrary bounds. */
static void ranges(int rank)
{
  struct scattered s;
  scatter(&s, HG_BULK_READWRITE);
  const size_t ends[] = { 0, 1, 999, 1000, 1001, 1002, 50000, 124458, 124522, s.total - 1, s.total };
  const int count = sizeof ends / sizeof *ends;
  for (int i = 0; i < count; i++)
    for (int j = i; j < count; j += 2) {
      move_out_t out;
      fill(&s, me + 3);
      out = call(move_id, rank, s.bulk, ends[i], ends[j] - ends[i], 0, me + 3);
      CHECK_EQ(out.code, HG_SUCCESS);
      CHECK_EQ(out.size, s.total);
      CHECK_EQ(out.segments, SEGMENTS);
      for (int p = 0; p < SEGMENTS; p++)
        memset(s.at[p], 0, lengths[p]);
      out = call(move_id, rank, s.bulk, ends[i], ends[j] - ends[i], 1, me + 50);
      CHECK_EQ(out.code, HG_SUCCESS);
      look(&s, me + 50, ends[i], ends[j]);
    }
  CHECK_EQ(call(move_id, rank, s.bulk, 1, s.total, 0, 0).code, HG_OVERFLOW);
  CHECK_EQ(call(move_id, rank, s.bulk, ~(size_t)0, 2, 1, 0).code, HG_OVERFLOW);
  MUST(HG_Bulk_handle_free(s.bulk));
  free(s.base);
}

static void access_rules(int rank)
{
  struct scattered s;
  void *at[SEGMENTS];
  size_t sizes[SEGMENTS];
  unsigned int count = 99;
  move_out_t out;

  scatter(&s, HG_BULK_READWRITE);
  MUST(HG_Bulk_handle_access(s.bulk, 500, 501, HG_BULK_READ_ONLY, SEGMENTS, at, sizes, &count));
  CHECK_EQ(count, 2);
  CHECK(at[0] == (unsigned char *)s.at[0] + 500 && at[1] == s.at[1], "access gives other addresses");
  CHECK(sizes[0] == 500 && sizes[1] == 1, "access gives other sizes");
  MUST(HG_Bulk_handle_access(s.bulk, 0, s.total, HG_BULK_READWRITE, 2, at, sizes, &count));
  CHECK_EQ(count, 2);
  MUST_BE(HG_OVERFLOW,
          HG_Bulk_handle_access(s.bulk, 1, s.total, HG_BULK_READ_ONLY, 2, at, sizes, &count));
  MUST(HG_Bulk_handle_access(s.bulk, 0, 1, 0, 2, at, sizes, &count)); /* the owner needs no flags */
  CHECK_EQ(count, 1);
  /* Unwanted outputs are null. */
  at[0] = at[1] = NULL;
  MUST(HG_Bulk_handle_access(s.bulk, 500, 501, HG_BULK_READWRITE, SEGMENTS, at, NULL, NULL));
  CHECK(at[0] == (unsigned char *)s.at[0] + 500 && at[1] == s.at[1], "access without sizes");
  sizes[0] = sizes[1] = 0;
  MUST(HG_Bulk_handle_access(s.bulk, 500, 501, HG_BULK_READWRITE, SEGMENTS, NULL, sizes, NULL));
  CHECK(sizes[0] == 500 && sizes[1] == 1, "access without addresses");
  MUST(HG_Bulk_handle_access(s.bulk, 500, 501, HG_BULK_READWRITE, SEGMENTS, NULL, NULL, &count));
  CHECK_EQ(count, 2);
  MUST(HG_Bulk_handle_access(s.bulk, 500, 501, HG_BULK_READWRITE, SEGMENTS, NULL, NULL, NULL));
  at[0] = NULL;
  MUST(HG_Bulk_access(s.bulk, 500, 1, HG_BULK_READWRITE, 1, at, NULL, NULL));
  CHECK(at[0] == (unsigned char *)s.at[0] + 500, "access without sizes");

  out = call(own_id, rank, s.bulk, 999, 5, 0, 42);
  if (rank == me) {
    CHECK_EQ(out.code, HG_SUCCESS);
    CHECK_EQ(out.segments, 3);
    CHECK_EQ(((unsigned char *)s.at[0])[999], 42);
    CHECK_EQ(((unsigned char *)s.at[3])[2], 42);
    CHECK_EQ(((unsigned char *)s.at[3])[3], 0);
  } else {
    CHECK_EQ(out.code, HG_ACCESS);
  }
  MUST(HG_Bulk_handle_free(s.bulk));
  free(s.base);
  scatter(&s, HG_BULK_READ_ONLY);
  MUST(HG_Bulk_handle_access(s.bulk, 0, 1, HG_BULK_READWRITE, 2, at, sizes, &count));
  CHECK(count == 1 && at[0] == s.at[0], "the owner may do with its memory what it likes");
  MUST(HG_Bulk_handle_free(s.bulk));
  MUST(HG_Bulk_handle_free(HG_BULK_NULL));
  free(s.base);
}

/* A transfer between two handles of one process is a copy. */
static void own_transfer(void)
{
  unsigned char a[100], b[100];
  void *from = a, *to = b;
  size_t size = 100;
  hg_bulk_t source, target;
  hg_bulk_request_t request;
  hg_status_t done = HG_FALSE;
  na_addr_t self;

  MUST(NA_Addr_self(network, &self));
  check_fill(a, 5, 100);
  memset(b, 0, 100);
  MUST(HG_Bulk_handle_create(1, &from, &size, HG_BULK_READ_ONLY, &source));
  MUST(HG_Bulk_handle_create(1, &to, &size, HG_BULK_WRITE_ONLY, &target));
  MUST(HG_Bulk_transfer(HG_BULK_PULL, self, source, 10, target, 20, 50, &request));
  MUST(HG_Bulk_wait(request, LONG_TIME, &done));
  CHECK(done, "the copy has not ended");
  CHECK_BYTES(b + 20, a + 10, 50, "pull");
  CHECK_EQ(b[19], 0);
  CHECK_EQ(b[70], 0);
  MUST(HG_Bulk_transfer(HG_BULK_PUSH, self, target, 0, source, 0, 100, &request));
  MUST(HG_Bulk_wait(request, LONG_TIME, HG_STATUS_IGNORE));
  CHECK_BYTES(b, a, 100, "push");
  MUST(HG_Bulk_handle_free(source));
  MUST(HG_Bulk_handle_free(target));
  MUST(NA_Addr_free(network, self));
}

/* Memory that the library allocates is zeroed and freed with its handle. */
static void allocated(void)
{
  size_t sizes[3] = { 10, 0, 1 << 20 };
  void *at[3];
  size_t got[3];
  unsigned int count;
  hg_bulk_t bulk;

  MUST(HG_Bulk_handle_create(3, NULL, sizes, HG_BULK_READWRITE, &bulk));
  MUST(HG_Bulk_handle_access(bulk, 0, 10 + (1 << 20), HG_BULK_READWRITE, 3, at, got, &count));
  CHECK_EQ(count, 2);
  for (size_t i = 0; i < got[1]; i++)
    CHECK_EQ(((unsigned char *)at[1])[i], 0);
  memset(at[1], 1, got[1]);
  MUST(HG_Bulk_handle_free(bulk));
}

/* The bulk layer on its own class, which HG_Init leaves alone. Only ranks have the same addresses in
 * both classes. */
static void own_class(void)
{
  na_class_t *other, *which = NULL;
  hg_bool_t flag = HG_FALSE;
  move_out_t out;
  struct scattered s;

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
  scatter(&s, HG_BULK_READWRITE);
  fill(&s, 1);
  out = call(move_id, (me + 1) % nproc, s.bulk, 7, 100000, 0, 1);
  CHECK_EQ(out.code, HG_SUCCESS);
  serve_barrier();
  MUST(HG_Bulk_handle_free(s.bulk));
  free(s.base);
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
  own_id = MERCURY_REGISTER("own", move_in_t, move_out_t, own_cb);
  look_up_ranks();
  serve_barrier();
  for (int p = 0; p < nproc; p++) {
    const int rank = (me + p) % nproc;
    if (p < 2)
      ranges(rank);
    access_rules(rank);
  }
  own_transfer();
  allocated();
  serve_barrier();
  if (check_over_mpi()) {
    own_class();
  } else {
    MUST(HG_Finalize());
  }
  forget_ranks();
  MUST(NA_Finalize(network)); /* HG is already finalised */
  return check_end_mpi();
}
