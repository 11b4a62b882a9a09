/*
 * Several threads of a rank that put, get, accumulate, count and send active messages at once.
 *
 *   mpiexec -n 2 threads_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Rank 0 has 1, 2 and 4 threads, not bound to cores. Rank 1 is the target and waits in a barrier.
 * Each thread uses its own memory there, 64 KiB and a cache line away from the next thread's.
 *
 *   memory      the reference: each thread writes 8 bytes of its own with a call that is not
 *               inlined, which shows how the cores of the machine scale
 *   put8, get8, put4k, acc8, fetch_add
 *   put8_slabs  each thread alternates puts into two segments, which are large enough to have
 *               their own arenas
 *   am8         active messages of 8 bytes (LAPI_Amsend), with the fence that ends them. The
 *               target runs one handler at a time, which limits the rate, and needs a core
 *
 * Prints `name<TAB>value`, medians of alternating rounds: CASE_T, the million operations per second
 * of T threads together, and CASE_gain, the rate of two threads divided by that of one.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <lapi.h>
#include <pthread.h>

#include "bench.h"

enum { MOST_THREADS = 4, APART = (64 << 10) + 64, SLAB = 64 << 20, HANDLER = 1, BATCH = 64, TARGET = 1 };

static int me;
static char *parts[MOST_THREADS], *slabs[2];
static char (*local)[APART];    /* one buffer per thread */
static lapi_handle_t lapi;
static long handled;            /* at the target, which runs one handler at a time */

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "threads_bench: rank %d: %s\n", me, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* ---- batches of BATCH operations -------------------------------------------- */

__attribute__((noinline)) static void write8(char *to, const char *from)
{
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    memcpy(to, from, 8);
}

static void memory(int t)
{
    for (int i = 0; i < BATCH; i++)
        write8(local[t], local[t] + 8);
}

static void put8(int t)
{
    for (int i = 0; i < BATCH; i++)
        ARMCI_Put(local[t], parts[t], 8, TARGET);
}

static void get8(int t)
{
    for (int i = 0; i < BATCH; i++)
        ARMCI_Get(parts[t], local[t], 8, TARGET);
}

static void put4k(int t)
{
    for (int i = 0; i < BATCH; i++)
        ARMCI_Put(local[t], parts[t], 4096, TARGET);
}

static void acc8(int t)
{
    double one = 1.0;
    for (int i = 0; i < BATCH; i++)
        ARMCI_Acc(ARMCI_ACC_DBL, &one, local[t], parts[t], 8, TARGET);
}

static void fetch_add(int t)
{
    long fetched;
    for (int i = 0; i < BATCH; i++)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &fetched, parts[t] + 8, 1, TARGET);
}

static void put8_slabs(int t)
{
    for (int i = 0; i < BATCH; i++)
        ARMCI_Put(local[t], slabs[i % 2] + t * APART, 8, TARGET);
}

static void am8(int t)
{
    for (int i = 0; i < BATCH; i++)
        if (LAPI_Amsend(lapi, TARGET, (void *)HANDLER, NULL, 0, local[t], 8, NULL, NULL, NULL) != LAPI_SUCCESS)
            fail("LAPI_Amsend failed");
}

static void *counts(lapi_handle_t *h, void *uhdr, uint *uhdr_len, ulong *msg_len, compl_hndlr_t **comp, void **info)
{
    lapi_return_info_t *message = (lapi_return_info_t *)msg_len;
    (void)h, (void)uhdr, (void)uhdr_len, (void)comp, (void)info;
    static char taken[64];
    if (message->udata_one_pkt_ptr)
        memcpy(taken, message->udata_one_pkt_ptr, 8);
    handled++;
    return NULL;
}

/* ---- threads ----------------------------------------------------------------- */

static void (*work)(int);
static pthread_barrier_t start;
static volatile int stop;
static long done[MOST_THREADS][8]; /* one cache line per thread */

static void *run(void *thread)
{
    const int t = (int)(long)thread;
    long batches = 0;
    work(t);
    pthread_barrier_wait(&start);
    for (; !stop; batches++)
        work(t);
    done[t][0] = batches * BATCH;
    return NULL;
}

