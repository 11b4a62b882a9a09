/* Mercury 2.4's network layer: the network of an HG class, addresses, messages, cancellation,
 * memory that other processes read and write. */
// TEST: mercury networks
#include "mercury2_check.h"

#include <na.h>

#define NA_MUST(call) NA_MUST_BE(NA_SUCCESS, call)
#define NA_MUST_BE(code, call)                                                                 \
  do {                                                                                         \
    na_return_t na_rc = (call);                                                                \
    CHECK(na_rc == (code), "%s returned %s, expected %s (%s)", #call, NA_Error_to_string(na_rc), \
          #code, portolan_last_error());                                                       \
  } while (0)

enum { SIZE = 100000 };

static na_class_t *na;
static na_context_t *queue;
static volatile int ended, received;
static na_return_t last;
static na_addr_t *from;

static void on_end(const struct na_cb_info *info)
{
  last = info->ret;
  CHECK((na_cb_type_t)(intptr_t)info->arg == info->type, "a callback of type %d", (int)info->type);
  if (info->type == NA_CB_RECV_UNEXPECTED) {
    received = (int)info->info.recv_unexpected.actual_buf_size;
    from = info->info.recv_unexpected.source;
  }
  if (info->type == NA_CB_RECV_EXPECTED)
    received = (int)info->info.recv_expected.actual_buf_size;
  ended++;
}

#define ARG(type) ((void *)(intptr_t)(type))

static void wait_for(int value)
{
  const double begun = check_seconds();
  while (ended < value) {
    unsigned int count = 0, ran = 1;
    const na_return_t rc = NA_Poll_wait(na, queue, 20, &count);
    CHECK(rc == (count > 0 ? NA_SUCCESS : NA_TIMEOUT), "%s", NA_Error_to_string(rc));
    CHECK(count == NA_Context_get_completion_count(queue), "%u", count);
    while (ran > 0)
      NA_MUST(NA_Trigger(queue, 1, &ran));
    CHECK(check_seconds() - begun < CHECK_HANG, "%d of %d", ended, value);
  }
}

static void na_barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    (void)NA_Poll(na, queue, NULL);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

static na_addr_t *peer(int rank)
{
  const char *name = check_name_of(rank);
  char text[CHECK_ADDRESS];
  size_t size = sizeof text;
  na_addr_t *address, *copy;
  NA_MUST(NA_Addr_lookup(na, name, &address));
  NA_MUST(NA_Addr_to_string(na, text, &size, address));
  CHECK(!strcmp(name, text) && size == strlen(name) + 1, "%s", text);
  CHECK(NA_Addr_get_serialize_size(na, address) <= sizeof text, "a long address");
  NA_MUST(NA_Addr_serialize(na, text, sizeof text, address));
  NA_MUST(NA_Addr_deserialize(na, &copy, text, size, 0));
  CHECK(NA_Addr_cmp(na, address, copy) && NA_Addr_is_self(na, copy) == (rank == me), "a copy");
  NA_Addr_free(na, copy);
  NA_MUST(NA_Addr_dup(na, address, &copy));
  NA_Addr_free(na, copy);
  NA_MUST(NA_Addr_set_remove(na, address));
  return address;
}

static void messages(na_addr_t *right, na_addr_t *left)
{
  void *data = &data, *buf = NA_Msg_buf_alloc(na, 4096, NA_RECV, &data);
  char out[8] = "message";
  na_op_id_t *op = NA_Op_create(na, NA_OP_SINGLE), *other = NA_Op_create(na, NA_OP_SINGLE);
  CHECK(buf && !data && op && other, "a buffer and operations");
  NA_MUST(NA_Msg_init_unexpected(na, buf, 4096));
  CHECK(NA_Msg_get_unexpected_header_size(na) == 0 && NA_Msg_get_max_unexpected_size(na) > 4096 &&
            NA_Msg_get_max_expected_size(na) > 4096 && NA_Msg_get_max_tag(na) > 1000, "limits");
  ended = 0;
  NA_MUST(NA_Msg_recv_unexpected(na, queue, on_end, ARG(NA_CB_RECV_UNEXPECTED), buf, 4096, data, op));
  NA_MUST(NA_Msg_send_unexpected(na, queue, on_end, ARG(NA_CB_SEND_UNEXPECTED), out, 8, NULL, right,
                                 0, 3, other));
  wait_for(2);
  CHECK(received == 8 && !strcmp(buf, "message") && NA_Addr_cmp(na, from, left), "%d bytes", received);
  NA_Addr_free(na, from);
  na_barrier();

  /* An expected message, and one that is longer than its buffer. */
  for (int size = 8; size >= 4; size -= 4) {
    ended = 0;
    NA_MUST(NA_Msg_recv_expected(na, queue, on_end, ARG(NA_CB_RECV_EXPECTED), buf, (size_t)size,
                                 data, left, 0, 7, op));
    na_barrier();
    NA_MUST(NA_Msg_send_expected(na, queue, NULL, NULL, out, 8, NULL, right, 0, 7, other));
    wait_for(1);
    CHECK(received == 8 && last == (size == 8 ? NA_SUCCESS : NA_MSGSIZE), "%s",
          NA_Error_to_string(last));
    na_barrier();
  }

  /* Cancellation, also of what has ended. */
  NA_MUST(NA_Cancel(na, queue, other));
  ended = 0;
  NA_MUST(NA_Msg_recv_expected(na, queue, on_end, ARG(NA_CB_RECV_EXPECTED), buf, 8, data, left, 0,
                               8, op));
  NA_MUST(NA_Cancel(na, queue, op));
  wait_for(1);
  CHECK(last == NA_CANCELED, "%s", NA_Error_to_string(last));
  CHECK(!NA_Has_opt_feature(na, NA_OPT_MULTI_RECV), "a receive of several messages");
  NA_Op_destroy(na, op);
  NA_MUST_BE(NA_INVALID_ARG, NA_Cancel(na, queue, op));
  NA_Op_destroy(na, other);
  NA_Msg_buf_free(na, buf, data);
}

static na_op_id_t *op;
static char buffer[64];

static void on_first(const struct na_cb_info *info)
{
  CHECK(info->ret == NA_SUCCESS, "%s", NA_Error_to_string(info->ret));
  NA_Addr_free(na, info->info.recv_unexpected.source);
  NA_MUST(NA_Msg_recv_unexpected(na, queue, on_end, ARG(NA_CB_RECV_UNEXPECTED), buffer,
                                 sizeof buffer, NULL, op));
}

/* An operation is posted until its callback runs, which may post it again. */
static void posted(na_addr_t *right)
{
  op = NA_Op_create(na, NA_OP_SINGLE);
  NA_MUST(NA_Msg_recv_unexpected(na, queue, on_first, NULL, buffer, sizeof buffer, NULL, op));
  NA_MUST_BE(NA_BUSY, NA_Msg_recv_unexpected(na, queue, on_end, NULL, buffer, sizeof buffer, NULL, op));
  NA_MUST_BE(NA_BUSY, NA_Msg_send_unexpected(na, queue, NULL, NULL, "busy", 5, NULL, right, 0, 3, op));
  ended = 0;
  for (int i = 0; i < 2; i++)
    NA_MUST(NA_Msg_send_unexpected(na, queue, NULL, NULL, "again", 6, NULL, right, 0, 3, NULL));
  wait_for(1);
  CHECK(received == 6 && last == NA_SUCCESS && !strcmp(buffer, "again"), "%d bytes", received);
  NA_Addr_free(na, from);
  NA_Op_destroy(na, op);
  na_barrier();
}

static void memory(na_addr_t *right)
{
  char *own = check_calloc(SIZE), *shared = check_calloc(SIZE), bytes[512], theirs[512];
  struct na_segment parts[2] = { { shared, SIZE / 2 }, { shared + SIZE / 2, SIZE / 2 } };
  na_mem_handle_t *local, *mine, *remote;
  NA_MUST(NA_Mem_handle_create(na, own, SIZE, NA_MEM_READWRITE, &local));
  NA_MUST(NA_Mem_handle_create_segments(na, parts, 2, NA_MEM_READWRITE, &mine));
  CHECK(NA_Mem_handle_get_max_segments(na) > 1, "one segment");
  NA_MUST(NA_Mem_register(na, local, NA_MEM_TYPE_HOST, 0));
  NA_MUST(NA_Mem_register(na, mine, NA_MEM_TYPE_HOST, 0));
  CHECK(NA_Mem_handle_get_serialize_size(na, mine) <= sizeof bytes, "a long handle");
  NA_MUST(NA_Mem_handle_serialize(na, bytes, sizeof bytes, mine));
  MPI_Sendrecv(bytes, sizeof bytes, MPI_BYTE, (me + nproc - 1) % nproc, 1, theirs, sizeof theirs,
               MPI_BYTE, (me + 1) % nproc, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  NA_MUST(NA_Mem_handle_deserialize(na, &remote, theirs, sizeof theirs));
  memset(own, 'a' + me, SIZE);
  ended = 0;
  NA_MUST(NA_Put(na, queue, on_end, ARG(NA_CB_PUT), local, 0, remote, 10, SIZE - 10, right, 0, NULL));
  wait_for(1);
  CHECK(last == NA_SUCCESS, "a put: %s", NA_Error_to_string(last));
  na_barrier();
  CHECK(shared[9] == 0 && shared[10] == 'a' + (me + nproc - 1) % nproc && shared[SIZE - 1] == shared[10],
        "the memory has %d", shared[10]);
  na_barrier();
  memset(own, 0, SIZE);
  NA_MUST(NA_Get(na, queue, on_end, ARG(NA_CB_GET), local, 5, remote, 10, 1000, right, 0, NULL));
  wait_for(2);
  CHECK(own[4] == 0 && own[5] == 'a' + me && own[1004] == own[5] && own[1005] == 0, "a get");
  op = NA_Op_create(na, NA_OP_SINGLE);
  for (int i = 0; i < 2; i++) /* a failure does not leave the operation posted */
    NA_MUST_BE(NA_OVERFLOW,
               NA_Get(na, queue, on_end, ARG(NA_CB_GET), local, 5, remote, 10, SIZE, right, 0, op));
  NA_Op_destroy(na, op);
  na_barrier();
  NA_MUST(NA_Mem_deregister(na, mine));
  NA_Mem_handle_free(na, mine);
  NA_Mem_handle_free(na, local);
  NA_Mem_handle_free(na, remote);
  free(own);
  free(shared);
}

/* A class with a key is reached only by classes with the same one. */
static void keys(void)
{
  struct na_init_info with = NA_INIT_INFO_INITIALIZER, without = NA_INIT_INFO_INITIALIZER;
  char name[CHECK_ADDRESS], out[8] = "message";
  size_t size = sizeof name;
  na_addr_t *there;
  with.auth_key = "a key of NA";
  na_class_t *server = NA_Initialize_opt2("tcp", true, NA_VERSION(6, 0), &with);
  CHECK(server != NULL, "NA_Initialize_opt2: %s", portolan_last_error());
  na_context_t *served = NA_Context_create(server);
  NA_MUST(NA_Addr_self(server, &there));
  NA_MUST(NA_Addr_to_string(server, name, &size, there));
  NA_Addr_free(server, there);
  for (int knows = 0; knows < 2; knows++) {
    na_class_t *client = NA_Initialize_opt("tcp", false, knows ? &with : &without);
    CHECK(client != NULL, "NA_Initialize_opt: %s", portolan_last_error());
    na_context_t *own = NA_Context_create(client);
    na_op_id_t *op = NA_Op_create(client, NA_OP_SINGLE);
    const double begun = check_seconds();
    NA_MUST(NA_Addr_lookup(client, name, &there));
    ended = 0;
    last = NA_Msg_send_unexpected(client, own, on_end, ARG(NA_CB_SEND_UNEXPECTED), out, 8, NULL,
                                  there, 0, 3, op);
    while (last == NA_SUCCESS && ended == 0) {
      unsigned int ran;
      (void)NA_Poll(client, own, NULL);
      (void)NA_Poll(server, served, NULL);
      NA_MUST(NA_Trigger(own, 1, &ran));
      CHECK(check_seconds() - begun < CHECK_HANG, "a message %s the key", knows ? "with" : "without");
    }
    CHECK((last == NA_SUCCESS) == knows, "%s the key: %s", knows ? "with" : "without",
          NA_Error_to_string(last));
    NA_Op_destroy(client, op);
    NA_Addr_free(client, there);
    NA_MUST(NA_Context_destroy(client, own));
    NA_MUST(NA_Finalize(client));
  }
  NA_MUST(NA_Context_destroy(server, served));
  NA_MUST(NA_Finalize(server));
}

int main(int argc, char **argv)
{
  unsigned int major, minor;
  start_mercury("mercury2_na", &argc, &argv);
  NA_Version_get(&major, &minor, NULL);
  CHECK(major == NA_VERSION_MAJOR && minor == NA_VERSION_MINOR, "version %u.%u", major, minor);

  struct na_init_info options;
  struct na_init_info_4_0 before = NA_INIT_INFO_INITIALIZER_4_0;
  before.auth_key = "key";
  before.max_contexts = 5;
  na_init_info_dup_4_0(&options, &before);
  CHECK(options.auth_key == before.auth_key && options.max_contexts == 5 &&
            options.traffic_class == NA_TC_UNSPEC,
        "other options");

  keys();

  /* The network of an HG class. */
  na = HG_Core_class_get_na((hg_core_class_t *)hg_class);
  CHECK(na && (!check_over_mpi() || !strcmp(NA_Get_class_name(na), "mpi")) && NA_Is_listening(na), "HG's network");
  CHECK(HG_Core_context_get_na((hg_core_context_t *)context) != NULL, "HG's context");
  na_addr_t *address = HG_Core_addr_get_na((hg_core_addr_t)ranks[me]);
  CHECK(NA_Addr_is_self(na, address), "HG's address");
  NA_MUST_BE(NA_INVALID_ARG, NA_Finalize(na)); /* it belongs to HG */

  na = NA_Initialize(check_network(), true);
  CHECK(na != NULL, "NA_Initialize: %s", portolan_last_error());
  char own[CHECK_ADDRESS];
  size_t size = sizeof own;
  NA_MUST(NA_Addr_self(na, &address));
  NA_MUST(NA_Addr_to_string(na, own, &size, address));
  NA_Addr_free(na, address);
  check_share_name(own);
  queue = NA_Context_create(na);
  CHECK(queue != NULL, "NA_Context_create: %s", portolan_last_error());
  MPI_Barrier(MPI_COMM_WORLD);
  na_addr_t *right = peer((me + 1) % nproc), *left = peer((me + nproc - 1) % nproc);
  messages(right, left);
  posted(right);
  memory(right);
  NA_MUST_BE(NA_TIMEOUT, NA_Progress(na, queue, 1));
  unsigned int count = 9;
  NA_MUST_BE(NA_TIMEOUT, NA_Poll_wait(na, queue, 1, &count));
  CHECK(count == 9, "a count of %u", count);
  NA_MUST_BE(NA_INVALID_ARG, NA_Progress(na, (na_context_t *)context, 1)); /* another class's */
  NA_Addr_free(na, right);
  NA_Addr_free(na, left);
  na_barrier();
  NA_MUST_BE(NA_BUSY, NA_Finalize(na));
  NA_MUST(NA_Context_destroy(na, queue));
  NA_MUST(NA_Finalize(na));
  return end_mercury();
}
