/*
 * Calls that end the job. With the name of a case: the last rank, or all, make a faulty call, and
 * the job must end with a nonzero status; "EXPECT-ABORT <case>" is printed before it. "list" prints
 * the names of the cases. If the call returns, the program prints FAIL and exits with status 0; a
 * driver that expects another status reports this as a failure. invalid.c has all faults that end
 * the job, and finds their codes without an end of the job.
 */
// TEST: aborts n=2
#include "check.h"
#include <message.h>

static void error_seven(void) { ARMCI_Error((char[]){ "asked to" }, 7); }
static void error_zero(void)  { ARMCI_Error((char[]){ "asked to, with code 0" }, 0); }
static void error_256(void)   { ARMCI_Error((char[]){ "asked to, with code 256" }, 256); }
static void error_null(void)  { ARMCI_Error(NULL, 1); }
static void abort_zero(void)  { armci_msg_abort(0); }
/* MPI_Abort of MPICH 4.2 returns if the launcher has not killed the rank yet. */
static void cleanup(void)     { ARMCI_Cleanup(); MPI_Abort(MPI_COMM_WORLD, 3); for (;;) pause(); }
static void fence(void)       { ARMCI_Fence(nproc); }
static void lock(void)        { ARMCI_Lock(0, 0); }
static void reduce(void)      { armci_msg_igop((int[]){ 1 }, 1, (char[]){ "/" }); }
static void free_empty(void)      /* rank 0 has no bytes of the group's segment, so it cannot name it */
{
  ARMCI_Group world, group;
  void *table[64];
  ARMCI_Group_get_world(&world);
  CHECK_OK(ARMCIX_Group_dup(&world, &group));
  CHECK_OK(ARMCI_Malloc_group(table, me == 0 ? 0 : 8, &group));
  ARMCI_Free(table[me]);
}
static void too_long(void)        /* a message longer than the buffer */
{
  int items[4] = { 0 }, item;
  armci_msg_snd(1, items, sizeof items, (me + 1) % nproc);
  armci_msg_rcv(1, &item, sizeof item, NULL, (me + nproc - 1) % nproc);
}
static void too_late(void)    { CHECK_OK(ARMCI_Finalize()); ARMCI_Fence(me); }

/* Ranks that make different collective calls. */
static double real[4] = { 1, 1, 1, 1 };
static int whole[4] = { 1, 1, 1, 1 };

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
static void order(void)
{
  ARMCI_Group made;
  int list[2] = { me, 1 - me };
  ARMCI_Group_create(2, list, &made);
}

enum manner { ONE, ALL, EARLY };    /* who calls: the last rank, all, all before ARMCI_Init */

static const struct { const char *name; void (*run)(void); enum manner manner; } cases[] = {
  { "error", error_seven, ONE }, { "error-zero", error_zero, ONE }, { "error-256", error_256, ONE },
  { "error-null", error_null, ONE }, { "error-all", error_seven, ALL }, { "abort-zero", abort_zero, ONE },
  { "cleanup", cleanup, ONE }, { "fence", fence, ONE }, { "fence-early", fence, EARLY },
  { "fence-late", too_late, ALL }, { "lock", lock, ONE }, { "free-empty", free_empty, ALL },
  { "too-long", too_long, ALL }, { "reduce", reduce, ALL },
  { "mismatch-length", length, ALL }, { "mismatch-type", type, ALL }, { "mismatch-op", op, ALL },
  { "mismatch-root", root, ALL }, { "mismatch-barrier", barrier, ALL },
  { "mismatch-finalize", finalize, ALL }, { "mismatch-order", order, ALL },
};

int main(int argc, char **argv)
{
  const int count = (int)(sizeof cases / sizeof cases[0]);
  int which = count;
  for (int i = 0; i < count && argc > 1; i++) {
    if (strcmp(argv[1], "list") == 0)
      printf("%s\n", cases[i].name);
    else if (strcmp(argv[1], cases[i].name) == 0)
      which = i;
  }
  if (which == count)               /* "list", or an unknown name */
    return 0;
  check_start_mpi(cases[which].name, &argc, &argv);
  if (cases[which].manner != EARLY) {
    CHECK_OK(ARMCI_Init());
    ARMCI_Barrier();
  }
  if (me == 0) {
    printf("EXPECT-ABORT %s\n", cases[which].name);
    check_linger();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (cases[which].manner != ONE || me == nproc - 1) {
    cases[which].run();
    printf("FAIL errors %s: the call returned on rank %d\n", cases[which].name, me);
    fflush(stdout);
  }
  if (ARMCI_Initialized())
    ARMCI_Barrier();
  MPI_Finalize();
  return 0;
}
