/* Services without MPI and without a launcher, in forked processes. A parent goes on with its class,
 * and the child's copy is idle: the child may try to use it and end it, and neither the parent nor its
 * peers notice. The parent is a server, a client, or a client that listens. A child may also go on in
 * place of its parent (daemon), and a server may die (outlives). tests/services kills and stops servers
 * and clients at random.
 *
 *   mercury2_fork NETWORK ends|progresses|calls|exits|own|daemon|outlives
 */
// TEST: n=1 -- {na+sm,tcp} {ends,progresses,calls,exits,own,daemon,outlives}
// TEST: n=1 build=static -- na+sm ends
#include "mercury2_check.h"

#include <sys/wait.h>

enum { BYTES = 300 * 1024 };
enum parent { SERVER, CLIENT, LISTENER, PARENTS };

MERCURY_GEN_PROC(number_t, ((uint64_t)(n)))
MERCURY_GEN_PROC(ask_t, ((uint64_t)(n)) ((hg_bulk_t)(bulk)))

static const char *network, *kind;
static char server_name[300];
static hg_id_t twice, stop, keep;
static hg_addr_t there;
static hg_bulk_t bulk;
static volatile int stopped;

static int is(const char *name)
{
  return strcmp(kind, name) == 0;
}

struct asked {
  hg_handle_t handle;
  ask_t in;
  hg_bulk_t local;
};

/* Returns the place of the last word of memory of the library. */
static uint64_t *last_of(hg_bulk_t memory)
{
  void *at;
  MUST(HG_Bulk_access(memory, BYTES - sizeof(uint64_t), sizeof(uint64_t), HG_BULK_READWRITE, 1, &at, NULL, NULL));
  return at;
}

static hg_return_t on_pulled(const struct hg_cb_info *info)
{
  struct asked *asked = info->arg;
  MUST(info->ret);
  number_t number = { asked->in.n + *last_of(asked->local) };
  MUST(HG_Respond(asked->handle, NULL, NULL, &number));
  MUST(HG_Bulk_free(asked->local));
  MUST(HG_Free_input(asked->handle, &asked->in));
  MUST(HG_Destroy(asked->handle));
  free(asked);
  return HG_SUCCESS;
}

/* Adds the last word of the caller's memory, which is the number itself. */
static hg_return_t twice_cb(hg_handle_t handle)
{
  struct asked *asked = check_calloc(sizeof *asked);
  hg_size_t size = BYTES;
  asked->handle = handle;
  MUST(HG_Get_input(handle, &asked->in));
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &asked->local));
  return HG_Bulk_transfer(context, on_pulled, asked, HG_BULK_PULL, HG_Get_info(handle)->addr,
                          asked->in.bulk, 0, asked->local, 0, BYTES, HG_OP_ID_IGNORE);
}

