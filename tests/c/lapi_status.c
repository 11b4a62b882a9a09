/*
 * Counters that record a status per destination: LAPI_Setcntr_wstatus, which events update which
 * status, purges, and the matching wait; multicasts to purged tasks; LAPI_Address_init64.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

#include <pthread.h>

enum { MARK = 1, MOST = 64 };

static lapi_cntr_t counter;
static uint tasks[MOST];
static int status[MOST + 1];
static char bytes[300000], place[300000];
static volatile int marks;
static lapi_long_t place_of[MOST], counter_of[MOST];

HEADER_HANDLER(mark)
{
  *comp_h = NULL;
  marks++;
  return place;
}

/* Attaches a list of all tasks, in rank order, to the counter. */
static void watch(void)
{
  for (int i = 0; i < nproc; i++)
    tasks[i] = (uint)i;
  for (int i = 0; i <= MOST; i++)
    status[i] = -7;
  LAPI_OK(LAPI_Setcntr(hndl, &counter, 99));
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, nproc, tasks, status));
  CHECK_EQ(lapi_value(&counter), 0);
  for (int i = 0; i < nproc; i++)
    CHECK_EQ(status[i], LAPI_MSG_INITIAL);
  CHECK_EQ(status[nproc], -7);
}

/* Reads the counter, then checks that every status has this value. */
static void all_are(int want)
{
  lapi_value(&counter);
  for (int i = 0; i < nproc; i++)
    CHECK(status[i] == want, "status of task %d is %d, expected %d", i, status[i], want);
  CHECK_EQ(status[nproc], -7);
}

/* Statuses set by completion counters of short and long messages, by puts, and by origin
 * counters. */
static void replies(void)
{
  int left;
  for (int way = 0; way < 6; way++) {
    watch();
    for (int i = 0; i < nproc; i++) {
      const uint to = tasks[i];
      const ulong len = way % 2 ? sizeof bytes : 16;
      void *there = (void *)place_of[i];
      lapi_cntr_t *org = way / 2 == 2 ? &counter : NULL, *cmpl = way / 2 == 2 ? NULL : &counter;
      if (way / 2 == 1)
        LAPI_OK(LAPI_Put(hndl, to, len, there, bytes, NULL, NULL, cmpl));
      else
        LAPI_OK(LAPI_Amsend(hndl, to, (void *)MARK, NULL, 0, bytes, len, NULL, org, cmpl));
      LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, &left));
      CHECK_EQ(left, 0);
      for (int j = 0; j < nproc; j++)
        CHECK(status[j] == (j <= i ? LAPI_MSG_RECVD : LAPI_MSG_INITIAL), "way %d: status of task %d is %d after %d",
              way, j, status[j], i);
    }
    CHECK_EQ(status[nproc], -7);
    LAPI_OK(LAPI_Fence(hndl));
  }
}

/* Target counters record the senders. */
static void senders(void)
{
  for (int put = 0; put < 2; put++) {
    watch();
    LAPI_OK(LAPI_Gfence(hndl));
    for (int i = 0; i < nproc; i++) {
      lapi_cntr_t *there = (lapi_cntr_t *)counter_of[i];
      if (put)
        LAPI_OK(LAPI_Put(hndl, (uint)i, 8, (void *)place_of[i], bytes, there, NULL, NULL));
      else
        LAPI_OK(LAPI_Amsend(hndl, (uint)i, (void *)MARK, NULL, 0, NULL, 0, there, NULL, NULL));
    }
    LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, nproc, NULL));
    all_are(LAPI_MSG_RECVD);
    LAPI_OK(LAPI_Gfence(hndl));
  }
}

/* Two messages to one task fill two entries; a task outside the list is only counted. */
static void entries(void)
{
  const uint right = (uint)((me + 1) % nproc), list[2] = { right, right };
  int two[2] = { -1, -1 };
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, 2, (uint *)list, two));
  LAPI_OK(LAPI_Amsend(hndl, right, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
  LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, NULL));
  CHECK(two[0] == LAPI_MSG_RECVD && two[1] == LAPI_MSG_INITIAL, "one of two: %d and %d", two[0], two[1]);
  if (nproc > 1) {
    LAPI_OK(LAPI_Amsend(hndl, (uint)me, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
    LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, NULL));
    CHECK_EQ(two[1], LAPI_MSG_INITIAL);
  }
  LAPI_OK(LAPI_Amsend(hndl, right, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
  LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, NULL));
  CHECK_EQ(two[1], LAPI_MSG_RECVD);
  /* The list is used up, so the array belongs to the program again. */
  two[0] = two[1] = -1;
  LAPI_OK(LAPI_Amsend(hndl, right, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
  LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, NULL));
  CHECK(two[0] == -1 && two[1] == -1, "the array was written after the last: %d and %d", two[0], two[1]);

  /* Setting the counter also ends the list; without a list it is a plain counter. */
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, 2, (uint *)list, two));
  LAPI_OK(LAPI_Setcntr(hndl, &counter, 5));
  two[0] = two[1] = -1;
  CHECK_EQ(lapi_value(&counter), 5);
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, 3, NULL, two));
  CHECK_EQ(lapi_value(&counter), 3);
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, 4, (uint *)list, NULL));
  CHECK_EQ(lapi_value(&counter), 4);
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, 0, (uint *)list, two));
  CHECK_EQ(lapi_value(&counter), 0);
  CHECK(two[0] == -1 && two[1] == -1, "an array without a list was written: %d and %d", two[0], two[1]);
}

