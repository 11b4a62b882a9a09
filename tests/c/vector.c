/* Vectors of blocks: many sets, any order and alignment, several segments, both spellings of the
 * field names. */
// TEST: armci moving
// TEST: n=3 path=rma
#include "check.h"

enum { ROOM = 1 << 15, SETS = 6, BLOCKS = 64 };

static void **base, **second;
static unsigned char *local, *want;

typedef struct {
  armci_giov_t iov[SETS];
  void *near[SETS][BLOCKS], *far[SETS][BLOCKS];
  long near_at[SETS][BLOCKS], far_at[SETS][BLOCKS];
  int in_second[SETS];
} vector;

/* Draws SETS sets of blocks with gaps between them and in shuffled order. */
static void draw(vector *v)
{
  static const int lengths[SETS] = { 1, 8, 3, 24, 100, 7 };
  long near = 0, far[2] = { 0, 0 };
  for (int s = 0; s < SETS; s++) {
    const int blocks = 1 + check_random(BLOCKS);
    v->iov[s].bytes = lengths[s];
    v->iov[s].ptr_array_len = blocks;
    v->in_second[s] = s % 2;
    for (int b = 0; b < blocks; b++) {
      near += check_random(3) * 4 + check_random(2);
      far[s % 2] += check_random(3) * 5;
      v->near_at[s][b] = near;
      v->far_at[s][b] = far[s % 2];
      near += lengths[s];
      far[s % 2] += lengths[s];
    }
    for (int b = blocks - 1; b > 0; b--) {
      const int other = check_random(b + 1);
      const long at = v->far_at[s][b];
      v->far_at[s][b] = v->far_at[s][other];
      v->far_at[s][other] = at;
    }
  }
  CHECK(near < ROOM && far[0] < ROOM && far[1] < ROOM, "the vectors outgrow the segments");
}

/* Fills in the addresses for one target, for a put or a get. */
static void aim(vector *v, int proc, int putting)
{
  for (int s = 0; s < SETS; s++) {
    for (int b = 0; b < v->iov[s].ptr_array_len; b++) {
      v->near[s][b] = local + v->near_at[s][b];
      v->far[s][b] = check_at(v->in_second[s] ? second : base, proc, v->far_at[s][b]);
    }
    v->iov[s].src_ptr_array = putting ? v->near[s] : v->far[s];
    v->iov[s].dst_ptr_array = putting ? v->far[s] : v->near[s];
  }
}

static int run(vector *v, int putting, int proc, int how)
{
  armci_hdl_t handle;
  if (how == 0)
    return putting ? ARMCI_PutV(v->iov, SETS, proc) : ARMCI_GetV(v->iov, SETS, proc);
  ARMCI_INIT_HANDLE(&handle);
  if (putting)
    CHECK_OK(ARMCI_NbPutV(v->iov, SETS, proc, how == 1 ? &handle : NULL));
  else
    CHECK_OK(ARMCI_NbGetV(v->iov, SETS, proc, how == 1 ? &handle : NULL));
  return how == 1 ? ARMCI_Wait(&handle) : ARMCI_WaitProc(proc);
}

static void random_vectors(void)
{
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  vector *v = check_calloc(sizeof *v);
  unsigned char *model = check_calloc(ROOM);

  for (int round = 0; round < 9; round++) {
    draw(v);
    for (int half = 0; half < 2; half++)
      check_fill(half ? second[me] : base[me], 10 + half, ROOM);
    check_fill(local, 30 + me, ROOM);
    ARMCI_Barrier();
    aim(v, right, 1);
    CHECK_OK(run(v, 1, right, round % 3));
    ARMCI_Barrier();

    check_fill(model, 30 + left, ROOM);
    for (int half = 0; half < 2; half++) {
      check_fill(want, 10 + half, ROOM);
      for (int s = half; s < SETS; s += 2)
        for (int b = 0; b < v->iov[s].ptr_array_len; b++)
          memcpy(want + v->far_at[s][b], model + v->near_at[s][b], (size_t)v->iov[s].bytes);
      CHECK_BYTES(half ? second[me] : base[me], want, ROOM, "PutV round %d, segment %d", round,
                  half);
    }
    ARMCI_Barrier();

    /* back again: the same blocks, everything else untouched */
    memset(local, 0x11, ROOM);
    memset(want, 0x11, ROOM);
    check_fill(model, 30 + me, ROOM);
    for (int s = 0; s < SETS; s++)
      for (int b = 0; b < v->iov[s].ptr_array_len; b++)
        memcpy(want + v->near_at[s][b], model + v->near_at[s][b], (size_t)v->iov[s].bytes);
    aim(v, right, 0);
    CHECK_OK(run(v, 0, right, round % 3));
    CHECK_BYTES(local, want, ROOM, "GetV round %d", round);
    ARMCI_Barrier();
  }
  free(model);
  free(v);
}

