/* Strided transfers of 0 to 7 levels against a plain loop, byte for byte, with strides that need
 * not be multiples of one another. */
// TEST: armci moving
#include "check.h"

enum { LEVELS = 7, ROOM = 1 << 16 };

typedef struct {
  int levels;
  int count[LEVELS + 1];
  int near[LEVELS];                 /* local strides */
  int far[LEVELS];                  /* remote strides */
} shape;

/* Copies by the definition, with one index per level. */
static void reference(const unsigned char *src, const int *src_stride, unsigned char *dst,
                      const int *dst_stride, const int *count, int level)
{
  if (level == 0) {
    memcpy(dst, src, (size_t)count[0]);
    return;
  }
  for (int i = 0; i < count[level]; i++)
    reference(src + (long)i * src_stride[level - 1], src_stride,
              dst + (long)i * dst_stride[level - 1], dst_stride, count, level - 1);
}

/* Draws strides that keep blocks apart, with gaps of any width; returns the extent. */
static long spread(const shape *s, int *stride)
{
  long extent = s->count[0];
  for (int i = 1; i <= s->levels; i++) {
    stride[i - 1] = (int)extent + check_random(14);
    extent += (long)stride[i - 1] * (s->count[i] - 1);
  }
  return extent;
}

static shape random_shape(int levels)
{
  static const int first[] = { 1, 2, 3, 4, 7, 8, 12, 16, 24, 33, 64 };
  shape s;
  for (;;) {
    s.levels = levels;
    s.count[0] = first[check_random(11)];
    for (int i = 1; i <= levels; i++)
      s.count[i] = 1 + check_random(levels > 4 ? 3 : 6);
    const long near = spread(&s, s.near), far = spread(&s, s.far);
    if (near < ROOM - 16 && far < ROOM - 16)
      return s;
  }
}

static int put(shape *s, void *src, void *dst, int proc, int how)
{
  armci_hdl_t handle;
  if (how == 0)
    return ARMCI_PutS(src, s->near, dst, s->far, s->count, s->levels, proc);
  ARMCI_INIT_HANDLE(&handle);
  CHECK_OK(ARMCI_NbPutS(src, s->near, dst, s->far, s->count, s->levels, proc,
                        how == 1 ? &handle : NULL));
  return how == 1 ? ARMCI_Wait(&handle) : ARMCI_WaitProc(proc);
}

static int get(shape *s, void *src, void *dst, int proc, int how)
{
  armci_hdl_t handle;
  if (how == 0)
    return ARMCI_GetS(src, s->far, dst, s->near, s->count, s->levels, proc);
  ARMCI_INIT_HANDLE(&handle);
  CHECK_OK(ARMCI_NbGetS(src, s->far, dst, s->near, s->count, s->levels, proc,
                        how == 1 ? &handle : NULL));
  return how == 1 ? ARMCI_Wait(&handle) : ARMCI_WaitAll();
}

static void **base;
static unsigned char *local, *want;

/* Transfers one shape to the right neighbour and back. All ranks draw the same shapes. */
static void one(shape *s, int how)
{
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  const int shift = check_random(9);

  check_fill(local, 20 + left, ROOM);
  check_fill(base[me], 40 + me, ROOM);
  memcpy(want, base[me], ROOM);
  reference(local + shift, s->near, want + 5, s->far, s->count, s->levels);

  check_fill(local, 20 + me, ROOM);
  ARMCI_Barrier();
  CHECK_OK(put(s, local + shift, check_at(base, right, 5), right, how));
  ARMCI_Barrier();
  CHECK_BYTES(base[me], want, ROOM, "put, %d levels, count %d, how %d", s->levels, s->count[0],
              how);

  check_fill(base[me], 60 + me, ROOM);
  memset(local, 0x77, ROOM);
  memset(want, 0x77, ROOM);
  unsigned char *theirs = check_calloc(ROOM);
  check_fill(theirs, 60 + right, ROOM);
  reference(theirs + 5, s->far, want + shift, s->near, s->count, s->levels);
  free(theirs);
  ARMCI_Barrier();
  CHECK_OK(get(s, check_at(base, right, 5), local + shift, right, how));
  CHECK_BYTES(local, want, ROOM, "get, %d levels, count %d, how %d", s->levels, s->count[0], how);
  ARMCI_Barrier();
}

static void random_shapes(void)
{
  for (int levels = 0; levels <= LEVELS; levels++)
    for (int i = 0; i < 6; i++) {
      shape s = random_shape(levels);
      one(&s, i % 3);
    }
}

