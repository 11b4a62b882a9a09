/* Known faults of another ARMCI over MPI, one check each. An argument selects a single check. */
// TEST: armci moving
#include "check.h"

#include <sys/statvfs.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* A fence to a rank outside of a live group's segment. */
static void fence_outside_group(void)
{
  ARMCI_Group alone;
  void *part[1] = { NULL };
  int first = 0;

  ARMCI_Group_create(1, &first, &alone);
  if (me == 0)
    CHECK_OK(ARMCI_Malloc_group(part, 100, &alone));
  for (int p = 0; p < nproc; p++)
    ARMCI_Fence(p);
  ARMCI_AllFence();
  ARMCI_Barrier();
  if (me == 0)
    CHECK_OK(ARMCI_Free_group(part[0], &alone));
  ARMCI_Group_free(&alone);
}

/* An outer stride that is not a multiple of the inner one. */
static void uneven_strides(void)
{
  void **base = check_segment(1024);
  const int target = (me + 1) % nproc;
  int far[2] = { 24, 100 }, near[2] = { 16, 64 }, count[3] = { 16, 4, 5 };
  unsigned char source[320], want[1024];

  check_fill(source, 1, sizeof source);
  CHECK_OK(ARMCI_PutS(source, near, base[target], far, count, 2, target));
  ARMCI_Barrier();
  memset(want, 0, sizeof want);
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 4; j++)
      memcpy(want + 100 * i + 24 * j, source + 64 * i + 16 * j, 16);
  CHECK_BYTES(base[me], want, 1024, "strides 24 and 100");
  check_free_segment(base);
}

/* A scaled non-blocking accumulate of a vector does not use freed memory. Tests small blocks and
 * blocks that are too large to be sent at once. */
static void scaled_nbaccv(void)
{
  enum { BLOCKS = 16, ROUNDS = 5 };
  static const int items[] = { 1, 8192 };
  const int target = (me + 1) % nproc;
  double scale = 3.0;
  armci_hdl_t handle;

#ifdef __GLIBC__
  mallopt(M_PERTURB, 0xa5);         /* overwrites freed memory */
#endif
  for (int size = 0; size < 2; size++) {
    const int n = items[size];
    void **base = check_segment(8L * n * BLOCKS), *from[BLOCKS], *to[BLOCKS];
    double *source = check_calloc(8L * n * BLOCKS), *mine = base[me];
    armci_giov_t iov = { .src_ptr_array = from, .dst_ptr_array = to, .bytes = 8 * n,
                         .ptr_array_len = BLOCKS };
    for (int i = 0; i < BLOCKS; i++) {
      from[i] = &source[i * n];
      to[i] = check_at(base, target, 8L * n * (BLOCKS - 1 - i));
      for (int j = 0; j < n; j++)
        source[i * n + j] = i + 0.5 * j;
    }
    for (int round = 0; round < ROUNDS; round++) {
      ARMCI_INIT_HANDLE(&handle);
      CHECK_OK(ARMCI_NbAccV(ARMCI_ACC_DBL, &scale, &iov, 1, target, &handle));
      CHECK_OK(ARMCI_Wait(&handle));
    }
    ARMCI_Barrier();
    for (int i = 0; i < BLOCKS; i++)
      for (int j = 0; j < n; j++) {
        const double got = mine[(BLOCKS - 1 - i) * n + j], want = ROUNDS * 3.0 * (i + 0.5 * j);
        CHECK(got == want, "block %d of %d items, item %d: %g, expected %g", i, n, j, got, want);
      }
    free(source);
    check_free_segment(base);
  }
#ifdef __GLIBC__
  mallopt(M_PERTURB, 0);
#endif
}

/* Polling a handle completes an operation on the calling rank itself. */
static void test_on_oneself(void)
{
  void **base = check_segment(64);
  double one = 1.0, value = 5.0;
  armci_hdl_t handle;

  for (int how = 0; how < 3; how++) {
    const double start = check_seconds();
    int rc;
    ARMCI_INIT_HANDLE(&handle);
    if (how == 0)
      CHECK_OK(ARMCI_NbPut(&value, base[me], 8, me, &handle));
    else if (how == 1)
      CHECK_OK(ARMCI_NbGet(base[me], &value, 8, me, &handle));
    else
      CHECK_OK(ARMCI_NbAcc(ARMCI_ACC_DBL, &one, &value, base[me], 8, me, &handle));
    while ((rc = ARMCI_Test(&handle)) == 1)
      CHECK(check_seconds() - start < CHECK_HANG, "operation %d on oneself is still pending", how);
    CHECK_EQ(rc, 0);
  }
  check_free_segment(base);
}

