/* Calls of 2013: registration, forward and wait, time-outs and statuses, errors of handlers and procs,
 * late responses, parameters that are too long for a message. Every rank is a server and a client. */
// TEST: mercury networks
// TEST: n=2 build=static
#include "mercury_check.h"

MERCURY_GEN_PROC(add_in_t, ((int32_t)(a)) ((int64_t)(b)) ((hg_const_string_t)(name)))
MERCURY_GEN_PROC(add_out_t, ((int64_t)(sum)) ((hg_string_t)(greeting)) ((int32_t)(source)))
MERCURY_GEN_PROC(one_t, ((int32_t)(x)))
MERCURY_GEN_PROC(text_t, ((hg_string_t)(text)))
#define LONG_TIME 600000

static hg_id_t add_id, late_id, fail_id, half_id, empty_id, hand_id, bad_id, text_id;
static int ran;
static hg_handle_t kept[64];
static int kept_count;

/* ------------------------------------------------------------------------- handlers */

static hg_return_t add_cb(hg_handle_t handle)
{
  add_in_t in;
  add_out_t out;
  na_addr_t source = HG_Handler_get_addr(handle), copy;
  char text[NA_MAX_ADDR_LEN], greeting[100];

  MUST(NA_Addr_to_string(network, text, sizeof text, source));
  for (out.source = 0; out.source < nproc && strcmp(text, check_name_of(out.source)) != 0;)
    out.source++;
  MUST(NA_Addr_dup(network, source, &copy));
  MUST(HG_Handler_get_input(handle, &in));
  snprintf(greeting, sizeof greeting, "hello %s, from %d", in.name, me);
  out.sum = in.a + in.b;
  out.greeting = greeting;
  MUST(HG_Handler_free_input(handle, &in));
  MUST(HG_Handler_start_output(handle, &out));
  ran++;
  MUST(HG_Handler_free(handle));
  MUST_BE(NA_INVALID_PARAM, NA_Addr_to_string(network, text, sizeof text, source));
  MUST(NA_Addr_to_string(network, text, sizeof text, copy)); /* the copy is still valid */
  MUST(NA_Addr_free(network, copy));
  return HG_SUCCESS;
}

/* Keeps the handle; the test responds later. */
static hg_return_t late_cb(hg_handle_t handle)
{
  CHECK(kept_count < 64, "too many calls are kept");
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
  return in.x ? (hg_return_t)in.x : HG_Handler_free(handle); /* the library frees the handle */
}

static hg_return_t same_cb(hg_handle_t handle)
{
  int32_t x;
  const hg_return_t rc = HG_Handler_get_input(handle, &x);
  if (rc == HG_SUCCESS)
    HG_Handler_start_output(handle, &x);
  return HG_Handler_free(handle);
}

static hg_return_t empty_cb(hg_handle_t handle)
{
  MUST(HG_Handler_get_input(handle, NULL));
  MUST(HG_Handler_start_output(handle, NULL));
  return HG_Handler_free(handle);
}

/* -------------------------------------------------------------------------- clients */

/* Two names with the same number collide; registering the same name again does not. */
static void registration(void)
{
  hg_id_t id = 0;
  hg_bool_t flag = HG_FALSE;

  MUST(HG_Registered("nothing", &flag, &id));
  CHECK(!flag, "nothing is registered");
  CHECK(HG_Register("costarring", hg_proc_one_t, hg_proc_one_t, NULL) != 0, "costarring");
  CHECK_EQ(HG_Register("liquid", hg_proc_one_t, hg_proc_one_t, NULL), 0);
  CHECK_EQ(HG_Register("late", hg_proc_one_t, hg_proc_one_t, late_cb), late_id);
}

/* Forwards a call and waits for its end. */
static hg_return_t call(int rank, hg_id_t id, void *in, void *out, hg_request_t *request)
{
  hg_status_t done = HG_FALSE;
  hg_return_t rc = HG_Forward(ranks[rank], id, in, out, request);
  if (rc != HG_SUCCESS)
    return rc;
  rc = HG_Wait(*request, LONG_TIME, &done);
  CHECK(done, "the call has not ended");
  CHECK_EQ(HG_Wait(*request, 0, &done), rc); /* a second wait returns the same */
  CHECK(done, "it has ended before");
  return rc;
}

