/*
 * Costs that grow with the number of ranks: start, allocation, collectives, many-to-one access,
 * memory.
 *
 *   mpiexec -n N scale_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Runs on any number of ranks, on one node or (PORTOLAN_NODE_SIZE) on virtual nodes. Rank 0 prints
 * `case<TAB>value`. Milliseconds, from the start of the first rank to the end of the last:
 *   mpi_init        MPI_Init_thread, timed on each rank separately: the maximum
 *   start           ARMCI_Init while MPI is running
 *   stop            ARMCI_Finalize; MPI keeps running
 * Microseconds per call, on the slowest rank:
 *   allocate        ARMCI_Malloc of 4 KiB, 50 segments one after the other
 *   free            ARMCI_Free of these segments
 *   allocate_many   portolan_malloc_many of 1,000 segments of 4 KiB, the whole call
 *   allocate_ten    ten calls of ARMCI_Malloc
 *   barrier         ARMCI_Barrier, and mpi_barrier, MPI_Barrier
 *   allreduce_1     armci_msg_dgop of 1 double, and mpi_allreduce_1, MPI_Allreduce
 *   allreduce_1024  the same for 1,024 doubles
 *   broadcast_1024  armci_msg_bcast of 8 KiB, by each rank in turn, and mpi_broadcast_1024
 *   counter         ARMCI_Rmw of one counter on rank 0, by all ranks at once
 *   lock            ARMCI_Lock and ARMCI_Unlock of one mutex of rank 0, by all ranks at once
 *   put_all         a put of 8 bytes to each rank and ARMCI_AllFence, by all ranks at once
 * KiB per rank, on average:
 *   memory          proportional set size at the end, minus that before ARMCI_Init
 * A case alternates with its MPI equivalent for a few rounds. The medians are printed.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <message.h>
#include <portolan.h>

#include "bench.h"

enum { SEGMENTS = 50, MANY = 1000, TEN = 10, BYTES = 4096, ROUNDS = 5, DOUBLES = 1024 };

static int me, n, round_number;
static void **segments[SEGMENTS];
static double ours[DOUBLES], theirs[DOUBLES];

static void must(int code, const char *call)
{
    if (code == 0)
        return;
    fprintf(stderr, "rank %d: %s returned %d\n", me, call, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

static void fail(const char *why)
{
    fprintf(stderr, "rank %d: %s\n", me, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Returns the proportional set size of this process in KiB. */
static double resident(void)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %lf", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    if (seconds > 0)
        nanosleep(&t, NULL);
}

/*
 * Waits for a request with sleeps, because ranks that wait inside MPI would take cores from the
 * ranks that are still being measured.
 */
static void finish(MPI_Request *request)
{
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done)
        nap(1e-3);
}

/* Returns the sum, minimum or maximum of the values of all ranks. */
static double over_all(double value, MPI_Op op)
{
    double result = value;
    MPI_Request request;
    MPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, op, MPI_COMM_WORLD, &request);
    finish(&request);
    return result;
}

/* Waits until a time at which all ranks wake up together. */
static void together(void)
{
    double at = over_all(now(), MPI_MAX) + 0.05 + 2e-3 * n;
    nap(at - now());
}

/* Returns the milliseconds from the first start to the last end. All ranks share one clock. */
static double span(double begun, double ended)
{
    return 1e3 * (over_all(ended, MPI_MAX) - over_all(begun, MPI_MIN));
}

static void print(const char *name, double value)
{
    if (me == 0)
        report(name, value);
}

static void barrier(void)
{
    ARMCI_Barrier();
}

static void mpi_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check_sum(const double *sum, int count)
{
    for (int i = 0; i < count; i++)
        if (sum[i] != (double)n * (n - 1) / 2 + i * (double)n)
            fail("a sum is wrong");
}

static void fill(double *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = me + i;
}

static void allreduce(int count)
{
    fill(ours, count);
    armci_msg_dgop(ours, count, "+");
    check_sum(ours, count);
}

static void mpi_allreduce(int count)
{
    fill(ours, count);
    MPI_Allreduce(ours, theirs, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check_sum(theirs, count);
}

static void allreduce_1(void)
{
    allreduce(1);
}

static void mpi_allreduce_1(void)
{
    mpi_allreduce(1);
}

static void allreduce_1024(void)
{
    allreduce(DOUBLES);
}

static void mpi_allreduce_1024(void)
{
    mpi_allreduce(DOUBLES);
}

static int next_root(double *data)
{
    int root = round_number++ % n;
    for (int i = 0; i < DOUBLES; i++)
        data[i] = me == root ? root + i : -1;
    return root;
}

static void check_broadcast(const double *data, int root)
{
    for (int i = 0; i < DOUBLES; i++)
        if (data[i] != root + i)
            fail("a broadcast is wrong");
}

static void broadcast_1024(void)
{
    int root = next_root(ours);
    armci_msg_bcast(ours, sizeof ours, root);
    check_broadcast(ours, root);
}

static void mpi_broadcast_1024(void)
{
    int root = next_root(ours);
    MPI_Bcast(ours, DOUBLES, MPI_DOUBLE, root, MPI_COMM_WORLD);
    check_broadcast(ours, root);
}

static void counter(void)
{
    long old;
    MUST(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, segments[0][0], 1, 0));
}

