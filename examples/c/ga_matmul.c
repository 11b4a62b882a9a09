/*
 * C = A * B with Global Arrays. Every rank takes block products from a task counter, gets the two
 * blocks it needs, multiplies them, and accumulates the result into C, wherever that part of C is
 * located. No rank sends or receives.
 *
 *   mpiexec -n 4 ga_matmul [n [block [repeats]]]
 *
 * The program compares the product with GA_Dgemm and, at some elements, with the definition. The
 * exit status is 0 if all agree.
 *
 * The same source runs on any ARMCI. On Portolan it also prints which path (direct, rma, message)
 * carries the bytes between each pair of ranks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

/* Declared in portolan.h. Weak, so that the program also links with another ARMCI. */
extern const char *portolan_path_name(int target) __attribute__((weak));

/* BLAS with the Fortran convention: column-major, all arguments by address. */
extern void dgemm_(const char *ta, const char *tb, const int *m, const int *n,
                   const int *k, const double *alpha, const double *a,
                   const int *lda, const double *b, const int *ldb,
                   const double *beta, double *c, const int *ldc);

#define PATH_LEN 12
#define SPOT_CHECKS 64

static int me, nranks;

static double element(int which, long i, long j)
{
    return sin(0.37 * (double)i + 0.11 * (double)j * (which + 1) + which);
}

static void fill(int g, int which)
{
    int lo[2], hi[2], ld[1];
    double *p;
    NGA_Distribution(g, me, lo, hi);
    if (lo[0] < 0 || hi[0] < lo[0])
        return;                         /* this rank owns nothing */
    NGA_Access(g, lo, hi, &p, ld);
    for (int i = lo[0]; i <= hi[0]; i++)
        for (int j = lo[1]; j <= hi[1]; j++)
            p[(long)(i - lo[0]) * ld[0] + (j - lo[1])] = element(which, i, j);
    NGA_Release_update(g, lo, hi);
}

static int least(int a, int b) { return a < b ? a : b; }

/* Computes one product and returns the number of tasks that this rank did. */
static long multiply(int a, int b, int c, int counter, int n, int block)
{
    int zero_sub[1] = {0};
    long nb = (n + block - 1) / block, tasks = nb * nb * nb, done = 0;
    size_t bytes = (size_t)block * (size_t)block * sizeof(double);
    double *ba = malloc(bytes), *bb = malloc(bytes), *bc = malloc(bytes);
    double one = 1.0, zero = 0.0;

    if (!ba || !bb || !bc)
        GA_Error("no memory for three blocks", 1);
    for (long t; (t = NGA_Read_inc(counter, zero_sub, 1)) < tasks; done++) {
        /* Consecutive tasks update different parts of C. */
        int i = (int)(t / nb % nb) * block, j = (int)(t % nb) * block;
        int k = (int)(t / (nb * nb)) * block;
        int ih = least(i + block, n) - 1, jh = least(j + block, n) - 1;
        int kh = least(k + block, n) - 1;
        int rows = ih - i + 1, cols = jh - j + 1, inner = kh - k + 1;
        int alo[2] = {i, k}, ahi[2] = {ih, kh};
        int blo[2] = {k, j}, bhi[2] = {kh, jh};
        int clo[2] = {i, j}, chi[2] = {ih, jh};

        NGA_Get(a, alo, ahi, ba, &inner);
        NGA_Get(b, blo, bhi, bb, &cols);
        /* Row-major C = A B is column-major C' = B' A'. */
        dgemm_("N", "N", &cols, &rows, &inner, &one, bb, &cols, ba, &inner,
               &zero, bc, &cols);
        NGA_Acc(c, clo, chi, bc, &cols, &one);
    }
    free(ba);
    free(bb);
    free(bc);
    GA_Sync();
    return done;
}

/* Returns the largest difference between C and D, relative to the largest value of D. */
static double difference(int c, int d)
{
    int lo[2], hi[2], ldc[1], ldd[1];
    double *pc, *pd, worst[2] = {0.0, 0.0};
    NGA_Distribution(c, me, lo, hi);
    if (lo[0] >= 0 && hi[0] >= lo[0]) {
        NGA_Access(c, lo, hi, &pc, ldc);
        NGA_Access(d, lo, hi, &pd, ldd);
        for (long i = 0; i <= hi[0] - lo[0]; i++)
            for (long j = 0; j <= hi[1] - lo[1]; j++) {
                double x = pc[i * ldc[0] + j], y = pd[i * ldd[0] + j];
                double diff = fabs(x - y);
                if (!(diff <= worst[0]))
                    worst[0] = isnan(diff) ? HUGE_VAL : diff;
                if (fabs(y) > worst[1])
                    worst[1] = fabs(y);
            }
        NGA_Release(c, lo, hi);
        NGA_Release(d, lo, hi);
    }
    GA_Dgop(worst, 2, "max");
    return worst[1] > 0.0 ? worst[0] / worst[1] : HUGE_VAL;
}

