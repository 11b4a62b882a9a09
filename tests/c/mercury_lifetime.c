/* Lifetimes of handles and contexts. A handle destroyed while its call is under way lives until its
 * callback has run. Destroying a context ends the calls and transfers under way in it, and the
 * class can then be finalised. Also handles without a function, and freeing null handles. */
// TEST: mercury networks
#include "mercury_check.h"

enum { TIMES = 1000, AT_ONCE = 50, LONG = 200000, BULK = 48 << 20 };

MERCURY_GEN_PROC(number_t, ((uint64_t)(x)))
MERCURY_GEN_PROC(texts_t, ((hg_uint64_t)(x)) ((hg_const_string_t)(s)))

static hg_class_t *hg;
static hg_context_t *serving; /* serves the calls of other ranks */
static hg_id_t add_id, keep_id, text_id;
static hg_addr_t right;
static char *long_text;

static int ended, cancelled, freed, answered, kept;
static hg_handle_t keeping[4096];

static void note_freed(void *data)
{
  CHECK(data == &freed, "another thing is freed");
  freed++;
}

static void check_handle(hg_handle_t handle, hg_id_t id, hg_context_t *of)
{
  const struct hg_info *info = HG_Get_info(handle);
  CHECK(info != NULL, "no information in a callback: %s", portolan_last_error());
  CHECK(info->id == id && info->context == of && info->hg_class == hg, "the information is wrong");
  CHECK(info->addr != HG_ADDR_NULL, "no address");
}

static hg_return_t answer_left(const struct hg_cb_info *info)
{
  CHECK_EQ(info->ret, HG_SUCCESS);
  check_handle(info->info.respond.handle, add_id, serving);
  CHECK(HG_Get_data(info->info.respond.handle) == &freed, "the data of a handle");
  answered++;
  return HG_SUCCESS;
}

static hg_return_t add_cb(hg_handle_t handle)
{
  number_t n;
  MUST(HG_Get_input(handle, &n));
  n.x++;
  MUST(HG_Set_data(handle, &freed, note_freed));
  MUST(HG_Respond(handle, answer_left, NULL, &n));
  MUST(HG_Free_input(handle, &n));
  return HG_Destroy(handle); /* its callback has not run yet */
}

static hg_return_t keep_cb(hg_handle_t handle)
{
  CHECK(kept < 4096, "%d handles are kept", kept);
  keeping[kept++] = handle;
  return HG_SUCCESS;
}

/* Responds with more data than a message holds. */
static hg_return_t text_cb(hg_handle_t handle)
{
  texts_t t;
  MUST(HG_Get_input(handle, &t));
  MUST(HG_Respond(handle, NULL, NULL, &t));
  MUST(HG_Free_input(handle, &t));
  return HG_Destroy(handle);
}

static void forget_kept(void)
{
  while (kept)
    MUST(HG_Destroy(keeping[--kept]));
}

static void serve(unsigned int milliseconds)
{
  unsigned int count;
  HG_Progress(serving, milliseconds);
  while (HG_Trigger(serving, 0, 10, &count) == HG_SUCCESS && count)
    ;
}

static void serve_until(volatile int *counter, int value, const char *what)
{
  const double begun = check_seconds();
  while (*counter < value) {
    serve(20);
    CHECK(check_seconds() - begun < CHECK_HANG, "%s: %d of %d", what, *counter, value);
  }
}

static void barrier(void)
{
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) {
    serve(0);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
}

static hg_return_t add_done(const struct hg_cb_info *info)
{
  const hg_handle_t handle = info->info.forward.handle;
  number_t n;
  CHECK_EQ(info->ret, HG_SUCCESS);
  check_handle(handle, add_id, serving);
  MUST(HG_Get_output(handle, &n));
  CHECK_EQ(n.x, *(uint64_t *)info->arg + 1);
  MUST(HG_Free_output(handle, &n));
  CHECK(HG_Get_data(handle) == &freed, "the data of a handle");
  if (ended % 200 == 0)
    MUST_BE(HG_BUSY, HG_Context_destroy(serving)); /* refused in one of its own callbacks */
  ended++;
  return HG_SUCCESS;
}

