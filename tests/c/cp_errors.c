/* Errors of cp.h that take more than one call: conflicts, released memory, start and end beside ARMCI.
 * cp_invalid.c tests the arguments that each call rejects. */
// TEST: armci moving
// TEST: n=2 build=static
#include "cp_check.h"

static void conflicts(void **base)
{
  unsigned char out[64];
  char text[40];
  const int target = (me + 1) % nproc;
  unsigned char *there = base[target];
  const int a = CP(cp_create(target)), b = CP(cp_create(target));

  CP(cp_add_adxblock(a, out, there, 32));
  CP(cp_add_adxblock(a, out + 8, there + 8, 8)); /* the same bytes to the same place again: no
                                                  * conflict */
  CP(cp_destroy(CP(cp_map(a))));
  CP(cp_add_adxpair(b, out + 40, there + 31));
  CP(cp_destroy(CP(cp_map(b))));
  const int both = CP(cp_merge(a, b));
  snprintf(text, sizeof text, "0x%lx", (unsigned long)(there + 31));
  CP_FAILS(cp_map(both), CP_ERR_ARGUMENT, text);
  snprintf(text, sizeof text, "0x%lx", (unsigned long)(out + 40));
  CP_FAILS(cp_map(both), CP_ERR_ARGUMENT, text);
  CP(cp_add_adxpair(a, out + 41, there + 32)); /* `both` is a copy and unchanged */
  CP_FAILS(cp_map(both), CP_ERR_ARGUMENT, text);
  CP(cp_destroy(both));
  CP(cp_destroy(a));
  CP(cp_destroy(b));
}

/* Memory that was released or never registered. */
static void memory(void)
{
  void **base = cp_segment(256);
  unsigned char out[64] = { 1, 2, 3 };
  const int target = (me + 1) % nproc;
  const int comp = cp_block(target, out, base[target], 64);

  CP(cp_sync());
  CP(cp_perform(comp));
  CP(cp_waitfor(1));
  cp_free_segment(base);
  base = cp_segment(256);
  CP_FAILS(cp_perform(comp), CP_ERR_STATE, "freed");
  for (int i = 0; i < 256; i++)
    CHECK_EQ(((char *)base[me])[i], 0);
  CP(cp_destroy(comp));
  cp_free_segment(base);
}

static void not_running(const char *text)
{
  CP_FAILS(cp_create(0), CP_ERR_STATE, text);
  CP_FAILS(cp_perform(1), CP_ERR_STATE, text);
}

int main(int argc, char **argv)
{
  check_start_mpi("cp_errors", &argc, &argv);
  CHECK_EQ(cp_errmsg()[0], 0);
  not_running("not initialised");
  CP(cp_init());
  const int old = CP(cp_create(0));
  CP(cp_init());                    /* cp_init nests */
  CP(cp_finalize());
  CHECK_EQ(cp_comptype(old), CP_COMPTYPE_SIMPLE);
  CP(cp_sync());
  CP_FAILS(cp_perform(old), CP_ERR_HANDLE, "simple");
  void **base = cp_segment(256);
  conflicts(base);
  memory();
  cp_free_segment(base);
  CP(cp_finalize());
  not_running("not initialised");
  CP(cp_finalize());                /* an extra cp_finalize does nothing */

  /* Starts again beside ARMCI. Either may end first. */
  CP(cp_init());
  CP_FAILS(cp_comptype(old), CP_ERR_HANDLE, "not the number of a live");
  CHECK_OK(ARMCI_Init());
  CP(cp_finalize());
  base = check_segment(64);
  long token = 40 + me;
  const int comp = cp_block((me + 1) % nproc, &token, base[(me + 1) % nproc], sizeof token);
  CP_FAILS(cp_perform(comp), CP_ERR_STATE, "sync");
  CP(cp_sync());
  CP(cp_perform(comp));
  CP(cp_waitfor(1));
  CHECK_EQ(*(long *)base[me], 40 + (me + nproc - 1) % nproc);
  check_free_segment(base);
  CP(cp_init());
  CHECK_OK(ARMCI_Finalize());
  CP(cp_sync());
  CP(cp_finalize());
  not_running("not initialised");
  return check_end_mpi();
}