/* If a member of a group is purged, no member gets a multicast. */
static void purged_member(void)
{
  lapi_group_t group;
  lapi_xfer_t x;
  LAPI_OK(LAPI_Group_create(hndl, (uint)nproc, tasks, &group));
  memset(&x, 0, sizeof x);
  x.Mc.Xfer_type = LAPI_MC_XFER;
  x.Mc.group = group;
  x.Mc.hdr_hdl = MARK;
  LAPI_OK(LAPI_Gfence(hndl));
  marks = 0;
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Purge_totask(hndl, (uint)(nproc - 1)));
  LAPI_CODE(LAPI_Xfer(hndl, &x), LAPI_ERR_TGT_PURGED);
  LAPI_OK(LAPI_Resume_totask(hndl, (uint)(nproc - 1)));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(marks, 0);
  LAPI_OK(LAPI_Gfence(hndl));
  LAPI_OK(LAPI_Xfer(hndl, &x));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(marks, nproc);
  LAPI_OK(LAPI_Group_free(hndl, group));
}

static void *purger(void *task)
{
  check_nap(30);
  LAPI_OK(LAPI_Purge_totask(hndl, *(uint *)task));
  return NULL;
}

static void purges(void)
{
  const uint last = (uint)(nproc - 1);
  uint to = last;
  pthread_t thread;

  /* Another thread purges a task before the counter is incremented: the wait ends, and the status
   * shows the purged task. */
  watch();
  CHECK_EQ(pthread_create(&thread, NULL, purger, &to), 0);
  LAPI_CODE(LAPI_Nopoll_wait(hndl, &counter, 1, NULL), LAPI_ERR_TGT_PURGED);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(status[last], LAPI_MSG_PURGED);
  for (int i = 0; i < nproc - 1; i++)
    CHECK_EQ(status[i], LAPI_MSG_INITIAL);
  /* The same purge does not end the next wait, for the other tasks. */
  for (int i = 0; i < nproc - 1; i++)
    LAPI_OK(LAPI_Amsend(hndl, (uint)i, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
  if (nproc > 1)
    LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, nproc - 1, NULL));
  for (int i = 0; i < nproc - 1; i++)
    CHECK_EQ(status[i], LAPI_MSG_RECVD);
  CHECK_EQ(status[last], LAPI_MSG_PURGED);

  /* The task is already purged. */
  for (int i = 0; i < nproc; i++)
    tasks[i] = (uint)i;
  tasks[nproc] = (uint)nproc;             /* not a task of the job */
  LAPI_OK(LAPI_Setcntr_wstatus(hndl, &counter, nproc + 1, tasks, status));
  CHECK_EQ(status[last], LAPI_MSG_INVALID);
  CHECK_EQ(status[nproc], LAPI_MSG_INVALID);
  for (int i = 0; i < nproc - 1; i++)
    CHECK_EQ(status[i], LAPI_MSG_INITIAL);
  LAPI_OK(LAPI_Resume_totask(hndl, last));

  /* Incremented, then purged; then purged between the call and the wait, and incremented
   * afterwards. */
  watch();
  LAPI_OK(LAPI_Amsend(hndl, last, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
  LAPI_WAIT(&counter, 1);
  LAPI_OK(LAPI_Purge_totask(hndl, last));
  lapi_value(&counter);
  CHECK_EQ(status[last], nproc == 1 ? LAPI_MSG_RECVD : LAPI_MSG_PURGED_RCVD);
  LAPI_OK(LAPI_Resume_totask(hndl, last));
  watch();
  LAPI_OK(LAPI_Purge_totask(hndl, last));
  LAPI_CODE(LAPI_Nopoll_wait(hndl, &counter, 1, NULL), LAPI_ERR_TGT_PURGED);
  CHECK_EQ(status[last], LAPI_MSG_PURGED);
  LAPI_OK(LAPI_Resume_totask(hndl, last));
  if (nproc > 1) {
    LAPI_OK(LAPI_Amsend(hndl, last, (void *)MARK, NULL, 0, NULL, 0, NULL, NULL, &counter));
    LAPI_OK(LAPI_Nopoll_wait(hndl, &counter, 1, NULL));
    CHECK_EQ(status[last], LAPI_MSG_PURGED_RCVD);
  }
  lapi_zero(&counter);
}

static void addresses(void)
{
  lapi_long_t table[MOST], again[MOST];
  void **plain = lapi_exchange(place);
  memset(table, 0xff, sizeof table);
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)place, table));
  LAPI_OK(PLAPI_Address_init64(hndl, 0xfedcba9876543210ull + (lapi_long_t)me, again));
  for (int i = 0; i < nproc; i++) {
    CHECK(table[i] == (lapi_long_t)plain[i], "address of task %d is %llx", i, table[i]);
    CHECK(again[i] == 0xfedcba9876543210ull + (lapi_long_t)i, "number of task %d is %llx", i, again[i]);
  }
  CHECK(table[nproc] == ~0ull, "the table was written behind its end");
  memcpy(place_of, table, sizeof table);
  LAPI_OK(LAPI_Address_init64(hndl, (lapi_long_t)&counter, counter_of));
  free(plain);
}

int main(int argc, char **argv)
{
  lapi_start("lapi_status", &argc, &argv);
  lapi_zero(&counter);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)mark, MARK));
  addresses();
  LAPI_OK(LAPI_Gfence(hndl));
  replies();
  LAPI_OK(LAPI_Gfence(hndl));
  senders();
  entries();
  LAPI_OK(LAPI_Gfence(hndl));
  purges();
  purged_member();
  LAPI_OK(LAPI_Gfence(hndl));
  return lapi_end();
}
