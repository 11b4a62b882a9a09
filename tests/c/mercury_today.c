/* Current calls, with classes, contexts and callbacks: handles that are forwarded many times,
 * cancelled, given data; calls without a response. Every rank is a server and a client. */
// TEST: mercury networks
#include "mercury_check.h"

MERCURY_GEN_PROC(one_t, ((int32_t)(x)))
MERCURY_GEN_PROC(text_t, ((uint64_t)(bytes)) ((hg_const_string_t)(text)))

static hg_class_t *today_class;
static hg_context_t *today_context;
static hg_id_t square_id, quiet_id, text_id;
static int texts_came, texts_left;
static int answered, responded, squared, quiet_came, freed;
static hg_handle_t square_kept;
static int keep_square;

static void turn_until(volatile int *counter, int value);
static void turn_barrier(void);

static hg_addr_t looked_up;

static hg_return_t lookup_done(const struct hg_cb_info *info)
{
  CHECK(info->type == HG_CB_LOOKUP && info->ret == HG_SUCCESS, "a look-up");
  CHECK(info->arg == &looked_up, "the argument does not come back");
  looked_up = info->info.lookup.addr;
  return HG_SUCCESS;
}

static void note_freed(void *data)
{
  CHECK(data == &freed, "another thing is freed");
  freed++;
}

static hg_return_t respond_done(const struct hg_cb_info *info)
{
  CHECK_EQ(info->type, HG_CB_RESPOND);
  CHECK_EQ(info->ret, HG_SUCCESS);
  responded++;
  return HG_SUCCESS;
}

static hg_return_t square_cb(hg_handle_t handle)
{
  const struct hg_info *info = HG_Get_info(handle);
  one_t in;

  CHECK(info != NULL && info->hg_class == today_class && info->context == today_context
          && info->id == square_id,
        "the information is wrong");
  if (keep_square) {
    square_kept = handle;
    return HG_SUCCESS;
  }
  MUST(HG_Get_input(handle, &in));
  in.x *= in.x;
  MUST(HG_Respond(handle, respond_done, NULL, &in));
  MUST(HG_Free_input(handle, &in));
  squared++;
  return HG_Destroy(handle);
}

static hg_return_t quiet_cb(hg_handle_t handle)
{
  quiet_came++;
  return HG_Destroy(handle);
}

/* Checks a text of x; sends no response. */
static hg_return_t text_cb(hg_handle_t handle)
{
  text_t in;
  MUST(HG_Get_input(handle, &in));
  CHECK_EQ(strspn(in.text, "x"), in.bytes);
  CHECK_EQ(strlen(in.text), in.bytes);
  MUST(HG_Free_input(handle, &in));
  texts_came++;
  return HG_Destroy(handle);
}

static hg_return_t text_left(const struct hg_cb_info *info)
{
  CHECK_EQ(info->type, HG_CB_FORWARD);
  MUST(info->ret);
  texts_left++;
  return HG_SUCCESS;
}

/* One-way calls of any length succeed, whether they fit in a message or not. */
static void one_way(hg_addr_t to)
{
  static const long lengths[] = { 0, 10, 60000, 65000, 66000, 200000, 5000000, 70000, 1 };
  const int count = sizeof lengths / sizeof *lengths;
  for (int handles_die = 0; handles_die < 2; handles_die++) {
    for (int i = 0; i < count; i++) {
      char *text = check_calloc(lengths[i] + 1);
      text_t in = { (uint64_t)lengths[i], text };
      hg_handle_t handle;
      memset(text, 'x', lengths[i]);
      MUST(HG_Create(today_context, to, text_id, &handle));
      MUST(HG_Forward_handle(handle, text_left, NULL, &in));
      memset(text, 'y', lengths[i]); /* the program may reuse it */
      free(text);
      if (!handles_die)
        turn_until(&texts_left, i + 1);
      MUST(HG_Destroy(handle));
    }
    turn_until(&texts_left, count);
    turn_until(&texts_came, count);
    turn_barrier();
    texts_left = texts_came = 0;
    turn_barrier();
  }
}

