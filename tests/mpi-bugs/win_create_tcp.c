/* Open MPI 4.1.4, two hosts with TCP between them: MPI_Win_create and MPI_Win_allocate fail with
 * MPI_ERR_WIN at every thread level, because no one-sided component accepts a window that spans
 * hosts. osc/pt2pt does if it is selected by name, but not with MPI_THREAD_MULTIPLE. Prints the
 * result of each call.
 *
 * mpicc.openmpi win_create_tcp.c -o win_create_tcp
 * ./mpirun.sh --mpi openmpi --hosts 2 -n 2 ./win_create_tcp
 */
#include <mpi.h>
#include <stdio.h>

static const char *text(int code)
{
    static char texts[2][MPI_MAX_ERROR_STRING];
    static int turn;
    int length;
    char *s = texts[turn++ % 2];
    MPI_Error_string(code, s, &length);
    return s;
}

int main(int argc, char **argv)
{
    int me, created, allocated;
    static char memory[4096];
    void *base;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    created = MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (created == MPI_SUCCESS)
        MPI_Win_free(&win);
    allocated = MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (allocated == MPI_SUCCESS)
        MPI_Win_free(&win);
    if (me == 0)
        printf("MPI_Win_create: %s; MPI_Win_allocate: %s\n%s\n", text(created), text(allocated),
               created == MPI_SUCCESS && allocated == MPI_SUCCESS ? "windows work" : "no windows");
    MPI_Finalize();
    return 0;
}
