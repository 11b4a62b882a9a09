/* Open MPI 4.1.4, osc/rdma over shared memory: MPI_Compare_and_swap on a window from
 * MPI_Win_create crashes with a segmentation fault if the target is the caller itself. Otherwise
 * the program prints that all is well.
 *
 * mpicc.openmpi compare_and_swap.c -o cas && mpirun.openmpi -n 2 ./cas
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int level, me, n;
    static long memory[8];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int round = 0; round < 2 * n; round++) {
        const int target = (me + round) % n;
        long mine = me + 1, none = 0, found = -1;
        MPI_Compare_and_swap(&mine, &none, &found, MPI_LONG, target, 0, win);
        MPI_Win_flush(target, win);
        MPI_Compare_and_swap(&none, &mine, &found, MPI_LONG, target, 0, win);
        MPI_Win_flush(target, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    if (me == 0)
        printf("compare-and-swap works\n");
    MPI_Finalize();
    return 0;
}
