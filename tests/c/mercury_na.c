/* The network abstraction: addresses, messages with tags, limits, progress and
 * trigger, cancellation. mercury_mem.c tests memory, and
 * mercury_invalid.c the arguments that a call rejects. */
// TEST: mercury networks
#include "mercury_na.h"

static int lookups;
static na_addr_t found;

static na_return_t note_lookup(const struct na_cb_info *info)
{
  CHECK(info->type == NA_CB_LOOKUP && info->ret == NA_SUCCESS, "type %d", (int)info->type);
  CHECK(info->arg == &found, "the argument does not come back");
  found = info->info.lookup.addr;
  lookups++;
  return NA_SUCCESS;
}

/* ------------------------------------------------------------------------- addresses */

static void addresses(void)
{
  char text[NA_MAX_ADDR_LEN];
  na_addr_t self, copy, mine;

  for (int p = 0; p < nproc; p++) {
    const int before = lookups;
    na_op_id_t op = NA_OP_ID_NULL;
    const char *name = check_name_of(p);
    MUST(NA_Addr_lookup(network, context, note_lookup, &found, name,
                        p % 2 ? &op : NA_OP_ID_IGNORE));
    CHECK_EQ(lookups, before); /* only trigger runs the callback */
    pump_until(&lookups, before + 1, "look-up");
    MUST(NA_Addr_to_string(network, text, sizeof text, found));
    CHECK(strcmp(text, name) == 0, "%s came back as %s", name, text);
    CHECK_EQ(NA_Addr_is_self(network, found), p == me);
    MUST_BE(NA_OVERFLOW, NA_Addr_to_string(network, text, strlen(name), found));
    MUST(NA_Addr_to_string(network, text, strlen(name) + 1, found));
    MUST(NA_Addr_dup(network, found, &copy));
    MUST(NA_Addr_free(network, found));
    MUST(NA_Addr_to_string(network, text, sizeof text, copy)); /* the copy outlives the original */
    MUST(NA_Addr_free(network, copy));
  }
  MUST(NA_Addr_self(network, &self));
  CHECK(NA_Addr_is_self(network, self), "self is not self");
  MUST(NA_Addr_to_string(network, text, sizeof text, self));
  MUST(NA_Addr_lookup_wait(network, text, &mine));
  CHECK(NA_Addr_is_self(network, mine), "%s is not self", text);
  MUST(NA_Addr_free(network, self));
  MUST(NA_Addr_free(network, mine));
  MUST(NA_Addr_lookup_wait(network, "self", &mine));
  CHECK(NA_Addr_is_self(network, mine), "'self' is not self");
  MUST(NA_Addr_free(network, mine));
}

/* -------------------------------------------------------------------------- messages */

static void limits(void)
{
  CHECK(NA_Msg_get_max_unexpected_size(network) >= 1024, "the unexpected limit is low");
  CHECK(NA_Msg_get_max_expected_size(network) >= NA_Msg_get_max_unexpected_size(network),
        "the expected limit is below the unexpected one");
  CHECK(NA_Msg_get_max_tag(network) >= 32767, "the tag limit is low");
  CHECK_EQ(NA_Msg_get_max_tag(NULL), 0);
}

/* Messages around the ring (to itself if the rank is alone): sizes up to the limit, any tag. */
static void unexpected(void)
{
  const na_size_t most = NA_Msg_get_max_unexpected_size(network);
  const na_tag_t top = NA_Msg_get_max_tag(network);
  const na_size_t sizes[] = { 0, 1, 8, 100, most - 1, most };
  const na_tag_t tags[] = { 0, 1, top, 77, 1000, 5 };
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  unsigned char *out = check_calloc((long)most + 1), *in = check_calloc((long)most);
  unsigned char *want = check_calloc((long)most);
  na_addr_t to = address_of(right);

  for (int i = 0; i < 6; i++) {
    char text[NA_MAX_ADDR_LEN];
    const char *name = check_name_of(left);
    const int before = ended;
    check_fill(out, 10 * me + i, (long)sizes[i]);
    check_fill(want, 10 * left + i, (long)sizes[i]);
    MUST(NA_Msg_send_unexpected(network, context, note, NULL, out, sizes[i], to, tags[i],
                                NA_OP_ID_IGNORE));
    pump_until(&ended, before + 1, "send");
    CHECK(last.type == NA_CB_SEND_UNEXPECTED && last.ret == NA_SUCCESS, "send");
    MUST(NA_Msg_recv_unexpected(network, context, note, &in, in, most, NA_OP_ID_IGNORE));
    pump_until(&ended, before + 2, "receive");
    CHECK(last.type == NA_CB_RECV_UNEXPECTED && last.ret == NA_SUCCESS, "receive");
    CHECK(last.arg == &in, "the argument does not come back");
    CHECK_EQ(last.info.recv_unexpected.actual_buf_size, sizes[i]);
    CHECK_EQ(last.info.recv_unexpected.tag, tags[i]);
    MUST(NA_Addr_to_string(network, text, sizeof text, last.info.recv_unexpected.source));
    CHECK(strcmp(text, name) == 0, "the source is %s, not %s", text, name);
    MUST(NA_Addr_free(network, last.info.recv_unexpected.source));
    CHECK_BYTES(in, want, (long)sizes[i], "message %d", i);
  }
  pump_barrier();

  /* A message that is longer than the buffer leaves it unchanged and reports its length. */
  const int before = ended;
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, in, 4, NULL));
  memset(in, 0x5a, 16);
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, out, 9, to, 3, NULL));
  pump_until(&ended, before + 1, "short receive");
  CHECK_EQ(last.ret, NA_SIZE_ERROR);
  CHECK_EQ(last.info.recv_unexpected.actual_buf_size, 9);
  for (int i = 0; i < 16; i++)
    CHECK_EQ(in[i], 0x5a);
  pump_barrier();
  MUST(NA_Addr_free(network, to));
  free(out);
  free(in);
  free(want);
}

