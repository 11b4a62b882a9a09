/* Read-modify-write: results, unchanged neighbours, and totals under contention. */
// TEST: armci moving
#include "check.h"

/* One rank at a time: values and widths. */
static void results(void)
{
  void **base = check_segment(64);
  const int target = (me + 1) % nproc;
  int guarded[3] = { -1, -1, -1 };
  long old = 0;

  ((int *)base[me])[0] = 11;
  ((int *)base[me])[1] = 100;
  ((int *)base[me])[2] = 12;
  ((long *)base[me])[2] = 1L << 40;
  ARMCI_Barrier();

  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &guarded[1], check_at(base, target, 4), 7, target));
  CHECK_EQ(guarded[1], 100);
  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &guarded[1], check_at(base, target, 4), -9, target));
  CHECK_EQ(guarded[1], 107);
  guarded[1] = 555;
  CHECK_OK(ARMCI_Rmw(ARMCI_SWAP, &guarded[1], check_at(base, target, 4), 0, target));
  CHECK_EQ(guarded[1], 98);
  CHECK_EQ(guarded[0], -1);
  CHECK_EQ(guarded[2], -1);

  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, check_at(base, target, 16), 5, target));
  CHECK_EQ(old, 1L << 40);
  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, check_at(base, target, 16), -6, target));
  CHECK_EQ(old, (1L << 40) + 5);
  old = -(1L << 50);
  CHECK_OK(ARMCI_Rmw(ARMCI_SWAP_LONG, &old, check_at(base, target, 16), 0, target));
  CHECK_EQ(old, (1L << 40) - 1);
  CHECK_OK(ARMCI_Get(check_at(base, target, 16), &old, 8, target));
  CHECK_EQ(old, -(1L << 50));

  ARMCI_Barrier();
  CHECK_EQ(((int *)base[me])[0], 11);
  CHECK_EQ(((int *)base[me])[1], 555);
  CHECK_EQ(((int *)base[me])[2], 12);
  CHECK_EQ(((long *)base[me])[3], 0);
  check_free_segment(base);
}

/* All ranks draw tickets from one counter. Each number is drawn once. */
static void tickets(int op, int width)
{
  enum { DRAWS = 200 };
  const int total = DRAWS * nproc, home = nproc - 1;
  void **counter = check_segment(8), **seen = check_segment((long)total * (long)sizeof(int));
  int one = 1, last = -1;

  for (int i = 0; i < DRAWS; i++) {
    long wide = -1;
    int narrow = -1, ticket;
    CHECK_OK(ARMCI_Rmw(op, width == 4 ? (void *)&narrow : (void *)&wide, counter[home], 1, home));
    ticket = width == 4 ? narrow : (int)wide;
    CHECK(ticket > last && ticket < total, "ticket %d after %d of %d", ticket, last, total);
    last = ticket;
    CHECK_OK(ARMCI_Acc(ARMCI_ACC_INT, &one, &one, check_at(seen, 0, 4L * ticket), 4, 0));
  }
  ARMCI_Barrier();
  if (me == home)
    CHECK_EQ(width == 4 ? *(int *)counter[home] : *(long *)counter[home], total);
  if (me == 0)
    for (int i = 0; i < total; i++)
      CHECK(((int *)seen[0])[i] == 1, "ticket %d was drawn %d times", i, ((int *)seen[0])[i]);
  check_free_segment(seen);
  check_free_segment(counter);
}

/* Tokens move only by swaps. None is lost or duplicated. */
static void tokens(int op, int width)
{
  enum { SWAPS = 200 };
  void **cell = check_segment(8);
  long hand = me + 1, sum, bits;     /* one bit for each token */
  int narrow = me + 1;

  for (int i = 0; i < SWAPS; i++)
    CHECK_OK(ARMCI_Rmw(op, width == 4 ? (void *)&narrow : (void *)&hand, cell[i % nproc], 0,
                       i % nproc));
  if (width == 4)
    hand = narrow;
  ARMCI_Barrier();
  const long left = width == 4 ? *(int *)cell[me] : *(long *)cell[me];
  CHECK(hand >= 0 && hand <= nproc && left >= 0 && left <= nproc, "tokens %ld and %ld", hand, left);
  sum = hand + left;
  bits = (hand ? 1L << hand : 0) + (left ? 1L << left : 0);
  armci_msg_lgop(&sum, 1, "+");
  armci_msg_lgop(&bits, 1, "+");
  CHECK_EQ(sum, (long)nproc * (nproc + 1) / 2);
  CHECK_EQ(bits, (2L << nproc) - 2);
  check_free_segment(cell);
}

int main(int argc, char **argv)
{
  check_start("rmw", &argc, &argv);
  results();
  tickets(ARMCI_FETCH_AND_ADD, 4);
  tickets(ARMCI_FETCH_AND_ADD_LONG, 8);
  tokens(ARMCI_SWAP, 4);
  tokens(ARMCI_SWAP_LONG, 8);
  return check_end();
}
