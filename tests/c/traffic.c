/* Traffic between all ranks for some seconds, with every byte checked: small and large puts, gets,
 * accumulates and counters, in rounds that end with a barrier. The first argument is the number of
 * seconds (default 1). Rank 0 prints RUNNING after the first round, so that a script can then
 * disturb the network. With `alone` as the second argument only rank 0 moves data, without
 * synchronisation, while the others wait in a barrier. */
// TEST: hosts
// TEST: n=2 node-size=1
#include "check.h"

enum { LARGE = 100000, SMALL = 40, CELLS = 64 };

/* The memory that each rank holds for each other rank. */
typedef struct {
  unsigned char large[LARGE], small[SMALL];
  double sums[CELLS];
} slot;

typedef struct {
  long counter, going;
} shared;

static unsigned char *out, *in;

/* Small puts to and gets from all other ranks in turn, until the time is up. */
static void alone(void **base, double seconds)
{
  const double start = check_seconds();
  for (long rounds = 1; check_seconds() - start < seconds; rounds++) {
    for (int peer = 1; peer < nproc; peer++) {
      slot *there = (slot *)base[peer] + me;
      check_fill(out, (int)rounds, LARGE);
      CHECK_OK(ARMCI_Put(out, there->large, LARGE, peer));
      ARMCI_Fence(peer);
      CHECK_OK(ARMCI_Get(there->large, in, LARGE, peer));
      CHECK_BYTES(in, out, LARGE, "large block on rank %d, round %ld", peer, rounds);
    }
    if (rounds == 1) {
      printf("RUNNING\n");
      fflush(stdout);
    }
  }
}

int main(int argc, char **argv)
{
  check_start("traffic", &argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 1, start = check_seconds();
  void **base = check_segment((long)sizeof(slot) * nproc), **common = check_segment(sizeof(shared));
  shared *mine = common[me];
  unsigned char *want = check_calloc(LARGE);
  double add[CELLS], one = 1;
  long rounds = 0, before;

  out = check_calloc(LARGE);
  in = check_calloc(LARGE);
  mine->going = argc < 3;
  if (argc > 2 && me == 0)
    alone(base, seconds);
  ARMCI_Barrier();
  while (mine->going) {
    rounds++;
    for (int k = 0; k < nproc; k++) {
      const int peer = (me + k) % nproc;
      slot *there = (slot *)base[peer] + me;
      check_fill(out, (int)(rounds * 100 + me), LARGE);
      CHECK_OK(ARMCI_Put(out, there->large, LARGE, peer));
      CHECK_OK(ARMCI_Put(out + 7, there->small, SMALL, peer));
      for (int i = 0; i < CELLS; i++)
        add[i] = i + me;
      CHECK_OK(ARMCI_Acc(ARMCI_ACC_DBL, &one, add, there->sums, sizeof add, peer));
      ARMCI_Fence(peer);
      CHECK_OK(ARMCI_Get(there->small, in, SMALL, peer));
      CHECK_BYTES(in, out + 7, SMALL, "small block on rank %d, round %ld", peer, rounds);
      CHECK_OK(ARMCI_Get(there->large, in, LARGE, peer));
      CHECK_BYTES(in, out, LARGE, "large block on rank %d, round %ld", peer, rounds);
      CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &before, &((shared *)common[peer])->counter, 1, peer));
      CHECK(before >= (rounds - 1) * nproc && before < rounds * nproc, "counter of rank %d was %ld in round %ld",
            peer, before, rounds);
    }
    ARMCI_Barrier();

    CHECK_EQ(mine->counter, rounds * nproc);
    for (int peer = 0; peer < nproc; peer++) {
      const slot *from = (slot *)base[me] + peer;
      check_fill(want, (int)(rounds * 100 + peer), LARGE);
      CHECK_BYTES(from->large, want, LARGE, "large block of rank %d, round %ld", peer, rounds);
      CHECK_BYTES(from->small, want + 7, SMALL, "small block of rank %d, round %ld", peer, rounds);
      for (int i = 0; i < CELLS; i++)
        CHECK(from->sums[i] == (double)rounds * (i + peer), "sum %d of rank %d is %g after %ld rounds", i, peer,
              from->sums[i], rounds);
    }
    if (me == 0 && rounds == 1) {
      printf("RUNNING\n");
      fflush(stdout);
    }
    if (me == 0 && check_seconds() - start >= seconds) {
      const long stop = 0;
      for (int peer = 0; peer < nproc; peer++)
        CHECK_OK(ARMCI_Put((void *)&stop, &((shared *)common[peer])->going, sizeof stop, peer));
    }
    ARMCI_Barrier();
  }
  if (me == 0)
    printf("%ld rounds\n", rounds);
  check_free_segment(common);
  check_free_segment(base);
  free(out);
  free(in);
  free(want);
  return check_end();
}