/* Messages are matched by source and tag, whether the receive is posted before or after they
 * arrive. */
static void expected(void)
{
  const na_size_t most = NA_Msg_get_max_expected_size(network);
  const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
  unsigned char *out = check_calloc((long)most + 1), *in[4], *want = check_calloc((long)most);
  na_addr_t to = address_of(right), from = address_of(left);

  for (int late = 0; late < 2; late++) {
    const na_size_t sizes[4] = { 17, most, 0, 5000 };
    int before = ended;
    for (int i = 0; i < 4; i++)
      in[i] = check_calloc((long)most);
    for (int i = 0; i < 4 && !late; i++)
      MUST(NA_Msg_recv_expected(network, context, note, NULL, in[i], most, from, (na_tag_t)i, NULL));
    pump_barrier();
    for (int i = 3; i >= 0; i--) { /* in the reverse order of the receives */
      check_fill(out, 40 * late + 10 * me + i, (long)sizes[i]);
      MUST(NA_Msg_send_expected(network, context, note, NULL, out, sizes[i], to, (na_tag_t)i, NULL));
      memset(out, 0, sizes[i]); /* sends copy */
    }
    if (late) {
      pump_until(&ended, before + 4, "expected sends");
      pump_barrier(); /* the messages have arrived before their receives */
      for (int i = 0; i < 4; i++)
        MUST(NA_Msg_recv_expected(network, context, note, NULL, in[i], most, from, (na_tag_t)i,
                                  NULL));
    }
    pump_until(&ended, before + 8, "expected messages");
    for (int i = 0; i < 4; i++) {
      check_fill(want, 40 * late + 10 * left + i, (long)sizes[i]);
      CHECK_BYTES(in[i], want, (long)sizes[i], "expected message %d, posted %s", i,
                  late ? "late" : "first");
      free(in[i]);
    }
    pump_barrier();
  }
  MUST_BE(NA_INVALID_PARAM, NA_Msg_recv_expected(network, context, note, NULL, out, most, from,
                                                 NA_Msg_get_max_tag(network) + 1, NULL));
  MUST(NA_Addr_free(network, to));
  MUST(NA_Addr_free(network, from));
  free(out);
  free(want);
}

/* ------------------------------------------------------- progress, trigger, cancelling */

static void queues(void)
{
  na_addr_t self;
  unsigned int ran = 99;
  char in[8][8];
  double begun;

  MUST(NA_Addr_self(network, &self));
  /* With nothing pending, progress and trigger time out, and not early. */
  begun = check_seconds();
  MUST_BE(NA_TIMEOUT, NA_Progress(network, context, 60));
  CHECK(check_seconds() - begun > 0.055, "progress came back early");
  MUST_BE(NA_TIMEOUT, NA_Progress(network, context, 0));
  begun = check_seconds();
  MUST_BE(NA_TIMEOUT, NA_Trigger(context, 40, 1, &ran));
  CHECK(check_seconds() - begun > 0.035, "trigger came back early");
  CHECK_EQ(ran, 0);
  MUST_BE(NA_TIMEOUT, NA_Trigger(context, 0, 10, NULL));

  /* Eight messages to oneself: progress runs no callback, and trigger no more than its limit. */
  const int before = ended;
  for (int i = 0; i < 8; i++) {
    MUST(NA_Msg_recv_unexpected(network, context, note, NULL, in[i], sizeof in[i], NULL));
    MUST(NA_Msg_send_unexpected(network, context, note, NULL, "abcdefg", 8, self, 0, NULL));
  }
  for (int i = 0; i < 3; i++)
    MUST(NA_Progress(network, context, 100));
  CHECK_EQ(ended, before);
  MUST(NA_Trigger(context, 0, 0, &ran));
  CHECK_EQ(ran, 0);
  MUST(NA_Trigger(context, 0, 5, &ran));
  CHECK_EQ(ran, 5);
  CHECK_EQ(ended, before + 5);
  MUST(NA_Trigger(context, 100, 1000, &ran));
  CHECK_EQ(ran, 11);
  CHECK_EQ(ended, before + 16);
  for (int i = 0; i < 8; i++)
    CHECK(strcmp(in[i], "abcdefg") == 0, "message %d", i);
  MUST(NA_Addr_free(network, self));
}

