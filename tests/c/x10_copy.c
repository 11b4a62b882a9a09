/* Get and put of contiguous bytes, blocking and on a switch: every size and alignment, globals,
 * stack and heap on both sides, order, empty transfers, bad arguments. */
// TEST: x10
#include "x10_check.h"

enum { GUARD = 64, LARGEST = 1 << 20 };

static const int sizes[] = { 1, 2, 3, 7, 8, 9, 16, 31, 64, 65, 1000, 4095, 4096, 4097, 65536,
                             65537, 300001, LARGEST };
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static unsigned char global[LARGEST + 2 * GUARD];

/* Transfers to the right neighbour's memory and back; adjacent bytes stay unchanged. */
static void sizes_at(unsigned char *memory, long room, int nb, const char *kind)
{
  void **table = x_addresses(memory);
  unsigned char *local = check_calloc(room), *want = check_calloc(room);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  x10_switch_t sw = x10_alloc_switch();

  CHECK(sw != NULL, "no switch");
  for (int i = 0; i < COUNT(sizes) && sizes[i] + 2 * GUARD <= room; i++) {
    const int size = sizes[i], to = GUARD / 2 + i % 5, from = i % 3;
    const long window = size + 2 * GUARD;

    check_fill(memory, 900 + me, window);
    check_fill(local + from, 50 + i * 8 + me, size);
    GOOD(x10_gfence());
    if (nb) {
      GOOD(x10_put_nb(local + from, x_at(table, right, to), size, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_put(local + from, x_at(table, right, to), size));
    x_meet();    /* a put is at the target when it returns */
    check_fill(want, 900 + me, window);
    check_fill(want + to, 50 + i * 8 + left, size);
    CHECK_BYTES(memory, want, window, "%s: %d bytes put at %d", kind, size, to);

    memset(local, 0x5a, (size_t)window);
    if (nb) {
      GOOD(x10_get_nb(x_at(table, right, to), local + from, size, sw));
      GOOD(x10_wait(sw));
    } else
      GOOD(x10_get(x_at(table, right, to), local + from, size));
    memset(want, 0x5a, (size_t)window);
    check_fill(want + from, 50 + i * 8 + me, size);
    CHECK_BYTES(local, want, window, "%s: %d bytes got to %d", kind, size, from);
    GOOD(x10_gfence());
  }
  GOOD(x10_free_switch(sw));
  free(local);
  free(want);
  free(table);
}

/* A get sees the put before it, and a later put wins. */
static void program_order(void)
{
  long cells[64] = { 0 }, out, in;
  void **table = x_addresses(cells);
  const int target = (me + 1) % nproc;

  for (long i = 1; i <= 200; i++) {
    const x10_gas_ref_t place = x_at(table, target, 8 * (i % 64));
    out = i * 1000003 + me;
    GOOD(x10_put(&out, place, sizeof out));
    in = -1;
    GOOD(x10_get(place, &in, sizeof in));
    CHECK_EQ(in, out);
    out = -out;
    GOOD(x10_put(&out, place, sizeof out));
    out = 0;
    GOOD(x10_get(place, &in, sizeof in));
    CHECK_EQ(in, -(i * 1000003 + me));
  }
  GOOD(x10_gfence());
  free(table);
}

/* Every place writes its own cell at every place, including itself. */
static void all_to_all(void)
{
  enum { CELL = 24 };
  unsigned char *cells = check_calloc(nproc * CELL), cell[CELL], want[CELL];
  void **table = x_addresses(cells);

  for (int round = 0; round < 10; round++) {
    for (int step = 0; step < nproc; step++) {
      const int p = (me + step) % nproc;
      check_fill(cell, round * 100 + me * 10 + p, CELL);
      GOOD(x10_put(cell, x_at(table, p, (long)me * CELL), CELL));
    }
    GOOD(x10_gfence());
    for (int p = 0; p < nproc; p++) {
      check_fill(want, round * 100 + p * 10 + me, CELL);
      CHECK_BYTES(cells + p * CELL, want, CELL, "round %d from %d", round, p);
    }
    GOOD(x10_gfence());
  }
  free(cells);
  free(table);
}

static void no_bytes(void)
{
  char cell = 9;
  void **table = x_addresses(&cell);
  x10_switch_t sw = x10_alloc_switch();

  for (int p = 0; p < nproc; p++) {
    const x10_gas_ref_t there = x_at(table, p, 0), nowhere = x10_make_gas_ref(p, NULL);
    GOOD(x10_get(there, NULL, 0));
    GOOD(x10_put(NULL, there, 0));
    GOOD(x10_get(nowhere, NULL, 0));
    GOOD(x10_put(NULL, nowhere, 0));
    GOOD(x10_get_nb(nowhere, NULL, 0, sw));
    GOOD(x10_put_nb(NULL, nowhere, 0, sw));
  }
  GOOD(x10_wait(sw));
  GOOD(x10_free_switch(sw));
  GOOD(x10_gfence());
  CHECK_EQ(cell, 9);
  free(table);
}

static void bad_arguments(void)
{
  long cell = 5, local = 6;
  void **table = x_addresses(&cell);
  const int right = (me + 1) % nproc;
  const x10_gas_ref_t there = x_at(table, right, 0);
  x10_switch_t sw = x10_alloc_switch();

  for (int i = 0; i < 3; i++) {
    const int place = i == 0 ? -1 : i == 1 ? nproc : 1 << 30;
    const x10_gas_ref_t bad = x10_make_gas_ref(place, &cell);
    FAILS(x10_get(bad, &local, 8), "place");
    FAILS(x10_put(&local, bad, 8), "place");
    FAILS(x10_get(bad, NULL, 0), "place");
    FAILS(x10_get_nb(bad, &local, 8, sw), "place");
    FAILS(x10_put_nb(&local, bad, 8, sw), "place");
  }
  FAILS(x10_get(there, &local, -1), "-1");
  FAILS(x10_put(&local, there, -8), "-8");
  FAILS(x10_get_nb(there, &local, -1, sw), "-1");
  FAILS(x10_put_nb(&local, there, -1, sw), "-1");
  FAILS(x10_get(there, NULL, 8), "null");
  FAILS(x10_put(NULL, there, 8), "null");
  FAILS(x10_get_nb(there, NULL, 8, sw), "null");
  FAILS(x10_put_nb(NULL, there, 8, sw), "null");
  FAILS(x10_get(x10_make_gas_ref(right, NULL), &local, 8), "x10_get");
  FAILS(x10_put(&local, x10_make_gas_ref(right, NULL), 8), "x10_put");
  FAILS(x10_get_nb(there, &local, 8, NULL), "switch");
  FAILS(x10_put_nb(&local, there, 8, NULL), "switch");
  GOOD(x10_wait(sw));
  GOOD(x10_free_switch(sw));
  FAILS(x10_get_nb(there, &local, 8, sw), "switch");
  CHECK_EQ(local, 6);
  GOOD(x10_gfence());
  CHECK_EQ(cell, 5);
  free(table);
}

/* An unmapped address at another place is an error, and both places continue. */
static void not_mapped(void)
{
  long local = 6, cell = 77;
  void **table = x_addresses(&cell);
  const int right = (me + 1) % nproc;
  const x10_gas_ref_t nowhere = x10_make_gas_ref(right, (void *)0x10);
  x10_switch_t sw = x10_alloc_switch();
  int rc;

  if (right == me) {                /* own memory is accessed without a check */
    GOOD(x10_free_switch(sw));
    free(table);
    return;
  }
  FAILS(x10_get(nowhere, &local, 8), "x10_get");
  FAILS(x10_put(&local, nowhere, 8), "x10_put");
  CHECK_EQ(local, 6);
  rc = x10_get_nb(nowhere, &local, 8, sw);      /* the error comes at once or from the wait */
  CHECK(x10_wait(sw) == X10_ERR_LAPI || rc == X10_ERR_LAPI, "a get of no memory succeeds");
  GOOD(x10_wait(sw));                           /* reported once only */
  CHECK_EQ(local, 6);
  GOOD(x10_get(x_at(table, right, 0), &local, 8));
  CHECK_EQ(local, 77);
  GOOD(x10_free_switch(sw));
  GOOD(x10_gfence());
  free(table);
}

int main(int argc, char **argv)
{
  unsigned char stack[16384], *heap;

  x_start("x10_copy", &argc, &argv);
  heap = check_calloc(LARGEST + 2 * GUARD);
  for (int nb = 0; nb < 2; nb++) {
    sizes_at(global, (long)sizeof global, nb, "global");
    sizes_at(heap, LARGEST + 2 * GUARD, nb, "heap");
    sizes_at(stack, (long)sizeof stack, nb, "stack");
  }
  program_order();
  all_to_all();
  no_bytes();
  bad_arguments();
  not_mapped();
  free(heap);
  return x_end();
}
