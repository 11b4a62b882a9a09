/*
 * Measures ARMCI operations, and a memcpy or a plain loop that does the same to memory of the same
 * kind. The same object file links with any ARMCI.
 *
 *   mpiexec -n 2 armci_bench [--quick] [--only CASE,...] [--skip CASE,...] [--list]
 *
 * Rank 0 is the origin and rank 1 the target. In the one-sided cases the target and all further
 * ranks wait in a barrier, so that an MPI that needs calls of the target makes progress. Only in
 * `busy` does the target make no calls.
 *
 * Prints `name<TAB>value`. Values are microseconds per operation, except *_share: the minimum over
 * the maximum of the operations per rank. memcpy_* and loop* are the references.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <message.h>

#include "bench.h"

#define LARGEST (8L << 20)
#define PAGE 4096
#define LD 1000                 /* doubles in a row of the larger matrix */
#define CUBE 100                /* edge of the larger cube */
#define SEGMENT (LARGEST + PAGE) /* also large enough for 1024 rows and for the cube */
#define TARGET 1
#define AGGREGATED 256

static int me, ranks;
static char *local;             /* private memory */
static char *there, *here;      /* the segment of the target and of the origin */
static void **bases;            /* the result of ARMCI_Malloc */

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "armci_bench: rank %d: %s\n", me, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static char *page_up(void *p)
{
    return (char *)(((size_t)p + PAGE - 1) / PAGE * PAGE);
}

static void allocate(void **to, long bytes)
{
    if (ARMCI_Malloc(to, bytes) != 0)
        fail("ARMCI_Malloc failed");
}

static void make_segment(void)
{
    allocate(bases, SEGMENT);
    memset(bases[me], 0, SEGMENT);
    there = page_up(bases[TARGET]);
    here = page_up(bases[0]);
    ARMCI_Barrier();
}

static void free_segment(void)
{
    ARMCI_Barrier();
    ARMCI_Free(bases[me]);
}

static void settle(void) { ARMCI_Fence(TARGET); }

/* Measures on rank 0 while the other ranks wait, and reports the results. */
static void one_sided(int count, const operation *ops, const char *const *names)
{
    ARMCI_Barrier();
    if (me == 0) {
        double us[8];
        measure(count, ops, settle, us);
        for (int o = 0; o < count; o++)
            report(names[o], us[o]);
    }
    ARMCI_Barrier();
}

static void one_sided_alone(operation op, const char *name)
{
    one_sided(1, &op, &name);
}

/* Measures a collective operation. Rank 0 chooses the number of calls. */
static void together(operation op, const char *name)
{
    double sample[MAX_REPS];
    int reps = bench_quick ? 7 : 15;
    long n = 1;
    for (;; n *= 2) {
        double s;
        ARMCI_Barrier();
        s = seconds_of(op, n);
        armci_msg_bcast(&s, sizeof s, 0);
        if (s >= (bench_quick ? 1e-3 : 4e-3) || n >= 1L << 20)
            break;
    }
    for (int r = 0; r < reps; r++) {
        ARMCI_Barrier();
        sample[r] = seconds_of(op, n) * 1e6 / (double)n;
    }
    if (me == 0)
        report(name, median(sample, reps));
}

/* ---- 8 bytes ---------------------------------------------------------- */

static double one = 1.0, factor = 2.5;
static int int_factor = 3;
static long fetched, fetches;

static void put8(void) { ARMCI_Put(local, there, 8, TARGET); }
static void get8(void) { ARMCI_Get(there, local, 8, TARGET); }
static void acc8(void) { ARMCI_Acc(ARMCI_ACC_DBL, &one, local, there, 8, TARGET); }

static void put8_fence(void)
{
    ARMCI_Put(local, there, 8, TARGET);
    ARMCI_Fence(TARGET);
}

static void nbput8_wait(void)
{
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_NbPut(local, there, 8, TARGET, &handle);
    ARMCI_Wait(&handle);
}

static void fetch_add(void)
{
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &fetched, there, 1, TARGET);
    fetches++;
}

