/* Non-blocking handles: unused and longer ones, and what an aggregate collects. The check `armci` of
 * tests/ranks tests the operations themselves. */
// TEST: armci moving
#include "check.h"

enum { ROOM = 32000 };

static void **base;

/* An aggregate handle collects one kind of operation until its wait. */
static void aggregate_handles(void)
{
  armci_hdl_t handle;
  double one = 1.0;

  ARMCI_INIT_HANDLE(&handle);
  memset(base[me], 0, 8);
  ARMCI_Barrier();
  for (int i = 0; i < 10; i++) {
    ARMCI_SET_AGGREGATE_HANDLE(&handle);              /* no effect but the first time */
    CHECK_OK(ARMCI_NbAcc(ARMCI_ACC_DBL, &one, &one, base[0], 8, 0, &handle));
  }
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  CHECK_EQ(ARMCI_NbPut(&one, check_at(base, me, 64), 8, me, &handle), PORTOLAN_ERR_HANDLE);
  CHECK_OK(ARMCI_Wait(&handle));
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  ARMCI_Barrier();
  if (me == 0)
    CHECK(*(double *)base[0] == 10.0 * nproc, "aggregate of accumulates: %g", *(double *)base[0]);

  ARMCI_SET_AGGREGATE_HANDLE(&handle);                /* set, but not used before the wait */
  CHECK_OK(ARMCI_Wait(&handle));
  CHECK_EQ(ARMCI_Test(&handle), 0);
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  ARMCI_Barrier();
}

/* A handle that no operation uses is complete at once, whatever bytes it holds. */
static void unused_handles(void)
{
  static const int bytes[] = { 0x00, 0xff, 0x01, 0x7f, 0x80, 0xa5, 0x5a };
  const int target = nproc - 1 - me;
  armci_hdl_t handle;

  for (int i = 0; i < (int)sizeof bytes / (int)sizeof bytes[0]; i++) {
    memset(&handle, bytes[i], sizeof handle);
    CHECK_OK(ARMCI_Wait(&handle));
    memset(&handle, bytes[i], sizeof handle);
    CHECK_EQ(ARMCI_Test(&handle), 0);
    memset(&handle, bytes[i], sizeof handle);
    ARMCI_INIT_HANDLE(&handle);
    CHECK_OK(ARMCI_Wait(&handle));
    CHECK_EQ(ARMCI_Test(&handle), 0);
  }
  check_state += (unsigned long long)me;
  for (int i = 0; i < 2000; i++) {
    for (unsigned j = 0; j < sizeof handle; j++)
      ((unsigned char *)&handle)[j] = (unsigned char)check_random(256);
    CHECK_OK(ARMCI_Wait(&handle));
  }

  for (int i = 0; i < (int)sizeof bytes / (int)sizeof bytes[0]; i++) {
    long out = 100 * i + me, in = -1;                 /* passed directly to an operation */
    memset(&handle, bytes[i], sizeof handle);
    CHECK_OK(ARMCI_NbPut(&out, check_at(base, target, 8L * me), 8, target, &handle));
    CHECK_OK(ARMCI_Wait(&handle));
    memset(&handle, bytes[i], sizeof handle);
    CHECK_OK(ARMCI_NbGet(check_at(base, target, 8L * me), &in, 8, target, &handle));
    CHECK_OK(ARMCI_Wait(&handle));
    CHECK_EQ(in, out);
  }
  ARMCI_Barrier();
}

/* The library reads and writes only the bytes of its own handle. The handles of a program that was
 * compiled with the armci.h of ARMCI-MPI's development branch are longer. */
static void longer_handles(void)
{
  enum { LONGER = 24, MINE = sizeof(armci_hdl_t) };
  union { armci_hdl_t own; unsigned char bytes[LONGER]; } handle;
  unsigned char rest[LONGER - MINE];
  const int to = (me + 1) % nproc;

  memset(rest, 0xa5, sizeof rest);
  for (int aggregate = 0; aggregate < 2; aggregate++) {
    long out[4] = { me, me + 1, me + 2, me + 3 }, in[4];
    memset(&handle, 0xa5, sizeof handle);
    ARMCI_INIT_HANDLE(&handle.own);
    if (aggregate)
      ARMCI_SET_AGGREGATE_HANDLE(&handle.own);
    for (int i = 0; i < 4; i++)
      CHECK_OK(ARMCI_NbPut(&out[i], check_at(base, to, 8L * (4 * me + i)), 8, to, &handle.own));
    CHECK_OK(ARMCI_Wait(&handle.own));
    if (aggregate)
      ARMCI_UNSET_AGGREGATE_HANDLE(&handle.own);
    CHECK_OK(ARMCI_NbGet(check_at(base, to, 32L * me), in, sizeof in, to, &handle.own));
    CHECK_OK(ARMCI_Wait(&handle.own));
    CHECK_BYTES(in, out, sizeof out, "a longer handle");
    CHECK_BYTES(handle.bytes + MINE, rest, sizeof rest, "the rest of a longer handle");
  }
  ARMCI_Barrier();
}

/* Calls that fail or move nothing do not decide what an aggregate handle collects. */
static void empty_aggregates(void)
{
  armci_hdl_t handle;
  long in = 0, out = 0;
  const int to = (me + 1) % nproc;
  *(long *)base[me] = 1000 * me;
  ARMCI_Barrier();
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  CHECK_OK(ARMCI_NbPut(&out, base[to], 0, to, &handle));
  CHECK(ARMCI_NbPut(&out, base[to], 8, nproc, &handle) != 0, "a bad rank");
  CHECK_OK(ARMCI_NbGet(base[to], &in, 8, to, &handle));
  CHECK_OK(ARMCI_Wait(&handle));
  CHECK_EQ(in, 1000 * to);
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
}

int main(int argc, char **argv)
{
  check_start("handles", &argc, &argv);
  base = check_segment(ROOM);
  aggregate_handles();
  unused_handles();
  longer_handles();
  empty_aggregates();
  check_free_segment(base);
  return check_end();
}
