/* Services without a launcher: servers and clients are separate processes that find each other by
 * an address file, come and go, crash, stop and return.
 *
 *   mercury2_service NETWORK CASE
 *
 * The parent starts, kills and stops the others. It uses Mercury itself only in the case `siblings`,
 * before the others start.
 */
// TEST: n=1 -- {na+sm,tcp} {clients,descriptor,again,server-dies,client-stops,daemon,siblings,server-stops}
// TEST: n=1 -- {na+sm,tcp} clients-die 20
// TEST: release n=1 -- {na+sm,tcp,ofi+tcp://lo} clients-die 100
// TEST: n=1 build=static -- na+sm clients
#include "mercury2_check.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { BYTES = 300 * 1024 + 7, LONG = 200 * 1024, CALLS = 50 };
enum { ECHO = 1, KEEP, PULL, PUSH, DESCRIPTORS, STOP, BIG };

MERCURY_GEN_PROC(number_t, ((uint64_t)(n)))
MERCURY_GEN_PROC(memory_t, ((hg_bulk_t)(bulk)) ((uint64_t)(seed)))
MERCURY_GEN_PROC(string_t, ((hg_const_string_t)(s)))

static const char *network;
static char file[200];
static volatile int stopped;
static hg_return_t last; /* the status of the last call */

static void nap(int milliseconds)
{
  const struct timespec time = { 0, milliseconds * 1000000L };
  nanosleep(&time, NULL);
}

static unsigned char byte_of(uint64_t seed, size_t n)
{
  return (unsigned char)(seed * 31 + n * 7 + n / 251);
}

/* ------------------------------------------------------------------ server */

static hg_return_t echo_cb(hg_handle_t handle)
{
  number_t number;
  MUST(HG_Get_input(handle, &number));
  number.n++;
  HG_Respond(handle, NULL, NULL, &number);
  HG_Free_input(handle, &number);
  return HG_Destroy(handle);
}

/* Never answers. */
static hg_return_t keep_cb(hg_handle_t handle)
{
  (void)handle;
  return HG_SUCCESS;
}

static hg_return_t big_cb(hg_handle_t handle)
{
  static char text[LONG + 1];
  string_t out = { text };
  memset(text, 'b', LONG);
  HG_Respond(handle, NULL, NULL, &out);
  return HG_Destroy(handle);
}

static hg_return_t descriptors_cb(hg_handle_t handle)
{
  number_t number = { 0 };
  DIR *open_ones = opendir("/proc/self/fd");
  while (readdir(open_ones) != NULL)
    number.n++;
  closedir(open_ones);
  HG_Respond(handle, NULL, NULL, &number);
  return HG_Destroy(handle);
}

static hg_return_t stop_cb(hg_handle_t handle)
{
  HG_Respond(handle, NULL, NULL, NULL);
  stopped = 1;
  return HG_Destroy(handle);
}

struct moving {
  hg_handle_t handle;
  memory_t in;
  hg_bulk_t local;
  unsigned char *bytes;
  int pull;
};

static hg_return_t moved(const struct hg_cb_info *info)
{
  struct moving *m = info->arg;
  number_t number = { 0 };
  if (info->ret == HG_SUCCESS && m->pull)
    for (size_t n = 0; n < BYTES; n++)
      number.n += m->bytes[n] != byte_of(m->in.seed, n);
  if (info->ret == HG_SUCCESS)
    HG_Respond(m->handle, NULL, NULL, &number);
  MUST(HG_Bulk_free(m->local));
  MUST(HG_Free_input(m->handle, &m->in));
  MUST(HG_Destroy(m->handle));
  free(m->bytes);
  free(m);
  return HG_SUCCESS;
}

