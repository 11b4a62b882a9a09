/* Strided transfers of 0 to 7 levels against a reference, blocking and on a switch, with strides of
 * any kind; more blocks than one operation takes; empty and bad transfers. */
// TEST: x10
#include "x10_check.h"

enum { MOST = 7, ROOM = 1 << 16 };

/* Copies by the definition. */
static void reference(const unsigned char *src, const int *ss, unsigned char *dst, const int *ds,
                      const int *count, int levels)
{
  if (levels == 0)
    memcpy(dst, src, (size_t)count[0]);
  else
    for (int i = 0; i < count[levels]; i++)
      reference(src + (long)i * ss[levels - 1], ss, dst + (long)i * ds[levels - 1], ds, count,
                levels - 1);
}

/* Draws strides that keep blocks apart. They need not be multiples of the inner ones, and blocks
 * may be adjacent. Strides may be negative; *start is then the offset of the first block. */
static void strides(const int *count, int levels, int *stride, long *start)
{
  long row = count[0];

  *start = 0;
  for (int i = 0; i < levels; i++) {
    stride[i] = (int)(row + (check_random(2) ? check_random(5) : 0));
    row = stride[i] * (long)(count[i + 1] - 1) + row;
    if (check_random(4) == 0) {
      *start += stride[i] * (long)(count[i + 1] - 1);
      stride[i] = -stride[i];
    }
  }
  CHECK(row <= ROOM, "a shape of %ld bytes", row);
}

