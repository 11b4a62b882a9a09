/* More utilities of Mercury 2.4: the queue without locks, pools of memory, loaded libraries,
 * affinity, and the number of the host. */
// TEST: n=1
// TEST: n=1 build=mercury
#include "check.h"

#include <mercury_atomic_queue.h>
#include <mercury_core.h>
#include <mercury_dl.h>
#include <mercury_mem_pool.h>
#include <mercury_thread.h>
#include <na_sm.h>

#define IS(condition) CHECK(condition, "%s", #condition)
#define DOES(call) IS((call) == HG_UTIL_SUCCESS)

enum { THREADS = 3, EACH = 20000, TURNS = 20000, CHUNKS = 4, CHUNK = 100 };

/* ------------------------------------------------------------------- queues */

static struct hg_atomic_queue *queue;
static hg_atomic_int32_t popped, single;
static hg_atomic_int64_t sum;
static long items[THREADS * EACH];

static HG_THREAD_RETURN_TYPE pushes(void *of)
{
  for (int i = 0; i < EACH; i++)
    while (hg_atomic_queue_push(queue, &items[*(int *)of * EACH + i]) != HG_UTIL_SUCCESS)
      hg_thread_yield();
  return NULL;
}

/* The items of one thread arrive in order at each thread that pops. */
static HG_THREAD_RETURN_TYPE pops(void *of)
{
  long last[THREADS] = { -1, -1, -1 };
  int64_t own = 0;
  (void)of;
  while (hg_atomic_get32(&popped) < THREADS * EACH) {
    long *item = hg_atomic_get32(&single) ? hg_atomic_queue_pop_sc(queue)
                                          : hg_atomic_queue_pop_mc(queue);
    if (!item) {
      hg_thread_yield();
      continue;
    }
    const long number = item - items;
    IS(number > last[number / EACH]);
    last[number / EACH] = number;
    own += number;
    hg_atomic_incr32(&popped);
  }
  for (int64_t was = hg_atomic_get64(&sum); !hg_atomic_cas64(&sum, was, was + own);)
    was = hg_atomic_get64(&sum);
  return NULL;
}

static void queues(void)
{
  int values[8];
  IS(hg_atomic_queue_alloc(6) == NULL && (queue = hg_atomic_queue_alloc(8)) != NULL);
  IS((uintptr_t)&queue->cons_head % HG_MEM_CACHE_LINE_SIZE == 0);
  IS((uintptr_t)&queue->ring[0] % HG_MEM_CACHE_LINE_SIZE == 0 && queue->prod_size == 8);
  IS(hg_atomic_queue_is_empty(queue) && hg_atomic_queue_count(queue) == 0);
  for (int round = 0; round < 50; round++) { /* the places wrap around */
    const uint64_t drops = queue->drops;
    for (int i = 0; i < 7; i++)
      DOES(hg_atomic_queue_push(queue, &values[i]));
    IS(hg_atomic_queue_count(queue) == 7 && !hg_atomic_queue_is_empty(queue));
    IS(hg_atomic_queue_push(queue, &values[7]) == HG_UTIL_FAIL && queue->drops == drops + 1);
    for (int i = 0; i < 7; i++)
      IS((i + round) % 2 ? hg_atomic_queue_pop_sc(queue) == &values[i]
                         : hg_atomic_queue_pop_mc(queue) == &values[i]);
    IS(!hg_atomic_queue_pop_sc(queue) && !hg_atomic_queue_pop_mc(queue));
    IS(hg_atomic_queue_is_empty(queue) && hg_atomic_queue_count(queue) == 0);
  }
  hg_atomic_queue_free(queue);
  for (int turn = 0; turn < 9; turn++) {
    /* one thread pops, or all of them do while others push, or all do after the others */
    const int pop_threads = turn % 3 == 0 ? 1 : THREADS, after = turn % 3 == 2;
    const int64_t count = THREADS * EACH;
    hg_thread_t push[THREADS], pop[THREADS];
    int id[THREADS] = { 0, 1, 2 };
    IS((queue = hg_atomic_queue_alloc(after ? 1 << 16 : 64)) != NULL);
    hg_atomic_set32(&single, pop_threads == 1);
    hg_atomic_set32(&popped, 0);
    hg_atomic_set64(&sum, 0);
    for (int i = 0; i < THREADS; i++)
      DOES(hg_thread_create(&push[i], pushes, &id[i]));
    for (int i = 0; after && i < THREADS; i++)
      DOES(hg_thread_join(push[i]));
    for (int i = 0; i < pop_threads; i++)
      DOES(hg_thread_create(&pop[i], pops, NULL));
    for (int i = 0; !after && i < THREADS; i++)
      DOES(hg_thread_join(push[i]));
    for (int i = 0; i < pop_threads; i++)
      DOES(hg_thread_join(pop[i]));
    IS(hg_atomic_get64(&sum) == count * (count - 1) / 2 && hg_atomic_queue_is_empty(queue));
    hg_atomic_queue_free(queue);
  }
}

