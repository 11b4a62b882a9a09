/* Start and end: every call before and after, repeated lives, operations left under way, beside
 * ARMCI, with MPI started by X10Lib ("alone") or finalized first ("after"). */
// TEST: x10
// TEST: n=2 -- {alone,after}
#include "x10_check.h"

static volatile long hits;
static void hit(async_arg_t *args, int n) { hits += n > 0 ? args[0] : 1; }
static void other(async_arg_t *args, int n) { (void)args; (void)n; hits += 100; }

/* Before x10_init and after x10_finalize. x10_invalid.c tests every call. */
static void refused(void)
{
  long cell = 0;
  const x10_gas_ref_t here = x10_make_gas_ref(0, &cell);

  CHECK_EQ(x10_gas2place(here), 0);
  CHECK(x10_gas2addr(here) == &cell, "a reference has lost its address");
  FAILS(x10_finalize(), "not initialised");
  FAILS(x10_gfence(), "not initialised");
  FAILS(x10_put_value_int(1, here), "not initialised");
  FAILS(x10_asyncSpawnInline(0, 0, hit), "not initialised");
  CHECK(x10_alloc_switch() == NULL, "a switch, but nothing is initialised");
  CHECK_EQ(cell + hits, 0);
}

/* Uses X10Lib enough to see that it works. */
static void use(void)
{
  long cell = -1, seen = 0;
  void **table = x_addresses(&cell);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  int value;

  GOOD(x10_getenv(X10_NUM_PLACES, &value));
  CHECK_EQ(value, nproc);
  hits = 0;
  GOOD(x10_gfence());
  GOOD(x10_put_value_long(500 + me, x_at(table, right, 0)));
  GOOD(x10_asyncSpawnInline(right, 1, hit, 3));
  for (int i = 0; i < 10; i++)
    GOOD(x10_asyncSpawnInlineAgg(right, 1, hit, 1, 1));
  GOOD(x10_fence());                /* sends what is collected, and waits until it has run */
  x_meet();
  CHECK_EQ(hits, 13);
  CHECK_EQ(cell, 500 + left);
  GOOD(x10_get(x_at(table, right, 0), &seen, sizeof seen));
  CHECK_EQ(seen, 500 + me);
  GOOD(x10_gfence());
  hits = 0;
  GOOD(x10_gfence());
  free(table);
}

/* Leaves switches, transfers and asyncs under way. Spawned asyncs must still run. */
static void litter(void)
{
  static long cells[4];
  void **table = x_addresses(cells);

  for (int i = 0; i < 4; i++) {
    x10_switch_t sw = x10_alloc_switch();
    GOOD(x10_put_value_long_nb(i, x_at(table, (me + i) % nproc, 8L * i), sw));
    GOOD(x10_decrement_switch(sw));
  }
  for (int i = 0; i < 25; i++)
    GOOD(x10_asyncSpawnInlineAgg((me + 1) % nproc, 1, hit, 9, 2));
  GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, hit, 50));
  free(table);
}

static int alone(void)
{
  int up = 0, down = 0;

  check_name = "x10_lifecycle";
  GOOD(x10_init(NULL, 0));
  MPI_Initialized(&up);
  CHECK_EQ(up, 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  use();
  GOOD(x10_finalize());
  MPI_Finalized(&down);
  CHECK_EQ(down, 1);
  refused();
  CHECK_EQ(x10_init(NULL, 0), X10_ERR_LAPI);    /* MPI cannot start twice */
  return check_pass();
}

int main(int argc, char **argv)
{
  x10_async_handler_t table[3] = { hit, NULL, other };
  int epoch;

  refused();
  if (argc > 1 && strcmp(argv[1], "alone") == 0)
    return alone();
  check_start_mpi("x10_lifecycle", &argc, &argv);
  const int after = argc > 1 && strcmp(argv[1], "after") == 0;
  refused();

  for (int life = 0; life < 4; life++) {
    const x10_switch_t stale = (x10_switch_t)(size_t)1;
    GOOD(x10_init(life % 2 ? table : NULL, life % 2 ? 3 : life - 1));
    FAILS(x10_init(NULL, 0), "already");
    GOOD(x10_getenv(X10_EPOCH_NUM, &epoch));
    CHECK_EQ(epoch, life + 1);
    use();
    if (life % 2) {
      GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, (async_func_t *)(size_t)1, 1));
      GOOD(x10_asyncSpawnInline((me + 1) % nproc, 1, (async_func_t *)(size_t)3, 1));
      GOOD(x10_gfence());
      CHECK_EQ(hits, 101);
      GOOD(x10_gfence());
      FAILS(x10_asyncSpawnInline(me, 1, (async_func_t *)(size_t)2, 1), "index 2");
      hits = 0;
    } else
      FAILS(x10_asyncSpawnInline(me, 1, (async_func_t *)(size_t)1, 1), "index 1");
    FAILS(x10_wait(stale), "switch");
    GOOD(x10_gfence());
    litter();
    GOOD(x10_finalize());
    CHECK_EQ(hits, 100);
    hits = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    refused();
  }

  /* Beside ARMCI, started and ended in either order. */
  for (int order = 0; order < 4; order++) {
    if (order % 2)
      CHECK_OK(ARMCI_Init());
    GOOD(x10_init(NULL, 0));
    if (order % 2 == 0)
      CHECK_OK(ARMCI_Init());
    void **base = check_segment(64);
    GOOD(x10_put_value_long(me + 7, x_at(base, (me + 1) % nproc, 0)));
    GOOD(x10_gfence());
    CHECK_EQ(*(long *)base[me], (me + nproc - 1) % nproc + 7);
    use();
    if (order / 2) {
      GOOD(x10_finalize());
      refused();
      check_free_segment(base);
      CHECK_OK(ARMCI_Finalize());
    } else {
      check_free_segment(base);
      CHECK_OK(ARMCI_Finalize());
      use();
      GOOD(x10_finalize());
    }
  }

  GOOD(x10_init(table, 3));
  use();
  if (!after)
    return x_end();
  MPI_Finalize();
  GOOD(x10_finalize());
  refused();
  return check_pass();
}
