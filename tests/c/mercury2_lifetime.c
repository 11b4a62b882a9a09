/* Lifetimes with Mercury 2.4's interface. Services depend on the reference counts of incoming calls, on
 * calls that are never answered, and on parameters that are decoded in part. Handles are destroyed
 * directly after their call was forwarded; a call is cancelled while its server holds it, and a transfer
 * before it has begun. */
// TEST: mercury networks
// TEST: n=2 build=mercury
#include "mercury2_check.h"

MERCURY_GEN_PROC(number_t, ((uint64_t)(x)))

/* A head, and the rest only if it is asked for. */
typedef struct {
  int32_t head;
  int all;
  hg_string_t text;
} part_t;

static hg_return_t hg_proc_part_t(hg_proc_t proc, void *data)
{
  part_t *part = data;
  hg_return_t ret = hg_proc_int32_t(proc, &part->head);
  return ret != HG_SUCCESS || !part->all ? ret : hg_proc_hg_string_t(proc, &part->text);
}

enum { LONG = 300000, TIMES = 1000, AT_ONCE = 50, BULK = 200 << 20 };

static hg_id_t add_id;
static volatile int ended, last_ret, responded, served, counted, answered, freed;
static hg_handle_t late;
static hg_addr_t right;

static hg_return_t on_end(const struct hg_cb_info *info)
{
  last_ret = info->ret;
  /* In a call to self, the callback of the response runs first. */
  CHECK(nproc > 1 || responded == counted / 2, "%d of %d responses", responded, counted);
  ended++;
  return HG_SUCCESS;
}

static int is_own(hg_handle_t handle)
{
  hg_addr_t self;
  MUST(HG_Addr_self(hg_class, &self));
  const int own = HG_Addr_cmp(hg_class, self, HG_Get_info(handle)->addr) == HG_TRUE;
  MUST(HG_Addr_free(hg_class, self));
  return own;
}

static void check_count(hg_handle_t handle, int count, const char *when)
{
  const int found = HG_Ref_get(handle), expected = count + is_own(handle);
  CHECK(found == expected, "%s: %d references, not %d", when, found, expected);
}

static hg_return_t on_responded(const struct hg_cb_info *info)
{
  check_count(info->info.respond.handle, 1, "the response's callback");
  responded++;
  return HG_SUCCESS;
}

/* Responds at once, without and with a callback. */
static hg_return_t counts_cb(hg_handle_t handle)
{
  check_count(handle, 3, "before HG_Respond");
  MUST(HG_Respond(handle, counted++ % 2 ? on_responded : NULL, NULL, NULL));
  check_count(handle, 3, "after HG_Respond");
  MUST(HG_Ref_incr(handle));
  check_count(handle, 4, "after HG_Ref_incr");
  MUST(HG_Destroy(handle));
  return HG_Destroy(handle);
}

/* Keeps the call for a later response. */
static hg_return_t late_cb(hg_handle_t handle)
{
  check_count(handle, 3, "a call that is kept");
  late = handle;
  return HG_SUCCESS;
}

static hg_return_t quiet_cb(hg_handle_t handle)
{
  check_count(handle, is_own(handle) ? 3 : 2, "a one-way call");
  served++;
  return HG_Destroy(handle);
}

/* Never responds. */
static hg_return_t never_cb(hg_handle_t handle)
{
  served++;
  MUST(HG_Destroy(handle));
  MUST(HG_Destroy(handle));
  MUST_BE(HG_INVALID_ARG, HG_Destroy(handle));
  return HG_SUCCESS;
}

static hg_return_t part_cb(hg_handle_t handle)
{
  part_t in = { 0, 0, NULL };
  MUST(HG_Get_input(handle, &in));
  CHECK(in.head == 7 && in.text == NULL, "a part of the input: %d", (int)in.head);
  MUST(HG_Free_input(handle, &in));
  in.all = 1;
  MUST(HG_Get_input(handle, &in));
  CHECK(in.head == 7, "the input: %d", (int)in.head);
  MUST(HG_Respond(handle, NULL, NULL, &in));
  /* Thallium frees inputs as outputs. */
  const int references = HG_Ref_get(handle);
  MUST(HG_Free_output(handle, &in));
  CHECK_EQ(HG_Ref_get(handle), references - 1);
  return HG_Destroy(handle);
}

static void on_free(void *data)
{
  CHECK(data == (void *)&freed, "another thing is freed");
  freed++;
}

