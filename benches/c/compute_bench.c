/*
 * A rank that computes while another rank reads and writes its memory.
 *
 *   mpiexec -n 2 compute_bench [--quick]
 *
 * Rank 0 computes, on one thread or on one thread per core, and makes no calls. Rank 1, on another
 * node, does one of the following: it requests 8 bytes up to 10,000 times a second (requests), or
 * reads 1 MiB repeatedly (gets), or writes 1 MiB repeatedly (puts). The requests are served
 * alternately by
 *   portolan   the progress thread: ARMCI_Get, ARMCI_Put and ARMCI_Fence
 *   mpi        a thread of the program that receives and answers requests with MPI_Recv and
 *              MPI_Send
 * Each round is compared with one without requests. Prints `case<TAB>value`, medians of the rounds,
 * with M = portolan and M = mpi:
 *   M_requests_slower   per cent that the computation takes longer, per 10,000 requests a second
 *   M_requests_rate     thousand requests a second
 *   M_gets_slower, M_puts_slower   per cent that it takes longer, per GB/s
 *   M_gets_rate, M_puts_rate       GB/s
 *   M_late, M_late_99   microseconds of a request for 8 bytes while one thread computes: the
 *                       median, and the 99th percentile
 *   M_late_all, M_late_all_99      the same while a thread computes on each core of the machine,
 *                       including the core of rank 1
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <armci.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench.h"

enum { LARGE = 1 << 20, MOST_THREADS = 64, MOST_SAMPLES = 200000, ROUNDS = 7, PER_SECOND = 10000 };
enum { REQUEST = 1, ANSWER = 2, DATA = 3, GET = 1, PUT = 2, END = 3 };
enum { NOBODY, PORTOLAN, MPI, METHODS };
static const char *const methods[] = { "nobody", "portolan", "mpi" };

static int me, threads;
static char *memory[2], *buffer;
static MPI_Comm helpers;

static void must(int code, const char *call)
{
    if (code == 0)
        return;
    fprintf(stderr, "compute_bench: rank %d: %s returned %d\n", me, call, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

static void nap_until(double when)
{
    double left = when - now();
    struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
    if (left > 0)
        nanosleep(&t, NULL);
}

/*
 * Waits for the other rank with sleeps, because waiting inside MPI would take a core from the
 * computation.
 */
static void meet(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        nap_until(now() + 0.5e-3);
}

/* ---- computation -------------------------------------------------------------- */

/* Multiplies and adds over 64 KiB, for about a millisecond. */
static void unit(double *a)
{
    enum { DOUBLES = 8192 };
    for (int pass = 0; pass < 200; pass++) {
        for (int i = 0; i < DOUBLES; i++)
            a[i] = a[i] * 0.999 + 0.001;
        __asm__ volatile("" : : "r"(a) : "memory");
    }
}

static long units;

static void *compute(void *unused)
{
    double *a = calloc(8192, sizeof *a);
    for (long u = 0; u < units; u++)
        unit(a);
    free(a);
    return unused;
}

/* Returns the seconds that the computation takes on the given number of threads. */
static double computed(int count)
{
    pthread_t thread[MOST_THREADS];
    double begin = now();
    for (int t = 1; t < count; t++)
        must(pthread_create(&thread[t], NULL, compute, NULL), "pthread_create");
    compute(NULL);
    for (int t = 1; t < count; t++)
        pthread_join(thread[t], NULL);
    return now() - begin;
}

/* ---- requests ------------------------------------------------------------------- */

/* Flag in the first word of rank 0's memory: the computation is over. */
static volatile long *is_over;

/* The thread of the program that serves requests. Ends at an END request. */
static void *serve(void *unused)
{
    long request[2];
    for (;;) {
        MPI_Recv(request, 2, MPI_LONG, 1, REQUEST, helpers, MPI_STATUS_IGNORE);
        if (request[0] == END)
            return unused;
        if (request[0] == PUT)
            MPI_Recv(memory[0] + 64, (int)request[1], MPI_BYTE, 1, DATA, helpers, MPI_STATUS_IGNORE);
        MPI_Send(memory[0], request[0] == PUT ? 8 : (int)request[1], MPI_BYTE, 1, ANSWER, helpers);
    }
}

/* Moves bytes from rank 1. Returns whether the computation was over. */
static long move(int method, int kind, long bytes)
{
    if (method == PORTOLAN && kind == GET)
        MUST(ARMCI_Get(memory[0], buffer, (int)bytes, 0));
    else if (method == PORTOLAN) {
        MUST(ARMCI_Put(buffer + 64, memory[0] + 64, (int)bytes, 0));
        ARMCI_Fence(0);
        MUST(ARMCI_Get(memory[0], buffer, 8, 0));
    } else {
        long request[2] = { kind, bytes };
        MPI_Send(request, 2, MPI_LONG, 0, REQUEST, helpers);
        if (kind == PUT)
            MPI_Send(buffer + 64, (int)bytes, MPI_BYTE, 0, DATA, helpers);
        MPI_Recv(buffer, kind == PUT ? 8 : (int)bytes, MPI_BYTE, 0, ANSWER, helpers, MPI_STATUS_IGNORE);
    }
    return *(volatile long *)buffer;
}

