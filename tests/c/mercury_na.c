/* The network abstraction of 2013: addresses, messages with tags, limits, progress and trigger,
 * cancellation; memory handles over segments, their permissions, and what is no longer registered. */
// TEST: mercury networks
#include "mercury_check.h"

static int ended, cancelled;

/* The arguments of the last callback. */
static struct na_cb_info last;

static na_return_t note(const struct na_cb_info *info)
{
  last = *info;
  if (info->ret == NA_CANCELED)
    cancelled++;
  ended++;
  return NA_SUCCESS;
}

static int right, left;
static na_addr_t to, from;

/* ------------------------------------------------------------------------- addresses */

static void addresses(void)
{
  char text[NA_MAX_ADDR_LEN];
  na_addr_t found, copy;

  for (int p = 0; p < nproc; p++) {
    const int before = ended;
    na_op_id_t op = NA_OP_ID_NULL;
    const char *name = check_name_of(p);
    MUST(NA_Addr_lookup(network, context, note, &found, name, p % 2 ? &op : NA_OP_ID_IGNORE));
    CHECK_EQ(ended, before); /* only trigger runs the callback */
    pump_until(&ended, before + 1, "look-up");
    CHECK(last.type == NA_CB_LOOKUP && last.ret == NA_SUCCESS && last.arg == &found, "look-up");
    found = last.info.lookup.addr;
    CHECK_EQ(NA_Addr_is_self(network, found), p == me);
    MUST_BE(NA_OVERFLOW, NA_Addr_to_string(network, text, strlen(name), found));
    MUST(NA_Addr_dup(network, found, &copy));
    MUST(NA_Addr_free(network, found));
    MUST(NA_Addr_to_string(network, text, strlen(name) + 1, copy)); /* the copy outlives the original */
    CHECK(strcmp(text, name) == 0, "%s came back as %s", name, text);
    MUST(NA_Addr_free(network, copy));
  }
  MUST(NA_Addr_lookup_wait(network, "self", &found));
  CHECK(NA_Addr_is_self(network, found), "'self' is not self");
  MUST(NA_Addr_free(network, found));
}

/* -------------------------------------------------------------------------- messages */

/* Around the ring (to itself if the rank is alone), with sizes up to the limit and any tag. */
static void unexpected(void)
{
  const na_size_t most = NA_Msg_get_max_unexpected_size(network);
  const na_tag_t tags[] = { 0, NA_Msg_get_max_tag(network), 77 };
  const na_size_t sizes[] = { 0, most, 100 };
  unsigned char *out = check_calloc((long)most), *in = check_calloc((long)most);

  CHECK(most >= 1024 && tags[1] >= 32767 && NA_Msg_get_max_tag(NULL) == 0, "low limits");
  for (int i = 0; i < 3; i++) {
    char text[NA_MAX_ADDR_LEN];
    const int before = ended;
    check_fill(out, 10 * me + i, (long)sizes[i]);
    MUST(NA_Msg_send_unexpected(network, context, note, NULL, out, sizes[i], to, tags[i],
                                NA_OP_ID_IGNORE));
    pump_until(&ended, before + 1, "send");
    CHECK(last.type == NA_CB_SEND_UNEXPECTED && last.ret == NA_SUCCESS, "send");
    MUST(NA_Msg_recv_unexpected(network, context, note, &in, in, most, NA_OP_ID_IGNORE));
    pump_until(&ended, before + 2, "receive");
    CHECK(last.type == NA_CB_RECV_UNEXPECTED && last.ret == NA_SUCCESS && last.arg == &in, "receive");
    CHECK_EQ(last.info.recv_unexpected.actual_buf_size, sizes[i]);
    CHECK_EQ(last.info.recv_unexpected.tag, tags[i]);
    MUST(NA_Addr_to_string(network, text, sizeof text, last.info.recv_unexpected.source));
    CHECK(strcmp(text, check_name_of(left)) == 0, "the source is %s", text);
    MUST(NA_Addr_free(network, last.info.recv_unexpected.source));
    check_fill(out, 10 * left + i, (long)sizes[i]);
    CHECK_BYTES(in, out, (long)sizes[i], "message %d", i);
  }
  pump_barrier();

  /* A message that is longer than the buffer leaves it unchanged and reports its length. */
  const int before = ended;
  memset(in, 0x5a, 16);
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, in, 4, NULL));
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, out, 9, to, 3, NULL));
  pump_until(&ended, before + 1, "short receive");
  CHECK_EQ(last.ret, NA_SIZE_ERROR);
  CHECK_EQ(last.info.recv_unexpected.actual_buf_size, 9);
  for (int i = 0; i < 16; i++)
    CHECK_EQ(in[i], 0x5a);
  pump_barrier();
  free(out);
  free(in);
}