static void check_handle(hg_handle_t handle)
{
  const struct hg_info *info = HG_Get_info(handle);
  CHECK(info && info->id == add_id && info->context == context && info->hg_class == hg_class &&
          info->addr != HG_ADDR_NULL, "the information is wrong: %s", portolan_last_error());
  CHECK(HG_Get_data(handle) == (void *)&freed, "the data of a handle");
}

static hg_return_t on_answered(const struct hg_cb_info *info)
{
  MUST(info->ret);
  check_handle(info->info.respond.handle);
  answered++;
  return HG_SUCCESS;
}

static hg_return_t add_cb(hg_handle_t handle)
{
  number_t n;
  MUST(HG_Get_input(handle, &n));
  n.x++;
  MUST(HG_Set_data(handle, (void *)&freed, on_free));
  MUST(HG_Respond(handle, on_answered, NULL, &n));
  MUST(HG_Free_input(handle, &n));
  return HG_Destroy(handle); /* its callback has not run yet */
}

static hg_return_t on_sum(const struct hg_cb_info *info)
{
  const hg_handle_t handle = info->info.forward.handle;
  number_t n;
  MUST(info->ret);
  check_handle(handle);
  MUST(HG_Get_output(handle, &n));
  CHECK_EQ(n.x, *(uint64_t *)info->arg + 1);
  MUST(HG_Free_output(handle, &n));
  if (ended % 200 == 0)
    MUST_BE(HG_BUSY, HG_Context_destroy(context)); /* refused in one of its own callbacks */
  ended++;
  return HG_SUCCESS;
}

/* HG_Forward, then HG_Destroy at once. */
static void destroyed_at_once(void)
{
  static uint64_t numbers[AT_ONCE];
  static hg_handle_t handles[AT_ONCE];
  for (int all = AT_ONCE; all <= TIMES; all += AT_ONCE) {
    for (int i = 0; i < AT_ONCE; i++) {
      number_t in = { numbers[i] = (uint64_t)(all + i) };
      MUST(HG_Create(context, right, add_id, &handles[i]));
      MUST(HG_Set_data(handles[i], (void *)&freed, on_free));
      MUST(HG_Forward(handles[i], on_sum, &numbers[i], &in));
      MUST(HG_Destroy(handles[i]));
      if (i % 7 == 0)
        pump(context, 0);
    }
    pump_until(&ended, all, "calls of handles that were destroyed");
    pump_until(&answered, all, "responses");
    serve_barrier();
    CHECK_EQ(freed, 2 * all); /* also the handles of the calls that this rank has served */
    for (int i = 0; i < AT_ONCE; i++)
      MUST_BE(HG_INVALID_ARG, HG_Destroy(handles[i]));
    serve_barrier();
  }
}

/* A transfer that is cancelled at once moves nothing. */
static void cancelled_transfer(void)
{
  const hg_size_t size = BULK;
  hg_bulk_t source, local;
  hg_size_t got;
  uint32_t count;
  unsigned char *from, *to;
  hg_op_id_t op;
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &source));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &local));
  MUST(HG_Bulk_access(source, 0, size, HG_BULK_READWRITE, 1, (void **)&from, &got, &count));
  MUST(HG_Bulk_access(local, 0, size, HG_BULK_READWRITE, 1, (void **)&to, &got, &count));
  from[size - 1] = 99;
  for (int cancel = 1; cancel >= 0; cancel--) {
    const int before = ended;
    MUST(HG_Bulk_transfer(context, on_end, NULL, HG_BULK_PULL, ranks[me], source, 0, local, 0, size, &op));
    if (cancel)
      MUST(HG_Bulk_cancel(op));
    CHECK_EQ(ended, before);
    pump_until(&ended, before + 1, "a transfer");
    CHECK_EQ(last_ret, cancel ? HG_CANCELED : HG_SUCCESS);
    CHECK_EQ(to[size - 1], cancel ? 0 : 99);
    MUST(HG_Bulk_cancel(op)); /* it has ended */
  }
  MUST(HG_Bulk_free(source));
  MUST(HG_Bulk_free(local));
}

static void forward(hg_handle_t handle, void *in, hg_return_t expected)
{
  const int before = ended;
  MUST(HG_Forward(handle, on_end, NULL, in));
  CHECK(HG_Ref_get(handle) == 2, "%d references of a call under way", (int)HG_Ref_get(handle));
  pump_until(&ended, before + 1, "a call");
  CHECK(last_ret == (int)expected, "a call ends with %d", last_ret);
  CHECK(HG_Ref_get(handle) == 1, "%d references after a call", (int)HG_Ref_get(handle));
}

