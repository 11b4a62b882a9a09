/* Single values of the four types: put, put on a switch, get, under all names. A call copies the
 * value. Gets report errors without a code. */
// TEST: x10
#include "x10_check.h"

#define CHECK_TYPE(type, base_value)                                                  \
  static void check_##type(void)                                                      \
  {                                                                                   \
    const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;              \
    type cells[3], in;                                                                \
    void **table = x_addresses(&cells[1]);                                            \
    const x10_gas_ref_t there = x_at(table, right, 0);                                \
    x10_switch_t sw = x10_alloc_switch();                                             \
    for (int how = 0; how < 6; how++) {                                               \
      const type out = (type)(base_value) + (type)17 * (type)me + (type)how;          \
      const type want = (type)(base_value) + (type)17 * (type)left + (type)how;       \
      memset(cells, 0x42, sizeof cells);                                              \
      in = cells[0];                                                                  \
      GOOD(x10_gfence());                                                             \
      switch (how) {                                                                  \
      case 0: GOOD(x10_put_value_##type(out, there)); break;                          \
      case 1: GOOD(x10_put_##type(out, there)); break;                                \
      case 2: GOOD(x10_put_value(out, there)); break;                                 \
      case 3: GOOD(x10_put_value_##type##_nb(out, there, sw)); break;                 \
      case 4: GOOD(x10_put_##type##_nb(out, there, sw)); break;                       \
      default: GOOD(x10_put_value_nb(out, there, sw));                                \
      }                                                                               \
      GOOD(x10_wait(sw));                                                             \
      x_meet();                                                    \
      CHECK(memcmp(&cells[0], &in, sizeof in) == 0, #type " %d wrote before it", how); \
      CHECK(memcmp(&cells[2], &in, sizeof in) == 0, #type " %d wrote behind it", how); \
      CHECK(cells[1] == want, #type " %d: another value than was put", how);          \
      in = x10_get_value_##type(there);                                               \
      CHECK(in == out, #type " %d: got another value than was put", how);             \
      CHECK_EQ(x10_get_value_status(), X10_OK);                                       \
      GOOD(x10_gfence());                                                             \
    }                                                                                 \
    for (int bad = -1; bad <= nproc; bad += nproc + 1) {                              \
      const x10_gas_ref_t nobody = x10_make_gas_ref(bad, cells);                      \
      CHECK(x10_get_value_##type(nobody) == 0, "a value of no place is not 0");       \
      CHECK_EQ(x10_get_value_status(), X10_ERR_LAPI);                                 \
      CHECK(strstr(x10_last_error(), "x10_get_value_" #type), "%s", x10_last_error()); \
      FAILS(x10_put_value_##type(1, nobody), "place");                              \
      FAILS(x10_put_##type(1, nobody), "place");                                    \
      FAILS(x10_put_value_##type##_nb(1, nobody, sw), "place");                     \
      FAILS(x10_put_##type##_nb(1, nobody, sw), "place");                           \
    }                                                                                 \
    FAILS(x10_put_value_##type##_nb(1, there, NULL), "switch");                     \
    CHECK(x10_get_value_##type(there) != 0, "the value is gone");                     \
    CHECK_EQ(x10_get_value_status(), X10_OK);                                         \
    GOOD(x10_free_switch(sw));                                                        \
    GOOD(x10_gfence());                                                               \
    free(table);                                                                      \
  }

CHECK_TYPE(int, -2000000000)
CHECK_TYPE(long, 1L << 60)
CHECK_TYPE(float, -0.25f)
CHECK_TYPE(double, 1e15)

/* Two values and hundreds in flight on one switch: each arrives, not only the first or last. */
static void in_flight(void)
{
  enum { MANY = 300 };
  static int cells[MANY];
  void **table = x_addresses(cells);
  const int right = (me + 1) % nproc;
  x10_switch_t sw = x10_alloc_switch();
  int value = 111;

  GOOD(x10_put_value_int_nb(value, x_at(table, right, 0), sw));
  value = 222;
  GOOD(x10_put_value_int_nb(value, x_at(table, right, 4), sw));
  value = 333;
  GOOD(x10_wait(sw));
  x_meet();
  CHECK_EQ(cells[0], 111);
  CHECK_EQ(cells[1], 222);
  GOOD(x10_gfence());
  for (int i = 0; i < MANY; i++)
    GOOD(x10_put_value_int_nb(i * 3 + 1, x_at(table, right, 4L * i), sw));
  GOOD(x10_wait(sw));
  x_meet();
  for (int i = 0; i < MANY; i++)
    CHECK_EQ(cells[i], i * 3 + 1);
  GOOD(x10_gfence());
  GOOD(x10_free_switch(sw));
  free(table);
}

int main(int argc, char **argv)
{
  x_start("x10_values", &argc, &argv);
  check_int();
  check_long();
  check_float();
  check_double();
  in_flight();
  return x_end();
}
