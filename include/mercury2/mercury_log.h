/*
 * mercury_log.h - Mercury 2.4: a log with outlets, which print lines up to a level.
 *
 * HG_LOG_DECL_REGISTER(name) defines an outlet and HG_LOG_WRITE(name, level, format, ...) writes to
 * it. An outlet that is not named in the list of subsystems has the level of its parent. All files
 * and libraries of a process share the root outlet hg_all, the list, the level and the streams.
 * The variables HG_LOG_LEVEL and HG_LOG_SUBSYS set the first level and list.
 *
 * This log belongs to the program: HG_Set_log_level and similar calls set the log of the library.
 */
#ifndef MERCURY_LOG_H
#define MERCURY_LOG_H

#include "mercury_util_config.h"

#include "mercury_dlog.h"
#include "mercury_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HG_UTIL_CAT(x, y) x##y
#define HG_UTIL_CATU(x, y) x##_##y
#define HG_UTIL_STRINGIFY(x) #x
#define HG_UTIL_CONSTRUCTOR HG_ATTR_CONSTRUCTOR
#define HG_UTIL_DESTRUCTOR HG_ATTR_DESTRUCTOR

/*
 * Levels from few to many lines: constant, name, other name, stream. MIN_DEBUG prints no debug
 * lines. Instead the debug log of the outlet records where they are in the program, and an error
 * prints this log.
 */
#define HG_LOG_LEVELS                                      \
  X(HG_LOG_LEVEL_NONE, "", "", NULL)                       \
  X(HG_LOG_LEVEL_FATAL, "fatal", "ftl", &stderr)           \
  X(HG_LOG_LEVEL_ERROR, "error", "err", &stderr)           \
  X(HG_LOG_LEVEL_WARNING, "warning", "warn", &stdout)      \
  X(HG_LOG_LEVEL_MIN_DEBUG, "min_debug", "trace", &stdout) \
  X(HG_LOG_LEVEL_INFO, "info", "inf", &stdout)             \
  X(HG_LOG_LEVEL_DEBUG, "debug", "dbg", &stdout)           \
  X(HG_LOG_LEVEL_MAX, "", "", NULL)

#define X(constant, name, other, stream) constant,
enum hg_log_level { HG_LOG_LEVELS };
#undef X

/*
 * PASS: prints as the list says, or like the parent if the list does not name it. OFF: prints only
 * if the list names it. ON: always prints.
 */
enum hg_log_state { HG_LOG_PASS, HG_LOG_OFF, HG_LOG_ON };

struct hg_log_outlet {
  const char *name;
  enum hg_log_state state;
  enum hg_log_level level;      /* of the lines that it prints */
  struct hg_log_outlet *parent; /* or NULL */
  struct hg_dlog *debug_log;    /* or NULL */
  bool registered;
  STAILQ_ENTRY(hg_log_outlet) entry;
};

/* fprintf, or a function like it. */
typedef int (*hg_log_func_t)(FILE *stream, const char *format, ...);

/* ------------------------------------------------------------------ outlets */

#define HG_LOG_OUTLET_ROOT_NAME hg_all

/* The variable of an outlet, and its declaration. */
#define HG_LOG_OUTLET(name) HG_UTIL_CATU(name, log_outlet_g)
#define HG_LOG_OUTLET_DECL(name) struct hg_log_outlet HG_LOG_OUTLET(name)
#define HG_LOG_OUTLET_SUBSYS_DECL(name, parent_name) \
  HG_LOG_OUTLET_DECL(HG_UTIL_CATU(parent_name, name))

/* Initial values. The parent and the debug log are pointers and may be NULL. */
#define HG_LOG_OUTLET_INITIALIZER(name, state, parent, debug_log)                         \
  {                                                                                       \
    HG_UTIL_STRINGIFY(name), state, HG_LOG_LEVEL_NONE, parent, debug_log, false, { NULL } \
  }
#define HG_LOG_OUTLET_SUBSYS_STATE_INITIALIZER(name, parent_name, state) \
  HG_LOG_OUTLET_INITIALIZER(name, state, &HG_LOG_OUTLET(parent_name), NULL)
#define HG_LOG_OUTLET_SUBSYS_INITIALIZER(name, parent_name) \
  HG_LOG_OUTLET_SUBSYS_STATE_INITIALIZER(name, parent_name, HG_LOG_PASS)
