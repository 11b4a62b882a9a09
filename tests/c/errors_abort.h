/*
 * errors_abort.h - the cases of errors.c that must end the job. The last rank makes the faulty call
 * and the others wait in a barrier, unless the call is collective. If the call returns, the program
 * prints FAIL and exits with status 0; a driver that expects another status reports this as a
 * failure.
 */
#ifndef ERRORS_ABORT_H
#define ERRORS_ABORT_H

static int item[4] = { 1, 2, 3, 4 };

static void with_mutexes(void) { CHECK_OK(ARMCI_Create_mutexes(1)); }

static void error_seven(void)     { ARMCI_Error((char[]){ "asked to" }, 7); }
static void error_zero(void)      { ARMCI_Error((char[]){ "asked to, with code 0" }, 0); }
static void error_256(void)       { ARMCI_Error((char[]){ "asked to, with code 256" }, 256); }
static void error_null(void)      { ARMCI_Error(NULL, 1); }
static void abort_zero(void)      { armci_msg_abort(0); }
/* MPI_Abort of MPICH 4.2 returns if the launcher has not killed the rank yet. */
static void cleanup(void)         { ARMCI_Cleanup(); MPI_Abort(MPI_COMM_WORLD, 3); for (;;) pause(); }
static void fence_rank(void)      { ARMCI_Fence(nproc); }
static void fence_negative(void)  { ARMCI_Fence(-1); }
static void lock_rank(void)       { ARMCI_Lock(0, nproc); }
static void lock_number(void)     { ARMCI_Lock(1, 0); }
static void lock_negative(void)   { ARMCI_Lock(-1, 0); }
static void lock_none(void)       { ARMCI_Lock(0, 0); }
static void lock_twice(void)      { ARMCI_Lock(0, 0); ARMCI_Lock(0, 0); }
static void unlock_free(void)     { ARMCI_Unlock(0, 0); }
static void unlock_number(void)   { ARMCI_Unlock(7, 0); }
static void value_address(void)   { printf("%d\n", ARMCI_GetValueInt(&nproc, me)); }
static void value_rank(void)      { printf("%ld\n", ARMCI_GetValueLong(base[me], nproc)); }
static void access_address(void)  { ARMCI_Access_begin(&nproc); }
static void copy_negative(void)   { ARMCI_Copy(item, item + 1, -4); }
static void copy_null(void)       { ARMCI_Copy(NULL, item, 4); }
static void gop_op(void)          { armci_msg_igop(item, 4, (char[]){ "/" }); }
static void gop_type(void)        { armci_msg_gop_scope(SCOPE_ALL, item, 4, (char[]){ "+" }, 77); }
static void gop_scope(void)       { armci_msg_gop_scope(9, item, 4, (char[]){ "+" }, ARMCI_INT); }
static void gop_count(void)       { armci_msg_igop(item, -1, (char[]){ "+" }); }
static void gop_null(void)        { armci_msg_igop(NULL, 4, (char[]){ "+" }); }
static void gop_bits(void)        { double x = 1; armci_msg_dgop(&x, 1, (char[]){ "&" }); }
static void gop_or(void)          { double x = 1; armci_msg_dgop(&x, 1, (char[]){ "bor" }); }
static void sel_op(void)          { armci_msg_sel(item, 16, (char[]){ "+" }, ARMCI_INT, 1); }
static void bcast_root(void)      { armci_msg_bcast(item, 4, nproc); }
static void bcast_length(void)    { armci_msg_bcast(item, -4, 0); }
static void snd_rank(void)        { armci_msg_snd(1, item, 4, nproc); }
static void rcv_rank(void)        { armci_msg_rcv(1, item, 4, NULL, -2); }

static void rcv_length(void)      /* a message longer than the buffer */
{
  const int to = (me + 1) % nproc;
  int small = 0;
  if (nproc == 1 || me == nproc - 2)
    armci_msg_snd(1, item, sizeof item, to);
  if (nproc == 1 || me == nproc - 1)
    armci_msg_rcv(1, &small, sizeof small, NULL, (me + nproc - 1) % nproc);
  else
    ARMCI_Barrier();
}

