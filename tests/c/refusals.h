/*
 * refusals.h - tables of bad calls, for the programs of each interface (invalid, x10_invalid, ...).
 * Include it after the interface's own check header.
 *
 * A table is a function of rows, REFUSED(call, fault, code, expression) and GIVES(call, fault,
 * outcome, condition). In a run, each row must give its stated outcome, set an error text that
 * names the call if the outcome is an error, and leave the watched memory unchanged. In a listing
 * (LISTED is 1), each row prints a line of a page in docs and makes no call; prepare what rows need
 * only if LISTED is 0.
 *
 * The other form is the product of calls and faults: each call with each fault that applies to it.
 */
#ifndef REFUSALS_H
#define REFUSALS_H

#include <limits.h>

static int LISTED;                  /* print the tables, make no calls */
static int refusals;                /* rows run */

/* An interface may have its own last error, and its error text may name another call. */
static const char *(*refusals_error)(void) = portolan_last_error;
static const char *refusals_also;
/* Sets the error of a call that is in no table, so that a stale error text is recognised. */
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

/* Returns the text of an outcome for a listing, if codes are macros and would print as numbers. */
static const char *(*refusals_outcome)(const char *outcome);

static inline const char *outcome_listed(const char *outcome)
{
  return refusals_outcome ? refusals_outcome(outcome) : outcome;
}

/* Begins a row; returns 0 if the row is only listed. */
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

/* Checks that the error text of a refused row names the call. */
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

/* A row whose outcome is not a code: the outcome in words, and the condition that proves it. */
#define GIVES(call, fault, outcome, condition)                                             \
  do {                                                                                     \
    if (row_begins(call, fault, outcome))                                                  \
      row_ends(__FILE__, __LINE__, call, fault, !!(condition), 1, outcome);                \
  } while (0)

/* ------------------------------------------------------- calls and their faults */

struct refusals_call {
  const char *name;
  int traits;                       /* the properties of the call; they select its faults */
  int (*run)(void);                 /* uses the current input */
};

struct refusals_fault {
  const char *name;
  int traits;                       /* applies to calls with any of these traits */
  int code;
  const char *code_name;
  void (*spoil)(void);              /* makes the input bad */
  const char *says;                 /* text that the error must contain, unless NULL */
};

#define FAULT(name, traits, code, spoil) { name, traits, code, "`" #code "`", spoil, NULL }

/* Checks that every call succeeds with good input, otherwise the table proves nothing. */
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

/* Whether two faults apply to the same calls, with the same result. */
static inline int listed_together(const struct refusals_call *calls, const struct refusals_fault *a,
                                  const struct refusals_fault *b)
{
  for (const struct refusals_call *call = calls; call->name; call++)
    if (!(call->traits & a->traits) != !(call->traits & b->traits))
      return 0;
  return strcmp(a->code_name, b->code_name) == 0;
}

/* Prints one row for all faults of the same calls with the same result, so that most pages name
 * each set of calls once. */
static inline void calls_list(const struct refusals_call *calls, const struct refusals_fault *faults,
                              const char *prefix)
{
  const size_t skip = strlen(prefix);
  printf("All are");
  for (const struct refusals_call *call = calls; call->name; call++)
    printf("%s %s", call == calls ? "" : ",", call->name + skip);
  printf(".\n\n| faults | calls | result |\n|---|---|---|\n");
  for (const struct refusals_fault *fault = faults; fault->name; fault++) {
    int all = 1, any = 0, listed = 0;
    const char *separator = "";
    for (const struct refusals_call *call = calls; call->name; call++) {
      const int applies = (call->traits & fault->traits) != 0;
      all &= applies;
      any |= applies;
    }
    for (const struct refusals_fault *other = faults; other != fault; other++)
      listed |= listed_together(calls, other, fault);
    if (!any || listed)
      continue;
    for (const struct refusals_fault *other = fault; other->name; other++)
      if (listed_together(calls, other, fault))
        printf("%s%s", other == fault ? "| " : "; ", other->name);
    printf(" | %s", all ? "all" : "");
    for (const struct refusals_call *call = calls; call->name && !all; call++)
      if (call->traits & fault->traits) {
        printf("%s%s", separator, call->name + skip);
        separator = ", ";
      }
    printf(" | %s |\n", outcome_listed(fault->code_name));
  }
}

/* Runs or lists all pairs of calls and faults that apply. All call names begin with `prefix`, which
 * lists omit. */
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
