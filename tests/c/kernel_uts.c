/* Unbalanced tree search on ARMCI with one-sided work stealing. SIZE is the depth of the tree. See
 * kernel.h for the other arguments.
 *
 * Each rank has a private stack and a queue in memory of ARMCI, which its mutex protects. A rank
 * with more than two chunks on its stack moves the oldest to the end of its queue; a thief takes
 * the first. A counter on rank 0 holds the number of ranks that have work: a rank counts itself
 * before it steals, so at zero no work is left. */
// TEST: armci moving
#include "kernel.h"
#include "kernel_uts.h"
#include <time.h>

enum { CHUNK = 20, ROOM = 4096, STACK = 1 << 16, ROUNDS = 200 };

/* The queue of a rank: chunks begin..end are in it. */
typedef struct {
  long begin, end, working, unused;
  uts_node chunks[ROOM][CHUNK];
} queue;

static void **base;
static uts_node stack[STACK];
static int height, bottom;          /* the stack is stack[bottom..height] */

static queue *queue_of(int rank)
{
  return base[rank];
}

static void bounds(int rank, long range[2])
{
  CHECK_OK(ARMCI_Get(&queue_of(rank)->begin, range, 2 * (int)sizeof(long), rank));
}

static void set_bounds(int rank, long begin, long end)
{
  long range[2] = { begin, end };
  CHECK_OK(ARMCI_Put(range, &queue_of(rank)->begin, (int)sizeof range, rank));
  ARMCI_Fence(rank);
}

/* Adds to the number of working ranks, and returns it as it was. */
static long working(int by)
{
  long old;
  CHECK_OK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, &queue_of(0)->working, by, 0));
  return old;
}

/* Moves the oldest chunk of the stack to the own queue if there is room. */
static void release(void)
{
  long range[2];
  ARMCI_Lock(0, me);
  bounds(me, range);
  if (range[0] == range[1])
    range[0] = range[1] = 0;
  if (range[1] < ROOM) {
    CHECK_OK(ARMCI_Put(stack + bottom, queue_of(me)->chunks[range[1]], (int)sizeof queue_of(me)->chunks[0], me));
    ARMCI_Fence(me);
    set_bounds(me, range[0], range[1] + 1);
    bottom += CHUNK;
  }
  ARMCI_Unlock(0, me);
}

/* Takes a chunk: the last of the own queue, or the first of another rank. */
static int take(int rank)
{
  long range[2];
  ARMCI_Lock(0, rank);
  bounds(rank, range);
  const int found = range[0] < range[1];
  if (found) {
    const long chunk = rank == me ? --range[1] : range[0]++;
    CHECK_OK(ARMCI_Get(queue_of(rank)->chunks[chunk], stack, (int)sizeof queue_of(rank)->chunks[0], rank));
    set_bounds(rank, range[0], range[1]);
    bottom = 0;
    height = CHUNK;
  }
  ARMCI_Unlock(0, rank);
  return found;
}

/* Looks for work on other ranks. Returns whether there was any, or all ranks have ended. */
static int find(void)
{
  working(-1);
  for (int round = 0;; round++) {
    for (int p = 1; p < nproc; p++) {
      const int victim = (me + p) % nproc;
      long range[2];
      bounds(victim, range);
      if (range[0] >= range[1])
        continue;
      working(1);
      if (take(victim))
        return 1;
      working(-1);
    }
    if (working(0) == 0)
      return 0;
    if (round > ROUNDS) {
      const struct timespec moment = { 0, 20000 };
      nanosleep(&moment, NULL);
    }
  }
}

static long search(int depth)
{
  long count = 0;
  for (;;) {
    while (height > bottom) {
      const uts_node node = stack[--height];
      count++;
      if (height + UTS_MOST_CHILDREN > STACK) { /* the oldest nodes have left gaps at the beginning */
        memmove(stack, stack + bottom, (size_t)(height - bottom) * sizeof *stack);
        height -= bottom;
        bottom = 0;
        CHECK(height + UTS_MOST_CHILDREN <= STACK, "%d nodes on the stack", height);
      }
      height += uts_expand(&node, depth, stack + height);
      if (nproc > 1 && height - bottom > 2 * CHUNK)
        release();
    }
    bottom = height = 0;
    if (!take(me) && !find())
      return count;
  }
}

/* Counts on this rank alone. */
static long count_alone(int depth)
{
  long count = 0;
  bottom = 0;
  stack[0] = uts_root();
  for (height = 1; height > 0; count++) {
    const uts_node node = stack[--height];
    height += uts_expand(&node, depth, stack + height);
  }
  return count;
}

int main(int argc, char **argv)
{
  const int depth = kernel_start("kernel_uts", 6, &argc, &argv);
  CHECK(depth <= 20, "a depth of %d", depth);
  double own = 0;
  CHECK_OK(ARMCI_Create_mutexes(1));
  base = check_segment((long)sizeof(queue));
  for (int r = 0; r < kernel_repeats; r++) {
    set_bounds(me, 0, 0);
    if (me == 0) {
      long ranks = nproc;
      CHECK_OK(ARMCI_Put(&ranks, &queue_of(0)->working, (int)sizeof ranks, 0));
      ARMCI_Fence(0);
    }
    bottom = height = 0;
    if (me == 0)
      stack[height++] = uts_root();
    kernel_begins();
    own += (double)search(depth);
    kernel_ends();
  }
  const double all = (double)count_alone(depth), counted = kernel_sum(own);
  CHECK(depth != 10 || all == 4130071, "T1 has %.0f nodes", all);
  CHECK(counted == all * kernel_repeats, "%.0f nodes in %d searches, not %.0f in each", counted, kernel_repeats, all);
  check_free_segment(base);
  CHECK_OK(ARMCI_Destroy_mutexes());
  return kernel_end("uts", 1e-6 * all, "million nodes/s", 1);
}