static void add(int rank)
{
  add_in_t in = { 1000 + me, (int64_t)1 << 40, "a client" };
  add_out_t out;
  hg_request_t request;
  char want[100];
  const int before = ran;

  MUST(HG_Forward(ranks[rank], add_id, &in, &out, &request));
  CHECK_EQ(ran, rank == me ? before + 1 : before); /* a call to oneself runs at once */
  MUST(HG_Wait(request, LONG_TIME, HG_STATUS_IGNORE));
  snprintf(want, sizeof want, "hello a client, from %d", rank);
  CHECK(out.sum == in.a + in.b && out.source == me && strcmp(out.greeting, want) == 0,
        "'%s' and the source %d", out.greeting, (int)out.source);
  MUST(HG_Request_free(request));
  MUST(call(rank, empty_id, NULL, NULL, &request));
  MUST(HG_Request_free(request));
  serve_barrier();
}

static void call_one(hg_id_t id, int rank, int x, hg_return_t want, int result)
{
  one_t in = { x }, out = { -1 };
  hg_request_t request;

  MUST_BE(want, call(rank, id, &in, &out, &request));
  if (want != HG_CHECKSUM_ERROR) /* else it is decoded before the checksum */
    CHECK_EQ(out.x, want == HG_SUCCESS ? result : -1);
  MUST(HG_Request_free(request));
}

/* Time-outs, statuses, one wait for all, and a request that is freed early. */
static void later(void)
{
  enum { CALLS = 20 };
  hg_request_t requests[CALLS];
  hg_status_t status[CALLS], done = HG_TRUE;
  one_t in[CALLS], out[CALLS];

  for (int i = 0; i < CALLS; i++) {
    in[i].x = i;
    out[i].x = -1;
    MUST(HG_Forward(ranks[(me + i) % nproc], late_id, &in[i], &out[i], &requests[i]));
  }
  MUST(HG_Wait(requests[0], 20, &done));
  CHECK(!done, "an answer that nobody gave");
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

  /* Freeing a request cancels the call: the response writes nothing. */
  MUST(HG_Forward(ranks[(me + 1) % nproc], late_id, &in[3], &out[3], &requests[3]));
  out[3].x = -5;
  while (kept_count < 1)
    MUST(HG_Handler_process(20, HG_STATUS_IGNORE));
  MUST(HG_Request_free(requests[3]));
  serve_barrier();
  answer_kept();
  serve_barrier();
  done = HG_TRUE;
  MUST(HG_Handler_process(10, &done));
  CHECK(!done && out[3].x == -5, "the response writes %d", (int)out[3].x);

  /* Waits for a call that fails and one that does not. */
  in[0].x = HG_NOMEM;
  MUST(HG_Forward(ranks[me], fail_id, &in[0], &out[0], &requests[0]));
  MUST(HG_Forward(ranks[me], half_id, &in[1], &out[1], &requests[1]));
  MUST_BE(HG_NOMEM, HG_Wait_all(2, requests, LONG_TIME, HG_STATUSES_IGNORE));
  for (int i = 0; i < 2; i++)
    MUST(HG_Request_free(requests[i]));
}

/* The number says which proc fails: of the input or output, at its origin or target. */
static hg_return_t fails(hg_proc_t proc, int32_t *x, int encoding, int decoding)
{
  const hg_return_t rc = hg_proc_int32_t(proc, x);
  const hg_proc_op_t op = hg_proc_get_op(proc);
  return (op == HG_ENCODE && *x == encoding) || (op == HG_DECODE && *x == decoding) ? HG_FAIL : rc;
}

static hg_return_t hg_proc_bad_in_t(hg_proc_t proc, void *data)
{
  return fails(proc, data, 1, 2);
}

static hg_return_t hg_proc_bad_out_t(hg_proc_t proc, void *data)
{
  return fails(proc, data, 3, 4);
}

static void errors(int rank)
{
  call_one(fail_id, rank, HG_NOMEM, HG_NOMEM, 0);
  call_one(fail_id, rank, 12345, (hg_return_t)12345, 0);
  call_one(fail_id, rank, 0, HG_FAIL, 0); /* it is not answered */
  call_one(half_id, rank, 3, rank % 2 ? HG_NO_MATCH : HG_SUCCESS, 3);
  for (int32_t x = 0; x < 5; x++) {
    int32_t in = x, out;
    hg_request_t request;
    MUST_BE(x ? HG_PROTOCOL_ERROR : HG_SUCCESS, call(rank, bad_id, &in, &out, &request));
    if (x != 1) /* else the call is not forwarded */
      MUST(HG_Request_free(request));
  }
}

