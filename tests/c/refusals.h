/*
 * refusals.h - tables of bad calls, for x10_invalid, lapi_invalid, cp_invalid and
 * mercury_invalid. Include it behind the face's own header of checks.
 *
 * A table is a function of rows, REFUSED(call, fault, code, expression) and GIVES(call, fault,
 * outcome, condition). Run, a row must give what it says, leave a text that names the call
 * where it is an error, and change nothing of the memory that is watched. Listed, each row is
 * a line of a page in docs, and nothing is called; what rows need is prepared where LISTED is 0.
 *
 * The other form is the product of calls and faults: each call with each fault that it can meet.
 */
#ifndef REFUSALS_H
#define REFUSALS_H

#include <limits.h>

static int LISTED;                  /* print the tables, call nothing */
static int refusals;                /* rows that were run */

/* A face may keep its last error apart, and may name another call in it. */
static const char *(*refusals_error)(void) = portolan_last_error;
static const char *refusals_also;
/* Leaves the error of a call that is in no table, so that an old text is known as old. */
static void (*refusals_stale)(void);

/* -------------------------------------------------------------- watched memory */

enum { WATCHED = 16, WATCHED_BYTES = 4096 };
static struct { const char *name; const void *at; size_t bytes; unsigned char was[WATCHED_BYTES]; }
  watched[WATCHED];
static int watches;

static inline void watch(const char *name, const void *at, size_t bytes)
{
  CHECK(watches < WATCHED && bytes <= WATCHED_BYTES, "too much to watch");
  watched[watches].name = name;
  watched[watches].at = at;
  watched[watches++].bytes = bytes;
}

static inline void watch_begins(void)
{
  for (int i = 0; i < watches; i++)
    memcpy(watched[i].was, watched[i].at, watched[i].bytes);
}

static inline void watch_ends(const char *call, const char *fault)
{
  for (int i = 0; i < watches; i++)
    CHECK_BYTES(watched[i].at, watched[i].was, (long)watched[i].bytes, "%s with %s: %s", call, fault,
                watched[i].name);
}

/* ------------------------------------------------------------------------ rows */

/* What a list calls an outcome, where codes are macros and show as numbers. */
static const char *(*refusals_outcome)(const char *outcome);

static inline const char *outcome_listed(const char *outcome)
{
  return refusals_outcome ? refusals_outcome(outcome) : outcome;
}

/* Begins a row; 0 where it is only listed. */
static inline int row_begins(const char *call, const char *fault, const char *outcome)
{
  if (LISTED) {
    printf("| %s | %s | %s |\n", call, fault, outcome_listed(outcome));
    return 0;
  }
  watch_begins();
  if (refusals_stale)
    refusals_stale();
  refusals++;
  return 1;
}

static inline void row_ends(const char *file, int line, const char *call, const char *fault,
                            long long got, long long want, const char *outcome)
{
  if (got != want)
    check_fail(file, line, "%s with %s: %lld, expected %s (%s)", call, fault, got, outcome,
               refusals_error());
  watch_ends(call, fault);
}

/* The text of a row that was refused names the call. */
static inline void row_says(const char *file, int line, const char *call, const char *fault)
{
  const char *text = refusals_error();
  if (strstr(text, call) == NULL && (refusals_also == NULL || strstr(text, refusals_also) == NULL))
    check_fail(file, line, "%s: the error '%s' does not say '%s'", fault, text, call);
}

#define REFUSED(call, fault, code, expression)                                             \
  do {                                                                                     \
    if (row_begins(call, fault, "`" #code "`")) {                                          \
      row_ends(__FILE__, __LINE__, call, fault, (long long)(expression), (long long)(code), #code); \
      if ((long long)(code) != 0)                                                          \
        row_says(__FILE__, __LINE__, call, fault);                                         \
    }                                                                                      \
  } while (0)

/* A row that is not a code: the outcome in words, and whether it is so. */
#define GIVES(call, fault, outcome, condition)                                             \
  do {                                                                                     \
    if (row_begins(call, fault, outcome))                                                  \
      row_ends(__FILE__, __LINE__, call, fault, !!(condition), 1, outcome);                \
  } while (0)

/* ------------------------------------------------------- calls and their faults */

struct refusals_call {
  const char *name;
  int traits;                       /* what it has, and so what can be wrong with it */
  int (*run)(void);                 /* with the present input */
};

struct refusals_fault {
  const char *name;
  int traits;                       /* the calls that can meet it: any bit of theirs */
  int code;
  const char *code_name;
  void (*spoil)(void);              /* makes the input bad */
  const char *says;                 /* occurs in the text, where it is not NULL */
};

#define FAULT(name, traits, code, spoil) { name, traits, code, "`" #code "`", spoil, NULL }

/* Every call with good input, or the table would show nothing. */
static inline void calls_work(const struct refusals_call *calls, void (*good)(void))
{
  for (const struct refusals_call *call = calls; call->name; call++) {
    good();
    const int rc = call->run();
    CHECK(rc == 0, "%s with good input: %d (%s)", call->name, rc, refusals_error());
  }
}

static inline void call_fails(const struct refusals_call *call, const struct refusals_fault *fault,
                              void (*good)(void))
{
  good();
  fault->spoil();
  if (row_begins(call->name, fault->name, fault->code_name)) {
    row_ends(__FILE__, __LINE__, call->name, fault->name, call->run(), fault->code, fault->code_name);
    if (fault->code != 0)
      row_says(__FILE__, __LINE__, call->name, fault->name);
    if (fault->says)
      row_says(__FILE__, __LINE__, fault->says, fault->name);
  }
}

static inline void calls_list(const struct refusals_call *calls, const struct refusals_fault *faults,
                              const char *prefix)
{
  const size_t skip = strlen(prefix);
  printf("All are");
  for (const struct refusals_call *call = calls; call->name; call++)
    printf("%s %s", call == calls ? "" : ",", call->name + skip);
  printf(".\n\n| fault | calls | result |\n|---|---|---|\n");
  for (const struct refusals_fault *fault = faults; fault->name; fault++) {
    int all = 1;
    const char *separator = "";
    for (const struct refusals_call *call = calls; call->name; call++)
      all &= (call->traits & fault->traits) != 0;
    printf("| %s | %s", fault->name, all ? "all" : "");
    for (const struct refusals_call *call = calls; call->name && !all; call++)
      if (call->traits & fault->traits) {
        printf("%s%s", separator, call->name + skip);
        separator = ", ";
      }
    printf(" | %s |\n", outcome_listed(fault->code_name));
  }
}

/* All pairs that make sense. The prefix is what the names of the calls begin with. */
static inline void calls_with_faults(const struct refusals_call *calls,
                                     const struct refusals_fault *faults, void (*good)(void),
                                     const char *prefix)
{
  if (LISTED) {
    calls_list(calls, faults, prefix);
    return;
  }
  for (const struct refusals_call *call = calls; call->name; call++)
    for (const struct refusals_fault *fault = faults; fault->name; fault++)
      if (call->traits & fault->traits)
        call_fails(call, fault, good);
}

static inline void rows_begin(const char *title)
{
  if (LISTED)
    printf("\n## %s\n\n| call | fault | result |\n|---|---|---|\n", title);
}

static inline int refusals_listed(int argc, char **argv)
{
  LISTED = argc > 1 && strcmp(argv[1], "markdown") == 0;
  return LISTED;
}

#endif /* REFUSALS_H */
