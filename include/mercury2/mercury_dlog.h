/*
 * mercury_dlog.h - Mercury 2.4: a log in memory of the places that a program has passed, with
 * counters. A program dumps it after an error.
 */
#ifndef MERCURY_DLOG_H
#define MERCURY_DLOG_H

#include "mercury_util_config.h"

#include "mercury_atomic.h"
#include "mercury_queue.h"
#include "mercury_thread_mutex.h"
#include "mercury_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A log begins with HG_DLOG_STDMAGIC and its name, which help to find it in a core file. */
#define HG_DLOG_MAGICLEN 16
#define HG_DLOG_STDMAGIC ">D.LO.G<"

/*
 * Initialises the global variable VARNAME with the array LE of LESIZE entries. NAME is a string of
 * at most 7 characters.
 */
#define HG_DLOG_INITIALIZER(NAME, VARNAME, LE, LESIZE, LELOOP)                                    \
  {                                                                                               \
    HG_DLOG_STDMAGIC NAME, HG_THREAD_MUTEX_INITIALIZER, TAILQ_HEAD_INITIALIZER((VARNAME).cnts32), \
        TAILQ_HEAD_INITIALIZER((VARNAME).cnts64), LE, LESIZE, LELOOP, 0, 0, 0, 0                  \
  }

struct hg_dlog_entry {
  const char *file;
  unsigned int line;
  const char *func;
  const char *msg;  /* or NULL */
  const void *data; /* or NULL */
  hg_time_t time;   /* when the entry was added */
};

struct hg_dlog_dcount32 {
  const char *name;
  const char *descr;
  hg_atomic_int32_t c;
  TAILQ_ENTRY(hg_dlog_dcount32) l;
};

struct hg_dlog_dcount64 {
  const char *name;
  const char *descr;
  hg_atomic_int64_t c;
  TAILQ_ENTRY(hg_dlog_dcount64) l;
};

struct hg_dlog {
  char dlog_magic[HG_DLOG_MAGICLEN];
  hg_thread_mutex_t dlock;
  TAILQ_HEAD(, hg_dlog_dcount32) cnts32;
  TAILQ_HEAD(, hg_dlog_dcount64) cnts64;
  struct hg_dlog_entry *le;
  unsigned int lesize; /* size of the array le */
  int leloop;          /* new entries replace the oldest ones if the array is full */
  unsigned int lefree; /* where the next entry goes */
  unsigned int leadds; /* entries in the array */
  int lestop;          /* takes no entries */
  int mallocd;
};

/* Returns a log for lesize entries, or NULL. Only 7 characters of the name are kept. */
static HG_UTIL_INLINE struct hg_dlog *hg_dlog_alloc(const char *name, unsigned int lesize,
                                                    int leloop)
{
  struct hg_dlog *d = (struct hg_dlog *)calloc(1, sizeof *d);
  if (!d)
    return NULL;
  d->le = (struct hg_dlog_entry *)calloc(lesize ? lesize : 1, sizeof *d->le);
  if (!d->le || hg_thread_mutex_init(&d->dlock) != HG_UTIL_SUCCESS) {
    free(d->le);
    free(d);
    return NULL;
  }
  (void)snprintf(d->dlog_magic, sizeof d->dlog_magic, HG_DLOG_STDMAGIC "%.7s", name);
  TAILQ_INIT(&d->cnts32);
  TAILQ_INIT(&d->cnts64);
  d->lesize = lesize;
  d->leloop = leloop;
  d->mallocd = 1;
  return d;
}

/*
 * hg_dlog_mkcount32 and hg_dlog_mkcount64 create a counter with the value 0, unless *cptr is one
 * already. The log keeps pointers to the name and the description. If memory is exhausted, they
 * abort the program. hg_dlog_rmcount32 and hg_dlog_rmcount64 remove a counter.
 */
