/* The Parallel Research Kernels, PTRANS and ISx on OpenSHMEM: see kernels_shmem.h. */
#include "kernels_shmem.h"

enum { ITERATIONS = 4, GRID = 2000, ORDER = 2048, RADIUS = 4, MOST_ROWS = 2 * RADIUS + 1 };

/* ---- stencil: ranks own rows, and put the outer ones into ghost rows of their neighbours -------- */

static int radius;
static double weight[RADIUS + 1];

static inline void stencil_row(const double *const *line, double *restrict out, int r)
{
    for (int j = r; j < GRID - r; j++) {
        double sum = 0;
        for (int d = 1; d <= r; d++)
            sum += weight[d] * ((line[r][j + d] - line[r][j - d]) + (line[r + d][j] - line[r - d][j]));
        out[j] += sum;
    }
}

static void stencil(void)
{
    const long n = GRID, first = n * me / ranks, rows = n * (me + 1) / ranks - first, set = 2 * radius * n;
    double *ghosts = symmetric((size_t)(2 * set) * sizeof(double));
    double *in = malloc((size_t)(rows * n) * sizeof(double)), *out = calloc((size_t)(rows * n), sizeof(double));
    int turn = 0;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < n; j++)
            in[i * n + j] = (double)(first + i + j);
    for (int d = 1; d <= radius; d++)
        weight[d] = 1.0 / (2.0 * d * radius);
    for (int r = 0; r < repeats; r++) {
        begins();
        for (int t = 0; t < ITERATIONS; t++) {
            turn = 1 - turn;
            if (me > 0)
                shmem_double_put(ghosts + turn * set + radius * n, in, (size_t)(radius * n), me - 1);
            if (me + 1 < ranks)
                shmem_double_put(ghosts + turn * set, in + (rows - radius) * n, (size_t)(radius * n), me + 1);
            shmem_barrier_all();
            for (long i = first; i < first + rows; i++) {
                const double *line[MOST_ROWS];
                if (i < radius || i >= n - radius)
                    continue;
                for (long k = i - radius; k <= i + radius; k++)
                    line[k - i + radius] = k < first ? ghosts + turn * set + (k - first + radius) * n
                                         : k < first + rows ? in + (k - first) * n
                                         : ghosts + turn * set + (radius + k - first - rows) * n;
                if (radius == 1)
                    stencil_row(line, out + (i - first) * n, 1);
                else
                    stencil_row(line, out + (i - first) * n, RADIUS);
            }
            for (long e = 0; e < rows * n; e++)
                in[e] += 1.0;
        }
        ends();
    }
    double norm = 0, points = (double)(n - 2 * radius) * (double)(n - 2 * radius);
    for (long e = 0; e < rows * n; e++)
        norm += fabs(out[e]);
    norm = reduced(norm, 1) / points;
    const double expected = 2.0 * ITERATIONS * repeats;
    result(radius == 1 ? "stencil-r1" : "stencil-r4", "put", 8e-9 * radius * points * ITERATIONS, "GFlop/s",
           fabs(norm - expected) < 1e-8 * expected);
    free(in);
    free(out);
    shmem_free(ghosts);
}

static void stencil_1(void)
{
    radius = 1;
    stencil();
}

static void stencil_4(void)
{
    radius = RADIUS;
    stencil();
}

/* ---- transpose: blocks are transposed and put, and the receiver adds them ----------------------- */

enum { TILE = 32 };

