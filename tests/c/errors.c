/*
 * Bad input. Without an argument: calls that return int give the documented code and change
 * nothing. With the name of a case: a call that returns no code must end the job with a nonzero
 * status; "EXPECT-ABORT <case>" is printed before it. "list" prints the names of the cases.
 */
// TEST: armci moving
// TEST: aborts n=2
#include "check.h"

enum { ROOM = 68 };                 /* not a multiple of 8, so a long at the end does not fit */

static void **base;
static int right, outside;          /* `outside` is in no segment */
static unsigned char pattern[ROOM], here[256], here_before[256];

#define CHECK_CODE(call, code)                                                        \
  do {                                                                                \
    int check_rc = (call);                                                            \
    CHECK(check_rc == (code), "%s returned %d, expected " #code " (%s)", #call,       \
          check_rc, portolan_last_error());                                           \
    CHECK(portolan_last_error()[0] != '\0', "%s left no text of its error", #call);   \
    CHECK_BYTES(here, here_before, 256, "%s changed local memory", #call);            \
  } while (0)

static void ranks(void *far)
{
  static const int bad[] = { -1, -1000, 1 << 30, 0x7fffffff };
  int stride[1] = { 8 }, count[2] = { 8, 2 };
  void *from[1] = { here }, *to[1] = { far };
  armci_giov_t put = { .src_ptr_array = from, .dst_ptr_array = to, .bytes = 8, .ptr_array_len = 1 };
  armci_giov_t get = { .src_ptr_array = to, .dst_ptr_array = from, .bytes = 8, .ptr_array_len = 1 };
  long one = 1, old = 0;
  armci_hdl_t handle;

  for (int i = 0; i < 5; i++) {
    const int p = i < 4 ? bad[i] : nproc;
    ARMCI_INIT_HANDLE(&handle);
    CHECK_CODE(ARMCI_Put(here, far, 8, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_Get(far, here, 8, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &one, here, far, 8, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_PutS(here, stride, far, stride, count, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_GetS(far, stride, here, stride, count, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_AccS(ARMCI_ACC_LNG, &one, here, stride, far, stride, count, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_PutV(&put, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_GetV(&get, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_AccV(ARMCI_ACC_LNG, &one, &put, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_PutV(NULL, 0, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_NbGetV(NULL, 0, p, &handle), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_NbPut(here, far, 8, p, &handle), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_NbGet(far, here, 8, p, NULL), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_NbAccV(ARMCI_ACC_LNG, &one, &put, 1, p, &handle), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_Put_flag(here, far, 8, far, 1, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_PutValueInt(1, far, p), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_NbPutValueDouble(1.0, far, p, NULL), PORTOLAN_ERR_RANK);
    CHECK_CODE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, far, 1, p), PORTOLAN_ERR_RANK);
    CHECK_EQ(old, 0);
    CHECK_CODE(ARMCI_WaitProc(p), PORTOLAN_ERR_RANK);
    CHECK_OK(ARMCI_Wait(&handle));  /* a failed operation leaves nothing pending */
  }
}

static void arguments(void *far)
{
  int stride[9] = { 8, 8, 8, 8, 8, 8, 8, 8, 8 }, bad_stride[1] = { -8 };
  int count[10] = { 8, 2, 1, 1, 1, 1, 1, 1, 1, 1 }, bad_count[2] = { 8, -2 }, bad_first[2] = { -8, 2 };
  void *from[1] = { here }, *to[1] = { far }, *null[1] = { NULL };
  armci_giov_t iov = { .src_ptr_array = from, .dst_ptr_array = to, .bytes = -8, .ptr_array_len = 1 };
  long one = 1;

  CHECK_CODE(ARMCI_Put(here, far, -1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Get(far, here, -8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &one, here, far, -8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_NbPut(here, far, -1, right, NULL), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Put(NULL, far, 8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Put(here, NULL, 8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Get(far, NULL, 8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Get(NULL, here, 8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, NULL, here, far, 8, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &one, NULL, far, 8, right), PORTOLAN_ERR_ARG);

  CHECK_CODE(ARMCI_PutS(here, stride, far, stride, count, -1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, stride, far, stride, count, 9, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, stride, far, stride, bad_count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_GetS(far, stride, here, stride, bad_first, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, bad_stride, far, stride, count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, stride, far, bad_stride, count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_GetS(far, stride, here, bad_stride, count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, NULL, far, stride, count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, stride, far, NULL, count, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(here, stride, far, stride, NULL, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutS(NULL, stride, far, stride, count, 1, right), PORTOLAN_ERR_ARG);

  CHECK_CODE(ARMCI_PutV(&iov, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutV(&iov, -1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutV(NULL, 1, right), PORTOLAN_ERR_ARG);
  iov.bytes = 8;
  iov.ptr_array_len = -1;
  CHECK_CODE(ARMCI_PutV(&iov, 1, right), PORTOLAN_ERR_ARG);
  iov.ptr_array_len = 1;
  iov.src_ptr_array = NULL;
  CHECK_CODE(ARMCI_PutV(&iov, 1, right), PORTOLAN_ERR_ARG);
  iov.src_ptr_array = null;
  CHECK_CODE(ARMCI_PutV(&iov, 1, right), PORTOLAN_ERR_ARG);

  CHECK_CODE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, NULL, far, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, here, NULL, 1, right), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_PutValueLong(1, NULL, right), PORTOLAN_ERR_ARG);
}

static void addresses(char *far)
{
  int stride[1] = { 32 }, count[2] = { 8, 3 }, near[1] = { 8 };
  void *from[2] = { here, here + 8 }, *to[2] = { far, far + ROOM - 4 };
  armci_giov_t put = { .src_ptr_array = from, .dst_ptr_array = to, .bytes = 8, .ptr_array_len = 2 };
  armci_giov_t get = { .src_ptr_array = to, .dst_ptr_array = from, .bytes = 8, .ptr_array_len = 2 };
  long one = 1, old = 5;

  CHECK_CODE(ARMCI_Put(here, &outside, 4, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, (void *)8, 4, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, (void *)-16L, 64, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, far, ROOM + 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Get(far, here, ROOM + 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Get(far, here, 0x7fffffff, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, far + ROOM, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, far + ROOM - 7, 8, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put(here, far - 1, 8, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &one, here, far + ROOM - 4, 8, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_PutS(here, near, far, stride, count, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_GetS(far, stride, here, near, count, 1, right), PORTOLAN_ERR_ADDRESS);
  stride[0] = 0x7fffffff;           /* the extent overflows an int */
  CHECK_CODE(ARMCI_PutS(here, near, far, stride, count, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_PutV(&put, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_GetV(&get, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_NbPutV(&put, 1, right, NULL), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Put_flag(here, far, 8, &outside, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, far + ROOM - 4, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_CODE(ARMCI_Rmw(ARMCI_SWAP, &old, &outside, 1, right), PORTOLAN_ERR_ADDRESS);
  CHECK_EQ(old, 5);
  CHECK_CODE(ARMCI_PutValueDouble(1.0, &outside, right), PORTOLAN_ERR_ADDRESS);
}

static void types_and_handles(char *far)
{
  int stride[1] = { 12 }, ragged[2] = { 6, 2 };
  long one = 1, old = 5;
  armci_hdl_t handle;

  CHECK_CODE(ARMCI_Acc(99, &one, here, far, 8, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Acc(-1, &one, here, far, 8, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &one, here, far, 12, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_DCP, here, here, far, 24, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_AccS(ARMCI_ACC_INT, &one, here, stride, far, stride, ragged, 1, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Rmw(99, &old, far, 1, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Rmw(-1, &old, far, 1, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, far + 4, 1, right), PORTOLAN_ERR_TYPE);
  CHECK_CODE(ARMCI_Rmw(ARMCI_SWAP, &old, far + 1, 1, right), PORTOLAN_ERR_TYPE);
  CHECK_EQ(old, 5);

  CHECK_CODE(ARMCI_Wait(NULL), PORTOLAN_ERR_HANDLE);
  CHECK_CODE(ARMCI_Test(NULL), PORTOLAN_ERR_HANDLE);
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  CHECK_OK(ARMCI_NbPut(pattern, base[me], 8, me, &handle));
  CHECK_CODE(ARMCI_NbGet(base[me], here, 8, me, &handle), PORTOLAN_ERR_HANDLE);
  CHECK_CODE(ARMCI_NbAcc(ARMCI_ACC_LNG, &one, here, base[me], 8, me, &handle), PORTOLAN_ERR_HANDLE);
  CHECK_OK(ARMCI_Wait(&handle));
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
}

/* Collective calls return the code on all ranks, even if only one rank is at fault. */
static void collective(void)
{
  void **table = check_calloc(nproc * (long)sizeof(void *)), *gone;
  ARMCI_Group world, copy;
  int rc;

  CHECK_CODE(ARMCI_Malloc(table, -1), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Malloc(NULL, 8), PORTOLAN_ERR_ARG);
  CHECK_CODE(ARMCI_Malloc(table, 1L << 50), PORTOLAN_ERR_MEMORY);
  CHECK_CODE(ARMCI_Malloc(table, me == nproc - 1 ? 1L << 50 : 64), PORTOLAN_ERR_MEMORY);
  CHECK_CODE(ARMCI_Malloc(table, me == 0 ? -5 : 64), PORTOLAN_ERR_ARG);
  for (int p = 0; p < nproc; p++)
    CHECK(table[p] == NULL, "a failed ARMCI_Malloc set the address of rank %d", p);
  CHECK(ARMCI_Malloc_local(1L << 50) == NULL, "local memory of a pebibyte");
  CHECK(ARMCI_Malloc_local(-1) == NULL, "local memory of -1 bytes");

  CHECK_CODE(ARMCI_Free(&outside), PORTOLAN_ERR_ADDRESS);
  CHECK_OK(ARMCI_Malloc(table, 64));
  gone = table[me];
  CHECK_OK(ARMCI_Free(gone));
  rc = ARMCI_Free(gone);
  CHECK(rc == PORTOLAN_ERR_ADDRESS || rc == PORTOLAN_ERR_STATE, "a second free returned %d", rc);
  CHECK_CODE(ARMCI_Put(here, table[right], 8, right), PORTOLAN_ERR_ADDRESS);

  CHECK_CODE(ARMCI_Destroy_mutexes(), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Create_mutexes(-1), PORTOLAN_ERR_ARG);
  CHECK_OK(ARMCI_Create_mutexes(1));
  CHECK_CODE(ARMCI_Create_mutexes(1), PORTOLAN_ERR_STATE);
  CHECK_OK(ARMCI_Destroy_mutexes());
  CHECK(ARMCIX_Destroy_mutexes_hdl(NULL) != 0, "destroyed no mutexes");

  ARMCI_Group_get_world(&world);
  CHECK_EQ(ARMCI_Absolute_id(&world, -1), -1);
  CHECK_EQ(ARMCI_Absolute_id(&world, nproc), -1);
  CHECK_CODE(ARMCI_Malloc_group(table, 8, NULL), PORTOLAN_ERR_ARG);
  CHECK_OK(ARMCIX_Group_dup(&world, &copy));
  ARMCI_Group_free(&copy);
  CHECK_CODE(ARMCI_Malloc_group(table, 8, &copy), PORTOLAN_ERR_STATE);
  free(table);
}

/* Calls before ARMCI_Init or after ARMCI_Finalize. */
static void state(void *far)
{
  void **table = check_calloc(nproc * (long)sizeof(void *));
  long old = 0;
  CHECK_CODE(ARMCI_Put(here, far, 8, right), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Get(far, here, 8, right), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Acc(ARMCI_ACC_LNG, &old, here, far, 8, right), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Rmw(ARMCI_SWAP_LONG, &old, far, 1, right), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Malloc(table, 8), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_Create_mutexes(1), PORTOLAN_ERR_STATE);
  CHECK_CODE(ARMCI_WaitAll(), PORTOLAN_ERR_STATE);
  CHECK(portolan_path_name(me) == NULL, "a path without a library");
  free(table);
}

#include "errors_abort.h"

int main(int argc, char **argv)
{
  if (argc > 1)
    return run_case(&argc, &argv);
  check_start_mpi("errors", &argc, &argv);
  right = (me + 1) % nproc;
  check_fill(here, 3, sizeof here);
  memcpy(here_before, here, sizeof here);
  check_fill(pattern, 7, ROOM);
  state(pattern);

  CHECK_OK(ARMCI_Init());
  base = check_segment(ROOM);
  memcpy(base[me], pattern, ROOM);
  ARMCI_Barrier();
  ranks(base[right]);
  arguments(base[right]);
  addresses(base[right]);
  types_and_handles(base[right]);
  collective();
  ARMCI_Barrier();
  CHECK_BYTES(base[me], pattern, ROOM, "the segment after failed calls");
  void *far = base[right];
  check_free_segment(base);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Finalize());
  state(far);
  return check_end_mpi();
}