/* Returns million operations per second of the given number of threads. */
static double rate(int threads, long *sent)
{
    const double seconds = bench_quick ? 0.02 : 0.1;
    const struct timespec slice = {0, (long)(seconds * 1e9)};
    pthread_t id[MOST_THREADS];
    long all = 0;
    stop = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (long t = 0; t < threads; t++)
        if (pthread_create(&id[t], NULL, run, (void *)t) != 0)
            fail("no thread");
    pthread_barrier_wait(&start);
    const double begun = now();
    nanosleep(&slice, NULL);
    stop = 1;
    for (int t = 0; t < threads; t++)
        pthread_join(id[t], NULL);
    if (work == am8)
        LAPI_Fence(lapi);
    const double elapsed = now() - begun;
    for (int t = 0; t < threads; t++)
        all += done[t][0];
    *sent += all + threads * BATCH;
    pthread_barrier_destroy(&start);
    return (double)all / elapsed * 1e-6;
}

static void scale(const char *name, void (*operation)(int))
{
    static const int threads[] = {1, 2, 4};
    double value[3][MAX_REPS], gain[MAX_REPS];
    const int rounds = bench_quick ? 5 : 11;
    char label[64];
    long sent = 0;
    if (!wanted(name))
        return;
    handled = 0;
    for (int t = 0; t < MOST_THREADS && me == TARGET; t++)
        memset(parts[t], 0, 16);
    ARMCI_Barrier();
    if (me == 0) {
        work = operation;
        for (int r = 0; r < rounds; r++) {
            for (int n = 0; n < 3; n++)
                value[n][r] = rate(threads[n], &sent);
            gain[r] = value[1][r] / value[0][r];
        }
        for (int n = 0; n < 3; n++) {
            snprintf(label, sizeof label, "%s_%d", name, threads[n]);
            report(label, median(value[n], rounds));
        }
        snprintf(label, sizeof label, "%s_gain", name);
        report(label, median(gain, rounds));
        if (operation == fetch_add)
            for (int t = 0; t < MOST_THREADS; t++)
                sent -= ARMCI_GetValueLong(parts[t] + 8, TARGET);
    }
    ARMCI_Barrier();
    MPI_Bcast(&sent, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (operation == fetch_add && sent != 0)
        fail("counts were lost");
    if (operation == am8 && me == TARGET && handled != sent)
        fail("messages were lost");
}

int main(int argc, char **argv)
{
    const char *unknown;
    int at = 1, ranks, level;
    lapi_info_t info = {0};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    ARMCI_Init();
    if (LAPI_Init(&lapi, &info) != LAPI_SUCCESS)
        fail("LAPI_Init failed");
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((unknown = bench_argument(argv, &at)) != NULL || ranks != 2 || level != MPI_THREAD_MULTIPLE)
        fail(unknown ? unknown : "wants two ranks and MPI_THREAD_MULTIPLE");
    if (LAPI_Addr_set(lapi, (void *)counts, HANDLER) != LAPI_SUCCESS)
        fail("LAPI_Addr_set failed");
    local = calloc(MOST_THREADS, sizeof *local);
    void *bases[3][2];
    for (int s = 0; s < 3; s++)
        if (ARMCI_Malloc(bases[s], s == 0 ? MOST_THREADS * APART : SLAB) != 0 || !local)
            fail("no memory");
    for (int t = 0; t < MOST_THREADS; t++)
        parts[t] = (char *)bases[0][TARGET] + t * APART;
    slabs[0] = bases[1][TARGET];
    slabs[1] = bases[2][TARGET];
    scale("memory", memory);
    scale("put8", put8);
    scale("get8", get8);
    scale("put4k", put4k);
    scale("acc8", acc8);
    scale("fetch_add", fetch_add);
    scale("put8_slabs", put8_slabs);
    scale("am8", am8);
    for (int s = 0; s < 3; s++)
        ARMCI_Free(bases[s][me]);
    free(local);
    LAPI_Term(lapi);
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
