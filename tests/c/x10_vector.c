/* Vector transfers: several places in one call, several elements of different block sizes, blocking
 * and on a switch, empty and bad transfers. */
// TEST: x10
#include "x10_check.h"

enum { BLOCKS = 40, BLOCK = 56, ROOM = BLOCKS * BLOCK };

/* Returns the remote offset of block b of an element with this block size. */
static long spot(int b, int bytes, int element)
{
  return ((b * 7 + element * 3) % BLOCKS) * BLOCK + bytes % 8;
}

/* Every place writes scattered blocks into its own region of every place. */
static void scattered(int nb)
{
  static const int bytes[] = { 8, 1, 33, 48 };
  enum { ELEMENTS = 4 };
  unsigned char *region = check_calloc((long)nproc * ROOM), *want = check_calloc((long)nproc * ROOM);
  unsigned char *local = check_calloc((long)ELEMENTS * ROOM), *back = check_calloc((long)ELEMENTS * ROOM);
  void **table = x_addresses(region);
  x10_giov_ref_t put[ELEMENTS], get[ELEMENTS];
  x10_gas_ref_t remote[ELEMENTS][BLOCKS];
  void *from[ELEMENTS][BLOCKS], *to[ELEMENTS][BLOCKS];
  x10_switch_t sw = x10_alloc_switch();

  check_fill(local, 11 + me, (long)ELEMENTS * ROOM);
  for (int e = 0; e < ELEMENTS; e++) {
    const int count = BLOCKS / ELEMENTS;
    for (int b = 0; b < count; b++) {
      /* elements have disjoint blocks, so their order does not matter */
      const int p = (me + b + e) % nproc;
      const long at = spot(b * ELEMENTS + e, bytes[e], 0);
      remote[e][b] = x_at(table, p, (long)me * ROOM + at);
      from[e][b] = local + (long)e * ROOM + b * BLOCK + 3;
      to[e][b] = back + (long)e * ROOM + b * BLOCK + 5;
    }
    put[e] = (x10_giov_ref_t){ remote[e], from[e], bytes[e], count };
    get[e] = (x10_giov_ref_t){ remote[e], to[e], bytes[e], count };
  }
  GOOD(x10_gfence());
  if (nb) {
    GOOD(x10_put_v_nb(put, ELEMENTS, sw));
    GOOD(x10_wait(sw));
  } else
    GOOD(x10_put_v(put, ELEMENTS));
  x_meet();

  unsigned char *theirs = check_calloc((long)ELEMENTS * ROOM);
  for (int q = 0; q < nproc; q++) {
    check_fill(theirs, 11 + q, (long)ELEMENTS * ROOM);
    for (int e = 0; e < ELEMENTS; e++)
      for (int b = 0; b < BLOCKS / ELEMENTS; b++)
        if ((q + b + e) % nproc == me)
          memcpy(want + (long)q * ROOM + spot(b * ELEMENTS + e, bytes[e], 0),
                 theirs + (long)e * ROOM + b * BLOCK + 3, (size_t)bytes[e]);
  }
  CHECK_BYTES(region, want, (long)nproc * ROOM, "put_v, nb %d", nb);

  if (nb) {
    GOOD(x10_get_v_nb(get, ELEMENTS, sw));
    GOOD(x10_wait(sw));
  } else
    GOOD(x10_get_v(get, ELEMENTS));
  memset(theirs, 0, (size_t)ELEMENTS * ROOM);
  for (int e = 0; e < ELEMENTS; e++)
    for (int b = 0; b < BLOCKS / ELEMENTS; b++)
      memcpy(theirs + (long)e * ROOM + b * BLOCK + 5, local + (long)e * ROOM + b * BLOCK + 3,
             (size_t)bytes[e]);
  CHECK_BYTES(back, theirs, (long)ELEMENTS * ROOM, "get_v, nb %d", nb);
  GOOD(x10_gfence());
  GOOD(x10_free_switch(sw));
  free(theirs);
  free(region);
  free(want);
  free(local);
  free(back);
  free(table);
}

