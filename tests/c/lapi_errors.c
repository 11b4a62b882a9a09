/*
 * Faults that the target detects. With the name of a case, the program prints "EXPECT-ABORT <case>"
 * and makes the fault; the error handler must receive it and the job must end. "list" prints the
 * names of the cases. lapi_invalid.c tests the arguments that a call itself rejects.
 */
// TEST: aborts n=2
#include "lapi_check.h"
#include "lapi_aborts.h"

static char bytes[4096], *bytes_there;
static const int constant[2] = { 7, 7 };
static void *const_there;
static lapi_cntr_t counter;

HEADER_HANDLER(header)
{
  return NULL;
}

/* ------------------------------------------------------------------ aborts */

static int expected_code;
static lapi_err_t expected_kind = AM_ERR;

static void on_error(lapi_handle_t *h, int *code, lapi_err_t *kind, int *task, int *src)
{
  CHECK(*h == hndl, "the handle");
  CHECK_EQ(*code, expected_code);
  CHECK_EQ(*kind, expected_kind);
  CHECK_EQ(*task, me);
  CHECK_EQ(*src, me == 0 ? nproc - 1 : 0);        /* the task at the other end */
  printf("TOLD %d\n", *code);
  check_linger();
}

HEADER_HANDLER(wrong)
{
  lapi_return_info_t *ri = (lapi_return_info_t *)msg_len;
  switch (*(long *)uhdr) {
  case 1:
    ri->ctl_flags = (lapi_ctl_flags_t)9;
    break;
  case 2:
    ri->dgsp_handle = (lapi_dg_handle_t)bytes;
    break;
  case 3:
    check_nap(300);
    break;
  }
  return NULL;
}

static lapi_vec_t *wrong_vector(lapi_handle_t *h, void *uhdr, uint *len, ulong *len_vec,
                                compl_hndlr_t **comp_h, void **info)
{
  static void *at[1] = { bytes };
  static ulong lengths[1] = { 7 };
  static lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, lengths };

  (void)h, (void)len, (void)len_vec, (void)comp_h, (void)info;
  return *(long *)uhdr == 1 ? NULL : &v;
}

static void send_wrong(long what, ulong length)
{
  static char data[1 << 20];
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)1, &what, 8, data, length, NULL, NULL,
                      &counter));
}

static void null_return(void) { send_wrong(0, 1 << 20); }
static void bad_flags(void) { send_wrong(1, 8); }
static void dgsp(void) { send_wrong(2, 8); }

static void no_index(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)9, NULL, 0, NULL, 0, NULL, NULL, &counter));
}

static void no_code(void)           /* an address of data, not of code */
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), bytes, NULL, 0, NULL, 0, NULL, NULL, &counter));
}

static void bad_counter(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)3, NULL, 0, NULL, 0, (lapi_cntr_t *)64,
                      NULL, &counter));
}

static void bad_rmw(void)
{
  int one = 1;
  LAPI_OK(LAPI_Rmw(hndl, SWAP, (uint)(nproc - 1), (int *)64, &one, NULL, &counter));
}

static void const_counter(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)3, NULL, 0, NULL, 0,
                      (lapi_cntr_t *)const_there, NULL, &counter));
}

static void const_rmw(void)
{
  int one = 1;
  LAPI_OK(LAPI_Rmw(hndl, FETCH_AND_ADD, (uint)(nproc - 1), (int *)const_there, &one, NULL, &counter));
}

static void odd_rmw(void)           /* mapped, but not aligned */
{
  int one = 1;
  LAPI_OK(LAPI_Rmw(hndl, SWAP, (uint)(nproc - 1), (int *)(void *)(bytes_there + 2), &one, NULL, &counter));
}

static void odd_counter(void)
{
  LAPI_OK(LAPI_Amsend(hndl, (uint)(nproc - 1), (void *)3, NULL, 0, NULL, 0,
                      (lapi_cntr_t *)(void *)(bytes_there + 2), NULL, &counter));
}

/* The header handler is slow, so the target does not answer the following request at once. */
static void bad_put(void)
{
  send_wrong(3, 0);
  LAPI_OK(LAPI_Put(hndl, (uint)(nproc - 1), 8, (void *)64, bytes, NULL, NULL, &counter));
}

static void bad_get(void)
{
  send_wrong(3, 0);
  LAPI_OK(LAPI_Get(hndl, (uint)(nproc - 1), 8, (void *)64, bytes, NULL, &counter));
}

static void send_vector(long what)
{
  void *at[1] = { bytes };
  ulong len[1] = { 8 };
  lapi_vec_t v = { LAPI_GEN_IOVECTOR, 1, at, len };
  LAPI_OK(LAPI_Amsendv(hndl, (uint)(nproc - 1), (void *)2, &what, 8, &v, NULL, NULL, &counter));
}

static void null_vector(void) { send_vector(1); }
static void other_vector(void) { send_vector(2); }

#define ROW(name, fault, code, kind, run) { name, run, code, kind },
static const struct { const char *name; void (*run)(void); int code; lapi_err_t kind; } cases[] = {
  LAPI_ABORTS(ROW)
};
enum { CASES = sizeof cases / sizeof cases[0] };

static int abort_case(int which, int *argc, char ***argv)
{
  lapi_info_t info;

  setenv("PORTOLAN_CROSS_MEMORY", "off", 1);      /* otherwise the call itself would report the
                                                   * fault */
  check_start_mpi("lapi_errors", argc, argv);
  memset(&info, 0, sizeof info);
  info.err_hndlr = on_error;
  expected_code = cases[which].code;
  expected_kind = cases[which].kind;
  LAPI_OK(LAPI_Init(&hndl, &info));
  LAPI_OK(LAPI_Senv(hndl, TIMEOUT, 10));          /* the minimum */
  bytes_there = lapi_exchange(bytes)[nproc - 1];
  const_there = lapi_exchange((void *)constant)[nproc - 1];
  LAPI_OK(LAPI_Addr_set(hndl, (void *)wrong, 1));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)wrong_vector, 2));
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 3));
  LAPI_OK(LAPI_Gfence(hndl));
  if (me == 0) {
    printf("EXPECT-ABORT %s\n", cases[which].name);
    check_linger();
    cases[which].run();
    LAPI_OK(LAPI_Waitcntr(hndl, &counter, 2, NULL));
    CHECK(0, "%s was survived", cases[which].name);
  }
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK(0, "%s was passed", cases[which].name);
  return 0;
}

int main(int argc, char **argv)
{
  for (int i = 0; i < CASES && argc > 1; i++) {
    if (strcmp(argv[1], "list") == 0)
      puts(cases[i].name);
    else if (strcmp(argv[1], cases[i].name) == 0)
      return abort_case(i, &argc, &argv);
  }
  if (argc < 2 || strcmp(argv[1], "list") != 0)
    printf("FAIL lapi_errors: no such case\n");
  return 0;
}
