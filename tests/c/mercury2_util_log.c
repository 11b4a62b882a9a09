/* The logs of Mercury 2.4: the log in memory with its counters and dumps, and outlets with their
 * levels, streams, lines and debug logs. */
// TEST: n=1
// TEST: n=1 build=mercury
#include "check.h"

#include <mercury_log.h>

#define IS(condition) CHECK(condition, "%s", #condition)
#define HAS(text) CHECK(strstr(said, text), "'%s' is not in: %s", text, said)
#define LACKS(text) CHECK(!strstr(said, text), "'%s' is in: %s", text, said)

/* What a log has printed since `hush`, and where. */
static char said[8192];
static FILE *said_to;

static int say(FILE *stream, const char *format, ...)
{
  const size_t at = strlen(said);
  va_list args;
  said_to = stream;
  va_start(args, format);
  const int len = vsnprintf(said + at, sizeof said - at, format, args);
  va_end(args);
  return len;
}

static void hush(void)
{
  said[0] = '\0';
  said_to = NULL;
}

static int lines(void)
{
  int count = 0;
  for (const char *at = said; *at; at++)
    count += *at == '\n';
  return count;
}

/* ----------------------------------------------------------- logs in memory */

static struct hg_dlog_entry places[4];
static struct hg_dlog fixed = HG_DLOG_INITIALIZER("fixed", fixed, places, 4, 0);

