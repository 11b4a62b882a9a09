/* Open MPI 5.0: MPI_BAND, MPI_BOR and MPI_BXOR of one-sided operations combine a number of 64 bits
 * with itself instead of the operand. MPI_BXOR of 6 and 3 is 0. Numbers of 32 bits, and numbers of
 * the caller, are right. Otherwise the program prints that the result is right.
 *
 * mpicc.openmpi bitwise.c -o bitwise && mpirun.openmpi -n 2 ./bitwise
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int me;
    static long memory[8] = {6};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    if (me == 0) {
        long operand = 3, old, now;
        MPI_Fetch_and_op(&operand, &old, MPI_LONG, 1, 0, MPI_BXOR, win);
        MPI_Win_flush(1, win);
        MPI_Fetch_and_op(&operand, &now, MPI_LONG, 1, 0, MPI_NO_OP, win);
        MPI_Win_flush(1, win);
        if (now == (old ^ operand))
            printf("the result is right\n");
        else
            printf("%ld ^ %ld is %ld\n", old, operand, now);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