static hg_return_t stop_cb(hg_handle_t handle)
{
  stopped = 1;
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

/* Never answers. */
static hg_return_t keep_cb(hg_handle_t handle)
{
  (void)handle;
  return HG_SUCCESS;
}

static void begin(const char *info, int listen)
{
  hg_size_t size = BYTES;
  hg_class = HG_Init(info, listen);
  CHECK(hg_class != NULL, "HG_Init(%s): %s", info, portolan_last_error());
  context = HG_Context_create(hg_class);
  CHECK(context != NULL, "HG_Context_create: %s", portolan_last_error());
  twice = HG_Register_name(hg_class, "twice", hg_proc_ask_t, hg_proc_number_t, twice_cb);
  stop = HG_Register_name(hg_class, "stop", NULL, NULL, stop_cb);
  keep = HG_Register_name(hg_class, "keep", NULL, NULL, keep_cb);
  MUST(HG_Bulk_create(hg_class, 1, NULL, &size, HG_BULK_READWRITE, &bulk));
}

static void finish(void)
{
  MUST(HG_Bulk_free(bulk));
  MUST(HG_Context_destroy(context));
  MUST(HG_Finalize(hg_class));
}

static volatile int ended;
static hg_return_t status;

static hg_return_t on_end(const struct hg_cb_info *info)
{
  number_t out = { 0 };
  status = info->ret;
  if (info->ret == HG_SUCCESS && info->arg != NULL) {
    MUST(HG_Get_output(info->info.forward.handle, &out));
    CHECK(out.n == 2 * *(uint64_t *)info->arg, "the answer is %lu", (unsigned long)out.n);
    MUST(HG_Free_output(info->info.forward.handle, &out));
  }
  ended++;
  return HG_SUCCESS;
}

/* Returns the status of a call, of which HG_Forward may be the end. */
static hg_return_t call(hg_id_t id, uint64_t n)
{
  ask_t in = { n, bulk };
  hg_handle_t handle;
  ended = 0;
  if (id == twice)
    *last_of(bulk) = n;
  MUST(HG_Create(context, there, id, &handle));
  hg_return_t rc = HG_Forward(handle, on_end, id == twice ? &n : NULL, id == twice ? &in : NULL);
  if (rc == HG_SUCCESS) {
    pump_until(&ended, 1, "a call");
    rc = status;
  }
  MUST(HG_Destroy(handle));
  return rc;
}

static void calls(void)
{
  for (uint64_t n = 1; n <= 5; n++)
    MUST(call(twice, n));
}

static void find_server(void)
{
  MUST(HG_Addr_lookup2(hg_class, server_name, &there));
}

/* The actions of the child. */
static void child(enum parent parent)
{
  unsigned int count;
  if (is("exits"))
    exit(0);
  if (is("progresses")) {
    MUST_BE(HG_TIMEOUT, HG_Progress(context, 50));
    MUST_BE(HG_TIMEOUT, HG_Trigger(context, 0, 1, &count));
    MUST_BE(HG_TIMEOUT, HG_Progress(context, 0));
  }
  if (is("calls") && parent != SERVER) {
    MUST_BE(HG_BUSY, call(stop, 0));
    CHECK(strstr(portolan_last_error(), "forked") != NULL, "%s", portolan_last_error());
  }
  if (parent != SERVER)
    MUST(HG_Addr_free(hg_class, there));
  finish();
  if (is("own") && parent != SERVER) {
    begin(network, parent == LISTENER);
    find_server();
    calls();
    MUST(HG_Addr_free(hg_class, there));
    finish();
  }
  exit(0);
}

/* Forks a child, and makes progress until it has ended. */
static void fork_one(enum parent parent)
{
  int how = 0;
  fflush(NULL);
  const pid_t pid = fork();
  CHECK(pid >= 0, "fork");
  if (pid == 0)
    child(parent);
  const double begun = check_seconds();
  while (waitpid(pid, &how, WNOHANG) == 0) {
    pump(context, 10);
    CHECK(check_seconds() - begun < CHECK_HANG, "the child does not end");
  }
  CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the child of parent %d ended with %#x", parent, how);
}

/* Starts a server, which tells its address. `stay` is a pipe whose end ends a child that lives on
 * after it has ended its copy. */
static pid_t start_server(enum parent parent, const int *stay)
{
  int tell[2];
  hg_size_t size = sizeof server_name;
  hg_addr_t self;
  CHECK(pipe(tell) == 0, "pipe");
  fflush(NULL);
  const pid_t pid = fork();
  CHECK(pid >= 0, "fork");
  if (pid > 0) {
    close(tell[1]);
    CHECK(read(tell[0], server_name, sizeof server_name) == sizeof server_name, "no server");
    close(tell[0]);
    return pid;
  }
  alarm(50);
  begin(network, 1);
  if (is("daemon")) { /* the child serves, and this process ends at once */
    if (fork() > 0)
      _exit(0);
    alarm(50);
  }
  MUST(HG_Addr_self(hg_class, &self));
  MUST(HG_Addr_to_string(hg_class, server_name, &size, self));
  MUST(HG_Addr_free(hg_class, self));
  if (stay != NULL) {
    close(stay[1]);
    if (fork() == 0) {
      alarm(50);
      finish();
      CHECK(write(tell[1], server_name, sizeof server_name) == sizeof server_name, "write");
      close(tell[1]);
      char none;
      _exit(read(stay[0], &none, 1) != 0);
    }
  } else {
    CHECK(write(tell[1], server_name, sizeof server_name) == sizeof server_name, "write");
  }
  close(tell[1]);
  if (parent == SERVER && stay == NULL && !is("daemon"))
    fork_one(SERVER);
  while (!stopped)
    pump(context, 100);
  finish();
  exit(0);
}

/* A server is killed while it has a call. Its sockets end with it, although a child of it lives, and
 * over TCP its successor has the same address. */
static void outlives(void)
{
  int stay[2], how;
  hg_handle_t handle;
  CHECK(pipe(stay) == 0, "pipe");
  pid_t server = start_server(SERVER, stay);
  begin(network, 0);
  find_server();
  calls();
  ended = 0;
  MUST(HG_Create(context, there, keep, &handle));
  MUST(HG_Forward(handle, on_end, NULL, NULL));
  kill(server, SIGKILL);
  CHECK(waitpid(server, &how, 0) == server, "waitpid");
  pump_until(&ended, 1, "the end of the server");
  MUST_BE(HG_HOSTUNREACH, status);
  MUST(HG_Destroy(handle));
  MUST_BE(HG_HOSTUNREACH, call(twice, 1));
  const int same = strncmp(server_name, "tcp", 3) == 0;
  network = same ? strcpy((char[300]){ "" }, server_name) : network;
  server = start_server(CLIENT, NULL);
  if (!same) {
    MUST(HG_Addr_free(hg_class, there));
    find_server();
  }
  calls();
  MUST(call(stop, 0));
  CHECK(waitpid(server, &how, 0) == server && how == 0, "the successor ended with %#x", how);
  MUST(HG_Addr_free(hg_class, there));
  finish();
  close(stay[1]);
}

int main(int argc, char **argv)
{
  CHECK(argc == 3, "usage: mercury2_fork NETWORK CASE");
  check_begin("mercury2_fork");
  nproc = 1;
  network = argv[1];
  kind = argv[2];
  if (is("outlives"))
    outlives();
  else
    for (enum parent parent = SERVER; parent < PARENTS; parent++) {
      int how;
      const pid_t server = start_server(parent, NULL);
      if (is("daemon"))
        CHECK(waitpid(server, &how, 0) == server, "waitpid");
      begin(network, parent == LISTENER);
      find_server();
      calls();
      if (parent != SERVER && !is("daemon"))
        fork_one(parent);
      calls();
      MUST(call(stop, 0));
      if (!is("daemon"))
        CHECK(waitpid(server, &how, 0) == server && how == 0, "the server ended with %#x", how);
      MUST(HG_Addr_free(hg_class, there));
      finish();
    }
  return check_pass();
}
