/* Calls of asyncs: a transfer that would have to wait is refused before it starts, and no byte moves, also
 * not later. */
// TEST: x10
// TEST: n=2 node-size=1 path=rma
#include "x10_check.h"

#include <armci.h>
#include <cp.h>

enum { LEN = 4096, BLOCKS = 5000 };

static char source[LEN], target[LEN], *kept;
static char many[2 * BLOCKS];
static void **sources, **targets, **manies;
static volatile int codes[6], ran;
static int right, mapped;

static void x_refused(async_arg_t *args, int n)
{
  const int count[] = {1, BLOCKS}, stride[] = {2};
  long value[2] = {7, 7};
  (void)args;
  CHECK_EQ(n, 0);
  codes[0] = x10_get(x_at(sources, right, 0), kept, LEN);
  codes[1] = x10_put(kept, x_at(targets, right, 0), LEN);
  codes[2] = x10_put_value_long(value[0], x_at(targets, right, 8));
  (void)x10_get_value_long(x_at(sources, right, 0));
  codes[3] = x10_get_value_status();
  codes[4] = x10_get_s(x_at(manies, right, 0), (int *)stride, kept, (int *)stride, (int *)count, 1);
  codes[5] = cp_perform(mapped);
  ran++;
}

/* Each call is refused without any effect, or succeeds at once. */
static void refusals(void)
{
  static char before[LEN], composed[LEN];
  void **places = x_addresses(composed);
  const int simple = cp_create(right);

  sources = x_addresses(source);
  targets = x_addresses(target);
  manies = x_addresses(many);
  kept = check_calloc(2 * BLOCKS);
  memset(source, 's', LEN);
  memset(many, 'm', sizeof many);
  CHECK_EQ(cp_add_adxblock(simple, source, places[right], LEN), 0);
  mapped = cp_map(simple);
  CHECK(mapped > 0, "cp_map returned %d", mapped);
  CHECK_EQ(cp_sync(), 0);
  GOOD(x10_gfence());
  GOOD(x10_asyncSpawnInline((me + 1) % nproc, 0, x_refused));
  UNTIL(ran == 1);
  /* The buffer belongs to the program again if the get was refused. */
  const int left = (me + nproc - 1) % nproc;
  int refused = codes[0] != X10_OK, theirs;
  MPI_Sendrecv(&refused, 1, MPI_INT, right, 0, &theirs, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  memset(kept, refused ? '.' : 's', 2 * BLOCKS);
  GOOD(x10_gfence());
  check_nap(50);
  GOOD(x10_gfence());
  for (int i = 0; i < 5; i++)
    CHECK((codes[i] != X10_OK) == refused, "call %d returned %d", i, codes[i]);
  for (int i = 0; i < 2 * BLOCKS; i++)
    CHECK(!refused || kept[i] == '.', "byte %d was written later: %d", i, kept[i]);
  if (theirs)
    CHECK_BYTES(target, before, LEN, "%s", "a refused put");
  CHECK((codes[5] == CP_ERR_STATE) == refused, "cp_perform returned %d", codes[5]);
  CHECK_EQ(cp_arrived(), theirs ? 0 : 1);
  if (theirs)
    CHECK_BYTES(composed, before, LEN, "%s", "a refused cp_perform");
  CHECK_EQ(cp_sync(), 0);
  CHECK_EQ(cp_destroy(mapped), 0);
  free(kept);
  GOOD(x10_gfence());
}

int main(int argc, char **argv)
{
  x_start("x10_handlers", &argc, &argv);
  CHECK_EQ(ARMCI_Init(), 0);
  CHECK_EQ(cp_init(), 0);
  right = (me + 1) % nproc;
  refusals();
  CHECK_EQ(cp_finalize(), 0);
  CHECK_EQ(ARMCI_Finalize(), 0);
  return x_end();
}
