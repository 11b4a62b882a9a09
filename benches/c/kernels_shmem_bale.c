/* Kernels of bale and RandomAccess on OpenSHMEM, one operation for each item: see kernels_shmem.h. */
#include "kernels_shmem.h"

/* ---- histogram ------------------------------------------------------------------------------- */

static void histogram(void)
{
    const long count = (1L << 21) / DIRECT;
    uint64_t *table = symmetric(TABLE * sizeof *table), state;
    uint64_t *expected = calloc(TABLE, sizeof *expected);
    uint32_t *list = malloc((size_t)count * sizeof *list);
    int right = 1;
    for (int rank = 0; rank < ranks; rank++) {
        state = seeded(0x4157, rank);
        for (long i = 0; i < count; i++) {
            const size_t at = below(&state, (size_t)TABLE * (size_t)ranks);
            if (rank == me)
                list[i] = (uint32_t)at;
            if ((int)(at % (size_t)ranks) == me)
                expected[at / (size_t)ranks] += (uint64_t)repeats;
        }
    }
    for (int r = 0; r < repeats; r++) {
        begins();
        for (long i = 0; i < count; i++)
            shmem_ulong_atomic_inc(&table[list[i] / (uint32_t)ranks], (int)(list[i] % (uint32_t)ranks));
        shmem_barrier_all();
        ends();
    }
    for (int i = 0; i < TABLE; i++)
        right &= table[i] == expected[i];
    result("histogram", "direct", 1e-6 * (double)count * ranks, "million/s", right);
    free(expected);
    free(list);
    shmem_free(table);
}

/* ---- index gather ------------------------------------------------------------------------------ */

static uint64_t value_of(size_t rank, size_t at)
{
    return (at * 4096 + rank) * 3 + 1;
}

static void gather(void)
{
    const long count = (1L << 20) / DIRECT;
    uint64_t *table = symmetric(TABLE * sizeof *table), state = seeded(0x16, me);
    uint64_t *got = calloc((size_t)count, sizeof *got);
    uint32_t *list = malloc((size_t)count * sizeof *list);
    int right = 1;
    for (size_t i = 0; i < TABLE; i++)
        table[i] = value_of((size_t)me, i);
    for (long i = 0; i < count; i++)
        list[i] = (uint32_t)below(&state, (size_t)TABLE * (size_t)ranks);
    for (int r = 0; r < repeats; r++) {
        begins();
        for (long i = 0; i < count; i++)
            got[i] = shmem_uint64_g(&table[list[i] / (uint32_t)ranks], (int)(list[i] % (uint32_t)ranks));
        shmem_barrier_all();
        ends();
    }
    for (long i = 0; i < count; i++)
        right &= got[i] == value_of(list[i] % (uint32_t)ranks, list[i] / (uint32_t)ranks);
    result("gather", "direct", 1e-6 * (double)count * ranks, "million/s", right);
    free(got);
    free(list);
    shmem_free(table);
}

/* ---- triangles: rows are fetched --------------------------------------------------------------- */

