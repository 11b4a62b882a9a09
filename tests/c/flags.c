/* Put with flag: a rank that sees the flag sees the data. */
// TEST: armci moving
#include "check.h"

enum { LEN = 40000, ROUNDS = 12, ROWS = 9, ROW = 24, STRIDE = 37 };

/* The layout of a segment: data, then the flag and the acknowledgement. */
typedef struct {
  unsigned char data[LEN];
  int flag, back;
} box;

static void await(volatile int *flag, int value, const char *what)
{
  const double start = check_seconds();
  int seen;
  while ((seen = *flag) != value) {
    CHECK(seen < value, "%s is %d before its time, waiting for %d", what, seen, value);
    CHECK(check_seconds() - start < CHECK_HANG, "%s is still %d, not %d", what, seen, value);
    check_pause();
  }
  __sync_synchronize();
}

int main(int argc, char **argv)
{
  check_start("flags", &argc, &argv);
  void **base = check_segment(sizeof(box));
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  box *mine = base[me], *theirs = base[right], *source = base[left];
  unsigned char *out = check_calloc(LEN), *want = check_calloc(LEN);
  int src_stride[1] = { ROW }, dst_stride[1] = { STRIDE }, count[2] = { ROW, ROWS };
  int none[2] = { 0, ROWS };

  for (int round = 1; round <= ROUNDS; round++) {
    const int strided = round % 2, empty = round > ROUNDS - 2;
    /* A short block and its flag share a message, a long one is received in place. */
    const int lens[] = { 8, 2048, 2049, LEN - round }, len = lens[round / 2 % 4];

    memset(mine->data, 0, LEN);
    memset(want, 0, LEN);
    check_fill(out, 10 * round + left, LEN);
    if (strided && !empty)
      for (int i = 0; i < ROWS; i++)
        memcpy(want + i * STRIDE, out + i * ROW, ROW);
    else if (!empty)
      memcpy(want, out, (size_t)len);
    check_fill(out, 10 * round + me, LEN);
    armci_msg_barrier();

    /* round the ring: each rank is already waiting when its flag arrives */
    for (int turn = 0; turn < 2; turn++) {
      if (turn == (me == 0)) {
        await(&mine->flag, round, "flag");
        CHECK_BYTES(mine->data, want, LEN, "data behind the flag, round %d", round);
        continue;
      }
      if (strided)
        CHECK_OK(ARMCI_PutS_flag(out, src_stride, theirs->data, dst_stride, empty ? none : count, 1,
                                 &theirs->flag, round, right));
      else
        CHECK_OK(ARMCI_Put_flag(out, theirs->data, empty ? 0 : len, &theirs->flag, round, right));
      memset(out, 0, LEN);          /* the source is reusable on return */
    }
    CHECK_OK(ARMCI_Put_flag(NULL, NULL, 0, &source->back, round, left));
    await(&mine->back, round, "acknowledgement");
  }
  free(out);
  free(want);
  check_free_segment(base);
  return check_end();
}
