/*
 * Shared by the Global Arrays tests. A test is one program:
 *
 *   int main(int argc, char **argv)
 *   {
 *       ga_start(&argc, &argv, "name");
 *       CHECK(condition, "what went wrong: %d", value);
 *       return ga_finish();
 *   }
 *
 * It runs on any number of ranks. Rank 0 prints `PASS name` at the end. If a CHECK fails, its rank
 * prints `FAIL name: ...` and ends the whole job with status 1.
 */
#ifndef GA_CHECK_H
#define GA_CHECK_H

#include <complex.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

#define CHECK(ok, ...) \
    do { \
        if (!(ok)) \
            ga_fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

static const char *ga_test_name;
static int ga_me, ga_ranks;

__attribute__((noreturn, format(printf, 3, 4), unused))
static void ga_fail(const char *file, int line, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    printf("FAIL %s: rank %d of %d, %s:%d: %s\n", ga_test_name, ga_me, ga_ranks,
           file, line, what);
    fflush(stdout);
    /* An abort also closes the launcher's pipes, so give the line time to get through. */
    for (double until = MPI_Wtime() + 0.1; MPI_Wtime() < until;)
        ;
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Starts a test. `limit` is the maximum of global array memory per rank in bytes, 0 for no
 * limit. */
__attribute__((unused))
static void ga_start_limited(int *argc, char ***argv, const char *name, size_t limit)
{
    ga_test_name = name;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &ga_me);
    MPI_Comm_size(MPI_COMM_WORLD, &ga_ranks);
    if (limit)
        GA_Initialize_ltd(limit);
    else
        GA_Initialize();
    CHECK(MA_init(C_DBL, 1 << 20, 1 << 20), "MA_init failed");
    CHECK(GA_Nodeid() == ga_me && GA_Nnodes() == ga_ranks,
          "GA says rank %d of %d", GA_Nodeid(), GA_Nnodes());
}

__attribute__((unused))
static void ga_start(int *argc, char ***argv, const char *name)
{
    ga_start_limited(argc, argv, name, 0);
}

/* Ends a test; returns the exit status for main. */
__attribute__((unused))
static int ga_finish(void)
{
    GA_Sync();
    GA_Terminate();
    MPI_Barrier(MPI_COMM_WORLD);
    if (ga_me == 0)
        printf("PASS %s\n", ga_test_name);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

/* The element types. Values are small whole numbers, exact in all of them. */
typedef struct {
    int id;
    const char *name;
    size_t size;
    int is_complex;
} elem_type;

__attribute__((unused))
static const elem_type elem_types[] = {
    {C_INT, "int", sizeof(int), 0},
    {C_LONG, "long", sizeof(long), 0},
    {C_FLOAT, "float", sizeof(float), 0},
    {C_DBL, "double", sizeof(double), 0},
    {C_SCPL, "single complex", 2 * sizeof(float), 1},
    {C_DCPL, "double complex", 2 * sizeof(double), 1},
};
#define ELEM_TYPES ((int)(sizeof elem_types / sizeof *elem_types))

__attribute__((unused))
static void elem_store(const elem_type *t, void *base, long at, double complex z)
{
    char *p = (char *)base + at * (long)t->size;
    int i = (int)creal(z);
    long l = (long)creal(z);
    float f[2] = {(float)creal(z), (float)cimag(z)};
    double d[2] = {creal(z), cimag(z)};
    const void *from = t->id == C_INT ? (void *)&i : t->id == C_LONG ? (void *)&l
                     : t->id == C_FLOAT || t->id == C_SCPL ? (void *)f : (void *)d;
    memcpy(p, from, t->size);
}

__attribute__((unused))
static double complex elem_load(const elem_type *t, const void *base, long at)
{
    const char *p = (const char *)base + at * (long)t->size;
    int i;
    long l;
    float f[2] = {0, 0};
    double d[2] = {0, 0};
    switch (t->id) {
    case C_INT: memcpy(&i, p, t->size); return i;
    case C_LONG: memcpy(&l, p, t->size); return (double)l;
    case C_FLOAT: case C_SCPL: memcpy(f, p, t->size); return f[0] + f[1] * I;
    default: memcpy(d, p, t->size); return d[0] + d[1] * I;
    }
}

/* Returns a value that identifies an element: by seed and position. */
__attribute__((unused))
static double complex elem_value(const elem_type *t, int seed, long at)
{
    long re = (at * 31 + seed * 7) % 1009 - 300, im = (at * 17 + seed * 5) % 503 - 150;
    return (double)re + (t->is_complex ? (double)im * I : 0);
}

/* Returns a small reproducible number: the same sequence on every rank for the same state. */
__attribute__((unused))
static int ga_random(unsigned *state, int below)
{
    *state = *state * 1103515245u + 12345u;
    return (int)((*state >> 8) % (unsigned)below);
}

/* Stores the bounds of this rank's part of g; returns 0 if it owns none. */
__attribute__((unused))
static int owned(int g, int lo[], int hi[])
{
    NGA_Distribution(g, ga_me, lo, hi);
    return lo[0] >= 0 && hi[0] >= lo[0];
}

__attribute__((unused))
static int make_array(const elem_type *t, int ndim, int dims[], const char *name)
{
    int g = NGA_Create(t->id, ndim, dims, (char *)name, NULL);
    CHECK(g != 0, "cannot create %s of %s", name, t->name);
    return g;
}

static const elem_type *const elem_double = &elem_types[3];

/* Creates an n x m array of doubles. */
__attribute__((unused))
static int make_matrix(int n, int m, const char *name)
{
    int dims[2] = {n, m};
    return make_array(elem_double, 2, dims, name);
}

/* Gets the whole matrix; the caller frees the result. */
__attribute__((unused))
static double *whole_matrix(int g, int n, int m)
{
    int lo[2] = {0, 0}, hi[2] = {n - 1, m - 1};
    double *all = malloc(sizeof(double) * (size_t)n * (size_t)m);
    CHECK(all != NULL, "no memory");
    NGA_Get(g, lo, hi, all, &m);
    return all;
}

/* Rank 0 puts the whole matrix. */
__attribute__((unused))
static void set_matrix(int g, int n, int m, double *all)
{
    int lo[2] = {0, 0}, hi[2] = {n - 1, m - 1};
    GA_Sync();
    if (ga_me == 0)
        NGA_Put(g, lo, hi, all, &m);
    GA_Sync();
}

#endif
