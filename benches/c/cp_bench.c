/*
 * Compose and perform, compared with other ways to make the same exchange.
 *
 *   mpiexec -n 2 cp_bench [--quick] [--best] [--only CASE,...] [--skip CASE,...] [--x] [--n N]
 *                         [--m M]
 *
 * The ranks form a periodic grid. Each has a block of N^3 doubles (64) with a halo one cell wide.
 * The grid is split first along the axis whose planes are contiguous. With --x it is split first
 * along the axis with a stride of one number, so that the bytes that two ranks exchange share cache
 * lines. The second problem is the transpose of an M x M matrix (1024). Prints
 * `case<TAB>microseconds`, the median of the slowest rank, or with --best its minimum, for machines
 * that are not idle:
 *   halo_cp              cp_sync, cp_perform, cp_waitfor
 *   halo_puts            a barrier, 26 ARMCI_PutS, a fence and a barrier
 *   halo_isend           26 MPI_Irecv and MPI_Isend of derived datatypes, MPI_Waitall
 *   halo_alltoallw       MPI_Neighbor_alltoallw of the same datatypes
 *   halo_cp_perform      cp_perform alone
 *   halo_puts_calls      the 26 ARMCI_PutS alone
 *   halo_copies          plain loops over the same bytes, to local addresses
 *   blocks26_cp          cp_perform of 26 blocks of 8 bytes to the other ranks, in ns
 *   blocks26_puts        26 ARMCI_Put of them, in ns
 *   blocks26_copies      26 plain copies of 8 bytes, in ns
 *   transpose_cp         cp_sync, cp_perform, cp_waitfor
 *   transpose_alltoallw  MPI_Alltoallw with derived datatypes
 *   map_million          cp_map of a million single bytes that coalesce
 *   map_million_kib      memory that this takes, in KiB
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <armci.h>
#include <cp.h>
#include <sys/resource.h>

#include "bench.h"

#define DIRECTIONS 26
#define MOST_OPS 8

static int me, nranks, n = 64, m = 1024, best, along_x;

static void must(int result, const char *call)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: %s\n", call, cp_errmsg());
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define MUST(call) must((call), #call)

/*
 * An operation that all ranks do together. measure_all alternates the operations and reports the
 * median microseconds of the slowest rank. `part` points to the seconds that the operation measures
 * itself, or is NULL if the whole operation is measured.
 */
typedef struct {
    const char *name;
    operation op;
    double *part;
    double scale;
} timed;

