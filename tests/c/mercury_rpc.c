/* Calls: registration, forward and wait, time-outs and statuses, propagated errors, handlers that
 * answer later. Every rank is a server and a client. */
// TEST: mercury networks
// TEST: n=2 build=static
#include "mercury_check.h"

MERCURY_GEN_PROC(add_in_t, ((int32_t)(a)) ((int64_t)(b)) ((hg_const_string_t)(name)))
MERCURY_GEN_PROC(add_out_t, ((int64_t)(sum)) ((hg_string_t)(greeting)))
MERCURY_GEN_PROC(echo_t, ((hg_string_t)(text)))
MERCURY_GEN_PROC(one_t, ((int32_t)(x)))

#define LONG_TIME 600000

static hg_id_t add_id, echo_id, late_id, fail_id, forget_id, half_id, who_id,
  empty_id, hand_id;
static int ran;
static hg_handle_t kept[4096];
static int kept_count;

/* ------------------------------------------------------------------------- handlers */

static hg_return_t add_cb(hg_handle_t handle)
{
  add_in_t in;
  add_out_t out;
  char text[100];

  MUST(HG_Handler_get_input(handle, &in));
  snprintf(text, sizeof text, "hello %s, from %d", in.name, me);
  out.sum = in.a + in.b;
  out.greeting = text;
  MUST(HG_Handler_free_input(handle, &in));
  MUST(HG_Handler_start_output(handle, &out));
  ran++;
  return HG_Handler_free(handle);
}

static hg_return_t echo_cb(hg_handle_t handle)
{
  echo_t in;
  MUST(HG_Handler_get_input(handle, &in));
  MUST(HG_Handler_start_output(handle, &in));
  MUST(HG_Handler_free_input(handle, &in));
  return HG_Handler_free(handle);
}

/* Keeps the handle; the test responds later. */
static hg_return_t late_cb(hg_handle_t handle)
{
  CHECK(kept_count < 4096, "too many calls are kept");
  kept[kept_count++] = handle;
  return HG_SUCCESS;
}

static void answer_kept(void)
{
  for (int i = 0; i < kept_count; i++) {
    one_t in;
    MUST(HG_Handler_get_input(kept[i], &in));
    in.x = in.x * 2 + 1;
    MUST(HG_Handler_start_output(kept[i], &in));
    MUST(HG_Handler_free(kept[i]));
  }
  kept_count = 0;
}

static hg_return_t fail_cb(hg_handle_t handle)
{
  one_t in;
  MUST(HG_Handler_get_input(handle, &in));
  return (hg_return_t)in.x; /* the library frees the handle */
}

static hg_return_t forget_cb(hg_handle_t handle)
{
  return HG_Handler_free(handle);
}

static na_addr_t remembered = NA_ADDR_NULL;

static hg_return_t who_cb(hg_handle_t handle)
{
  na_addr_t source = HG_Handler_get_addr(handle);
  char text[NA_MAX_ADDR_LEN];
  one_t out;

  CHECK(source != NA_ADDR_NULL, "no source");
  MUST(NA_Addr_to_string(network, text, sizeof text, source));
  for (out.x = 0; out.x < nproc && strcmp(text, check_name_of(out.x)) != 0;)
    out.x++;
  CHECK(out.x < nproc, "the source is %s", text);
  MUST(NA_Addr_dup(network, source, &remembered));
  MUST(HG_Handler_start_output(handle, &out));
  MUST(HG_Handler_free(handle));
  MUST_BE(NA_INVALID_PARAM, NA_Addr_to_string(network, text, sizeof text, source));
  MUST(NA_Addr_to_string(network, text, sizeof text, remembered)); /* the copy is still valid */
  CHECK(strcmp(text, check_name_of(out.x)) == 0, "the source is %s", text);
  MUST(NA_Addr_free(network, remembered));
  return HG_SUCCESS;
}

static hg_return_t same_cb(hg_handle_t handle)
{
  one_t in;
  MUST(HG_Handler_get_input(handle, &in));
  MUST(HG_Handler_start_output(handle, &in));
  return HG_Handler_free(handle);
}

static hg_return_t empty_cb(hg_handle_t handle)
{
  MUST(HG_Handler_get_input(handle, NULL));
  MUST(HG_Handler_start_output(handle, NULL));
  return HG_Handler_free(handle);
}

/* -------------------------------------------------------------------------- clients */