static void dlogs(void)
{
  hg_atomic_int32_t *c32 = NULL, *again = NULL;
  hg_atomic_int64_t *c64 = NULL;
  char name[] = "a_long_name", base[64], path[80], text[1024] = "", line[128];
  struct hg_dlog *ring = hg_dlog_alloc(name, 3, 1);
  IS(ring && !memcmp(ring->dlog_magic, HG_DLOG_STDMAGIC "a_long_", HG_DLOG_MAGICLEN));
  hg_dlog_dump(ring, say, stderr, 0);
  hg_dlog_dump_counters(ring, say, stderr, 0);
  IS(said[0] == '\0');
  for (unsigned int i = 1; i <= 5; i++)
    IS(hg_dlog_addlog(ring, "file", i, "func", i == 5 ? "msg" : NULL, i == 5 ? ring : NULL) == 1);
  hg_dlog_mkcount32(ring, &c32, "c32", "first");
  hg_dlog_mkcount64(ring, &c64, "c64", "second");
  hg_atomic_set32(c32, -5);
  hg_atomic_set64(c64, INT64_C(1) << 40);
  again = c32;
  hg_dlog_mkcount32(ring, &again, "c32", "first");
  IS(again == c32 && hg_atomic_get32(c32) == -5);
  hg_dlog_dump(ring, say, stderr, 0);
  IS(said_to == stderr && lines() == 14);
  HAS("### ----------------------\n### (a_long_) debug log summary\n### ----------------------\n"
      "# Counters\n# c32: -5 [first]\n# c64: 1099511627776 [second]\n# -\n"
      "# Number of log entries: 3\n# [");
  LACKS("file:2");
  IS(strstr(said, "] file:3\n## func()\n") < strstr(said, "] file:5\n## func()\n"));
  hush();
  hg_dlog_dump_counters(ring, say, stdout, 1);
  HAS("### --------------------------\n### (a_long_) counter log summary\n"
      "### --------------------------\n");
  HAS("# c64: 1099511627776 [second]\n");
#ifdef MERCURY2_CONFIG_H /* Mercury prints them to stderr */
  HAS("# c32: -5 [first]\n");
#endif
  hush();
  hg_thread_mutex_lock(&ring->dlock);
  hg_dlog_dump(ring, say, stdout, 1);
  hg_dlog_dump_counters(ring, say, stdout, 1);
  hg_thread_mutex_unlock(&ring->dlock);
  IS(said[0] == '\0');

  const int process = (int)getpid();
  char directory[] = "/tmp/portolan-util-log.XXXXXX";
  IS(mkdtemp(directory) != NULL);
  snprintf(base, sizeof base, "%s/log", directory);
  for (int pid = 0; pid < 2; pid++) {
    snprintf(path, sizeof path, pid ? "%s-%d.log" : "%s.log", base, process);
    hg_dlog_dump_file(ring, base, pid, 0);
    FILE *file = fopen(path, "r");
    IS(file && fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    remove(path);
    snprintf(line, sizeof line, "# START COUNTERS\nc32 %d -5 # first\nc64 %d 1099511627776 # "
             "second\n# END COUNTERS\n\n# NLOGS 3 FOR %d\n", process, process, process);
    CHECK(strstr(text, line) == text, "the file contains %s", text);
    snprintf(line, sizeof line, " %d file 5 func msg %p\n", process, (void *)ring);
    CHECK(strstr(text, " file 4 func (null) (nil)\n") && strstr(text, line), "in %s", text);
  }
  IS(rmdir(directory) == 0);
  hg_dlog_rmcount32(ring, c32);
  hg_dlog_rmcount64(ring, c64);
  hg_dlog_dump_counters(ring, say, stdout, 0);
  IS(said[0] == '\0');
  hg_dlog_resetlog(ring);
  hg_dlog_dump(ring, say, stdout, 0);
  IS(said[0] == '\0' && ring->leadds == 0);
  hg_dlog_free(ring);

  for (unsigned int i = 0; i < 6; i++) {
    hg_dlog_setlogstop(&fixed, i == 1);
    IS(hg_dlog_addlog(&fixed, "file", i, "func", NULL, NULL) == (i != 1 && i < 5));
  }
  IS(fixed.leadds == 4 && places[1].line == 2 && places[3].line == 4);
  hg_dlog_free(&fixed);
}

/* -------------------------------------------------------------- log outlets */

HG_LOG_DECL_REGISTER(app);
HG_LOG_SUBSYS_DECL_REGISTER(net, app);
HG_LOG_SUBSYS_DECL_STATE_REGISTER(off, app, HG_LOG_OFF);
HG_LOG_SUBSYS_DECL_STATE_REGISTER(on, app, HG_LOG_ON);
static HG_LOG_DEBUG_DECL_LE(trace, 8);
static HG_LOG_DEBUG_DECL_DLOG(trace) = HG_LOG_DLOG_INITIALIZER(trace, 8);
HG_LOG_DLOG_DECL_REGISTER(trace);
HG_LOG_SUBSYS_DECL_REGISTER(child, trace);
static HG_LOG_DEBUG_DECL_LE(own, 8);
static HG_LOG_DEBUG_DECL_DLOG(own) = HG_LOG_DLOG_INITIALIZER(own, 8);
HG_LOG_SUBSYS_DLOG_DECL_REGISTER(own, app);
static HG_LOG_OUTLET_DECL(late) = HG_LOG_OUTLET_SUBSYS_INITIALIZER(late, app);

static void levels(int all, int root, int sub, int quiet, int loud)
{
  const int have[] = { hg_all_log_outlet_g.level, app_log_outlet_g.level,
                       app_net_log_outlet_g.level, app_off_log_outlet_g.level,
                       app_on_log_outlet_g.level };
  const int want[] = { all, root, sub, quiet, loud };
  for (int i = 0; i < 5; i++)
    CHECK(have[i] == want[i], "outlet %d has level %d with %s", i, have[i], hg_log_get_subsys());
}

static void v_write(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  HG_LOG_VWRITE_FUNC(app, HG_LOG_LEVEL_WARNING, "part", "file", 7, "func", true, format, args);
  va_end(args);
}

static void outlets(void)
{
  enum { NONE, FATAL, ERR, WARN, MIN, INFO, DEBUG, MAX };
  const char *level = getenv("HG_LOG_LEVEL"), *names = getenv("HG_LOG_SUBSYS");
  char expected[128];
  double time;
  int at;
  CHECK_EQ(HG_LOG_LEVEL_MIN_DEBUG, MIN);
  CHECK_EQ(HG_LOG_LEVEL_MAX, MAX);
  IS(hg_log_get_level() == hg_log_name_to_level(level ? level : "fatal"));
  IS(!strcmp(hg_log_get_subsys(), names ? names : "hg_all") && hg_log_get_func() == fprintf);
  for (int i = FATAL; i < MAX; i++)
    IS((int)hg_log_name_to_level(hg_log_level_to_string((enum hg_log_level)i)) == i);
  CHECK_EQ(hg_log_name_to_level("WARN"), WARN);
  CHECK_EQ(hg_log_name_to_level("trace"), MIN);
  CHECK_EQ(hg_log_name_to_level("none"), NONE);
  CHECK_EQ(hg_log_name_to_level(NULL), NONE);
  CHECK_EQ(hg_log_name_to_level("no level"), NONE);
  IS(!strcmp(app_net_log_outlet_g.name, "net") && app_log_outlet_g.registered);

  hg_log_set_subsys("hg_all");
  hg_log_set_level(HG_LOG_LEVEL_INFO);
  levels(INFO, INFO, INFO, NONE, INFO);
  hg_log_set_subsys("~net,off,off,hg_all"); /* hg_all prints, and app has its parent's level */
  IS(!strcmp(hg_log_get_subsys(), "~net,off,hg_all"));
  levels(INFO, INFO, NONE, INFO, INFO);
  hg_log_set_subsys("net");
  levels(NONE, NONE, INFO, NONE, INFO);
  hg_log_set_subsys_level("app", HG_LOG_LEVEL_ERROR);
  IS(!strcmp(hg_log_get_subsys(), "net,app") && hg_log_get_level() == HG_LOG_LEVEL_ERROR);
  levels(NONE, ERR, ERR, NONE, ERR);
  hg_log_outlet_register(&late_log_outlet_g);
  hg_log_outlet_register(&late_log_outlet_g); /* no effect */
  IS(late_log_outlet_g.level == HG_LOG_LEVEL_ERROR && late_log_outlet_g.registered);
  hg_log_outlet_deregister(&late_log_outlet_g);
  hg_log_set_level(HG_LOG_LEVEL_WARNING);
  IS(late_log_outlet_g.level == HG_LOG_LEVEL_ERROR && !late_log_outlet_g.registered);

  hg_log_set_func(say);
  IS(hg_log_get_func() == say);
  at = __LINE__ + 1;
  HG_LOG_WRITE(app, HG_LOG_LEVEL_WARNING, "%s %d", "text", 5);
  IS(said_to == stdout && sscanf(said, "# [%lf] mercury->app", &time) == 1 && time > 0);
  snprintf(expected, sizeof expected, "] mercury->app [warning] %s:%d outlets() text 5\n", __FILE__,
           at);
  HAS(expected);
  hush();
  HG_LOG_SUBSYS_WRITE(net, app, HG_LOG_LEVEL_INFO, "not printed");
  HG_LOG_WRITE(late, HG_LOG_LEVEL_NONE, "not printed");
  IS(said[0] == '\0');
  HG_LOG_SUBSYS_WRITE(net, app, HG_LOG_LEVEL_FATAL, "fatal");
  HAS("] mercury->net [fatal] ");
  IS(said_to == stderr);
  hush();
  v_write("%d and %s", 3, "more");
  IS(strstr(said, "] mercury->app [warning] part:file:7 func() 3 and more") && lines() == 0);
  hush();
  char longer[2000];
  memset(longer, 'x', sizeof longer);
  HG_LOG_WRITE(app, HG_LOG_LEVEL_ERROR, "%.*s", 2000, longer);
  IS(strspn(strchr(said, ')') + 2, "x") == 1023 && lines() == 1);

  FILE *to = tmpfile();
  IS(to && hg_log_get_stream_error() == stderr && hg_log_get_stream_warning() == stdout);
  IS(hg_log_get_stream_debug() == stdout);
  hg_log_set_stream_error(to);
  hg_log_set_stream_warning(stderr);
  hg_log_set_stream_debug(to);
  IS(hg_log_get_stream_error() == to && hg_log_get_stream_warning() == stderr);
  hg_log_set_level(HG_LOG_LEVEL_DEBUG);
  HG_LOG_WRITE(app, HG_LOG_LEVEL_ERROR, "error");
  IS(said_to == to);
  HG_LOG_WRITE(app, HG_LOG_LEVEL_WARNING, "warning");
  IS(said_to == stderr);
  hush();
  HG_LOG_WRITE_DEBUG_EXT(app, "head", "%d\n", 42);
  IS(said_to == to && strstr(said, "() head\n42\n---\n") && lines() == 3);
  hush();
  HG_LOG_SUBSYS_WRITE_DEBUG_EXT(net, app, "head", "%d\n", 43);
  IS(strstr(said, "->net [debug] ") && strstr(said, "() head\n43\n---\n"));
  hg_log_set_level(HG_LOG_LEVEL_INFO);
  hush();
  HG_LOG_WRITE_DEBUG_EXT(app, "head", "%d\n", 42);
  IS(said[0] == '\0');

  /* MIN_DEBUG keeps the places of debug lines, and an error prints them. */
  hg_atomic_int32_t *c32 = NULL;
  hg_atomic_int64_t *c64 = NULL;
  IS(trace_child_log_outlet_g.debug_log == &trace_dlog_g && !app_log_outlet_g.debug_log);
  IS(app_own_log_outlet_g.debug_log == &own_dlog_g);
  HG_LOG_ADD_COUNTER32(trace, &c32, "c32", "first");
  HG_LOG_ADD_COUNTER64(trace, &c64, "c64", "second");
  hg_atomic_incr64(c64);
  hg_log_set_subsys("trace");
  hg_log_set_level(HG_LOG_LEVEL_WARNING);
  HG_LOG_WRITE(trace, HG_LOG_LEVEL_DEBUG, "below MIN_DEBUG");
  hg_log_dump_counters(&trace_log_outlet_g);
  IS(trace_dlog_g.leadds == 0 && said[0] == '\0');
  hg_log_set_level(HG_LOG_LEVEL_MIN_DEBUG);
  HG_LOG_WRITE(trace, HG_LOG_LEVEL_DEBUG, "kept");
  HG_LOG_SUBSYS_WRITE(child, trace, HG_LOG_LEVEL_DEBUG, "kept");
  HG_LOG_WRITE(trace, HG_LOG_LEVEL_INFO, "not kept");
  IS(trace_dlog_g.leadds == 2 && said[0] == '\0');
  HG_LOG_WRITE(trace, HG_LOG_LEVEL_WARNING, "warning");
  IS(trace_dlog_g.leadds == 2 && lines() == 1);
  HG_LOG_SUBSYS_WRITE(child, trace, HG_LOG_LEVEL_ERROR, "error");
  HAS("() error\n### ----------------------\n### (trace) debug log summary\n");
  HAS("# c64: 1 [second]\n# -\n# Number of log entries: 2\n");
  HAS("## outlets()\n");
  IS(trace_dlog_g.leadds == 0 && said_to == to);
  hush();
  hg_log_dump_counters(&trace_log_outlet_g);
  HAS("### (trace) counter log summary\n");
  HAS("# c64: 1 [second]\n");
  HG_LOG_DEL_COUNTER32(trace, c32);
  HG_LOG_DEL_COUNTER64(trace, c64);
  IS(TAILQ_EMPTY(&trace_dlog_g.cnts32) && TAILQ_EMPTY(&trace_dlog_g.cnts64));
  hg_log_set_stream_error(NULL);
  IS(hg_log_get_stream_error() == stderr);
  hg_log_set_func(fprintf);
  fclose(to);
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_util_log", &argc, &argv);
  dlogs();
  hush();
  outlets();
  return check_end_mpi();
}
