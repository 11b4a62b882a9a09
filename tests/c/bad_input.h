/*
 * bad_input.h - bad input to every call of an interface, made from tables of good calls.
 *
 * A row of a table is a call with good arguments. An argument that can be bad is a call of a
 * function, which names the argument, its faults and their codes. Each interface defines F:
 *
 *   ARG(int, rank, "rank", F("-1", RANK, good = -1))
 *   CODE(ARMCI_WaitProc, rank(right));
 *
 * So the compiler checks each row against the header. A table runs in rounds. The first round of a
 * row evaluates the arguments only, which lists their faults. Then each fault has a round, in which
 * the function of its argument returns the bad value. A table also runs with good arguments alone,
 * because refusals of a call that never succeeds would prove nothing.
 *
 * A refused call gives the code of the fault, sets an error text that names the call, and leaves the
 * watched memory unchanged. A call without a code ends the job: MPI_Abort of this program records
 * the code and abandons the stack of the call, and the table continues on another stack.
 *
 * Include it after the interface's own check header, with _GNU_SOURCE defined.
 */
#ifndef BAD_INPUT_H
#define BAD_INPUT_H

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* The rows evaluate arguments without a call: `(void)(a, b)`. */
#pragma GCC diagnostic ignored "-Wunused-value"

/* ------------------------------------------------- what the interface decides */

static const char *(*bad_error)(void) = portolan_last_error;
/* Sets the error of another call, so that a stale error text is recognised. */
static void (*bad_stale)(void);
/* Runs after each call that was refused or succeeded. */
static void (*bad_after)(void);
/* Returns another name of a call that its error text may have. */
static const char *(*bad_also)(const char *call);

/* -------------------------------------------------------------- watched memory */

enum { BAD_WATCHES = 16, BAD_BYTES = 4096 };
static struct { const char *name; const void *at; size_t bytes; unsigned char was[BAD_BYTES]; }
  bad_watched[BAD_WATCHES];
static int bad_watches;

static inline void watch(const char *name, const void *at, size_t bytes)
{
  CHECK(bad_watches < BAD_WATCHES && bytes <= BAD_BYTES, "too much to watch");
  bad_watched[bad_watches].name = name;
  bad_watched[bad_watches].at = at;
  bad_watched[bad_watches++].bytes = bytes;
}

/* ---------------------------------------------------------------------- rounds */

enum bad_ranks { ALL_RANKS, LAST_RANK };    /* at which the argument is bad */

/* A fault of the row. `code` is what the call gives, or what decides about its outcome. */
struct bad_fault {
  const char *argument, *name, *outcome;
  long long code;
  enum bad_ranks ranks;
};

enum { BAD_FAULTS = 96, BAD_ROWS = 512 };
enum { LEARN, GOOD_CALL, FIRST_FAULT };

static enum { LISTING, GOOD_CALLS, FAULTS, NO_RUNTIME } bad_mode;
static struct bad_fault bad_faults[BAD_FAULTS], bad_no_runtime;
static int bad_count;               /* faults of the row */
static int bad_row, bad_target;     /* the row that the table is at; the row of this round */
static int bad_step, bad_now;       /* the next round, this round */
static int bad_refused;             /* rounds in which a call was refused */
static volatile int bad_catches;    /* the call of a row runs */
static const char *bad_call, *bad_words, *bad_argument;
static const char *bad_says;        /* what the text of the error must contain, set by a fault */

/* Outcomes of calls that return no code: refused; refused without an error text. */
enum { REFUSED = -100000, SILENT };

static inline const struct bad_fault *bad_fault_of_round(void)
{
  return bad_now >= FIRST_FAULT ? &bad_faults[bad_now - FIRST_FAULT] : NULL;
}

static inline void bad_learn(const char *name, long long code, const char *outcome, enum bad_ranks ranks)
{
  for (int i = 0; i < bad_count && bad_argument; i++)
    if (bad_faults[i].argument == bad_argument && bad_faults[i].ranks == ranks && strcmp(bad_faults[i].name, name) == 0)
      return;                       /* an argument that the row has twice */
  CHECK(bad_count < BAD_FAULTS, "too many faults");
  bad_faults[bad_count++] = (struct bad_fault){ bad_argument, name, outcome, code, ranks };
}

/* Whether the argument that is being evaluated has this fault in this round, at this rank. */
static inline int bad_has(const char *name, long long code, const char *outcome, enum bad_ranks ranks)
{
  const struct bad_fault *fault = bad_fault_of_round();
  if (bad_now == LEARN)
    bad_learn(name, code, outcome, ranks);
  return fault != NULL && fault->argument == bad_argument && strcmp(fault->name, name) == 0 &&
         fault->ranks == ranks && (ranks == ALL_RANKS || me == nproc - 1);
}

