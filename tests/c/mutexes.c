/* Mutexes: an empty set, and a trylock that returns at once. The check `armci` of tests/ranks tests
 * exclusion. */
// TEST: armci moving
#include "check.h"

/* A set may be empty at all ranks. */
static void none(void)
{
  CHECK_OK(ARMCI_Create_mutexes(0));
  CHECK_OK(ARMCI_Destroy_mutexes());
}

/* Trylock takes a free mutex and refuses a held one at once: the holder keeps it until all other
 * ranks were refused. */
static void trylock(void)
{
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(2, &world);
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

  CHECK_OK(ARMCIX_Destroy_mutexes_hdl(set));
}

int main(int argc, char **argv)
{
  check_start("mutexes", &argc, &argv);
  none();
  trylock();
  return check_end();
}
