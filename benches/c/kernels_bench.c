/*
 * The inner loops of ARMCI's strided and accumulating calls on a node, compared with plain C loops.
 *
 *   mpiexec -n 1 kernels_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Rank 0 is the origin and the last rank the target. With one rank the loop of the program uses the
 * same addresses as the call. With two ranks it uses the same offsets in rank 0's own part.
 *
 * column_B: put and get of 1,024 blocks of B bytes, 8 KiB apart, from and to a dense buffer in the
 * cache. `warm` uses the same blocks repeatedly; the second-level cache cannot hold them, because
 * they map to few of its sets. `cold` uses different blocks each time, in a matrix that is larger
 * than the last-level cache. column_odd uses blocks of 8 bytes that are 8,000 bytes apart.
 *
 * acc_TYPE_SIZE: y += a x, compared with the fastest of three manually unrolled loops with vectors
 * of 16, 32 and 64 bytes, as far as the processor supports them. In acc_dbl_SIZE_off the address of
 * y is a multiple of 8 only.
 *
 * Prints `name<TAB>value`: the microseconds of the call and of the loop (NAME_loop), and
 * NAME_ratio, the median over alternating runs of the call's time divided by the loop's time.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <stdint.h>

#include "bench.h"

enum { ROWS = 1024, MOST_STRIDE = 8192, DENSE = 1 << 20, LINE = 64, MOST_LOOPS = 3 };

static int me, target;
static char *there, *here;      /* parts of the target and of this rank */
static char *dense;             /* private buffer */
static size_t matrix;           /* size of a part in bytes */

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "kernels_bench: rank %d: %s\n", me, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Measures a call and the loops that do the same, alternately. */
static void beside(const char *name, operation ours, const operation *loops, int count)
{
    static double ratio[MAX_REPS], call[MAX_REPS], best[MAX_REPS];
    const int reps = bench_quick ? 7 : 25;
    long n = calls_for(ours, ARMCI_AllFence);
    char label[64];
    for (int r = 0; r < reps; r++) {
        double fastest = 0;
        call[r] = seconds_of(ours, n);
        for (int l = 0; l < count; l++) {
            const double s = seconds_of(loops[l], n);
            if (l == 0 || s < fastest)
                fastest = s;
        }
        best[r] = fastest * 1e6 / (double)n;
        call[r] *= 1e6 / (double)n;
        ratio[r] = call[r] / best[r];
    }
    report(name, median(call, reps));
    snprintf(label, sizeof label, "%s_loop", name);
    report(label, median(best, reps));
    snprintf(label, sizeof label, "%s_ratio", name);
    report(label, median(ratio, reps));
}

/* ---- columns ------------------------------------------------------------- */

static int block, stride, is_cold;
static uint64_t state = 1;

/* Returns the offset of the next column. */
static size_t column(void)
{
    if (!is_cold)
        return 0;
    const size_t part = (size_t)ROWS * (size_t)stride;
    const size_t lines = (size_t)stride / LINE;
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t pick = (size_t)(state >> 33);
    return pick % (matrix / part) * part + pick / 64 % lines * LINE;
}

static void put_column(void)
{
    int counts[2] = {block, ROWS};
    ARMCI_PutS(dense, &block, there + column(), &stride, counts, 1, target);
}

static void get_column(void)
{
    int counts[2] = {block, ROWS};
    ARMCI_GetS(there + column(), &stride, dense, &block, counts, 1, target);
}