/* The function of an argument, with the value of a good one as its parameter. */
#define ARG(type, function, name, ...)                     \
  static type function(type good)                          \
  {                                                        \
    bad_argument = name;                                   \
    __VA_ARGS__                                            \
    return good;                                           \
  }
/* A fault of an argument: the code, its text for the page, and the statement that makes it. */
#define BAD_FAULT(...) BAD_FAULT_(__VA_ARGS__)             /* expands macros of code and text */
#define BAD_FAULT_(ranks, name, code, text, ...)           \
  if (bad_has(name, code, text, ranks)) {                  \
    __VA_ARGS__;                                           \
  }
/* The ranks agree: the call gives the code at all ranks, even if only one has the fault. */
#define BAD_AGREED(...) BAD_AGREED_(__VA_ARGS__)
#define BAD_AGREED_(name, code, text, ...)                 \
  BAD_FAULT_(ALL_RANKS, name, code, text, __VA_ARGS__)     \
  if (bad_mode != LISTING)                                 \
    BAD_FAULT_(LAST_RANK, name, code, text, __VA_ARGS__)

/* ------------------------------------------------------------------ the listing */

struct bad_listed { const char *name; int calls[BAD_ROWS], count; };
static struct bad_listed bad_arguments[96], bad_outcomes[16];
static struct bad_fault bad_all[512], bad_cases[512];
static const char *bad_calls[BAD_ROWS], *bad_case_calls[512];
static int bad_all_count, bad_cases_count;

/* Returns the entry of a sorted list. The order in which a row evaluates its arguments is the
 * compiler's. */
static inline struct bad_listed *bad_entry(struct bad_listed *list, const char *name)
{
  struct bad_listed *end = list;
  while (end->name)
    end++;
  while (list != end && strcmp(list->name, name) < 0)
    list++;
  if (list == end || strcmp(list->name, name) != 0) {
    memmove(list + 1, list, (size_t)((char *)end - (char *)list));
    *list = (struct bad_listed){ name, { 0 }, 0 };
  }
  return list;
}

static inline void bad_enter(struct bad_listed *entry, int call)
{
  if (entry->count == 0 || entry->calls[entry->count - 1] != call)
    entry->calls[entry->count++] = call;
}

static inline void bad_list_row(void)
{
  CHECK(bad_target < BAD_ROWS, "too many rows");
  bad_calls[bad_target] = bad_call;
  for (int i = 0; i < bad_count; i++) {
    const struct bad_fault *fault = &bad_faults[i];
    int known = 0;
    if (fault->argument == NULL) {
      bad_case_calls[bad_cases_count] = bad_call;
      bad_cases[bad_cases_count++] = *fault;
      continue;
    }
    bad_enter(bad_entry(bad_arguments, fault->argument), bad_target);
    if (bad_words)
      bad_enter(bad_entry(bad_outcomes, bad_words), bad_target);
    for (int k = 0; k < bad_all_count; k++)
      known |= strcmp(bad_all[k].argument, fault->argument) == 0 && strcmp(bad_all[k].name, fault->name) == 0;
    if (!known)
      bad_all[bad_all_count++] = *fault;
  }
}

static inline void bad_print_calls(const struct bad_listed *entry)
{
  for (int i = 0; i < entry->count; i++)
    printf("%s%s", i ? ", " : "", bad_calls[entry->calls[i]]);
}

static inline int bad_same_calls(const struct bad_listed *a, const struct bad_listed *b)
{
  return a->count == b->count && memcmp(a->calls, b->calls, (size_t)a->count * sizeof *a->calls) == 0;
}

/* Prints the arguments of the same calls in one row. */
static inline void bad_print_arguments(void)
{
  for (const struct bad_listed *entry = bad_arguments; entry->name; entry++) {
    int first = 1;
    for (const struct bad_listed *before = bad_arguments; before != entry; before++)
      first &= !bad_same_calls(before, entry);
    if (!first)
      continue;
    printf("| %s", entry->name);
    for (const struct bad_listed *after = entry + 1; after->name; after++)
      if (bad_same_calls(after, entry))
        printf("; %s", after->name);
    printf(" | ");
    bad_print_calls(entry);
    printf(" |\n");
  }
}

static inline int bad_same_code(int i, int k)
{
  return strcmp(bad_all[i].argument, bad_all[k].argument) == 0 && strcmp(bad_all[i].outcome, bad_all[k].outcome) == 0;
}