#define HG_LOG_OUTLET_SUBSYS_DLOG_INITIALIZER(name, parent_name)            \
  HG_LOG_OUTLET_INITIALIZER(name, HG_LOG_PASS, &HG_LOG_OUTLET(parent_name), \
                            &HG_LOG_DEBUG_DLOG(name))

/* Registers an outlet before main, and removes it after main. A semicolon follows. */
#define HG_LOG_REGISTER(name)                                                   \
  static void HG_UTIL_CATU(hg_log_outlet_reg, name)(void) HG_UTIL_CONSTRUCTOR;  \
  static void HG_UTIL_CATU(hg_log_outlet_reg, name)(void)                       \
  {                                                                             \
    hg_log_outlet_register(&HG_LOG_OUTLET(name));                               \
  }                                                                             \
  static void HG_UTIL_CATU(hg_log_outlet_dereg, name)(void) HG_UTIL_DESTRUCTOR; \
  static void HG_UTIL_CATU(hg_log_outlet_dereg, name)(void)                     \
  {                                                                             \
    hg_log_outlet_deregister(&HG_LOG_OUTLET(name));                             \
  }                                                                             \
  struct hg_log_outlet
#define HG_LOG_SUBSYS_REGISTER(name, parent_name) HG_LOG_REGISTER(HG_UTIL_CATU(parent_name, name))

/* Define and register an outlet. */
#define HG_LOG_DECL_REGISTER(name)                                                            \
  HG_LOG_OUTLET_DECL(name) = HG_LOG_OUTLET_SUBSYS_INITIALIZER(name, HG_LOG_OUTLET_ROOT_NAME); \
  HG_LOG_REGISTER(name)
#define HG_LOG_SUBSYS_DECL_STATE_REGISTER(name, parent_name, state)     \
  HG_LOG_OUTLET_SUBSYS_DECL(name, parent_name) =                        \
      HG_LOG_OUTLET_SUBSYS_STATE_INITIALIZER(name, parent_name, state); \
  HG_LOG_SUBSYS_REGISTER(name, parent_name)
#define HG_LOG_SUBSYS_DECL_REGISTER(name, parent_name) \
  HG_LOG_SUBSYS_DECL_STATE_REGISTER(name, parent_name, HG_LOG_PASS)

/* --------------------------------------------------------------- debug logs */

/* The variables of a debug log and its entries, their declarations and initial values. */
#define HG_LOG_DEBUG_DLOG(name) HG_UTIL_CATU(name, dlog_g)
#define HG_LOG_DEBUG_LE(name) HG_UTIL_CATU(name, dlog_entries_g)
#define HG_LOG_DEBUG_DECL_DLOG(name) struct hg_dlog HG_LOG_DEBUG_DLOG(name)
#define HG_LOG_DEBUG_DECL_LE(name, size) struct hg_dlog_entry HG_LOG_DEBUG_LE(name)[size]
#define HG_LOG_DLOG_INITIALIZER(name, size)                                                    \
  HG_DLOG_INITIALIZER(HG_UTIL_STRINGIFY(name), HG_LOG_DEBUG_DLOG(name), HG_LOG_DEBUG_LE(name), \
                      size, 1)

/* Define and register an outlet with a debug log, which is defined already. */
#define HG_LOG_DLOG_DECL_REGISTER(name)                                     \
  HG_LOG_OUTLET_DECL(name) =                                                \
      HG_LOG_OUTLET_SUBSYS_DLOG_INITIALIZER(name, HG_LOG_OUTLET_ROOT_NAME); \
  HG_LOG_REGISTER(name)
#define HG_LOG_SUBSYS_DLOG_DECL_REGISTER(name, parent_name)     \
  HG_LOG_OUTLET_SUBSYS_DECL(name, parent_name) =                \
      HG_LOG_OUTLET_SUBSYS_DLOG_INITIALIZER(name, parent_name); \
  HG_LOG_SUBSYS_REGISTER(name, parent_name)

/* Counters in the debug log of an outlet. counter_ptr points to a pointer, or is one in DEL. */
#define HG_LOG_ADD_COUNTER32(name, counter_ptr, counter_name, counter_desc) \
  hg_dlog_mkcount32(HG_LOG_OUTLET(name).debug_log, counter_ptr, counter_name, counter_desc)