/* Compares some elements with the definition. Gets the elements one by one. */
static double spot_difference(int c, int n)
{
    double worst = 0.0;
    for (int s = me; s < SPOT_CHECKS; s += nranks) {
        int i = (int)((s * 7919L + 13) % n), j = (int)((s * 104729L + 5) % n);
        int at[2] = {i, j}, ld = 1;
        double got = 0.0, want = 0.0, scale = 0.0;
        NGA_Get(c, at, at, &got, &ld);
        for (int k = 0; k < n; k++) {
            double term = element(0, i, k) * element(1, k, j);
            want += term;
            scale += fabs(term);
        }
        double diff = fabs(got - want) / scale;
        if (!(diff <= worst))
            worst = isnan(diff) ? HUGE_VAL : diff;
    }
    GA_Dgop(&worst, 1, "max");
    return worst;
}

static void print_paths(void)
{
    char *mine = calloc((size_t)nranks, PATH_LEN), *all = NULL;
    if (me == 0)
        all = calloc((size_t)nranks * (size_t)nranks, PATH_LEN);
    for (int r = 0; mine && r < nranks; r++) {
        const char *name = portolan_path_name ? portolan_path_name(r) : NULL;
        strncpy(mine + r * PATH_LEN, name ? name : "unknown", PATH_LEN - 1);
    }
    MPI_Gather(mine, nranks * PATH_LEN, MPI_CHAR, all, nranks * PATH_LEN,
               MPI_CHAR, 0, MPI_COMM_WORLD);
    if (me == 0 && all) {
        printf("paths, from (row) to (column):\n        ");
        for (int r = 0; r < nranks; r++)
            printf(" %8d", r);
        for (int r = 0; r < nranks * nranks; r++) {
            if (r % nranks == 0)
                printf("\n%8d", r / nranks);
            printf(" %8s", all + (size_t)r * PATH_LEN);
        }
        printf("\n");
    }
    free(mine);
    free(all);
}

static int make(const char *name, int n)
{
    int dims[2] = {n, n};
    int g = NGA_Create(C_DBL, 2, dims, (char *)name, NULL);
    if (!g)
        GA_Error("cannot create an array", n);
    return g;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1024;
    int block = argc > 2 ? atoi(argv[2]) : 32;
    int repeats = argc > 3 ? atoi(argv[3]) : 2;

    MPI_Init(&argc, &argv);
    GA_Initialize();
    me = GA_Nodeid();
    nranks = GA_Nnodes();
    if (!MA_init(C_DBL, 1 << 20, 1 << 20))
        GA_Error("MA_init failed", 1);
    if (n < 1 || block < 1 || repeats < 1) {
        if (me == 0)
            fprintf(stderr, "usage: %s [n [block [repeats]]], all positive\n", argv[0]);
        GA_Terminate();
        MPI_Finalize();
        return 2;
    }

    int a = make("A", n), b = make("B", n), c = make("C", n), d = make("D", n);
    int one_dim[1] = {1}, counter = NGA_Create(C_LONG, 1, one_dim, "tasks", NULL);
    if (!counter)
        GA_Error("cannot create the task counter", 1);
    fill(a, 0);
    fill(b, 1);
    GA_Sync();

    long nb = (n + block - 1) / block, tasks = nb * nb * nb;
    double flops = 2.0 * n * (double)n * n;
    if (me == 0)
        printf("C = A B, %d x %d, blocks of %d, %ld tasks, %d ranks\n", n, n,
               block, tasks, nranks);
    print_paths();

    long *did = malloc((size_t)nranks * sizeof(long)), total = 0;
    if (!did)
        GA_Error("no memory", 1);
    for (int r = 0; r < repeats; r++) {
        GA_Zero(c);
        GA_Zero(counter);
        GA_Sync();
        double start = MPI_Wtime();
        long done = multiply(a, b, c, counter, n, block);
        double seconds = MPI_Wtime() - start;
        MPI_Allgather(&done, 1, MPI_LONG, did, 1, MPI_LONG, MPI_COMM_WORLD);
        total = 0;
        for (int q = 0; q < nranks; q++)
            total += did[q];
        if (me == 0) {
            printf("run %d: %.3f s, %.2f GFLOP/s, tasks by rank:", r + 1,
                   seconds, flops / seconds * 1e-9);
            for (int q = 0; q < nranks; q++)
                printf(" %ld", did[q]);
            printf("\n");
        }
    }

    double start = MPI_Wtime();
    GA_Dgemm('N', 'N', n, n, n, 1.0, a, b, 0.0, d);
    GA_Sync();
    double seconds = MPI_Wtime() - start;
    double diff = difference(c, d), spot = spot_difference(c, n);
    double allowed = 1e-12;
    int good = diff <= allowed && spot <= allowed && total == tasks;
    if (me == 0) {
        printf("GA_Dgemm: %.3f s, %.2f GFLOP/s\n", seconds, flops / seconds * 1e-9);
        printf("largest relative difference: %.2e to GA_Dgemm, %.2e to the definition "
               "at %d elements\n", diff, spot, SPOT_CHECKS);
        if (total != tasks)
            printf("ga_matmul: FAILED: %ld tasks done, %ld expected\n", total, tasks);
        if (!(diff <= allowed && spot <= allowed))
            printf("ga_matmul: FAILED: the product is wrong (allowed %.0e)\n", allowed);
        if (good)
            printf("ga_matmul: ok\n");
        fflush(stdout);
    }

    free(did);
    GA_Destroy(counter);
    GA_Destroy(d);
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
    GA_Terminate();
    MPI_Finalize();
    return good ? 0 : 1;
}
