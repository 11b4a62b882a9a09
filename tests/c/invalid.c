/*
 * invalid.c - bad input to every call of armci.h, from tables.
 *
 *   invalid               calls that return a code: each call that moves data with each fault
 *                         that applies to it, before, during and after ARMCI's life
 *   invalid list          lists the calls that must end the job, one `case call` a line
 *   invalid CASE          runs one of them: EXPECT-ABORT, no FAIL, a nonzero status, and a
 *                         message that names the call
 *   invalid markdown      prints the tables as in docs/errors.md; needs no launcher
 *
 * A refused call changes no local or remote memory and sets its error text.
 */
// TEST: faults
#include "check.h"
#include "refusals.h"
#include "invalid_calls.h"
#include "invalid_others.h"

static void outside_its_life(void *far)
{
  segment = far;
  for (const struct refusals_call *call = calls; call->name; call++) {
    good_input();
    REFUSED(call->name, "no ARMCI", PORTOLAN_ERR_STATE, call->run());
  }
}

static void others(void)
{
  for (const struct other *o = other_calls; o->call; o++)
    CHECK(o->run(), "%s with %s: not '%s' (%s)", o->call, o->fault, o->outcome, portolan_last_error());
}

/* ---------------------------------------------------------------- documents */

/* Prints the messages of tests/c/mismatch.c. */
static void mismatches(void)
{
  printf("\n## Collective calls that differ between ranks\n"
         "\n"
         "Ranks compare the kind of each collective call, its object, type, length, operator and root. If they\n"
         "differ, no rank gets a result. Calls that return a code give `PORTOLAN_ERR_MISMATCH`, calls that return\n"
         "nothing end the job, and in Rust the error has the kind `Mismatch`. The group makes no further\n"
         "collective call. In Rust and Python, its ranks can continue after they have all called `resume` of the\n"
         "group.\n"
         "A rank that only gives, such as the root of a broadcast, does not wait for the others: it gets the error\n"
         "from its next collective call. In Rust, scans, gathers, scatters and exchanges of all ranks are compared\n"
         "in the same way.\n"
         "\n"
         "| rank 0 | rank 1 | message, behind \"the ranks' collective calls differ:\" |\n"
         "|---|---|---|\n"
         "| armci_msg_dgop of 2 | of 4 | `rank 0: all_reduce of 2 f64 (sum); rank 1: all_reduce of 4 f64 (sum)` |\n"
         "| armci_msg_igop | armci_msg_dgop | `rank 0: all_reduce of 1 i32 (sum); rank 1: all_reduce of 1 f64 (sum)` |\n"
         "| armci_msg_dgop \"min\" | \"max\" | `rank 0: all_reduce of 1 f64 (min); rank 1: all_reduce of 1 f64 (max)` |\n"
         "| armci_msg_brdcst from rank 0 | from rank 1 | `rank 0: broadcast of 8 u8 from rank 0; rank 1: broadcast of 8 u8 from rank 1` |\n"
         "| armci_msg_igop | ARMCI_Barrier | `rank 0: all_reduce of 1 i32 (sum); rank 1: barrier` |\n"
         "| ARMCI_Barrier | ARMCI_Finalize | `rank 0: barrier; rank 1: finalize` |\n"
         "| ARMCI_Malloc | ARMCI_Free | `rank 0: allocation; rank 1: free of a segment` |\n"
         "| ARMCI_Group_create of 0, 1 | of 1, 0 | `rank 0: creation of a group of the ranks 0, 1; rank 1: creation of a group of the ranks 1, 0` |\n");
}

static void markdown(void)
{
  printf("# Bad input to armci.h\n\n"
         "What each call does with arguments that are wrong. tests/c/invalid.c tests every line, and this\n"
         "page is what `invalid markdown` prints. A call that is refused changes no memory; its text is\n"
         "`portolan_last_error()`, and goes to standard error. The other interfaces have pages of their own:\n"
         "[X10Lib](errors-x10.md), [LAPI](errors-lapi.md), [compose/perform](errors-compose.md),\n"
         "[Mercury](errors-mercury.md).\n\n"
         "## Calls that move data\n\n");
  calls_with_faults(calls, faults, good_input, "ARMCI_");
  printf("| before ARMCI_Init, after ARMCI_Finalize | all | `PORTOLAN_ERR_STATE` |\n");
  printf("\n## Other calls that return something\n\n| call | fault | result |\n|---|---|---|\n");
  for (const struct other *o = other_calls; o->call; o++)
    printf("| %s | %s | %s |\n", o->call, o->fault, o->outcome);
  printf("\n## Calls that end the job\n\nThey return no code; the message names the call, the rank\n"
         "and the value, and all ranks end with a status other than 0.\n\n| call | fault |\n|---|---|\n");
  for (const struct fatal *f = fatal_calls; f->name; f++)
    printf("| %s | %s |\n", f->call, f->fault);
  mismatches();
}

static int run_fatal(const struct fatal *fatal, int *argc, char ***argv)
{
  check_start_mpi(fatal->name, argc, argv);
  right = (me + 1) % nproc;
  if (fatal->who != EARLY) {
    CHECK_OK(ARMCI_Init());
    make_segments();
    if (fatal->who != LATE)
      make_groups();
    ARMCI_Barrier();
  }
  if (fatal->who == LATE) {
    drop_segments();
    CHECK_OK(ARMCI_Finalize());
  }
  if (me == 0) {
    printf("EXPECT-ABORT %s\n", fatal->name);
    check_linger();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (fatal->who != ONE || me == nproc - 1) {
    fatal->run();
    printf("FAIL invalid %s: %s returned on rank %d\n", fatal->name, fatal->call, me);
    fflush(stdout);
  }
  if (ARMCI_Initialized())
    ARMCI_Barrier();
  MPI_Finalize();
  return 0;
}

int main(int argc, char **argv)
{
  if (refusals_listed(argc, argv))
    return markdown(), 0;
  if (argc > 1 && strcmp(argv[1], "list") == 0) {
    for (const struct fatal *f = fatal_calls; f->name; f++)
      printf("%s %s\n", f->name, f->call);
    return 0;
  }
  if (argc > 1) {
    for (const struct fatal *f = fatal_calls; f->name; f++)
      if (strcmp(argv[1], f->name) == 0)
        return run_fatal(f, &argc, &argv);
    return printf("FAIL invalid: no such case\n"), 0;
  }
  check_start_mpi("invalid", &argc, &argv);
  right = (me + 1) % nproc;
  check_fill(here, 3, sizeof here);
  watch("local memory", here, sizeof here);
  outside_its_life(here);

  CHECK_OK(ARMCI_Init());
  make_segments();
  make_groups();
  calls_work(calls, good_input);
  ARMCI_Barrier();
  check_fill(here, 3, sizeof here);
  memcpy(all_segments[me], there, sizeof there);
  ARMCI_Barrier();
  calls_with_faults(calls, faults, good_input, NULL);
  ARMCI_Barrier();
  CHECK_BYTES(all_segments[me], there, sizeof there, "the segment after refused calls");
  others();
  drop_groups();
  void *far = segment;
  drop_segments();
  CHECK_OK(ARMCI_Finalize());
  outside_its_life(far);
  if (me == 0)
    printf("%d calls with faults were refused\n", refusals);
  return check_end_mpi();
}
