/*
 * Benchmarks of the paths between nodes: two programs like those that use Global Arrays.
 *
 *   mpiexec -n 2 paths_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Prints `name<TAB>microseconds`:
 *   mult     matrix products of whole arrays and of patches at odd offsets, with four types, in 2
 *            to 4 dimensions: strided gets and accumulates
 *   sparse   a sparse matrix in compressed rows times a vector: rows distributed by a counter,
 *            small gets, puts and accumulates, gather, scatter, scan and pack
 * The program checks the products.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

#include "bench.h"

#define ROWS 4000               /* of the sparse matrix */
#define PER_ROW 5
#define CHUNK 100               /* rows per task */

static int me, ranks;

/* C = A B, with all elements of A equal to x and all elements of B equal to y. */
static void product(int type, int dimensions, int n)
{
    static float f[2] = {2, 0}, fone[2] = {1, 0}, fzero[2];
    static double d[2] = {2, 0}, done[2] = {1, 0}, dzero[2];
    int single = type == C_FLOAT || type == C_SCPL, ld[6], extent = n - 2;
    void *two = single ? (void *)f : d, *one = single ? (void *)fone : done;
    void *zero = single ? (void *)fzero : dzero;
    int dims[7] = {n, n, 2, 2}, lo[7] = {1, 1, 1, 1}, hi[7] = {n - 2, n - 2, 1, 1};
    int g_a = NGA_Create(type, dimensions, dims, "A", NULL);
    int g_b = GA_Duplicate(g_a, "B"), g_c = GA_Duplicate(g_a, "C");
    if (!g_a || !g_b || !g_c)
        GA_Error("paths_bench: cannot create arrays", n);
    GA_Fill(g_a, two);
    GA_Fill(g_b, two);
    GA_Zero(g_c);
    NGA_Matmul_patch('N', 'N', one, zero, g_a, lo, hi, g_b, lo, hi, g_c, lo, hi);
    union { float single[4]; double plain[2]; } corner = {.plain = {0, 0}};
    for (int k = 0; k < 6; k++)
        ld[k] = 1;
    NGA_Get(g_c, hi, hi, &corner, ld);
    double got = single ? corner.single[0] : corner.plain[0];
    if (got != 4.0 * extent)
        GA_Error("paths_bench: the product of patches is wrong", (int)got);
    GA_Sync();
    GA_Destroy(g_a);
    GA_Destroy(g_b);

    int flat[2] = {extent, extent}, all_lo[2] = {0, 0}, all_hi[2] = {extent - 1, extent - 1};
    int whole_a = NGA_Create(type, 2, flat, "whole A", NULL);
    int whole_b = GA_Duplicate(whole_a, "whole B"), whole_c = GA_Duplicate(whole_a, "whole C");
    GA_Fill(whole_a, two);
    GA_Fill(whole_b, two);
    GA_Zero(whole_c);
    if (type == C_FLOAT)
        GA_Sgemm('N', 'T', extent, extent, extent, 1, whole_a, whole_b, 0, whole_c);
    else if (type == C_DBL)
        GA_Dgemm('N', 'T', extent, extent, extent, 1, whole_a, whole_b, 0, whole_c);
    else if (type == C_SCPL)
        GA_Cgemm('N', 'T', extent, extent, extent, (SingleComplex){1, 0}, whole_a, whole_b, (SingleComplex){0, 0}, whole_c);
    else
        GA_Zgemm('N', 'T', extent, extent, extent, (DoubleComplex){1, 0}, whole_a, whole_b, (DoubleComplex){0, 0}, whole_c);
    NGA_Copy_patch('N', g_c, lo, hi, whole_a, all_lo, all_hi);
    NGA_Get(whole_a, all_hi, all_hi, &corner, ld);
    got = single ? corner.single[0] : corner.plain[0];
    if (got != 4.0 * extent)
        GA_Error("paths_bench: the copied patch is wrong", (int)got);
    GA_Sync();
    GA_Destroy(whole_c);
    GA_Destroy(whole_b);
    GA_Destroy(whole_a);
    GA_Destroy(g_c);
}

static void mult(void)
{
    int n = bench_quick ? 120 : 240;
    for (int dimensions = 2; dimensions <= 4; dimensions++) {
        product(C_FLOAT, dimensions, n);
        product(C_DBL, dimensions, n);
        product(C_DCPL, dimensions, n);
        product(C_SCPL, dimensions, n);
    }
}

static int vector(int type, int n, char *name)
{
    int g = NGA_Create(type, 1, &n, name, NULL);
    if (!g)
        GA_Error("paths_bench: cannot create a vector", n);
    return g;
}

/* Returns the column of the k-th element of a row: arbitrary, but always the same. */
static int column(int row, int k) { return (int)(((long)row * 7919 + k * 104729L + row % 13) % ROWS); }
static double element(int row, int k) { return 1 + (row + k) % 3; }
static double entry(int column) { return column % 7 - 3; }