static double samples[MOST_SAMPLES];

typedef struct {
    double seconds; /* of the computation */
    double rate;    /* transfers per second */
    double late, late_99;
} outcome;

/* Computes on the given number of threads while rank 1 moves bytes. Both ranks get the result. */
static outcome phase(int method, int kind, long bytes, int count)
{
    outcome got = { 0, 0, 0, 0 };
    pthread_t helper;
    if (me == 0) {
        *is_over = 0;
        if (method == MPI)
            must(pthread_create(&helper, NULL, serve, NULL), "pthread_create");
    }
    meet();
    if (me == 0) {
        got.seconds = computed(count);
        *is_over = 1;
    } else if (method != NOBODY) {
        double begin = now(), next = begin;
        int n = 0;
        for (long over = 0; !over && n < MOST_SAMPLES; n++) {
            double at = now();
            over = move(method, kind, bytes);
            samples[n] = (now() - at) * 1e6;
            /*
             * Do not catch up after a late answer, because back-to-back requests would find the
             * serving thread awake.
             */
            next = now() > next + 1.0 / PER_SECOND ? now() : next + 1.0 / PER_SECOND;
            if (bytes < LARGE)
                nap_until(next);
        }
        got.rate = n / (now() - begin);
        qsort(samples, (size_t)n, sizeof *samples, compare_doubles);
        got.late = samples[n / 2];
        got.late_99 = samples[n - 1 - n / 100];
        if (method == MPI) {
            long request[2] = { END, 0 };
            MPI_Send(request, 2, MPI_LONG, 0, REQUEST, helpers);
        }
    }
    if (me == 0 && method == MPI)
        pthread_join(helper, NULL);
    meet();
    MPI_Bcast(&got.seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&got.rate, 3, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    return got;
}

/* ---- cases ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    int kind;
    long bytes;
    double per; /* transfers per second to which the slowdown is scaled; unit is that of the rate */
    double unit;
} cases[] = {
    { "requests", GET, 8, PER_SECOND, 1e3 },
    { "gets", GET, LARGE, 1e9 / LARGE, 1e9 / LARGE },
    { "puts", PUT, LARGE, 1e9 / LARGE, 1e9 / LARGE },
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void print(int method, const char *name, const char *what, double *values, int n)
{
    if (me == 0)
        printf("%s_%s%s\t%.4g\n", methods[method], name, what, median(values, n));
}

int main(int argc, char **argv)
{
    static double slower[METHODS][CASES][ROUNDS], rate[METHODS][CASES][ROUNDS];
    static double late[METHODS][4][ROUNDS];
    int level, n, at = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const char *stray = bench_argument(argv, &at);
    if (stray || n != 2 || level != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "compute_bench: %s\n", stray ? "unknown argument" : "wants two ranks and MPI_THREAD_MULTIPLE");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &helpers);
    MUST(ARMCI_Init());
    MUST(ARMCI_Malloc((void **)memory, LARGE + 64));
    memset(memory[me], 0, LARGE + 64);
    is_over = (volatile long *)memory[me];
    buffer = calloc(1, LARGE + 64);
    threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;

    int rounds = bench_quick ? 3 : ROUNDS;
    if (me == 0) { /* the number of units that take a quarter of a second */
        units = 20;
        units = (long)(units * 0.25 / computed(1)) + 1;
    }
    for (int r = 0; r < rounds; r++) {
        for (int c = 0; c < CASES; c++)
            for (int m = PORTOLAN; m <= MPI; m++) {
                double alone = phase(NOBODY, 0, 0, 1).seconds;
                outcome got = phase(m, cases[c].kind, cases[c].bytes, 1);
                alone = (alone + phase(NOBODY, 0, 0, 1).seconds) / 2;
                slower[m][c][r] = 100 * (got.seconds / alone - 1) / got.rate * cases[c].per;
                rate[m][c][r] = got.rate / cases[c].unit;
                if (c == 0) {
                    late[m][0][r] = got.late;
                    late[m][1][r] = got.late_99;
                }
            }
        for (int m = PORTOLAN; m <= MPI; m++) {
            outcome got = phase(m, GET, 8, threads);
            late[m][2][r] = got.late;
            late[m][3][r] = got.late_99;
        }
    }
    for (int m = PORTOLAN; m <= MPI; m++) {
        for (int c = 0; c < CASES; c++) {
            print(m, cases[c].name, "_slower", slower[m][c], rounds);
            print(m, cases[c].name, "_rate", rate[m][c], rounds);
        }
        print(m, "late", "", late[m][0], rounds);
        print(m, "late", "_99", late[m][1], rounds);
        print(m, "late", "_all", late[m][2], rounds);
        print(m, "late", "_all_99", late[m][3], rounds);
    }
    fflush(stdout);
    MUST(ARMCI_Free(memory[me]));
    free(buffer);
    MUST(ARMCI_Finalize());
    MPI_Comm_free(&helpers);
    MPI_Finalize();
    return 0;
}
