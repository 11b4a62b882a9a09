/* Mercury 2.4: contexts whose file descriptor becomes readable when there is work, for HG and NA. */
// TEST: mercury networks
#include "mercury2_check.h"

#include <na.h>
#include <poll.h>

static volatile int ended, served;

static hg_return_t serve_cb(hg_handle_t handle)
{
  served++;
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  MUST(info->ret);
  ended++;
  return HG_SUCCESS;
}

/* Serves calls as a program with its own event loop: it makes progress only if it may not wait for
 * the descriptor, or if the descriptor is readable. */
static void serve_by_fd(int fd, volatile int *counter, int value)
{
  const double begun = check_seconds();
  while (*counter < value) {
    unsigned int count = 0, ran;
    if (fd >= 0 && !HG_Event_ready(context)) {
      struct pollfd wait = { fd, POLLIN, 0 };
      CHECK(poll(&wait, 1, 1000 * CHECK_HANG) == 1, "the descriptor is silent: %d of %d", *counter,
            value);
    }
    MUST(HG_Event_progress(context, &count));
    MUST(HG_Event_trigger(context, count, &ran));
    CHECK(check_seconds() - begun < CHECK_HANG, "%d of %d", *counter, value);
  }
}

static void on_message(const struct na_cb_info *info)
{
  CHECK(info->ret == NA_SUCCESS, "%d: %s", (int)info->type, NA_Error_to_string(info->ret));
  if (info->type == NA_CB_RECV_UNEXPECTED) {
    CHECK(info->info.recv_unexpected.actual_buf_size == 4 && info->info.recv_unexpected.tag == 9,
          "%d bytes", (int)info->info.recv_unexpected.actual_buf_size);
    *(na_addr_t **)info->arg = info->info.recv_unexpected.source;
  }
  ended++;
}

int main(int argc, char **argv)
{
  enum { CALLS = 20 };
  hg_handle_t handle;
  start_mercury("mercury2_events", &argc, &argv);
  hg_id_t id = HG_Register_name(hg_class, "serve", NULL, NULL, serve_cb);
  serve_barrier();
  const int fd = HG_Event_get_wait_fd(context);
  CHECK(fd == HG_Event_get_wait_fd(context), "another descriptor");
  if (fd < 0)
    CHECK(HG_Event_ready(context), "the context must be polled");
  MUST(HG_Create(context, ranks[(me + 1) % nproc], id, &handle));
  for (int i = 1; i <= CALLS; i++) {
    MUST(HG_Forward(handle, on_end, NULL, NULL));
    serve_by_fd(fd, &ended, i);
  }
  serve_by_fd(fd, &served, CALLS);
  MUST(HG_Destroy(handle));

  /* Nothing happens within the process: the descriptor stays silent. */
  if (fd >= 0 && nproc == 1) {
    struct pollfd wait = { fd, POLLIN, 0 };
    CHECK(!HG_Event_ready(context) && poll(&wait, 1, 10) == 0, "an idle context is readable");
  }
  serve_barrier();

  /* The same for the network of a process that talks to itself. */
  char out[4] = "abc", in[4] = "";
  na_class_t *na = NA_Initialize("self", true);
  CHECK(na != NULL, "NA_Initialize: %s", portolan_last_error());
  na_context_t *na_context = NA_Context_create(na);
  na_addr_t *self, *source = NULL;
  CHECK(NA_Addr_self(na, &self) == NA_SUCCESS, "NA_Addr_self");
  const int na_fd = NA_Poll_get_fd(na, na_context);
  struct pollfd wait = { na_fd, POLLIN, 0 };
  unsigned int count = 9;
  CHECK(na_fd >= 0 && NA_Poll_try_wait(na, na_context) && poll(&wait, 1, 0) == 0, "idle");
  ended = 0;
  CHECK(NA_Msg_recv_unexpected(na, na_context, on_message, &source, in, sizeof in, NULL, NULL) ==
            NA_SUCCESS, "a receive");
  CHECK(NA_Poll_try_wait(na, na_context), "a receive is not work");
  CHECK(NA_Msg_send_unexpected(na, na_context, on_message, NULL, out, 4, NULL, self, 0, 9, NULL) ==
            NA_SUCCESS, "a send");
  CHECK(poll(&wait, 1, 0) == 1 && !NA_Poll_try_wait(na, na_context), "a message is work");
  CHECK(NA_Poll(na, na_context, &count) == NA_SUCCESS && count == 2, "%u", count);
  CHECK(NA_Trigger(na_context, 10, &count) == NA_SUCCESS && count == 2 && ended == 2, "%u", count);
  CHECK(NA_Addr_cmp(na, self, source) && !strcmp(in, "abc"), "a message");
  NA_Addr_free(na, source);
  NA_Addr_free(na, self);
  CHECK(NA_Finalize(na) == NA_BUSY, "a class with a context");
  CHECK(NA_Context_destroy(na, na_context) == NA_SUCCESS && NA_Finalize(na) == NA_SUCCESS, "end");
  return end_mercury();
}
