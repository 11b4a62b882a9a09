/* Switches: one for many transfers of all kinds, counting by the program, tests and values,
 * fences over pending transfers. */
// TEST: x10
#include "x10_check.h"

static int value_of(x10_switch_t sw)
{
  int value = 12345;
  GOOD(x10_switch_value(sw, &value));
  return value;
}

static void counting(void)
{
  x10_switch_t sw = x10_alloc_switch(), other = x10_alloc_switch();
  int done = -1;

  CHECK(sw != NULL && other != NULL && sw != other, "two switches are one");
  CHECK_EQ(value_of(sw), 0);
  GOOD(x10_wait(sw));               /* open initially */
  GOOD(x10_test(sw, &done));
  CHECK_EQ(done, 1);
  GOOD(x10_decrement_switch(sw));
  GOOD(x10_decrement_switch(sw));
  CHECK_EQ(value_of(sw), -2);
  CHECK_EQ(value_of(other), 0);
  GOOD(x10_test(sw, &done));
  CHECK_EQ(done, 0);
  GOOD(x10_increment_switch(sw));
  GOOD(x10_test(sw, &done));
  CHECK_EQ(done, 0);
  GOOD(x10_increment_switch(sw));
  GOOD(x10_next_on_switch(sw));
  GOOD(x10_increment_switch(sw));
  CHECK_EQ(value_of(sw), 1);
  GOOD(x10_wait(sw));
  CHECK_EQ(value_of(sw), 1);        /* a wait does not change the value */
  GOOD(x10_free_switch(other));
  x10_switch_t next = x10_alloc_switch();   /* may reuse the memory of the previous one */
  CHECK(next != other, "a new switch has the name of a freed one");
  FAILS(x10_wait(other), "freed");
  GOOD(x10_free_switch(next));
  GOOD(x10_free_switch(sw));
}

/* An async opens a switch on which its place waits. */
static x10_switch_t door;
static int passed;

static void open_door(async_arg_t *args, int n)
{
  CHECK_EQ(n, 1);
  passed += (int)args[0];
  GOOD(x10_increment_switch(door));
}

static void opened_by_others(void)
{
  door = x10_alloc_switch();
  passed = 0;
  for (int i = 0; i < nproc; i++)
    GOOD(x10_decrement_switch(door));
  GOOD(x10_gfence());
  for (int p = 0; p < nproc; p++)
    GOOD(x10_asyncSpawnInline(p, 1, open_door, 10));
  GOOD(x10_wait(door));
  CHECK_EQ(passed, 10 * nproc);
  GOOD(x10_gfence());
  GOOD(x10_free_switch(door));
}

enum { LONG = 200000, CELLS = 64 };

struct memory {
  unsigned char bytes[LONG];
  long cells[CELLS];
};

/* Short and long gets and puts to all places on one switch. */
static void many_transfers(int with_fence)
{
  struct memory *memory = check_calloc(sizeof *memory), *back = check_calloc(nproc * (long)sizeof *back);
  void **table = x_addresses(memory);
  long cells[CELLS];
  int stride[1] = { 16 }, count[2] = { 8, CELLS / 2 }, done = 0;
  x10_switch_t sw = x10_alloc_switch();

  check_fill(memory->bytes, me, LONG);
  GOOD(x10_gfence());
  for (int i = 0; i < CELLS; i++)
    cells[i] = me * 1000 + i;
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  GOOD(x10_put_nb(cells, x_at(table, right, (long)offsetof(struct memory, cells)), sizeof cells / 2, sw));
  GOOD(x10_put_s_nb(cells + CELLS / 2, (int[]){ 8 },
                    x_at(table, right, (long)offsetof(struct memory, cells[CELLS / 2])),
                    (int[]){ 8 }, (int[]){ 8, CELLS / 2 }, 1, sw));
  for (int p = 0; p < nproc; p++) {
    GOOD(x10_get_nb(x_at(table, p, 0), back[p].bytes, LONG / 2, sw));
    GOOD(x10_get_nb(x_at(table, p, LONG / 2), back[p].bytes + LONG / 2, LONG / 2, sw));
    GOOD(x10_get_s_nb(x_at(table, p, 0), stride, back[p].cells, stride, count, 1, sw));
  }
  CHECK(value_of(sw) <= 0, "a switch over transfers is at %d", value_of(sw));
  if (with_fence) {
    GOOD(x10_fence());
    CHECK_EQ(value_of(sw), 0);
  } else {
    while (!done)
      GOOD(x10_test(sw, &done));
    CHECK_EQ(value_of(sw), 0);
    GOOD(x10_wait(sw));
  }
  for (int p = 0; p < nproc; p++) {
    unsigned char *want = check_calloc(LONG);
    check_fill(want, p, LONG);
    CHECK_BYTES(back[p].bytes, want, LONG, "from %d", p);
    for (int i = 0; i < CELLS / 2; i++)
      CHECK_BYTES(&back[p].cells[2 * i], want + 16 * i, 8, "row %d from %d", i, p);
    free(want);
  }
  GOOD(x10_free_switch(sw));
  x_meet();
  for (int i = 0; i < CELLS; i++)
    CHECK_EQ(memory->cells[i], left * 1000 + i);
  GOOD(x10_gfence());
  free(memory);
  free(back);
  free(table);
}

/* A thousand puts of one place's cells. The global fence completes them at all places. */
static void global_fence(void)
{
  enum { MANY = 1000 };
  static int cells[MANY], out[MANY];
  void **table = x_addresses(cells);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  x10_switch_t sw = x10_alloc_switch();

  for (int i = 0; i < MANY; i++) {
    out[i] = i + me * 7;
    GOOD(x10_put_nb(&out[i], x_at(table, right, 4L * i), 4, sw));
  }
  GOOD(x10_gfence());
  for (int i = 0; i < MANY; i++)
    CHECK_EQ(cells[i], i + left * 7);
  GOOD(x10_wait(sw));
  GOOD(x10_free_switch(sw));
  GOOD(x10_gfence());
  free(table);
}

static void thousands(void)
{
  static x10_switch_t all[3000];
  for (int i = 0; i < 3000; i++)
    CHECK((all[i] = x10_alloc_switch()) != NULL, "no switch %d", i);
  for (int i = 0; i < 3000; i++)
    GOOD(x10_decrement_switch(all[i]));
  for (int i = 0; i < 3000; i++) {
    CHECK_EQ(value_of(all[i]), -1);
    GOOD(x10_free_switch(all[i]));
  }
}

int main(int argc, char **argv)
{
  x_start("x10_switches", &argc, &argv);
  counting();
  opened_by_others();
  many_transfers(0);
  many_transfers(1);
  global_fence();
  thousands();
  return x_end();
}