static void transpose(void)
{
    const long b = ORDER / ranks, n = b * ranks, own = b * n, block = b * b;
    double *here = symmetric((size_t)(block * ranks) * sizeof(double));
    double *a = malloc((size_t)own * sizeof(double)), *sum = calloc((size_t)own, sizeof(double));
    double *out = malloc((size_t)block * sizeof(double));
    for (long e = 0; e < own; e++)
        a[e] = (double)(n * me * b + e);
    for (int r = 0; r < repeats; r++) {
        begins();
        for (int t = 0; t < ITERATIONS; t++) {
            for (int p = 0; p < ranks; p++) {
                const int to = (me + p) % ranks;
                double *const target = to == me ? here + me * block : out;
                for (long i0 = 0; i0 < b; i0 += TILE)
                    for (long j0 = 0; j0 < b; j0 += TILE)
                        for (long i = i0; i < i0 + TILE && i < b; i++)
                            for (long j = j0; j < j0 + TILE && j < b; j++) {
                                target[j * b + i] = a[i * n + to * b + j];
                                a[i * n + to * b + j] += 1.0;
                            }
                if (to != me)
                    shmem_double_put(here + me * block, out, (size_t)block, to);
            }
            shmem_barrier_all();
            for (int p = 0; p < ranks; p++)
                for (long j = 0; j < b; j++)
                    for (long i = 0; i < b; i++)
                        sum[j * n + p * b + i] += here[p * block + j * b + i];
            shmem_barrier_all();
        }
        ends();
    }
    const double iterations = (double)ITERATIONS * repeats;
    int right = 1;
    for (long j = 0; j < b; j++)
        for (long i = 0; i < n; i++) {
            const double expected = iterations * (double)(n * i + me * b + j) + iterations * (iterations - 1) / 2;
            right &= fabs(sum[j * n + i] - expected) < 1e-8 * fmax(expected, 1);
        }
    result("transpose", "put", 16e-9 * (double)n * (double)n * ITERATIONS, "GB/s", right);
    free(a);
    free(sum);
    free(out);
    shmem_free(here);
}

/* ---- sync_p2p: the element of a row, and behind it a flag --------------------------------------- */

static void pipeline(const char *name, long rows, long all, int rounds, double work, const char *unit)
{
    const long first = all * me / ranks, width = all * (me + 1) / ranks - first + 1;
    double *values = symmetric((size_t)rows * sizeof(double));
    long *flags = symmetric((size_t)rows * sizeof(long)), round = 0;
    double *grid = calloc((size_t)(rows * width), sizeof(double));
    const int last = ranks - 1, next = (me + 1) % ranks;
    for (long k = 0; k < width; k++)
        grid[k] = (double)(first + k - 1);
    for (long row = 0; me == 0 && row < rows; row++)
        grid[row * width + 1] = (double)row;
    for (int r = 0; r < repeats; r++) {
        begins();
        for (int t = 0; t < rounds; t++) {
            round++;
            for (long row = 1; row < rows; row++) {
                const double *above = grid + (row - 1) * width;
                double *here = grid + row * width;
                if (me > 0) {
                    shmem_long_wait_until(&flags[row], SHMEM_CMP_EQ, round);
                    here[0] = values[row];
                }
                for (long k = me == 0 ? 2 : 1; k < width; k++)
                    here[k] = above[k] + here[k - 1] - above[k - 1];
                if (me < last) {
                    shmem_double_p(&values[row], here[width - 1], next);
                    shmem_fence();
                    shmem_long_p(&flags[row], round, next);
                }
            }
            const double corner = -grid[rows * width - 1];
            if (ranks == 1) {
                grid[1] = corner;
            } else if (me == last) {
                shmem_double_p(&values[0], corner, 0);
                shmem_fence();
                shmem_long_p(&flags[0], round, 0);
            } else if (me == 0) {
                shmem_long_wait_until(&flags[0], SHMEM_CMP_EQ, round);
                grid[1] = values[0];
            }
        }
        ends();
    }
    const double expected = (double)rounds * repeats * (double)(rows + all - 2);
    result(name, "put", work, unit, me < last || fabs(grid[rows * width - 1] - expected) < 1e-8 * expected);
    free(grid);
    shmem_free(flags);
    shmem_free(values);
}

static void sync_p2p(void)
{
    pipeline("sync-p2p", 1000, 1000, ITERATIONS, 2e-9 * 999 * 999 * ITERATIONS, "GFlop/s");
}

static void sync_hops(void)
{
    pipeline("sync-hops", 2, 2 * ranks, 5000, 5e-3 * ranks, "million hops/s");
}

/* ---- PTRANS: blocks of A are fetched, and their transposes added -------------------------------- */

enum { BLOCK = 64, AREA = BLOCK * BLOCK, SIDE = ORDER / BLOCK };

