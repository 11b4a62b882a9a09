/* Intel MPI 2021.19: MPI_Open_port crashes in a job on one node, whose ranks use shared memory
 * only (MPIDI_OFI_mpi_open_port reads through a null pointer).
 *
 * mpicc open_port.c -o open_port && mpiexec -n 1 ./open_port
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    printf("asking for a port\n");
    fflush(stdout);
    int code = MPI_Open_port(MPI_INFO_NULL, port);
    printf(code ? "there are no ports\n" : "ports work\n");
    if (!code)
        MPI_Close_port(port);
    MPI_Finalize();
    return 0;
}
