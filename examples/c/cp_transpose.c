/*
 * The transpose of a matrix that is distributed by rows, composed once and performed many times. No
 * rank packs or receives data.
 *
 *   mpiexec -n 4 cp_transpose [n [times]]
 *
 * Each rank has n / ranks rows of A and of B = A^T. A row of B receives a part of a column of A
 * from each rank. The part is a slice of single numbers at the source and one block at the
 * destination. The exit status is 0 if all of B is correct in each check.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>
#include <cp.h>

static void must(int result, const char *call)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: %s\n", call, cp_errmsg());
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

static double value(long row, long column, int time) { return 1e-3 * time + (double)(row * 7919 + column); }

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MUST(cp_init());
    const int me = cp_rank(), nranks = cp_nprocs();
    const long wanted = argc > 1 ? atol(argv[1]) : 480;
    const int times = argc > 2 ? atoi(argv[2]) : 1000;
    const long rows = (wanted + nranks - 1) / nranks, n = rows * nranks;
    const size_t bytes = (size_t)(rows * n) * sizeof(double);

    void **a = malloc((size_t)nranks * sizeof *a), **b = malloc((size_t)nranks * sizeof *b);
    MUST(cp_malloc(a, bytes));
    MUST(cp_malloc(b, bytes));
    double *from = a[me], *to = b[me];

    double begun = MPI_Wtime();
    // ANCHOR: compose
    int all = cp_create(me);
    MUST(all);
    for (int target = 0; target < nranks; target++) {
        const int one = cp_create(target);
        MUST(one);
        for (long j = 0; j < rows; j++) /* row j of the target is column target * rows + j here */
            MUST(cp_add_adxslice(one, from + target * rows + j, (void *)(n * (long)sizeof(double)),
                                 sizeof(double), (unsigned)rows,
                                 (double *)b[target] + j * n + me * rows, NULL,
                                 (unsigned)(rows * (long)sizeof(double)), 1));
        const int more = cp_merge(all, one);
        MUST(more);
        MUST(cp_destroy(all));
        MUST(cp_destroy(one));
        all = more;
    }
    const int transpose = cp_map(all);
    MUST(transpose);
    // ANCHOR_END: compose
    const double composing = MPI_Wtime() - begun;

    long wrong = 0, all_wrong = 0;
    double moving = 0;
    for (int time = 0; time < times; time++) {
        const int looked_at = time % 100 == 0 || time == times - 1;
        if (looked_at)
            for (long i = 0; i < rows; i++)
                for (long j = 0; j < n; j++)
                    from[i * n + j] = value(me * rows + i, j, time);
        begun = MPI_Wtime();
        // ANCHOR: perform
        MUST(cp_sync());
        MUST(cp_perform(transpose));
        MUST(cp_waitfor(nranks));
        // ANCHOR_END: perform
        moving += MPI_Wtime() - begun;
        if (looked_at)
            for (long i = 0; i < rows; i++)
                for (long j = 0; j < n; j++)
                    wrong += to[i * n + j] != value(j, me * rows + i, time);
    }
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0)
        printf("%ld x %ld on %d ranks: composed in %.1f us, %d times, %.1f us each (%.2f GB/s a "
               "rank), %ld numbers wrong\n",
               n, n, nranks, composing * 1e6, times, moving / times * 1e6,
               (double)bytes * times / moving / 1e9, all_wrong);
    MUST(cp_destroy(transpose));
    MUST(cp_destroy(all));
    MUST(cp_sync());
    MUST(cp_free(a[me]));
    MUST(cp_free(b[me]));
    free(a);
    free(b);
    MUST(cp_finalize());
    MPI_Finalize();
    return all_wrong != 0;
}