#define HG_DLOG_COUNTS_(bits)                                                                    \
  static HG_UTIL_INLINE void hg_dlog_mkcount##bits(struct hg_dlog *d,                            \
                                                   hg_atomic_int##bits##_t **cptr,               \
                                                   const char *name, const char *descr)          \
  {                                                                                              \
    hg_thread_mutex_lock(&d->dlock);                                                             \
    if (!*cptr) {                                                                                \
      struct hg_dlog_dcount##bits *count = (struct hg_dlog_dcount##bits *)malloc(sizeof *count); \
      if (!count) {                                                                              \
        (void)fprintf(stderr, "hg_dlog: no memory for the counter %s\n", name);                  \
        abort();                                                                                 \
      }                                                                                          \
      count->name = name;                                                                        \
      count->descr = descr;                                                                      \
      hg_atomic_init##bits(&count->c, 0);                                                        \
      TAILQ_INSERT_TAIL(&d->cnts##bits, count, l);                                               \
      *cptr = &count->c;                                                                         \
    }                                                                                            \
    hg_thread_mutex_unlock(&d->dlock);                                                           \
  }                                                                                              \
  static HG_UTIL_INLINE void hg_dlog_rmcount##bits(struct hg_dlog *d,                            \
                                                   hg_atomic_int##bits##_t *cptr)                \
  {                                                                                              \
    struct hg_dlog_dcount##bits *count;                                                          \
    hg_thread_mutex_lock(&d->dlock);                                                             \
    TAILQ_FOREACH(count, &d->cnts##bits, l) {                                                    \
      if (&count->c == cptr) {                                                                   \
        TAILQ_REMOVE(&d->cnts##bits, count, l);                                                  \
        free(count);                                                                             \
        break;                                                                                   \
      }                                                                                          \
    }                                                                                            \
    hg_thread_mutex_unlock(&d->dlock);                                                           \
  }

HG_DLOG_COUNTS_(32)
HG_DLOG_COUNTS_(64)

/* Frees the counters, and the log if it comes from hg_dlog_alloc. */
static HG_UTIL_INLINE void hg_dlog_free(struct hg_dlog *d)
{
  while (!TAILQ_EMPTY(&d->cnts32))
    hg_dlog_rmcount32(d, &TAILQ_FIRST(&d->cnts32)->c);
  while (!TAILQ_EMPTY(&d->cnts64))
    hg_dlog_rmcount64(d, &TAILQ_FIRST(&d->cnts64)->c);
  if (d->mallocd) {
    (void)hg_thread_mutex_destroy(&d->dlock);
    free(d->le);
    free(d);
  }
}

/* Adds an entry, which keeps the pointers. Returns 1, or 0 if the log is full or stopped. */
static HG_UTIL_INLINE unsigned int hg_dlog_addlog(struct hg_dlog *d, const char *file,
                                                  unsigned int line, const char *func,
                                                  const char *msg, const void *data)
{
  unsigned int added = 0;
  hg_thread_mutex_lock(&d->dlock);
  if (!d->lestop && d->lesize > 0 && (d->leloop || d->leadds < d->lesize)) {
    struct hg_dlog_entry *entry = &d->le[d->lefree];
    d->lefree = (d->lefree + 1) % d->lesize;
    if (d->leadds < d->lesize)
      d->leadds++;
    entry->file = file;
    entry->line = line;
    entry->func = func;
    entry->msg = msg;
    entry->data = data;
    if (hg_time_get_current(&entry->time) != HG_UTIL_SUCCESS)
      entry->time = hg_time_from_ms(0);
    added = 1;
  }
  hg_thread_mutex_unlock(&d->dlock);
  return added;
}

/* 1 stops the log, 0 continues it. */
static HG_UTIL_INLINE void hg_dlog_setlogstop(struct hg_dlog *d, int stop)
{
  hg_thread_mutex_lock(&d->dlock);
  d->lestop = stop;
  hg_thread_mutex_unlock(&d->dlock);
}

/* Removes the entries. The counters keep their values. */
static HG_UTIL_INLINE void hg_dlog_resetlog(struct hg_dlog *d)
{
  hg_thread_mutex_lock(&d->dlock);
  d->lefree = 0;
  d->leadds = 0;
  hg_thread_mutex_unlock(&d->dlock);
}

/* Locks a log for a dump. With trylock, fails with a warning if another thread has locked it. */
static HG_UTIL_INLINE int hg_dlog_lock_(struct hg_dlog *d, int trylock)
{
  if (!trylock) {
    hg_thread_mutex_lock(&d->dlock);
    return HG_UTIL_SUCCESS;
  }
  if (hg_thread_mutex_try_lock(&d->dlock) == HG_UTIL_SUCCESS)
    return HG_UTIL_SUCCESS;
  (void)fprintf(stderr, "hg_dlog_dump: the log is locked, it is not dumped\n");
  return HG_UTIL_FAIL;
}

/* Returns the place of the oldest entry. */
static HG_UTIL_INLINE unsigned int hg_dlog_oldest_(const struct hg_dlog *d)
{
  return d->lefree >= d->leadds ? d->lefree - d->leadds : d->lesize - (d->leadds - d->lefree);
}

static HG_UTIL_INLINE void hg_dlog_head_(struct hg_dlog *d,
                                         int (*log_func)(FILE *, const char *, ...), FILE *stream,
                                         const char *kind, const char *rule)
{
  (void)log_func(stream, "### %s\n### (%.8s) %s log summary\n### %s\n", rule,
                 d->dlog_magic + sizeof HG_DLOG_STDMAGIC - 1, kind, rule);
}

static HG_UTIL_INLINE void hg_dlog_counts_(struct hg_dlog *d,
                                           int (*log_func)(FILE *, const char *, ...),
                                           FILE *stream)
{
  struct hg_dlog_dcount32 *c32;
  struct hg_dlog_dcount64 *c64;
  TAILQ_FOREACH(c32, &d->cnts32, l) {
    (void)log_func(stream, "# %s: %" PRId32 " [%s]\n", c32->name, hg_atomic_get32(&c32->c),
                   c32->descr);
  }
  TAILQ_FOREACH(c64, &d->cnts64, l) {
    (void)log_func(stream, "# %s: %" PRId64 " [%s]\n", c64->name, hg_atomic_get64(&c64->c),
                   c64->descr);
  }
}

/* Prints the counters and entries, if there is an entry. The function may be fprintf. */
static HG_UTIL_INLINE void hg_dlog_dump(struct hg_dlog *d,
                                        int (*log_func)(FILE *, const char *, ...), FILE *stream,
                                        int trylock)
{
  unsigned int at, left;
  if (hg_dlog_lock_(d, trylock) != HG_UTIL_SUCCESS)
    return;
  if (d->leadds > 0) {
    hg_dlog_head_(d, log_func, stream, "debug", "----------------------");
    if (!TAILQ_EMPTY(&d->cnts32) || !TAILQ_EMPTY(&d->cnts64)) {
      (void)log_func(stream, "# Counters\n");
      hg_dlog_counts_(d, log_func, stream);
      (void)log_func(stream, "# -\n");
    }
    (void)log_func(stream, "# Number of log entries: %u\n", d->leadds);
    for (at = hg_dlog_oldest_(d), left = d->leadds; left > 0; left--) {
      const struct hg_dlog_entry *entry = &d->le[at];
      (void)log_func(stream, "# [%f] %s:%u\n## %s()\n", hg_time_to_double(entry->time),
                     entry->file, entry->line, entry->func);
      at = (at + 1) % d->lesize;
    }
  }
  hg_thread_mutex_unlock(&d->dlock);
}

/* Prints the counters, if there are any. */
static HG_UTIL_INLINE void hg_dlog_dump_counters(struct hg_dlog *d,
                                                 int (*log_func)(FILE *, const char *, ...),
                                                 FILE *stream, int trylock)
{
  if (hg_dlog_lock_(d, trylock) != HG_UTIL_SUCCESS)
    return;
  if (!TAILQ_EMPTY(&d->cnts32) || !TAILQ_EMPTY(&d->cnts64)) {
    hg_dlog_head_(d, log_func, stream, "counter", "--------------------------");
    hg_dlog_counts_(d, log_func, stream);
  }
  hg_thread_mutex_unlock(&d->dlock);
}

/* Writes the counters and entries to the file BASE.log, or with addpid to BASE-PID.log. */
static HG_UTIL_INLINE void hg_dlog_dump_file(struct hg_dlog *d, const char *base, int addpid,
                                             int trylock)
{
  const int pid = (int)getpid();
  const size_t size = strlen(base) + 32;
  char *path = (char *)malloc(size);
  struct hg_dlog_dcount32 *c32;
  struct hg_dlog_dcount64 *c64;
  unsigned int at, left;
  FILE *file;
  if (!path)
    return;
  if (addpid)
    (void)snprintf(path, size, "%s-%d.log", base, pid);
  else
    (void)snprintf(path, size, "%s.log", base);
  file = fopen(path, "w");
  if (!file)
    perror(path);
  free(path);
  if (!file)
    return;
  if (hg_dlog_lock_(d, trylock) != HG_UTIL_SUCCESS) {
    (void)fclose(file);
    return;
  }
  (void)fprintf(file, "# START COUNTERS\n");
  TAILQ_FOREACH(c32, &d->cnts32, l) {
    (void)fprintf(file, "%s %d %" PRId32 " # %s\n", c32->name, pid, hg_atomic_get32(&c32->c),
                  c32->descr);
  }
  TAILQ_FOREACH(c64, &d->cnts64, l) {
    (void)fprintf(file, "%s %d %" PRId64 " # %s\n", c64->name, pid, hg_atomic_get64(&c64->c),
                  c64->descr);
  }
  (void)fprintf(file, "# END COUNTERS\n\n# NLOGS %u FOR %d\n", d->leadds, pid);
  for (at = hg_dlog_oldest_(d), left = d->leadds; left > 0; left--) {
    const struct hg_dlog_entry *entry = &d->le[at];
    (void)fprintf(file, "%f %d %s %u %s %s %p\n", hg_time_to_double(entry->time), pid,
                  entry->file, entry->line, entry->func, entry->msg ? entry->msg : "(null)",
                  entry->data);
    at = (at + 1) % d->lesize;
  }
  hg_thread_mutex_unlock(&d->dlock);
  (void)fclose(file);
}

#endif /* MERCURY_DLOG_H */
