/* The utilities of Mercury 2.4: time, threads and their locks, a pool of threads, atomics, events
 * and polls, a hash table, memory; and names of Boost's preprocessor that programs use. */
// TEST: n=1
// TEST: n=1 build=mercury
#include "check.h"

#include <mercury_atomic.h>
#include <mercury_event.h>
#include <mercury_hash_string.h>
#include <mercury_hash_table.h>
#include <mercury_inet.h>
#include <mercury_macros.h>
#include <mercury_mem.h>
#include <mercury_param.h>
#include <mercury_poll.h>
#include <mercury_thread_pool.h>
#include <mercury_thread_rwlock.h>
#include <mercury_thread_spin.h>
#include <mercury_util.h>

#define IS(condition) CHECK(condition, "%s", #condition)
#define DOES(call) IS((call) == HG_UTIL_SUCCESS)

enum { WORKERS = 3, WORK = 50, TURNS = 200 };

static hg_atomic_int32_t atomic = HG_ATOMIC_VAR_INIT(0);
static hg_thread_mutex_t mutex = HG_THREAD_MUTEX_INITIALIZER;
static hg_thread_spin_t spin;
static hg_thread_cond_t cond;
static int by_mutex, by_spin, ran, freed_keys, freed_values;

static void times(void)
{
  hg_time_t a = hg_time_from_ms(1999), b = hg_time_from_double(0.5), now, later;
  IS(a.tv_sec == 1 && a.tv_nsec == 999000000 && hg_time_to_ms(a) == 1999);
  IS(b.tv_sec == 0 && b.tv_nsec == 500000000);
  hg_time_t sum = hg_time_add(a, b), difference = hg_time_subtract(sum, a);
  IS(sum.tv_sec == 2 && sum.tv_nsec == 499000000);
  IS(difference.tv_sec == 0 && difference.tv_nsec == 500000000);
  IS(hg_time_less(b, a) && !hg_time_less(a, b) && !hg_time_less(a, a));
  IS(hg_time_diff(sum, a) == 0.5 && hg_time_to_double(sum) == 2.499);
  DOES(hg_time_get_current(&now));
  DOES(hg_time_sleep(hg_time_from_ms(2)));
  DOES(hg_time_get_current(&later));
  IS(hg_time_diff(later, now) >= 0.002);
  DOES(hg_time_get_current_ms(&later));
  IS(hg_time_stamp() && strlen(hg_time_stamp()) > 10);
}

static HG_THREAD_RETURN_TYPE count(void *turns)
{
  for (int i = 0; i < *(int *)turns; i++) {
    hg_thread_mutex_lock(&mutex);
    by_mutex++;
    hg_thread_mutex_unlock(&mutex);
    hg_thread_spin_lock(&spin);
    by_spin++;
    hg_thread_spin_unlock(&spin);
    hg_atomic_incr32(&atomic);
    if (i % 16 == 0)
      DOES(hg_thread_yield());
  }
  return NULL;
}

static void threads(void)
{
  hg_thread_t thread[WORKERS];
  hg_thread_rwlock_t rwlock;
  hg_thread_key_t key;
  int turns = TURNS;
  DOES(hg_thread_spin_init(&spin));
  for (int i = 0; i < WORKERS; i++) {
    hg_thread_init(&thread[i]);
    DOES(hg_thread_create(&thread[i], count, &turns));
  }
  for (int i = 0; i < WORKERS; i++)
    DOES(hg_thread_join(thread[i]));
  IS(by_mutex == WORKERS * TURNS && by_spin == by_mutex && hg_atomic_get32(&atomic) == by_mutex);
  IS(hg_thread_equal(hg_thread_self(), hg_thread_self()));
  DOES(hg_thread_key_create(&key));
  DOES(hg_thread_setspecific(key, &turns));
  IS(hg_thread_getspecific(key) == &turns);
  DOES(hg_thread_key_delete(key));
  DOES(hg_thread_rwlock_init(&rwlock));
  hg_thread_rwlock_rdlock(&rwlock);
  DOES(hg_thread_rwlock_try_rdlock(&rwlock));
  IS(hg_thread_rwlock_try_wrlock(&rwlock) == HG_UTIL_FAIL);
  hg_thread_rwlock_release_rdlock(&rwlock);
  hg_thread_rwlock_release_rdlock(&rwlock);
  hg_thread_rwlock_wrlock(&rwlock);
  IS(hg_thread_rwlock_try_rdlock(&rwlock) == HG_UTIL_FAIL);
  hg_thread_rwlock_release_wrlock(&rwlock);
  DOES(hg_thread_rwlock_destroy(&rwlock));
  hg_thread_mutex_lock(&mutex);
  IS(hg_thread_mutex_try_lock(&mutex) == HG_UTIL_FAIL);
  DOES(hg_thread_cond_init(&cond));
  IS(hg_thread_cond_timedwait(&cond, &mutex, 5) == HG_UTIL_FAIL);
  hg_thread_mutex_unlock(&mutex);
  DOES(hg_thread_spin_try_lock(&spin));
  IS(hg_thread_spin_try_lock(&spin) == HG_UTIL_FAIL);
  hg_thread_spin_unlock(&spin);
  DOES(hg_thread_spin_destroy(&spin));
}