/* Messages are matched by source and tag, whether the receive is posted before or after they
 * arrive. */
static void expected(void)
{
  const na_size_t most = NA_Msg_get_max_expected_size(network);
  const na_size_t sizes[] = { 17, most, 0, 5000 };
  unsigned char *out = check_calloc((long)most), *in[4];
  const int before = ended;

  for (int i = 0; i < 4; i++)
    in[i] = check_calloc((long)most);
  for (int late = 0; late < 2; late++) {
    for (int i = 2 * late; i < 2 * late + 2; i++)
      MUST(NA_Msg_recv_expected(network, context, note, NULL, in[i], most, from, (na_tag_t)i, NULL));
    pump_barrier();
    for (int i = 3; i >= 0 && !late; i--) { /* in the reverse order of the receives */
      check_fill(out, 10 * me + i, (long)sizes[i]);
      MUST(NA_Msg_send_expected(network, context, note, NULL, out, sizes[i], to, (na_tag_t)i, NULL));
      memset(out, 0, sizes[i]); /* sends copy */
    }
    pump_until(&ended, before + (late ? 8 : 6), "expected messages");
    pump_barrier();
  }
  for (int i = 0; i < 4; i++) {
    check_fill(out, 10 * left + i, (long)sizes[i]);
    CHECK_BYTES(in[i], out, (long)sizes[i], "expected message %d", i);
    free(in[i]);
  }
  MUST_BE(NA_INVALID_PARAM, NA_Msg_recv_expected(network, context, note, NULL, out, most, from,
                                                 NA_Msg_get_max_tag(network) + 1, NULL));
  free(out);
}

/* ------------------------------------------------------- progress, trigger, cancelling */

static void queues(na_addr_t self)
{
  unsigned int ran = 99;
  char in[8][8];

  MUST_BE(NA_TIMEOUT, NA_Progress(network, context, 1));
  MUST_BE(NA_TIMEOUT, NA_Trigger(context, 1, 1, &ran));
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
  CHECK(ran == 5 && ended == before + 5, "%u and %d callbacks have run", ran, ended - before);
  MUST(NA_Trigger(context, 100, 1000, &ran));
  CHECK(ran == 11 && ended == before + 16, "%u and %d callbacks have run", ran, ended - before);
  for (int i = 0; i < 8; i++)
    CHECK(strcmp(in[i], "abcdefg") == 0, "message %d", i);
}

static void cancelling(na_addr_t self)
{
  char first[8] = "old", second[8] = "old";
  na_op_id_t op[3];
  const int before = ended;

  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, first, sizeof first, &op[0]));
  MUST(NA_Msg_recv_expected(network, context, note, NULL, second, sizeof second, from, 9, &op[1]));
  for (int i = 0; i < 2; i++)
    MUST(NA_Cancel(network, context, op[i]));
  CHECK_EQ(cancelled, 0); /* only trigger runs the callbacks */
  pump_until(&ended, before + 2, "cancelled receives");
  CHECK_EQ(cancelled, 2);

  /* The message goes to the next receive; the buffer of the cancelled receive is unchanged. */
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, second, sizeof second, &op[2]));
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, "new", 4, self, 0, NULL));
  pump_until(&ended, before + 3, "receive after a cancelled one");
  CHECK(strcmp(first, "old") == 0 && strcmp(second, "new") == 0, "%s %s", first, second);
  for (int i = 0; i < 3; i++) /* already ended: no effect */
    MUST(NA_Cancel(network, context, op[i]));
  MUST_BE(NA_TIMEOUT, NA_Progress(network, context, 20));
  CHECK_EQ(cancelled, 2);

  /* Destroying a context cancels its pending operations. */
  na_context_t *other = NA_Context_create(network);
  CHECK(other != NULL, "a second context");
  MUST(NA_Msg_recv_unexpected(network, other, note, NULL, first, sizeof first, NULL));
  MUST(NA_Context_destroy(network, other));
  MUST(NA_Msg_recv_unexpected(network, context, note, NULL, second, sizeof second, NULL));
  MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, "two", 4, self, 0, NULL));
  pump_until(&ended, before + 4, "receive of the other context");
  CHECK(strcmp(first, "old") == 0 && strcmp(second, "two") == 0, "%s %s", first, second);
  MUST_BE(NA_INVALID_PARAM, NA_Progress(network, other, 0));
  pump_barrier();
}