/* HG_Forward, then HG_Destroy at once. */
static void handles_destroyed_at_once(void)
{
  static uint64_t numbers[AT_ONCE];
  static hg_handle_t handles[AT_ONCE];
  for (int round = 0; round < TIMES / AT_ONCE; round++) {
    const int all = (round + 1) * AT_ONCE;
    for (int i = 0; i < AT_ONCE; i++) {
      number_t in = { numbers[i] = (uint64_t)(round * AT_ONCE + i) };
      MUST(HG_Create(serving, right, add_id, &handles[i]));
      MUST(HG_Set_data(handles[i], &freed, note_freed));
      MUST(HG_Forward_handle(handles[i], add_done, &numbers[i], &in));
      MUST(HG_Destroy(handles[i]));
      MUST_BE(HG_INVALID_PARAM, HG_Destroy(handles[i])); /* a second destroy fails */
      if (i % 7 == 0)
        serve(0);
    }
    serve_until(&ended, all, "calls of handles that were destroyed");
    /* The handles at the server, for the calls that this rank served, were freed too. */
    serve_until(&answered, all, "answers");
    barrier();
    CHECK_EQ(freed, 2 * all);
    for (int i = 0; i < AT_ONCE; i++)
      MUST_BE(HG_INVALID_PARAM, HG_Destroy(handles[i]));
    barrier();
  }
}

static hg_return_t kept_by_its_callback(const struct hg_cb_info *info)
{
  MUST(HG_Ref_incr(info->info.forward.handle));
  ended++;
  return HG_SUCCESS;
}

static void handles_kept_by_their_callbacks(void)
{
  hg_handle_t handle;
  number_t in = { 5 };
  const int was = ended;
  MUST(HG_Create(serving, right, add_id, &handle));
  MUST(HG_Forward_handle(handle, kept_by_its_callback, NULL, &in));
  MUST(HG_Destroy(handle));
  serve_until(&ended, was + 1, "a call");
  CHECK_EQ(HG_Ref_get(handle), 1);
  MUST(HG_Get_output(handle, &in));
  CHECK_EQ(in.x, 6);
  MUST(HG_Forward_handle(handle, NULL, NULL, &in)); /* no callback */
  MUST(HG_Destroy(handle));
  barrier();
}

static hg_context_t *calling;
static int ending;

static hg_return_t call_ended(const struct hg_cb_info *info)
{
  const hg_handle_t handle = info->info.forward.handle;
  const struct hg_info *what = HG_Get_info(handle);
  CHECK(what != NULL && what->context == calling, "no information in a callback");
  if (ending && info->ret == HG_FAIL) { /* its server ended first */
    ended++;
    return HG_SUCCESS;
  }
  CHECK(info->ret == HG_CANCELED || info->ret == HG_SUCCESS, "a call ends with %s",
        HG_Error_to_string(info->ret));
  CHECK(info->ret == HG_CANCELED || what->id != keep_id, "a call without an answer has ended");
  cancelled += info->ret == HG_CANCELED;
  ended++;
  if (info->arg != NULL) /* too late to forward it again */
    MUST_BE(HG_INVALID_PARAM, HG_Forward_handle(handle, call_ended, NULL, NULL));
  return HG_SUCCESS;
}

/* Destroys a context while calls are under way: unanswered ones, answered ones, and ones with long
 * inputs and outputs, some of whose handles were destroyed. */