static HG_THREAD_RETURN_TYPE run(void *arg)
{
  (void)arg;
  hg_thread_mutex_lock(&mutex);
  ran++;
  DOES(hg_thread_cond_broadcast(&cond));
  hg_thread_mutex_unlock(&mutex);
  return NULL;
}

static void pools(void)
{
  struct hg_thread_work work[2][WORK] = { { { .func = NULL } } };
  hg_thread_pool_t *pool;
  DOES(hg_thread_pool_init(WORKERS, &pool));
  IS(hg_thread_pool_post(pool, &work[0][0]) == HG_UTIL_FAIL);
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < WORK; i++) {
      work[half][i].func = run;
      DOES(hg_thread_pool_post(pool, &work[half][i]));
    }
    hg_thread_mutex_lock(&mutex);
    while (half == 0 && ran < WORK)
      DOES(hg_thread_cond_wait(&cond, &mutex));
    hg_thread_mutex_unlock(&mutex);
  }
  DOES(hg_thread_pool_destroy(pool)); /* after the rest of the work */
  IS(ran == 2 * WORK);
  DOES(hg_thread_cond_destroy(&cond));
  DOES(hg_thread_mutex_destroy(&mutex));
}

static void atomics(void)
{
  hg_atomic_int64_t x;
  hg_atomic_init64(&x, 5);
  IS(hg_atomic_incr64(&x) == 6 && hg_atomic_decr64(&x) == 5);
  IS(hg_atomic_or64(&x, 8) == 5 && hg_atomic_xor64(&x, 1) == 13 && hg_atomic_and64(&x, 4) == 12);
  IS(hg_atomic_get64(&x) == 4 && !hg_atomic_cas64(&x, 5, 9) && hg_atomic_cas64(&x, 4, 9));
  hg_atomic_set64(&x, INT64_MAX);
  hg_atomic_fence();
  IS(hg_atomic_get64(&x) == INT64_MAX);
}

static void events(void)
{
  struct hg_poll_event add = { HG_POLLIN, { .u64 = 77 } }, found[4];
  unsigned int n = 9;
  bool set = true;
  hg_poll_set_t *poll = hg_poll_create();
  const int fd = hg_event_create();
  IS(poll && fd >= 0 && hg_poll_get_fd(poll) >= 0);
  DOES(hg_poll_add(poll, fd, &add));
  IS(hg_poll_add(poll, fd, &add) == HG_UTIL_FAIL);
  DOES(hg_poll_wait(poll, 0, 4, found, &n));
  IS(n == 0);
  DOES(hg_event_set(fd));
  DOES(hg_poll_wait(poll, 1000, 4, found, &n));
  IS(n == 1 && found[0].events == HG_POLLIN && found[0].data.u64 == 77);
  DOES(hg_event_get(fd, &set));
  IS(set);
  DOES(hg_event_get(fd, &set));
  IS(!set);
  DOES(hg_poll_remove(poll, fd));
  IS(hg_poll_remove(poll, fd) == HG_UTIL_FAIL);
  DOES(hg_poll_destroy(poll));
  DOES(hg_event_destroy(fd));
}

static unsigned int hash(hg_hash_table_key_t key)
{
  return hg_hash_string(key) % 7; /* chains of several entries */
}

