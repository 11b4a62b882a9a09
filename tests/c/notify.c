/* Notifications: the waiting rank sees everything that the sender did before the notification. None
 * is lost, however early it arrives; from all to all, and to oneself. */
// TEST: armci moving
#include "check.h"

enum { ROUNDS = 60, LONGS = 3000 };

static int *notified, *waited;          /* per rank, counted by the test */

static void notify(int rank)
{
  CHECK_EQ(armci_notify(rank), ++notified[rank]);
}

/* Waits for one notification; returns the number that have arrived. */
static int await(int rank)
{
  int number = -1;
  const int came = armci_notify_wait(rank, &number);
  CHECK_EQ(number, ++waited[rank]);
  CHECK(came >= number, "%d came of rank %d, but %d were waited for", came, rank, number);
  return came;
}

/* A ring: data by every kind of operation, then the notification, without fence or barrier. */
static void ring(void)
{
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  void **base = check_segment(3L * LONGS * 8);
  long *src = check_calloc(LONGS * 8L), one = 1;
  int dense[1] = { 8 }, sparse[1] = { 16 }, count[2] = { 8, LONGS };
  char *strided = check_at(base, right, LONGS * 8L);
  const long *mine = base[me];
  armci_hdl_t handle;

  for (int round = 1; round <= ROUNDS; round++) {
    for (int i = 0; i < LONGS; i++)
      src[i] = 1000L * round + i;
    ARMCI_INIT_HANDLE(&handle);
    CHECK_OK(ARMCI_NbPut(src, base[right], LONGS * 8, right, &handle));
    CHECK_OK(ARMCI_PutS(src, dense, strided, sparse, count, 1, right));
    for (int i = 0; i < 5; i++)
      CHECK_OK(ARMCI_Acc(ARMCI_ACC_LNG, &one, &one, strided + 8, 8, right));
    CHECK_OK(ARMCI_Wait(&handle));
    notify(right);

    await(left);
    for (int i = 0; i < LONGS; i++) {
      CHECK(mine[i] == 1000L * round + i, "round %d: item %d is %ld", round, i, mine[i]);
      CHECK(mine[LONGS + 2 * i] == mine[i], "round %d: strided item %d is %ld", round, i, mine[LONGS + 2 * i]);
    }
    CHECK_EQ(mine[LONGS + 1], 5L * round);
    notify(left);                     /* which may then write again */
    await(right);
  }
  free(src);
  check_free_segment(base);
}

/* Many notifications before any rank waits, a different number to each rank. */
static void early(void)
{
  for (int rank = 0; rank < nproc; rank++)
    for (int i = 0; i < 50 * (me + 1) + rank; i++)
      notify(rank);
  armci_msg_barrier();
  for (int rank = nproc - 1; rank >= 0; rank--) {
    int came = 0;
    for (int i = 0; i < 50 * (rank + 1) + me; i++)
      came = await(rank);
    CHECK_EQ(came, waited[rank]);   /* all of them, none twice */
  }
  armci_msg_barrier();
}

/* All ranks wait before any can be notified: rank 0 begins, and each notifies the next. In some
 * rounds they wait so long that they sleep. */
static void chain(void)
{
  for (int round = 0; round < 20; round++) {
    if (me == 0 && round % 5 == 4)
      nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    if (me > 0)
      await(me - 1);
    notify((me + 1) % nproc);
    if (me == 0)
      await(nproc - 1);
  }
}

int main(int argc, char **argv)
{
  check_start("notify", &argc, &argv);
  for (int life = 0; life < 2; life++) {  /* counts start at zero in each life */
    notified = check_calloc(nproc * (long)sizeof(int));
    waited = check_calloc(nproc * (long)sizeof(int));
    ring();
    early();
    chain();
    CHECK_EQ(parmci_notify(me), ++notified[me]);
    CHECK(parmci_notify_wait(me, NULL) >= ++waited[me], "by the other name");
    free(notified);
    free(waited);
    if (life == 0) {
      (void)armci_notify((me + 1) % nproc);   /* never waited for */
      CHECK_OK(ARMCI_Finalize());
      CHECK_OK(ARMCI_Init());
    }
  }
  return check_end();
}
