/*
 * One-sided transfers between two hosts, compared with MPI messages.
 *
 *   mpiexec -n 2 hosts_bench [--quick] [--only CASE,...] [--skip CASE,...]
 *
 * Two ranks, one on each host. All cases alternate in one run. Prints `case<TAB>value`, the median.
 * For 8 bytes, in microseconds:
 *   pingpong      half a round trip of MPI_Send and MPI_Recv
 *   put_arrives   half a round trip of puts: each rank waits in ARMCIX_Progress until it sees
 *                 the put of the other rank, and puts back
 *   put_fence     ARMCI_Put and ARMCI_Fence: the origin knows that the put has arrived
 *   get           ARMCI_Get
 *   fetch_add     ARMCI_Rmw
 * For 8 bytes, in thousands per second:
 *   sends8        MPI_Isend and MPI_Irecv, 64 at a time, and an answer after 1024
 *   puts8         1024 ARMCI_NbPut and ARMCI_Fence
 *   sends8_both   sends8 on both ranks at once
 *   puts8_both    puts8 on both ranks at once
 *   asks8         64 MPI_Isend requests at a time, each answered with MPI_Isend on arrival
 *   gets8         64 ARMCI_NbGet at a time, and ARMCI_WaitAll
 *   asks8_owner, gets8_owner   microseconds of CPU time per request on the rank that answers, in
 *                 the same cases
 * For 1 MiB, in MiB per second, 16 at a time:
 *   send_rate     MPI_Isend and MPI_Irecv, and an answer after all have arrived
 *   put_rate      ARMCI_NbPut, and ARMCI_Fence
 *   get_rate      ARMCI_NbGet, and ARMCI_WaitAll
 *   send_both_rate, put_both_rate, get_both_rate   the same on both ranks at once, for all bytes
 *   send_rows_rate, put_rows_rate, get_rows_rate   in rows of 1 KiB with gaps on both sides: MPI
 *                 uses a datatype, ARMCI_NbPutS and ARMCI_NbGetS use strides
 * In microseconds, the median and the maximum of 100:
 *   small_behind_bulk, small_behind_bulk_max   consecutive gets of 8 bytes while the other rank
 *                 puts blocks of 1 MiB into this rank's memory and gets as many
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <armcix.h>

#include "bench.h"

enum { LARGE = 1 << 20, AT_ONCE = 16, SMALL_TURNS = 200, MANY = 1024, WINDOW = 64 };
enum { ROW = 1024, GAP = 1024, ROWS = LARGE / ROW, PLACE = ROWS * (ROW + GAP) };

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

/* Sends or receives MANY small messages, or both. */
static void small_messages(int sends, int receives)
{
    static long from[WINDOW], to[WINDOW];
    MPI_Request request[2 * WINDOW];
    MPI_Status status[2 * WINDOW];
    for (int done = 0; done < MANY; done += WINDOW) {
        int n = 0;
        for (int i = 0; receives && i < WINDOW; i++)
            MPI_Irecv(&to[i], 8, MPI_BYTE, 1 - me, 4, MPI_COMM_WORLD, &request[n++]);
        for (int i = 0; sends && i < WINDOW; i++)
            MPI_Isend(&from[i], 8, MPI_BYTE, 1 - me, 4, MPI_COMM_WORLD, &request[n++]);
        MPI_Waitall(n, request, status);
    }
    if (receives)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - me, 5, MPI_COMM_WORLD);
    if (sends)
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - me, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sends8(void) { small_messages(me == 0, me == 1); }
static void sends8_both(void) { small_messages(1, 1); }

static void puts8_both(void)
{
    static long value[MANY];
    for (int i = 0; i < MANY; i++)
        MUST(ARMCI_NbPut(&value[i], (long *)large[1 - me] + i, 8, 1 - me, NULL));
    ARMCI_Fence(1 - me);
}

static void puts8(void)
{
    if (me == 0)
        puts8_both();
}

static void asks8(void)
{
    static long asked[WINDOW], answer[WINDOW];
    MPI_Request request[2 * WINDOW];
    MPI_Status status[2 * WINDOW];
    for (int done = 0; done < MANY; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++)
            MPI_Irecv(&answer[i], 8, MPI_BYTE, 1 - me, 6, MPI_COMM_WORLD, &request[i]);
        if (me == 0)
            for (int i = 0; i < WINDOW; i++)
                MPI_Isend(&asked[i], 8, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &request[WINDOW + i]);
        for (int i = 0; me == 1 && i < WINDOW; i++) {
            MPI_Wait(&request[i], MPI_STATUS_IGNORE);
            MPI_Isend(&asked[i], 8, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &request[WINDOW + i]);
        }
        MPI_Waitall(2 * WINDOW, request, status);
    }
}

