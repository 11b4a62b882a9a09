/* Put and get of contiguous blocks: all sizes and alignments, intact guard bytes, order at one
 * location, every kind of local memory, every pair of ranks. */
// TEST: armci moving
// TEST: n=2 build=static
#include "check.h"

enum { GUARD = 64, LARGEST = 1 << 20 };

static const int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64,
                             65, 100, 127, 128, 129, 1000, 4095, 4096, 4097, 4104, 16383, 65536,
                             65537, LARGEST - 1, LARGEST };
static const int shifts[] = { 0, 1, 3, 4, 8 };
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Puts to the right neighbour, which checks all of its memory; then gets the block back. */
static void sizes_and_shifts(void)
{
  const long room = LARGEST + 2 * GUARD;
  void **base = check_segment(room);
  unsigned char *local = check_calloc(room), *want = check_calloc(room);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;

  for (int i = 0; i < COUNT(sizes); i++) {
    const int size = sizes[i];
    const long window = size + 2 * GUARD;
    for (int j = 0; j < COUNT(shifts); j += size > 64 ? 3 : 1) {
      const int to = GUARD / 2 + shifts[j], from = shifts[(i + j) % COUNT(shifts)];
      const int seed = i * 16 + j;

      check_fill(base[me], 900 + me, window);
      check_fill(local + from, seed * 8 + me, size);
      ARMCI_Barrier();
      CHECK_OK(ARMCI_Put(local + from, check_at(base, right, to), size, right));
      ARMCI_Barrier();

      check_fill(want, 900 + me, window);
      check_fill(want + to, seed * 8 + left, size);
      CHECK_BYTES(base[me], want, window, "%d bytes put at %d", size, to);
      ARMCI_Barrier();

      memset(local, 0x5a, (size_t)window);
      CHECK_OK(ARMCI_Get(check_at(base, right, to), local + from, size, right));
      memset(want, 0x5a, (size_t)window);
      check_fill(want + from, seed * 8 + me, size);
      CHECK_BYTES(local, want, window, "%d bytes got to %d", size, from);
      ARMCI_Barrier();
    }
  }
  free(local);
  free(want);
  check_free_segment(base);
}

/* Program order without a fence: a get sees the put before it, and a later put wins. */
static void program_order(void)
{
  void **base = check_segment(4096);
  const int target = (me + 1) % nproc;
  long out, in;

  for (long i = 1; i <= 300; i++) {
    char *place = check_at(base, target, 8 * (i % 64));
    out = i * 1000003 + me;
    CHECK_OK(ARMCI_Put(&out, place, sizeof out, target));
    in = -1;
    CHECK_OK(ARMCI_Get(place, &in, sizeof in, target));
    CHECK_EQ(in, out);
    out = -out;
    CHECK_OK(ARMCI_Put(&out, place, sizeof out, target));
    out = 0;                        /* the source may be reused after a blocking put */
    CHECK_OK(ARMCI_Get(place, &in, sizeof in, target));
    CHECK_EQ(in, -(i * 1000003 + me));
  }
  check_free_segment(base);
}

/* Source and destination may be heap, stack, local ARMCI memory or a segment. */
static void kinds_of_memory(void)
{
  enum { LEN = 1000 };
  void **base = check_segment(4 * LEN), **other = check_segment(2 * LEN);
  unsigned char stack[LEN], want[LEN];
  unsigned char *heap = check_calloc(LEN), *local = ARMCI_Malloc_local(LEN);
  unsigned char *places[4];
  const int target = nproc - 1 - me;

  CHECK(local != NULL, "no local memory");
  places[0] = heap;
  places[1] = stack;
  places[2] = local;
  places[3] = (unsigned char *)other[me] + 7;
  for (int out = 0; out < 4; out++)
    for (int in = 0; in < 4; in++) {
      check_fill(want, 50 + 4 * out + in + me, LEN);
      memcpy(places[out], want, LEN);
      CHECK_OK(ARMCI_Put(places[out], check_at(base, target, out * LEN), LEN, target));
      ARMCI_Fence(target);
      memset(places[in], 0, LEN);
      CHECK_OK(ARMCI_Get(check_at(base, target, out * LEN), places[in], LEN, target));
      CHECK_BYTES(places[in], want, LEN, "memory %d to memory %d", out, in);
    }
  ARMCI_Barrier();                  /* within one rank's own segment */
  check_fill(base[me], 3, LEN);
  check_fill(want, 3, LEN);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Put(base[me], check_at(base, me, LEN), LEN, me));
  CHECK_BYTES(check_at(base, me, LEN), want, LEN, "own segment to own segment");
  ARMCI_Copy(want, heap, LEN);
  CHECK_BYTES(heap, want, LEN, "ARMCI_Copy");
  CHECK_OK(ARMCI_Free_local(local));
  CHECK_OK(ARMCI_Free_local(NULL));
  free(heap);
  check_free_segment(other);
  check_free_segment(base);
}