static hg_return_t move(hg_handle_t handle, int pull)
{
  struct moving *m = check_calloc(sizeof *m);
  const struct hg_info *info = HG_Get_info(handle);
  hg_size_t bytes = BYTES;
  m->handle = handle;
  m->pull = pull;
  m->bytes = check_calloc(BYTES);
  MUST(HG_Get_input(handle, &m->in));
  for (size_t n = 0; !pull && n < BYTES; n++)
    m->bytes[n] = byte_of(m->in.seed, n);
  MUST(HG_Bulk_create(hg_class, 1, (void **)&m->bytes, &bytes, HG_BULK_READWRITE, &m->local));
  hg_return_t rc = HG_Bulk_transfer(context, moved, m, pull ? HG_BULK_PULL : HG_BULK_PUSH, info->addr,
                                    m->in.bulk, 0, m->local, 0, BYTES, HG_OP_ID_IGNORE);
  if (rc != HG_SUCCESS) {
    const struct hg_cb_info gone = { .arg = m, .ret = rc };
    moved(&gone);
  }
  return HG_SUCCESS;
}

static hg_return_t pull_cb(hg_handle_t handle)
{
  return move(handle, 1);
}

static hg_return_t push_cb(hg_handle_t handle)
{
  return move(handle, 0);
}

static void begin(const char *info, int listen)
{
  hg_class = HG_Init(info, listen);
  CHECK(hg_class != NULL, "HG_Init(%s): %s", info, portolan_last_error());
  context = HG_Context_create(hg_class);
  CHECK(context != NULL, "HG_Context_create: %s", portolan_last_error());
  MUST(HG_Register(hg_class, ECHO, hg_proc_number_t, hg_proc_number_t, echo_cb));
  MUST(HG_Register(hg_class, KEEP, NULL, NULL, keep_cb));
  MUST(HG_Register(hg_class, PULL, hg_proc_memory_t, hg_proc_number_t, pull_cb));
  MUST(HG_Register(hg_class, PUSH, hg_proc_memory_t, hg_proc_number_t, push_cb));
  MUST(HG_Register(hg_class, DESCRIPTORS, NULL, hg_proc_number_t, descriptors_cb));
  MUST(HG_Register(hg_class, STOP, NULL, NULL, stop_cb));
  MUST(HG_Register(hg_class, BIG, NULL, hg_proc_string_t, big_cb));
}

static void finish(void)
{
  MUST(HG_Context_destroy(context));
  MUST(HG_Finalize(hg_class));
}

/* Makes progress as a program does that waits for several descriptors: the descriptor of the class
 * must end the wait, which has no other end. */
static void serve_by_descriptor(void)
{
  const int fd = HG_Event_get_wait_fd(context);
  unsigned int count;
  CHECK(fd >= 0, "HG_Event_get_wait_fd: %s", portolan_last_error());
  while (!stopped) {
    struct pollfd watched = { fd, POLLIN, 0 };
    if (!HG_Event_ready(context))
      CHECK(poll(&watched, 1, -1) == 1 && watched.revents == POLLIN, "poll");
    MUST(HG_Event_progress(context, &count));
    MUST(HG_Event_trigger(context, count, &count));
  }
}

/* Serves until a client says to stop. Publishes its address in the file. A daemon is a child that
 * goes on in place of the process that has initialised Mercury. */
static int server(const char *info, int by_descriptor, int is_daemon)
{
  char name[300], fresh[220];
  hg_size_t size = sizeof name;
  hg_addr_t self;
  begin(info, 1);
  if (is_daemon) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child > 0)
      _exit(0);
    alarm(60);
  }
  MUST(HG_Addr_self(hg_class, &self));
  MUST(HG_Addr_to_string(hg_class, name, &size, self));
  MUST(HG_Addr_free(hg_class, self));
  snprintf(fresh, sizeof fresh, "%s.new", file);
  FILE *out = fopen(fresh, "w");
  CHECK(out != NULL, "%s", fresh);
  fputs(name, out);
  fclose(out);
  CHECK(rename(fresh, file) == 0, "%s", file);
  if (by_descriptor)
    serve_by_descriptor();
  while (!stopped)
    pump(context, 1000);
  finish();
  return 0;
}

/* ------------------------------------------------------------------ client */

struct outcome {
  volatile int ended;
  int has_answer;
  hg_return_t rc;
  uint64_t answer;
};

