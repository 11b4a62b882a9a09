/* Single values of the four types: put, non-blocking put, get. */
// TEST: armci moving
// TEST: n=2 build={static,pkg-config,cmake}
#include "check.h"

enum { CELL = 48 };                 /* a cell has a guard on each side */

#define CHECK_TYPE(Name, type, base_value)                                            \
  static void check_##Name(void **base)                                               \
  {                                                                                   \
    const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;              \
    const type first = (type)(base_value), step = (type)17;                           \
    char *mine = check_at(base, me, 0);                                               \
    armci_hdl_t handle;                                                               \
    for (int how = 0; how < 3; how++) {                                               \
      const type out = first + step * (type)me + (type)how;                           \
      const type want = first + step * (type)left + (type)how;                        \
      type in;                                                                        \
      memset(mine, 0x42, CELL);                                                       \
      ARMCI_Barrier();                                                                \
      ARMCI_INIT_HANDLE(&handle);                                                     \
      if (how == 0)                                                                   \
        CHECK_OK(ARMCI_PutValue##Name(out, check_at(base, right, 16), right));        \
      else if (how == 1) {                                                            \
        CHECK_OK(ARMCI_NbPutValue##Name(out, check_at(base, right, 16), right, &handle)); \
        CHECK_OK(ARMCI_Wait(&handle));                                                \
      } else {                                                                        \
        CHECK_OK(ARMCI_NbPutValue##Name(out, check_at(base, right, 16), right, NULL)); \
        CHECK_OK(ARMCI_WaitProc(right));                                              \
      }                                                                               \
      in = ARMCI_GetValue##Name(check_at(base, right, 16), right);                    \
      CHECK(in == out, #Name ", how %d: got another value than was put", how);        \
      ARMCI_Barrier();                                                                \
      memcpy(&in, mine + 16, sizeof in);                                              \
      CHECK(in == want, #Name ", how %d: another value than the left rank put", how); \
      for (int i = 0; i < CELL; i++)                                                  \
        if (i < 16 || i >= 16 + (int)sizeof in)                                       \
          CHECK(mine[i] == 0x42, #Name " wrote byte %d beside the value", i - 16);    \
      ARMCI_Barrier();                                                                \
    }                                                                                 \
  }

CHECK_TYPE(Int, int, -2000000000)
CHECK_TYPE(Long, long, 1L << 60)
CHECK_TYPE(Float, float, -0.25f)
CHECK_TYPE(Double, double, 1e15)

/* A call copies the value: many puts from one variable may be in flight. */
static void in_flight(void **base)
{
  const int right = (me + 1) % nproc;
  for (int i = 0; i < 100; i++)
    CHECK_OK(ARMCI_NbPutValueInt(i * 3, check_at(base, right, 4L * i), right, NULL));
  CHECK_OK(ARMCI_WaitAll());
  ARMCI_Barrier();
  for (int i = 0; i < 100; i++)
    CHECK_EQ(((int *)base[me])[i], i * 3);
  ARMCI_Barrier();
}

int main(int argc, char **argv)
{
  check_start("values", &argc, &argv);
  void **base = check_segment(400);
  check_Int(base);
  check_Long(base);
  check_Float(base);
  check_Double(base);
  in_flight(base);
  check_free_segment(base);
  return check_end();
}
