/* Switches that the program and asyncs count. The check `x10` of tests/ranks tests switches of transfers. */
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
  thousands();
  return x_end();
}
