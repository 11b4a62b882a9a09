/* Procs that fail on either side, and servers that receive garbage. mercury_invalid.c tests the
 * arguments that a call itself rejects. */
// TEST: mercury networks
#include "mercury_check.h"

MERCURY_GEN_PROC(one_t, ((int32_t)(x)))
MERCURY_GEN_PROC(text_t, ((hg_string_t)(text)) ((uint64_t)(number)))

#define LONG_TIME 600000

static hg_id_t one_id, text_id, bad_id;
static int served;

static hg_return_t one_cb(hg_handle_t handle)
{
  one_t in;
  MUST(HG_Handler_get_input(handle, &in));
  in.x++;
  MUST(HG_Handler_start_output(handle, &in));
  served++;
  return HG_Handler_free(handle);
}

static hg_return_t text_cb(hg_handle_t handle)
{
  text_t in;
  hg_return_t ret = HG_Handler_get_input(handle, &in);
  served++;
  if (ret != HG_SUCCESS)
    return ret;
  MUST(HG_Handler_start_output(handle, &in));
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

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

/* ---------------------------------------------------------------------------- rubbish */

static unsigned char caught[2][8192];
static na_size_t caught_size[2];
static int catching, sent;

static na_return_t caught_cb(const struct na_cb_info *info)
{
  CHECK_EQ(info->ret, NA_SUCCESS);
  caught_size[catching] = info->info.recv_unexpected.actual_buf_size;
  NA_Addr_free(network, info->info.recv_unexpected.source);
  catching++;
  return NA_SUCCESS;
}

static na_return_t sent_cb(const struct na_cb_info *info)
{
  CHECK_EQ(info->ret, NA_SUCCESS);
  sent++;
  return NA_SUCCESS;
}

static void good_call(na_addr_t to)
{
  text_t in = { (char *)"still there?", 7 }, out = { NULL, 0 };
  hg_request_t request;
  hg_status_t status = HG_FALSE;
  MUST(HG_Forward(to, text_id, &in, &out, &request));
  MUST(HG_Wait(request, LONG_TIME, &status));
  CHECK(status, "the server does not answer any more");
  CHECK(strcmp(in.text, out.text) == 0 && out.number == 7, "the answer has changed");
  MUST(HG_Request_free(request));
}

/* Rank 0 captures two requests of rank 1 as raw messages: a short one and one whose input must
 * be pulled. Rank 1 then sends thousands of damaged copies to rank 0, which serves them. */
static void rubbish(void)
{
  enum { ROUNDS = 4000 };
  na_addr_t to = address_of(0);

  context = NA_Context_create(network);
  if (me == 0) {
    MUST(HG_Finalize());
    for (int i = 0; i < 2; i++)
      MUST(NA_Msg_recv_unexpected(network, context, caught_cb, NULL, caught[i], sizeof caught[i],
                                  NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    pump_until(&catching, 2, "requests");
    for (int i = 0; i < 2; i++) {
      MPI_Send(&caught_size[i], 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
      MPI_Send(caught[i], (int)caught_size[i], MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    }
    MUST(HG_Init(network));
    one_id = MERCURY_REGISTER("one", one_t, one_t, one_cb);
    text_id = MERCURY_REGISTER("text", text_t, text_t, text_cb);
  } else if (me == 1) {
    hg_request_t requests[2];
    text_t in[2] = { { (char *)"a text", 1 }, { NULL, 2 } }, out[2];
    in[1].text = check_calloc(100001);
    memset(in[1].text, 'x', 100000);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
      MUST(HG_Forward(to, text_id, &in[i], &out[i], &requests[i]));
    for (int i = 0; i < 2; i++) {
      MPI_Recv(&caught_size[i], 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(caught[i], (int)caught_size[i], MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MUST(HG_Request_free(requests[i])); /* no response will arrive */
    }
    CHECK(caught_size[0] > 32 && caught_size[1] > 32, "the requests are short");
    free(in[1].text);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  serve_barrier();
  if (me == 1) {
    unsigned char bytes[8192];
    for (int i = 0; i < ROUNDS; i++) {
      const int which = i % 3;
      na_size_t size;
      if (which == 2) { /* random bytes only */
        size = (na_size_t)check_random(4000);
        for (na_size_t j = 0; j < size; j++)
          bytes[j] = (unsigned char)check_random(256);
      } else {
        size = caught_size[which];
        memcpy(bytes, caught[which], size);
        for (int j = check_random(4); j >= 0; j--) {
          /* Mostly behind the head, which has its own check value. */
          const int from = check_random(4) == 0 ? 0 : 16;
          bytes[from + check_random((int)size - from)] = (unsigned char)check_random(256);
        }
        if (check_random(5) == 0)
          size = (na_size_t)check_random((int)size);
      }
      MUST(NA_Msg_send_unexpected(network, context, sent_cb, NULL, bytes, size, to, 0, NULL));
      if (i % 100 == 99)
        good_call(to);
    }
    pump_until(&sent, ROUNDS, "rubbish");
    good_call(to);
  }
  serve_barrier();
  if (me == 0)
    CHECK(served > 100, "only %d requests have reached their function", served);
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Addr_free(network, to));
}

int main(int argc, char **argv)
{
  start_network("mercury_errors", &argc, &argv);
  MUST(HG_Init(network));
  one_id = MERCURY_REGISTER("one", one_t, one_t, one_cb);
  text_id = MERCURY_REGISTER("text", text_t, text_t, text_cb);
  bad_id = HG_Register("bad", hg_proc_bad_t, hg_proc_bad_t, bad_cb);
  serve_barrier();
  procs();
  serve_barrier();
  if (nproc > 1)
    rubbish();
  serve_barrier();
  return end_shipping();
}
