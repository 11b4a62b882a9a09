/* HG_CORE_MORE_DATA of Mercury 2.4: messages contain a bulk handle, and the program pulls the rest of
 * inputs and outputs itself. Calls are refused, one-way, for a missing context and without an acquire
 * callback. */
// TEST: mercury networks
#include "mercury2_check.h"

#include <mercury_core.h>

enum { SIZE = 200000, FAILS = 13 };

/* What a message contains: the length of the rest and a bulk handle for it. */
struct head {
  hg_size_t length, bytes;
  char bulk[512];
};

/* The data of a handle while and after it is acquired. */
struct rest {
  hg_core_handle_t handle;
  void (*done)(hg_core_handle_t, hg_return_t);
  hg_bulk_t here, there;
  char *data;
};

static volatile int ended, last, answered, served, acquired, released;
static char *input, *output;
static hg_bulk_t of_input, of_output;

static hg_return_t on_pulled(const struct hg_cb_info *info)
{
  struct rest *rest = info->arg;
  MUST(HG_Bulk_free(rest->here));
  MUST(HG_Bulk_free(rest->there));
  acquired++;
  rest->done(rest->handle, info->ret);
  return HG_SUCCESS;
}

static hg_return_t acquire(hg_core_handle_t handle, hg_op_t op,
                           void (*done)(hg_core_handle_t, hg_return_t))
{
  void *buf, *at;
  hg_size_t size, length;
  struct head head;
  if (op == HG_INPUT)
    MUST(HG_Core_get_input(handle, &buf, &size));
  else
    MUST(HG_Core_get_output(handle, &buf, &size));
  CHECK((op == HG_INPUT || op == HG_OUTPUT) && size >= sizeof head, "%lu bytes", (unsigned long)size);
  memcpy(&head, buf, sizeof head);
  if (head.length == FAILS)
    return HG_NOMEM;
  struct rest *rest = check_calloc(sizeof *rest);
  *rest = (struct rest){ .handle = handle, .done = done, .data = check_calloc((long)head.length) };
  HG_Core_set_data(handle, rest, NULL);
  if (head.bytes == 0) { /* nothing to pull: it is done at once */
    acquired++;
    done(handle, HG_SUCCESS);
    return HG_SUCCESS;
  }
  at = rest->data;
  length = head.length;
  MUST(HG_Bulk_deserialize(hg_class, &rest->there, head.bulk, head.bytes));
  MUST(HG_Bulk_create(hg_class, 1, &at, &length, HG_BULK_READWRITE, &rest->here));
  MUST(HG_Bulk_transfer(context, on_pulled, rest, HG_BULK_PULL,
                        (hg_addr_t)HG_Core_get_info(handle)->addr, rest->there, 0, rest->here, 0,
                        length, NULL));
  return HG_SUCCESS;
}

static void release(hg_core_handle_t handle)
{
  struct rest *rest = HG_Core_get_data(handle);
  if (!rest)
    return;
  free(rest->data);
  free(rest);
  HG_Core_set_data(handle, NULL, NULL);
  released++;
}

/* Writes a head to the buffer of a message. */
static void put_head(void *buf, hg_size_t length, hg_bulk_t bulk)
{
  struct head head = { length, 0, "" };
  if (bulk != HG_BULK_NULL) {
    head.bytes = HG_Bulk_get_serialize_size(bulk, HG_BULK_SM);
    CHECK(head.bytes <= sizeof head.bulk, "%lu bytes", (unsigned long)head.bytes);
    MUST(HG_Bulk_serialize(head.bulk, head.bytes, HG_BULK_SM, bulk));
  }
  memcpy(buf, &head, sizeof head);
}

static hg_return_t on_answered(const struct hg_core_cb_info *info)
{
  MUST(info->ret);
  answered++;
  return HG_SUCCESS;
}

static hg_return_t serve_cb(hg_core_handle_t handle)
{
  void *out;
  const struct rest *rest = HG_Core_get_data(handle);
  CHECK(rest && rest->handle == handle, "the data is not acquired");
  if (rest->data[0])
    CHECK(rest->data[0] == 'i' && rest->data[SIZE - 1] == 'i', "the input is %d", rest->data[0]);
  served++;
  MUST(HG_Core_get_output(handle, &out, NULL));
  put_head(out, SIZE, of_output);
  MUST(HG_Core_respond(handle, on_answered, NULL, HG_CORE_MORE_DATA, sizeof(struct head)));
  return HG_Core_destroy(handle);
}