static void gets8(void)
{
    static long value[WINDOW];
    for (int done = 0; me == 0 && done < MANY; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++)
            MUST(ARMCI_NbGet((long *)large[1] + i, &value[i], 8, 1, NULL));
        MUST(ARMCI_WaitAll());
    }
}

/* Sends or receives AT_ONCE blocks of LARGE bytes, or both. */
static void large_messages(int sends, int receives, MPI_Datatype type, int count)
{
    MPI_Request request[2 * AT_ONCE];
    MPI_Status status[2 * AT_ONCE];
    int n = 0;
    for (int i = 0; receives && i < AT_ONCE; i++)
        MPI_Irecv((char *)large[me] + (long)i * PLACE, count, type, 1 - me, 2, MPI_COMM_WORLD, &request[n++]);
    for (int i = 0; sends && i < AT_ONCE; i++)
        MPI_Isend(buffer + (long)i * PLACE, count, type, 1 - me, 2, MPI_COMM_WORLD, &request[n++]);
    MPI_Waitall(n, request, status);
    if (receives)
        MPI_Send(NULL, 0, MPI_BYTE, 1 - me, 3, MPI_COMM_WORLD);
    if (sends)
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - me, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_rate(void) { large_messages(me == 0, me == 1, MPI_BYTE, LARGE); }
static void send_both_rate(void) { large_messages(1, 1, MPI_BYTE, LARGE); }

static void send_rows_rate(void)
{
    static MPI_Datatype rows = MPI_DATATYPE_NULL;
    if (rows == MPI_DATATYPE_NULL) {
        MPI_Type_vector(ROWS, ROW, ROW + GAP, MPI_BYTE, &rows);
        MPI_Type_commit(&rows);
    }
    large_messages(me == 0, me == 1, rows, 1);
}

static void put_both_rate(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        MUST(ARMCI_NbPut(buffer + (long)i * PLACE, (char *)large[1 - me] + (long)i * PLACE, LARGE, 1 - me, NULL));
    ARMCI_Fence(1 - me);
}

static void get_both_rate(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        MUST(ARMCI_NbGet((char *)large[1 - me] + (long)i * PLACE, buffer + (long)i * PLACE, LARGE, 1 - me, NULL));
    MUST(ARMCI_WaitAll());
}

static void put_rate(void)
{
    if (me == 0)
        put_both_rate();
}

static void get_rate(void)
{
    if (me == 0)
        get_both_rate();
}

static void put_rows_rate(void)
{
    int stride[1] = { ROW + GAP }, count[2] = { ROW, ROWS };
    for (int i = 0; me == 0 && i < AT_ONCE; i++)
        MUST(ARMCI_NbPutS(buffer + (long)i * PLACE, stride, (char *)large[1] + (long)i * PLACE, stride, count, 1, 1, NULL));
    if (me == 0)
        ARMCI_Fence(1);
}

static void get_rows_rate(void)
{
    int stride[1] = { ROW + GAP }, count[2] = { ROW, ROWS };
    for (int i = 0; me == 0 && i < AT_ONCE; i++)
        MUST(ARMCI_NbGetS((char *)large[1] + (long)i * PLACE, stride, buffer + (long)i * PLACE, stride, count, 1, 1, NULL));
    MUST(ARMCI_WaitAll());
}

/*
 * Rank 0 gets numbers and records the time of each get, while rank 1 moves blocks of LARGE bytes.
 */
enum { GETS = 100 };
static double behind_bulk[GETS];

static void small_behind_bulk(void)
{
    volatile long *mine = small[me];
    const long end = ++turn;
    for (int i = 0; me == 0 && i < GETS; i++) {
        long value;
        const double begin = now();
        MUST(ARMCI_Get((long *)small[1] + 1, &value, 8, 1));
        behind_bulk[i] = (now() - begin) * 1e6;
    }
    if (me == 0) {
        MUST(ARMCI_Put((void *)&end, small[1], 8, 1));
        ARMCI_Fence(1);
    }
    for (int i = 0; me == 1 && *mine != end; i = (i + 1) % (AT_ONCE / 2)) {
        char *here = buffer + (long)i * PLACE, *there = (char *)large[0] + (long)i * PLACE;
        MUST(ARMCI_NbPut(here, there, LARGE, 0, NULL));
        MUST(ARMCI_NbGet(there + AT_ONCE / 2 * (long)PLACE, here + AT_ONCE / 2 * (long)PLACE, LARGE, 0, NULL));
        if (i == 0)
            MUST(ARMCI_WaitAll());
    }
    MUST(ARMCI_WaitAll());
}

/* Returns the CPU time of this process in seconds. */
static double used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct {
    const char *name;
    operation run;
    double per_second; /* amount moved, for a rate; 0 for a time */
    double turns;      /* operations, for a time */
} cases[] = {
    { "pingpong", pingpong, 0, 2 * SMALL_TURNS },
    { "put_arrives", put_arrives, 0, 2 * SMALL_TURNS },
    { "put_fence", put_fence, 0, SMALL_TURNS },
    { "get", get, 0, SMALL_TURNS },
    { "fetch_add", fetch_add, 0, SMALL_TURNS },
    { "sends8", sends8, MANY / 1e3, 1 },
    { "puts8", puts8, MANY / 1e3, 1 },
    { "sends8_both", sends8_both, 2 * MANY / 1e3, 1 },
    { "puts8_both", puts8_both, 2 * MANY / 1e3, 1 },
    { "asks8", asks8, MANY / 1e3, 1 },
    { "gets8", gets8, MANY / 1e3, 1 },
    { "send_rate", send_rate, AT_ONCE, 1 },
    { "put_rate", put_rate, AT_ONCE, 1 },
    { "get_rate", get_rate, AT_ONCE, 1 },
    { "send_both_rate", send_both_rate, 2 * AT_ONCE, 1 },
    { "put_both_rate", put_both_rate, 2 * AT_ONCE, 1 },
    { "get_both_rate", get_both_rate, 2 * AT_ONCE, 1 },
    { "send_rows_rate", send_rows_rate, AT_ONCE, 1 },
    { "put_rows_rate", put_rows_rate, AT_ONCE, 1 },
    { "get_rows_rate", get_rows_rate, AT_ONCE, 1 },
    { "small_behind_bulk", small_behind_bulk, 0, 1 },
};
enum { CASES = sizeof cases / sizeof cases[0] };

int main(int argc, char **argv)
{
    static double value[CASES][MAX_REPS], longest[MAX_REPS], owner[CASES][MAX_REPS];
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
    MUST(ARMCI_Malloc(large, (long)PLACE * AT_ONCE));
    memset(small[me], 0, 64);
    memset(large[me], 1, (size_t)PLACE * AT_ONCE);
    buffer = malloc((size_t)PLACE * AT_ONCE);
    memset(buffer, 2, (size_t)PLACE * AT_ONCE);

    const int reps = bench_quick ? 5 : 25;
    for (int rep = -1; rep < reps; rep++) /* the first is a warm-up */
        for (int c = 0; c < CASES; c++) {
            if (!wanted(cases[c].name))
                continue;
            ARMCI_Barrier();
            const double begin = now(), used_before = used();
            cases[c].run();
            const double seconds = now() - begin;
            ARMCI_Barrier();
            if (rep >= 0)
                owner[c][rep] = (used() - used_before) / MANY * 1e6;
            if (cases[c].run == small_behind_bulk) {
                qsort(behind_bulk, GETS, sizeof *behind_bulk, compare_doubles);
                if (rep >= 0) {
                    value[c][rep] = behind_bulk[GETS / 2];
                    longest[rep] = behind_bulk[GETS - 1];
                }
            } else if (rep >= 0)
                value[c][rep] = cases[c].per_second > 0 ? cases[c].per_second / seconds : seconds / cases[c].turns * 1e6;
        }
    if (me == 1)
        MPI_Send(owner, CASES * MAX_REPS, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
    else
        MPI_Recv(owner, CASES * MAX_REPS, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int c = 0; me == 0 && c < CASES; c++) {
        if (!wanted(cases[c].name))
            continue;
        printf("%s\t%.3f\n", cases[c].name, median(value[c], reps));
        if (cases[c].run == asks8 || cases[c].run == gets8)
            printf("%s_owner\t%.3f\n", cases[c].name, median(owner[c], reps));
    }
    if (me == 0 && wanted("small_behind_bulk"))
        printf("small_behind_bulk_max\t%.3f\n", median(longest, reps));
    fflush(stdout);
    MUST(ARMCI_Free(small[me]));
    MUST(ARMCI_Free(large[me]));
    free(buffer);
    MUST(ARMCI_Finalize());
    MPI_Finalize();
    return 0;
}
