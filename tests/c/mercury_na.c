/* The network abstraction of 2013: messages with tags, progress and trigger, cancellation; memory handles
 * over segments, and what is no longer registered. */
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

/* -------------------------------------------------------------------------- messages */

/* Around the ring (to itself if the rank is alone). A message that is longer than the buffer leaves it
 * unchanged and reports its length. */
static void unexpected(void)
{
  const na_size_t room[] = { 16, 4 };
  char text[NA_MAX_ADDR_LEN];
  for (int i = 0; i < 2; i++) {
    char in[16] = "unchanged";
    const int before = ended;
    MUST(NA_Msg_recv_unexpected(network, context, note, &in, in, room[i], NULL));
    MUST(NA_Msg_send_unexpected(network, context, NULL, NULL, "a message", 10, to, 77, NULL));
    pump_until(&ended, before + 1, "receive");
    CHECK(last.type == NA_CB_RECV_UNEXPECTED && last.arg == &in, "receive");
    CHECK_EQ(last.ret, i ? NA_SIZE_ERROR : NA_SUCCESS);
    CHECK_EQ(last.info.recv_unexpected.actual_buf_size, 10);
    CHECK_EQ(last.info.recv_unexpected.tag, 77);
    CHECK(strcmp(in, i ? "unchanged" : "a message") == 0, "the buffer has %s", in);
    if (i == 0) {
      MUST(NA_Addr_to_string(network, text, sizeof text, last.info.recv_unexpected.source));
      CHECK(strcmp(text, check_name_of(left)) == 0, "the source is %s", text);
      MUST(NA_Addr_free(network, last.info.recv_unexpected.source));
    }
    pump_barrier();
  }
}

/* Messages are matched by source and tag, whether the receive is posted before or after they
 * arrive. */
static void expected(void)
{
  const na_size_t most = NA_Msg_get_max_expected_size(network);
  unsigned char *out = check_calloc((long)most), *in[2];
  const int before = ended;

  for (int i = 0; i < 2; i++)
    in[i] = check_calloc((long)most);
  MUST(NA_Msg_recv_expected(network, context, note, NULL, in[0], most, from, 0, NULL));
  pump_barrier();
  for (int i = 1; i >= 0; i--) {
    check_fill(out, 10 * me + i, (long)most);
    MUST(NA_Msg_send_expected(network, context, NULL, NULL, out, most, to, (na_tag_t)i, NULL));
    memset(out, 0, most); /* sends copy */
  }
  pump_until(&ended, before + 1, "a message whose receive was posted before");
  pump_barrier();
  MUST(NA_Msg_recv_expected(network, context, note, NULL, in[1], most, from, 1, NULL));
  pump_until(&ended, before + 2, "a message whose receive was posted after");
  for (int i = 0; i < 2; i++) {
    check_fill(out, 10 * left + i, (long)most);
    CHECK_BYTES(in[i], out, (long)most, "expected message %d", i);
    free(in[i]);
  }
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

enum { SIZE = 70000 };

/* A handle over segments with a gap; it is used only while it is registered. */
static void memory(void)
{
  static unsigned char base[2 * SIZE], flat[SIZE], want[SIZE];
  struct na_segment segments[] = { { (na_ptr_t)(size_t)base, 100 },
                                   { (na_ptr_t)(size_t)(base + SIZE), SIZE - 100 } };
  na_mem_handle_t mine, local, theirs;

  MUST(NA_Mem_handle_create_segments(network, segments, 2, NA_MEM_READWRITE, &mine));
  MUST(NA_Mem_handle_create(network, flat, SIZE, NA_MEM_READWRITE, &local));
  theirs = exchange(mine);
  MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1)); /* here and there, nothing is registered */
  MUST(NA_Mem_register(network, local));
  pump_barrier();
  MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1));
  pump_barrier();
  MUST(NA_Mem_register(network, mine));
  pump_barrier();
  check_fill(flat, 700 + me, SIZE);
  MUST(move(1, local, 0, theirs, 0, SIZE));
  MUST_BE(NA_OVERFLOW, move(1, local, 0, theirs, 1, SIZE));
  pump_barrier();
  check_fill(want, 700 + left, SIZE);
  CHECK_BYTES(base, want, 100, "the first segment");
  CHECK_BYTES(base + SIZE, want + 100, SIZE - 100, "the second segment");
  CHECK(base[100] == 0 && base[SIZE - 1] == 0, "the gap");
  memset(flat, 0, SIZE);
  MUST(move(0, local, 5, theirs, 90, 1000));
  check_fill(want, 700 + me, SIZE);
  CHECK_BYTES(flat + 5, want + 90, 1000, "a get");
  if (nproc > 1) /* `theirs` is not local */
    MUST_BE(NA_INVALID_PARAM, move(0, theirs, 0, theirs, 0, 1));
  MUST(NA_Mem_deregister(network, local));
  MUST_BE(NA_ACCESS, move(1, local, 0, theirs, 0, 1));
  MUST(NA_Mem_register(network, local));
  for (int freed = 0; freed < 2; freed++) {
    pump_barrier();
    if (freed)
      MUST(NA_Mem_handle_free(network, mine)); /* while it is registered */
    else
      MUST(NA_Mem_deregister(network, mine));
    pump_barrier();
    MUST_BE(NA_ACCESS, move(1, local, 0, theirs, 0, SIZE));
    MUST_BE(NA_ACCESS, move(0, local, 0, theirs, 0, 1));
    pump_barrier();
    if (!freed)
      MUST(NA_Mem_register(network, mine));
  }
  MUST(NA_Mem_handle_free(network, theirs));
  MUST(NA_Mem_handle_free(network, local));
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
  unexpected();
  expected();
  queues(self);
  cancelling(self);
  alone();
  memory();
  MUST(NA_Addr_free(network, self));
  MUST(NA_Addr_free(network, to));
  MUST(NA_Addr_free(network, from));
  pump_barrier();
  MUST(NA_Context_destroy(network, context));
  MUST(NA_Finalize(network));
  MUST_BE(NA_INVALID_PARAM, NA_Finalize(network));
  return check_end_mpi();
}