static void lock(void)
{
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
}

static void put_all(void)
{
    long value = me;
    for (int i = 1; i <= n; i++) {
        int to = (me + i) % n;
        MUST(ARMCI_Put(&value, (long *)segments[1][to] + me % (BYTES / 8), 8, to));
    }
    ARMCI_AllFence();
}

/*
 * Measures 1,000 segments in one call, alternately with ten calls of ARMCI_Malloc. Freeing is not
 * timed.
 */
static void allocate_many(void)
{
    size_t *bytes = malloc(MANY * sizeof *bytes);
    void **parts = malloc((size_t)MANY * (size_t)n * sizeof *parts);
    double us[2][ROUNDS];
    const int rounds = 3; /* few, because freeing the segments takes longer */
    if (!bytes || !parts)
        fail("no memory for the addresses of many segments");
    for (int s = 0; s < MANY; s++)
        bytes[s] = BYTES;
    for (int r = 0; r < 2 * rounds; r++) {
        const int count = r % 2 ? TEN : MANY;
        together();
        double begun = now();
        if (count == MANY)
            MUST(portolan_malloc_many(MANY, bytes, parts));
        for (int s = 0; s < count && count == TEN; s++)
            MUST(ARMCI_Malloc(parts + (long)s * n, BYTES));
        us[r % 2][r / 2] = over_all(1e6 * (now() - begun), MPI_MAX);
        for (int s = 0; s < count; s++)
            MUST(ARMCI_Free(parts[(long)s * n + me]));
    }
    print("allocate_many", median(us[0], rounds));
    print("allocate_ten", median(us[1], rounds));
    free(bytes);
    free(parts);
}

/* Returns the microseconds of one call on the slowest rank. */
static double once(operation op, long calls)
{
    together();
    double us = 1e6 * seconds_of(op, calls) / (double)calls;
    return over_all(us, MPI_MAX);
}

/* Measures two operations alternately. The second may be NULL. */
static void pair(const char *name, operation a, const char *other, operation b)
{
    operation ops[] = {a, b};
    double us[2][ROUNDS];
    long calls[2];
    int count = b ? 2 : 1, rounds = bench_quick ? 3 : ROUNDS;
    double enough = bench_quick ? 50e3 : 200e3; /* microseconds per round */
    if (!wanted(name))
        return;
    for (int o = 0; o < count; o++) {
        once(ops[o], 1); /* warm-up: connections and first touch of memory */
        double one = once(ops[o], 3);
        calls[o] = one * 3 > enough ? 3 : (long)(enough / one);
        if (calls[o] > 20000)
            calls[o] = 20000;
    }
    for (int r = 0; r < rounds; r++)
        for (int o = 0; o < count; o++)
            us[o][r] = once(ops[o], calls[o]);
    print(name, median(us[0], rounds));
    if (b)
        print(other, median(us[1], rounds));
}

int main(int argc, char **argv)
{
    int level, at = 1;
    double begun = now(), ended;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    ended = now();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const char *stray = bench_argument(argv, &at);
    if (stray) {
        if (me == 0)
            fprintf(stderr, "unknown argument '%s'\n", stray);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    print("mpi_init", 1e3 * over_all(ended - begun, MPI_MAX));
    double before = resident();

    together();
    begun = now();
    MUST(ARMCI_Init());
    ended = now();
    print("start", span(begun, ended));

    together();
    begun = now();
    for (int s = 0; s < SEGMENTS; s++) {
        segments[s] = malloc((size_t)n * sizeof(void *));
        MUST(ARMCI_Malloc(segments[s], BYTES));
        memset(segments[s][me], 0, BYTES);
    }
    ended = now();
    print("allocate", 1e3 * span(begun, ended) / SEGMENTS);
    MUST(ARMCI_Create_mutexes(me == 0));

    pair("barrier", barrier, "mpi_barrier", mpi_barrier);
    pair("allreduce_1", allreduce_1, "mpi_allreduce_1", mpi_allreduce_1);
    pair("allreduce_1024", allreduce_1024, "mpi_allreduce_1024", mpi_allreduce_1024);
    pair("broadcast_1024", broadcast_1024, "mpi_broadcast_1024", mpi_broadcast_1024);
    pair("counter", counter, NULL, NULL);
    pair("lock", lock, NULL, NULL);
    pair("put_all", put_all, NULL, NULL);

    ARMCI_Barrier();
    print("memory", over_all(resident() - before, MPI_SUM) / n);

    MUST(ARMCI_Destroy_mutexes());
    together();
    begun = now();
    for (int s = 0; s < SEGMENTS; s++)
        MUST(ARMCI_Free(segments[s][me]));
    ended = now();
    print("free", 1e3 * span(begun, ended) / SEGMENTS);
    for (int s = 0; s < SEGMENTS; s++)
        free(segments[s]);
    if (wanted("allocate_many"))
        allocate_many();
    together();
    begun = now();
    MUST(ARMCI_Finalize());
    ended = now();
    print("stop", span(begun, ended));
    MPI_Finalize();
    return 0;
}
