/* Queries and settings: every query, which settings can be changed, statistics; the address
 * exchange. */
// TEST: x10
#include "x10_check.h"

static int asked(x10_query_t query)
{
  int value = -12345;
  GOOD(x10_getenv(query, &value));
  CHECK(value != -12345, "query %d gives nothing", (int)query);
  return value;
}

static void who_and_where(void)
{
  char name[X10_MAX_NODE_NAME + 8], host[300];
  int tasks[64], on_node;

  CHECK_EQ(asked(X10_TASK_ID), me);
  CHECK_EQ(asked(X10_PLACE_ID), me);
  CHECK_EQ(asked(X10_NUM_TASKS), nproc);
  CHECK_EQ(asked(X10_NUM_PLACES), nproc);

  memset(name, 0x7e, sizeof name);
  GOOD(x10_getenv(X10_NODE_NAME, (int *)(void *)name));
  CHECK(memchr(name, 0, X10_MAX_NODE_NAME) != NULL, "the node's name does not end");
  CHECK(gethostname(host, sizeof host) == 0, "no host name");
  CHECK(strncmp(name, host, X10_MAX_NODE_NAME - 1) == 0, "the node is %s, not %s", name, host);
  CHECK(name[X10_MAX_NODE_NAME] == 0x7e, "the name takes more than its room");

  /* All places of a node have the same node number, and other places have different ones. */
  const int node = asked(X10_NODE_ID);
  int *nodes = check_calloc(nproc * (long)sizeof *nodes), n = 0;
  MPI_Allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, MPI_COMM_WORLD);
  on_node = asked(X10_QUERY_SHM_NUM_TASKS);
  CHECK(on_node >= 1 && on_node <= nproc && on_node <= 64, "%d places on the node", on_node);
  memset(tasks, 0xff, sizeof tasks);
  GOOD(x10_getenv(X10_QUERY_SHM_TASKS, tasks));
  for (int p = 0; p < nproc; p++)
    if (nodes[p] == node)
      CHECK_EQ(tasks[n++], p);
  CHECK_EQ(n, on_node);
  CHECK_EQ(tasks[n], -1);
  CHECK_EQ(asked(X10_QUERY_SHM_ENABLED), on_node > 1);
  free(nodes);
}

static void limits(void)
{
  const char *thread = getenv("PORTOLAN_PROGRESS_THREAD");
  int level;

  /* A job of several places has a progress thread unless it is disabled. */
  MPI_Query_thread(&level);
  if (nproc == 1 || (thread && strcmp(thread, "0") == 0))
    CHECK_EQ(asked(X10_POLLING_SET), 1);
  else if (level == MPI_THREAD_MULTIPLE)
    CHECK_EQ(asked(X10_POLLING_SET), 0);
  CHECK_EQ(asked(X10_INTERRUPT_SET), !asked(X10_POLLING_SET));
  CHECK(asked(X10_MAX_UHDR_SZ) >= 1024, "a header has %d bytes", asked(X10_MAX_UHDR_SZ));
  CHECK_EQ(asked(X10_MAX_DATA_SZ), 2147483647);
  CHECK_EQ(asked(X10_LOC_ADDRTBL_SZ), X10_TABLE_SIZE);
  CHECK_EQ(asked(X10_MAX_ATOM_SIZE), 8);
  CHECK_EQ(asked(X10_NUM_REX_BUFS), 0);
  CHECK_EQ(asked(X10_REX_BUF_SZ), 0);
  CHECK_EQ(asked(X10_MAX_PORTS), 1);
  CHECK_EQ(asked(X10_USE_THRESH), 1);
  CHECK(asked(X10_EPOCH_NUM) >= 1, "no start is counted");
  CHECK(asked(X10_MAX_PKT_SZ) >= 1024, "a piece has %d bytes", asked(X10_MAX_PKT_SZ));
  CHECK_EQ(asked(X10_BUF_CP_SIZE), asked(X10_MAX_PKT_SZ));
  CHECK(asked(X10_RCV_FIFO_SIZE) >= 65536, "%d bytes under way", asked(X10_RCV_FIFO_SIZE));
  CHECK_EQ(asked(X10_MAX_PKTS_OUT), asked(X10_RCV_FIFO_SIZE) / asked(X10_MAX_PKT_SZ));
}