static hg_return_t on_end(const struct hg_cb_info *info)
{
  struct outcome *outcome = info->arg;
  number_t number;
  outcome->rc = info->ret;
  if (info->ret == HG_SUCCESS && outcome->has_answer) {
    MUST(HG_Get_output(info->info.forward.handle, &number));
    outcome->answer = number.n;
    MUST(HG_Free_output(info->info.forward.handle, &number));
  }
  outcome->ended++;
  return HG_SUCCESS;
}

static hg_addr_t find_server(void)
{
  char name[300] = "";
  FILE *in;
  hg_addr_t found;
  while ((in = fopen(file, "r")) == NULL)
    nap(1);
  CHECK(fgets(name, sizeof name, in) != NULL, "an empty address file");
  fclose(in);
  MUST(HG_Addr_lookup2(hg_class, name, &found));
  return found;
}

/* Calls a function, waits for its end and returns the answer. */
static uint64_t call(hg_addr_t to, hg_id_t id, void *in, int has_answer)
{
  struct outcome outcome = { .has_answer = has_answer };
  hg_handle_t handle;
  MUST(HG_Create(context, to, id, &handle));
  MUST(HG_Forward(handle, on_end, &outcome, in));
  pump_until(&outcome.ended, 1, "a call");
  MUST(HG_Destroy(handle));
  last = outcome.rc;
  return outcome.answer;
}

static void use(hg_addr_t to, int calls, uint64_t seed)
{
  hg_size_t size = BYTES;
  unsigned char *bytes = check_calloc(BYTES);
  memory_t memory = { NULL, seed };
  for (uint64_t n = 0; n < (uint64_t)calls; n++) {
    number_t number = { n };
    CHECK_EQ(call(to, ECHO, &number, 1), n + 1);
    MUST(last);
  }
  for (size_t n = 0; n < BYTES; n++)
    bytes[n] = byte_of(seed, n);
  MUST(HG_Bulk_create(hg_class, 1, (void **)&bytes, &size, HG_BULK_READWRITE, &memory.bulk));
  CHECK_EQ(call(to, PULL, &memory, 1), 0);
  MUST(last);
  memset(bytes, 0, BYTES);
  CHECK_EQ(call(to, PUSH, &memory, 1), 0);
  MUST(last);
  for (size_t n = 0; n < BYTES; n++)
    CHECK_EQ(bytes[n], byte_of(seed, n));
  MUST(HG_Bulk_free(memory.bulk));
  free(bytes);
}

/* Uses the server; a client with listen set has an address of its own. */
static int client(int listen, int calls, uint64_t seed)
{
  begin(network, listen);
  hg_addr_t to = find_server();
  use(to, calls, seed);
  MUST(HG_Addr_free(hg_class, to));
  finish();
  return 0;
}

static int stopper(void)
{
  begin(network, 0);
  hg_addr_t to = find_server();
  call(to, STOP, NULL, 0);
  MUST(last);
  MUST(HG_Addr_free(hg_class, to));
  finish();
  return 0;
}

/* Initialises and finalises several times, with calls in between. */
static int repeated(void)
{
  for (int round = 0; round < 10; round++) {
    begin(network, round % 2);
    hg_addr_t to = find_server();
    use(to, 3, (uint64_t)round);
    MUST(HG_Addr_free(hg_class, to));
    finish();
  }
  return 0;
}

/* Has a call under way when the server dies, and calls its successor by the same address. */
static int survivor(int successor)
{
  hg_handle_t handle;
  begin(network, 0);
  hg_addr_t to = find_server();
  use(to, 1, 1);
  MUST(HG_Create(context, to, KEEP, &handle));
  struct outcome kept = { 0 };
  MUST(HG_Forward(handle, on_end, &kept, NULL));
  number_t number = { 1 };
  CHECK_EQ(call(to, ECHO, &number, 1), 2);
  unlink(file); /* the parent then kills the server */
  pump_until(&kept.ended, 1, "the end of the server");
  MUST_BE(HG_HOSTUNREACH, kept.rc);
  MUST(HG_Destroy(handle));
  MUST(HG_Create(context, to, ECHO, &handle));
  kept.ended = 0;
  hg_return_t rc = HG_Forward(handle, on_end, &kept, &number);
  if (rc == HG_SUCCESS) { /* the connection took long */
    pump_until(&kept.ended, 1, "the failure of a connection");
    rc = kept.rc;
  }
  CHECK(rc == HG_HOSTUNREACH, "HG_Forward: %s", HG_Error_to_string(rc));
  MUST(HG_Destroy(handle));
  if (successor) {
    hg_addr_t again = find_server();
    use(to, 5, 2);
    use(again, 5, 3);
    MUST(HG_Addr_free(hg_class, again));
  }
  MUST(HG_Addr_free(hg_class, to));
  finish();
  return 0;
}

