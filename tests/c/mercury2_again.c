/* Mercury 2.4 in a program that does not call MPI: started and ended several times, and left in use
 * when the process exits with status 0. */
// TEST: n=1 -- {end,leave}
// TEST: n=2 -- {end,leave}
#include "mercury2_check.h"

static volatile int ended;

static hg_return_t sum_cb(hg_handle_t handle)
{
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  MUST(info->ret);
  ended++;
  return HG_SUCCESS;
}

int main(int argc, char **argv)
{
  const int leaves = argc > 1 && !strcmp(argv[1], "leave");
  check_begin("mercury2_again");
  for (int round = 0; round < 3; round++) {
    hg_handle_t handle;
    hg_addr_t self;
    char name[64];
    hg_size_t size = sizeof name;
    hg_class = HG_Init("mpi", HG_TRUE);
    CHECK(hg_class != NULL, "HG_Init in round %d: %s", round, portolan_last_error());
    context = HG_Context_create(hg_class);
    hg_id_t id = HG_Register_name(hg_class, "sum", NULL, NULL, sum_cb);
    MUST(HG_Addr_self(hg_class, &self));
    MUST(HG_Addr_to_string(hg_class, name, &size, self));
    MUST(HG_Create(context, self, id, &handle));
    MUST(HG_Forward(handle, on_end, NULL, NULL));
    pump_until(&ended, round + 1, "a call");
    if (leaves && round == 2) {
      MUST_BE(HG_BUSY, HG_Finalize(hg_class));
      break;
    }
    MUST(HG_Destroy(handle));
    MUST(HG_Addr_free(hg_class, self));
    MUST(HG_Context_destroy(context));
    MUST(HG_Finalize(hg_class));
    me = atoi(name + strlen("mpi://"));
  }
  return check_pass();
}
