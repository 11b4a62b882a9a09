/*
 * Costs that Global Arrays programs see: the matrix product of examples/c/ga_matmul.c, the build of
 * a Fock matrix as programs of quantum chemistry do it, creating and freeing 200 arrays, and single
 * calls.
 *
 *   mpiexec -n 2 ga_bench [--quick] [--only CASE,...] [--skip CASE,...] [--n N] [--block B]
 *
 * Prints `name<TAB>microseconds`:
 *   ga_matmul          one whole product
 *   ga_matmul_compute  its time in dgemm, on the rank with the longest: a lower bound
 *   scf_like           one build of a Fock matrix: see fock_build
 *   ga_200_arrays      200 arrays created, all existing at once, and freed
 * and with the case ga_calls, while the other ranks wait in a barrier:
 *   ga_put_1, ga_get_1, ga_acc_1        one call for one element of another rank
 *   ga_put_512, ga_get_512, ga_acc_512  one call for 512 x 512 elements of another rank
 *   ga_read_inc                         NGA_Read_inc of an element of another rank
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

#include "bench.h"

#define ARRAYS 200

extern void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                   const double *alpha, const double *a, const int *lda, const double *b,
                   const int *ldb, const double *beta, double *c, const int *ldc);

static int me;

static int least(int a, int b) { return a < b ? a : b; }

/* Returns the seconds that this rank spent in dgemm. */
static double multiply(int a, int b, int c, int counter, int n, int block, double *buf)
{
    int zero_sub[1] = {0};
    long nb = (n + block - 1) / block, tasks = nb * nb * nb;
    double *ba = buf, *bb = ba + block * block, *bc = bb + block * block;
    double one = 1.0, zero = 0.0, computing = 0.0;
    for (long t; (t = NGA_Read_inc(counter, zero_sub, 1)) < tasks;) {
        int i = (int)(t / nb % nb) * block, j = (int)(t % nb) * block;
        int k = (int)(t / (nb * nb)) * block;
        int ih = least(i + block, n) - 1, jh = least(j + block, n) - 1, kh = least(k + block, n) - 1;
        int rows = ih - i + 1, cols = jh - j + 1, inner = kh - k + 1;
        int alo[2] = {i, k}, ahi[2] = {ih, kh}, blo[2] = {k, j}, bhi[2] = {kh, jh};
        int clo[2] = {i, j}, chi[2] = {ih, jh};
        NGA_Get(a, alo, ahi, ba, &inner);
        NGA_Get(b, blo, bhi, bb, &cols);
        double start = now();
        dgemm_("N", "N", &cols, &rows, &inner, &one, bb, &cols, ba, &inner, &zero, bc, &cols);
        computing += now() - start;
        NGA_Acc(c, clo, chi, bc, &cols, &one);
    }
    GA_Sync();
    return computing;
}

static int matrix(char *name, int n)
{
    int dims[2] = {n, n}, g = NGA_Create(C_DBL, 2, dims, name, NULL);
    if (!g)
        GA_Error("cannot create an array", n);
    return g;
}

static void matmul(int n, int block)
{
    int reps = bench_quick ? 3 : 5, one_dim[1] = {1}, corner[2] = {n - 1, n - 1}, ld = 1;
    double whole[MAX_REPS], compute[MAX_REPS], half = 0.5, two = 2.0, got = 0;
    double *buf = malloc(3 * sizeof(double) * (size_t)block * (size_t)block);
    int a = matrix("A", n), b = matrix("B", n), c = matrix("C", n);
    int counter = NGA_Create(C_LONG, 1, one_dim, "tasks", NULL);
    if (!counter || !buf)
        GA_Error("cannot create the counter", 1);
    GA_Fill(a, &half);
    GA_Fill(b, &two);
    for (int r = -1; r < reps; r++) {       /* the first one is a warm-up */
        GA_Zero(c);
        GA_Zero(counter);
        GA_Sync();
        double start = now();
        double computing = multiply(a, b, c, counter, n, block, buf);
        double seconds = now() - start;
        GA_Dgop(&computing, 1, "max");
        if (r >= 0) {
            whole[r] = seconds * 1e6;
            compute[r] = computing * 1e6;
        }
    }
    if (me == 0) {
        report("ga_matmul", median(whole, reps));
        report("ga_matmul_compute", median(compute, reps));
    }
    NGA_Get(c, corner, corner, &got, &ld);
    if (got != n)
        GA_Error("ga_bench: the product is wrong", 1);
    GA_Sync();
    GA_Destroy(counter);
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
    free(buf);
}

