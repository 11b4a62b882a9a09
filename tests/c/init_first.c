/*
 * Initialises an interface before the program calls MPI_Init, which must still succeed. The
 * interface ends before or after MPI_Finalize; MPI ends when both have been finalised.
 *
 *   init_first armci|x10|lapi|compose|na|hg early|late
 */
// TEST: n=2 -- {armci,x10,lapi,compose,na,hg} {early,late}
// TEST: release n=3 node-size=1 -- {armci,x10,lapi,compose,na,hg} {early,late}
// TEST: release n=1 -- {armci,x10,lapi,compose,na,hg} late
// TEST: n=2 build=static -- lapi late
#include "check.h"

#include <cp.h>
#include <lapi.h>
#include <mercury.h>
#include <na.h>
#include <x10/x10lib.h>

static const char *face;
static lapi_handle_t handle;
static na_class_t *network;
static void **base;

static int is(const char *name)
{
  return strcmp(face, name) == 0;
}

static void begin(void)
{
  if (is("armci")) {
    CHECK_OK(ARMCI_Init());
  } else if (is("x10")) {
    CHECK_EQ(x10_init(NULL, 0), X10_OK);
  } else if (is("lapi")) {
    lapi_info_t info;
    memset(&info, 0, sizeof info);
    CHECK_EQ(LAPI_Init(&handle, &info), LAPI_SUCCESS);
  } else if (is("compose")) {
    CHECK_EQ(cp_init(), 0);
  } else {
    network = NA_Initialize("mpi", NA_TRUE);
    CHECK(network != NULL, "NA_Initialize");
    if (is("hg"))
      CHECK_EQ(HG_Init(network), HG_SUCCESS);
  }
}

/* Uses a collective operation of the interface. */
static void use(void)
{
  if (is("armci")) {
    long seen = -1;
    const int right = (me + 1) % nproc;
    if (base == NULL) {
      base = check_calloc(nproc * (long)sizeof *base);
      CHECK_OK(ARMCI_Malloc(base, 8));
    }
    *(long *)base[me] = 40 + me;
    ARMCI_Barrier();
    CHECK_OK(ARMCI_Get(base[right], &seen, 8, right));
    CHECK_EQ(seen, 40 + right);
    ARMCI_Barrier();
  } else if (is("x10")) {
    CHECK_EQ(x10_gfence(), X10_OK);
  } else if (is("lapi")) {
    void *table[64];
    static int mine;
    CHECK_EQ(LAPI_Address_init(handle, &mine, table), LAPI_SUCCESS);
    CHECK(table[me] == &mine, "the exchange");
  } else if (is("compose")) {
    CHECK_EQ(cp_nprocs(), nproc);
  } else {
    na_addr_t self;
    CHECK_EQ(NA_Addr_self(network, &self), NA_SUCCESS);
    CHECK_EQ(NA_Addr_free(network, self), NA_SUCCESS);
  }
}

static void end(void)
{
  if (is("armci")) {
    CHECK_OK(ARMCI_Finalize());
  } else if (is("x10")) {
    CHECK_EQ(x10_finalize(), X10_OK);
  } else if (is("lapi")) {
    CHECK_EQ(LAPI_Term(handle), LAPI_SUCCESS);
  } else if (is("compose")) {
    CHECK_EQ(cp_finalize(), 0);
  } else {
    if (is("hg"))
      CHECK_EQ(HG_Finalize(), HG_SUCCESS);
    CHECK_EQ(NA_Finalize(network), NA_SUCCESS);
  }
}

static void mpi_works(void)
{
  int one = 1, sum = 0;
  CHECK_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK_EQ(sum, nproc);
}

static int says(int (*question)(int *))
{
  int answer = -1;
  CHECK_EQ(question(&answer), MPI_SUCCESS);
  return answer;
}

int main(int argc, char **argv)
{
  int provided = -1;

  check_begin("init_first");
  CHECK(argc == 3, "init_first FACE early|late");
  face = argv[1];
  CHECK_EQ(says(MPI_Initialized), 0);
  begin();
  CHECK_EQ(says(MPI_Initialized), 1);          /* MPI is initialised */
  if (is("lapi") || is("na")) {
    CHECK_EQ(MPI_Init(&argc, &argv), MPI_SUCCESS);
  } else {
    CHECK_EQ(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), MPI_SUCCESS);
    CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &nproc);
  CHECK(nproc <= 64, "at most 64 ranks");
  mpi_works();
  use();
  if (strcmp(argv[2], "early") == 0) {
    end();
    mpi_works();
    if (is("armci") || is("lapi")) {           /* starts a second time */
      free(base);
      base = NULL;
      begin();
      use();
      mpi_works();
      end();
      mpi_works();
    }
    CHECK_EQ(MPI_Finalize(), MPI_SUCCESS);
  } else {
    CHECK_EQ(MPI_Finalize(), MPI_SUCCESS);
    CHECK_EQ(says(MPI_Finalized), 0);          /* MPI is still running */
    use();
    end();
  }
  CHECK_EQ(says(MPI_Finalized), 1);
  free(base);
  return check_pass();
}