static int compare_columns(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void triangles(void)
{
    enum { SIZE = 19, A = SIZE + 1, B = SIZE + 4, C = SIZE + 8, ALL = A * B * C };
    const long own = (ALL + ranks - 1) / ranks;
    uint32_t *starts = symmetric((size_t)(own + 1) * sizeof *starts);
    long length = 0, most = 0, found = 0;
    double pairs = 0;
    uint32_t *columns = NULL;
    for (int pass = 0; pass < 2; pass++) {      /* count, then store */
        if (pass) {
            most = (long)reduced((double)length, 0);
            columns = symmetric((size_t)most * sizeof *columns);
        }
        length = 0;
        for (long row = 0; row < own; row++) {
            const long v = row * ranks + me, begin = length;
            starts[row] = (uint32_t)length;
            if (v >= ALL)
                continue;
            const long x = v / (B * C), y = v / C % B, z = v % C;
            for (long i = 0; i < (x ? 1 : A); i++)
                for (long j = 0; j < (y ? 1 : B); j++)
                    for (long k = 0; k < (z ? 1 : C); k++) {
                        const long u = (i * B + j) * C + k;
                        if (u < v) {
                            if (pass)
                                columns[length] = (uint32_t)u;
                            length++;
                        }
                    }
            if (pass) {
                qsort(columns + begin, (size_t)(length - begin), sizeof *columns, compare_columns);
                pairs += 0.5 * (double)(length - begin) * (double)(length - begin - 1);
            }
        }
        starts[own] = (uint32_t)length;
    }
    uint32_t *list = malloc((size_t)most * sizeof *list);
    pairs = reduced(pairs, 1);
    for (int r = 0; r < repeats; r++) {
        begins();
        for (long row = 0; row < own; row++)
            for (long i = starts[row] + 1; i < (long)starts[row + 1]; i++) {
                const int rank = (int)(columns[i] % (uint32_t)ranks);
                const uint32_t at = columns[i] / (uint32_t)ranks;
                const uint32_t *a = columns + starts[row], *a_end = columns + i, *b = list;
                uint32_t range[2];
                shmem_get32(range, starts + at, 2, rank);
                shmem_get32(list, columns + range[0], range[1] - range[0], rank);
                for (const uint32_t *b_end = list + (range[1] - range[0]); a < a_end && b < b_end;) {
                    const uint32_t left = *a, right = *b;
                    found += left == right;
                    a += left <= right;
                    b += right <= left;
                }
            }
        shmem_barrier_all();
        ends();
    }
    const double degree = (double)A * B * C - 1;
    const double known = ((3.0 * A - 2) * (3.0 * B - 2) * (3.0 * C - 2) - 1 - 3 * degree) / 6;
    found = (long)reduced((double)found, 1);
    result("triangles", "direct", 1e-6 * pairs, "million pairs/s", (double)found == known * repeats);
    free(list);
    shmem_free(columns);
    shmem_free(starts);
}

/* ---- RandomAccess ------------------------------------------------------------------------------ */

static uint64_t next_power(uint64_t x)
{
    return x << 1 ^ (x >> 63 ? 7 : 0);
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    for (int bit = 63; bit >= 0; bit--)
        sum = next_power(sum) ^ (b >> bit & 1 ? a : 0);
    return sum;
}

static uint64_t power(uint64_t n)
{
    uint64_t p = 1;
    for (int bit = 63; bit >= 0; bit--) {
        p = times(p, p);
        if (n >> bit & 1)
            p = next_power(p);
    }
    return p;
}

static void random_access(void)
{
    enum { WORDS = 1 << 19 };
    const long count = 4L * WORDS / DIRECT;
    uint64_t *table = symmetric(WORDS * sizeof *table);
    int right = 1;
    for (uint64_t i = 0; i < WORDS; i++)
        table[i] = i;
    const int passes = repeats + repeats % 2;   /* each second pass restores the table */
    for (int r = 0; r < passes; r++) {
        uint64_t update = power((uint64_t)(me * count));
        begins();
        for (long i = 0; i < count; i++) {
            update = next_power(update);
            shmem_uint64_atomic_xor(&table[update & (WORDS - 1)], update, (int)((update >> 32) * (uint64_t)ranks >> 32));
        }
        shmem_barrier_all();
        if (r < repeats)
            ends();
    }
    for (uint64_t i = 0; i < WORDS; i++)
        right &= table[i] == i;
    result("random-access", "direct", 1e-6 * (double)count * ranks, "million/s", right);
    shmem_free(table);
}

int main(int argc, char **argv)
{
    static const kernel kernels[] = {
        { "histogram", "direct", histogram }, { "gather", "direct", gather }, { "triangles", "direct", triangles },
        { "random-access", "direct", random_access },
    };
    return run_all(argc, argv, kernels, (int)(sizeof kernels / sizeof *kernels));
}