static int across, down;

static int owner(int i, int j)
{
    return i % down * across + j % across;
}

static long slot(int i, int j)
{
    return (long)(i / down) * ((SIDE + across - 1) / across) + j / across;
}

static double element(int i, int j, int k)
{
    return (double)(i * BLOCK + k / BLOCK) * SIDE * BLOCK + j * BLOCK + k % BLOCK;
}

static void ptrans(void)
{
    for (across = 1, down = ranks; across * across <= ranks; across++)
        if (ranks % across == 0)
            down = ranks / across;
    across = ranks / down;
    const size_t all = (size_t)((SIDE + down - 1) / down) * ((SIDE + across - 1) / across) * AREA;
    double *a = symmetric(all * sizeof(double)), *c = calloc(all, sizeof(double));
    static double got[AREA];
    int right = 1;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; owner(i, j) == me && k < AREA; k++) {
                a[slot(i, j) * AREA + k] = element(i, j, k);
                c[slot(i, j) * AREA + k] = 2 * element(i, j, k);
            }
    for (int r = 0; r < repeats; r++) {
        begins();
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++) {
                if (owner(i, j) != me)
                    continue;
                shmem_double_get(got, a + slot(j, i) * AREA, AREA, owner(j, i));
                double *to = c + slot(i, j) * AREA;
                for (int k0 = 0; k0 < BLOCK; k0 += 8)
                    for (int l0 = 0; l0 < BLOCK; l0 += 8)
                        for (int k = k0; k < k0 + 8; k++)
                            for (int l = l0; l < l0 + 8; l++)
                                to[k * BLOCK + l] += got[l * BLOCK + k];
            }
        shmem_barrier_all();
        ends();
    }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; owner(i, j) == me && k < AREA; k++)
                right &= c[slot(i, j) * AREA + k] ==
                         2 * element(i, j, k) + repeats * element(j, i, k % BLOCK * BLOCK + k / BLOCK);
    result("ptrans", "get", 8e-9 * ORDER * ORDER, "GB/s", right);
    free(c);
    shmem_free(a);
}

/* ---- ISx: room is reserved by one atomic operation, and the keys are put there ------------------ */

enum { KEYS = 1 << 21, WIDTH = 1 << 16 };

static void isx(void)
{
    static long cursor;
    const size_t most = 2 * (size_t)KEYS + 1000;
    uint32_t *room = symmetric(most * sizeof(uint32_t));
    uint32_t *keys = malloc(KEYS * sizeof *keys), *sorted = malloc(KEYS * sizeof *sorted);
    uint32_t *counts = malloc(WIDTH * sizeof *counts), *expected = calloc(WIDTH, sizeof *expected);
    size_t *starts = malloc((size_t)(ranks + 1) * sizeof *starts), *next = malloc((size_t)(ranks + 1) * sizeof *next);
    for (int rank = 0; rank < ranks; rank++) {
        uint64_t state = seeded(0x15, rank);
        for (int i = 0; i < KEYS; i++) {
            const uint32_t key = (uint32_t)below(&state, (size_t)WIDTH * (size_t)ranks);
            if (rank == me)
                keys[i] = key;
            if ((int)(key / WIDTH) == me)
                expected[key % WIDTH] += (uint32_t)1;
        }
    }
    for (int r = 0; r < repeats; r++) {
        begins();
        cursor = 0;
        shmem_barrier_all();
        memset(starts, 0, (size_t)(ranks + 1) * sizeof *starts);
        for (int i = 0; i < KEYS; i++)
            starts[keys[i] / WIDTH + 1]++;
        for (int rank = 0; rank < ranks; rank++)
            starts[rank + 1] += starts[rank];
        memcpy(next, starts, (size_t)(ranks + 1) * sizeof *next);
        for (int i = 0; i < KEYS; i++)
            sorted[next[keys[i] / WIDTH]++] = keys[i];
        for (int p = 0; p < ranks; p++) {
            const int to = (me + p) % ranks;
            const size_t count = starts[to + 1] - starts[to];
            const long at = shmem_long_atomic_fetch_add(&cursor, (long)count, to);
            shmem_put32(room + at, sorted + starts[to], count, to);
        }
        shmem_barrier_all();
        memset(counts, 0, WIDTH * sizeof *counts);
        for (long i = 0; i < cursor; i++)
            counts[room[i] - (uint32_t)(me * WIDTH)]++;
        shmem_barrier_all();
        ends();
    }
    result("isx", "put", 1e-6 * KEYS * ranks, "million keys/s", memcmp(counts, expected, WIDTH * sizeof *counts) == 0);
    free(keys);
    free(sorted);
    free(counts);
    free(expected);
    free(starts);
    free(next);
    shmem_free(room);
}