/* Calls a server that is stopped: no call blocks, and a call can be cancelled. */
static int patient(void)
{
  struct timespec then, now;
  struct outcome outcome = { 0 };
  hg_handle_t handle;
  number_t number = { 1 };
  begin(network, 0);
  hg_addr_t to = find_server();
  MUST(HG_Create(context, to, ECHO, &handle));
  clock_gettime(CLOCK_MONOTONIC, &then);
  MUST(HG_Forward(handle, on_end, &outcome, &number));
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(now.tv_sec - then.tv_sec < 3, "HG_Forward has waited for the connection");
  MUST(HG_Cancel(handle));
  pump_until(&outcome.ended, 1, "a cancelled call");
  MUST_BE(HG_CANCELED, outcome.rc);
  MUST(HG_Destroy(handle));
  MUST(HG_Addr_free(hg_class, to));
  finish();
  return 0;
}

/* Keeps many calls with long answers under way, without end. */
static void busy_client(void)
{
  enum { MANY = 16 };
  hg_handle_t handles[MANY];
  begin(network, 0);
  hg_addr_t to = find_server();
  for (int n = 0; n < MANY; n++)
    MUST(HG_Create(context, to, n % 2 ? BIG : KEEP, &handles[n]));
  for (int round = 0;; round++) {
    struct outcome outcome = { 0 };
    for (int n = 1; n < MANY; n += 2)
      MUST(HG_Forward(handles[n], on_end, &outcome, NULL));
    use(to, 2, (uint64_t)round);
    pump_until(&outcome.ended, MANY / 2, "long answers");
    MUST(outcome.rc);
  }
}

/* ------------------------------------------------------------------ parent */

/* Exposes memory, so that the library has drawn the numbers that identify it. */
static void expose_memory(void)
{
  static char bytes[1000];
  void *at = bytes;
  hg_size_t size = sizeof bytes;
  hg_bulk_t bulk;
  begin(network, 1);
  MUST(HG_Bulk_create(hg_class, 1, &at, &size, HG_BULK_READWRITE, &bulk));
  MUST(HG_Bulk_free(bulk));
  finish();
}

enum role {
  SERVER, POLLING_SERVER, CLIENT, LISTENING_CLIENT, STOPPER, REPEATED, SURVIVOR, LONELY_SURVIVOR,
  BUSY, COUNTER, DAEMON, PATIENT
};

static int counter(void)
{
  begin(network, 0);
  hg_addr_t to = find_server();
  const uint64_t open_ones = call(to, DESCRIPTORS, NULL, 1);
  MUST(last);
  MUST(HG_Addr_free(hg_class, to));
  finish();
  return (int)open_ones;
}

static pid_t start(enum role role, const char *info)
{
  fflush(stdout);
  const pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child > 0)
    return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  switch (role) {
  case SERVER: exit(server(info, 0, 0));
  case POLLING_SERVER: exit(server(info, 1, 0));
  case DAEMON: exit(server(info, 0, 1));
  case PATIENT: exit(patient());
  case CLIENT: exit(client(0, CALLS, 5));
  case LISTENING_CLIENT: exit(client(1, CALLS, 6));
  case STOPPER: exit(stopper());
  case REPEATED: exit(repeated());
  case SURVIVOR: exit(survivor(1));
  case LONELY_SURVIVOR: exit(survivor(0));
  case BUSY: busy_client(); break;
  case COUNTER: exit(counter());
  }
  exit(1);
}