static hg_return_t quiet_cb(hg_core_handle_t handle)
{
  CHECK(HG_Core_get_data(handle) != NULL, "the data is not acquired");
  served++;
  return HG_Core_destroy(handle);
}

static hg_return_t on_end(const struct hg_core_cb_info *info)
{
  last = info->ret;
  if (info->arg) {
    const struct rest *rest = HG_Core_get_data(info->info.forward.handle);
    CHECK(rest && rest->data[0] == 'o' && rest->data[SIZE - 1] == 'o', "the output");
  }
  ended++;
  return HG_SUCCESS;
}

static void forward(hg_core_handle_t handle, hg_size_t length, hg_bulk_t bulk, void *arg,
                    hg_return_t expected)
{
  const int before = ended;
  void *in;
  MUST(HG_Core_get_input(handle, &in, NULL));
  put_head(in, length, bulk);
  MUST(HG_Core_forward(handle, on_end, arg, HG_CORE_MORE_DATA, sizeof(struct head)));
  MUST_BE(HG_BUSY, HG_Core_forward(handle, on_end, arg, 0, 8));
  pump_until(&ended, before + 1, "a call with more data");
  CHECK(last == (int)expected, "a call ends with %s", HG_Error_to_string(last));
}

int main(int argc, char **argv)
{
  enum { SERVE = 7, QUIET = 8, CALLS = 3 };
  hg_core_handle_t handle;
  const hg_size_t size = SIZE;
  start_mercury("mercury2_more", &argc, &argv);
  hg_core_class_t *core = (hg_core_class_t *)hg_class;
  hg_core_context_t *core_context = (hg_core_context_t *)context;
  input = check_calloc(SIZE);
  output = check_calloc(SIZE);
  memset(input, 'i', SIZE);
  memset(output, 'o', SIZE);
  MUST(HG_Bulk_create(hg_class, 1, (void **)&input, &size, HG_BULK_READ_ONLY, &of_input));
  MUST(HG_Bulk_create(hg_class, 1, (void **)&output, &size, HG_BULK_READ_ONLY, &of_output));
  MUST(HG_Core_register(core, SERVE, serve_cb));
  MUST(HG_Core_register(core, QUIET, quiet_cb));
  MUST(HG_Core_registered_disable_response(core, QUIET, HG_TRUE));
  serve_barrier();

  /* Without callbacks. */
  hg_core_addr_t right = (hg_core_addr_t)ranks[(me + 1) % nproc];
  MUST(HG_Core_create(core_context, right, SERVE, &handle));
  forward(handle, SIZE, of_input, NULL, HG_OPNOTSUPPORTED);
  serve_barrier();
  MUST(HG_Core_set_more_data_callback(core, acquire, release));
  serve_barrier();

  for (int i = 0; i < CALLS; i++) /* the handle is used again */
    forward(handle, SIZE, i == 1 ? HG_BULK_NULL : of_input, handle, HG_SUCCESS);
  pump_until(&answered, CALLS, "responses that the origin has acquired");
  pump_until(&served, CALLS, "calls");
  forward(handle, FAILS, of_input, NULL, HG_NOMEM);
  MUST(HG_Core_reset(handle, right, QUIET));
  forward(handle, SIZE, of_input, NULL, HG_SUCCESS);
  pump_until(&served, CALLS + 1, "a one-way call");
  /* The origin learns of a one-way call that is not run, because it waits for the acquisition. */
  MUST(HG_Core_set_target_id(handle, 9));
  forward(handle, SIZE, of_input, NULL, HG_NOENTRY);
  MUST(HG_Core_destroy(handle));
  serve_barrier();
  CHECK(acquired == 2 * CALLS + 1 && released == acquired, "%d acquired, %d released", acquired,
        released);

  MUST(HG_Bulk_free(of_input));
  MUST(HG_Bulk_free(of_output));
  MUST(HG_Core_deregister(core, SERVE));
  MUST(HG_Core_deregister(core, QUIET));
  free(input);
  free(output);
  return end_mercury();
}