#define HG_LOG_DEL_COUNTER32(name, counter_ptr) \
  hg_dlog_rmcount32(HG_LOG_OUTLET(name).debug_log, counter_ptr)
#define HG_LOG_ADD_COUNTER64(name, counter_ptr, counter_name, counter_desc) \
  hg_dlog_mkcount64(HG_LOG_OUTLET(name).debug_log, counter_ptr, counter_name, counter_desc)
#define HG_LOG_DEL_COUNTER64(name, counter_ptr) \
  hg_dlog_rmcount64(HG_LOG_OUTLET(name).debug_log, counter_ptr)

/* -------------------------------------------------------------------- lines */

#define HG_LOG_IF_(name, log_level, file, line, func, write)                             \
  do {                                                                                   \
    if ((log_level) == HG_LOG_LEVEL_DEBUG && HG_LOG_OUTLET(name).debug_log &&            \
        HG_LOG_OUTLET(name).level >= HG_LOG_LEVEL_MIN_DEBUG)                             \
      (void)hg_dlog_addlog(HG_LOG_OUTLET(name).debug_log, file, line, func, NULL, NULL); \
    if (HG_LOG_OUTLET(name).level >= (log_level))                                        \
      write;                                                                             \
  } while (0)

/* Print a line for a given file, line and function, from a format and its arguments. */
#define HG_LOG_WRITE_FUNC(name, log_level, module, file, line, func, no_return, ...) \
  HG_LOG_IF_(name, log_level, file, line, func,                                      \
             hg_log_write(&HG_LOG_OUTLET(name), log_level, module, file, line, func, \
                          no_return, __VA_ARGS__))
#define HG_LOG_VWRITE_FUNC(name, log_level, module, file, line, func, no_return, message, ap) \
  HG_LOG_IF_(name, log_level, file, line, func,                                               \
             hg_log_vwrite(&HG_LOG_OUTLET(name), log_level, module, file, line, func,         \
                           no_return, message, ap))

/* Prints a debug line, then a text without a place, and a line of dashes. */
#define HG_LOG_WRITE_FUNC_DEBUG_EXT(name, header, module, file, line, func, no_return, ...) \
  do {                                                                                      \
    if (HG_LOG_OUTLET(name).level == HG_LOG_LEVEL_DEBUG) {                                  \
      hg_log_write(&HG_LOG_OUTLET(name), HG_LOG_LEVEL_DEBUG, module, file, line, func,      \
                   no_return, "%s", header);                                                \
      (void)hg_log_get_func()(hg_log_get_stream_debug(), __VA_ARGS__);                      \
      (void)hg_log_get_func()(hg_log_get_stream_debug(), "---\n");                          \
    }                                                                                       \
  } while (0)

/* Like the macros above, for the file, line and function of the call. */
#define HG_LOG_WRITE(name, log_level, ...) \
  HG_LOG_WRITE_FUNC(name, log_level, NULL, __FILE__, __LINE__, __func__, false, __VA_ARGS__)
#define HG_LOG_SUBSYS_WRITE(name, parent_name, log_level, ...) \
  HG_LOG_WRITE(HG_UTIL_CATU(parent_name, name), log_level, __VA_ARGS__)
#define HG_LOG_WRITE_DEBUG_EXT(name, header, ...) \
  HG_LOG_WRITE_FUNC_DEBUG_EXT(name, header, NULL, __FILE__, __LINE__, __func__, false, __VA_ARGS__)
#define HG_LOG_SUBSYS_WRITE_DEBUG_EXT(name, parent_name, header, ...) \
  HG_LOG_WRITE_DEBUG_EXT(HG_UTIL_CATU(parent_name, name), header, __VA_ARGS__)

/* ------------------------------------------------------- state of a process */

#define HG_LOG_SUBSYS_MAX_ 16      /* names in the list */
#define HG_LOG_SUBSYS_NAME_MAX_ 16 /* characters of a name; others are cut off */