/* Prints the faults of an argument with the same code in one row, which belongs to the first. */
static inline void bad_print_faults(int i)
{
  for (int k = 0; k < i; k++)
    if (bad_same_code(i, k))
      return;
  printf("| %s | %s", bad_all[i].argument, bad_all[i].name);
  for (int k = i + 1; k < bad_all_count; k++)
    if (bad_same_code(i, k))
      printf("; %s", bad_all[k].name);
  printf(" | %s |\n", bad_all[i].outcome);
}

/* Prints the part of a page of docs that is made from the tables. */
static inline void bad_print_page(void)
{
  printf("| argument | calls that have it |\n|---|---|\n");
  bad_print_arguments();
  printf("\n| argument | faults | code |\n|---|---|---|\n");
  for (const struct bad_listed *entry = bad_arguments; entry->name; entry++)
    for (int i = 0; i < bad_all_count; i++)
      if (strcmp(bad_all[i].argument, entry->name) == 0)
        bad_print_faults(i);
  if (bad_outcomes[0].name)
    printf("\n| calls that return no code | outcome of a fault |\n|---|---|\n");
  for (const struct bad_listed *entry = bad_outcomes; entry->name; entry++) {
    printf("| ");
    bad_print_calls(entry);
    printf(" | %s |\n", entry->name);
  }
  printf("\n| call | fault | outcome |\n|---|---|---|\n");
  for (int i = 0; i < bad_cases_count; i++)
    printf("| %s | %s | %s |\n", bad_case_calls[i], bad_cases[i].name, bad_cases[i].outcome);
}

/* Prints the calls that have a row. The driver compares them with the symbols of the library. */
static inline void bad_print_names(void)
{
  for (int i = 0; i < BAD_ROWS; i++)
    if (bad_calls[i])
      printf("%s\n", bad_calls[i]);
}

/* --------------------------------------------------------------------- the rows */

static inline void bad_begin_row(const char *call, const char *words)
{
  if (++bad_row == bad_target) {
    bad_call = call;
    bad_words = words;
    bad_argument = NULL;
  }
}

/* Starts the next round of the row, or returns 0 after the last one. */
static inline int bad_continues(void)
{
  if (bad_row != bad_target)
    return 0;
  bad_now = bad_step++;
  if (bad_now == LEARN) {
    bad_count = 0;
    return 1;
  }
  if (bad_now == GOOD_CALL) {
    if (bad_mode == LISTING)
      bad_list_row();
    if (bad_mode == NO_RUNTIME) {
      bad_count = bad_words == NULL || bad_words[0] ? 1 : 0;
      bad_faults[0] = bad_no_runtime;
    }
    if (bad_mode != GOOD_CALLS)
      bad_now = bad_step++;
  }
  if (bad_mode == LISTING || (bad_mode == GOOD_CALLS ? bad_now > GOOD_CALL
                                                      : bad_now - FIRST_FAULT >= bad_count)) {
    bad_target++;
    bad_step = LEARN;
    return 0;
  }
  for (int i = 0; i < bad_watches; i++)
    memcpy(bad_watched[i].was, bad_watched[i].at, bad_watched[i].bytes);
  bad_says = NULL;
  if (bad_stale)
    bad_stale();
  bad_catches = 1;
  return 1;
}

static inline const char *bad_round(void)
{
  static char text[120];
  const struct bad_fault *fault = bad_fault_of_round();
  if (fault == NULL)
    snprintf(text, sizeof text, "%s with good input", bad_call);
  else
    snprintf(text, sizeof text, "%s with %s%s%s%s", bad_call, fault->argument ? fault->argument : "",
             fault->argument ? " " : "", fault->name, fault->ranks == LAST_RANK ? " at one rank" : "");
  return text;
}

static inline void bad_judge(long long got)
{
  bad_catches = 0;
  const struct bad_fault *fault = bad_fault_of_round();
  const long long want = fault ? fault->code : 0;
  const char *also = bad_also ? bad_also(bad_call) : NULL, *text = bad_error();
  CHECK(got == want || (want != 0 && (got == REFUSED || got == SILENT)), "%s: %lld, expected %s (%s)",
        bad_round(), got, fault ? fault->outcome : "success", text);
  if (fault == NULL) {
    if (bad_after)
      bad_after();
    return;
  }
  CHECK(want == 0 || got == SILENT || strstr(text, bad_call) || (also && strstr(text, also)),
        "%s: the error '%s' does not name it", bad_round(), text);
  CHECK(bad_says == NULL || strstr(text, bad_says), "%s: the error '%s' does not say %s", bad_round(), text, bad_says);
  for (int i = 0; i < bad_watches; i++)
    CHECK_BYTES(bad_watched[i].at, bad_watched[i].was, (long)bad_watched[i].bytes, "%s: %s", bad_round(),
                bad_watched[i].name);
  bad_refused++;
  if (bad_after && bad_mode != NO_RUNTIME)
    bad_after();
}