/* Thousands of adjacent blocks, and blocks at the same address: the last one wins. */
static void many(void)
{
  enum { MANY = 9000 };
  int *cells = check_calloc(MANY * 4L), *values = check_calloc(MANY * 4L);
  x10_gas_ref_t *remote = check_calloc(MANY * (long)sizeof *remote);
  void **local = check_calloc(MANY * (long)sizeof *local), **table = x_addresses(cells);
  x10_giov_ref_t v = { remote, local, 4, MANY };
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;

  for (int i = 0; i < MANY; i++) {
    values[i] = i * 5 + me;
    local[i] = &values[i];
    remote[i] = x_at(table, right, 4L * (i / 100 % 2 ? i : MANY - 1 - i));
  }
  GOOD(x10_put_v(&v, 1));
  x_meet();
  int *want = check_calloc(MANY * 4L);
  for (int i = 0; i < MANY; i++)
    want[i / 100 % 2 ? i : MANY - 1 - i] = i * 5 + left;
  CHECK_BYTES(cells, want, MANY * 4L, "%d blocks", MANY);
  GOOD(x10_gfence());
  free(want);
  free(cells);
  free(values);
  free(remote);
  free(local);
  free(table);
}

static void empty_and_bad(void)
{
  long cell = 5, here = 6;
  void **table = x_addresses(&cell), *local[2] = { &here, &here };
  x10_gas_ref_t remote[2] = { x_at(table, me, 0), x_at(table, nproc - 1, 0) };
  x10_giov_ref_t v = { remote, local, 8, 0 };
  x10_switch_t sw = x10_alloc_switch();

  GOOD(x10_put_v(NULL, 0));
  GOOD(x10_get_v(NULL, 0));
  GOOD(x10_get_v_nb(NULL, 0, sw));
  GOOD(x10_put_v_nb(NULL, 0, sw));
  GOOD(x10_put_v(&v, 1));           /* no blocks */
  v.remote = NULL;
  v.local = NULL;
  GOOD(x10_put_v(&v, 1));
  v = (x10_giov_ref_t){ remote, local, 0, 2 };
  local[1] = NULL;                  /* blocks of zero bytes */
  GOOD(x10_put_v(&v, 1));
  GOOD(x10_get_v_nb(&v, 1, sw));

  v.bytes = 8;
  FAILS(x10_put_v(&v, 1), "null");
  FAILS(x10_get_v(&v, 1), "null");
  local[1] = &here;
  FAILS(x10_put_v(&v, -1), "-1");
  FAILS(x10_get_v_nb(&v, -1, sw), "-1");
  FAILS(x10_get_v(NULL, 1), "null");
  FAILS(x10_put_v_nb(&v, 1, NULL), "switch");
  v.bytes = -8;
  FAILS(x10_put_v(&v, 1), "-8");
  v.bytes = 8;
  v.count = -2;
  FAILS(x10_get_v(&v, 1), "-2");
  v.count = 2;
  v.remote = NULL;
  FAILS(x10_get_v(&v, 1), "null");
  v.remote = remote;
  v.local = NULL;
  FAILS(x10_put_v(&v, 1), "null");
  v.local = local;
  remote[1].place = nproc;          /* the first block must not move either */
  FAILS(x10_put_v(&v, 1), "place");
  FAILS(x10_get_v_nb(&v, 1, sw), "place");
  GOOD(x10_wait(sw));
  GOOD(x10_gfence());
  CHECK_EQ(cell, 5);
  CHECK_EQ(here, 6);
  GOOD(x10_free_switch(sw));
  free(table);
}

int main(int argc, char **argv)
{
  x_start("x10_vector", &argc, &argv);
  scattered(0);
  scattered(1);
  many();
  empty_and_bad();
  return x_end();
}