/* Shapes that an optimised implementation could get wrong. */
static void odd_shapes(void)
{
  static const shape table[] = {
    /* contiguous at every level: in fact one block */
    { 3, { 8, 4, 5, 6 }, { 8, 32, 160 }, { 8, 32, 160 } },
    /* contiguous on one side only */
    { 2, { 16, 7, 3 }, { 16, 112 }, { 20, 201 } },
    /* the outer stride is smaller than the inner: interleaved blocks */
    { 2, { 8, 16, 6 }, { 64, 8 }, { 48, 8 } },
    { 2, { 8, 16, 6 }, { 8, 128 }, { 48, 8 } },
    /* counts of one, where strides have no meaning */
    { 4, { 24, 1, 3, 1, 1 }, { 1, 32, 0, 7 }, { 0, 100, 3, 1 } },
    { 7, { 40, 1, 1, 1, 1, 1, 1, 1 }, { 0, 0, 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1, 1 } },
    /* the outer stride is not a multiple of the inner one */
    { 2, { 8, 4, 5 }, { 24, 100 }, { 40, 171 } },
    { 3, { 1, 9, 3, 2 }, { 3, 31, 101 }, { 2, 19, 77 } },
    /* single bytes */
    { 1, { 1, 500 }, { 2 }, { 3 } },
  };
  for (int i = 0; i < (int)(sizeof table / sizeof table[0]); i++)
    for (int how = 0; how < 3; how++) {
      shape s = table[i];
      one(&s, how);
    }
}

/* A count of zero at any level moves nothing. */
static void zero_counts(void)
{
  check_fill(base[me], 1, ROOM);
  check_fill(want, 1, ROOM);
  check_fill(local, 2, ROOM);
  ARMCI_Barrier();
  for (int levels = 0; levels <= 3; levels++)
    for (int zero = 0; zero <= levels; zero++) {
      shape s = { 0, { 8, 2, 2, 2 }, { 16, 32, 64 }, { 16, 32, 64 } };
      s.levels = levels;
      s.count[zero] = 0;
      for (int p = 0; p < nproc; p++) {
        CHECK_OK(ARMCI_PutS(local, s.near, base[p], s.far, s.count, levels, p));
        CHECK_OK(ARMCI_GetS(base[p], s.far, local, s.near, s.count, levels, p));
        CHECK_OK(ARMCI_NbPutS(local, s.near, base[p], s.far, s.count, levels, p, NULL));
      }
      CHECK_OK(ARMCI_WaitAll());
    }
  ARMCI_Barrier();
  CHECK_BYTES(base[me], want, ROOM, "after transfers of nothing");
  check_fill(want, 2, ROOM);
  CHECK_BYTES(local, want, ROOM, "local side after transfers of nothing");

  int count = 12;                   /* no levels, so the stride arrays may be null */
  ARMCI_Barrier();
  CHECK_OK(ARMCI_PutS(local, NULL, base[me], NULL, &count, 0, me));
  CHECK_BYTES(base[me], local, 12, "no levels, no stride arrays");
  ARMCI_Barrier();
}

/* Local packing, as used by Global Arrays. */
static void packing(void)
{
  for (int levels = 0; levels <= LEVELS; levels++) {
    shape s = random_shape(levels);
    int packed[LEVELS], size = s.count[0];
    for (int i = 1; i <= levels; i++) {
      packed[i - 1] = size;
      size *= s.count[i];
    }
    check_fill(local, levels, ROOM);
    unsigned char *buffer = check_calloc(size + 1), *model = check_calloc(size + 1);
    reference(local, s.near, model, packed, s.count, levels);
    armci_write_strided(local, levels, s.near, s.count, (char *)buffer);
    CHECK_BYTES(buffer, model, size + 1, "write_strided, %d levels", levels);

    check_fill(want, levels + 1, ROOM);
    check_fill(local, levels + 1, ROOM);
    reference(model, packed, want, s.far, s.count, levels);
    armci_read_strided(local, levels, s.far, s.count, (char *)buffer);
    CHECK_BYTES(local, want, ROOM, "read_strided, %d levels", levels);
    free(buffer);
    free(model);
  }
}

int main(int argc, char **argv)
{
  check_start("strided", &argc, &argv);
  base = check_segment(ROOM);
  local = check_calloc(ROOM);
  want = check_calloc(ROOM);
  random_shapes();
  odd_shapes();
  zero_counts();
  packing();
  free(local);
  free(want);
  check_free_segment(base);
  return check_end();
}
