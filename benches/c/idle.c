/*
 * The cost of a library while nothing happens: the CPU time of all threads of a rank while the rank
 * sleeps.
 *
 *   mpiexec -n 2 idle [seconds]
 *
 * Prints `idle_percent<TAB>value`: per cent of one core, for the rank with the highest value.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <mpi.h>
#include <armci.h>

static double used(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    int me, ranks, seconds = argc > 1 ? atoi(argv[1]) : 5;
    MPI_Init(&argc, &argv);
    ARMCI_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    /* Generate some traffic first, so that the threads that serve it are awake. */
    void **base = malloc((size_t)ranks * sizeof *base);
    double value = 1.0;
    if (!base || seconds < 1 || ARMCI_Malloc(base, 4096) != 0) {
        fprintf(stderr, "idle: no memory, or not a number of seconds\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    memset(base[me], 0, 4096);
    ARMCI_Barrier();
    for (int i = 0; i < 1000; i++)
        ARMCI_Acc(ARMCI_ACC_DBL, &value, &value, base[(me + 1) % ranks], 8, (me + 1) % ranks);
    ARMCI_Barrier();

    struct timespec rest = {0, 100000000}, whole = {seconds, 0};
    nanosleep(&rest, NULL);
    double before = used();
    nanosleep(&whole, NULL);
    double percent = 100.0 * (used() - before) / seconds, worst = percent;
    MPI_Reduce(&percent, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("idle_percent\t%.4g\n", worst);

    ARMCI_Barrier();
    ARMCI_Free(base[me]);
    free(base);
    ARMCI_Finalize();
    MPI_Finalize();
    return 0;
}
