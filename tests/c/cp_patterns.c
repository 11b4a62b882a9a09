/* Exchange, ring, all-to-all and halo; many outstanding compositions; phases with a rank that
 * runs ahead; a rank that computes; all kinds of memory. */
// TEST: armci moving
#include "cp_check.h"

/* The example of the publication: P1 and P2 exchange. */
static void exchange(void)
{
  enum { LEN = 3000 };
  void **base = cp_segment(LEN);
  unsigned char out[LEN], want[LEN];
  const int other = me ^ 1;
  int comp = 0;

  if (other < nproc)
    comp = cp_block(other, out, base[other], LEN);
  for (int phase = 0; phase < 20; phase++) {
    check_fill(out, phase * 8 + me, LEN);
    CP(cp_sync());
    if (other < nproc) {
      CHECK_EQ(cp_perform(comp), 0);
      CHECK_EQ(cp_waitfor(1), 0);
      check_fill(want, phase * 8 + other, LEN);
      CHECK_BYTES(base[me], want, LEN, "exchange, phase %d", phase);
    }
  }
  if (other < nproc)
    CP(cp_destroy(comp));
  cp_free_segment(base);
}

/* Round the ring once for each rank; every rank is source and target. */
static void ring(void)
{
  void **base = cp_segment(sizeof(long));
  long token;
  const int comp = cp_block((me + 1) % nproc, &token, base[(me + 1) % nproc], sizeof token);

  token = me;
  for (int step = 1; step <= 3 * nproc; step++) {
    CP(cp_sync());
    CP(cp_perform(comp));
    CP(cp_waitfor(1));
    token = *(long *)base[me];
    CHECK_EQ(token, (me + 4 * nproc - step % nproc) % nproc);
  }
  CP(cp_destroy(comp));
  cp_free_segment(base);
}

/* A merged composition to all ranks, including the caller; then single ones to each, many times. */
static void all_to_all(void)
{
  enum { CELL = 40, TIMES = 25 };
  void **base = cp_segment((size_t)nproc * CELL);
  unsigned char *out = check_calloc((long)nproc * CELL), want[CELL];
  int each[64], all = CP(cp_create(me));

  CHECK(nproc <= 64, "too many ranks for this test");
  for (int p = 0; p < nproc; p++) {
    const int simple = CP(cp_create(p));
    CP(cp_add_adxblock(simple, out + p * CELL, check_at(base, p, (long)me * CELL), CELL));
    each[p] = CP(cp_map(simple));
    const int more = CP(cp_merge(all, simple));
    CP(cp_destroy(all));
    CP(cp_destroy(simple));
    all = more;
  }
  CHECK_EQ(cp_comptype(all), CP_COMPTYPE_MERGED);
  const int mapped = CP(cp_map(all));
  for (int phase = 0; phase < 10; phase++) {
    for (int p = 0; p < nproc; p++)
      check_fill(out + p * CELL, phase * 64 + me * 8 + p, CELL);
    CP(cp_sync());
    if (phase % 2 == 0) {
      CP(cp_perform(mapped));
      CP(cp_waitfor(nproc));
    } else {
      for (int i = 0; i < TIMES; i++)
        for (int p = 0; p < nproc; p++)
          CP(cp_perform(each[(me + p) % nproc]));
      CP(cp_waitfor(nproc * TIMES));
      CHECK_EQ(cp_arrived(), nproc * TIMES);
    }
    for (int p = 0; p < nproc; p++) {
      check_fill(want, phase * 64 + p * 8 + me, CELL);
      CHECK_BYTES(check_at(base, me, (long)p * CELL), want, CELL, "phase %d from %d", phase, p);
    }
  }
  CP(cp_destroy(mapped));
  CP(cp_destroy(all));
  for (int p = 0; p < nproc; p++)
    CP(cp_destroy(each[p]));
  free(out);
  cp_free_segment(base);
}