/* A transfer of no bytes does nothing, for any address. */
static void no_bytes(void)
{
  void **base = check_segment(64);
  char local[64];

  memset(base[me], 9, 64);
  ARMCI_Barrier();
  for (int p = 0; p < nproc; p++) {
    CHECK_OK(ARMCI_Put(local, base[p], 0, p));
    CHECK_OK(ARMCI_Get(base[p], local, 0, p));
    CHECK_OK(ARMCI_Put(NULL, base[p], 0, p));
    CHECK_OK(ARMCI_Get(base[p], NULL, 0, p));
    CHECK_OK(ARMCI_Put(NULL, NULL, 0, p));
    CHECK_OK(ARMCI_Get(NULL, NULL, 0, p));
    CHECK_OK(ARMCI_Put(local, check_at(base, p, 64), 0, p));
  }
  ARMCI_Barrier();
  for (int i = 0; i < 64; i++)
    CHECK_EQ(((char *)base[me])[i], 9);
  check_free_segment(base);
}

/* Every rank writes its own cell at every rank, many times. */
static void all_to_all(void)
{
  enum { ROUNDS = 20, CELL = 24 };
  void **base = check_segment((long)nproc * CELL);
  unsigned char cell[CELL], want[CELL];

  for (int round = 0; round < ROUNDS; round++) {
    for (int step = 0; step < nproc; step++) {
      const int p = (me + step) % nproc;
      check_fill(cell, round * 100 + me * 10 + p, CELL);
      CHECK_OK(ARMCI_Put(cell, check_at(base, p, (long)me * CELL), CELL, p));
    }
    ARMCI_AllFence();
    ARMCI_Barrier();
    for (int p = 0; p < nproc; p++) {
      check_fill(want, round * 100 + p * 10 + me, CELL);
      CHECK_BYTES(check_at(base, me, (long)p * CELL), want, CELL, "round %d from %d", round, p);
    }
    ARMCI_Barrier();
  }
  check_free_segment(base);
}

/* Direct access to the rank's own part, between operations of other ranks. */
static void own_access(void)
{
  void **base = check_segment(sizeof(long));
  const int left = (me + nproc - 1) % nproc;
  long *mine = base[me], seen = 0;

  for (long round = 1; round <= 20; round++) {
    ARMCI_Access_begin(mine);
    *mine = round * 100 + me;
    ARMCI_Access_end(mine);
    ARMCI_Barrier();
    CHECK_OK(ARMCI_Get(base[left], &seen, sizeof seen, left));
    CHECK_EQ(seen, round * 100 + left);
    ARMCI_Barrier();
    seen = -round;
    CHECK_OK(ARMCI_Put(&seen, base[left], sizeof seen, left));
    ARMCI_Barrier();
    ARMCI_Access_begin(mine);
    CHECK_EQ(*mine, -round);
    ARMCI_Access_end(mine);
    ARMCI_Barrier();
  }
  check_free_segment(base);
}

int main(int argc, char **argv)
{
  check_start("contiguous", &argc, &argv);
  sizes_and_shifts();
  program_order();
  kinds_of_memory();
  no_bytes();
  all_to_all();
  own_access();
  return check_end();
}
