/* Every function of x10lib.h is in the library, and its types have the expected layouts. The test
 * `docs` checks that the table is complete. */
// TEST: x10
#include "x10_check.h"

typedef void (*function)(void);

#undef x10_get_s
#undef x10_put_s
static const struct {
  const char *name;
  function address;
} table[] = {
#define NAME(name) { #name, (function)name },
  NAME(x10_init) NAME(x10_finalize) NAME(x10_last_error)
  NAME(x10_make_gas_ref) NAME(x10_gas2place) NAME(x10_gas2addr)
  NAME(x10_alloc_switch) NAME(x10_free_switch) NAME(x10_decrement_switch)
  NAME(x10_increment_switch) NAME(x10_switch_value) NAME(x10_wait) NAME(x10_next_on_switch)
  NAME(x10_test)
  NAME(x10_get) NAME(x10_get_nb) NAME(x10_put) NAME(x10_put_nb)
  NAME(x10_get_v) NAME(x10_get_v_nb) NAME(x10_put_v) NAME(x10_put_v_nb)
  NAME(x10_get_s) NAME(x10_get_s_nb) NAME(x10_put_s) NAME(x10_put_s_nb)
  NAME(x10_get_value_int) NAME(x10_put_value_int) NAME(x10_put_value_int_nb)
  NAME(x10_put_int) NAME(x10_put_int_nb)
  NAME(x10_get_value_long) NAME(x10_put_value_long) NAME(x10_put_value_long_nb)
  NAME(x10_put_long) NAME(x10_put_long_nb)
  NAME(x10_get_value_float) NAME(x10_put_value_float) NAME(x10_put_value_float_nb)
  NAME(x10_put_float) NAME(x10_put_float_nb)
  NAME(x10_get_value_double) NAME(x10_put_value_double) NAME(x10_put_value_double_nb)
  NAME(x10_put_double) NAME(x10_put_double_nb)
  NAME(x10_get_value_status)
  NAME(x10_fence) NAME(x10_gfence) NAME(x10_lock) NAME(x10_unlock)
  NAME(x10_register) NAME(x10_addr_init) NAME(x10_getenv) NAME(x10_setenv)
  NAME(x10_async_spawn_packed) NAME(x10_async_spawn_agg_packed) NAME(x10_flush)
  NAME(x10_flush_func)
};

int main(int argc, char **argv)
{
  const int count = (int)(sizeof table / sizeof table[0]);

  x_start("x10_symbols", &argc, &argv);
  for (int i = 0; i < count; i++) {
    CHECK(table[i].address != NULL, "%s is missing", table[i].name);
    for (int j = 0; j < i; j++)
      CHECK(strcmp(table[i].name, table[j].name) != 0, "%s is listed twice", table[i].name);
  }
  CHECK_EQ(sizeof(place_t), 4);
  CHECK_EQ(sizeof(async_arg_t), 8);
  CHECK_EQ(sizeof(x10_gas_ref_t), 16);
  CHECK_EQ(offsetof(x10_gas_ref_t, addr), 8);
  CHECK_EQ(sizeof(x10_giov_ref_t), 24);
  CHECK_EQ(sizeof(x10_switch_t), sizeof(void *));
  CHECK_EQ(sizeof(x10_statistics_t), 56);
  CHECK_EQ(X10_OK, 0);
  CHECK(X10_ERR_LAPI != X10_OK, "an error is success");
  CHECK_EQ(X10_TASK_ID, 0);
  CHECK_EQ(X10_ERROR_CHK, 4);
  CHECK_EQ(X10_LOC_ADDRTBL_SZ, 13);
  CHECK_EQ(X10_PRINT_STATISTICS, 25);
  return x_end();
}
