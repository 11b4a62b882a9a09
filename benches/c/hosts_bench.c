/*
 * One-sided transfers between two hosts beside MPI's own messages.
 *
 *   mpiexec -n 2 hosts_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Two ranks, one on each host. All cases are measured in turn, in one run; prints
 * `case<TAB>value`, the median. Of 8 bytes, in microseconds:
 *   pingpong      half a round trip of MPI_Send and MPI_Recv
 *   put_arrives   half a round trip of puts: each rank waits, in ARMCIX_Progress, until it
 *                 sees what the other has put, and puts back
 *   put_fence     ARMCI_Put and ARMCI_Fence: the origin knows that it has arrived
 *   get           ARMCI_Get
 *   fetch_add     ARMCI_Rmw
 * Of 1 MiB, in MiB a second, 16 at a time:
 *   send_rate     MPI_Isend and MPI_Irecv, and an answer when all are there
 *   put_rate      ARMCI_NbPut, and ARMCI_Fence
 *   get_rate      ARMCI_NbGet, and ARMCI_WaitAll
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <armcix.h>

#include "bench.h"

enum { LARGE = 1 << 20, AT_ONCE = 16, SMALL_TURNS = 200 };

static int me;
static void *small[2], *large[2];
static char *buffer;
static long turn;

static void must(int code, const char *call)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s returned %d\n", call, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

static void pingpong(void)
{
    long value = 0;
    for (int i = 0; i < SMALL_TURNS; i++) {
        if (me == 0)
            MPI_Send(&value, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&value, 8, MPI_BYTE, 1 - me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me == 1)
            MPI_Send(&value, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void put_arrives(void)
{
    volatile long *mine = small[me];
    for (int i = 0; i < SMALL_TURNS; i++) {
        turn++;
        if (me == 0)
            MUST(ARMCI_Put(&turn, small[1], 8, 1));
        while (*mine != turn)
            ARMCIX_Progress();
        if (me == 1)
            MUST(ARMCI_Put(&turn, small[0], 8, 0));
    }
}

static void put_fence(void)
{
    long value = 1;
    for (int i = 0; me == 0 && i < SMALL_TURNS; i++) {
        MUST(ARMCI_Put(&value, (long *)small[1] + 1, 8, 1));
        ARMCI_Fence(1);
    }
}

static void get(void)
{
    long value;
    for (int i = 0; me == 0 && i < SMALL_TURNS; i++)
        MUST(ARMCI_Get((long *)small[1] + 1, &value, 8, 1));
}

static void fetch_add(void)
{
    long value;
    for (int i = 0; me == 0 && i < SMALL_TURNS; i++)
        MUST(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &value, (long *)small[1] + 2, 1, 1));
}

static void send_rate(void)
{
    MPI_Request request[AT_ONCE];
    MPI_Status status[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        char *at = (me == 0 ? buffer : (char *)large[1]) + (long)i * LARGE;
        if (me == 0)
            MPI_Isend(at, LARGE, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(at, LARGE, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(AT_ONCE, request, status);
    if (me == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static void put_rate(void)
{
    if (me != 0)
        return;
    for (int i = 0; i < AT_ONCE; i++)
        MUST(ARMCI_NbPut(buffer + (long)i * LARGE, (char *)large[1] + (long)i * LARGE, LARGE, 1, NULL));
    ARMCI_Fence(1);
}

static void get_rate(void)
{
    if (me != 0)
        return;
    for (int i = 0; i < AT_ONCE; i++)
        MUST(ARMCI_NbGet((char *)large[1] + (long)i * LARGE, buffer + (long)i * LARGE, LARGE, 1, NULL));
    MUST(ARMCI_WaitAll());
}

static const struct {
    const char *name;
    operation run;
    double per_second; /* what it moves, for a rate; 0 for a time */
    double turns;      /* for a time */
} cases[] = {
    { "pingpong", pingpong, 0, 2 * SMALL_TURNS },
    { "put_arrives", put_arrives, 0, 2 * SMALL_TURNS },
    { "put_fence", put_fence, 0, SMALL_TURNS },
    { "get", get, 0, SMALL_TURNS },
    { "fetch_add", fetch_add, 0, SMALL_TURNS },
    { "send_rate", send_rate, AT_ONCE, 1 },
    { "put_rate", put_rate, AT_ONCE, 1 },
    { "get_rate", get_rate, AT_ONCE, 1 },
};
enum { CASES = sizeof cases / sizeof cases[0] };

int main(int argc, char **argv)
{
    static double value[CASES][MAX_REPS];
    int n;
    const char *unknown = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int at = 1; at < argc && !unknown;)
        unknown = bench_argument(argv, &at);
    if (unknown || n != 2) {
        fprintf(stderr, "hosts_bench: %s%s\n", unknown ? "unknown argument " : "runs on two ranks", unknown ? unknown : "");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MUST(ARMCI_Init());
    MUST(ARMCI_Malloc(small, 64));
    MUST(ARMCI_Malloc(large, (long)LARGE * AT_ONCE));
    memset(small[me], 0, 64);
    memset(large[me], 1, (size_t)LARGE * AT_ONCE);
    buffer = malloc((size_t)LARGE * AT_ONCE);
    memset(buffer, 2, (size_t)LARGE * AT_ONCE);

    const int reps = bench_quick ? 5 : 25;
    for (int rep = -1; rep < reps; rep++) /* the first is for warming up */
        for (int c = 0; c < CASES; c++) {
            if (!wanted(cases[c].name))
                continue;
            ARMCI_Barrier();
            const double begin = now();
            cases[c].run();
            const double seconds = now() - begin;
            ARMCI_Barrier();
            if (rep >= 0)
                value[c][rep] = cases[c].per_second > 0 ? cases[c].per_second / seconds : seconds / cases[c].turns * 1e6;
        }
    for (int c = 0; me == 0 && c < CASES; c++)
        if (wanted(cases[c].name))
            printf("%s\t%.3f\n", cases[c].name, median(value[c], reps));
    fflush(stdout);
    MUST(ARMCI_Free(small[me]));
    MUST(ARMCI_Free(large[me]));
    free(buffer);
    MUST(ARMCI_Finalize());
    MPI_Finalize();
    return 0;
}