/*
 * Builds a matrix from the density as a self-consistent field calculation does. A new counter hands
 * out pairs of blocks. A task gets two blocks of the density, multiplies parts of them, and adds the
 * result to two blocks of the matrix. Returns the number of this rank's tasks.
 */
static long fock_build(int density, int fock, int n, int block, double *buf)
{
    int one_dim[1] = {1}, zero_sub[1] = {0}, ld = block;
    long nb = n / block, tasks = nb * nb, mine = 0;
    double *d1 = buf, *d2 = d1 + block * block, *f = d2 + block * block, one = 1.0;
    int counter = NGA_Create(C_LONG, 1, one_dim, "next task", NULL);
    if (!counter)
        GA_Error("cannot create the counter", 1);
    GA_Zero(counter);
    for (long t; (t = NGA_Read_inc(counter, zero_sub, 1)) < tasks; mine++) {
        int i = (int)(t / nb) * block, j = (int)(t % nb) * block;
        int lo1[2] = {i, j}, hi1[2] = {i + block - 1, j + block - 1};
        int lo2[2] = {j, i}, hi2[2] = {j + block - 1, i + block - 1};
        NGA_Get(density, lo1, hi1, d1, &ld);
        NGA_Get(density, lo2, hi2, d2, &ld);
        memset(f, 0, sizeof(double) * (size_t)block * (size_t)block);
        for (int k = 0; k < 4; k++)
            for (int r = 0; r < block; r++)
                for (int c = 0; c < block; c++)
                    for (int s = 0; s < 4; s++)
                        f[r * block + c] += d1[r * block + s + 4 * k] * d2[(s + 4 * k) * block + c];
        NGA_Acc(fock, lo1, hi1, f, &ld, &one);
        NGA_Acc(fock, lo2, hi2, f, &ld, &one);
    }
    GA_Sync();
    GA_Symmetrize(fock);
    GA_Destroy(counter);
    return mine;
}

static void scf_like(void)
{
    const int n = 512, block = 32, reps = bench_quick ? 3 : 5;
    double took[MAX_REPS], half = 0.5, element = 0;
    double *buf = malloc(3 * sizeof(double) * (size_t)block * (size_t)block);
    int density = matrix("density", n), fock = matrix("fock", n), corner[2] = {n - 1, n - 1}, ld = 1;
    if (!buf)
        GA_Error("ga_bench: no memory", 1);
    GA_Fill(density, &half);
    for (int r = -1; r < reps; r++) {       /* the first one is a warm-up */
        GA_Zero(fock);
        GA_Sync();
        double start = now();
        long tasks = fock_build(density, fock, n, block, buf);
        GA_Lgop(&tasks, 1, "+");
        if (r >= 0)
            took[r] = (now() - start) * 1e6;
        if (tasks != (long)(n / block) * (n / block))
            GA_Error("ga_bench: tasks are lost", (int)tasks);
    }
    if (me == 0)
        report("scf_like", median(took, reps));
    NGA_Get(fock, corner, corner, &element, &ld);
    if (element != 2 * 16 * half * half)
        GA_Error("ga_bench: the Fock matrix is wrong", 1);
    GA_Sync();
    GA_Destroy(fock);
    GA_Destroy(density);
    free(buf);
}