static void run_put8(void) { one_sided_alone(put8, "put8"); }
static void run_get8(void) { one_sided_alone(get8, "get8"); }
static void run_acc8(void) { one_sided_alone(acc8, "acc8"); }
static void run_put8_fence(void) { one_sided_alone(put8_fence, "put8_fence"); }
static void run_nbput8_wait(void) { one_sided_alone(nbput8_wait, "nbput8_wait"); }

static void run_fetch_add(void)
{
    if (me == TARGET)
        memset(there, 0, 8);
    one_sided_alone(fetch_add, "fetch_add");
    if (me == 0 && (ARMCI_GetValueLong(there, TARGET) != fetches || fetched != fetches - 1))
        fail("fetch-and-add lost count");
}

static void aggregate(void)
{
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
    for (int i = 0; i < AGGREGATED; i++)
        ARMCI_NbPut(local + 8 * i, there + 24 * i, 8, TARGET, &handle);
    ARMCI_Wait(&handle);
    ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
}

static void run_aggregate(void)
{
    ARMCI_Barrier();
    if (me == 0) {
        operation op = aggregate;
        double us;
        measure(1, &op, settle, &us);
        report("aggregate_put8", us / AGGREGATED);
    }
    ARMCI_Barrier();
}

/* ---- among many segments ---------------------------------------------- */

static char **shuffled;
static long segments, turn;

static void get8_somewhere(void)
{
    ARMCI_Get(shuffled[turn], local, 8, TARGET);
    if (++turn == segments)
        turn = 0;
}

static void among(long count, const char *name)
{
    void **base = malloc((size_t)(count * ranks) * sizeof *base);
    shuffled = malloc((size_t)count * sizeof *shuffled);
    if (!base || !shuffled)
        fail("no memory");
    segments = count;
    turn = 0;
    for (long s = 0; s < count; s++) {
        allocate(base + s * ranks, 64);
        *(long *)base[s * ranks + me] = s;
        shuffled[s] = base[s * ranks + TARGET];
    }
    unsigned long state = 1;
    for (long s = count - 1; s > 0; s--) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        long other = (long)((state >> 33) % (unsigned long)(s + 1));
        char *swap = shuffled[s];
        shuffled[s] = shuffled[other];
        shuffled[other] = swap;
    }
    one_sided_alone(get8_somewhere, name);
    if (me == 0)
        for (long s = 0; s < count; s += 1 + count / 50) {
            ARMCI_Get(base[s * ranks + TARGET], local, 8, TARGET);
            if (*(long *)(void *)local != s)
                fail("a segment holds another one's number");
        }
    ARMCI_Barrier();
    for (long s = 0; s < count; s++)
        ARMCI_Free(base[s * ranks + me]);
    free(base);
    free(shuffled);
}

static void run_among_1(void) { among(1, "get8_among_1"); }
static void run_among_1000(void) { among(1000, "get8_among_1000"); }
static void run_among_10000(void) { among(10000, "get8_among_10000"); }

/* ---- contiguous ------------------------------------------------------- */

static long size;

static void put(void) { ARMCI_Put(local, there, (int)size, TARGET); }
static void get(void) { ARMCI_Get(there, local, (int)size, TARGET); }
static void copy_out(void) { memcpy(here, local, (size_t)size); }
static void copy_in(void) { memcpy(local, here, (size_t)size); }

static void contiguous(long bytes, const char *const names[4])
{
    static const operation ops[] = {put, copy_out, get, copy_in};
    size = bytes;
    memset(local, 0x2a, (size_t)bytes);
    one_sided(2, ops, names);
    if (me == TARGET && (there[0] != 0x2a || there[bytes - 1] != 0x2a || there[bytes / 2] != 0x2a))
        fail("a put did not arrive");
    one_sided(2, ops + 2, names + 2);
}