static double slowest(double seconds)
{
    double most;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void measure_all(const timed *given, int count)
{
    static double sample[MOST_OPS][MAX_REPS];
    timed list[MOST_OPS];
    long calls[MOST_OPS];
    int used = 0, reps = bench_quick ? 7 : 25;

    for (int i = 0; i < count; i++)
        if (wanted(given[i].name))
            list[used++] = given[i];
    for (int o = 0; o < used; o++) {
        for (int i = 0; i < 10; i++)
            list[o].op();
        double start = now();
        for (int i = 0; i < 10; i++)
            list[o].op();
        double each = slowest(now() - start) / 10;
        calls[o] = 1 + (long)((bench_quick ? 1e-3 : 5e-3) / each);
        MPI_Bcast(&calls[o], 1, MPI_LONG, 0, MPI_COMM_WORLD);
    }
    for (int r = 0; r < reps; r++)
        for (int o = 0; o < used; o++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (list[o].part)
                *list[o].part = 0;
            double start = now();
            for (long i = 0; i < calls[o]; i++)
                list[o].op();
            double seconds = list[o].part ? *list[o].part : now() - start;
            sample[o][r] = slowest(seconds) * list[o].scale / (double)calls[o];
        }
    for (int o = 0; o < used; o++) {
        double value = median(sample[o], reps); /* sorts the samples */
        if (me == 0)
            report(list[o].name, best ? sample[o][0] : value);
    }
}

/* -------------------------------------------------------------------- halo */

typedef struct {
    int to, from;           /* rank to send to, rank to receive from */
    int src[3], dst[3], count[3];
    MPI_Datatype send, recv;
} side;

static side sides[DIRECTIONS];
static double **block;
static int halo, sources, width, dims[3], at[3];
static MPI_Comm neighbours;
static double perform_seconds, puts_seconds;
static double *copy_of;

static int grid_rank(const int *d, int sign)
{
    int c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (at[i] + sign * d[i] + dims[i]) % dims[i];
    return (c[2] * dims[1] + c[1]) * dims[0] + c[0];
}

static long cell(const int *c, int y, int z)
{
    return ((long)(c[2] + z) * width + c[1] + y) * width + c[0];
}

static MPI_Datatype box(const int *start, const int *count)
{
    MPI_Datatype type;
    int whole[3] = {width, width, width}, c[3] = {count[2], count[1], count[0]};
    int s[3] = {start[2], start[1], start[0]};
    MPI_Type_create_subarray(3, whole, c, s, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void make_sides(void)
{
    int k = 0;
    for (int i = 0; i < 27; i++) {
        int d[3] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
        if (!d[0] && !d[1] && !d[2])
            continue;
        side *s = &sides[k++];
        s->to = grid_rank(d, 1);
        s->from = grid_rank(d, -1);
        for (int a = 0; a < 3; a++) {
            s->count[a] = d[a] ? 1 : n;
            s->src[a] = d[a] > 0 ? n : 1;
            s->dst[a] = d[a] > 0 ? 0 : d[a] < 0 ? n + 1 : 1;
        }
        s->send = box(s->src, s->count);
        s->recv = box(s->dst, s->count);
    }
}

static void make_halo(void)
{
    char *known = calloc((size_t)nranks, 1);
    int all = cp_create(me);
    size_t row = (size_t)width * sizeof(double);
    int from[DIRECTIONS], to[DIRECTIONS];

    for (int k = 0; k < DIRECTIONS; k++) {
        side *s = &sides[k];
        int one = cp_create(s->to);
        for (int z = 0; z < s->count[2]; z++)
            MUST(cp_add_adxslice(one, block[me] + cell(s->src, 0, z), (void *)row,
                                 (unsigned)(s->count[0] * (int)sizeof(double)), (unsigned)s->count[1],
                                 block[s->to] + cell(s->dst, 0, z), (void *)row,
                                 (unsigned)(s->count[0] * (int)sizeof(double)), (unsigned)s->count[1]));
        int more = cp_merge(all, one);
        MUST(cp_destroy(all));
        MUST(cp_destroy(one));
        all = more;
        if (!known[s->from]++)
            sources++;
        from[k] = s->from, to[k] = s->to;
    }
    halo = cp_map(all);
    MUST(halo);
    MUST(cp_destroy(all));
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, DIRECTIONS, from, MPI_UNWEIGHTED, DIRECTIONS, to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &neighbours);
    free(known);
}

static void perform(void)
{
    double start = now();
    cp_perform(halo);
    perform_seconds += now() - start;
}

static void halo_cp(void)
{
    cp_sync();
    perform();
    cp_waitfor(sources);
}

static void puts_calls(void)
{
    double start = now();
    for (int k = 0; k < DIRECTIONS; k++) {
        side *s = &sides[k];
        int row = width * (int)sizeof(double), plane = width * row;
        int count[3] = {s->count[0] * (int)sizeof(double), s->count[1], s->count[2]};
        int stride[2] = {row, plane};
        ARMCI_PutS(block[me] + cell(s->src, 0, 0), stride, block[s->to] + cell(s->dst, 0, 0), stride,
                   count, 2, s->to);
    }
    puts_seconds += now() - start;
}

static void halo_puts(void)
{
    armci_msg_barrier();
    puts_calls();
    ARMCI_Barrier();
}

static void halo_isend(void)
{
    MPI_Request requests[2 * DIRECTIONS];
    MPI_Status statuses[2 * DIRECTIONS]; /* MPI_STATUSES_IGNORE warns under MPICH */
    for (int k = 0; k < DIRECTIONS; k++)
        MPI_Irecv(block[me], 1, sides[k].recv, sides[k].from, k, MPI_COMM_WORLD, &requests[k]);
    for (int k = 0; k < DIRECTIONS; k++)
        MPI_Isend(block[me], 1, sides[k].send, sides[k].to, k, MPI_COMM_WORLD,
                  &requests[DIRECTIONS + k]);
    MPI_Waitall(2 * DIRECTIONS, requests, statuses);
}

static void halo_alltoallw(void)
{
    int ones[DIRECTIONS];
    MPI_Aint zeros[DIRECTIONS] = {0};
    MPI_Datatype send[DIRECTIONS], recv[DIRECTIONS];
    for (int k = 0; k < DIRECTIONS; k++)
        ones[k] = 1, send[k] = sides[k].send, recv[k] = sides[k].recv;
    MPI_Neighbor_alltoallw(block[me], ones, zeros, send, block[me], ones, zeros, recv, neighbours);
}

/* Copies the same rows from the block to a local block. */
static void halo_copies(void)
{
    for (int k = 0; k < DIRECTIONS; k++) {
        const side *s = &sides[k];
        for (int z = 0; z < s->count[2]; z++)
            for (int y = 0; y < s->count[1]; y++) {
                double *to = copy_of + cell(s->dst, y, z);
                const double *from = block[me] + cell(s->src, y, z);
                if (s->count[0] == 1)
                    *to = *from;
                else
                    memcpy(to, from, (size_t)s->count[0] * sizeof(double));
            }
    }
    __asm__ volatile("" ::: "memory");
}

static void bench_halo(void)
{
    size_t bytes;
    MPI_Dims_create(nranks, 3, dims);
    if (!along_x) {
        int most = dims[0];
        dims[0] = dims[2], dims[2] = most;
    }
    at[0] = me % dims[0], at[1] = me / dims[0] % dims[1], at[2] = me / dims[0] / dims[1];
    width = n + 2;
    bytes = (size_t)width * (size_t)width * (size_t)width * sizeof(double);
    block = malloc((size_t)nranks * sizeof *block);
    MUST(cp_malloc((void **)block, bytes));
    copy_of = calloc(1, bytes);
    memset(block[me], 1, bytes);
    make_sides();
    make_halo();
    const timed list[] = {
        {"halo_cp", halo_cp, NULL, 1e6},
        {"halo_puts", halo_puts, NULL, 1e6},
        {"halo_isend", halo_isend, NULL, 1e6},
        {"halo_alltoallw", halo_alltoallw, NULL, 1e6},
        {"halo_cp_perform", halo_cp, &perform_seconds, 1e6},
        {"halo_puts_calls", halo_puts, &puts_seconds, 1e6},
        {"halo_copies", halo_copies, NULL, 1e6},
    };
    measure_all(list, (int)(sizeof list / sizeof *list));
    MUST(cp_destroy(halo));
    MUST(cp_sync());
    MUST(cp_free(block[me]));
    for (int k = 0; k < DIRECTIONS; k++) {
        MPI_Type_free(&sides[k].send);
        MPI_Type_free(&sides[k].recv);
    }
    MPI_Comm_free(&neighbours);
    free(block);
    free(copy_of);
}

/* ------------------------------------------------------- 26 blocks of 8 bytes */

static double **cells, many[64 * DIRECTIONS];
static int small_comp, block_of[DIRECTIONS];

static void blocks_cp(void) { cp_perform(small_comp); }

static void blocks_puts(void)
{
    for (int k = 0; k < DIRECTIONS; k++)
        ARMCI_Put(&many[8 * k], cells[block_of[k]] + 8 * (me * DIRECTIONS + k), 8, block_of[k]);
}

static double here[64 * DIRECTIONS];

static void blocks_copies(void)
{
    for (int k = 0; k < DIRECTIONS; k++)
        here[16 * k] = many[8 * k];
    __asm__ volatile("" ::: "memory");
}

static void bench_blocks(void)
{
    cells = malloc((size_t)nranks * sizeof *cells);
    MUST(cp_malloc((void **)cells, (size_t)nranks * DIRECTIONS * 64));
    int all = cp_create(me);
    for (int k = 0; k < DIRECTIONS; k++) {
        block_of[k] = nranks == 1 ? 0 : (me + 1 + k % (nranks - 1)) % nranks;
        int one = cp_create(block_of[k]);
        /* irregular distances, so that the blocks do not form a regular pattern */
        MUST(cp_add_adxblock(one, &many[8 * k], cells[block_of[k]] + 8 * (me * DIRECTIONS + k) + k % 3, 8));
        int more = cp_merge(all, one);
        MUST(cp_destroy(all));
        MUST(cp_destroy(one));
        all = more;
    }
    small_comp = cp_map(all);
    MUST(small_comp);
    MUST(cp_sync());
    const timed list[] = {
        {"blocks26_cp", blocks_cp, NULL, 1e9},
        {"blocks26_puts", blocks_puts, NULL, 1e9},
        {"blocks26_copies", blocks_copies, NULL, 1e9},
    };
    measure_all(list, 3);
    MUST(cp_destroy(all));
    MUST(cp_destroy(small_comp));
    MUST(cp_sync());
    MUST(cp_free(cells[me]));
    free(cells);
}

/* --------------------------------------------------------------- transpose */

static double **from_rows, **to_rows;
static int transpose, rows;
static MPI_Datatype *column, *piece;
static int *one_each, *send_at, *recv_at;

static void transpose_cp(void)
{
    cp_sync();
    cp_perform(transpose);
    cp_waitfor(nranks);
}

static void transpose_alltoallw(void)
{
    MPI_Alltoallw(from_rows[me], one_each, send_at, column, to_rows[me], one_each, recv_at, piece,
                  MPI_COMM_WORLD);
}

static void bench_transpose(void)
{
    size_t bytes, words = (size_t)nranks;
    rows = (m + nranks - 1) / nranks;
    m = rows * nranks;
    bytes = (size_t)rows * (size_t)m * sizeof(double);
    from_rows = malloc(words * sizeof *from_rows), to_rows = malloc(words * sizeof *to_rows);
    MUST(cp_malloc((void **)from_rows, bytes));
    MUST(cp_malloc((void **)to_rows, bytes));
    memset(from_rows[me], 1, bytes);
    int all = cp_create(me);
    for (int t = 0; t < nranks; t++) {
        int one = cp_create(t);
        for (int j = 0; j < rows; j++)
            MUST(cp_add_adxslice(one, from_rows[me] + t * rows + j,
                                 (void *)((size_t)m * sizeof(double)), sizeof(double), (unsigned)rows,
                                 to_rows[t] + (size_t)j * (size_t)m + me * rows, NULL,
                                 (unsigned)(rows * (int)sizeof(double)), 1));
        int more = cp_merge(all, one);
        MUST(cp_destroy(all));
        MUST(cp_destroy(one));
        all = more;
    }
    transpose = cp_map(all);
    MUST(transpose);
    MUST(cp_destroy(all));

    column = malloc(words * sizeof *column), piece = malloc(words * sizeof *piece);
    one_each = malloc(words * sizeof(int)), send_at = malloc(words * sizeof(int));
    recv_at = malloc(words * sizeof(int));
    MPI_Datatype one_column, narrow, columns, tile;
    MPI_Type_vector(rows, 1, m, MPI_DOUBLE, &one_column);
    MPI_Type_create_resized(one_column, 0, sizeof(double), &narrow);
    MPI_Type_contiguous(rows, narrow, &columns);
    MPI_Type_vector(rows, rows, m, MPI_DOUBLE, &tile);
    MPI_Type_commit(&columns);
    MPI_Type_commit(&tile);
    for (int t = 0; t < nranks; t++) {
        column[t] = columns, piece[t] = tile, one_each[t] = 1;
        send_at[t] = recv_at[t] = t * rows * (int)sizeof(double);
    }
    const timed list[] = {
        {"transpose_cp", transpose_cp, NULL, 1e6},
        {"transpose_alltoallw", transpose_alltoallw, NULL, 1e6},
    };
    measure_all(list, 2);
    MPI_Type_free(&one_column);
    MPI_Type_free(&narrow);
    MPI_Type_free(&columns);
    MPI_Type_free(&tile);
    MUST(cp_destroy(transpose));
    MUST(cp_sync());
    MUST(cp_free(from_rows[me]));
    MUST(cp_free(to_rows[me]));
    free(from_rows), free(to_rows), free(column), free(piece);
    free(one_each), free(send_at), free(recv_at);
}

/* ------------------------------------------------------------------ mapping */

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void bench_map(void)
{
    enum { N = 1000000 };
    double sample[5];
    void **base = malloc((size_t)nranks * sizeof *base);
    char *out = malloc(N);
    if (!wanted("map_million"))
        return;
    MUST(cp_malloc(base, N));
    memset(out, 0, N);
    MUST(cp_sync());
    long before = peak_kib();
    int simple = cp_create((me + 1) % nranks);
    /* odd addresses, then even ones, so that nothing coalesces while the bytes are added */
    for (int half = 1; half >= 0; half--)
        for (long i = N - 2 + half; i >= 0; i -= 2)
            MUST(cp_add_adxpair(simple, out + i, (char *)base[(me + 1) % nranks] + i));
    for (int r = 0; r < 5; r++) {
        double start = now();
        int mapped = cp_map(simple);
        sample[r] = (now() - start) * 1e6;
        MUST(mapped);
        MUST(cp_destroy(mapped));
    }
    double value = slowest(median(sample, 5));
    if (me == 0) {
        report("map_million", value);
        report("map_million_kib", (double)(peak_kib() - before));
    }
    MUST(cp_destroy(simple));
    MUST(cp_sync());
    MUST(cp_free(base[me]));
    free(base);
    free(out);
}

int main(int argc, char **argv)
{
    int i = 1;
    const char *a;
    MPI_Init(&argc, &argv);
    while ((a = bench_argument(argv, &i)) != NULL) {
        if (strcmp(a, "--best") == 0)
            best = 1;
        else if (strcmp(a, "--x") == 0)
            along_x = 1;
        else if (strcmp(a, "--n") == 0 && argv[i])
            n = atoi(argv[i++]);
        else if (strcmp(a, "--m") == 0 && argv[i])
            m = atoi(argv[i++]);
    }
    MUST(cp_init());
    me = cp_rank(), nranks = cp_nprocs();
    if (ARMCI_Init() != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    bench_halo();
    bench_blocks();
    bench_transpose();
    bench_map();
    ARMCI_Finalize();
    MUST(cp_finalize());
    MPI_Finalize();
    return 0;
}
