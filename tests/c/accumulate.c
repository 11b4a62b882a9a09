/* Accumulate: six types, scales, three shapes, unaligned items, and exact sums when all ranks
 * add to the same items at once. */
// TEST: armci moving
#include "check.h"

enum { ITEMS = 60, SHAPES = 6 };

typedef struct {
  int datatype, size, parts;        /* parts: 2 for the complex types */
  const char *name;
} kind;

static const kind kinds[] = {
  { ARMCI_ACC_INT, sizeof(int), 1, "int" },
  { ARMCI_ACC_LNG, sizeof(long), 1, "long" },
  { ARMCI_ACC_FLT, sizeof(float), 1, "float" },
  { ARMCI_ACC_DBL, sizeof(double), 1, "double" },
  { ARMCI_ACC_CPL, 2 * sizeof(float), 2, "complex" },
  { ARMCI_ACC_DCP, 2 * sizeof(double), 2, "double complex" },
};

/* Items are read and written as whole numbers, so that results are exact. */
static long item(const kind *k, const void *buffer, int i)
{
  switch (k->datatype) {
  case ARMCI_ACC_INT: return ((const int *)buffer)[i];
  case ARMCI_ACC_LNG: return ((const long *)buffer)[i];
  case ARMCI_ACC_FLT:
  case ARMCI_ACC_CPL: return (long)((const float *)buffer)[i];
  default:            return (long)((const double *)buffer)[i];
  }
}

static void set(const kind *k, void *buffer, int i, long value)
{
  switch (k->datatype) {
  case ARMCI_ACC_INT: ((int *)buffer)[i] = (int)value; break;
  case ARMCI_ACC_LNG: ((long *)buffer)[i] = value; break;
  case ARMCI_ACC_FLT:
  case ARMCI_ACC_CPL: ((float *)buffer)[i] = (float)value; break;
  default:            ((double *)buffer)[i] = (double)value; break;
  }
}

/* Returns the contribution of part i of a source of whole numbers. */
static long scaled(const kind *k, const void *scale, const void *src, int i)
{
  if (k->parts == 1)
    return item(k, scale, 0) * item(k, src, i);
  const long sr = item(k, scale, 0), si = item(k, scale, 1);
  const long re = item(k, src, i & ~1), im = item(k, src, i | 1);
  return (i & 1) ? sr * im + si * re : sr * re - si * im;
}

/* Adds ITEMS items as one block, as 5 rows or as a vector, blocking or non-blocking. */
static void add(const kind *k, int shape, void *scale, char *src, char *dst, int proc)
{
  const int bytes = ITEMS * k->size, row = bytes / 5;
  int stride[1] = { row }, count[2] = { row, 5 };
  void *from[ITEMS], *to[ITEMS];
  armci_giov_t iov[2];
  armci_hdl_t handle;

  for (int i = 0; i < ITEMS; i++) {
    from[i] = src + i * k->size;
    to[i] = dst + i * k->size;
  }
  for (int half = 0; half < 2; half++) {
    iov[half].src_ptr_array = from + half * ITEMS / 2;
    iov[half].dst_ptr_array = to + half * ITEMS / 2;
    iov[half].bytes = k->size;
    iov[half].ptr_array_len = ITEMS / 2;
  }
  ARMCI_INIT_HANDLE(&handle);
  switch (shape) {
  case 0: CHECK_OK(ARMCI_Acc(k->datatype, scale, src, dst, bytes, proc)); break;
  case 1: CHECK_OK(ARMCI_AccS(k->datatype, scale, src, stride, dst, stride, count, 1, proc)); break;
  case 2: CHECK_OK(ARMCI_AccV(k->datatype, scale, iov, 2, proc)); break;
  case 3: CHECK_OK(ARMCI_NbAcc(k->datatype, scale, src, dst, bytes, proc, &handle)); break;
  case 4:
    CHECK_OK(ARMCI_NbAccS(k->datatype, scale, src, stride, dst, stride, count, 1, proc, &handle));
    break;
  default: CHECK_OK(ARMCI_NbAccV(k->datatype, scale, iov, 2, proc, &handle)); break;
  }
  if (shape >= 3)
    CHECK_OK(ARMCI_Wait(&handle));
}

static const long scales[][2] = { { 1, 0 }, { 0, 0 }, { 3, 0 }, { -2, 0 }, { 2, -1 }, { 0, 1 } };
enum { SCALES = sizeof scales / sizeof scales[0], GUARD = 64 };