static void cancelling(void)
{
  const int left = (me + nproc - 1) % nproc;
  char first[8] = "old", second[8] = "old";
  na_addr_t self, from = address_of(left);
  na_op_id_t op[3];
  int before = ended;

  MUST(NA_Addr_self(network, &self));
  cancelled = 0;
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, first, sizeof first, &op[0]));
  MUST(NA_Msg_recv_expected(network, context, note, NULL, second, sizeof second, from, 9, &op[1]));
  for (int i = 0; i < 2; i++)
    MUST(NA_Cancel(network, context, op[i]));
  CHECK_EQ(cancelled, 0); /* only trigger runs the callbacks */
  pump_until(&ended, before + 2, "cancelled receives");
  CHECK_EQ(cancelled, 2);
  for (int i = 0; i < 2; i++) /* already ended: no effect */
    MUST(NA_Cancel(network, context, op[i]));

  /* The message goes to the next receive; the buffer of the cancelled receive is unchanged. */
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, second, sizeof second, &op[2]));
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, "new", 4, self, 0, NULL));
  pump_until(&ended, before + 3, "receive after a cancelled one");
  CHECK(strcmp(first, "old") == 0 && strcmp(second, "new") == 0, "%s %s", first, second);
  CHECK_EQ(cancelled, 2);
  MUST(NA_Cancel(network, context, op[2]));
  MUST_BE(NA_TIMEOUT, NA_Progress(network, context, 20));
  CHECK_EQ(cancelled, 2);

  /* Destroying a context cancels its pending operations. */
  na_context_t *other = NA_Context_create(network);
  CHECK(other != NULL, "a second context");
  MUST(NA_Msg_recv_unexpected(network, other, note, NULL, first, sizeof first, NULL));
  MUST(NA_Context_destroy(network, other));
  before = ended;
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, second, sizeof second, NULL));
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, "two", 4, self, 0, NULL));
  pump_until(&ended, before + 1, "receive of the other context");
  CHECK(strcmp(first, "old") == 0 && strcmp(second, "two") == 0, "%s %s", first, second);
  MUST_BE(NA_INVALID_PARAM, NA_Progress(network, other, 0));
  MUST(NA_Addr_free(network, self));
  MUST(NA_Addr_free(network, from));
  pump_barrier();
}


/* A class over self needs no job. */
static void alone(void)
{
  na_class_t *outer = network;
  na_context_t *outer_context = context;
  na_addr_t self, other;
  char in[16] = "", text[NA_MAX_ADDR_LEN];
  const int before = ended;

  network = NA_Initialize("self", NA_FALSE);
  CHECK(network != NULL, "self: %s", portolan_last_error());
  CHECK(!NA_Is_listening(network), "it does not listen");
  context = NA_Context_create(network);
  MUST(NA_Addr_self(network, &self));
  MUST(NA_Addr_to_string(network, text, sizeof text, self));
  CHECK(strcmp(text, "self") == 0, "the address is %s", text);
  MUST_BE(NA_ADDRNOTAVAIL, NA_Addr_lookup_wait(network, "mpi://0", &other));
  MUST(NA_Msg_recv_expected(network, context, note, NULL, in, sizeof in, self, 4, NULL));
  MUST(NA_Msg_send_expected(network, context, note, NULL, "alone", 6, self, 4, NULL));
  pump_until(&ended, before + 2, "message to self");
  CHECK(strcmp(in, "alone") == 0, "%s", in);
  MUST(NA_Addr_free(network, self));
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  network = outer;
  context = outer_context;
}

int main(int argc, char **argv)
{
  start_na("mercury_na", &argc, &argv);
  addresses();
  limits();
  unexpected();
  expected();
  queues();
  cancelling();
  alone();
  return end_na();
}