#define CONTIGUOUS(size, label) \
    static void run_##label(void) \
    { \
        static const char *const names[] = {"put_" #label, "memcpy_put_" #label, \
                                            "get_" #label, "memcpy_get_" #label}; \
        contiguous(size, names); \
    }
CONTIGUOUS(64L << 10, 64K)
CONTIGUOUS(512L << 10, 512K)
CONTIGUOUS(1L << 20, 1M)
CONTIGUOUS(8L << 20, 8M)

/* ---- strided: a dense local buffer and a block of a larger array ------- */

static int levels, counts[3], near_strides[2], far_strides[2];

static void put_strided(void)
{
    ARMCI_PutS(local, near_strides, there, far_strides, counts, levels, TARGET);
}

static void get_strided(void)
{
    ARMCI_GetS(there, far_strides, local, near_strides, counts, levels, TARGET);
}

/* Does the same with a plain loop. Strides are in doubles. */
__attribute__((noinline)) static void loop(double *restrict to, const double *restrict from, long nx, long ny,
                                           long nz, const long *ts, const long *fs)
{
    for (long z = 0; z < nz; z++)
        for (long y = 0; y < ny; y++)
            for (long x = 0; x < nx; x++)
                to[z * ts[1] + y * ts[0] + x] = from[z * fs[1] + y * fs[0] + x];
}

__attribute__((noinline)) static void loop_column(double *restrict to, const double *restrict from, long n,
                                                  long ts, long fs)
{
    for (long y = 0; y < n; y++)
        to[y * ts] = from[y * fs];
}

static void loop_strided(int out)
{
    long nx = counts[0] / 8, ny = counts[1], nz = levels > 1 ? counts[2] : 1;
    long near_doubles[2] = {near_strides[0] / 8, near_strides[1] / 8};
    long far_doubles[2] = {far_strides[0] / 8, far_strides[1] / 8};
    double *dense = (double *)(void *)local, *block = (double *)(void *)here;
    if (nx == 1 && out)
        loop_column(block, dense, ny, far_doubles[0], near_doubles[0]);
    else if (nx == 1)
        loop_column(dense, block, ny, near_doubles[0], far_doubles[0]);
    else if (out)
        loop(block, dense, nx, ny, nz, far_doubles, near_doubles);
    else
        loop(dense, block, nx, ny, nz, near_doubles, far_doubles);
}

static void loop_out(void) { loop_strided(1); }
static void loop_in(void) { loop_strided(0); }

static void strided(long nx, long ny, long nz, long row, long plane, const char *const names[4])
{
    static const operation ops[] = {put_strided, loop_out, get_strided, loop_in};
    levels = nz > 1 ? 2 : 1;
    counts[0] = (int)(nx * 8);
    counts[1] = (int)ny;
    counts[2] = (int)nz;
    near_strides[0] = (int)(nx * 8);
    near_strides[1] = (int)(nx * ny * 8);
    far_strides[0] = (int)(row * 8);
    far_strides[1] = (int)(plane * 8);
    for (long e = 0; e < nx * ny * nz; e++)
        ((double *)(void *)local)[e] = (double)e;
    one_sided(2, ops, names);
    if (me == TARGET) {
        double *block = (double *)(void *)there;
        if (block[(nz - 1) * plane + (ny - 1) * row + nx - 1] != (double)(nx * ny * nz - 1))
            fail("a strided put did not arrive");
    }
    one_sided(2, ops + 2, names + 2);
}

#define STRIDED(label, nx, ny, nz, row, plane) \
    static void run_##label(void) \
    { \
        static const char *const names[] = {"put_" #label, "loop_put_" #label, \
                                            "get_" #label, "loop_get_" #label}; \
        strided(nx, ny, nz, row, plane, names); \
    }
STRIDED(block64x64, 64, 64, 1, LD, 0)
STRIDED(column1024, 1, 1024, 1, LD, 0)
STRIDED(pages1024, 1, 1024, 1, 1024, 0)     /* a page and a set of the cache apart */
STRIDED(cube32, 32, 32, 32, CUBE, CUBE * CUBE)

/* ---- vectors: 256 blocks of 64 bytes, each in a cache line of its own ------ */

#define BLOCKS 256

static void *ends_here[BLOCKS], *ends_there[BLOCKS];
static armci_giov_t outward, inward;    /* the order of the members differs between ARMCIs */

static void describe(armci_giov_t *vector, void **from, void **to)
{
    vector->src_ptr_array = from;
    vector->dst_ptr_array = to;
    vector->ptr_array_len = BLOCKS;
    vector->bytes = 64;
}

static void put_vector(void) { ARMCI_PutV(&outward, 1, TARGET); }
static void get_vector(void) { ARMCI_GetV(&inward, 1, TARGET); }
static void acc_vector(void) { ARMCI_AccV(ARMCI_ACC_DBL, &factor, &outward, 1, TARGET); }

static void run_vector(void)
{
    static const operation ops[] = {put_vector, get_vector, acc_vector};
    static const char *const names[] = {"put_vector256", "get_vector256", "acc_vector256"};
    for (int b = 0; b < BLOCKS; b++)
        ends_here[b] = local + 64 * b, ends_there[b] = there + 192 * b;
    describe(&outward, ends_here, ends_there);
    describe(&inward, ends_there, ends_here);
    memset(local, 0, 64 * BLOCKS);              /* keeps the sums in range */
    one_sided(1, ops, names);
    one_sided(1, ops + 1, names + 1);
    one_sided(1, ops + 2, names + 2);
}

/* ---- one element by a strided call, as Global Arrays make it ------------- */

static void put_one(void) { ARMCI_PutS(local, near_strides, there, far_strides, counts, 1, TARGET); }
static void get_one(void) { ARMCI_GetS(there, far_strides, local, near_strides, counts, 1, TARGET); }
static void acc_one(void)
{
    ARMCI_AccS(ARMCI_ACC_DBL, &factor, local, near_strides, there, far_strides, counts, 1, TARGET);
}

static void run_element(void)
{
    static const operation ops[] = {put_one, get_one, acc_one};
    static const char *const names[] = {"put_element", "get_element", "acc_element"};
    counts[0] = 8, counts[1] = 1, near_strides[0] = 8, far_strides[0] = 8 * LD;
    memset(local, 0, 8);
    one_sided(1, ops, names);
    one_sided(1, ops + 1, names + 1);
    one_sided(1, ops + 2, names + 2);
}

/* ---- accumulate ------------------------------------------------------- */

static void acc(void) { ARMCI_Acc(ARMCI_ACC_DBL, &factor, local, there, (int)size, TARGET); }
static void acc_int(void) { ARMCI_Acc(ARMCI_ACC_INT, &int_factor, local, there, (int)size, TARGET); }

#define AXPY(name, type, level) \
    __attribute__((noinline, optimize(level))) static void name(type *restrict y, const type *restrict x, \
                                                                type a, long n) \
    { \
        for (long i = 0; i < n; i++) \
            y[i] += a * x[i]; \
    }
AXPY(axpy_O2, double, "O2")
AXPY(axpy_O3, double, "O3")
AXPY(axpy_int_O2, int, "O2")
AXPY(axpy_int_O3, int, "O3")

static void add_O2(void) { axpy_O2((double *)(void *)here, (double *)(void *)local, factor, size / 8); }
static void add_O3(void) { axpy_O3((double *)(void *)here, (double *)(void *)local, factor, size / 8); }
static void add_int_O2(void) { axpy_int_O2((int *)(void *)here, (int *)(void *)local, int_factor, size / 4); }
static void add_int_O3(void) { axpy_int_O3((int *)(void *)here, (int *)(void *)local, int_factor, size / 4); }

static void accumulate(long bytes, const operation ops[3], const char *const names[3])
{
    size = bytes;
    memset(local, 0, (size_t)bytes);            /* keeps the sums in range */
    memset(page_up(bases[me]), 0, (size_t)bytes);
    one_sided(3, ops, names);
}

static const operation double_adds[] = {acc, add_O2, add_O3}, int_adds[] = {acc_int, add_int_O2, add_int_O3};

static void run_acc_4K(void)
{
    static const char *const names[] = {"acc_4K", "loopO2_acc_4K", "loopO3_acc_4K"};
    accumulate(4L << 10, double_adds, names);
}

static void run_acc_1M(void)
{
    static const char *const names[] = {"acc_1M", "loopO2_acc_1M", "loopO3_acc_1M"};
    accumulate(1L << 20, double_adds, names);
}

static void run_acc_int_4K(void)
{
    static const char *const names[] = {"acc_int_4K", "loopO2_acc_int_4K", "loopO3_acc_int_4K"};
    accumulate(4L << 10, int_adds, names);
}

/* ---- locks and contention --------------------------------------------- */

static void lock_unlock(void)
{
    ARMCI_Lock(0, TARGET);
    ARMCI_Unlock(0, TARGET);
}

static void run_lock_unlock(void)
{
    if (ARMCI_Create_mutexes(1) != 0)
        fail("ARMCI_Create_mutexes failed");
    one_sided_alone(lock_unlock, "lock_unlock");
    ARMCI_Destroy_mutexes();
}

/*
 * Runs an operation on all ranks for a fixed time. Reports the time per operation over all ranks,
 * and the ratio of the lowest to the highest number of operations of a rank.
 */
static void contend(operation op, long *done, const char *name, const char *share)
{
    double slice = bench_quick ? 0.1 : 0.5, start, elapsed;
    long count = 0, least, most, total;
    ARMCI_Barrier();
    start = now();
    do {
        for (int i = 0; i < 16; i++)
            op();
        count += 16;
        elapsed = now() - start;
    } while (elapsed < slice);
    ARMCI_Barrier();
    least = most = total = count;
    armci_msg_lgop(&least, 1, "min");
    armci_msg_lgop(&most, 1, "max");
    armci_msg_lgop(&total, 1, "+");
    armci_msg_dgop(&elapsed, 1, "max");
    if (me == 0) {
        report(name, elapsed * 1e6 / (double)total);
        report(share, (double)least / (double)most);
    }
    *done = total;
}

static void fetch_add_all(void) { ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &fetched, here, 1, 0); }

static void lock_unlock_all(void)
{
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
}

static void run_fetch_add_contended(void)
{
    long total;
    if (me == 0)
        memset(here, 0, 8);
    contend(fetch_add_all, &total, "fetch_add_contended", "fetch_add_contended_share");
    if (me == 0 && ARMCI_GetValueLong(here, 0) != total)
        fail("contended fetch-and-add lost count");
    ARMCI_Barrier();
}

static void run_lock_contended(void)
{
    long total;
    if (ARMCI_Create_mutexes(1) != 0)
        fail("ARMCI_Create_mutexes failed");
    contend(lock_unlock_all, &total, "lock_contended", "lock_contended_share");
    ARMCI_Destroy_mutexes();
}

/* ---- collectives ------------------------------------------------------ */

static void **brief;

static void allocate_free(void)
{
    allocate(brief, 64L << 10);
    ARMCI_Free(brief[me]);
}

static void run_alloc_free(void)
{
    brief = malloc((size_t)ranks * sizeof *brief);
    if (!brief)
        fail("no memory");
    together(allocate_free, "alloc_free_64K");
    free(brief);
}

static void run_barrier(void) { together(ARMCI_Barrier, "barrier"); }

static void sum_of_one(void)
{
    double x = 1;
    armci_msg_dgop(&x, 1, "+");
}

static void run_sum(void) { together(sum_of_one, "allreduce8"); }

/* ---- a target that computes ------------------------------------------- */

/* The target makes no call for a second. Rank 0 accesses its memory every 10 ms. */
static void run_busy(void)
{
    double sample[128], worst = 0;
    int n = 0;
    if (me == TARGET)
        memset(there, 0, 64);
    ARMCI_Barrier();
    double start = now();
    if (me == TARGET) {
        volatile double x = 1;
        while (now() - start < 1.0)
            for (int i = 0; i < 1000; i++)
                x = x * 1.0000001 + 1e-9;
    } else if (me == 0) {
        struct timespec pause = {0, 10000000};
        double value = 1.0;
        nanosleep(&pause, NULL);        /* until the target has left the barrier */
        while (now() - start < 0.9 && n < 128) {
            double before = now();
            ARMCI_Get(there, local, 8, TARGET);
            ARMCI_Acc(ARMCI_ACC_DBL, &one, &value, there + 8, 8, TARGET);
            ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &fetched, there + 16, 1, TARGET);
            sample[n] = (now() - before) * 1e6;
            worst = sample[n] > worst ? sample[n] : worst;
            n++;
            nanosleep(&pause, NULL);
        }
        report("busy_worst", worst);
        report("busy_median", median(sample, n));
    }
    ARMCI_Barrier();
    if (me == 0 && ARMCI_GetValueLong(there + 16, TARGET) != n)
        fail("the computing target lost count");
    ARMCI_Barrier();
}