/* y = M x: once by accumulates, once by running sums of the products. */
static void sparse(void)
{
    int size = ROWS * PER_ROW, one = 1, zero[1] = {0}, rows = bench_quick ? ROWS / 4 : ROWS;
    int g_values = vector(C_DBL, size, "values"), g_columns = vector(C_INT, size, "columns");
    int g_begins = vector(C_INT, size, "begins"), g_x = vector(C_DBL, ROWS, "x");
    int g_y = vector(C_DBL, ROWS, "y"), g_z = vector(C_DBL, ROWS, "z");
    int g_products = vector(C_DBL, size, "products"), g_sums = vector(C_DBL, size, "sums");
    int g_next = vector(C_LONG, 1, "counter");
    GA_Zero(g_y);
    GA_Zero(g_z);
    GA_Zero(g_next);
    GA_Zero(g_begins);
    GA_Sync();

    /* Rows are distributed cyclically, so that half of the small puts go to the other node. */
    for (int r = me; r < rows; r += ranks) {
        double values[PER_ROW], x = entry(r);
        int columns[PER_ROW], begins = 1, lo = r * PER_ROW, hi = lo + PER_ROW - 1;
        for (int k = 0; k < PER_ROW; k++) {
            values[k] = element(r, k);
            columns[k] = column(r, k);
        }
        NGA_Put(g_values, &lo, &hi, values, &one);
        NGA_Put(g_columns, &lo, &hi, columns, &one);
        NGA_Put(g_begins, &lo, &lo, &begins, &one);
        NGA_Put(g_x, &r, &r, &x, &one);
    }
    for (int r = rows + me; r < ROWS; r += ranks) {
        double x = entry(r);
        NGA_Put(g_x, &r, &r, &x, &one);
    }
    GA_Sync();

    /* By rows: two gets per chunk, a gather, one accumulate per row. */
    double values[CHUNK * PER_ROW], x[CHUNK * PER_ROW], scale = 1;
    int columns[CHUNK * PER_ROW], *list[CHUNK * PER_ROW];
    for (int e = 0; e < CHUNK * PER_ROW; e++)
        list[e] = &columns[e];
    for (long t; (t = NGA_Read_inc(g_next, zero, 1)) < rows / CHUNK;) {
        int first = (int)t * CHUNK, lo = first * PER_ROW, hi = lo + CHUNK * PER_ROW - 1;
        NGA_Get(g_values, &lo, &hi, values, &one);
        NGA_Get(g_columns, &lo, &hi, columns, &one);
        NGA_Gather(g_x, x, list, CHUNK * PER_ROW);
        for (int r = 0; r < CHUNK; r++) {
            double sum = 0;
            for (int k = 0; k < PER_ROW; k++)
                sum += values[r * PER_ROW + k] * x[r * PER_ROW + k];
            int at = first + r;
            NGA_Acc(g_y, &at, &at, &sum, &one, &scale);
        }
        for (int e = 0; e < CHUNK * PER_ROW; e++)
            x[e] *= values[e];
        int places[CHUNK * PER_ROW], *where[CHUNK * PER_ROW];
        for (int e = 0; e < CHUNK * PER_ROW; e++) {
            places[e] = lo + e;
            where[e] = &places[e];
        }
        NGA_Scatter(g_products, x, where, CHUNK * PER_ROW);
    }
    GA_Sync();

    /* With Global Arrays' own operations: running sums that restart with each row. */
    GA_Scan_add(g_products, g_sums, g_begins, 0, rows * PER_ROW - 1, 0);
    GA_Sync();
    int own_lo, own_hi;
    NGA_Distribution(g_z, me, &own_lo, &own_hi);
    for (int r = own_lo; r <= own_hi && r >= 0 && r < rows; r++) {
        int last = r * PER_ROW + PER_ROW - 1;
        double sum;
        NGA_Get(g_sums, &last, &last, &sum, &one);
        NGA_Put(g_z, &r, &r, &sum, &one);
    }
    GA_Sync();
    double y[CHUNK], z[CHUNK];
    for (int first = me * CHUNK; first < rows; first += ranks * CHUNK) {
        int last = first + CHUNK - 1;
        NGA_Get(g_y, &first, &last, y, &one);
        NGA_Get(g_z, &first, &last, z, &one);
        for (int r = 0; r < CHUNK; r++) {
            double want = 0;
            for (int k = 0; k < PER_ROW; k++)
                want += element(first + r, k) * entry(column(first + r, k));
            if (y[r] != want || z[r] != want) {
                fprintf(stderr, "row %d is %g and %g, not %g\n", first + r, y[r], z[r], want);
                GA_Error("paths_bench: the sparse product is wrong", first + r);
            }
        }
    }
    GA_Sync();
    int all[] = {g_values, g_columns, g_begins, g_x, g_y, g_z, g_products, g_sums, g_next};
    for (size_t a = 0; a < sizeof all / sizeof *all; a++)
        GA_Destroy(all[a]);
}

static void program(const char *name, void (*run)(void), int reps)
{
    double took[MAX_REPS];
    if (!wanted(name))
        return;
    for (int r = 0; r < reps; r++) {
        GA_Sync();
        double start = now();
        run();
        GA_Sync();
        took[r] = (now() - start) * 1e6;
    }
    if (me == 0) {
        /* The minimum, because disturbances only add to a run. */
        double least = took[0];
        for (int r = 1; r < reps; r++)
            least = took[r] < least ? took[r] : least;
        report(name, least);
    }
}

int main(int argc, char **argv)
{
    const char *other;
    int at = 1;
    if ((other = bench_argument(argv, &at)) != NULL) {
        fprintf(stderr, "paths_bench: cannot use argument %s\n", other);
        return 2;
    }
    MPI_Init(&argc, &argv);
    GA_Initialize();
    me = GA_Nodeid();
    ranks = GA_Nnodes();
    if (!MA_init(C_DBL, 4 << 20, 4 << 20))
        GA_Error("MA_init failed", 1);
    if (ranks < 2)
        GA_Error("paths_bench: at least two ranks are needed", ranks);
    program("mult", mult, bench_quick ? 1 : 2);
    program("sparse", sparse, bench_quick ? 1 : 3);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
