/* MPICH 4.0.2: MPI_Rget with a derived datatype on either side completes its request before the
 * data has arrived. Prints how many of 200 gets were wrong.
 *
 * mpicc.mpich rget_derived.c -o rget_derived && mpiexec.mpich -n 3 ./rget_derived
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 24, BLOCKS = 5, STRIDE = 100, BYTES = BLOCK * BLOCKS };

static int place(int derived, int k)
{
    return derived ? k / BLOCK * STRIDE + k % BLOCK : k;
}

int main(int argc, char **argv)
{
    int level, me, n, wrong = 0, all = 0;
    static char memory[4096];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int i = 0; i < 4096; i++)
        memory[i] = (char)(i + me);

    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Datatype row, rows;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &row);
    MPI_Type_create_hvector(BLOCKS, 1, STRIDE, row, &rows);
    MPI_Type_commit(&rows);

    const int target = (me + 1) % n;
    for (int round = 0; round < 200; round++) {
        const int here = round & 1, there = round >> 1 & 1;
        char got[1024];
        MPI_Request request;
        int done = 0, differs = 0;
        memset(got, 0x77, sizeof got);
        MPI_Rget(got, here ? 1 : BYTES, here ? rows : MPI_BYTE, target, 5, there ? 1 : BYTES,
                 there ? rows : MPI_BYTE, win, &request);
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        for (int k = 0; k < BYTES; k++)
            differs |= got[place(here, k)] != (char)(place(there, k) + 5 + target);
        wrong += differs;
        MPI_Win_flush(target, win);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%d of %d gets were wrong when their request was complete\n", all, 200 * n);

    MPI_Type_free(&row);
    MPI_Type_free(&rows);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return all != 0;
}