struct hg_log_shared_ {
  STAILQ_HEAD(, hg_log_outlet) outlets; /* parents first */
  hg_log_func_t func;                   /* NULL is fprintf */
  enum hg_log_level level;
  FILE *streams[HG_LOG_LEVEL_MAX]; /* NULL is the default stream of the level */
  char subsys[HG_LOG_SUBSYS_MAX_][HG_LOG_SUBSYS_NAME_MAX_ + 1];
  char list[HG_LOG_SUBSYS_MAX_ * (HG_LOG_SUBSYS_NAME_MAX_ + 1)]; /* the names as one text */
  bool ready;
};

/* Weak, so that all files and libraries use the same variables. */
#define HG_LOG_WEAK_ __attribute__((weak, visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
HG_LOG_WEAK_ struct hg_log_shared_ hg_log_shared_g_;
HG_LOG_WEAK_ HG_LOG_OUTLET_DECL(HG_LOG_OUTLET_ROOT_NAME) =
    HG_LOG_OUTLET_INITIALIZER(HG_LOG_OUTLET_ROOT_NAME, HG_LOG_OFF, NULL, NULL);
#ifdef __cplusplus
}
#endif

/* ---------------------------------------------------------------- functions */

/* Returns "" for HG_LOG_LEVEL_NONE. */
static HG_UTIL_INLINE const char *hg_log_level_to_string(enum hg_log_level level)
{
#define X(constant, name, other, stream) name,
  static const char *const names[] = { HG_LOG_LEVELS };
#undef X
  return (unsigned int)level < HG_LOG_LEVEL_MAX ? names[level] : "";
}

/* Case does not matter. NULL, "none" and unknown names are HG_LOG_LEVEL_NONE. */
static HG_UTIL_INLINE enum hg_log_level hg_log_name_to_level(const char *log_level)
{
#define X(constant, name, other, stream) other,
  static const char *const others[] = { HG_LOG_LEVELS };
#undef X
  int i;
  if (!log_level || strcasecmp(log_level, "none") == 0)
    return HG_LOG_LEVEL_NONE;
  for (i = 0; i < (int)HG_LOG_LEVEL_MAX; i++)
    if (strcasecmp(log_level, hg_log_level_to_string((enum hg_log_level)i)) == 0 ||
        strcasecmp(log_level, others[i]) == 0)
      return (enum hg_log_level)i;
  (void)fprintf(stderr, "Warning: there is no log level %s, the log is off\n", log_level);
  return HG_LOG_LEVEL_NONE;
}

/* Returns 1 if the list contains the name, -1 if it contains ~name first, else 0. */
static HG_UTIL_INLINE int hg_log_listed_(const char *name)
{
  int i;
  for (i = 0; i < HG_LOG_SUBSYS_MAX_ && hg_log_shared_g_.subsys[i][0]; i++) {
    const char *listed = hg_log_shared_g_.subsys[i];
    if (strcmp(listed, name) == 0)
      return 1;
    if (listed[0] == '~' && strcmp(listed + 1, name) == 0)
      return -1;
  }
  return 0;
}

static HG_UTIL_INLINE void hg_log_update_(struct hg_log_outlet *outlet)
{
  const int listed = hg_log_listed_(outlet->name);
  if (listed > 0 || outlet->state == HG_LOG_ON)
    outlet->level = hg_log_shared_g_.level;
  else if (listed == 0 && outlet->state == HG_LOG_PASS && outlet->parent)
    outlet->level = outlet->parent->level;
  else
    outlet->level = HG_LOG_LEVEL_NONE;
}

static HG_UTIL_INLINE void hg_log_update_all_(void)
{
  struct hg_log_outlet *outlet;
  STAILQ_FOREACH(outlet, &hg_log_shared_g_.outlets, entry) {
    hg_log_update_(outlet);
  }
}

/* Sets the names in the list. Empty and repeated names are skipped. */
static HG_UTIL_INLINE void hg_log_list_(const char *names)
{
  struct hg_log_shared_ *shared = &hg_log_shared_g_;
  int count = 0, i;
  memset(shared->subsys, 0, sizeof shared->subsys);
  while (*names && count < HG_LOG_SUBSYS_MAX_) {
    const size_t len = strcspn(names, ",");
    char *name = shared->subsys[count];
    memcpy(name, names, len < HG_LOG_SUBSYS_NAME_MAX_ ? len : HG_LOG_SUBSYS_NAME_MAX_);
    for (i = 0; i < count && strcmp(shared->subsys[i], name) != 0; i++)
      continue;
    if (len > 0 && i == count)
      count++;
    else
      memset(name, 0, sizeof shared->subsys[0]);
    names += len + (names[len] == ',');
  }
}

