/* Start and end: before MPI, nested, repeated, with resources left behind. part.c tests a part of the
 * ranks. The argument places the last ARMCI_Finalize: "before" MPI_Finalize (the default) or "after" it.
 * With "messages", armci_msg_init and armci_msg_finalize start and end MPI. */
// TEST: armci
// TEST: n=2 -- {alone,before,after,messages}
// TEST: n=2 level=single -- before
#include "check.h"

/* Checks briefly that the library works. */
static void use(void)
{
  void **base = check_calloc(nproc * (long)sizeof(void *));
  const int right = (me + 1) % nproc;
  long value = 100 + me, seen = 0;

  CHECK_EQ(armci_msg_me(), me);
  CHECK_EQ(armci_msg_nproc(), nproc);
  CHECK(ARMCI_Initialized(), "running, but not initialised");
  CHECK_OK(ARMCI_Malloc(base, 64));
  CHECK_OK(ARMCI_Put(&value, base[right], 8, right));
  ARMCI_Barrier();
  CHECK_EQ(*(long *)base[me], 100 + (me + nproc - 1) % nproc);
  CHECK_OK(ARMCI_Get(base[right], &seen, 8, right));
  CHECK_EQ(seen, value);
  ARMCI_Barrier();
  value = 1;
  armci_msg_lgop(&value, 1, (char[]){ "+" });
  CHECK_EQ(value, nproc);
  CHECK_OK(ARMCI_Free(base[me]));
  free(base);
}

/* Leaves segments, mutexes, groups and a pending operation behind. */
static void litter(void)
{
  ARMCI_Group world;
  ARMCI_Group copy;
  void **base = check_calloc(nproc * (long)sizeof(void *));
  static long value = 7;

  for (int i = 0; i < 5; i++)
    CHECK_OK(ARMCI_Malloc(base, 1000 * i + 8));
  ARMCI_Group_get_world(&world);
  CHECK_OK(ARMCIX_Group_dup(&world, &copy));
  CHECK_OK(ARMCI_Create_mutexes(2));
  CHECK_OK(ARMCI_NbPut(&value, base[nproc - 1 - me], 8, nproc - 1 - me, NULL));
  free(base);
}

/* A program whose MPI is started and ended by ARMCI. */
static int alone(void)
{
  int up = 0, down = 0;

  check_name = "lifecycle";
  CHECK_OK(ARMCI_Init());
  MPI_Initialized(&up);
  CHECK_EQ(up, 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  use();
  CHECK_OK(ARMCI_Finalize());
  MPI_Finalized(&down);
  CHECK_EQ(down, 1);
  CHECK_EQ(ARMCI_Init(), PORTOLAN_ERR_STATE);   /* MPI cannot be started again */
  return check_pass();
}

/* A start that fails leaves nothing running, and can be repeated. */
static void refused(void)
{
  void **base = check_calloc(nproc * (long)sizeof(void *));

  CHECK_EQ(setenv("PORTOLAN_SHM_DIR", "/nonexistent/directory", 1), 0);
  CHECK_EQ(ARMCI_Init(), PORTOLAN_ERR_MEMORY);
  CHECK_EQ(ARMCI_Initialized(), 0);
  CHECK_EQ(unsetenv("PORTOLAN_SHM_DIR"), 0);
  free(base);
}

/* Without ARMCI, rank and number of ranks come from MPI. */
static void asked_of_mpi(void)
{
  const double begun = armci_timer();
  CHECK_EQ(ARMCI_Initialized(), 0);
  CHECK_EQ(armci_msg_me(), me);
  CHECK_EQ(armci_msg_nproc(), nproc);
  CHECK(armci_timer() >= begun, "the time runs backwards");
}

/* Old programs use only ARMCI's messages to start and end. */
static int by_messages(int *argc, char ***argv)
{
  int up = 0, down = 0;

  check_name = "lifecycle";
  armci_msg_finalize();             /* nothing runs yet */
  armci_msg_init(argc, argv);
  armci_msg_init(NULL, NULL);       /* already running */
  MPI_Initialized(&up);
  CHECK_EQ(up, 1);
  nproc = armci_msg_nproc();
  me = armci_msg_me();
  MPI_Comm_rank(MPI_COMM_WORLD, &up);
  CHECK_EQ(me, up);
  asked_of_mpi();
  CHECK_OK(ARMCI_Init());
  use();
  CHECK_OK(ARMCI_Finalize());
  MPI_Finalized(&down);
  CHECK_EQ(down, 0);                /* MPI was not started by ARMCI_Init */
  asked_of_mpi();
  CHECK_OK(ARMCI_Init_args(argc, argv));
  litter();
  armci_msg_finalize();             /* while ARMCI runs */
  MPI_Finalized(&down);
  CHECK_EQ(down, 1);
  armci_msg_finalize();
  CHECK_EQ(ARMCI_Initialized(), 0);
  CHECK_OK(ARMCI_Finalize());
  return check_pass();
}

int main(int argc, char **argv)
{
  const int before_mpi = ARMCI_Initialized();
  int provided;

  if (argc > 1 && strcmp(argv[1], "alone") == 0)
    return alone();
  if (argc > 1 && strcmp(argv[1], "messages") == 0)
    return by_messages(&argc, &argv);

  check_start_mpi("lifecycle", &argc, &argv);
  const int after = argc > 1 && strcmp(argv[1], "after") == 0;
  CHECK_EQ(before_mpi, 0);
  asked_of_mpi();
  CHECK_EQ(ARMCI_Initialized(), 0);
  CHECK_OK(ARMCI_Finalize());       /* an extra call does nothing */
  CHECK_EQ(ARMCI_Initialized(), 0);

  refused();
  CHECK_OK(ARMCI_Init_args(&argc, &argv));
  use();
  CHECK_OK(ARMCI_Init());           /* nested, as in Global Arrays */
  CHECK_OK(ARMCI_Init_args(NULL, NULL));
  use();
  CHECK_OK(ARMCI_Finalize());
  use();
  CHECK_OK(ARMCI_Finalize());
  use();
  CHECK_OK(ARMCI_Finalize());
  CHECK_EQ(ARMCI_Initialized(), 0);
  CHECK_OK(ARMCI_Finalize());
  asked_of_mpi();

  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) {     /* too low a level starts nothing and counts nothing */
    CHECK(ARMCI_Init_thread(MPI_THREAD_MULTIPLE) != 0, "the level is %d", provided);
    CHECK_EQ(ARMCI_Initialized(), 0);
    CHECK_OK(ARMCI_Init());
    CHECK(ARMCI_Init_thread(MPI_THREAD_MULTIPLE) != 0, "the level is %d", provided);
    CHECK_EQ(ARMCI_Initialized(), 1);
    CHECK_OK(ARMCI_Finalize());
    CHECK_EQ(ARMCI_Initialized(), 0);
  }
  for (int life = 0; life < 3; life++) {
    CHECK_OK(ARMCI_Init_thread(life == 1 ? provided : MPI_THREAD_SINGLE));
    use();
    litter();
    CHECK_OK(ARMCI_Finalize());
    CHECK_EQ(ARMCI_Initialized(), 0);
  }

  CHECK_OK(ARMCI_Init());
  use();
  litter();
  if (!after) {
    CHECK_OK(ARMCI_Finalize());
    return check_end_mpi();
  }
  MPI_Finalize();
  CHECK_OK(ARMCI_Finalize());
  CHECK_OK(ARMCI_Finalize());
  return check_pass();
}