static void settings(void)
{
  static const struct { x10_query_t query; int good, also; } all[] = {
    { X10_ERROR_CHK, 1, 0 }, { X10_TIMEOUT, 10, 86400 }, { X10_INTERRUPT_SET, 0, 1 },
    { X10_ACK_THRESHOLD, 1, 1000 }, { X10_POLLING_SET, 1, 0 }, { X10_AGG_LIMIT, 1, 4096 },
  };
  int value = 5;

  for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++) {
    const int before = asked(all[i].query);
    GOOD(x10_setenv(all[i].query, all[i].good));
    CHECK_EQ(asked(all[i].query), all[i].good);
    GOOD(x10_setenv(all[i].query, all[i].also));
    CHECK_EQ(asked(all[i].query), all[i].also);
    GOOD(x10_setenv(all[i].query, before));
  }
  GOOD(x10_setenv(X10_INTERRUPT_SET, 0));
  CHECK_EQ(asked(X10_POLLING_SET), 1);
  GOOD(x10_setenv(X10_POLLING_SET, 0));
  CHECK_EQ(asked(X10_INTERRUPT_SET), 1);
  CHECK(asked(X10_TIMEOUT) >= asked(X10_MIN_TIMEOUT), "the time-out is below the least");
  CHECK(asked(X10_TIMEOUT) <= asked(X10_MAX_TIMEOUT), "the time-out is above the most");

  for (int query = X10_BULK_XFER; query <= X10_RC_QP_INIT_SETUP; query++)
    CHECK_EQ(asked((x10_query_t)query), query == X10_BULK_MIN_MSG_SIZE ? 2147483647 : 0);
  FAILS(x10_getenv(X10_QUERY_SHM_STATISTICS, &value), "together");
  FAILS(x10_getenv(X10_QUERY_LOCAL_SEND_STATISTICS, &value), "together");
}

static void nothing(async_arg_t *args, int n) { (void)args; (void)n; }

static void statistics(void)
{
  x10_statistics_t a, b;
  char cells[1000], local[1000];
  void **table = x_addresses(cells);
  const int right = (me + 1) % nproc;

  memset(local, 0, sizeof local);
  GOOD(x10_setenv(X10_AGG_LIMIT, 2));   /* the seven asyncs below are three full batches and a rest */
  GOOD(x10_gfence());
  GOOD(x10_getenv(X10_QUERY_STATISTICS, (int *)(void *)&a));
  GOOD(x10_gfence());
  GOOD(x10_put(local, x_at(table, right, 0), 1000));
  GOOD(x10_put_value_int(5, x_at(table, right, 0)));
  GOOD(x10_get(x_at(table, right, 0), local, 10));
  GOOD(x10_get(x_at(table, right, 0), local, 0));       /* nothing moves */
  for (int i = 0; i < 3; i++)
    GOOD(x10_asyncSpawnInline(right, 0, nothing));
  for (int i = 0; i < 7; i++)
    GOOD(x10_asyncSpawnInlineAgg(right, 1, nothing, 1, i));
  GOOD(x10_gfence());
  GOOD(x10_getenv(X10_QUERY_STATISTICS, (int *)(void *)&b));
  CHECK_EQ(b.puts - a.puts, 2);
  CHECK_EQ(b.bytes_put - a.bytes_put, 1004);
  CHECK_EQ(b.gets - a.gets, 1);
  CHECK_EQ(b.bytes_got - a.bytes_got, 10);
  CHECK_EQ(b.spawned - a.spawned, 3);
  CHECK_EQ(b.ran - a.ran, 10);
  CHECK_EQ(b.batches - a.batches, 4);
  GOOD(x10_getenv(X10_PRINT_STATISTICS, NULL));
  GOOD(x10_gfence());
  free(table);
}

static void addresses(void)
{
  void **table = check_calloc((nproc + 1) * (long)sizeof(void *));
  static int mark;

  table[nproc] = &mark;             /* must not be overwritten */
  for (int round = 0; round < 5; round++) {
    GOOD(x10_addr_init((void *)(size_t)(me * 1000 + round + 1), table));
    for (int p = 0; p < nproc; p++)
      CHECK_EQ((size_t)table[p], p * 1000 + round + 1);
  }
  GOOD(x10_addr_init(me % 2 ? NULL : table, table));    /* NULL is an ordinary address */
  for (int p = 1; p < nproc; p += 2)
    CHECK(table[p] == NULL, "place %d gave NULL, but has %p", p, table[p]);
  if (me == nproc - 1)                                  /* an error here only */
    FAILS(x10_addr_init(&mark, NULL), "null");
  else
    GOOD(x10_addr_init(&mark, table));
  CHECK(table[nproc] == &mark, "the table is written behind its end");
  free(table);
}

int main(int argc, char **argv)
{
  setenv("X10_MAX_AGG_SIZE", "300", 1);
  x_start("x10_environment", &argc, &argv);
  CHECK_EQ(asked(X10_AGG_LIMIT), 300);
  who_and_where();
  limits();
  settings();
  statistics();
  addresses();
  return x_end();
}
