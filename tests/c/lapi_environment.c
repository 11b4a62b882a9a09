/*
 * Queries, settings, statistics, polling; several contexts one after the other.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

#include <limits.h>

static lapi_cntr_t tgt, cmpl;
static void **tgt_of;
static char room[1 << 20];

HEADER_HANDLER(header)
{
  return room;
}

static void queries(void)
{
  int value[64 + 1], tasks = 0;

  for (int query = 0; query < LAST_QUERY; query++) {
    if (query == QUERY_STATISTICS || query == QUERY_SHM_STATISTICS ||
        query == QUERY_LOCAL_SEND_STATISTICS || query == QUERY_SHM_TASKS ||
        query == PRINT_STATISTICS)
      continue;
    value[0] = -77;
    value[1] = -78;
    LAPI_OK(LAPI_Qenv(hndl, (lapi_query_t)query, value));
    CHECK(value[0] >= 0, "query %d gives %d", query, value[0]);
    CHECK_EQ(value[1], -78);
  }
  LAPI_OK(LAPI_Qenv(hndl, ERROR_CHK, value));
  CHECK_EQ(value[0], 0);
  LAPI_OK(LAPI_Qenv(hndl, MIN_TIMEOUT, &value[0]));
  LAPI_OK(LAPI_Qenv(hndl, TIMEOUT, &value[1]));
  LAPI_OK(LAPI_Qenv(hndl, MAX_TIMEOUT, &value[2]));
  CHECK(value[0] <= value[1] && value[1] <= value[2], "timeouts %d %d %d", value[0], value[1],
        value[2]);
  LAPI_OK(LAPI_Qenv(hndl, QUERY_SHM_NUM_TASKS, &tasks));
  CHECK(tasks >= 1 && tasks <= nproc, "%d neighbours", tasks);
  for (int i = 0; i <= 64; i++)
    value[i] = -5;
  LAPI_OK(LAPI_Qenv(hndl, QUERY_SHM_TASKS, value));
  int found = 0;
  for (int i = 0; i < tasks; i++) {
    CHECK(value[i] >= 0 && value[i] < nproc, "neighbour %d", value[i]);
    found += value[i] == me;
  }
  CHECK_EQ(found, 1);
  CHECK_EQ(value[tasks], -5);
  LAPI_OK(LAPI_Qenv(hndl, QUERY_SHM_ENABLED, value));
  CHECK_EQ(value[0], tasks > 1);
  CHECK_EQ(LAST_QUERY, 37);
  LAPI_OK(LAPI_Qenv(hndl, BULK_XFER, value));
  CHECK_EQ(value[0], 0);                /* so no message is long enough */
  LAPI_OK(LAPI_Qenv(hndl, BULK_MIN_MSG_SIZE, value));
  CHECK_EQ(value[0], INT_MAX);
  for (int query = RDMA_REMOTE_RCXT_AVAIL; query <= RC_QP_INIT_SETUP; query++) {
    LAPI_OK(LAPI_Qenv(hndl, (lapi_query_t)query, value));
    CHECK_EQ(value[0], 0);
  }

  static const struct { lapi_query_t query; int low, high; } settable[] = {
    { ERROR_CHK, 0, 1 }, { INTERRUPT_SET, 0, 1 }, { TIMEOUT, 10, 86400 }, { ACK_THRESHOLD, 1, 30 },
  };
  for (int i = 0; i < 4; i++) {
    int before;
    LAPI_OK(LAPI_Qenv(hndl, settable[i].query, &before));
    LAPI_OK(LAPI_Senv(hndl, settable[i].query, settable[i].low));
    LAPI_OK(LAPI_Qenv(hndl, settable[i].query, value));
    CHECK_EQ(value[0], settable[i].low);
    LAPI_OK(LAPI_Senv(hndl, settable[i].query, settable[i].high));
    LAPI_OK(LAPI_Qenv(hndl, settable[i].query, value));
    CHECK_EQ(value[0], settable[i].high);
    LAPI_OK(LAPI_Senv(hndl, settable[i].query, before));
  }
}

static lapi_statistics_t statistics_of(lapi_query_t query)
{
  lapi_statistics_t is;
  memset(&is, 0xee, sizeof is);
  LAPI_OK(LAPI_Qenv(hndl, query, (int *)&is));
  return is;
}