static int equal(hg_hash_table_key_t a, hg_hash_table_key_t b)
{
  return !strcmp(a, b);
}

static void free_key(hg_hash_table_key_t key)
{
  freed_keys++;
  free(key);
}

static void free_value(hg_hash_table_value_t value)
{
  freed_values++;
  free(value);
}

static char *number(int i)
{
  char *text = check_calloc(16);
  snprintf(text, 16, "%d", i);
  return text;
}

static void tables(void)
{
  enum { ENTRIES = 300 };
  hg_hash_table_iter_t iter;
  char seen[ENTRIES] = { 0 };
  int entries = 0;
  hg_hash_table_t *table = hg_hash_table_new(hash, equal);
  IS(table && hg_hash_string("ab") == (5381u * 33 + 'a') * 33 + 'b');
  hg_hash_table_register_free_functions(table, free_key, free_value);
  for (int i = 0; i < ENTRIES; i++)
    IS(hg_hash_table_insert(table, number(i), number(i)));
  IS(hg_hash_table_insert(table, number(7), number(7)) && freed_keys == 1 && freed_values == 1);
  IS(hg_hash_table_remove(table, "8") && !hg_hash_table_remove(table, "8"));
  IS(hg_hash_table_num_entries(table) == ENTRIES - 1);
  IS(!hg_hash_table_lookup(table, "8") && !strcmp(hg_hash_table_lookup(table, "299"), "299"));
  hg_hash_table_iterate(table, &iter);
  while (hg_hash_table_iter_has_more(&iter)) {
    seen[atoi(hg_hash_table_iter_next(&iter))]++;
    entries++;
  }
  IS(entries == ENTRIES - 1 && seen[7] == 1 && seen[8] == 0 && seen[299] == 1);
  IS(hg_hash_table_iter_next(&iter) == HG_HASH_TABLE_NULL);
  hg_hash_table_free(table);
  IS(freed_keys == ENTRIES + 1 && freed_values == freed_keys);
}

static void memory(void)
{
  char name[64];
  char *aligned = hg_mem_aligned_alloc(256, 100), *headed = hg_mem_header_alloc(10, 64, 100);
  IS(aligned && (uintptr_t)aligned % 256 == 0 && headed && (uintptr_t)headed % 64 == 0);
  memset(headed - 10, 1, 110);
  hg_mem_aligned_free(aligned);
  hg_mem_header_free(10, 64, headed);
  IS(hg_mem_get_page_size() >= 4096);
  snprintf(name, sizeof name, "/mercury2_util-%d", (int)getpid());
  IS(hg_mem_shm_map(name, 4096, false) == NULL);
  char *one = hg_mem_shm_map(name, 4096, true), *two = hg_mem_shm_map(name, 4096, false);
  IS(one && two && hg_mem_shm_map(name, 8192, false) == NULL);
  one[4095] = 42;
  IS(two[4095] == 42);
  DOES(hg_mem_shm_unmap(NULL, two, 4096));
  DOES(hg_mem_shm_unmap(name, one, 4096));
  IS(hg_mem_shm_map(name, 4096, false) == NULL);
}

int main(int argc, char **argv)
{
  unsigned int major, minor;
  check_start_mpi("mercury2_util", &argc, &argv);
  times();
  threads();
  pools();
  atomics();
  events();
  tables();
  memory();
  HG_Util_version_get(&major, &minor, NULL);
  IS(major == HG_UTIL_VERSION_MAJOR && minor == HG_UTIL_VERSION_MINOR);
  IS(ntohll(htonll(UINT64_C(0x0102030405060708))) == UINT64_C(0x0102030405060708));
  IS(MAX(1, 2) == 2 && powerof2(8) && bswap_16(0x0102) == 0x0201);
  IS(BOOST_PP_CAT(ENO, MEM) == ENOMEM && !strcmp(BOOST_PP_STRINGIZE(a b), "a b"));
  IS(!strcmp(BOOST_PP_STRINGIZE(BOOST_PP_SEQ_HEAD((x)(y)(z))), "x"));
  IS(!strcmp(BOOST_PP_STRINGIZE(BOOST_PP_SEQ_TAIL((x)(y))), "(y)"));
  IS(NA_VERSION_MAJOR == 6 && (HG_BULK_EAGER & HG_BULK_SM) == 0);
  return check_end_mpi();
}
