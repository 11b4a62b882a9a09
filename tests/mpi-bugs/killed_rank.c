/* MPICH 4.2.1 (Debian 13): mpiexec sometimes exits with code 0 and without a message although
 * SIGKILL ended a rank: 9 of 40 runs with two ranks, 5 of 40 with three. MPICH 4.0.2 exits with
 * 9 in all 40 runs. MPICH issue 7057 reports the same for a rank that leaves by _exit.
 *
 * mpicc.mpich killed_rank.c -o killed_rank
 * for i in $(seq 20); do mpiexec.mpich -n 2 ./killed_rank; echo $?; done
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *killer(void *unused)
{
    (void)unused;
    usleep(70000);
    kill(getpid(), SIGKILL);
    return NULL;
}

int main(int argc, char **argv)
{
    int me, size, level;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (me == size - 1)
        pthread_create(&thread, NULL, killer, NULL);
    for (;;)
        MPI_Barrier(MPI_COMM_WORLD);
}
