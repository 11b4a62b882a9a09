/* Statistics, regions and marks of a C program: calls are counted since the last reset, regions
 * are in the trace, and regions before the start and after the end are harmless. */
// TEST: n=2
// TEST: n=2 path=message
// TEST: n=3 node-size=1
// TEST: n=1
#include "check.h"
#include <stddef.h>

enum { PUTS = 7, BYTES = 24 };

static char directory[] = "/tmp/portolan-observe.XXXXXX";

/* Returns whether the trace file of this rank contains these bytes. */
static int has(const char *text)
{
  char path[200], *all;
  long length;
  FILE *file;
  int found = 0;

  snprintf(path, sizeof path, "%s/rank-%06d.ptrace", directory, me);
  file = fopen(path, "rb");
  CHECK(file != NULL, "there is no %s", path);
  fseek(file, 0, SEEK_END);
  length = ftell(file);
  rewind(file);
  all = check_calloc(length + 1);
  CHECK_EQ(fread(all, 1, length, file), length);
  fclose(file);
  for (long i = 0; i + (long)strlen(text) <= length && !found; i++)
    found = memcmp(all + i, text, strlen(text)) == 0;
  free(all);
  return found;
}

static portolan_stats_t stats(void)
{
  portolan_stats_t s;
  memset(&s, 0xee, sizeof s);
  s.size = sizeof s;
  CHECK_EQ(portolan_stats_get(&s), 0);
  CHECK_EQ(s.size, sizeof s);
  CHECK_EQ(s.complete, 1);
  return s;
}

/* Non-blocking transfers are counted on every path, with and without a handle. */
static void count_nonblocking(void)
{
  void **base = check_segment(1024);
  const int right = (me + 1) % nproc;
  double numbers[8] = { 1 }, scale = 2;
  char bytes[64] = { 1 };
  int count[2] = { 8, 3 }, near_stride = 16, far_stride = 32;
  void *from = bytes, *to = base[right];
  armci_giov_t list;
  armci_hdl_t handle;
  portolan_stats_t s;

  list.src_ptr_array = &from;
  list.dst_ptr_array = &to;
  list.bytes = 40;
  list.ptr_array_len = 1;
  CHECK_EQ(portolan_stats_reset(), 0);
  ARMCI_INIT_HANDLE(&handle);
  CHECK_OK(ARMCI_NbPut(bytes, base[right], BYTES, right, &handle));
  CHECK_OK(ARMCI_Wait(&handle));
  CHECK_OK(ARMCI_NbPut(bytes, base[right], BYTES, right, NULL));
  CHECK_OK(ARMCI_NbPutS(bytes, &near_stride, base[right], &far_stride, count, 1, right, NULL));
  CHECK_OK(ARMCI_NbPutV(&list, 1, right, NULL));
  CHECK_OK(ARMCI_NbGet(base[right], bytes, BYTES, right, NULL));
  CHECK_OK(ARMCI_NbAcc(ARMCI_ACC_DBL, &scale, numbers, check_at(base, right, 256), sizeof numbers, right, NULL));
  CHECK_OK(ARMCI_WaitAll());
  CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &scale, numbers, check_at(base, right, 256), sizeof numbers, right));
  CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &scale, numbers, check_at(base, right, 264), 8, right));
  s = stats();
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_PUT].calls, 4);
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_PUT].bytes, 2 * BYTES + 24 + 40);
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_GET].calls, 1);
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_GET].bytes, BYTES);
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_ACCUMULATE].calls, 1);
  CHECK_EQ(s.call[PORTOLAN_CALL_NON_BLOCKING_ACCUMULATE].bytes, sizeof numbers);
  CHECK_EQ(s.call[PORTOLAN_CALL_ACCUMULATE].calls, 2);
  CHECK_EQ(s.call[PORTOLAN_CALL_ACCUMULATE].bytes, sizeof numbers + 8);
  check_free_segment(base);
}