/* The node path and sends to the own task have statistics of their own; the total includes both. */
static void statistics(void)
{
  enum { N = 7 };
  int neighbours, list[64], near = 0;
  LAPI_OK(LAPI_Qenv(hndl, QUERY_SHM_NUM_TASKS, &neighbours));
  LAPI_OK(LAPI_Qenv(hndl, QUERY_SHM_TASKS, list));
  const uint right = (uint)((me + 1) % nproc);
  for (int i = 0; i < neighbours; i++)
    near += list[i] == (int)right && list[i] != me;

  LAPI_OK(LAPI_Gfence(hndl));
  lapi_statistics_t all = statistics_of(QUERY_STATISTICS), node = statistics_of(QUERY_SHM_STATISTICS);
  lapi_statistics_t own = statistics_of(QUERY_LOCAL_SEND_STATISTICS);
  for (int i = 0; i < N; i++) {
    LAPI_OK(LAPI_Amsend(hndl, right, (void *)1, NULL, 0, room, 100, NULL, NULL, &cmpl));
    LAPI_OK(LAPI_Amsend(hndl, (uint)me, (void *)1, NULL, 0, room, 10, NULL, NULL, &cmpl));
  }
  LAPI_WAIT(&cmpl, 2 * N);
  lapi_statistics_t all2 = statistics_of(QUERY_STATISTICS), node2 = statistics_of(QUERY_SHM_STATISTICS);
  lapi_statistics_t own2 = statistics_of(QUERY_LOCAL_SEND_STATISTICS);
  const int alone = (int)right == me;
  CHECK_EQ(all2.Tot_pkt_sent_cnt - all.Tot_pkt_sent_cnt, 2 * N);
  CHECK_EQ(all2.Tot_data_sent - all.Tot_data_sent, 110 * N);
  CHECK_EQ(node2.Tot_pkt_sent_cnt - node.Tot_pkt_sent_cnt, near ? N : 0);
  CHECK_EQ(node2.Tot_data_sent - node.Tot_data_sent, near ? 100 * N : 0);
  CHECK_EQ(node2.Tot_ack_recv_cnt - node.Tot_ack_recv_cnt, near ? N : 0);
  CHECK_EQ(own2.Tot_pkt_sent_cnt - own.Tot_pkt_sent_cnt, alone ? 2 * N : N);
  CHECK_EQ(own2.Tot_pkt_recv_cnt - own.Tot_pkt_recv_cnt, alone ? 2 * N : N);
  CHECK_EQ(own2.Tot_data_recv - own.Tot_data_recv, alone ? 110 * N : 10 * N);
  CHECK_EQ(own2.Tot_dup_pkt_cnt, 0);
  CHECK_EQ(all2.Tot_retrans_pkt_cnt, 0);
  LAPI_OK(LAPI_Qenv(hndl, PRINT_STATISTICS, list));
  LAPI_OK(LAPI_Gfence(hndl));
}

static void polling(void)
{
  lapi_msg_info_t info;

  LAPI_OK(LAPI_Gfence(hndl));
  check_nap(20);
  memset(&info, 0xff, sizeof info);
  LAPI_OK(LAPI_Msgpoll(hndl, 10, &info));
  CHECK_EQ(info.status, LAPI_DISP_CNTR);
  LAPI_OK(LAPI_Msgpoll(hndl, 0, &info));
  CHECK_EQ(info.status, LAPI_DISP_CNTR);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Either this thread or the progress thread may find the message. The counter is incremented in
   * both cases, and the status of the polls is consistent with it. */
  const int right = (me + 1) % nproc;
  LAPI_OK(LAPI_Amsend(hndl, (uint)right, (void *)1, NULL, 0, room, sizeof room, tgt_of[right],
                      NULL, NULL));
  int seen = 0;
  while (lapi_value(&tgt) == 0) {
    LAPI_OK(LAPI_Msgpoll(hndl, 1000, &info));
    CHECK((info.status & ~(uint)(LAPI_BOTH_COMPLETE | LAPI_DISP_CNTR)) == 0, "status %x", info.status);
    seen |= (int)info.status;
  }
  CHECK(seen == 0 || seen & (LAPI_BOTH_COMPLETE | LAPI_DISP_CNTR), "status %x", (unsigned)seen);
  LAPI_WAIT(&tgt, 1);
  LAPI_OK(LAPI_Gfence(hndl));
}

/* LAPI_Term completes messages that no call has waited for. */
static volatile int late;

static void late_completion(lapi_handle_t *h, void *info)
{
  (void)h, (void)info;
  check_nap(5);
  late++;
}

HEADER_HANDLER(late_header)
{
  *comp_h = late_completion;
  return room;
}

int main(int argc, char **argv)
{
  lapi_info_t info;

  lapi_start("lapi_environment", &argc, &argv);
  lapi_zero(&tgt);
  lapi_zero(&cmpl);
  LAPI_OK(LAPI_Addr_set(hndl, (void *)header, 1));
  tgt_of = lapi_exchange(&tgt);
  queries();
  statistics();
  polling();
  LAPI_OK(LAPI_Term(hndl));

  memset(&info, 0, sizeof info);
  info.lib_vers = LAST_LIB;
  for (int life = 0; life < 3; life++) {
    static const uint instances[] = { 1, 7, 16 };   /* all select the same instance */
    info.instance_no = instances[life];
    info.num_compl_hndlr_thr = life * 100 - 1;      /* ignored */
    LAPI_OK(LAPI_Init(&hndl, &info));
    const int right = (me + 1) % nproc;
    void **late_of = lapi_exchange((void *)late_header);
    late = 0;
    LAPI_OK(LAPI_Gfence(hndl));
    for (int i = 0; i < 5; i++)
      LAPI_OK(LAPI_Amsend(hndl, (uint)right, late_of[right], NULL, 0, NULL, 0, NULL, NULL, NULL));
    LAPI_OK(LAPI_Term(hndl));
    CHECK_EQ(late, 5);
    free(late_of);
  }

  LAPI_OK(LAPI_Init(&hndl, &info));
  free(tgt_of);
  return lapi_end();
}
