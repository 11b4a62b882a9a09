/* MPICH 5.0.2 from PyPI, UCX over TCP between two hosts: MPI_Test never completes a receive that
 * was posted after its message had arrived, at any thread level. Receives that were posted
 * earlier and messages that are probed complete, and with MPIR_CVAR_CH4_NETMOD=ofi all receives
 * do. Prints `all messages came`, or the number of messages that completed within five seconds.
 *
 * mpicc test_unexpected.c -o test_unexpected
 * PORTOLAN_MPI_AS_IT_IS=1 ./mpirun.sh --mpi mpich-wheel --hosts 2 -n 2 ./test_unexpected
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 300, POSTED = 8, BYTES = 64 };

int main(int argc, char **argv)
{
    static char in[POSTED][BYTES], out[BYTES];
    MPI_Request receive[POSTED], send[MESSAGES];
    int me, n, came = 0, at = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int i = 0; i < POSTED; i++)
        MPI_Irecv(in[i], BYTES, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &receive[i]);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Isend(out, BYTES, MPI_BYTE, (me + 1) % n, 7, MPI_COMM_WORLD, &send[i]);
    for (const double begin = MPI_Wtime(); came < MESSAGES && MPI_Wtime() - begin < 5;) {
        int done;
        MPI_Test(&receive[at], &done, MPI_STATUS_IGNORE);
        if (!done)
            continue;
        if (++came <= MESSAGES - POSTED) /* MESSAGES receives in total */
            MPI_Irecv(in[at], BYTES, MPI_BYTE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &receive[at]);
        at = (at + 1) % POSTED;
    }
    if (came < MESSAGES) {
        printf("only %d of %d messages came\n", came, MESSAGES);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Waitall(MESSAGES, send, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0)
        printf("all messages came\n");
    MPI_Finalize();
    return 0;
}
