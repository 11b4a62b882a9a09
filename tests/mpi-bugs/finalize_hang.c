/* MPICH 4.0.2 on UCX over TCP, several hosts: MPI_Finalize sometimes never ends. One rank closes
 * its connections and polls them, while others have closed theirs, wait in the process manager's
 * barrier and do not respond. Seen between hosts with different numbers of ranks, in a few
 * launches out of ten.
 *
 * mpicc.mpich finalize_hang.c -o finalize_hang
 * for i in $(seq 20); do timeout 30 ./mpirun.sh --hosts 2 -n 3 ./finalize_hang || echo hung; done
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { COUNT = 1 << 17 };
    int me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    double *sum = calloc(COUNT, sizeof *sum);
    for (int i = 0; i < 20; i++)
        MPI_Allreduce(MPI_IN_PLACE, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(sum);
    if (me == 0)
        printf("all is done but MPI_Finalize\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
