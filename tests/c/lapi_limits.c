/* Calls that an interface forbids: calls in a forked child, and LAPI_Term in a completion handler. */
// TEST: n=2 -- {fork,term}
// TEST: n=2 node-size=1 -- {fork,term}
#include "lapi_check.h"

#include <cp.h>
#include <sys/wait.h>
#include <x10/x10lib.h>

static const char *lines(const char *text)
{
  int count = 0;
  for (; *text; text++)
    count += *text == '\n';
  return count == 1 ? "one" : count == 0 ? "no" : "several";
}

/* --------------------------------------------------------------------- fork */

static void *other;                 /* memory of the next rank */
static int next;
static long value = 4711;

static int put(void)      { return ARMCI_Put(&value, other, sizeof value, next); }
static int rmw(void)      { return ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &value, other, 1, next); }
static int allocate(void) { void *table[64]; return ARMCI_Malloc(table, 64); }
static int init(void)     { return ARMCI_Init(); }
static int finalize(void) { return ARMCI_Finalize(); }
static int fence(void)    { return LAPI_Gfence(hndl); }
static int send(void)     { return LAPI_Put(hndl, (unsigned)next, 8, other, &value, NULL, NULL, NULL); }
static int term(void)     { return LAPI_Term(hndl); }
static int x10(void)      { return x10_init(NULL, 0) == X10_OK ? 0 : 1; }
static int compose(void)            /* reports errors by cp_errmsg only and writes nothing */
{
  const int rc = cp_init();
  fprintf(stderr, "portolan: %s\n", cp_errmsg());
  return rc < 0;
}
static int barrier(void)  { ARMCI_Barrier(); return 0; }  /* ends the child */
static int end(void)      { ARMCI_Error((char[]){ "the child" }, 3); return 0; }

static const struct {
  const char *call;
  int (*run)(void);
  int ends;                         /* the call ends the process */
} calls[] = {
  { "ARMCI_Put", put, 0 },           { "ARMCI_Rmw", rmw, 0 },         { "ARMCI_Malloc", allocate, 0 },
  { "ARMCI_Init", init, 0 },         { "ARMCI_Finalize", finalize, 0 }, { "LAPI_Gfence", fence, 0 },
  { "LAPI_Put", send, 0 },           { "LAPI_Term", term, 0 },        { "x10_init", x10, 0 },
  { "cp_init", compose, 0 },         { "ARMCI_Barrier", barrier, 1 }, { "ARMCI error", end, 1 },
};

static void in_child(int which)
{
  char said[4096] = "", begin[200];
  int ends[2], status = 0;
  ssize_t bytes = 0, more;
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = fork();
  CHECK(child >= 0, "no child");
  if (child == 0) {
    dup2(ends[1], 2);
    alarm(20);
    _exit(calls[which].run() != 0 ? 77 : 0);
  }
  close(ends[1]);
  while ((more = read(ends[0], said + bytes, sizeof said - 1 - (size_t)bytes)) > 0)
    bytes += more;
  close(ends[0]);
  CHECK_EQ(waitpid(child, &status, 0), child);
  snprintf(begin, sizeof begin, "portolan: rank %d: %s: ", me, calls[which].call);
  CHECK(strcmp(lines(said), "one") == 0, "%s in a child said %s line: '%s'", calls[which].call, lines(said), said);
  CHECK(strncmp(said, begin, strlen(begin)) == 0, "'%s' does not begin '%s'", said, begin);
  CHECK(WIFEXITED(status) && (calls[which].ends ? WEXITSTATUS(status) != 0 : WEXITSTATUS(status) == 77),
        "%s in a child: status %#x", calls[which].call, status);
}

static void forks(void)
{
  void *table[64];
  CHECK_OK(ARMCI_Malloc(table, 64));
  next = (me + 1) % nproc;
  other = table[next];
  *(long *)table[me] = 0;
  ARMCI_Barrier();
  for (int i = 0; i < (int)(sizeof calls / sizeof calls[0]); i++)
    in_child(i);
  ARMCI_Barrier();                  /* the parents continue, and no child has written anything */
  CHECK_EQ(*(long *)table[me], 0);
  ARMCI_Barrier();
  CHECK_OK(ARMCI_Put(&value, other, sizeof value, next));
  ARMCI_Barrier();
  CHECK_EQ(*(long *)table[me], 4711);
  CHECK_OK(ARMCI_Free(table[me]));
}

/* ---------------------------------------- LAPI_Term in a completion handler */

static volatile int term_code = -1;

static void complete(lapi_handle_t *handle, void *user)
{
  (void)user;
  term_code = LAPI_Term(*handle);
}

HEADER_HANDLER(arrive)
{
  *comp_h = complete;
  return NULL;
}

static void ends_in_handler(void)
{
  void *handlers[64];
  lapi_cntr_t done;
  int zero = 0;
  LAPI_OK(LAPI_Setcntr(hndl, &done, 0));
  LAPI_OK(LAPI_Address_init(hndl, (void *)arrive, handlers));
  LAPI_OK(LAPI_Amsend(hndl, (uint)((me + 1) % nproc), handlers[(me + 1) % nproc], NULL, 0, NULL, 0, NULL, NULL, &done));
  LAPI_OK(LAPI_Waitcntr(hndl, &done, 1, &zero));
  LAPI_OK(LAPI_Gfence(hndl));
  CHECK_EQ(term_code, LAPI_ERR_UNKNOWN);
}

int main(int argc, char **argv)
{
  const char *which = argc > 1 ? argv[1] : "";
  lapi_start("lapi_limits", &argc, &argv);
  CHECK_OK(ARMCI_Init());
  if (strcmp(which, "fork") == 0)
    forks();
  else
    ends_in_handler();
  CHECK_OK(ARMCI_Finalize());
  return lapi_end();
}