static void set_scale(const kind *k, double *scale, int s)
{
  set(k, scale, 0, scales[s][0]);
  if (k->parts == 2)
    set(k, scale, 1, scales[s][1]);
}

/* Each shape and scale from the left neighbour to the right, each to its own guarded area. */
static void values(const kind *k)
{
  const int right = (me + 1) % nproc, parts = ITEMS * k->parts;
  const long area = (long)ITEMS * k->size + GUARD;
  void **base = check_segment(area * SCALES * SHAPES);
  char *src = check_calloc(area);
  double scale[2];

  memset(base[me], 0x3c, (size_t)(area * SCALES * SHAPES));
  for (int i = 0; i < parts; i++)
    set(k, src, i, i - 17);         /* the same on every rank */
  for (int a = 0; a < SCALES * SHAPES; a++)
    for (int i = 0; i < parts; i++)
      set(k, check_at(base, me, a * area), i, 1000 * me + i);
  ARMCI_Barrier();
  for (int s = 0; s < SCALES; s++)
    for (int shape = 0; shape < SHAPES; shape++) {
      set_scale(k, scale, s);
      add(k, shape, scale, src, check_at(base, right, (s * SHAPES + shape) * area), right);
    }
  ARMCI_Barrier();
  for (int s = 0; s < SCALES; s++)
    for (int shape = 0; shape < SHAPES; shape++) {
      const char *mine = check_at(base, me, (s * SHAPES + shape) * area);
      set_scale(k, scale, s);
      for (int i = 0; i < parts; i++) {
        const long want = 1000 * me + i + scaled(k, scale, src, i), got = item(k, mine, i);
        CHECK(got == want, "%s, scale %ld%+ldi, shape %d, part %d: %ld, expected %ld", k->name,
              scales[s][0], scales[s][1], shape, i, got, want);
        CHECK_EQ(item(k, src, i), i - 17);
      }
      for (int i = 0; i < GUARD; i++)
        CHECK(mine[area - GUARD + i] == 0x3c, "%s, shape %d wrote behind the block", k->name, shape);
    }
  free(src);
  check_free_segment(base);
}

/* All ranks add to all ranks at once in every shape. No addition may be lost. */
static void together(const kind *k)
{
  enum { ROUNDS = 12 };
  const int parts = ITEMS * k->parts;
  void **base = check_segment((long)ITEMS * k->size);
  char *src = check_calloc((long)ITEMS * k->size);
  double scale[2];
  long expected = 0;

  set(k, scale, 0, 2);
  if (k->parts == 2)
    set(k, scale, 1, 0);
  for (int i = 0; i < parts; i++)
    set(k, src, i, me + 1);
  for (int round = 0; round < ROUNDS; round++)
    for (int step = 0; step < nproc; step++)
      add(k, (round + me) % SHAPES, scale, src, base[(me + step) % nproc], (me + step) % nproc);
  ARMCI_Barrier();
  for (int p = 0; p < nproc; p++)
    expected += 2L * ROUNDS * (p + 1);
  for (int i = 0; i < parts; i++)
    CHECK(item(k, base[me], i) == expected, "%s: part %d is %ld after all added, expected %ld",
          k->name, i, item(k, base[me], i), expected);
  free(src);
  check_free_segment(base);
}

/* Returns an item that need not be aligned. */
static long loose(const kind *k, const char *at)
{
  double aligned[2] = { 0, 0 };
  memcpy(aligned, at, (size_t)(k->size / k->parts));
  return item(k, aligned, 0);
}

static void set_loose(const kind *k, char *at, long value)
{
  double aligned[2] = { 0, 0 };
  set(k, aligned, 0, value);
  memcpy(at, aligned, (size_t)(k->size / k->parts));
}

/* Rows of 4 items whose stride and start need not be a multiple of the item size, so that most
 * rows are unaligned. All ranks add to all at once, strided, row by row and as vectors, with and
 * without a handle. */
