/* Mutexes: exclusion, several sets, ranks without mutexes, and a trylock that returns at once. */
// TEST: armci moving
#include "check.h"

enum { MOST = 3, ROUNDS = 25 };

/* Returns the number of mutexes of a rank: some ranks have none, rank 0 always has some. */
static int count_at(int rank)
{
  static const int counts[] = { 2, 0, 3, 1 };
  return counts[rank % 4];
}

/* A slow read-modify-write that is correct only under the lock. The data need not be on the rank
 * that has the mutex. */
static void slow_add(void **data, int slot, int home)
{
  long value;
  CHECK_OK(ARMCI_Get(check_at(data, home, 8L * slot), &value, sizeof value, home));
  sched_yield();
  value++;
  CHECK_OK(ARMCI_Put(&value, check_at(data, home, 8L * slot), sizeof value, home));
  ARMCI_Fence(home);
}

static void excludes(int shift)
{
  const long slots = (long)nproc * MOST;
  void **data = check_segment(8 * slots);

  CHECK_OK(ARMCI_Create_mutexes(count_at(me)));
  for (int round = 0; round < ROUNDS; round++)
    for (int step = 0; step < nproc; step++) {
      const int p = (me + step) % nproc, home = (p + shift) % nproc;
      for (int m = 0; m < count_at(p); m++) {
        ARMCI_Lock(m, p);
        slow_add(data, p * MOST + m, home);
        ARMCI_Unlock(m, p);
      }
    }
  ARMCI_Barrier();
  for (int p = 0; p < nproc; p++)
    if ((p + shift) % nproc == me)
      for (int m = 0; m < count_at(p); m++)
        CHECK_EQ(((long *)data[me])[p * MOST + m], (long)ROUNDS * nproc);
  CHECK_OK(ARMCI_Destroy_mutexes());
  check_free_segment(data);
}

/* Holds several mutexes at once. All ranks take them in the same order. */
static void nested(void)
{
  void **data = check_segment(8);
  CHECK_OK(ARMCI_Create_mutexes(2));
  for (int round = 0; round < ROUNDS; round++) {
    ARMCI_Lock(0, 0);
    ARMCI_Lock(1, nproc - 1);
    slow_add(data, 0, 0);
    ARMCI_Unlock(1, nproc - 1);
    ARMCI_Unlock(0, 0);
  }
  ARMCI_Barrier();
  if (me == 0)
    CHECK_EQ(*(long *)data[0], (long)ROUNDS * nproc);
  CHECK_OK(ARMCI_Destroy_mutexes());
  check_free_segment(data);
}

/* A set may be empty at all ranks. */
static void none(void)
{
  CHECK_OK(ARMCI_Create_mutexes(0));
  CHECK_OK(ARMCI_Destroy_mutexes());
}

/* Sets with handles are independent of each other. */
static void sets(void)
{
  ARMCI_Group world;
  armcix_mutex_hdl_t one, two;
  void **data = check_segment(16);

  ARMCI_Group_get_world(&world);
  one = ARMCIX_Create_mutexes_hdl(1, &world);
  two = ARMCIX_Create_mutexes_hdl(me == 0 ? 1 : 0, &world);
  CHECK(one != NULL && two != NULL && one != two, "no mutex set");
  for (int round = 0; round < ROUNDS; round++) {
    ARMCIX_Lock_hdl(one, 0, nproc - 1);
    slow_add(data, 0, 0);
    ARMCIX_Lock_hdl(two, 0, 0);
    slow_add(data, 1, 0);
    ARMCIX_Unlock_hdl(two, 0, 0);
    ARMCIX_Unlock_hdl(one, 0, nproc - 1);
  }
  ARMCI_Barrier();
  if (me == 0) {
    CHECK_EQ(((long *)data[0])[0], (long)ROUNDS * nproc);
    CHECK_EQ(((long *)data[0])[1], (long)ROUNDS * nproc);
  }
  ARMCI_Barrier();
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(two));
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(one));
  check_free_segment(data);
}

/* Trylock takes a free mutex and refuses a held one at once: the holder keeps it until all other
 * ranks were refused. */
static void trylock(void)
{
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(2, &world);
  void **data = check_segment(8);
  const int holder = 0, home = nproc - 1;

  if (me == holder) {
    CHECK_EQ(ARMCIX_Trylock_hdl(set, 1, home), 0);
    CHECK(ARMCIX_Trylock_hdl(set, 1, home) != 0, "trylock took a mutex that the caller holds");
  }
  ARMCI_Barrier();
  if (me != holder) {
    /* would hang if it waited: rank 0 holds the mutex until after the barrier */
    for (int i = 0; i < 10; i++)
      CHECK(ARMCIX_Trylock_hdl(set, 1, home) != 0, "trylock took a mutex that rank 0 holds");
    CHECK_EQ(ARMCIX_Trylock_hdl(set, 0, me), 0);
    ARMCIX_Unlock_hdl(set, 0, me);
  }
  ARMCI_Barrier();
  if (me == holder)
    ARMCIX_Unlock_hdl(set, 1, home);
  ARMCI_Barrier();

  for (int round = 0; round < ROUNDS; round++) {      /* excludes like a lock */
    while (ARMCIX_Trylock_hdl(set, 1, home) != 0)
      check_pause();
    slow_add(data, 0, 0);
    ARMCIX_Unlock_hdl(set, 1, home);
  }
  ARMCI_Barrier();
  if (me == 0)
    CHECK_EQ(*(long *)data[0], (long)ROUNDS * nproc);
  ARMCI_Barrier();
  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(set));
  check_free_segment(data);
}

int main(int argc, char **argv)
{
  check_start("mutexes", &argc, &argv);
  excludes(0);                      /* the data is on the rank that has the mutex */
  excludes(1);                      /* the data is elsewhere; a second set */
  nested();
  none();
  sets();
  trylock();
  return check_end();
}
