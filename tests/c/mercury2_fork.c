/* Forked children of processes that use Mercury without MPI. The parent goes on with its class, and
 * the child's copy is idle: the child may try to use it and end it, and neither the parent nor its
 * peers notice. The parent is a server, a client, or a client that listens.
 *
 *   mercury2_fork NETWORK ends|progresses|calls|exits|own|outlives
 */
// TEST: n=1 -- {na+sm,tcp} {ends,progresses,calls,exits,own,outlives}
#include "mercury2_check.h"

#include <sys/wait.h>

enum { BYTES = 300 * 1024 };
enum parent { SERVER, CLIENT, LISTENER, PARENTS };

MERCURY_GEN_PROC(number_t, ((uint64_t)(n)))

static const char *network, *kind;
static char server_name[300];
static hg_id_t twice, stop;
static hg_addr_t there;
static hg_bulk_t bulk;
static volatile int stopped;

static int is(const char *name)
{
  return strcmp(kind, name) == 0;
}

static hg_return_t twice_cb(hg_handle_t handle)
{
  number_t number;
  MUST(HG_Get_input(handle, &number));
  number.n *= 2;
  MUST(HG_Respond(handle, NULL, NULL, &number));
  MUST(HG_Free_input(handle, &number));
  return HG_Destroy(handle);
}

static hg_return_t stop_cb(hg_handle_t handle)
{
  stopped = 1;
  MUST(HG_Respond(handle, NULL, NULL, NULL));
  return HG_Destroy(handle);
}

static void begin(const char *info, int listen)
{
  hg_size_t size = BYTES;
  hg_class = HG_Init(info, listen);
  CHECK(hg_class != NULL, "HG_Init(%s): %s", info, portolan_last_error());
  context = HG_Context_create(hg_class);
  CHECK(context != NULL, "HG_Context_create: %s", portolan_last_error());
  twice = HG_Register_name(hg_class, "twice", hg_proc_number_t, hg_proc_number_t, twice_cb);
  stop = HG_Register_name(hg_class, "stop", NULL, NULL, stop_cb);
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
  number_t in = { n };
  hg_handle_t handle;
  ended = 0;
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
    MUST_BE(HG_BUSY, call(twice, 7));
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
  if (parent == SERVER && stay == NULL)
    fork_one(SERVER);
  while (!stopped)
    pump(context, 100);
  finish();
  exit(0);
}

/* The sockets of a server end with it, although a child of it lives. */
static void outlives(void)
{
  int stay[2], how;
  CHECK(pipe(stay) == 0, "pipe");
  const pid_t server = start_server(SERVER, stay);
  begin(network, 0);
  find_server();
  calls();
  kill(server, SIGKILL);
  CHECK(waitpid(server, &how, 0) == server, "waitpid");
  CHECK(call(twice, 1) != HG_SUCCESS, "a call to a server that was killed");
  hg_class_t *next = HG_Init(server_name, HG_TRUE);
  CHECK(next != NULL, "a server at the same address: %s", portolan_last_error());
  MUST(HG_Finalize(next));
  MUST(HG_Addr_free(hg_class, there));
  finish();
  close(stay[1]);
}

int main(int argc, char **argv)
{
  CHECK(argc == 3, "usage: mercury2_fork NETWORK CASE");
  check_name = "mercury2_fork";
  nproc = 1;
  network = argv[1];
  kind = argv[2];
  signal(SIGALRM, check_deadline);
  alarm(50);
  if (is("outlives"))
    outlives();
  else
    for (enum parent parent = SERVER; parent < PARENTS; parent++) {
      int how;
      const pid_t server = start_server(parent, NULL);
      begin(network, parent == LISTENER);
      find_server();
      calls();
      if (parent != SERVER)
        fork_one(parent);
      calls();
      MUST(call(stop, 0));
      CHECK(waitpid(server, &how, 0) == server && how == 0, "the server ended with %#x", how);
      MUST(HG_Addr_free(hg_class, there));
      finish();
    }
  printf("PASS mercury2_fork\n");
  return 0;
}
