/* Random compositions, built by every cp_add call, against a model; one of a million pairs. */
// TEST: armci moving
#include "cp_check.h"

enum { SOURCE = 4000, PLACE = 3000, MOST = 4 * PLACE };

/* The model of one composition: the local offset of the source of each remote byte, or -1 if the
 * byte is not written. */
static int model[PLACE];
static unsigned long long state;

static int below(int bound)
{
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (unsigned)bound);
}

/* Adds a random item at offset `at` of the destination and returns its end. All ranks draw the same
 * numbers; if comp < 0, only the model is updated. */
static int add(int comp, unsigned char *from, unsigned char *to, int at)
{
  void *local[64], *remote[64];
  unsigned length[64];
  const int kind = below(5), n = 1 + below(20);
  int end = at;

  if (kind == 0) {
    const int here = below(SOURCE);
    model[at] = here;
    if (comp >= 0)
      CHECK_EQ(cp_add_adxpair(comp, from + here, to + at), 0);
    return at + 1;
  }
  if (kind == 1) {
    for (int i = 0; i < n; i++, end += 1 + below(3)) {
      const int here = below(SOURCE);
      model[end] = here;
      local[n - 1 - i] = from + here;
      remote[n - 1 - i] = to + end;
    }
    if (comp >= 0)
      CHECK_EQ(cp_add_adxpairvector(comp, local, remote, (unsigned)n), 0);
    return end;
  }
  if (kind == 2) {
    const int len = 1 + below(100), here = below(SOURCE - 100);
    for (int i = 0; i < len; i++)
      model[at + i] = here + i;
    if (comp >= 0)
      CHECK_EQ(cp_add_adxblock(comp, from + here, to + at, (unsigned)len), 0);
    return at + len;
  }
  if (kind == 3) {
    for (int i = 0; i < n; i++) {
      const int len = below(12), here = below(SOURCE - 12);
      for (int k = 0; k < len; k++)
        model[end + k] = here + k;
      local[i] = len ? from + here : NULL;
      remote[i] = len ? to + end : NULL;
      length[i] = (unsigned)len;
      end += len + below(4);
    }
    if (comp >= 0)
      CHECK_EQ(cp_add_adxblockvector(comp, local, remote, length, (unsigned)n), 0);
    return end;
  }
  { /* a slice, split into blocks of a bytes locally and b bytes remotely */
    const int a = 1 + below(6), b = 1 + below(6), many = 1 + below(3), total = a * b * many;
    const int here_step = a + below(10), there_step = b + below(5);
    const int down = below(2), here = below(1000) + (down ? 2000 : 0);
    const long step = down ? -here_step : here_step;
    for (int k = 0; k < total; k++)
      model[at + k / b * there_step + k % b] = (int)(here + k / a * step + k % a);
    if (comp >= 0)
      CHECK_EQ(cp_add_adxslice(comp, from + here, (void *)step, (unsigned)a, (unsigned)(total / a),
                               to + at, (void *)(long)there_step, (unsigned)b,
                               (unsigned)(total / b)), 0);
    return at + total / b * there_step;
  }
}

/* Builds the composition that src sends to dst in a round. */
static void compose(int comp, int round, int src, int dst, void *from, void *to)
{
  state = (unsigned long long)(round * 4096 + src * 64 + dst) * 77777 + 5;
  for (int i = 0; i < PLACE; i++)
    model[i] = -1;
  for (int at = below(30); at < PLACE - 400; at += below(60))
    at = add(comp, from, to, at);
}

static unsigned char static_source[SOURCE];

static void random_compositions(void)
{
  void **base = cp_segment((size_t)nproc * PLACE), **source = cp_segment(SOURCE);
  unsigned char *want = check_calloc((long)nproc * PLACE), *theirs = check_calloc(SOURCE);

  for (int round = 0; round < 12; round++) {
    unsigned char *from = round % 3 == 2 ? static_source : source[me];
    int merged = 0;
    for (int p = 0; p < nproc; p++) {
      const int simple = CP(cp_create(p));
      compose(simple, round, me, p, from, check_at(base, p, (long)me * PLACE));
      if (round % 2)                /* adding twice has no further effect */
        compose(simple, round, me, p, from, check_at(base, p, (long)me * PLACE));
      CHECK_EQ(cp_comptype(simple), CP_COMPTYPE_SIMPLE);
      const int more = CP(cp_merge(simple, merged ? merged : simple));
      if (merged)
        CP(cp_destroy(merged));
      CP(cp_destroy(simple));
      merged = more;
    }
    const int mapped = CP(cp_map(merged));
    CHECK_EQ(cp_comptype(mapped), CP_COMPTYPE_MAPPED);
    CP(cp_destroy(merged));
    for (int again = 0; again < 3; again++) {
      check_fill(from, round * 3 + again + 100 * me, SOURCE);
      memset(base[me], 0x7e, (size_t)nproc * PLACE);
      CP(cp_sync());
      CP(cp_perform(mapped));
      CP(cp_waitfor(nproc));
      memset(want, 0x7e, (size_t)nproc * PLACE);
      for (int p = 0; p < nproc; p++) {
        check_fill(theirs, round * 3 + again + 100 * p, SOURCE);
        compose(-1, round, p, me, NULL, NULL);
        for (int i = 0; i < PLACE; i++)
          if (model[i] >= 0)
            want[p * PLACE + i] = theirs[model[i]];
      }
      CHECK_BYTES(base[me], want, (long)nproc * PLACE, "round %d, time %d", round, again);
      CP(cp_sync());
    }
    CP(cp_destroy(mapped));
  }
  free(want);
  free(theirs);
  cp_free_segment(source);
  cp_free_segment(base);
}

/* A million bytes, added one by one from last to first. */
static void million(void)
{
  enum { N = 1000000 };
  void **base = cp_segment(N);
  unsigned char *out = check_calloc(N), *want = check_calloc(N);
  const int next = (me + 1) % nproc, before = (me + nproc - 1) % nproc;
  const int simple = CP(cp_create(next));

  for (long i = N - 1; i >= 0; i--)
    CP(cp_add_adxpair(simple, out + i, check_at(base, next, i)));
  const int mapped = CP(cp_map(simple));
  check_fill(out, me, N);
  check_fill(want, before, N);
  CP(cp_sync());
  CP(cp_perform(mapped));
  CP(cp_waitfor(1));
  CHECK_BYTES(base[me], want, N, "a million pairs");
  CP(cp_destroy(mapped));
  CP(cp_destroy(simple));
  free(out);
  free(want);
  cp_free_segment(base);
}

int main(int argc, char **argv)
{
  cp_start("cp_random", &argc, &argv);
  random_compositions();
  million();
  return cp_end();
}
