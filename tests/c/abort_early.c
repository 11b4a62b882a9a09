/*
 * A call before ARMCI_Init but after MPI_Init ends all ranks by MPI_Abort. If the process only
 * exited, the launcher would have to end the other ranks, and it may report success.
 */
// TEST: abort n=2 -- early
#include <mpi.h>
#include <armci.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int aborts;

int MPI_Abort(MPI_Comm comm, int code)
{
    aborts = 1;
    return PMPI_Abort(comm, code);
}

static void leaves(void)
{
    if (!aborts) {
        printf("FAIL the process leaves without MPI_Abort\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int me;
    MPI_Init(&argc, &argv);
    if (argc != 2 || strcmp(argv[1], "early") != 0) {
        fprintf(stderr, "usage: abort_early early\n");
        return 2;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    atexit(leaves);
    if (me == 0) {
        printf("EXPECT-ABORT early\n");
        fflush(stdout);
        ARMCI_Fence(0);
        printf("FAIL the call returned\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    aborts = 1;
    MPI_Finalize();
    return 0;
}