/* ---- cases ------------------------------------------------------------ */

static const struct {
    const char *name;
    operation run;
    int own_segments;           /* runs without the common segment */
} cases[] = {
    {"put8", run_put8, 0},
    {"get8", run_get8, 0},
    {"acc8", run_acc8, 0},
    {"put8_fence", run_put8_fence, 0},
    {"fetch_add", run_fetch_add, 0},
    {"nbput8_wait", run_nbput8_wait, 0},
    {"aggregate_put8", run_aggregate, 0},
    {"64K", run_64K, 0},
    {"512K", run_512K, 0},
    {"1M", run_1M, 0},
    {"8M", run_8M, 0},
    {"block64x64", run_block64x64, 0},
    {"column1024", run_column1024, 0},
    {"pages1024", run_pages1024, 0},
    {"cube32", run_cube32, 0},
    {"vector256", run_vector, 0},
    {"element", run_element, 0},
    {"acc_4K", run_acc_4K, 0},
    {"acc_1M", run_acc_1M, 0},
    {"acc_int_4K", run_acc_int_4K, 0},
    {"lock_unlock", run_lock_unlock, 0},
    {"fetch_add_contended", run_fetch_add_contended, 0},
    {"lock_contended", run_lock_contended, 0},
    {"barrier", run_barrier, 0},
    {"allreduce8", run_sum, 0},
    {"busy", run_busy, 0},
    {"alloc_free", run_alloc_free, 1},
    {"get8_among_1", run_among_1, 1},
    {"get8_among_1000", run_among_1000, 1},
    {"get8_among_10000", run_among_10000, 1},
};
#define CASES (sizeof cases / sizeof *cases)