static void contexts_destroyed_with_calls(void)
{
  for (int i = 0; i < TIMES; i++) {
    hg_handle_t handles[4];
    number_t n = { (uint64_t)i };
    texts_t t = { (uint64_t)i, long_text };
    const int was_ended = ended, was_cancelled = cancelled, count = i % 25 == 0 ? 4 : 3;

    calling = HG_Context_create(hg);
    CHECK(calling != NULL, "no context: %s", portolan_last_error());
    MUST(HG_Create(calling, right, keep_id, &handles[0]));
    MUST(HG_Create(calling, right, keep_id, &handles[1]));
    MUST(HG_Create(calling, right, add_id, &handles[2]));
    MUST(HG_Forward_handle(handles[0], call_ended, NULL, &n));
    MUST(HG_Forward_handle(handles[1], call_ended, handles, &n));
    MUST(HG_Forward_handle(handles[2], call_ended, NULL, &n));
    MUST(HG_Destroy(handles[1]));
    if (count == 4) {
      MUST(HG_Create(calling, right, text_id, &handles[3]));
      MUST(HG_Forward_handle(handles[3], call_ended, NULL, &t));
    }
    for (int j = 0; j < i % 5; j++)
      serve(0);
    CHECK_EQ(ended, was_ended); /* no trigger has run its callbacks */
    MUST(HG_Context_destroy(calling));
    CHECK_EQ(ended, was_ended + count);
    CHECK(cancelled >= was_cancelled + 2, "%d of %d are cancelled", cancelled - was_cancelled, count);
    MUST_BE(HG_INVALID_PARAM, HG_Context_destroy(calling));
    MUST_BE(HG_INVALID_PARAM, HG_Destroy(handles[0])); /* destroyed with its context */
    CHECK(HG_Get_info(handles[1]) == NULL, "a handle without a context");
    if (i % 20 == 19) {
      barrier();
      forget_kept(); /* answers to calls that have ended */
      barrier();
    }
  }
}

static int moved;
static hg_return_t bulk_moved(const struct hg_cb_info *info)
{
  CHECK(info->ret == HG_CANCELED || info->ret == HG_SUCCESS, "a transfer ends with %s",
        HG_Error_to_string(info->ret));
  moved++;
  return HG_SUCCESS;
}

/* Destroys a context while a transfer is under way: afterwards the memory belongs to the
 * program. */
