/* Lifetimes with Mercury 2.4's interface: handles destroyed directly after their call was forwarded,
 * or kept by a callback; callbacks that run only in trigger; one-way calls of any length; a call that
 * is cancelled while its server holds it; a transfer that is cancelled before it has begun. */
// TEST: mercury networks
#include "mercury2_check.h"

enum { TIMES = 1000, AT_ONCE = 50, BULK = 200 << 20 };

MERCURY_GEN_PROC(number_t, ((uint64_t)(x)))
MERCURY_GEN_PROC(text_t, ((uint64_t)(bytes))((hg_const_string_t)(text)))

static hg_id_t add_id, keep_id, text_id;
static volatile int ended, answered, freed, texts, last_ret;
static volatile hg_handle_t held;
static hg_addr_t right;

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

static hg_return_t keep_cb(hg_handle_t handle)
{
  held = handle;
  return HG_SUCCESS;
}

static hg_return_t text_cb(hg_handle_t handle)
{
  text_t in;
  MUST(HG_Get_input(handle, &in));
  CHECK_EQ(strspn(in.text, "x"), in.bytes);
  CHECK_EQ(strlen(in.text), in.bytes);
  MUST(HG_Free_input(handle, &in));
  texts++;
  return HG_Destroy(handle);
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

static hg_return_t on_end(const struct hg_cb_info *info)
{
  last_ret = info->ret;
  ended++;
  return HG_SUCCESS;
}

static hg_return_t on_kept(const struct hg_cb_info *info)
{
  MUST(HG_Ref_incr(info->info.forward.handle));
  return on_end(info);
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

static void kept_by_the_callback(void)
{
  hg_handle_t handle;
  number_t in = { 5 };
  const int before = ended;
  MUST(HG_Create(context, right, add_id, &handle));
  MUST(HG_Forward(handle, on_kept, NULL, &in));
  MUST(HG_Destroy(handle));
  pump_until(&ended, before + 1, "a call");
  CHECK_EQ(HG_Ref_get(handle), 1);
  MUST(HG_Get_output(handle, &in));
  CHECK_EQ(in.x, 6);
  MUST(HG_Free_output(handle, &in));
  MUST(HG_Forward(handle, NULL, NULL, &in)); /* no callback */
  MUST(HG_Destroy(handle));
  serve_barrier();
}

static hg_addr_t looked_up;
static hg_return_t on_lookup(const struct hg_cb_info *info)
{
  CHECK(info->type == HG_CB_LOOKUP && info->arg == (void *)&ended, "a look-up");
  MUST(info->ret);
  looked_up = info->info.lookup.addr;
  ended++;
  return HG_SUCCESS;
}

/* Callbacks, also of calls to oneself, run only in trigger. */
static void only_in_trigger(void)
{
  hg_handle_t handle;
  uint64_t number = 12;
  number_t in = { number };
  for (int own = 0; own < 2; own++) {
    const int before = ended;
    MUST(HG_Create(context, own ? ranks[me] : right, add_id, &handle));
    MUST(HG_Set_data(handle, (void *)&freed, on_free));
    MUST(HG_Forward(handle, on_sum, &number, &in));
    for (int i = 0; i < 3; i++)
      HG_Progress(context, 0);
    CHECK_EQ(ended, before);
    pump_until(&ended, before + 1, "a call");
    MUST(HG_Destroy(handle));
  }
  const int before = ended;
  MUST(HG_Addr_lookup1(context, on_lookup, (void *)&ended, check_name_of((me + 1) % nproc), HG_OP_ID_IGNORE));
  CHECK_EQ(ended, before);
  pump_until(&ended, before + 1, "a look-up");
  CHECK(HG_Addr_cmp(hg_class, right, looked_up), "the look-ups differ");
  MUST(HG_Addr_free(hg_class, looked_up));
  serve_barrier();
}

/* One-way calls succeed with inputs of any length. */
static void one_way(void)
{
  static const long lengths[] = { 0, 10, 60000, 65000, 66000, 200000, 5000000, 70000, 1 };
  const int count = sizeof lengths / sizeof *lengths;
  for (int handles_die = 0; handles_die < 2; handles_die++) {
    const int before = ended, after = texts + count;
    serve_barrier();
    for (int i = 0; i < count; i++) {
      char *text = check_calloc(lengths[i] + 1);
      text_t in = { (uint64_t)lengths[i], text };
      hg_handle_t handle;
      memset(text, 'x', (size_t)lengths[i]);
      MUST(HG_Create(context, right, text_id, &handle));
      MUST(HG_Forward(handle, on_end, NULL, &in));
      memset(text, 'y', (size_t)lengths[i]); /* the program may reuse it */
      free(text);
      if (!handles_die)
        pump_until(&ended, before + i + 1, "a one-way call");
      MUST(HG_Destroy(handle));
    }
    pump_until(&ended, before + count, "one-way calls");
    CHECK_EQ(last_ret, HG_SUCCESS);
    pump_until(&texts, after, "one-way calls of another rank");
  }
}

/* Cancels a call that the server holds. The late response is ignored. */
static void cancelled_at_the_server(void)
{
  hg_handle_t handle;
  number_t in = { 1 };
  const int before = ended;
  MUST(HG_Create(context, right, keep_id, &handle));
  MUST(HG_Forward(handle, on_end, NULL, &in));
  while (held == HG_HANDLE_NULL)
    pump(context, 20);
  serve_barrier();
  MUST(HG_Cancel(handle));
  MUST(HG_Cancel(handle));
  pump_until(&ended, before + 1, "a cancelled call");
  CHECK_EQ(last_ret, HG_CANCELED);
  MUST_BE(HG_CANCELED, HG_Get_output(handle, &in));
  serve_barrier();
  MUST(HG_Respond(held, NULL, NULL, &in));
  MUST(HG_Destroy(held));
  serve_barrier();
  pump(context, 20);
  CHECK_EQ(ended, before + 1);
  MUST(HG_Destroy(handle));
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

int main(int argc, char **argv)
{
  start_mercury("mercury2_lifetime", &argc, &argv);
  right = ranks[(me + 1) % nproc];
  add_id = MERCURY_REGISTER(hg_class, "add", number_t, number_t, add_cb);
  keep_id = MERCURY_REGISTER(hg_class, "keep", number_t, number_t, keep_cb);
  text_id = MERCURY_REGISTER(hg_class, "text", text_t, void, text_cb);
  MUST(HG_Registered_disable_response(hg_class, text_id, HG_TRUE));
  MUST(HG_Register_data(hg_class, keep_id, (void *)&freed, on_free));
  serve_barrier();
  destroyed_at_once();
  kept_by_the_callback();
  only_in_trigger();
  one_way();
  cancelled_at_the_server();
  if (check_over_mpi())
    cancelled_transfer();
  serve_barrier();
  const int before = freed;
  MUST(HG_Deregister(hg_class, keep_id));
  CHECK_EQ(freed, before + 1); /* the data of the function */
  return end_mercury();
}