/* ---- single calls ------------------------------------------------------ */

static int target_matrix, target_counter, corner[2], opposite[2], leading[1], counter_at[1];
static double *patch;

static void put_patch(void) { NGA_Put(target_matrix, corner, opposite, patch, leading); }
static void get_patch(void) { NGA_Get(target_matrix, corner, opposite, patch, leading); }

static void acc_patch(void)
{
    double half = 0.5;
    NGA_Acc(target_matrix, corner, opposite, patch, leading, &half);
}

static void read_inc(void) { NGA_Read_inc(target_counter, counter_at, 1); }

/* Completes the operations since the last call. */
static void settle(void)
{
    GA_Fence();
    GA_Init_fence();
}

static void single(operation op, const char *name)
{
    GA_Sync();
    if (me == 0) {
        double us;
        GA_Init_fence();
        measure(1, &op, settle, &us);
        GA_Fence();
        report(name, us);
    }
    GA_Sync();
}

/* Measures the calls for n x n elements in the block of the last rank. */
static void patches(int n, const char *const names[3])
{
    int last = GA_Nnodes() - 1, low[2], high[2];
    NGA_Distribution(target_matrix, last, low, high);
    for (int d = 0; d < 2; d++)
        corner[d] = low[d], opposite[d] = low[d] + n - 1;
    leading[0] = n;
    single(put_patch, names[0]);
    single(get_patch, names[1]);
    single(acc_patch, names[2]);
}

static void calls(void)
{
    static const char *const one[] = {"ga_put_1", "ga_get_1", "ga_acc_1"};
    static const char *const many[] = {"ga_put_512", "ga_get_512", "ga_acc_512"};
    int low[1], high[1], length[1] = {64};
    target_matrix = matrix("target", 2048);
    target_counter = NGA_Create(C_LONG, 1, length, "counters", NULL);
    patch = calloc(512 * 512, sizeof *patch);
    if (!target_counter || !patch)
        GA_Error("ga_bench: no memory", 1);
    GA_Zero(target_matrix);
    GA_Zero(target_counter);
    NGA_Distribution(target_counter, GA_Nnodes() - 1, low, high);
    counter_at[0] = low[0];
    patches(1, one);
    patches(512, many);
    single(read_inc, "ga_read_inc");
    free(patch);
    GA_Destroy(target_counter);
    GA_Destroy(target_matrix);
}

static void arrays(void)
{
    int g[ARRAYS], reps = bench_quick ? 1 : 3;
    double took[MAX_REPS];
    for (int r = 0; r < reps; r++) {
        GA_Sync();
        double start = now();
        for (int i = 0; i < ARRAYS; i++)
            g[i] = matrix("brief", 100);
        for (int i = 0; i < ARRAYS; i++)
            GA_Destroy(g[i]);
        GA_Sync();
        took[r] = (now() - start) * 1e6;
    }
    if (me == 0)
        report("ga_200_arrays", median(took, reps));
}

int main(int argc, char **argv)
{
    const char *other;
    int at = 1, n = 1024, block = 32;
    while ((other = bench_argument(argv, &at)) != NULL) {
        int *value = strcmp(other, "--n") == 0 ? &n : strcmp(other, "--block") == 0 ? &block : NULL;
        if (!value || !argv[at] || (*value = atoi(argv[at++])) < 1) {
            fprintf(stderr, "ga_bench: cannot use argument %s\n", other);
            return 2;
        }
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &at); /* which some runtimes require */
    GA_Initialize();
    me = GA_Nodeid();
    if (!MA_init(C_DBL, 1 << 20, 1 << 20))
        GA_Error("MA_init failed", 1);
    if (wanted("ga_matmul"))
        matmul(n, block);
    if (wanted("scf_like"))
        scf_like();
    if (wanted("ga_200_arrays"))
        arrays();
    if (wanted("ga_calls"))
        calls();
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