int main(int argc, char **argv)
{
    const char *other;
    int at = 1, list = 0, segment = 0;
    while ((other = bench_argument(argv, &at)) != NULL) {
        if (strcmp(other, "--list") != 0) {
            fprintf(stderr, "armci_bench: unknown argument %s\n", other);
            return 2;
        }
        list = 1;
    }
    if (list) {
        for (size_t c = 0; c < CASES; c++)
            puts(cases[c].name);
        return 0;
    }

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &at); /* which some runtimes require */
    ARMCI_Init();
    me = armci_msg_me();    /* not MPI's: an ARMCI may keep ranks for itself */
    ranks = armci_msg_nproc();
    if (ranks < 2)
        fail("two ranks or more are needed");
    bases = malloc((size_t)ranks * sizeof *bases);
    void *memory;
    if (!bases || posix_memalign(&memory, PAGE, SEGMENT) != 0)
        fail("no memory");
    local = memory;
    memset(local, 0, SEGMENT);

    for (size_t c = 0; c < CASES; c++) {
        if (!wanted(cases[c].name))
            continue;
        if (segment != !cases[c].own_segments) {
            if (segment)
                free_segment();
            else
                make_segment();
            segment = !segment;
        }
        cases[c].run();
    }
    if (segment)
        free_segment();
    free(local);
    free(bases);
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
