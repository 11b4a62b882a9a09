/*
 * Global Arrays. Measures the same operations as benches/array.rs with distributed arrays in Rust.
 *
 * scripts/bench.py array runs both alternately. Prints one line per case: name, tab, nanoseconds
 * per call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

static int me, nranks;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void say(const char *name, double nanoseconds)
{
    if (me == 0)
        printf("%s\t%.1f\n", name, nanoseconds);
}

enum op { PUT, GET, ACC, GATHER, SCATTER, SCATTER_ADD };

static int g, lo[3], hi[3], ld[2], count;
static double *buffer, alpha = 1.5;
static int **subs;

static void call(enum op op)
{
    switch (op) {
    case PUT: NGA_Put(g, lo, hi, buffer, ld); break;
    case GET: NGA_Get(g, lo, hi, buffer, ld); break;
    case ACC: NGA_Acc(g, lo, hi, buffer, ld, &alpha); break;
    case GATHER: NGA_Gather(g, buffer, subs, count); break;
    case SCATTER: NGA_Scatter(g, buffer, subs, count); break;
    case SCATTER_ADD: NGA_Scatter_acc(g, buffer, subs, count, &alpha); break;
    }
}

static double measured(enum op op)
{
    call(op);
    for (long calls = 1;; calls *= 2) {
        double begun = now();
        for (long i = 0; i < calls; i++)
            call(op);
        double taken = now() - begun;
        if (taken > 2e7)
            return taken / (double)calls;
    }
}

static void patches(int ndim, int side, const int *sizes)
{
    int dims[3] = {side, side, side}, chunk[3] = {-1, side, side};
    char name[64];
    g = NGA_Create(C_DBL, ndim, dims, "a", chunk);
    GA_Zero(g);
    if (me == 0) {
        for (int k = 0; k < 5; k++) {
            int n = sizes[k];
            int first[3] = {side - n, ndim == 2 ? 512 : 50, 60};
            for (int d = 0; d < ndim; d++) {
                lo[d] = first[d];
                hi[d] = first[d] + n - 1;
            }
            ld[0] = ld[1] = n;
            const char *names[3] = {"put", "get", "acc"};
            for (int op = PUT; op <= ACC; op++) {
                snprintf(name, sizeof name, "%s %dd %d", names[op], ndim, n);
                say(name, measured((enum op)op));
            }
        }
        if (ndim == 2) {
            count = 10000;
            subs = malloc(sizeof *subs * (size_t)count);
            for (long i = 0; i < count; i++) {
                subs[i] = malloc(2 * sizeof(int));
                subs[i][0] = (int)(i * 7919 % 2048);
                subs[i][1] = (int)(i * 104729 % 2048);
            }
            say("gather 10000", measured(GATHER));
            say("scatter 10000", measured(SCATTER));
            say("scatter_add 10000", measured(SCATTER_ADD));
        }
    }
    GA_Sync();
    GA_Destroy(g);
}

static double create(void)
{
    int dims[2] = {256, 512}, chunk[2] = {-1, -1};
    int a = NGA_Create(C_DBL, 2, dims, "c", chunk);
    GA_Destroy(a);
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 1 << 20, 1 << 20);
    me = GA_Nodeid();
    nranks = GA_Nnodes();
    /*
     * 16 bytes after the start of a page, as malloc and Rust place large allocations. Here malloc
     * itself might use the heap.
     */
    void *pages = NULL;
    if (posix_memalign(&pages, 4096, ((size_t)1 << 23) + 4096) != 0)
        GA_Error("no memory for the buffer", 1);
    buffer = (double *)pages + 2;
    for (int i = 0; i < 1 << 20; i++)
        buffer[i] = 1.0; /* write to each page, so that it is not the shared zero page */

    int sizes2[5] = {1, 8, 32, 128, 1024}, sizes3[5] = {1, 4, 10, 25, 100};
    patches(2, 2048, sizes2);
    patches(3, 208, sizes3);

    create();
    GA_Sync();
    double begun = now();
    for (int i = 0; i < 200; i++)
        create();
    say("create 1M", (now() - begun) / 200);

    int dims[3] = {64 * nranks, 64, 64}, width[3] = {1, 1, 1}, chunk[3] = {64, 64, 64};
    int tile = NGA_Create_ghosts(C_DBL, 3, dims, width, "tile", chunk);
    GA_Zero(tile);
    GA_Update_ghosts(tile);
    GA_Sync();
    begun = now();
    for (int i = 0; i < 500; i++)
        GA_Update_ghosts(tile);
    say("ghosts 64", (now() - begun) / 500);
    GA_Destroy(tile);

    int square[2] = {1024, 1024}, any[2] = {-1, -1};
    int a = NGA_Create(C_DBL, 2, square, "a", any), c = NGA_Create(C_DBL, 2, square, "c", any);
    double value = 0.5;
    GA_Fill(a, &value);
    GA_Dgemm('N', 'N', 1024, 1024, 1024, 1.0, a, a, 0.0, c);
    GA_Sync();
    begun = now();
    for (int i = 0; i < 2; i++)
        GA_Dgemm('N', 'N', 1024, 1024, 1024, 1.0, a, a, 0.0, c);
    say("product 1024", (now() - begun) / 2);
    GA_Destroy(a);
    GA_Destroy(c);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