/* Each rank has a strip: rows go to both neighbours, columns stay local. */
static void halo(void)
{
  enum { ROWS = 6, COLUMNS = 9 };
  typedef double strip[ROWS + 2][COLUMNS];
  void **base = cp_segment(sizeof(strip));
  strip *mine = base[me];
  const int up = (me + nproc - 1) % nproc, down = (me + 1) % nproc;
  strip *above = base[up], *below = base[down];
  const unsigned row = COLUMNS * sizeof(double);
  const int first = CP(cp_create(up)), last = CP(cp_create(down));

  /* one row as a block, the other as a slice of single numbers */
  CP(cp_add_adxblock(first, (*mine)[1], (*above)[ROWS + 1], row));
  CP(cp_add_adxslice(last, (*mine)[ROWS], (void *)sizeof(double), sizeof(double), COLUMNS,
                     (*below)[0], (void *)(size_t)row, row, 1));
  const int merged = CP(cp_merge(first, last));
  const int mapped = CP(cp_map(merged));
  for (int phase = 0; phase < 30; phase++) {
    for (int i = 1; i <= ROWS; i++)
      for (int j = 0; j < COLUMNS; j++)
        (*mine)[i][j] = phase * 1e6 + me * 1e4 + i * 100 + j;
    CP(cp_sync());
    CP(cp_perform(mapped));
    CP(cp_waitfor(up == down ? 1 : 2)); /* one from each neighbour, which may be the same rank */
    for (int j = 0; j < COLUMNS; j++) {
      const double top = phase * 1e6 + up * 1e4 + ROWS * 100 + j;
      const double bottom = phase * 1e6 + down * 1e4 + 100 + j;
      CHECK((*mine)[0][j] == top, "phase %d: above is %g, not %g", phase, (*mine)[0][j], top);
      CHECK((*mine)[ROWS + 1][j] == bottom, "phase %d: below is %g, not %g", phase,
            (*mine)[ROWS + 1][j], bottom);
    }
    CP(cp_sync());
  }
  CP(cp_destroy(mapped));
  CP(cp_destroy(merged));
  CP(cp_destroy(first));
  CP(cp_destroy(last));
  cp_free_segment(base);
}

/* Global, stack and heap memory of another rank. */
static unsigned char global[500];

static void other_memory(void)
{
  unsigned char stack[500], out[500], want[500];
  unsigned char *heap = check_calloc(500);
  void **places[3];
  const int next = (me + 1) % nproc, before = (me + nproc - 1) % nproc;

  places[0] = cp_addresses(global);
  places[1] = cp_addresses(stack);
  places[2] = cp_addresses(heap);
  for (int i = 0; i < 3; i++) {
    const int simple = CP(cp_create(next));
    unsigned char *there = places[i][next], *here = places[i][me];
    CP(cp_add_adxblock(simple, out + 100, there + 3, 200));
    for (int k = 0; k < 50; k++) /* every other byte of the rest */
      CP(cp_add_adxpair(simple, out + 300 + k, there + 300 + 2 * k));
    const int mapped = CP(cp_map(simple));
    memset(here, 0x33, 500);
    check_fill(out, me + i, 500);
    CP(cp_sync());
    CP(cp_perform(mapped));
    CP(cp_waitfor(1));
    memset(want, 0x33, 500);
    check_fill(out, before + i, 500);
    memcpy(want + 3, out + 100, 200);
    for (int k = 0; k < 50; k++)
      want[300 + 2 * k] = out[300 + k];
    CHECK_BYTES(here, want, 500, "memory of kind %d", i);
    CP(cp_sync());
    CP(cp_destroy(mapped));
    CP(cp_destroy(simple));
    free(places[i]);
  }
  free(heap);
}

/* Rank 0 performs while the others compute, and does not wait for them. */
static void computing(void)
{
  enum { LEN = 200000 };
  void **base = cp_segment(LEN);
  unsigned char *out = check_calloc(LEN);
  int all = CP(cp_create(0)), level;

  /* Without a progress thread, nothing arrives from another node while a rank computes. */
  MPI_Query_thread(&level);
  check_fill(out, 5, LEN);
  for (int p = 1; p < nproc; p++) {
    const int simple = CP(cp_create(p));
    CP(cp_add_adxblock(simple, out, base[p], LEN));
    all = CP(cp_merge(all, simple));
  }
  const int mapped = CP(cp_map(all));
  CP(cp_sync());
  if (me == 0) {
    CP(cp_perform(mapped));
    CP(cp_waitfor(0));              /* the source may be reused */
    memset(out, 0, LEN);
  } else {
    const volatile unsigned char *last = (unsigned char *)base[me] + LEN - 1;
    /* calls nothing until the last byte has arrived */
    while (level == MPI_THREAD_MULTIPLE && *last != out[LEN - 1]) {}
    CP(cp_waitfor(1));
    CHECK_BYTES(base[me], out, LEN, "what came while rank %d computed", me);
  }
  CP(cp_destroy(mapped));
  free(out);
  cp_free_segment(base);
}

int main(int argc, char **argv)
{
  cp_start("cp_patterns", &argc, &argv);
  exchange();
  ring();
  all_to_all();
  halo();
  other_memory();
  computing();
  return cp_end();
}