#define COLUMN_LOOP(size) \
    typedef struct { double v[size / 8]; } block##size; \
    __attribute__((noinline)) static void copy##size(char *restrict to, const char *restrict from, long ts, long fs) \
    { \
        for (long i = 0; i < ROWS; i++) \
            *(block##size *)(void *)(to + i * ts) = *(const block##size *)(const void *)(from + i * fs); \
    } \
    static void loop_put##size(void) { copy##size(here + column(), dense, stride, block); } \
    static void loop_get##size(void) { copy##size(dense, here + column(), block, stride); }
COLUMN_LOOP(8)
COLUMN_LOOP(16)
COLUMN_LOOP(32)
COLUMN_LOOP(64)

static void columns(const char *name, int bytes, int apart, operation put_loop, operation get_loop)
{
    char label[48];
    if (!wanted(name))
        return;
    block = bytes;
    stride = apart;
    for (is_cold = 0; is_cold < 2; is_cold++) {
        snprintf(label, sizeof label, "%s_put_%s", name, is_cold ? "cold" : "warm");
        beside(label, put_column, &put_loop, 1);
        snprintf(label, sizeof label, "%s_get_%s", name, is_cold ? "cold" : "warm");
        beside(label, get_column, &get_loop, 1);
    }
    for (long i = 0; i < ROWS; i++)
        memset(dense + i * bytes, (int)(i % 251), (size_t)bytes);
    is_cold = 0;
    put_column();
    memset(dense, 0, (size_t)(ROWS * bytes));
    get_column();
    for (long i = 0; i < ROWS * bytes; i++)
        if (dense[i] != (char)(i / bytes % 251))
            fail("a column did not come back");
    memset(there, 0, (size_t)ROWS * (size_t)stride);
}

/* ---- accumulates --------------------------------------------------------- */

static int acc_type;
static long size, offset;
static void *factor;

static int a_int = 3;
static long a_lng = 3;
static float a_flt = 2.5f;
static double a_dbl = 2.5;
static float a_cpl[2] = {2.5f, 0.5f};
static double a_dcp[2] = {2.5, 0.5};

static void acc(void) { ARMCI_Acc(acc_type, factor, dense, there + offset, (int)size, target); }

/* y += a x with vectors of `width` bytes, four at a time. */
#define AXPY(type, name, width, isa) \
    typedef type name##_##isa##_v __attribute__((vector_size(width), aligned(sizeof(type)), may_alias)); \
    __attribute__((noinline, target(#isa))) static void name##_##isa(void) \
    { \
        type *restrict y = (type *)(void *)(here + offset); \
        const type *restrict x = (const type *)(void *)dense; \
        const type a = a_##name; \
        const long n = size / (long)sizeof a, step = width / (long)sizeof a; \
        long i = 0; \
        for (; i + 4 * step <= n; i += 4 * step) { \
            name##_##isa##_v *to = (name##_##isa##_v *)(void *)(y + i); \
            const name##_##isa##_v *from = (const name##_##isa##_v *)(const void *)(x + i); \
            name##_##isa##_v t0 = to[0] + from[0] * a, t1 = to[1] + from[1] * a; \
            name##_##isa##_v t2 = to[2] + from[2] * a, t3 = to[3] + from[3] * a; \
            to[0] = t0, to[1] = t1, to[2] = t2, to[3] = t3; \
        } \
        for (; i < n; i++) \
            y[i] += a * x[i]; \
    }
/*
 * The same for complex numbers: adds the swapped x times the imaginary part, negated for real
 * parts.
 */
#define AXPY_COMPLEX(type, mask, name, width, isa) \
    typedef type name##_##isa##_v __attribute__((vector_size(width), aligned(sizeof(type)), may_alias)); \
    typedef mask name##_##isa##_m __attribute__((vector_size(width))); \
    __attribute__((noinline, target(#isa))) static void name##_##isa(void) \
    { \
        type *restrict y = (type *)(void *)(here + offset); \
        const type *restrict x = (const type *)(void *)dense; \
        const long n = size / (long)sizeof *y, step = width / (long)sizeof *y; \
        name##_##isa##_v im; \
        name##_##isa##_m swap; \
        for (long k = 0; k < step; k++) { \
            im[k] = k % 2 ? a_##name[1] : -a_##name[1]; \
            swap[k] = k ^ 1; \
        } \
        const type re = a_##name[0]; \
        for (long i = 0; i + 2 * step <= n; i += 2 * step) { \
            name##_##isa##_v *to = (name##_##isa##_v *)(void *)(y + i); \
            const name##_##isa##_v *from = (const name##_##isa##_v *)(const void *)(x + i); \
            name##_##isa##_v t0 = to[0] + (from[0] * re + __builtin_shuffle(from[0], swap) * im); \
            name##_##isa##_v t1 = to[1] + (from[1] * re + __builtin_shuffle(from[1], swap) * im); \
            to[0] = t0, to[1] = t1; \
        } \
    }

#if defined __x86_64__
#define OF_EACH_WIDTH(MAKE, ...) \
    MAKE(__VA_ARGS__, 16, sse2) MAKE(__VA_ARGS__, 32, avx2) MAKE(__VA_ARGS__, 64, avx512dq)
#define LOOPS(name) static const operation name##_loops[] = {name##_sse2, name##_avx2, name##_avx512dq};
static int widths(void)
{
    return 1 + !!__builtin_cpu_supports("avx2") +
           (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512dq"));
}
#else
#error "the reference loops are written for x86-64"
#endif
OF_EACH_WIDTH(AXPY, int, int)
OF_EACH_WIDTH(AXPY, long, lng)
OF_EACH_WIDTH(AXPY, float, flt)
OF_EACH_WIDTH(AXPY, double, dbl)
OF_EACH_WIDTH(AXPY_COMPLEX, float, int, cpl)
OF_EACH_WIDTH(AXPY_COMPLEX, double, long, dcp)
LOOPS(int)
LOOPS(lng)
LOOPS(flt)
LOOPS(dbl)
LOOPS(cpl)
LOOPS(dcp)

static const struct {
    const char *name;
    int type;
    void *factor;
    const operation *loops;
} types[] = {
    {"acc_int", ARMCI_ACC_INT, &a_int, int_loops},   {"acc_lng", ARMCI_ACC_LNG, &a_lng, lng_loops},
    {"acc_flt", ARMCI_ACC_FLT, &a_flt, flt_loops},   {"acc_dbl", ARMCI_ACC_DBL, &a_dbl, dbl_loops},
    {"acc_cpl", ARMCI_ACC_CPL, a_cpl, cpl_loops},    {"acc_dcp", ARMCI_ACC_DCP, a_dcp, dcp_loops},
};

static void accumulates(void)
{
    static const long kib[] = {4, 16, 64, 256};
    char label[48];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t s = 0; s < sizeof kib / sizeof *kib; s++)
            for (int off = 0; off <= (types[t].type == ARMCI_ACC_DBL); off++) {
                snprintf(label, sizeof label, "%s_%ldK%s", types[t].name, kib[s], off ? "_off" : "");
                if (!wanted(types[t].name) && !wanted(label))
                    continue;
                acc_type = types[t].type;
                factor = types[t].factor;
                size = kib[s] << 10;
                offset = off ? 8 : 0;
                memset(dense, 0, (size_t)size); /* keeps the sums in range */
                beside(label, acc, types[t].loops, widths());
            }
}

int main(int argc, char **argv)
{
    const char *unknown;
    int at = 1, ranks;
    MPI_Init(&argc, &argv);
    ARMCI_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((unknown = bench_argument(argv, &at)) != NULL)
        fail(unknown);
    target = ranks - 1;
    matrix = (bench_quick ? 64ul : 192ul) << 20;
    void **bases = malloc((size_t)ranks * sizeof *bases), *memory;
    if (!bases || posix_memalign(&memory, 4096, DENSE) != 0)
        fail("no memory");
    dense = memory;
    memset(dense, 0, DENSE);
    if (ARMCI_Malloc(bases, (armci_size_t)matrix + 4096) != 0)
        fail("ARMCI_Malloc failed");
    memset(bases[me], 0, matrix + 4096);
    there = (char *)(((uintptr_t)bases[target] + 4095) / 4096 * 4096);
    here = (char *)(((uintptr_t)bases[me] + 4095) / 4096 * 4096);
    ARMCI_Barrier();
    if (me == 0) {
        columns("column_8", 8, MOST_STRIDE, loop_put8, loop_get8);
        columns("column_16", 16, MOST_STRIDE, loop_put16, loop_get16);
        columns("column_32", 32, MOST_STRIDE, loop_put32, loop_get32);
        columns("column_64", 64, MOST_STRIDE, loop_put64, loop_get64);
        columns("column_odd", 8, 8000, loop_put8, loop_get8);
        accumulates();
    }
    ARMCI_Barrier();
    ARMCI_Free(bases[me]);
    free(dense);
    free(bases);
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