/* ---------------------------------------------------------- parameters by hand */

/* Uses the three calls that make up decoding the input and sending the output. */
static hg_return_t hand_cb(hg_handle_t handle)
{
  void *bytes, *buffer, *again;
  unsigned char own[256];
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
  CHECK(size <= sizeof own, "an integer has %d bytes", (int)size);
  memcpy(own, buffer, size);
  MUST(HG_Handler_start_response(handle, in.x % 2 ? NULL : own, size));
  memset(own, 0, sizeof own);
  MUST_BE(HG_INVALID_PARAM, HG_Handler_start_response(handle, NULL, size));
  return HG_Handler_free(handle);
}

/* ------------------------------------------- parameters too long for a message */

/* A proc that keeps the buffer of a long input. */
typedef text_t input_t;
static void *buffer;

static hg_return_t hg_proc_input_t(hg_proc_t proc, void *data)
{
  const hg_return_t rc = hg_proc_text_t(proc, data);
  if (hg_proc_get_op(proc) == HG_ENCODE && hg_proc_get_extra_buf(proc) != NULL) {
    buffer = hg_proc_get_extra_buf(proc);
    MUST(hg_proc_set_extra_buf_is_mine(proc, HG_FALSE));
  }
  return rc;
}

static hg_return_t half_cb(hg_handle_t handle)
{
  text_t text;
  MUST(HG_Handler_get_input(handle, &text));
  text.text[strlen(text.text) / 2] = '\0';
  MUST(HG_Handler_start_output(handle, &text));
  MUST(HG_Handler_free_input(handle, &text));
  return HG_Handler_free(handle);
}

static void lengths(int rank)
{
  static const size_t sizes[] = { 0, 4050, 65720, 65752, 131072, 400000, (17 << 20) + 33 };
  for (int i = 0; i < 7; i++) {
    text_t in = { check_calloc((long)sizes[i] + 1) }, out;
    hg_request_t request;
    memset(in.text, 'a' + i, sizes[i]);
    MUST(HG_Forward(ranks[rank], text_id, &in, &out, &request));
    memset(in.text, '!', sizes[i]); /* the input is encoded when the call returns */
    hg_proc_buf_free(buffer);
    buffer = NULL;
    MUST(HG_Wait(request, LONG_TIME, HG_STATUS_IGNORE));
    const char accepted[] = { (char)('a' + i), '\0' };
    CHECK(strlen(out.text) == sizes[i] / 2 && strspn(out.text, accepted) == sizes[i] / 2,
          "the half of %lu bytes", (unsigned long)sizes[i]);
    free(in.text);
    MUST(HG_Request_free(request)); /* also frees the output */
  }
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
  late_id = MERCURY_REGISTER("late", one_t, one_t, late_cb);
  fail_id = MERCURY_REGISTER("fail", one_t, one_t, fail_cb);
  empty_id = HG_Register("empty", NULL, NULL, empty_cb);
  hand_id = MERCURY_REGISTER("hand", one_t, one_t, hand_cb);
  /* Odd ranks register `half` without a handler: they are only its clients. */
  half_id = HG_Register("half", hg_proc_one_t, hg_proc_one_t, me % 2 ? NULL : same_cb);
  bad_id = MERCURY_REGISTER("bad", bad_in_t, bad_out_t, same_cb);
  text_id = MERCURY_REGISTER("text", input_t, text_t, half_cb);
  look_up_ranks();

  registration();
  serve_barrier();
  later();
  serve_barrier();
  for (int p = 0; p < nproc; p++) {
    const int rank = (me + p) % nproc;
    add(rank);
    errors(rank);
    call_one(hand_id, rank, 10, HG_SUCCESS, 15);
    call_one(hand_id, rank, 11, HG_SUCCESS, 16);
    call_one(hand_id, rank, 99, HG_CHECKSUM_ERROR, 0);
    if (p < 2)
      lengths(rank);
    serve_barrier();
  }
  return end_shipping();
}
