/* Each rank puts a number into its neighbour's memory without the neighbour's participation.
 *
 *     ./mpirun.sh -n 4 --example hello
 */
#include <armci.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int me, ranks;
    MPI_Init(&argc, &argv);
    ARMCI_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    void *inbox[ranks]; /* the address of each rank's part */
    ARMCI_Malloc(inbox, sizeof(int));
    int mine = 100 + me, next = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
    ARMCI_Put(&mine, inbox[next], sizeof mine, next);
    ARMCI_Barrier(); /* all puts are now complete and visible */

    int got = *(int *)inbox[me];
    printf("rank %d of %d: %d from rank %d\n", me, ranks, got, from);
    ARMCI_Free(inbox[me]);
    ARMCI_Finalize();
    MPI_Finalize();
    return got != 100 + from;
}