static void shapes(unsigned char *memory)
{
  void **table = x_addresses(memory);
  unsigned char *local = check_calloc(ROOM), *want = check_calloc(ROOM), *copy = check_calloc(ROOM);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  x10_switch_t sw = x10_alloc_switch();

  for (int trial = 0; trial < 80; trial++) {
    const int levels = trial % (MOST + 1), nb = trial / 8 % 2;
    int count[MOST + 1], near[MOST], far[MOST];
    long near_start, far_start;

    check_state = (unsigned long long)trial + 1;    /* the same shape on every place */
    count[0] = 1 + check_random(levels < 4 ? 60 : 6);
    for (int i = 1; i <= levels; i++)
      count[i] = 1 + check_random(levels < 4 ? 6 : 3);
    strides(count, levels, near, &near_start);
    strides(count, levels, far, &far_start);

    memset(memory, 0x33, ROOM);
    check_fill(local, trial + me, ROOM);
    GOOD(x10_gfence());
    if (nb) {
      GOOD(x10_put_s_nb(local + near_start, near, x_at(table, right, far_start), far, count,
                        levels, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_put_s(local + near_start, near, x_at(table, right, far_start), far, count, levels));
    x_meet();
    memset(want, 0x33, ROOM);
    check_fill(copy, trial + left, ROOM);
    reference(copy + near_start, near, want + far_start, far, count, levels);
    CHECK_BYTES(memory, want, ROOM, "trial %d: put of %d levels", trial, levels);

    memset(local, 0x44, ROOM);
    if (nb) {
      GOOD(x10_get_s_nb(x_at(table, right, far_start), far, local + near_start, near, count,
                        levels, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_get_s(x_at(table, right, far_start), far, local + near_start, near, count, levels));
    memset(want, 0x44, ROOM);
    check_fill(copy, trial + me, ROOM);
    reference(copy + near_start, near, want + near_start, near, count, levels);
    CHECK_BYTES(local, want, ROOM, "trial %d: get of %d levels", trial, levels);
    GOOD(x10_gfence());
  }
  GOOD(x10_free_switch(sw));
  free(table);
  free(local);
  free(want);
  free(copy);
}

/* 20,000 blocks, with the specification's spelling of the non-blocking calls. */
static void many_blocks(void)
{
  enum { ROWS = 20000 };
  unsigned char *memory = check_calloc(ROWS * 5L), *local = check_calloc(ROWS * 3L);
  void **table = x_addresses(memory);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  int near[1] = { 3 }, far[1] = { 5 }, count[2] = { 2, ROWS };
  x10_switch_t sw = x10_alloc_switch();

  for (int nb = 0; nb < 2; nb++) {
    for (int i = 0; i < ROWS * 3; i++)
      local[i] = check_byte(me + nb, i);
    memset(memory, 0, ROWS * 5);
    GOOD(x10_gfence());
    if (nb) {
      GOOD(x10_put_s(local, near, x_at(table, right, 0), far, count, 1, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_put_s(local, near, x_at(table, right, 0), far, count, 1));
    x_meet();
    for (int i = 0; i < ROWS * 5; i++)
      CHECK_EQ(memory[i], i % 5 < 2 ? check_byte(left + nb, i / 5 * 3 + i % 5) : 0);
    memset(local, 0, ROWS * 3);
    if (nb) {
      GOOD(x10_get_s(x_at(table, right, 0), far, local, near, count, 1, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_get_s(x_at(table, right, 0), far, local, near, count, 1));
    for (int i = 0; i < ROWS * 3; i++)
      CHECK_EQ(local[i], i % 3 < 2 ? check_byte(me + nb, i) : 0);
    GOOD(x10_gfence());
  }
  GOOD(x10_free_switch(sw));
  free(memory);
  free(local);
  free(table);
}

static void empty_and_bad(void)
{
  long cells[4] = { 1, 2, 3, 4 }, here[4] = { 5, 6, 7, 8 };
  void **table = x_addresses(cells);
  const x10_gas_ref_t there = x_at(table, (me + 1) % nproc, 0);
  int stride[1] = { 16 }, count[10] = { 8, 2, 1, 1, 1, 1, 1, 1, 1, 1 }, none[2] = { 8, 0 },
      negative[2] = { 8, -1 }, bytes[1] = { 0 };
  x10_switch_t sw = x10_alloc_switch();

  GOOD(x10_put_s(NULL, stride, there, stride, none, 1));
  GOOD(x10_get_s(there, stride, NULL, stride, none, 1));
  GOOD(x10_put_s(NULL, NULL, there, NULL, bytes, 0));
  GOOD(x10_get_s_nb(there, NULL, NULL, NULL, bytes, 0, sw));
  GOOD(x10_put_s_nb(NULL, stride, there, stride, none, 1, sw));

  FAILS(x10_put_s(here, stride, there, stride, negative, 1), "count[1]");
  FAILS(x10_get_s(there, stride, here, stride, negative, 1), "count[1]");
  FAILS(x10_put_s(here, stride, there, stride, count, -1), "-1");
  FAILS(x10_get_s(there, stride, here, stride, count, X10_MAX_LEVELS + 1), "levels");
  FAILS(x10_put_s(here, NULL, there, stride, count, 1), "null");
  FAILS(x10_put_s(here, stride, there, NULL, count, 1), "null");
  FAILS(x10_get_s(there, stride, here, stride, NULL, 1), "null");
  FAILS(x10_put_s(NULL, stride, there, stride, count, 1), "null");
  FAILS(x10_get_s(there, stride, NULL, stride, count, 1), "null");
  FAILS(x10_put_s(here, stride, x10_make_gas_ref(nproc, cells), stride, count, 1), "place");
  FAILS(x10_get_s_nb(x10_make_gas_ref(-1, cells), stride, here, stride, count, 1, sw), "place");
  FAILS(x10_put_s_nb(here, stride, there, stride, count, 1, NULL), "switch");
  GOOD(x10_wait(sw));
  GOOD(x10_gfence());
  for (int i = 0; i < 4; i++) {
    CHECK_EQ(cells[i], i + 1);
    CHECK_EQ(here[i], i + 5);
  }
  GOOD(x10_free_switch(sw));
  free(table);
}

int main(int argc, char **argv)
{
  static unsigned char global[ROOM];
  unsigned char stack[ROOM];

  x_start("x10_strided", &argc, &argv);
  shapes(global);
  shapes(stack);
  many_blocks();
  empty_and_bad();
  return x_end();
}
