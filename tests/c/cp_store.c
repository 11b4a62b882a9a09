/* Compositions in files: store and load in one run, or `write` and then `read` in two runs. */
// TEST: armci moving
// TEST: n=1 -- {write,read}
// TEST: n=3 -- {write,read}
#include "cp_check.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LEN = 5000, ROWS = 40, WIDTH = 24 };

static char directory[200];

/* Uses one directory for both runs with the same number of ranks. */
static void use_directory(void)
{
  const char *tmp = getenv("TMPDIR");
  struct stat made;
  snprintf(directory, sizeof directory, "%s/portolan-cp-store-%ld-%d", tmp ? tmp : "/tmp",
           (long)getuid(), nproc);
  CHECK(mkdir(directory, 0700) == 0 || errno == EEXIST, "cannot make %s", directory);
  CHECK(lstat(directory, &made) == 0 && S_ISDIR(made.st_mode) && made.st_uid == getuid(),
        "%s belongs to another user", directory);
  setenv("PORTOLAN_COMPOSE_DIR", directory, 1);
}

static const char *file_of(int number, int rank)
{
  static char name[300];
  snprintf(name, sizeof name, "%s/compose-%d.%d", directory, number, rank);
  return name;
}

/* Rows to the next rank, and a block to the caller. */
static int compose(void **from, void **to)
{
  const int next = (me + 1) % nproc;
  const int rows = CP(cp_create(next)), block = CP(cp_create(me));
  CP(cp_add_adxslice(rows, from[me], (void *)100, WIDTH, ROWS, to[next], (void *)(long)(WIDTH / 3),
                     WIDTH / 3, 3 * ROWS));
  CP(cp_add_adxpair(rows, check_at(from, me, 7), check_at(to, next, 4000)));
  CP(cp_add_adxblock(block, check_at(from, me, 4321), check_at(to, me, 4444), 99));
  return CP(cp_merge(rows, block));
}

static void performs(int mapped, void **from, void **to, const char *what)
{
  unsigned char *want = check_calloc(LEN), *theirs = check_calloc(LEN);
  const int before = (me + nproc - 1) % nproc;

  check_fill(from[me], 30 + me, LEN);
  memset(to[me], 0, LEN);
  CP(cp_sync());
  CP(cp_perform(mapped));
  CP(cp_waitfor(nproc > 1 ? 2 : 1));
  check_fill(theirs, 30 + before, LEN);
  for (int i = 0; i < ROWS; i++)
    memcpy(want + i * WIDTH, theirs + i * 100, WIDTH);
  want[4000] = theirs[7];
  check_fill(theirs, 30 + me, LEN);
  memcpy(want + 4444, theirs + 4321, 99);
  CHECK_BYTES(to[me], want, LEN, "%s", what);
  CP(cp_sync());
  free(want);
  free(theirs);
}

static void store_all(void **from, void **to)
{
  const int merged = compose(from, to), mapped = CP(cp_map(merged));
  const int simple = CP(cp_create(me));
  CHECK_EQ(cp_store(1, merged), 0);
  CHECK_EQ(cp_store(1, mapped), 0);
  CHECK_EQ(cp_store(1, simple), 0);
  CP(cp_add_adxblock(simple, from[me], to[me], 10));
  CHECK_EQ(cp_store(2, simple), 0);
  CP(cp_destroy(merged));
  CP(cp_destroy(mapped));
  CP(cp_destroy(simple));
}

static void load_all(void **from, void **to)
{
  const int merged = CP(cp_load(1)), mapped = CP(cp_load(1)), empty = CP(cp_load(1));
  const int simple = CP(cp_load(2));
  CHECK_EQ(cp_comptype(merged), CP_COMPTYPE_MERGED);
  CHECK_EQ(cp_comptype(mapped), CP_COMPTYPE_MAPPED);
  CHECK_EQ(cp_comptype(empty), CP_COMPTYPE_SIMPLE);
  CHECK_EQ(cp_comptype(simple), CP_COMPTYPE_SIMPLE);
  performs(mapped, from, to, "the mapped one");
  const int again = CP(cp_map(merged));
  performs(again, from, to, "the merged one, mapped");
  CP(cp_add_adxblock(empty, from[me], to[me], 8)); /* a loaded composition can be extended */
  CP_FAILS(cp_load(1), CP_ERR_ARGUMENT, "no further");
  CP_FAILS(cp_load(2), CP_ERR_ARGUMENT, "no further");
  CP(cp_rewind(2));
  CP(cp_destroy(CP(cp_load(2))));
}

/* The first store of a run replaces the file. */
static void replaced(void **from, void **to)
{
  const int good = CP(cp_create(me));
  CP(cp_add_adxblock(good, from[me], to[me], 5));
  CHECK_EQ(cp_store(4, good), 0);
  CP(cp_destroy(CP(cp_load(4))));
  CP_FAILS(cp_load(4), CP_ERR_ARGUMENT, "no further");
  CP(cp_destroy(good));
}

/* The first store of a run fails, and the records of the earlier run stay. */
static void full(void **from, void **to)
{
  struct rlimit limit, small;
  const int comp = CP(cp_create(me));

  CP(cp_add_adxslice(comp, from[me], (void *)100, WIDTH, ROWS, to[me], (void *)(long)WIDTH, WIDTH,
                     ROWS));
  CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = limit;
  small.rlim_cur = 16;
  signal(SIGXFSZ, SIG_IGN);
  CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  CP_FAILS(cp_store(2, comp), CP_ERR_ARGUMENT, "cannot write");
  CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, SIG_DFL);
  CP(cp_destroy(comp));
}

int main(int argc, char **argv)
{
  const char *part = argc > 1 ? argv[1] : "";
  check_start_mpi("cp_store", &argc, &argv);
  use_directory();
  CP(cp_init());
  void **from = cp_segment(LEN), **to = cp_segment(LEN);
  if (strcmp(part, "read") != 0)
    store_all(from, to);
  if (strcmp(part, "read") == 0)
    full(from, to);
  if (strcmp(part, "write") != 0) {
    load_all(from, to);
    replaced(from, to);
    /* A composition does not load if its memory no longer exists. */
    CP(cp_rewind(1));
    cp_free_segment(to);
    CP_FAILS(cp_load(1), CP_ERR_ADDRESS, "not allocated in this run");
    for (int number = 1; number <= 4; number++)
      unlink(file_of(number, me));
  } else {
    cp_free_segment(to);
  }
  cp_free_segment(from);
  CP(cp_finalize());
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0 && strcmp(part, "write") != 0)
    rmdir(directory);
  return check_end_mpi();
}