static void odd_places(const kind *k, int shift, int pad)
{
  enum { ROWS = 300, WAYS = 4 };    /* longer than the range of one lock stripe */
  const int row = 4 * k->size, stride[1] = { row + pad }, part = k->size / k->parts;
  int count[2] = { row, ROWS };
  const long len = shift + (long)ROWS * stride[0];
  void **base = check_segment(len), *from[ROWS], *to[ROWS];
  char *src = check_calloc(len);
  armci_giov_t iov;
  armci_hdl_t handle;
  double scale[2];

  set(k, scale, 0, 2);
  if (k->parts == 2)
    set(k, scale, 1, 0);
  memset(base[me], 0x3c, (size_t)len);
  for (int r = 0; r < ROWS; r++)
    for (int i = 0; i < 4 * k->parts; i++) {
      set_loose(k, check_at(base, me, shift + (long)r * stride[0] + i * part), r);
      set_loose(k, src + shift + (long)r * stride[0] + i * part, me + i);
    }
  ARMCI_Barrier();
  for (int step = 0; step < nproc; step++) {
    const int proc = (me + step) % nproc;
    char *dst = check_at(base, proc, shift);
    for (int r = 0; r < ROWS; r++) {
      from[r] = src + shift + (long)r * stride[0];
      to[r] = dst + (long)(ROWS - 1 - r) * stride[0];
    }
    iov.src_ptr_array = from;
    iov.dst_ptr_array = to;
    iov.bytes = row;
    iov.ptr_array_len = ROWS;
    ARMCI_INIT_HANDLE(&handle);
    CHECK_OK(ARMCI_AccS(k->datatype, scale, src + shift, (int *)stride, dst, (int *)stride, count, 1, proc));
    CHECK_OK(ARMCI_NbAccS(k->datatype, scale, src + shift, (int *)stride, dst, (int *)stride, count, 1, proc, &handle));
    CHECK_OK(ARMCI_AccV(k->datatype, scale, &iov, 1, proc));
    CHECK_OK(ARMCI_Wait(&handle));
    CHECK_OK(ARMCI_NbAccV(k->datatype, scale, &iov, 1, proc, NULL));
    for (int r = 0; r < ROWS; r += 20)
      CHECK_OK(ARMCI_Acc(k->datatype, scale, from[r], to[r], row, proc));
  }
  CHECK_OK(ARMCI_WaitAll());
  ARMCI_Barrier();
  for (int r = 0; r < ROWS; r++) {
    const char *at = check_at(base, me, shift + (long)r * stride[0]);
    for (int i = 0; i < 4 * k->parts; i++) {
      const long ways = WAYS + ((ROWS - 1 - r) % 20 == 0);
      long want = r;
      for (int p = 0; p < nproc; p++)
        want += 2 * ways * (p + i);
      CHECK(loose(k, at + i * part) == want, "%s, shift %d, pad %d, row %d, part %d: %ld, expected %ld",
            k->name, shift, pad, r, i, loose(k, at + i * part), want);
    }
    for (int i = 0; i < pad; i++)
      CHECK(at[row + i] == 0x3c, "%s, shift %d, pad %d: byte %d behind row %d was written", k->name, shift,
            pad, i, r);
  }
  free(src);
  check_free_segment(base);
}

/* Accumulates and fetch-and-add on the same long are atomic to each other. */
static void with_rmw(void)
{
  enum { ROUNDS = 150 };
  void **base = check_segment(sizeof(long));
  long one = 1, three = 3, old;

  for (int i = 0; i < ROUNDS; i++) {
    CHECK_OK(ARMCI_Acc(ARMCI_ACC_LNG, &one, &three, base[0], sizeof(long), 0));
    CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, base[0], 4, 0));
    CHECK(old >= 3, "a rank's own accumulate is not seen by its fetch-and-add: %ld", old);
  }
  ARMCI_Barrier();
  if (me == 0)
    CHECK_EQ(*(long *)base[0], 7L * ROUNDS * nproc);
  check_free_segment(base);
}

/* Program order without a fence: accumulate after put, get after accumulate. */
static void program_order(void)
{
  void **base = check_segment((long)nproc * 8);
  const int target = (me + 1) % nproc;
  char *cell = check_at(base, target, 8L * me);
  double value, one = 1.0;

  for (int i = 0; i < 100; i++) {
    value = i;
    CHECK_OK(ARMCI_Put(&value, cell, 8, target));
    value = 0.5;
    CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &one, &value, cell, 8, target));
    CHECK_OK(ARMCI_Get(cell, &value, 8, target));
    CHECK(value == i + 0.5, "put, accumulate, get: %g, expected %g", value, i + 0.5);
  }
  check_free_segment(base);
}

int main(int argc, char **argv)
{
  check_start("accumulate", &argc, &argv);
  for (int i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++) {
    values(&kinds[i]);
    together(&kinds[i]);
    odd_places(&kinds[i], 0, 15);
    odd_places(&kinds[i], 1, 2);
    odd_places(&kinds[i], 4, kinds[i].size);
  }
  with_rmw();
  program_order();
  return check_end();
}
