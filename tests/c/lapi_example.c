/*
 * The example of LAPI_Amsend, completed: each pair of tasks sends an active message and waits on
 * the completion counter.
 */
// TEST: lapi lapi-moving
#include "lapi_check.h"

enum { DATA_LEN = 1000 };

static int received[DATA_LEN];
static volatile int completed;

/* Completion handler, run on the target task. */
static void compl_hndlr(lapi_handle_t *handle, void *user_info)
{
  CHECK(*handle == hndl, "the handle");
  CHECK(user_info == received, "user_info");
  completed = received[DATA_LEN - 1];
}

/* Header handler, run on the target task. */
static void *hdr_hndlr(lapi_handle_t *handle, void *uhdr, uint *uhdr_len, ulong *msg_len,
                       compl_hndlr_t **cmpl_hndlr, void **user_info)
{
  (void)uhdr;
  CHECK(*handle == hndl, "the handle");
  CHECK_EQ(*uhdr_len, 0);
  CHECK_EQ(*msg_len, DATA_LEN * sizeof(int));
  /* Set the completion handler and its argument. */
  *cmpl_hndlr = compl_hndlr;
  *user_info = received;
  /* Return the address to which LAPI copies the data. */
  return received;
}

int main(int argc, char **argv)
{
  int task_id, num_tasks, buddy, sender, current;
  lapi_cntr_t cmpl_cntr;
  int data_buffer[DATA_LEN];

  lapi_start("lapi_example", &argc, &argv);
  LAPI_OK(LAPI_Qenv(hndl, TASK_ID, &task_id));
  LAPI_OK(LAPI_Qenv(hndl, NUM_TASKS, &num_tasks));
  void **hdr_hndlr_list = check_calloc(num_tasks * (long)sizeof(void *));

  /* Exchange the addresses of the header handlers. */
  LAPI_OK(LAPI_Address_init(hndl, (void *)&hdr_hndlr, hdr_hndlr_list));

  /* Pairs are tasks 0 and 1, 2 and 3, ...; an unpaired last task sends to itself. */
  sender = task_id % 2 == 0;
  buddy = sender ? task_id + 1 : task_id - 1;
  if (buddy == num_tasks)
    buddy = task_id;

  if (sender) {
    for (int i = 0; i < DATA_LEN; i++)
      data_buffer[i] = 1000 * task_id + i;
    LAPI_OK(LAPI_Setcntr(hndl, &cmpl_cntr, 0));
    /* Synchronize before the data transfer. */
    LAPI_OK(LAPI_Gfence(hndl));
    LAPI_OK(LAPI_Amsend(hndl, (uint)buddy, (void *)hdr_hndlr_list[buddy], NULL, 0,
                        &data_buffer[0], DATA_LEN * sizeof(int), NULL, NULL, &cmpl_cntr));
    /* Wait on the completion counter before continuing. */
    LAPI_OK(LAPI_Waitcntr(hndl, &cmpl_cntr, 1, &current));
    CHECK_EQ(current, 0);
  } else {
    /* Match the origin's synchronization before the data transfer. */
    LAPI_OK(LAPI_Gfence(hndl));
  }

  LAPI_OK(LAPI_Gfence(hndl));       /* the sender has seen that the handler ran */
  if (!sender || buddy == task_id) {
    CHECK_EQ(completed, 1000 * buddy + DATA_LEN - 1);
    for (int i = 0; i < DATA_LEN; i++)
      CHECK_EQ(received[i], 1000 * buddy + i);
  } else {
    CHECK_EQ(completed, 0);
  }
  free(hdr_hndlr_list);
  return lapi_end();
}
