/*
 * A 3-D halo exchange, composed once and performed many times.
 *
 * The ranks form a periodic grid. Each rank has a block of n*n*n numbers, surrounded by a halo one
 * cell wide. The faces, edges and corners for all 26 neighbours are one composition: described by
 * slices, merged and mapped. A step of the program is then three calls.
 *
 *   mpiexec -n 4 cp_halo [n [steps]]
 *
 * The program compares every cell of the halo with its expected value, in the first step, the last
 * step and every hundredth step. The exit status is 0 if all agree.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#include <cp.h>

static int me, nranks, n, side;
static int dims[3], at[3];

static void must(int result, const char *call)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: %s\n", call, cp_errmsg());
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

static int wrap(int i, int size) { return (i + size) % size; }

static int rank_of(int x, int y, int z)
{
    return (wrap(z, dims[2]) * dims[1] + wrap(y, dims[1])) * dims[0] + wrap(x, dims[0]);
}

static long cell(int x, int y, int z) { return ((long)z * side + y) * side + x; }

/* Returns the value of a cell of the whole grid in a step. */
static double value(int x, int y, int z, int step)
{
    const long nx = (long)n * dims[0], ny = (long)n * dims[1], nz = (long)n * dims[2];
    const long gx = (x + nx) % nx, gy = (y + ny) % ny, gz = (z + nz) % nz;
    return (double)((gz * ny + gy) * nx + gx) + 0.25 * step;
}

/* Returns the first cell to send in a direction, along one axis, and stores the number of cells. */
static int source(int d, int *count)
{
    *count = d ? 1 : n;
    return d > 0 ? n : 1;
}

static int destination(int d) { return d > 0 ? 0 : d < 0 ? n + 1 : 1; }

/* Composes all transfers to the 26 neighbours. Stores the number of ranks that send to this one. */
static int compose(double **block, int *sources)
{
    char *known = calloc((size_t)nranks, 1);
    int all = -1, x, y, z, nx, ny, nz;

    *sources = 0;
    for (int d = 0; d < 27; d++) {
        const int dx = d % 3 - 1, dy = d / 3 % 3 - 1, dz = d / 9 - 1;
        if (!dx && !dy && !dz)
            continue;
        const int target = rank_of(at[0] + dx, at[1] + dy, at[2] + dz);
        const int one = cp_create(target);
        MUST(one);
        x = source(dx, &nx), y = source(dy, &ny), z = source(dz, &nz);
        const size_t row = (size_t)side * sizeof(double);
        for (int k = 0; k < nz; k++) /* a plane: ny rows of nx cells */
            MUST(cp_add_adxslice(one, block[me] + cell(x, y, z + k), (void *)row,
                                 (unsigned)(nx * sizeof(double)), (unsigned)ny,
                                 block[target] + cell(destination(dx), destination(dy), destination(dz) + k),
                                 (void *)row, (unsigned)(nx * sizeof(double)), (unsigned)ny));
        if (all < 0) {
            all = one;
        } else {
            const int more = cp_merge(all, one);
            MUST(more);
            MUST(cp_destroy(all));
            MUST(cp_destroy(one));
            all = more;
        }
        /* the neighbour relation is symmetric */
        if (!known[target]++)
            ++*sources;
    }
    const int mapped = cp_map(all);
    MUST(mapped);
    MUST(cp_destroy(all));
    free(known);
    return mapped;
}

static void fill(double *block, int step)
{
    for (int z = 1; z <= n; z++)
        for (int y = 1; y <= n; y++)
            for (int x = 1; x <= n; x++)
                block[cell(x, y, z)] =
                    value(at[0] * n + x - 1, at[1] * n + y - 1, at[2] * n + z - 1, step);
}

static long wrong_cells(const double *block, int step)
{
    long wrong = 0;
    for (int z = 0; z < side; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                wrong += block[cell(x, y, z)] !=
                         value(at[0] * n + x - 1, at[1] * n + y - 1, at[2] * n + z - 1, step);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MUST(cp_init());
    me = cp_rank(), nranks = cp_nprocs();
    n = argc > 1 ? atoi(argv[1]) : 32;
    const int steps = argc > 2 ? atoi(argv[2]) : 1000;
    side = n + 2;
    MPI_Dims_create(nranks, 3, dims);
    const int most = dims[0];       /* split z first, because planes of constant z are contiguous */
    dims[0] = dims[2], dims[2] = most;
    at[0] = me % dims[0], at[1] = me / dims[0] % dims[1], at[2] = me / dims[0] / dims[1];

    double **block = malloc((size_t)nranks * sizeof *block);
    MUST(cp_malloc((void **)block, (size_t)side * side * side * sizeof(double)));
    int sources;
    double begun = MPI_Wtime();
    const int halo = compose(block, &sources);
    const double composing = MPI_Wtime() - begun;

    long wrong = 0, all_wrong = 0;
    double moving = 0;
    for (int step = 0; step < steps; step++) {
        const int looked_at = step % 100 == 0 || step == steps - 1;
        if (looked_at)
            fill(block[me], step);
        begun = MPI_Wtime();
        MUST(cp_sync());            /* all ranks are done with the old halo */
        MUST(cp_perform(halo));
        MUST(cp_waitfor(sources));
        moving += MPI_Wtime() - begun;
        if (looked_at)
            wrong += wrong_cells(block[me], step);
    }
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) {
        const double bytes = 8.0 * ((double)side * side * side - (double)n * n * n);
        printf("grid %d x %d x %d, blocks of %d^3: composed in %.1f us, %d steps, %.1f us each "
               "(%.2f GB/s a rank), %ld cells wrong\n",
               dims[0], dims[1], dims[2], n, composing * 1e6, steps, moving / steps * 1e6,
               bytes * steps / moving / 1e9, all_wrong);
    }
    MUST(cp_destroy(halo));
    MUST(cp_sync());
    MUST(cp_free(block[me]));
    free(block);
    MUST(cp_finalize());
    MPI_Finalize();
    return all_wrong != 0;
}