/* -------------------------------------------------------------------- pools */

static struct registered {
  const char *buf;
  size_t size;
  int live;
} blocks[16];
static int registrations, refuse;
static struct hg_mem_pool *pool;

static int enter(const void *buf, size_t size, unsigned long flags, void **handle, void *arg)
{
  IS(flags == 77 && arg == blocks && size >= CHUNKS * CHUNK);
  if (refuse)
    return HG_UTIL_FAIL;
  IS(registrations < 16);
  blocks[registrations] = (struct registered){ buf, size, 1 };
  *handle = &blocks[registrations++];
  return HG_UTIL_SUCCESS;
}

static int leave(void *handle, void *arg)
{
  IS(arg == blocks && ((struct registered *)handle)->live-- == 1);
  return HG_UTIL_SUCCESS;
}

static HG_THREAD_RETURN_TYPE allocates(void *of)
{
  const char mark = (char)(1 + *(int *)of);
  for (int i = 0; i < TURNS; i++) {
    void *handle[3];
    char *chunk[3];
    for (int j = 0; j < 3; j++) {
      IS((chunk[j] = hg_mem_pool_alloc(pool, CHUNK, &handle[j])) != NULL);
      memset(chunk[j], mark, CHUNK);
    }
    if (i % 8 == 0)
      hg_thread_yield();
    for (int j = 0; j < 3; j++) {
      for (int k = 0; k < CHUNK; k++)
        IS(chunk[j][k] == mark);
      hg_mem_pool_free(pool, chunk[j], handle[j]);
    }
  }
  return NULL;
}

static void mem_pools(void)
{
  char *chunk[3 * CHUNKS], *plain[9];
  void *handle[3 * CHUNKS];
  hg_thread_t thread[THREADS];
  int id[THREADS] = { 0, 1, 2 };
  IS((pool = hg_mem_pool_create(64, 2, 1, NULL, 0, NULL, NULL)) != NULL);
  IS(hg_mem_pool_alloc(pool, 65, NULL) == NULL);
  for (int i = 0; i < 9; i++) { /* four more blocks */
    IS((plain[i] = hg_mem_pool_alloc(pool, 64, NULL)) && (uintptr_t)plain[i] % 8 == 0);
    memset(plain[i], i, 64);
  }
  for (int i = 0; i < 9; i++) {
    for (int k = 0; k < 64; k++)
      IS(plain[i][k] == i);
    hg_mem_pool_free(pool, plain[i], NULL);
  }
  hg_mem_pool_free(pool, NULL, NULL);
  hg_mem_pool_destroy(pool);
  hg_mem_pool_destroy(NULL);

  refuse = 1;
  IS(hg_mem_pool_create(CHUNK, CHUNKS, 2, enter, 77, leave, blocks) == NULL);
  refuse = 0;
  IS((pool = hg_mem_pool_create(CHUNK, CHUNKS, 2, enter, 77, leave, blocks)) != NULL);
  IS(registrations == 2 && hg_mem_pool_alloc(pool, 1, NULL) == NULL);
  for (int i = 0; i < 3 * CHUNKS; i++) {
    if (i == 2 * CHUNKS) {
      refuse = 1;
      IS(registrations == 2 && hg_mem_pool_alloc(pool, CHUNK, &handle[i]) == NULL);
      refuse = 0;
    }
    IS((chunk[i] = hg_mem_pool_alloc(pool, CHUNK, &handle[i])) != NULL);
    const struct registered *in = handle[i];
    IS(chunk[i] >= in->buf && chunk[i] + CHUNK <= in->buf + in->size);
    IS(hg_mem_pool_chunk_offset(pool, chunk[i], handle[i]) == (size_t)(chunk[i] - in->buf));
    for (int j = 0; j < i; j++)
      IS(chunk[j] + CHUNK <= chunk[i] || chunk[i] + CHUNK <= chunk[j]);
  }
  IS(registrations == 3);
  for (int i = 0; i < 3 * CHUNKS; i++)
    hg_mem_pool_free(pool, chunk[i], handle[i]);
  for (int i = 0; i < 3 * CHUNKS; i++) /* the same chunks */
    IS((chunk[i] = hg_mem_pool_alloc(pool, 1, &handle[i])) && registrations == 3);
  hg_mem_pool_free(pool, chunk[5], handle[5]);
  IS(hg_mem_pool_alloc(pool, 1, &handle[6]) == chunk[5] && handle[6] == handle[5]);
  for (int i = 0; i < THREADS; i++)
    DOES(hg_thread_create(&thread[i], allocates, &id[i]));
  for (int i = 0; i < THREADS; i++)
    DOES(hg_thread_join(thread[i]));
  IS(registrations > 3 && registrations <= 3 + 2 * THREADS && blocks[3].live == 1);
  hg_mem_pool_destroy(pool);
  for (int i = 0; i < registrations; i++)
    IS(blocks[i].live == 0);
}

