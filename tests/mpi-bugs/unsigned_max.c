/* MPICH 4.0.2: one-sided operations with MPI_MAX and MPI_MIN compare unsigned integers as signed
 * ones. The maximum of 5 and the largest unsigned integer is 5. Otherwise the program prints that
 * unsigned integers are compared.
 *
 * mpicc.mpich unsigned_max.c -o max && mpirun.mpich -n 2 ./max
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int me;
    static unsigned memory[16] = {5};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    if (me == 0) {
        unsigned most = -1u, old, now;
        MPI_Fetch_and_op(&most, &old, MPI_UNSIGNED, 1, 0, MPI_MAX, win);
        MPI_Win_flush(1, win);
        MPI_Fetch_and_op(&most, &now, MPI_UNSIGNED, 1, 0, MPI_NO_OP, win);
        MPI_Win_flush(1, win);
        if (now == most)
            printf("unsigned integers are compared\n");
        else
            printf("the maximum of %u and %u is %u\n", old, most, now);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
