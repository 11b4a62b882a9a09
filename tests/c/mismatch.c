/*
 * mismatch.c - ranks make different collective calls. Calls that return a code return
 * PORTOLAN_ERR_MISMATCH on all ranks; a void call ends the job. The library's message names both
 * calls.
 */
// TEST: n=3
// TEST: n=3 node-size={1,2}
// TEST: n=2 path=message
// TEST: aborts n=2
// TEST: aborts n=2 node-size=1
#include "check.h"
#include <message.h>

static int all[64];
static double real[4] = { 1, 1, 1, 1 };
static int whole[4] = { 1, 1, 1, 1 };

/* Rank 0 makes one call and the other ranks another, in a separate group for each case. */
static void codes(void)
{
  void **table = check_calloc(nproc * (long)sizeof(void *));
  ARMCI_Group group;
  int rc;

  for (int p = 0; p < nproc; p++)
    all[p] = p;
  for (int round = 0; round < 2; round++) {
    ARMCI_Group_create(nproc, all, &group);
    CHECK_OK(ARMCI_Malloc_group(table, 8, &group));
    rc = (me == 0) == (round == 0) ? ARMCI_Malloc_group(table, 8, &group)
                                   : ARMCI_Free_group(table[me], &group);
    CHECK_EQ(rc, PORTOLAN_ERR_MISMATCH);
    CHECK_EQ(ARMCI_Malloc_group(table, 8, &group), PORTOLAN_ERR_MISMATCH);
    ARMCI_Barrier();                /* the other groups still work */
  }
  free(table);
}

static void length(void)   { armci_msg_dgop(real, me ? 4 : 2, (char[]){ "+" }); }
static void type(void)     { if (me) armci_msg_dgop(real, 1, (char[]){ "+" }); else armci_msg_igop(whole, 1, (char[]){ "+" }); }
static void op(void)       { armci_msg_dgop(real, 1, me ? (char[]){ "max" } : (char[]){ "min" }); }
static void root(void)     { armci_msg_brdcst(real, 8, me); ARMCI_Barrier(); }
static void barrier(void)  { if (me) ARMCI_Barrier(); else armci_msg_igop(whole, 1, (char[]){ "+" }); }
static void finalize(void) /* rank 1 gets a code, and rank 0 ends the job */
{
  if (me == 0)
    ARMCI_Barrier();
  CHECK_EQ(ARMCI_Finalize(), PORTOLAN_ERR_MISMATCH);
  for (;;)
    pause();
}
static void group(void)
{
  ARMCI_Group made;
  int list[2] = { me, 1 - me };
  ARMCI_Group_create(2, list, &made);
}

static const struct { const char *name; void (*run)(void); } cases[] = {
  { "length", length }, { "type", type }, { "op", op }, { "root", root },
  { "barrier", barrier }, { "finalize", finalize }, { "group", group },
};

int main(int argc, char **argv)
{
  const int count = (int)(sizeof cases / sizeof cases[0]);

  if (argc == 1) {
    check_start("mismatch", &argc, &argv);
    codes();
    return check_end();
  }
  if (strcmp(argv[1], "list") == 0) {
    for (int i = 0; i < count; i++)
      printf("%s\n", cases[i].name);
    return 0;
  }
  check_start("mismatch", &argc, &argv);
  if (me == 0)
    printf("EXPECT-ABORT %s\n", argv[1]);
  check_linger();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; i++)
    if (strcmp(argv[1], cases[i].name) == 0)
      cases[i].run();
  printf("FAIL mismatch %s: the call returned on rank %d\n", argv[1], me);
  return check_end();
}