/* ------------------------------------------------------------------ the rest */

static void libraries(void)
{
  char path[4096];
  double (*cosine)(double);
  HG_DL_HANDLE handle = hg_dl_open("libm.so.6");
  IS(handle != NULL && hg_dl_open("libno-such-library.so") == NULL && hg_dl_error() != NULL);
  IS(hg_dl_error() == NULL);
  *(void **)&cosine = hg_dl_sym(handle, "cos");
  IS(cosine && cosine(0) == 1 && hg_dl_sym(handle, "no_such_symbol") == NULL);
  DOES(hg_dl_get_path(*(void **)&cosine, path, sizeof path));
  CHECK(strstr(path, "/libm.so") || strstr(path, "/libm-"), "cos is in %s", path);
  DOES(hg_dl_get_path(*(void **)&cosine, path, 4));
  IS(strlen(path) == 3 && hg_dl_get_path(NULL, path, sizeof path) == HG_UTIL_FAIL);
  DOES(hg_dl_close(handle));
}

static void affinity(void)
{
  hg_cpu_set_t before, none, after;
  memset(&none, 0, sizeof none);
  DOES(hg_thread_getaffinity(hg_thread_self(), &before));
  IS(memcmp(&before, &none, sizeof none) != 0);
  DOES(hg_thread_setaffinity(hg_thread_self(), &before));
  DOES(hg_thread_getaffinity(hg_thread_self(), &after));
  IS(memcmp(&before, &after, sizeof after) == 0);
  IS(hg_thread_setaffinity(hg_thread_self(), &none) == HG_UTIL_FAIL);
}

extern long gethostid(void);

static void hosts(void)
{
  char text[NA_SM_HOST_ID_LEN + 1];
  na_sm_id_t here = -1, copy = 0;
  IS(NA_SM_Host_id_get(&here) == NA_SUCCESS && here == gethostid());
  IS(NA_SM_Host_id_to_string(here, text) == NA_SUCCESS);
  IS(NA_SM_String_to_host_id(text, &copy) == NA_SUCCESS && NA_SM_Host_id_cmp(here, copy));
  IS(NA_SM_Host_id_to_string(-2147483647L - 1, text) == NA_SUCCESS && !strcmp(text, "-2147483648"));
  IS(NA_SM_String_to_host_id("none", &copy) == NA_PROTOCOL_ERROR);
  NA_SM_Host_id_copy(&copy, here + 1);
  IS(copy == here + 1 && !NA_SM_Host_id_cmp(here, copy));

  hg_core_class_t *core = HG_Core_init("na+sm", 0);
  IS(core != NULL);
  hg_core_context_t *context = HG_Core_context_create(core);
  hg_core_addr_t self;
  IS(context && HG_Core_addr_self(core, &self) == HG_SUCCESS);
  IS(!HG_Core_class_get_na_sm(core) && !HG_Core_context_get_na_sm(context));
  IS(!HG_Core_addr_get_na_sm(self) && HG_Core_class_get_na(core));
  IS(HG_Core_addr_free(self) == HG_SUCCESS && HG_Core_context_destroy(context) == HG_SUCCESS);
  IS(HG_Core_finalize(core) == HG_SUCCESS);
}

int main(int argc, char **argv)
{
  check_start_mpi("mercury2_util_more", &argc, &argv);
  libraries();
  affinity();
  queues();
  mem_pools();
  hosts();
  return check_end_mpi();
}