/* A thousand small blocks, adjacent on one side and in reverse order on the other. */
static void many_blocks(void)
{
  enum { MANY = 1000 };
  void **src = check_calloc(MANY * (long)sizeof(void *)), **dst = check_calloc(MANY * (long)sizeof(void *));
  const int target = nproc - 1 - me;
  armci_giov_t iov;

  check_fill(local, 70 + me, 8 * MANY);
  for (int i = 0; i < MANY; i++) {
    src[i] = local + 8 * i;
    dst[i] = check_at(base, target, 8 * (MANY - 1 - i));
  }
  iov.src_ptr_ar = src;
  iov.dst_ptr_ar = dst;
  iov.bytes = 8;
  iov.ptr_ar_len = MANY;
  ARMCI_Barrier();
  CHECK_OK(ARMCI_PutV(&iov, 1, target));
  ARMCI_Barrier();
  check_fill(want, 70 + target, 8 * MANY);
  for (int i = 0; i < MANY; i++)
    CHECK_BYTES(check_at(base, me, 8 * (MANY - 1 - i)), want + 8 * i, 8, "block %d", i);
  ARMCI_Barrier();
  free(src);
  free(dst);
}

/* More blocks than a datatype of MPI describes, put, got back and added, and an address that occurs
 * twice in an accumulate, which adds twice. */
static void thousands(void)
{
  enum { MANY = 20000 };
  void **src = check_calloc(MANY * (long)sizeof(void *)), **dst = check_calloc(MANY * (long)sizeof(void *));
  int *here = check_calloc(MANY * (long)sizeof(int)), *back = check_calloc(MANY * (long)sizeof(int));
  void **all = check_segment(MANY * (long)sizeof(int));
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc, *own = all[me];
  int two = 2;
  armci_giov_t iov = { .src_ptr_array = src, .dst_ptr_array = dst, .bytes = 4, .ptr_array_len = MANY };

  for (int i = 0; i < MANY; i++) {
    here[i] = 3 * i + me;
    src[i] = &here[i];
    dst[i] = check_at(all, right, 4L * ((i * 7919L) % MANY));
  }
  CHECK_OK(ARMCI_PutV(&iov, 1, right));
  ARMCI_Barrier();
  for (int i = 0; i < MANY; i++)
    CHECK(own[(i * 7919L) % MANY] == 3 * i + left, "block %d is %d after PutV", i, own[(i * 7919L) % MANY]);
  for (int i = 0; i < MANY; i++)
    src[i] = &back[i];
  iov.src_ptr_array = dst;
  iov.dst_ptr_array = src;
  CHECK_OK(ARMCI_GetV(&iov, 1, right));
  for (int i = 0; i < MANY; i++)
    CHECK(back[i] == here[i], "block %d is %d after GetV", i, back[i]);
  ARMCI_Barrier();
  for (int twice = 0; twice < 2; twice++) {
    iov.src_ptr_array = src;
    iov.dst_ptr_array = dst;
    if (twice)
      dst[1] = dst[0];
    CHECK_OK(ARMCI_AccV(ARMCI_ACC_INT, &two, &iov, 1, right));
    ARMCI_Barrier();
  }
  for (int i = 0; i < MANY; i++) {
    const int was = 3 * i + left, found = own[(i * 7919L) % MANY];
    const int want_sum = i == 0 ? was + 4 * was + 2 * (3 + left) : i == 1 ? was + 2 * was : was + 4 * was;
    CHECK(found == want_sum, "block %d is %d after two AccV, not %d", i, found, want_sum);
  }
  ARMCI_Barrier();
  check_free_segment(all);
  free(src);
  free(dst);
  free(here);
  free(back);
}

/* Nothing to move: no sets, no blocks, no bytes. */
static void nothing(void)
{
  void *here[1] = { local }, *there[1];
  armci_giov_t iov;

  check_fill(base[me], 5, ROOM);
  check_fill(want, 5, ROOM);
  ARMCI_Barrier();
  for (int p = 0; p < nproc; p++) {
    there[0] = base[p];
    iov.src_ptr_array = here;
    iov.dst_ptr_array = there;
    iov.bytes = 8;
    iov.ptr_array_len = 0;
    CHECK_OK(ARMCI_PutV(&iov, 1, p));
    CHECK_OK(ARMCI_PutV(&iov, 0, p));
    CHECK_OK(ARMCI_PutV(NULL, 0, p));
    CHECK_OK(ARMCI_GetV(NULL, 0, p));
    iov.bytes = 0;
    iov.ptr_array_len = 1;
    CHECK_OK(ARMCI_PutV(&iov, 1, p));
    iov.src_ptr_array = iov.dst_ptr_array = NULL;
    iov.bytes = 8;
    iov.ptr_array_len = 0;
    CHECK_OK(ARMCI_PutV(&iov, 1, p));
    CHECK_OK(ARMCI_GetV(&iov, 1, p));
    CHECK_OK(ARMCI_NbPutV(&iov, 1, p, NULL));
  }
  CHECK_OK(ARMCI_WaitAll());
  ARMCI_Barrier();
  CHECK_BYTES(base[me], want, ROOM, "after vectors of nothing");
  ARMCI_Barrier();
}

int main(int argc, char **argv)
{
  check_start("vector", &argc, &argv);
  base = check_segment(ROOM);
  second = check_segment(ROOM);
  local = check_calloc(ROOM);
  want = check_calloc(ROOM);
  random_vectors();
  many_blocks();
  thousands();
  nothing();
  free(local);
  free(want);
  check_free_segment(second);
  check_free_segment(base);
  return check_end();
}
