/*
 * RandomAccess written by hand in plain MPI, as the reference for examples/c/x10_random_access.c.
 * The problem, the arguments and the check are the same. Each rank collects the numbers for each
 * owner in buffers of 64 KiB (--bytes). It sends a full buffer and fills another one meanwhile.
 * Receives are posted in advance. No call waits while there is work.
 *
 *   mpiexec -n 2 random_access_mpi [--bytes N] [log2 of entries per rank [updates per
 *                                  entry [pairs of runs]]]
 *
 * Prints million updates per second, the median of all runs. The exit status is 1 if a pair of runs
 * does not restore the table.
 */
#include <mpi.h>
#include <stdint.h>

#include "bench.h"

enum { BUFFERS = 3, RECEIVES = 8, DATA = 1, LAST = 2 };

/* The buffers for an owner: one that is being filled, and others that are being sent. */
struct lane {
    uint64_t *fill;
    size_t count;
    int current;
    uint64_t *buffer[BUFFERS];
    MPI_Request sent[BUFFERS];
};

static uint64_t *table, mask;
static int me, ranks, bits, ended;
static size_t capacity = 65536 / sizeof(uint64_t);
static struct lane *lanes;
static uint64_t *inbox[RECEIVES];
static MPI_Request receives[RECEIVES];
static int receive_at;

static inline uint64_t next(uint64_t number)
{
    return (number << 1) ^ ((int64_t)number < 0 ? 7 : 0);
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result = 0;
    for (int bit = 63; bit >= 0; bit--)
        result = next(result) ^ (b >> bit & 1 ? a : 0);
    return result;
}

static uint64_t stream_at(uint64_t position)
{
    uint64_t result = 1, power = 2;
    for (position %= 1317624576693539401ULL; position; position >>= 1) {
        if (position & 1)
            result = product(result, power);
        power = product(power, power);
    }
    return result;
}

static void apply(const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        table[numbers[i] & mask] ^= numbers[i];
}

static void post(int i)
{
    MPI_Irecv(inbox[i], (int)capacity, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &receives[i]);
}

/*
 * Processes the messages that have arrived. MPI matches posted receives in order, so they are
 * tested in order.
 */
static void take(void)
{
    for (;;) {
        MPI_Status status;
        int come, count;
        MPI_Test(&receives[receive_at], &come, &status);
        if (!come)
            return;
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        apply(inbox[receive_at], (size_t)count);
        ended += status.MPI_TAG == LAST;
        post(receive_at);
        receive_at = (receive_at + 1) % RECEIVES;
    }
}

/* Sends the current buffer of a lane. Processes incoming messages until another buffer is free. */
static void send(int owner, int tag)
{
    struct lane *lane = &lanes[owner];
    if (owner == me) {
        apply(lane->fill, lane->count);
        lane->count = 0;
        return;
    }
    MPI_Isend(lane->fill, (int)lane->count, MPI_UINT64_T, owner, tag, MPI_COMM_WORLD,
              &lane->sent[lane->current]);
    lane->current = (lane->current + 1) % BUFFERS;
    for (int free = 0;;) {
        take();
        MPI_Test(&lane->sent[lane->current], &free, MPI_STATUS_IGNORE);
        if (free)
            break;
    }
    lane->fill = lane->buffer[lane->current];
    lane->count = 0;
}

static void run(uint64_t updates)
{
    const uint64_t others = (uint64_t)ranks - 1;
    const int power_of_two = ((uint64_t)ranks & others) == 0;
    uint64_t number = stream_at(updates * (uint64_t)me);

    for (uint64_t i = 0; i < updates; i++) {
        number = next(number);
        const uint64_t entry = number >> bits;
        const int owner = (int)(power_of_two ? entry & others : entry % (uint64_t)ranks);
        struct lane *lane = &lanes[owner];
        lane->fill[lane->count++] = number;
        if (lane->count == capacity)
            send(owner, DATA);
    }
    for (int step = 1; step <= ranks; step++)
        send((me + step) % ranks, LAST);
    while (ended < ranks - 1)
        take();
    ended = 0;
    for (int owner = 0; owner < ranks; owner++)
        for (int b = 0; b < BUFFERS; b++)
            MPI_Wait(&lanes[owner].sent[b], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *room(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", me, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

int main(int argc, char **argv)
{
    static double rates[MAX_REPS];
    uint64_t factor = 4, entries, wrong = 0, all_wrong = 0;
    int runs = 2, at = 1, position = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bits = 18;
    for (const char *a; (a = bench_argument(argv, &at)) != NULL;) {
        if (strcmp(a, "--bytes") == 0 && argv[at])
            capacity = strtoul(argv[at++], NULL, 10) / sizeof(uint64_t);
        else if (position == 0)
            bits = atoi(a), position = 1;
        else if (position == 1)
            factor = strtoull(a, NULL, 10), position = 2;
        else
            runs = 2 * atoi(a);
    }
    if (bits < 1 || bits > 40 || factor < 1 || runs < 2 || runs > MAX_REPS || capacity < 1) {
        fprintf(stderr, "bad arguments: the top of random_access_mpi.c says which there are\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    entries = 1ULL << bits;
    mask = entries - 1;
    table = room(entries * sizeof *table);
    for (uint64_t i = 0; i < entries; i++)
        table[i] = (uint64_t)me * entries + i;
    lanes = room((size_t)ranks * sizeof *lanes);
    for (int owner = 0; owner < ranks; owner++) {
        struct lane *lane = &lanes[owner];
        for (int b = 0; b < BUFFERS; b++) {
            lane->buffer[b] = room(capacity * sizeof(uint64_t));
            lane->sent[b] = MPI_REQUEST_NULL;
        }
        lane->fill = lane->buffer[0];
        lane->count = 0;
        lane->current = 0;
    }
    for (int i = 0; i < RECEIVES; i++) {
        inbox[i] = room(capacity * sizeof(uint64_t));
        post(i);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    for (int r = 0; r < runs; r++) {
        const double begin = now();
        run(factor * entries);
        rates[r] = (double)(factor * entries) * ranks / (now() - begin) * 1e-6;
    }
    for (uint64_t i = 0; i < entries; i++)
        wrong += table[i] != (uint64_t)me * entries + i;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0) {
        report("random_access_mpi_Mups", median(rates, runs));
        if (all_wrong)
            fprintf(stderr, "%llu entries are wrong\n", (unsigned long long)all_wrong);
    }
    for (int i = 0; i < RECEIVES; i++) {
        MPI_Cancel(&receives[i]);
        MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return all_wrong != 0;
}