static hg_return_t square_done(const struct hg_cb_info *info)
{
  const int *want = info->arg;
  one_t out;

  CHECK_EQ(info->type, HG_CB_FORWARD);
  answered++;
  if (*want < 0) {
    CHECK_EQ(info->ret, HG_CANCELED);
    MUST_BE(HG_CANCELED, HG_Get_output(info->info.forward.handle, &out));
    return HG_SUCCESS;
  }
  CHECK_EQ(info->ret, HG_SUCCESS);
  MUST(HG_Get_output(info->info.forward.handle, &out));
  CHECK_EQ(out.x, *want);
  MUST(HG_Free_output(info->info.forward.handle, &out));
  return HG_SUCCESS;
}

static void turn(unsigned int milliseconds)
{
  unsigned int count;
  HG_Progress(today_context, milliseconds);
  while (HG_Trigger(today_context, 0, 10, &count) == HG_SUCCESS && count)
    ;
}

static void turn_until(volatile int *counter, int value)
{
  const double begun = check_seconds();
  while (*counter < value) {
    turn(20);
    CHECK(check_seconds() - begun < CHECK_HANG, "%d of %d", *counter, value);
  }
}

static void turn_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    turn(0);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
}

static void today(void)
{
  char text[NA_MAX_ADDR_LEN];
  hg_size_t size = 0;
  hg_handle_t handle;
  hg_addr_t to, self, copy;
  hg_bool_t flag = HG_FALSE;
  hg_id_t id = 0;
  unsigned int version[3];
  one_t in;
  int want;
  const int right = (me + 1) % nproc;

  today_class = HG_Init_opt("mpi", HG_TRUE, NULL);
  CHECK(today_class != NULL, "HG_Init_opt: %s", portolan_last_error());
  CHECK(HG_Init_opt("verbs", HG_TRUE, NULL) == NULL, "a bad string was accepted");
  today_context = HG_Context_create(today_class);
  CHECK(today_context != NULL, "no context");
  CHECK(HG_Context_get_class(today_context) == today_class, "its class");
  MUST_BE(HG_BUSY, HG_Class_finalize(today_class));
  square_id = HG_Register_name(today_class, "square", hg_proc_one_t, hg_proc_one_t, square_cb);
  quiet_id = HG_Register_name(today_class, "quiet", hg_proc_one_t, NULL, quiet_cb);
  MUST(HG_Registered_disable_response(today_class, quiet_id, HG_TRUE));
  text_id = HG_Register_name(today_class, "text", hg_proc_text_t, NULL, text_cb);
  MUST(HG_Registered_disable_response(today_class, text_id, HG_TRUE));
  MUST(HG_Register_data(today_class, square_id, &freed, note_freed));
  CHECK(HG_Registered_data(today_class, square_id) == &freed, "data of a function");
  MPI_Barrier(MPI_COMM_WORLD);

  snprintf(text, sizeof text, "mpi://%d", right);
  MUST(HG_Addr_lookup2(today_class, text, &to));
  MUST(HG_Addr_self(today_class, &self));
  MUST(HG_Addr_lookup1(today_context, lookup_done, &looked_up, text, HG_OP_ID_IGNORE));
  CHECK(looked_up == HG_ADDR_NULL, "a callback outside of trigger");
  while (looked_up == HG_ADDR_NULL)
    turn(20);
  CHECK(HG_Addr_cmp(today_class, to, looked_up), "the look-ups differ");
  MUST(HG_Addr_dup(today_class, looked_up, &copy));
  MUST(HG_Addr_free(today_class, looked_up));
  CHECK(HG_Addr_cmp(today_class, to, copy), "the copy differs");
  MUST(HG_Addr_free(today_class, copy));
  MUST_BE(HG_ADDRNOTAVAIL, HG_Addr_lookup2(today_class, "mpi://99999", &copy));
  MUST(HG_Registered_name(today_class, "square", &id, &flag));
  CHECK(flag && id == square_id, "square is registered");
  MUST(HG_Registered_name(today_class, "round", &id, &flag));
  CHECK(!flag, "round is not");
  MUST(HG_Version_get(&version[0], &version[1], &version[2]));
  CHECK(version[0] == HG_VERSION_MAJOR && version[1] == HG_VERSION_MINOR
          && version[2] == HG_VERSION_PATCH, "the version");
  CHECK_EQ(HG_Addr_cmp(today_class, to, self), nproc == 1);
  MUST(HG_Addr_to_string(today_class, NULL, &size, to));
  CHECK_EQ(size, strlen(text) + 1);
  MUST(HG_Create(today_context, to, square_id, &handle));
  MUST(HG_Set_data(handle, &freed, note_freed));
  CHECK(HG_Get_data(handle) == &freed, "data of a handle");
  for (int i = 0; i < 100; i++) { /* one handle, many calls */
    const int before = answered;
    in.x = i;
    want = i * i;
    MUST(HG_Forward_handle(handle, square_done, &want, &in));
    MUST_BE(HG_BUSY, HG_Forward_handle(handle, square_done, &want, &in));
    for (int j = 0; j < 3; j++)
      HG_Progress(today_context, 0);
    CHECK_EQ(answered, before); /* only trigger runs the callback */
    turn_until(&answered, before + 1);
  }
  turn_until(&squared, 100);
  turn_until(&responded, 100);
  MUST(HG_Reset(handle, self, 0));
  in.x = 12;
  want = 144;
  MUST(HG_Forward_handle(handle, square_done, &want, &in));
  CHECK_EQ(squared, 100); /* only trigger runs callbacks, also for calls to oneself */
  turn_until(&answered, 101);
  keep_square = 1;
  turn_barrier();

  /* Cancels a call that the server holds without a response. */
  MUST(HG_Reset(handle, to, square_id));
  want = -1;
  MUST(HG_Forward_handle(handle, square_done, &want, &in));
  while (square_kept == HG_HANDLE_NULL)
    turn(20);
  turn_barrier();
  MUST(HG_Cancel(handle));
  MUST(HG_Cancel(handle));
  turn_until(&answered, 102);
  turn_barrier();
  MUST(HG_Respond(square_kept, NULL, NULL, &in)); /* the call was cancelled */
  MUST(HG_Destroy(square_kept));
  keep_square = 0;
  turn_barrier();
  turn(20);
  CHECK_EQ(answered, 102);

  /* A call without a response. */
  MUST(HG_Reset(handle, to, quiet_id));
  want = -2;
  MUST(HG_Forward_handle(handle, NULL, NULL, &in));
  turn_until(&quiet_came, 1);
  one_way(to);

  MUST(HG_Ref_incr(handle));
  CHECK_EQ(HG_Ref_get(handle), 2);
  MUST(HG_Destroy(handle));
  CHECK_EQ(freed, 0);
  MUST(HG_Destroy(handle));
  CHECK_EQ(freed, 1);
  MUST_BE(HG_INVALID_PARAM, HG_Destroy(handle));
  MUST(HG_Addr_free(today_class, to));
  MUST(HG_Addr_free(today_class, self));
  turn_barrier();
  MUST(HG_Deregister(today_class, quiet_id));
  MUST_BE(HG_NO_MATCH, HG_Deregister(today_class, quiet_id));
  MUST(HG_Context_destroy(today_context));
  MUST(HG_Class_finalize(today_class));
  CHECK_EQ(freed, 2);
}

int main(int argc, char **argv)
{
  start_network("mercury_today", &argc, &argv);
  today();
  MUST(NA_Finalize(network));
  return check_end_mpi();
}