#define BAD_ROW(call, words, arguments, result)                                    \
  for (bad_begin_row(call, words); bad_continues();) {                             \
    if (bad_now == LEARN)                                                          \
      (void)arguments;                                                             \
    else                                                                           \
      bad_judge((long long)(result));                                              \
  }

/* A call that returns a code; one without arguments; one whose result a function converts to the
 * code, to REFUSED or to SILENT. */
#define CODE(name, ...) BAD_ROW(#name, NULL, (__VA_ARGS__), name(__VA_ARGS__))
#define CODE_OF_NONE(name) BAD_ROW(#name, NULL, 0, name())
#define AS_OF_NONE(as, name) BAD_ROW(#name, NULL, 0, as(name()))
#define AS(as, name, ...) BAD_ROW(#name, NULL, (__VA_ARGS__), as(name(__VA_ARGS__)))
#define OUTCOME(words, as, name, ...) BAD_ROW(#name, words, (__VA_ARGS__), as(name(__VA_ARGS__)))
#define OUTCOME_OF_NONE(words, as, name) BAD_ROW(#name, words, 0, as(name()))
/* A call that returns no code and ends the job. */
#define ENDS(name, ...) BAD_ROW(#name, "the job ends", (__VA_ARGS__), (name(__VA_ARGS__), 0))
#define ENDS_OF_NONE(name) BAD_ROW(#name, "the job ends", 0, (name(), 0))
/* A call that cannot have bad input, or whose bad input another program tests. */
#define NO_FAULT(name) BAD_ROW(#name, "", ((void)name, 0), 0)

/* A fault that is no argument's alone: code and expression, or outcome in words and condition. */
#define BAD_CASE(...) BAD_CASE_(__VA_ARGS__)
#define BAD_CASE_(call, fault, code, text, expression) \
  BAD_ROW(call, "", (bad_learn(fault, code, text, ALL_RANKS)), bad_now == GOOD_CALL ? 0 : (expression))
#define GIVES(call, fault, outcome, condition) BAD_CASE(call, fault, 1, outcome, (condition) ? SILENT : 0)

/* ------------------------------------------------------ calls that end the job */

static ucontext_t bad_main;
static void (*bad_table)(void);
static volatile int bad_ended;      /* the code with which the job would have ended */

int MPI_Abort(MPI_Comm comm, int code)
{
  if (!bad_catches)
    return PMPI_Abort(comm, code);
  bad_catches = 0;
  bad_ended = code;
  setcontext(&bad_main);
  return code;
}

/* The library waits a moment before MPI_Abort. Its thread that ends the process if MPI_Abort does
 * not return must not do so. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
  if (bad_catches && syscall(SYS_gettid) == getpid())
    return 0;
  return syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

void _exit(int code)
{
  while (syscall(SYS_gettid) != getpid())
    pause();
  syscall(SYS_exit_group, code);
  for (;;)
    pause();
}

static void bad_signal(int number)
{
  bad_catches = 0;
  check_fail(__FILE__, __LINE__, "%s: signal %d", bad_round(), number);
}

static void bad_run_table(void)
{
  bad_row = -1;
  bad_table();
}

/* Runs a table: the rounds of `mode` of each row. */
static inline void bad_input(void (*table)(void), int mode)
{
  enum { STACK = 1 << 20 };
  bad_table = table;
  bad_mode = mode;
  bad_target = mode == LISTING ? bad_target : 0;
  bad_step = LEARN;
  if (mode == LISTING) {
    bad_row = bad_target - 1;
    table();
    return;
  }
  for (;;) {
    ucontext_t own;
    bad_ended = 0;
    signal(SIGSEGV, bad_signal);
    signal(SIGBUS, bad_signal);
    CHECK_EQ(getcontext(&own), 0);
    own.uc_stack.ss_sp = check_calloc(STACK);
    own.uc_stack.ss_size = STACK;
    own.uc_link = &bad_main;
    makecontext(&own, bad_run_table, 0);
    swapcontext(&bad_main, &own);
    if (bad_ended == 0)
      break;
    bad_judge(bad_ended);           /* the stack of the call is lost */
  }
  signal(SIGSEGV, SIG_DFL);
  signal(SIGBUS, SIG_DFL);
}

/* Prints what the argument of the program asks for, after the tables were listed. */
static inline int bad_list(int argc, char **argv, void (*const tables[])(void))
{
  if (argc < 2)
    return 0;
  for (int i = 0; tables[i]; i++)
    bad_input(tables[i], LISTING);
  if (strcmp(argv[1], "calls") == 0)
    bad_print_names();
  else
    bad_print_page();
  return 1;
}

#endif /* BAD_INPUT_H */