static void part_of(hg_handle_t handle, hg_string_t text)
{
  part_t in = { 7, 1, text }, out = { 0, 0, NULL };
  forward(handle, &in, HG_SUCCESS);
  MUST(HG_Get_output(handle, &out));
  CHECK(out.head == 7 && out.text == NULL, "a part of the output: %d", (int)out.head);
  MUST(HG_Free_output(handle, &out));
  out.all = 1;
  MUST(HG_Get_output(handle, &out));
  CHECK(out.head == 7 && !strcmp(out.text, text), "the output of %d bytes", (int)strlen(text));
  MUST(HG_Free_output(handle, &out));
}

int main(int argc, char **argv)
{
  hg_handle_t handle;
  char *text = check_calloc(LONG + 1);
  start_mercury("mercury2_lifetime", &argc, &argv);
  hg_id_t counts = HG_Register_name(hg_class, "counts", NULL, NULL, counts_cb);
  hg_id_t lately = HG_Register_name(hg_class, "late", NULL, NULL, late_cb);
  hg_id_t quiet = HG_Register_name(hg_class, "quiet", NULL, NULL, quiet_cb);
  hg_id_t never = HG_Register_name(hg_class, "never", NULL, NULL, never_cb);
  hg_id_t part = HG_Register_name(hg_class, "part", hg_proc_part_t, hg_proc_part_t, part_cb);
  MUST(HG_Registered_disable_response(hg_class, quiet, HG_TRUE));
  add_id = MERCURY_REGISTER(hg_class, "add", number_t, number_t, add_cb);
  MUST(HG_Register_data(hg_class, counts, (void *)&freed, on_free));
  memset(text, 'x', LONG);
  serve_barrier();
  right = ranks[(me + 1) % nproc];
  destroyed_at_once();
  if (check_over_mpi())
    cancelled_transfer();

  MUST(HG_Create(context, right, counts, &handle));
  for (int i = 0; i < 4; i++)
    forward(handle, NULL, HG_SUCCESS);
  pump_until(&responded, 2, "responses with a callback");

  MUST(HG_Reset(handle, right, part));
  part_of(handle, "short");
  part_of(handle, text);

  MUST(HG_Reset(handle, right, quiet));
  forward(handle, NULL, HG_SUCCESS);
  pump_until(&served, 1, "a one-way call");

  /* A call that is not answered fails, unless the caller cancels it before. */
  MUST(HG_Reset(handle, right, never));
  MUST(HG_Forward(handle, on_end, NULL, NULL));
  const int before = ended;
  MUST(HG_Cancel(handle));
  pump_until(&ended, before + 1, "a cancelled call");
  CHECK(last_ret == HG_CANCELED || last_ret == HG_OTHER_ERROR, "a cancelled call ends with %d", last_ret);
  pump_until(&served, 2, "a call without a response");
  forward(handle, NULL, HG_OTHER_ERROR);

  /* A kept call may be answered or destroyed twice after its callback. If its origin has cancelled it,
   * the late response is ignored. */
  MUST(HG_Reset(handle, right, lately));
  for (int i = 0; i < 3; i++) {
    const int now = ended;
    MUST(HG_Forward(handle, on_end, NULL, NULL));
    while (!late)
      pump(context, 20);
    check_count(late, 2, "a call after its callback");
    if (i == 2) {
      serve_barrier();
      MUST(HG_Cancel(handle));
      MUST(HG_Cancel(handle));
      pump_until(&ended, now + 1, "a call that its server holds");
      CHECK_EQ(last_ret, HG_CANCELED);
      MUST_BE(HG_CANCELED, HG_Get_output(handle, &(part_t){ 0 }));
      serve_barrier();
    }
    if (i != 1) {
      MUST(HG_Respond(late, NULL, NULL, NULL));
      check_count(late, 1, "a call with a response");
    } else {
      MUST(HG_Destroy(late));
    }
    MUST(HG_Destroy(late));
    MUST_BE(HG_INVALID_ARG, HG_Destroy(late));
    late = NULL;
    pump_until(&ended, now + 1, "a late response");
    CHECK(last_ret == (i == 2 ? HG_CANCELED : i ? HG_OTHER_ERROR : HG_SUCCESS), "a late response: %d",
          last_ret);
    serve_barrier();
    pump(context, 20);
    CHECK_EQ(ended, now + 1);
  }
  MUST(HG_Destroy(handle));
  free(text);
  serve_barrier();
  freed = 0;
  MUST(HG_Deregister(hg_class, counts));
  CHECK_EQ(freed, 1); /* the data of the function */
  return end_mercury();
}