/* ---- sparse: a part of the vector is put into one of two copies on each rank -------------------- */

enum { BITS = 9, STAR = 4 * RADIUS + 1 };

static long reversed(long i)
{
    long out = 0;
    for (int k = 0; k < 2 * BITS; k++)
        out |= (i >> k & 1) << (2 * BITS - 1 - k);
    return out;
}

static int compare_columns(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void sparse(void)
{
    const long side = 1L << BITS, all = side * side, each = (all + ranks - 1) / ranks, whole = each * ranks;
    const long first = each * me < all ? each * me : all, rows = all - first < each ? all - first : each;
    double *copies = symmetric((size_t)(2 * whole) * sizeof(double)), sum = 0;
    double *part = calloc((size_t)each, sizeof(double)), *out = calloc((size_t)each, sizeof(double));
    int *columns = malloc((size_t)(rows * STAR) * sizeof(int)), turn = 0;
    double *values = malloc((size_t)(rows * STAR) * sizeof(double));
    for (long row = 0; row < rows; row++) {
        const long i = (first + row) % side, j = (first + row) / side;
        int *to = columns + row * STAR, at = 1;
        to[0] = (int)reversed(first + row);
        for (int r = 1; r <= RADIUS; r++, at += 4) {
            to[at] = (int)reversed((i + r) % side + side * j);
            to[at + 1] = (int)reversed((i + side - r) % side + side * j);
            to[at + 2] = (int)reversed(i + side * ((j + r) % side));
            to[at + 3] = (int)reversed(i + side * ((j + side - r) % side));
        }
        qsort(to, STAR, sizeof *to, compare_columns);
        for (int k = 0; k < STAR; k++)
            values[row * STAR + k] = 1.0 / (to[k] + 1.0);
    }
    for (int r = 0; r < repeats; r++) {
        begins();
        for (int t = 0; t < ITERATIONS; t++) {
            turn = 1 - turn;
            for (long i = 0; i < each; i++)
                part[i] += (double)(first + i + 1);
            for (int p = 0; p < ranks; p++)
                shmem_double_put(copies + turn * whole + each * me, part, (size_t)each, (me + p) % ranks);
            shmem_barrier_all();
            for (long i = 0; i < rows; i++) {
                double dot = 0;
                for (int k = 0; k < STAR; k++)
                    dot += values[i * STAR + k] * copies[turn * whole + columns[i * STAR + k]];
                out[i] += dot;
            }
        }
        ends();
    }
    for (long i = 0; i < rows; i++)
        sum += out[i];
    sum = reduced(sum, 1);
    const double iterations = (double)ITERATIONS * repeats, entries = (double)all * STAR;
    const double expected = 0.5 * entries * iterations * (iterations + 1);
    result("sparse", "put", 2e-9 * entries * ITERATIONS, "GFlop/s", fabs(sum - expected) < 1e-8 * expected);
    free(part);
    free(out);
    free(columns);
    free(values);
    shmem_free(copies);
}

int main(int argc, char **argv)
{
    static const kernel kernels[] = {
        { "stencil-r1", "put", stencil_1 }, { "stencil-r4", "put", stencil_4 }, { "transpose", "put", transpose },
        { "sync-p2p", "put", sync_p2p }, { "sync-hops", "put", sync_hops }, { "sparse", "put", sparse },
        { "ptrans", "get", ptrans }, { "isx", "put", isx },
    };
    return run_all(argc, argv, kernels, (int)(sizeof kernels / sizeof *kernels));
}