/* Adds an outlet and, before it, its parent, whose debug log it gets unless it has its own. */
static HG_UTIL_INLINE void hg_log_add_(struct hg_log_outlet *outlet)
{
  if (outlet->registered)
    return;
  if (outlet->parent)
    hg_log_add_(outlet->parent);
  if (outlet->parent && !outlet->debug_log)
    outlet->debug_log = outlet->parent->debug_log;
  hg_log_update_(outlet);
  STAILQ_INSERT_TAIL(&hg_log_shared_g_.outlets, outlet, entry);
  outlet->registered = true;
}

/* Returns the state, which the first call in the process initialises. */
static HG_UTIL_INLINE struct hg_log_shared_ *hg_log_state_(void)
{
  if (!hg_log_shared_g_.ready) {
    const char *level = getenv("HG_LOG_LEVEL"), *names = getenv("HG_LOG_SUBSYS");
    hg_log_shared_g_.ready = true;
    STAILQ_INIT(&hg_log_shared_g_.outlets);
    hg_log_shared_g_.level = hg_log_name_to_level(level ? level : "fatal");
    hg_log_list_(names ? names : "hg_all");
    hg_log_add_(&HG_LOG_OUTLET(HG_LOG_OUTLET_ROOT_NAME));
  }
  return &hg_log_shared_g_;
}

/* Initialises the state before other constructors run. */
HG_ATTR_CONSTRUCTOR_PRIORITY(101) static void hg_log_start_(void)
{
  (void)hg_log_state_();
}

/* Sets the level of all outlets that print. */
static HG_UTIL_INLINE void hg_log_set_level(enum hg_log_level log_level)
{
  hg_log_state_()->level = log_level;
  hg_log_update_all_();
}

static HG_UTIL_INLINE enum hg_log_level hg_log_get_level(void)
{
  return hg_log_state_()->level;
}

/* Sets the list of subsystems that print: names with commas between them. ~name does not print. */
static HG_UTIL_INLINE void hg_log_set_subsys(const char *log_subsys)
{
  (void)hg_log_state_();
  hg_log_list_(log_subsys);
  hg_log_update_all_();
}

/* Returns the list. The text is valid until the next call. */
static HG_UTIL_INLINE const char *hg_log_get_subsys(void)
{
  struct hg_log_shared_ *shared = hg_log_state_();
  size_t at = 0;
  int i;
  for (i = 0; i < HG_LOG_SUBSYS_MAX_ && shared->subsys[i][0]; i++) {
    const size_t len = strlen(shared->subsys[i]);
    if (i > 0)
      shared->list[at++] = ',';
    memcpy(shared->list + at, shared->subsys[i], len);
    at += len;
  }
  shared->list[at] = '\0';
  return shared->list;
}

/* Sets the level, and adds a name to the list. */
static HG_UTIL_INLINE void hg_log_set_subsys_level(const char *subsys,
                                                   enum hg_log_level log_level)
{
  const char *list = hg_log_get_subsys();
  const size_t size = strlen(list) + strlen(subsys) + 2;
  char *longer = (char *)malloc(size);
  if (!longer)
    return;
  (void)snprintf(longer, size, "%s,%s", list, subsys);
  hg_log_set_level(log_level);
  hg_log_set_subsys(longer);
  free(longer);
}

/* Sets the function that prints. NULL is fprintf. */
static HG_UTIL_INLINE void hg_log_set_func(hg_log_func_t log_func)
{
  hg_log_state_()->func = log_func;
}

static HG_UTIL_INLINE hg_log_func_t hg_log_get_func(void)
{
  const hg_log_func_t func = hg_log_state_()->func;
  return func ? func : fprintf;
}

static HG_UTIL_INLINE FILE *hg_log_stream_(enum hg_log_level level)
{
#define X(constant, name, other, stream) stream,
  FILE **const defaults[] = { HG_LOG_LEVELS };
#undef X
  FILE *stream = hg_log_state_()->streams[level];
  return stream ? stream : defaults[level] ? *defaults[level] : stderr;
}