/* A class over self needs no job. */
static void alone(void)
{
  na_class_t *own = NA_Initialize("self", NA_FALSE);
  na_addr_t self;
  char text[NA_MAX_ADDR_LEN];

  CHECK(own != NULL && !NA_Is_listening(own), "self: %s", portolan_last_error());
  MUST(NA_Addr_self(own, &self));
  MUST(NA_Addr_to_string(own, text, sizeof text, self));
  CHECK(strcmp(text, "self") == 0, "the address is %s", text);
  MUST(NA_Addr_free(own, self));
  MUST_BE(NA_ADDRNOTAVAIL, NA_Addr_lookup_wait(own, "mpi://0", &self));
  MUST(NA_Finalize(own));
}

/* ---------------------------------------------------------------------------- memory */

/* Sends the description to the left and returns the handle of the right neighbour. */
static na_mem_handle_t exchange(na_mem_handle_t mine)
{
  unsigned char out[4096], in[4096];
  const na_size_t size = NA_Mem_handle_get_serialize_size(network, mine);
  na_mem_handle_t handle = NA_MEM_HANDLE_NULL;

  CHECK(size > 0 && size <= sizeof out, "the serialised size is %d", (int)size);
  MUST(NA_Mem_handle_serialize(network, out, size, mine));
  MPI_Sendrecv(out, sizeof out, MPI_BYTE, left, 1, in, sizeof in, MPI_BYTE, right, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MUST(NA_Mem_handle_deserialize(network, &handle, in, size)); /* all ranks have the same segments */
  return handle;
}

/* Transfers bytes and returns the result, which may be immediate or from the callback. */
static na_return_t move(int put, na_mem_handle_t local, na_offset_t lo, na_mem_handle_t remote,
                        na_offset_t ro, na_size_t size)
{
  const int before = ended;
  const na_return_t rc =
    put ? NA_Put(network, context, note, NULL, local, lo, remote, ro, size, to, NULL)
        : NA_Get(network, context, note, NULL, local, lo, remote, ro, size, to, NULL);
  if (rc != NA_SUCCESS)
    return rc;
  pump_until(&ended, before + 1, "transfer");
  CHECK_EQ(last.type, put ? NA_CB_PUT : NA_CB_GET);
  return last.ret;
}

enum { GAP = 64, WHOLE = 100 + 1 + 70000 };

/* A handle over segments with gaps; it is used only while it is registered. */
static void memory(void)
{
  static const na_size_t sizes[] = { 100, 1, 70000 };
  static const na_offset_t offsets[] = { 0, 99, 101, WHOLE };
  static unsigned char base[WHOLE + 4 * GAP], flat[WHOLE], want[WHOLE];
  struct na_segment segments[3];
  na_mem_handle_t mine, local, theirs;
  unsigned char *at = base + GAP;

  for (int i = 0; i < 3; at += sizes[i++] + GAP)
    segments[i] = (struct na_segment){ (na_ptr_t)(size_t)at, sizes[i] };
  MUST(NA_Mem_handle_create_segments(network, segments, 3, NA_MEM_READWRITE, &mine));
  MUST(NA_Mem_handle_create(network, flat, WHOLE, NA_MEM_READWRITE, &local));
  theirs = exchange(mine);
  MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1)); /* here and there, nothing is registered */
  MUST(NA_Mem_register(network, local));
  pump_barrier();
  MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1));
  pump_barrier();
  MUST(NA_Mem_register(network, mine));
  pump_barrier();
  check_fill(flat, 700 + me, WHOLE);
  for (int i = 0; i < 3; i++)
    MUST(move(1, local, offsets[i], theirs, offsets[i], offsets[i + 1] - offsets[i]));
  MUST_BE(NA_OVERFLOW, move(1, local, 0, theirs, 1, WHOLE));
  pump_barrier();
  check_fill(want, 700 + left, WHOLE);
  for (long i = 0, done = 0; i < 3; done += (long)sizes[i++]) {
    at = (unsigned char *)(size_t)segments[i].address;
    CHECK_BYTES(at, want + done, (long)sizes[i], "segment %ld", i);
    for (int j = 1; j <= GAP; j++)
      CHECK_EQ(at[-j], 0);
  }
  for (int i = 0; i < 3; i++) { /* what this rank has put there */
    const na_size_t size = offsets[i + 1] - offsets[i];
    memset(flat, 0, WHOLE);
    MUST(move(0, local, WHOLE - size, theirs, offsets[i], size));
    check_fill(want, 700 + me, WHOLE);
    CHECK_BYTES(flat + WHOLE - size, want + offsets[i], (long)size, "get from %d", (int)offsets[i]);
    CHECK(size == WHOLE || flat[WHOLE - size - 1] == 0, "the byte before");
  }
  if (nproc > 1) /* `theirs` is not local */
    MUST_BE(NA_INVALID_PARAM, move(0, theirs, 0, theirs, 0, 1));
  MUST(NA_Mem_deregister(network, local));
  MUST_BE(NA_ACCESS, move(1, local, 0, theirs, 0, 1));
  MUST(NA_Mem_register(network, local));
  pump_barrier();
  for (int freed = 0; freed < 2; freed++) {
    if (freed)
      MUST(NA_Mem_handle_free(network, mine)); /* while it is registered */
    else
      MUST(NA_Mem_deregister(network, mine));
    memset(base, 7, sizeof base);
    pump_barrier();
    MUST_BE(NA_ACCESS, move(1, local, 0, theirs, 0, WHOLE));
    MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1));
    pump_barrier();
    for (size_t i = 0; i < sizeof base; i++)
      CHECK_EQ(base[i], 7);
    if (!freed)
      MUST(NA_Mem_register(network, mine));
    pump_barrier();
  }
  MUST(NA_Mem_handle_free(network, theirs));
  MUST(NA_Mem_handle_free(network, local));
}