static int result_of(pid_t child)
{
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "waitpid");
  CHECK(WIFEXITED(status), "a process ended by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

static void run(enum role role)
{
  CHECK_EQ(result_of(start(role, network)), 0);
}

static void kill_it(pid_t child)
{
  int status;
  kill(child, SIGKILL);
  CHECK(waitpid(child, &status, 0) == child, "waitpid");
  CHECK(WIFSIGNALED(status), "a process had ended before it was killed");
}

int main(int argc, char **argv)
{
  CHECK(argc >= 3, "usage: mercury2_service NETWORK CASE [COUNT]");
  check_name = "mercury2_service";
  me = 0;
  nproc = 1;
  network = argv[1];
  char directory[] = "/tmp/portolan-service.XXXXXX";
  CHECK(mkdtemp(directory) != NULL, "there is no directory");
  snprintf(file, sizeof file, "%s/address", directory);
  const int tcp = strstr(network, "tcp") != NULL;
  const char *kind = argv[2];
  const int polling = strcmp(kind, "descriptor") == 0;
  if (strcmp(kind, "daemon") == 0) {
    run(DAEMON);
    run(CLIENT);
    run(LISTENING_CLIENT);
    run(STOPPER);
    unlink(file);
    rmdir(directory);
    printf("PASS mercury2_service\n");
    return 0;
  }
  /* Forked processes must not share the numbers that identify memory. */
  const int siblings = strcmp(kind, "siblings") == 0;
  if (siblings)
    expose_memory();
  pid_t serving = start(polling ? POLLING_SERVER : SERVER, network);
  if (polling || siblings || strcmp(kind, "clients") == 0) {
    for (int n = 0; n < 3; n++) {
      pid_t together[4];
      for (int k = 0; k < 4; k++)
        together[k] = start(k % 2 ? CLIENT : LISTENING_CLIENT, network);
      for (int k = 0; k < 4; k++)
        CHECK_EQ(result_of(together[k]), 0);
    }
  } else if (strcmp(kind, "again") == 0) {
    run(REPEATED);
    run(REPEATED);
  } else if (strcmp(kind, "server-dies") == 0) {
    char name[300] = "";
    FILE *in;
    while ((in = fopen(file, "r")) == NULL)
      nap(1);
    CHECK(fgets(name, sizeof name, in) != NULL, "an empty address file");
    fclose(in);
    const pid_t client = start(tcp ? SURVIVOR : LONELY_SURVIVOR, network);
    while (access(file, F_OK) == 0)
      nap(1);
    kill_it(serving);
    nap(200);
    serving = start(SERVER, tcp ? name : network);
    CHECK_EQ(result_of(client), 0);
  } else if (strcmp(kind, "server-stops") == 0) {
    run(CLIENT);
    kill(serving, SIGSTOP);
    run(PATIENT);
    kill(serving, SIGCONT);
    run(CLIENT);
  } else if (strcmp(kind, "client-stops") == 0) {
    const pid_t client = start(BUSY, network);
    nap(100);
    kill(client, SIGSTOP);
    run(CLIENT);
    kill(client, SIGCONT);
    nap(20);
    run(CLIENT);
    kill_it(client);
  } else if (strcmp(kind, "clients-die") == 0) {
    run(CLIENT);
    /* The server keeps up to eight buffers of shared memory, each with a descriptor. */
    const int before = result_of(start(COUNTER, network)) + 8;
    for (int n = 0; n < atoi(argv[3]); n++) {
      const pid_t client = start(BUSY, network);
      nap(check_random(40));
      kill_it(client);
    }
    run(CLIENT);
    int now = 0;
    for (int tries = 0; tries < 1000 && (now = result_of(start(COUNTER, network))) > before; tries++)
      nap(10);
    CHECK(now <= before, "%d descriptors are open after the crashes, at most %d expected", now, before);
  } else {
    CHECK(0, "unknown case %s", kind);
  }
  run(STOPPER);
  CHECK_EQ(result_of(serving), 0);
  unlink(file);
  rmdir(directory);
  printf("PASS mercury2_service\n");
  return 0;
}
