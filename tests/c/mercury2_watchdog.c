/* The watchdog of a process that uses Mercury without MPI. Each child writes to a pipe, and the
 * parent waits for the lines of the reports.
 *
 *   mercury2_watchdog NETWORK
 */
// TEST: n=1 -- {na+sm,tcp,self}
#include "mercury2_check.h"

#include <sys/wait.h>

static const char *network;
static char text[1 << 16]; /* the child's output so far */

static hg_return_t keep(hg_handle_t handle)
{
  (void)handle; /* never answered */
  return HG_SUCCESS;
}

static hg_return_t on_end(const struct hg_cb_info *info)
{
  (void)info;
  CHECK(0, "a call that is kept has ended");
  return HG_SUCCESS;
}

static void begin(const char *patience, const char *limit)
{
  setenv("PORTOLAN_WATCHDOG", patience, 1);
  setenv("PORTOLAN_WATCHDOG_ABORT", limit, 1);
  hg_class = HG_Init(network, HG_TRUE);
  CHECK(hg_class != NULL, "HG_Init: %s", portolan_last_error());
  context = HG_Context_create(hg_class);
  CHECK(context != NULL, "HG_Context_create: %s", portolan_last_error());
}

/* Waits for the end of a call to itself, again and again. */
static void hang(void)
{
  hg_addr_t self;
  hg_handle_t handle;
  const hg_id_t id = HG_Register_name(hg_class, "keep", NULL, NULL, keep);
  MUST(HG_Addr_self(hg_class, &self));
  MUST(HG_Create(context, self, id, &handle));
  MUST(HG_Forward(handle, on_end, NULL, NULL));
  for (;;)
    pump(context, 100);
}

static void hangs(void)
{
  begin("0.5", "0");
  hang();
}

static void aborts(void)
{
  begin("0.5", "1");
  hang();
}

static void idles(void)
{
  begin("600", "0");
  CHECK(write(2, "ready\n", 6) == 6, "write");
  for (;;)
    pump(context, 1000);
}

static void computes(void)
{
  begin("600", "0");
  CHECK(write(2, "ready\n", 6) == 6, "write");
  for (;;)
    sleep(1);
}

static pid_t start(void (*child)(void), int *out)
{
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe");
  fflush(NULL);
  const pid_t pid = fork();
  CHECK(pid >= 0, "fork");
  if (pid == 0) {
    alarm(50);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    child();
  }
  close(ends[1]);
  *out = ends[0];
  text[0] = '\0';
  return pid;
}

/* Reads the child's output until it contains the words. */
static void await(int out, const char *words)
{
  while (strstr(text, words) == NULL) {
    const size_t have = strlen(text);
    const ssize_t n = read(out, text + have, sizeof text - 1 - have);
    CHECK(n > 0, "the child has not written '%s', but:\n%s", words, text);
    text[have + n] = '\0';
  }
}

static int end(pid_t child, int out)
{
  int how;
  CHECK(waitpid(child, &how, 0) == child, "waitpid");
  close(out);
  return how;
}

static void stop(pid_t child, int out)
{
  kill(child, SIGKILL);
  end(child, out);
}

int main(int argc, char **argv)
{
  int out, how;
  pid_t child;
  CHECK(argc == 2, "usage: mercury2_watchdog NETWORK");
  check_begin("mercury2_watchdog");
  nproc = 1;
  network = argv[1];

  child = start(hangs, &out);
  await(out, "portolan: HG_Progress has waited ");
  await(out, " that peers must end (no progress meanwhile)\n");
  stop(child, out);

  child = start(aborts, &out);
  await(out, "portolan: HG_Progress: no progress for ");
  await(out, "the process is aborted, as set by PORTOLAN_WATCHDOG_ABORT\n");
  how = end(child, out);
  CHECK(WIFEXITED(how) && WEXITSTATUS(how) != 0, "the child ended with %#x", how);

  child = start(idles, &out);
  await(out, "ready\n");
  kill(child, SIGUSR1);
  await(out, "an event of a class over ");
  await(out, "(requested by SIGUSR1)\n");
  stop(child, out);

  child = start(computes, &out);
  await(out, "ready\n");
  kill(child, SIGUSR1);
  await(out, "portolan: is not waiting in a call of the library (requested by SIGUSR1)\n");
  stop(child, out);

  return check_pass();
}