/* Read-only and write-only memory, on the remote and on the local side. */
static void permissions(void)
{
  static const unsigned long flags[] = { NA_MEM_READ_ONLY, NA_MEM_WRITE_ONLY, NA_MEM_READWRITE };
  unsigned char bytes[3][16], other[3][16];
  na_mem_handle_t mine[3], local[3], theirs[3];

  for (int i = 0; i < 3; i++) {
    MUST(NA_Mem_handle_create(network, bytes[i], 16, flags[i], &mine[i]));
    MUST(NA_Mem_handle_create(network, other[i], 16, flags[i], &local[i]));
    MUST(NA_Mem_register(network, mine[i]));
    MUST(NA_Mem_register(network, local[i]));
    theirs[i] = exchange(mine[i]);
  }
  pump_barrier();
  for (int l = 0; l < 3; l++)
    for (int r = 0; r < 3; r++) {
      MUST_BE(l != 0 && r != 1 ? NA_SUCCESS : NA_PERMISSION, move(0, local[l], 0, theirs[r], 0, 16));
      MUST_BE(l != 1 && r != 0 ? NA_SUCCESS : NA_PERMISSION, move(1, local[l], 0, theirs[r], 0, 16));
    }
  pump_barrier();
  for (int i = 0; i < 3; i++) {
    MUST(NA_Mem_handle_free(network, mine[i]));
    MUST(NA_Mem_handle_free(network, local[i]));
    MUST(NA_Mem_handle_free(network, theirs[i]));
  }
}

static void layouts(void)
{
  CHECK_EQ(sizeof(na_size_t), 8);
  CHECK_EQ(sizeof(na_bool_t), 1);
  CHECK_EQ(sizeof(na_tag_t), 4);
  CHECK_EQ(sizeof(struct na_segment), 16);
  CHECK_EQ(offsetof(struct na_cb_info, ret), 8);
  CHECK_EQ(offsetof(struct na_cb_info, type), 12);
  CHECK_EQ(offsetof(struct na_cb_info, info), 16);
  CHECK_EQ(offsetof(struct na_cb_info_recv_unexpected, source), 8);
  CHECK_EQ(offsetof(struct na_cb_info_recv_unexpected, tag), 16);
  CHECK_EQ(sizeof(hg_id_t), 4);
  CHECK_EQ(sizeof(hg_status_t), 1);
  CHECK_EQ((int)NA_MEM_READ_ONLY | (int)NA_MEM_WRITE_ONLY, NA_MEM_READWRITE);
  CHECK_EQ((int)NA_CANCELED, (int)HG_CANCELED);
  CHECK_EQ((int)NA_IO_ERROR, (int)HG_IO_ERROR);
  CHECK_EQ((int)NA_TIMEOUT, (int)HG_TIMEOUT);
}

int main(int argc, char **argv)
{
  na_addr_t self;
  layouts();
  start_network("mercury_na", &argc, &argv);
  context = NA_Context_create(network);
  CHECK(context != NULL, "no context: %s", portolan_last_error());
  right = (me + 1) % nproc;
  left = (me + nproc - 1) % nproc;
  to = address_of(right);
  from = address_of(left);
  MUST(NA_Addr_self(network, &self));
  addresses();
  unexpected();
  expected();
  queues(self);
  cancelling(self);
  alone();
  memory();
  permissions();
  MUST(NA_Addr_free(network, self));
  MUST(NA_Addr_free(network, to));
  MUST(NA_Addr_free(network, from));
  pump_barrier();
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  MUST_BE(NA_INVALID_PARAM, NA_Finalize(network));
  return check_end_mpi();
}