static void contexts_destroyed_with_transfers(void)
{
  static unsigned char packed[4096], theirs[4096];
  void *mine = check_calloc(BULK);
  const hg_size_t size = BULK;
  hg_bulk_t exposed, remote;
  const int left = (me + nproc - 1) % nproc;
  MUST(HG_Bulk_create(hg, 1, &mine, &size, HG_BULK_READ_ONLY, &exposed));
  CHECK(HG_Bulk_get_serialize_size(exposed, 0) <= sizeof packed, "a long description");
  MUST(HG_Bulk_serialize(packed, sizeof packed, 0, exposed));
  MPI_Sendrecv(packed, sizeof packed, MPI_BYTE, left, 3, theirs, sizeof theirs, MPI_BYTE,
               (me + 1) % nproc, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MUST(HG_Bulk_deserialize(hg, &remote, theirs, sizeof theirs));
  for (int i = 0; i < 8; i++) {
    unsigned char *to = check_calloc(BULK);
    void *at = to;
    hg_bulk_t local;
    const int was = moved;
    calling = HG_Context_create(hg);
    MUST(HG_Bulk_create(hg, 1, &at, &size, HG_BULK_READWRITE, &local));
    MUST(HG_Bulk_transfer_cb(calling, bulk_moved, NULL, HG_BULK_PULL, right, remote, 0, local, 0,
                             size, HG_OP_ID_IGNORE));
    CHECK_EQ(moved, was);
    MUST(HG_Context_destroy(calling));
    CHECK_EQ(moved, was + 1);
    MUST(HG_Bulk_free(local));
    memset(to, 0x77, BULK); /* no byte may arrive late */
    barrier();
    for (long j = 0; j < BULK; j += 509)
      CHECK_EQ(to[j], 0x77);
    free(to);
  }
  barrier();
  MUST(HG_Bulk_free(remote));
  MUST(HG_Bulk_free(exposed));
  free(mine);
}

/* Handles whose function is set later. */
static void blank_handles(void)
{
  hg_handle_t handle;
  number_t in = { 41 };
  uint64_t number = 41;
  const int was = ended;
  MUST(HG_Create(serving, HG_ADDR_NULL, 0, &handle));
  CHECK(HG_Get_info(handle) != NULL && HG_Get_info(handle)->id == 0
          && HG_Get_info(handle)->addr == HG_ADDR_NULL, "a blank handle");
  MUST_BE(HG_INVALID_PARAM, HG_Forward_handle(handle, add_done, &number, &in));
  MUST(HG_Reset(handle, HG_ADDR_NULL, add_id));
  MUST_BE(HG_INVALID_PARAM, HG_Forward_handle(handle, add_done, &number, &in));
  MUST(HG_Reset(handle, right, 0));
  MUST(HG_Set_data(handle, &freed, note_freed));
  MUST(HG_Forward_handle(handle, add_done, &number, &in));
  serve_until(&ended, was + 1, "a call");
  MUST(HG_Destroy(handle));
  MUST(HG_Create(serving, right, 0, &handle));
  MUST_BE(HG_INVALID_PARAM, HG_Forward_handle(handle, add_done, &number, &in));
  MUST(HG_Reset(handle, HG_ADDR_NULL, add_id));
  MUST(HG_Set_data(handle, &freed, note_freed));
  MUST(HG_Forward_handle(handle, add_done, &number, &in));
  serve_until(&ended, was + 2, "a call");
  MUST(HG_Destroy(handle));
  MUST_BE(HG_NO_MATCH, HG_Create(serving, right, 0x12345, &handle));

  MUST(HG_Destroy(HG_HANDLE_NULL));
  MUST(HG_Bulk_free(HG_BULK_NULL));
  MUST(HG_Bulk_handle_free(HG_BULK_NULL));
  MUST(HG_Addr_free(hg, HG_ADDR_NULL));
  barrier();
}

/* Destroys the last context while its calls are under way and other ranks hold their inputs. */
static void end_with_calls(void)
{
  hg_handle_t handle;
  number_t n = { 1 };
  const int was = ended;
  ending = 1;
  barrier();
  calling = serving;
  MUST(HG_Create(serving, right, keep_id, &handle));
  MUST(HG_Forward_handle(handle, call_ended, NULL, &n));
  MUST_BE(HG_BUSY, HG_Class_finalize(hg));
  MUST(HG_Context_destroy(serving));
  CHECK_EQ(ended, was + 1);
  MUST(HG_Class_finalize(hg)); /* no rank waits for another */
}

int main(int argc, char **argv)
{
  char text[64];
  start_network("mercury_lifetime", &argc, &argv);
  long_text = check_calloc(LONG + 1);
  memset(long_text, 'x', LONG);
  for (int round = 0; round < 3; round++) {
    hg = HG_Init_opt("mpi", HG_TRUE, NULL);
    CHECK(hg != NULL, "HG_Init_opt: %s", portolan_last_error());
    serving = HG_Context_create(hg);
    add_id = HG_Register_name(hg, "add", hg_proc_number_t, hg_proc_number_t, add_cb);
    keep_id = HG_Register_name(hg, "keep", hg_proc_number_t, hg_proc_number_t, keep_cb);
    text_id = HG_Register_name(hg, "text", hg_proc_texts_t, hg_proc_texts_t, text_cb);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(text, sizeof text, "mpi://%d", (me + 1) % nproc);
    MUST(HG_Addr_lookup2(hg, text, &right));
    if (round == 0) {
      handles_destroyed_at_once();
      handles_kept_by_their_callbacks();
      blank_handles();
      contexts_destroyed_with_calls();
      contexts_destroyed_with_transfers();
    }
    MUST(HG_Addr_free(hg, right));
    snprintf(text, sizeof text, "mpi://%d", (me + 1) % nproc);
    MUST(HG_Addr_lookup2(hg, text, &right));
    end_with_calls();
    kept = 0; /* freed with their context */
  }
  free(long_text);
  MUST(NA_Finalize(network));
  return check_end_mpi();
}
