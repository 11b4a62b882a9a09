/* Procs that fail on either side. mercury_invalid.c tests the arguments that a call itself rejects, and
 * the checks rpc_forgeries of tests/ranks test servers that receive garbage. */
// TEST: mercury networks
#include "mercury_check.h"

#define LONG_TIME 600000

static hg_id_t bad_id;

/* The operation at which the proc fails. */
static hg_proc_op_t fails_at = HG_INVALID;

static hg_return_t hg_proc_bad_t(hg_proc_t proc, void *data)
{
  if (hg_proc_get_op(proc) == fails_at)
    return HG_FAIL;
  return hg_proc_int32_t(proc, data);
}

static hg_return_t bad_cb(hg_handle_t handle)
{
  int32_t x;
  hg_return_t ret = HG_Handler_get_input(handle, &x);
  if (ret != HG_SUCCESS)
    return ret;
  ret = HG_Handler_start_output(handle, &x);
  if (ret != HG_SUCCESS)
    return ret;
  return HG_Handler_free(handle);
}

/* A proc that fails on either side, in either direction. */
static void procs(void)
{
  static const hg_proc_op_t ops[] = { HG_ENCODE, HG_DECODE, HG_INVALID };
  na_addr_t to = address_of((me + 1) % nproc);

  for (int i = 0; i < 3; i++)
    for (int client = 0; client < 2; client++) {
      int32_t in = 5, out = -1;
      hg_request_t request;
      hg_status_t status = HG_FALSE;
      hg_return_t ret;

      serve_barrier();
      fails_at = client == me % 2 ? ops[i] : HG_INVALID;
      serve_barrier();
      ret = HG_Forward(to, bad_id, &in, &out, &request);
      if (ret == HG_SUCCESS) {
        ret = HG_Wait(request, LONG_TIME, &status);
        CHECK(status, "the call has not ended");
        MUST(HG_Request_free(request));
      }
      if (ops[i] == HG_INVALID) {
        MUST(ret);
        CHECK_EQ(out, 5);
      } else if (nproc % 2 == 0 || nproc == 1) {
        /* The proc fails at one of the two ranks, or at the only rank. */
        if (nproc > 1 || client == 0)
          MUST_BE(HG_PROTOCOL_ERROR, ret);
        else
          MUST(ret);
      }
    }
  serve_barrier();
  fails_at = HG_INVALID;
  MUST(NA_Addr_free(network, to));
}

int main(int argc, char **argv)
{
  start_network("mercury_errors", &argc, &argv);
  MUST(HG_Init(network));
  bad_id = HG_Register("bad", hg_proc_bad_t, hg_proc_bad_t, bad_cb);
  serve_barrier();
  procs();
  serve_barrier();
  return end_shipping();
}