/* The streams of errors, warnings and debug lines. NULL is the default stream. */
static HG_UTIL_INLINE void hg_log_set_stream_error(FILE *stream)
{
  hg_log_state_()->streams[HG_LOG_LEVEL_ERROR] = stream;
}

static HG_UTIL_INLINE FILE *hg_log_get_stream_error(void)
{
  return hg_log_stream_(HG_LOG_LEVEL_ERROR);
}

static HG_UTIL_INLINE void hg_log_set_stream_warning(FILE *stream)
{
  hg_log_state_()->streams[HG_LOG_LEVEL_WARNING] = stream;
}

static HG_UTIL_INLINE FILE *hg_log_get_stream_warning(void)
{
  return hg_log_stream_(HG_LOG_LEVEL_WARNING);
}

static HG_UTIL_INLINE void hg_log_set_stream_debug(FILE *stream)
{
  hg_log_state_()->streams[HG_LOG_LEVEL_DEBUG] = stream;
}

static HG_UTIL_INLINE FILE *hg_log_get_stream_debug(void)
{
  return hg_log_stream_(HG_LOG_LEVEL_DEBUG);
}

static HG_UTIL_INLINE void hg_log_outlet_register(struct hg_log_outlet *outlet)
{
  (void)hg_log_state_();
  hg_log_add_(outlet);
}

/* Removes an outlet, and frees its debug log unless that is its parent's. */
static HG_UTIL_INLINE void hg_log_outlet_deregister(struct hg_log_outlet *outlet)
{
  if (!outlet->registered)
    return;
  if (outlet->debug_log && !(outlet->parent && outlet->parent->debug_log == outlet->debug_log))
    hg_dlog_free(outlet->debug_log);
  STAILQ_REMOVE(&hg_log_shared_g_.outlets, outlet, hg_log_outlet, entry);
  outlet->registered = false;
}

/* Prints the counters of an outlet's debug log, from the level MIN_DEBUG. */
static HG_UTIL_INLINE void hg_log_dump_counters(struct hg_log_outlet *outlet)
{
  if (outlet->debug_log && outlet->level >= HG_LOG_LEVEL_MIN_DEBUG)
    hg_dlog_dump_counters(outlet->debug_log, hg_log_get_func(), hg_log_stream_(outlet->level), 0);
}

/*
 * Print a line, whatever the outlet's level. Messages are cut to 1023 bytes. After an error, from
 * the level MIN_DEBUG, they also print the outlet's debug log and empty it.
 */
HG_UTIL_PRINTF(8, 0)
static HG_UTIL_INLINE void hg_log_vwrite(struct hg_log_outlet *outlet, enum hg_log_level log_level,
                                         const char *module, const char *file, unsigned int line,
                                         const char *func, bool no_return, const char *format,
                                         va_list ap)
{
  char message[1024];
  FILE *stream;
  hg_time_t now;
  if (log_level <= HG_LOG_LEVEL_NONE || log_level >= HG_LOG_LEVEL_MAX)
    return;
  if (hg_time_get_current(&now) != HG_UTIL_SUCCESS)
    now = hg_time_from_ms(0);
  stream = hg_log_stream_(log_level);
  if (vsnprintf(message, sizeof message, format, ap) < 0)
    message[0] = '\0';
  (void)hg_log_get_func()(stream, "# [%f] mercury->%s [%s] %s%s%s:%u %s() %s%s",
                          hg_time_to_double(now), outlet->name, hg_log_level_to_string(log_level),
                          module ? module : "", module ? ":" : "", file, line, func, message,
                          no_return ? "" : "\n");
  if (log_level <= HG_LOG_LEVEL_ERROR && outlet->debug_log &&
      outlet->level >= HG_LOG_LEVEL_MIN_DEBUG) {
    hg_dlog_dump(outlet->debug_log, hg_log_get_func(), stream, 0);
    hg_dlog_resetlog(outlet->debug_log);
  }
}

HG_UTIL_PRINTF(8, 9)
static HG_UTIL_INLINE void hg_log_write(struct hg_log_outlet *outlet, enum hg_log_level log_level,
                                        const char *module, const char *file, unsigned int line,
                                        const char *func, bool no_return, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  hg_log_vwrite(outlet, log_level, module, file, line, func, no_return, format, ap);
  va_end(ap);
}

#endif /* MERCURY_LOG_H */
