/* Open MPI 5.0.7 (Debian 13): the launcher sometimes moves a part of a rank's standard error
 * into standard output, before the line that was written there.
 *
 * mpicc.openmpi mixed_streams.c -o mixed_streams
 * for i in $(seq 10); do mpiexec.openmpi -n 1 ./mixed_streams 2>/dev/null; done
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 300; i++)
        fprintf(stderr, "error %d: a line of ordinary length on standard error\n", i);
    printf("result\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