/* Transfers of no bytes at the end of a segment. */
static void nothing_past_the_end(void)
{
  void **base = check_segment(64);
  char byte = 1;
  int count = 0;
  for (int p = 0; p < nproc; p++) {
    CHECK_OK(ARMCI_Put(&byte, check_at(base, p, 64), 0, p));
    CHECK_OK(ARMCI_Get(check_at(base, p, 64), &byte, 0, p));
    CHECK_OK(ARMCI_PutS(&byte, NULL, check_at(base, p, 64), NULL, &count, 0, p));
  }
  check_free_segment(base);
}

/* Trylock of a mutex that another rank holds. */
static void trylock_returns(void)
{
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(1, &world);
  if (me == 0)
    ARMCIX_Lock_hdl(set, 0, nproc - 1);
  ARMCI_Barrier();
  if (me != 0)
    CHECK(ARMCIX_Trylock_hdl(set, 0, nproc - 1) != 0, "took a mutex that rank 0 holds");
  ARMCI_Barrier();                  /* rank 0 still holds it */
  if (me == 0)
    ARMCIX_Unlock_hdl(set, 0, nproc - 1);
  ARMCI_Barrier();
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(set));
}

static void reduce_works(void)
{
  double x[2] = { me + 1, -me };
  armci_msg_reduce(x, 2, (char[]){ "+" }, ARMCI_DOUBLE);
  if (me == 0) {
    CHECK(x[0] == nproc * (nproc + 1) / 2, "the sum is %g", x[0]);
    CHECK(x[1] == -nproc * (nproc - 1) / 2, "the other sum is %g", x[1]);
  }
}

/* Returns the kilobytes that the system can provide without swapping. */
static long available_kb(void)
{
  char line[200];
  long kb = -1;
  FILE *info = fopen("/proc/meminfo", "r");
  while (info && fgets(line, sizeof line, info))
    if (sscanf(line, "MemAvailable: %ld kB", &kb) == 1)
      break;
  if (info)
    fclose(info);
  return kb;
}

/* A strided transfer over more than 2 GiB: three rows, 1 GiB apart. */
static void wide_span(void)
{
  const long row = 1L << 30, size = 2 * row + 64;
  const char *directory = getenv("PORTOLAN_SHM_DIR");
  struct statvfs disk;
  int near[1] = { 64 }, far[1] = { 1 << 30 }, count[2] = { 64, 3 }, enough;
  unsigned char out[192], in[192];
  const int owner = nproc - 1;

  enough = available_kb() > (4L << 20) && statvfs(directory ? directory : "/dev/shm", &disk) == 0 &&
           (double)disk.f_bavail * (double)disk.f_frsize > 3e9;
  armci_msg_igop(&enough, 1, (char[]){ "min" });
  if (!enough) {
    if (me == 0)
      printf("NOTE peer_faults: too little memory for a span over 2 GiB, left out\n");
    return;
  }
  void **base = check_calloc(nproc * (long)sizeof(void *));
  CHECK_OK(ARMCI_Malloc(base, me == owner ? size : 0));
  for (int turn = 0; turn < nproc; turn++) {          /* one rank at a time */
    ARMCI_Barrier();
    if (turn != me)
      continue;
    check_fill(out, turn, sizeof out);
    CHECK_OK(ARMCI_PutS(out, near, base[owner], far, count, 1, owner));
    memset(in, 0, sizeof in);
    CHECK_OK(ARMCI_GetS(base[owner], far, in, near, count, 1, owner));
    CHECK_BYTES(in, out, 192, "rows a gibibyte apart");
    ARMCI_Fence(owner);
  }
  ARMCI_Barrier();
  if (me == owner)
    for (int i = 0; i < 3; i++) {
      check_fill(out, nproc - 1, sizeof out);
      CHECK_BYTES(check_at(base, me, i * row), out + 64 * i, 64, "row %d", i);
    }
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
}

static const struct {
  const char *name;
  void (*check)(void);
} checks[] = {
  { "fence_outside_group", fence_outside_group },
  { "uneven_strides", uneven_strides },
  { "scaled_nbaccv", scaled_nbaccv },
  { "test_on_oneself", test_on_oneself },
  { "nothing_past_the_end", nothing_past_the_end },
  { "trylock_returns", trylock_returns },
  { "reduce_works", reduce_works },
  { "wide_span", wide_span },
};

int main(int argc, char **argv)
{
  int ran = 0;
  check_start("peer_faults", &argc, &argv);
  for (int i = 0; i < (int)(sizeof checks / sizeof checks[0]); i++)
    if (argc < 2 || strcmp(argv[1], checks[i].name) == 0) {
      checks[i].check();
      ARMCI_Barrier();
      ran++;
    }
  CHECK(ran > 0, "no check named %s", argv[1]);
  return check_end();
}