static void group_list(void)      /* a rank that does not exist */
{
  ARMCI_Group group;
  int list[2] = { 0, nproc };
  ARMCI_Group_create(2, list, &group);
}

static void group_twice(void)
{
  ARMCI_Group group;
  int list[2] = { 0, 0 };
  ARMCI_Group_create(2, list, &group);
}

static void too_late(void)
{
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Finalize());
  ARMCI_Fence(me);
}

enum manner { ONE, ALL, EARLY };    /* who calls: the last rank, all, all before ARMCI_Init */

static const struct {
  const char *name;
  void (*run)(void);
  enum manner manner;
  void (*prepare)(void);
} cases[] = {
  { "error", error_seven, ONE, NULL },
  { "error-zero", error_zero, ONE, NULL },
  { "error-256", error_256, ONE, NULL },
  { "error-null", error_null, ONE, NULL },
  { "error-all", error_seven, ALL, NULL },
  { "abort-zero", abort_zero, ONE, NULL },
  { "cleanup", cleanup, ONE, NULL },
  { "fence-rank", fence_rank, ONE, NULL },
  { "fence-negative", fence_negative, ONE, NULL },
  { "fence-early", fence_negative, EARLY, NULL },
  { "fence-late", too_late, ALL, NULL },
  { "lock-rank", lock_rank, ONE, with_mutexes },
  { "lock-number", lock_number, ONE, with_mutexes },
  { "lock-negative", lock_negative, ONE, with_mutexes },
  { "lock-none", lock_none, ONE, NULL },
  { "lock-twice", lock_twice, ONE, with_mutexes },
  { "unlock-free", unlock_free, ONE, with_mutexes },
  { "unlock-number", unlock_number, ONE, with_mutexes },
  { "value-address", value_address, ONE, NULL },
  { "value-rank", value_rank, ONE, NULL },
  { "access-address", access_address, ONE, NULL },
  { "copy-negative", copy_negative, ONE, NULL },
  { "copy-null", copy_null, ONE, NULL },
  { "gop-op", gop_op, ALL, NULL },
  { "gop-type", gop_type, ALL, NULL },
  { "gop-scope", gop_scope, ALL, NULL },
  { "gop-count", gop_count, ALL, NULL },
  { "gop-null", gop_null, ALL, NULL },
  { "gop-bits", gop_bits, ALL, NULL },
  { "gop-or", gop_or, ALL, NULL },
  { "sel-op", sel_op, ALL, NULL },
  { "bcast-root", bcast_root, ALL, NULL },
  { "bcast-length", bcast_length, ALL, NULL },
  { "snd-rank", snd_rank, ONE, NULL },
  { "rcv-rank", rcv_rank, ONE, NULL },
  { "rcv-length", rcv_length, ALL, NULL },
  { "group-list", group_list, ALL, NULL },
  { "group-twice", group_twice, ALL, NULL },
};

static int run_case(int *argc, char ***argv)
{
  const int count = (int)(sizeof cases / sizeof cases[0]);
  int which = -1;

  for (int i = 0; i < count; i++) {
    if (strcmp((*argv)[1], "list") == 0)
      printf("%s\n", cases[i].name);
    if (strcmp((*argv)[1], cases[i].name) == 0)
      which = i;
  }
  if (which < 0)                    /* "list" or an unknown name */
    return strcmp((*argv)[1], "list") == 0 ? 0 : (printf("FAIL errors: no such case\n"), 0);

  check_start_mpi(cases[which].name, argc, argv);
  if (cases[which].manner != EARLY) {
    CHECK_OK(ARMCI_Init());
    base = check_segment(64);
    if (cases[which].prepare)
      cases[which].prepare();
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

#endif /* ERRORS_ABORT_H */