static void same_numbers(void)
{
  hg_id_t mine[2] = { add_id, echo_id }, low[2], high[2];
  hg_bool_t flag = HG_FALSE;
  hg_id_t id = 0;

  MPI_Allreduce(mine, low, 2, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(mine, high, 2, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
  CHECK(memcmp(low, high, sizeof low) == 0, "the numbers differ");
  CHECK(add_id != echo_id, "numbers are not unique");
  MUST(HG_Registered("echo", &flag, &id));
  CHECK(flag && id == echo_id, "echo is not registered");
  MUST(HG_Registered("nothing", &flag, &id));
  CHECK(!flag, "nothing is registered");
  /* Two names with the same number collide; registering the same name again does not. */
  CHECK(HG_Register("costarring", hg_proc_one_t, hg_proc_one_t, NULL) != 0, "costarring");
  CHECK_EQ(HG_Register("liquid", hg_proc_one_t, hg_proc_one_t, NULL), 0);
  CHECK_EQ(HG_Register("echo", hg_proc_echo_t, hg_proc_echo_t, echo_cb), echo_id);
}

static void add(int rank)
{
  add_in_t in = { 1000 + me, (int64_t)1 << 40, "a client" };
  add_out_t out;
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  char want[100];
  const int before = ran;

  MUST(HG_Forward(ranks[rank], add_id, &in, &out, &request));
  if (rank == me)
    CHECK_EQ(ran, before + 1); /* a call to oneself runs at once */
  MUST(HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "the call has not ended");
  CHECK_EQ(out.sum, in.a + in.b);
  snprintf(want, sizeof want, "hello a client, from %d", rank);
  CHECK(strcmp(out.greeting, want) == 0, "'%s' instead of '%s'", out.greeting, want);
  MUST(HG_Wait(request, 0, &done)); /* a second wait returns the same */
  CHECK(done, "it has ended before");
  MUST(HG_Request_free(request));
}

static void call_one(hg_id_t id, int rank, int x, hg_return_t want, int result)
{
  one_t in = { x }, out = { -1 };
  hg_request_t request;
  hg_status_t done = HG_FALSE;

  MUST(HG_Forward(ranks[rank], id, &in, &out, &request));
  MUST_BE(want, HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "the call has not ended");
  if (want == HG_SUCCESS)
    CHECK_EQ(out.x, result);
  else
    CHECK_EQ(out.x, -1);
  MUST(HG_Request_free(request));
}

/* The response carries the handler's error. */
static void errors_travel(int rank)
{
  call_one(fail_id, rank, HG_NOMEM, HG_NOMEM, 0);
  call_one(fail_id, rank, HG_FAIL, HG_FAIL, 0);
  call_one(fail_id, rank, 12345, (hg_return_t)12345, 0);
  call_one(forget_id, rank, 0, HG_FAIL, 0);
  call_one(half_id, rank, 3, rank % 2 ? HG_NO_MATCH : HG_SUCCESS, 3);
}

static void no_parameters(int rank)
{
  hg_request_t request;
  hg_status_t done = HG_FALSE;
  MUST(HG_Forward(ranks[rank], empty_id, NULL, NULL, &request));
  MUST(HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "the call has not ended");
  MUST(HG_Request_free(request));
}

/* Late responses: time-outs of the full length, statuses, one wait for all. */
static void later(void)
{
  enum { CALLS = 40 };
  hg_request_t requests[CALLS];
  hg_status_t status[CALLS], done = HG_TRUE;
  one_t in[CALLS], out[CALLS];
  double begun;

  for (int i = 0; i < CALLS; i++) {
    in[i].x = i;
    out[i].x = -1;
    MUST(HG_Forward(ranks[(me + i) % nproc], late_id, &in[i], &out[i], &requests[i]));
  }
  begun = check_seconds();
  MUST(HG_Wait(requests[0], 50, &done));
  CHECK(!done, "an answer that nobody gave");
  CHECK(check_seconds() - begun > 0.045, "the wait was short");
  MUST_BE(HG_TIMEOUT, HG_Wait(requests[0], 0, HG_STATUS_IGNORE));
  MUST(HG_Wait_all(CALLS, requests, 20, status));
  for (int i = 0; i < CALLS; i++)
    CHECK(!status[i], "call %d has ended", i);
  MUST_BE(HG_TIMEOUT, HG_Wait_all(CALLS, requests, 0, HG_STATUSES_IGNORE));
  MUST(HG_Wait_all(0, NULL, 0, NULL));

  while (kept_count < CALLS) /* each rank receives as many calls as it sends */
    MUST(HG_Handler_process(20, HG_STATUS_IGNORE));
  serve_barrier();
  answer_kept();
  MUST(HG_Wait_all(CALLS, requests, LONG_TIME, status));
  for (int i = 0; i < CALLS; i++) {
    CHECK(status[i], "call %d has not ended", i);
    CHECK_EQ(out[i].x, 2 * i + 1);
    MUST(HG_Request_free(requests[i]));
  }
  serve_barrier();

  /* Freeing a request early cancels it: the response writes nothing. */
  MUST(HG_Forward(ranks[(me + 1) % nproc], late_id, &in[3], &out[3], &requests[3]));
  out[3].x = -5;
  while (kept_count < 1)
    MUST(HG_Handler_process(20, HG_STATUS_IGNORE));
  MUST(HG_Request_free(requests[3]));
  serve_barrier();
  answer_kept();
  serve_barrier();
  MUST(HG_Handler_process(10, HG_STATUS_IGNORE));
  CHECK_EQ(out[3].x, -5);
}

static void sources(int rank)
{
  call_one(who_id, rank, 0, HG_SUCCESS, me);
}

/* ---------------------------------------------------------- parameters by hand */

/* Uses the three calls that make up decoding the input and sending the output. */
static hg_return_t hand_cb(hg_handle_t handle)
{
  void *bytes, *buffer, *again;
  size_t size, room;
  hg_proc_t proc;
  one_t in, out;

  MUST(HG_Handler_get_input_buf(handle, &bytes, &size));
  MUST(hg_proc_create(bytes, size, HG_DECODE, HG_CRC64, &proc));
  MUST(hg_proc_one_t(proc, &in));
  MUST(hg_proc_flush(proc));
  MUST(hg_proc_free(proc));

  MUST(HG_Handler_get_output_buf(handle, &buffer, &room));
  MUST(HG_Handler_get_output_buf(handle, &again, &room));
  CHECK(buffer == again && room >= 1024, "the output buffer");
  out.x = in.x + 5;
  if (in.x == 99) { /* bytes that the client cannot decode */
    memset(buffer, 0xee, 40);
    MUST(HG_Handler_start_response(handle, NULL, 40));
    return HG_Handler_free(handle);
  }
  MUST(hg_proc_create(buffer, room, HG_ENCODE, HG_CRC64, &proc));
  MUST(hg_proc_one_t(proc, &out));
  MUST(hg_proc_flush(proc));
  size = hg_proc_get_size_used(proc);
  MUST(hg_proc_free(proc));
  if (in.x % 2) {
    MUST(HG_Handler_start_response(handle, NULL, size));
  } else { /* from the program's own memory */
    unsigned char own[256];
    CHECK(size <= sizeof own, "an integer has %d bytes", (int)size);
    memcpy(own, buffer, size);
    MUST(HG_Handler_start_response(handle, own, size));
    memset(own, 0, sizeof own);
  }
  MUST_BE(HG_INVALID_PARAM, HG_Handler_start_response(handle, NULL, size));
  return HG_Handler_free(handle);
}

static void by_hand(int rank)
{
  one_t in = { 99 }, out;
  hg_request_t request;
  hg_status_t done = HG_FALSE;

  call_one(hand_id, rank, 10, HG_SUCCESS, 15);
  call_one(hand_id, rank, 11, HG_SUCCESS, 16);
  MUST(HG_Forward(ranks[rank], hand_id, &in, &out, &request));
  MUST_BE(HG_CHECKSUM_ERROR, HG_Wait(request, LONG_TIME, &done));
  CHECK(done, "the call has not ended");
  MUST(HG_Request_free(request));
}

int main(int argc, char **argv)
{
  hg_bool_t flag = HG_TRUE;
  start_network("mercury_rpc", &argc, &argv);
  MUST(HG_Initialized(&flag, NULL));
  CHECK(!flag, "it was not initialised");
  MUST(HG_Init(network));
  MUST(HG_Initialized(&flag, NULL));
  CHECK(flag, "it was initialised");

  add_id = MERCURY_REGISTER("add", add_in_t, add_out_t, add_cb);
  echo_id = MERCURY_REGISTER("echo", echo_t, echo_t, echo_cb);
  late_id = MERCURY_REGISTER("late", one_t, one_t, late_cb);
  fail_id = MERCURY_REGISTER("fail", one_t, one_t, fail_cb);
  forget_id = MERCURY_REGISTER("forget", one_t, one_t, forget_cb);
  who_id = MERCURY_REGISTER("who", one_t, one_t, who_cb);
  empty_id = HG_Register("empty", NULL, NULL, empty_cb);
  hand_id = MERCURY_REGISTER("hand", one_t, one_t, hand_cb);
  /* Odd ranks register `half` without a handler: they are only its clients. */
  half_id = HG_Register("half", hg_proc_one_t, hg_proc_one_t, me % 2 ? NULL : same_cb);
  look_up_ranks();

  same_numbers();
  serve_barrier();
  for (int p = 0; p < nproc; p++) {
    add((me + p) % nproc);
    no_parameters((me + p) % nproc);
    sources((me + p) % nproc);
  }
  serve_barrier();
  later();
  serve_barrier();
  for (int p = 0; p < nproc; p++)
    errors_travel((me + p) % nproc);
  serve_barrier();
  for (int p = 0; p < nproc; p++)
    by_hand((me + p) % nproc);
  serve_barrier();
  return end_shipping();
}