static void count(void)
{
  void **base = check_segment(1024);
  const int right = (me + 1) % nproc;
  char bytes[BYTES] = { 1 };
  portolan_stats_t s;
  long old;
  size_t size;

  CHECK_EQ(portolan_stats_reset(), 0);
  CHECK_EQ(stats().call[PORTOLAN_CALL_PUT].calls, 0);
  /* All ranks reset before the first put, because a rank counts what it serves from its own
   * reset. */
  MPI_Barrier(MPI_COMM_WORLD);
  portolan_region_begin("puts to the right");
  for (int i = 0; i < PUTS; i++)
    CHECK_OK(ARMCI_Put(bytes, base[right], BYTES, right));
  portolan_mark("all are put");
  portolan_region_end();
  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, check_at(base, right, 512), 1, right));
  ARMCI_Fence(right);
  ARMCI_Barrier();
  s = stats();
  CHECK_EQ(s.call[PORTOLAN_CALL_PUT].calls, PUTS);
  CHECK_EQ(s.call[PORTOLAN_CALL_PUT].bytes, PUTS * BYTES);
  CHECK_EQ(s.call[PORTOLAN_CALL_READ_MODIFY_WRITE].calls, 1);
  CHECK_EQ(s.call[PORTOLAN_CALL_FENCE].calls, 1);
  CHECK_EQ(s.call[PORTOLAN_CALL_BARRIER].calls, 1);
  CHECK_EQ(s.call[PORTOLAN_CALL_GET].calls, 0);
  CHECK_EQ(s.path[PORTOLAN_PATH_DIRECT].calls + s.path[PORTOLAN_PATH_MESSAGE].calls + s.path[PORTOLAN_PATH_RMA].calls,
           PUTS + 1);
  if (strcmp(portolan_path_name(right), "message") == 0) {
    CHECK(s.requests > 0 && s.served[PORTOLAN_SERVED_PUT].number >= PUTS, "%llu puts were served",
          (unsigned long long)s.served[PORTOLAN_SERVED_PUT].number);
    CHECK(s.most_waited_for >= 0 && s.most_waited_ns > 0, "no rank was waited for");
  }
  CHECK(s.seconds > 0 && s.seconds < 100, "%g s", s.seconds);
  CHECK(s.peak_memory_bytes > 1 << 20, "%llu bytes", (unsigned long long)s.peak_memory_bytes);

  /* A program that knows only the first members gets only these. */
  size = offsetof(portolan_stats_t, path);
  memset(&s, 0xee, sizeof s);
  s.size = size;
  CHECK_EQ(portolan_stats_get(&s), 0);
  CHECK_EQ(s.size, size);
  CHECK_EQ(s.call[PORTOLAN_CALL_PUT].calls, PUTS);
  CHECK(s.path[0].calls == 0xeeeeeeeeeeeeeeeeULL, "more was written than was asked for");
  s.size = 3;
  CHECK(portolan_stats_get(&s) != 0, "a structure of 3 bytes was accepted");
  CHECK(strstr(portolan_last_error(), "sizeof") != NULL, "%s", portolan_last_error());
  CHECK(portolan_stats_get(NULL) != 0, "a null place was accepted");
  check_free_segment(base);
}

int main(int argc, char **argv)
{
  char path[200];
  portolan_region_begin("too early");
  portolan_region_end();
  /* Each rank has its own directory: before MPI starts, the ranks cannot agree on one. */
  CHECK(mkdtemp(directory) != NULL, "there is no directory");
  setenv("PORTOLAN_TRACE", directory, 1);
  setenv("PORTOLAN_STATS", "1", 1);
  check_start("observe", &argc, &argv);
  count();
  count_nonblocking();
  ARMCI_Finalize();
  portolan_mark("too late");
  CHECK(has("puts to the right") && has("all are put"), "the trace has no regions");
  CHECK(!has("too early") && !has("too late"), "the trace has what is not of its time");
  snprintf(path, sizeof path, "%s/rank-%06d.ptrace", directory, me);
  CHECK_EQ(remove(path), 0);
  snprintf(path, sizeof path, "%s/.lock", directory); /* only rank 0 has one */
  remove(path);
  CHECK(rmdir(directory) == 0, "%s is not empty", directory);
  return check_end_mpi();
}
