/*
 * Shared by the kernels on OpenSHMEM, kernels_shmem_prk.c and kernels_shmem_bale.c, which are
 * the peers of benches/kernels:
 *
 *   oshrun -n N PROGRAM REPEATS [KERNEL ...]
 *
 * Rank 0 prints the fields of a line of benches/kernels, separated by tabs. The problems are the
 * same as there. Debian's OpenSHMEM may crash at the exit of a program, after all lines.
 */
#ifndef KERNELS_SHMEM_H
#define KERNELS_SHMEM_H

#include <math.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_REPEATS = 64, DIRECT = 32, TABLE = 1000 };

typedef struct {
    const char *name, *version;
    void (*run)(void);
} kernel;

static int me, ranks, repeats, sample_count;
static double seconds[MOST_REPEATS], used[MOST_REPEATS], begun, before;

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static double reduced(double value, int sum)
{
    static double in, out, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];
    static long sync[SHMEM_REDUCE_SYNC_SIZE];
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync[i] = SHMEM_SYNC_VALUE;
    in = value;
    shmem_barrier_all();
    if (sum)
        shmem_double_sum_to_all(&out, &in, 1, 0, 0, ranks, work, sync);
    else
        shmem_double_max_to_all(&out, &in, 1, 0, 0, ranks, work, sync);
    shmem_barrier_all();
    return out;
}

static void begins(void)
{
    shmem_barrier_all();
    before = processor();
    begun = wall();
}

static void ends(void)
{
    const double took = wall() - begun, cpu = processor() - before;
    seconds[sample_count] = reduced(took, 0);
    used[sample_count++] = reduced(cpu, 1) / ranks;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(double *v)
{
    qsort(v, (size_t)sample_count, sizeof *v, compare);
    return v[sample_count / 2];
}

static void result(const char *name, const char *version, double work, const char *unit, int right)
{
    const int wrong = reduced(!right, 1) > 0;
    if (me == 0) {
        const double s = middle(seconds);
        printf("%s\tshmem\t%s\t%d\t%.6e\t%.6e\t%.6e\t%s\t%s\n", name, version, ranks, s, middle(used),
               work / s, unit, wrong ? "no" : "yes");
        fflush(stdout);
    }
    sample_count = 0;
}

static void *symmetric(size_t bytes)
{
    void *memory = shmem_malloc(bytes ? bytes : 8);
    if (!memory) {
        fprintf(stderr, "no symmetric memory for %zu bytes: raise SHMEM_SYMMETRIC_SIZE\n", bytes);
        shmem_global_exit(1);
    }
    memset(memory, 0, bytes);
    shmem_barrier_all();
    return memory;
}

/* The generator splitmix64, as in benches/kernels/src/rng.rs. */
static uint64_t mixed(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t seeded(uint64_t seed, int stream)
{
    uint64_t state = seed ^ ((uint64_t)stream + 1) * 0xd1342543de82ef95u;
    mixed(&state);
    return state;
}

static size_t below(uint64_t *state, size_t bound)
{
    return (size_t)(((unsigned __int128)mixed(state) * bound) >> 64);
}

/* Runs the kernels that the arguments name, or all. */
static int run_all(int argc, char **argv, const kernel *kernels, int count)
{
    shmem_init();
    me = shmem_my_pe();
    ranks = shmem_n_pes();
    repeats = argc > 1 ? atoi(argv[1]) : 5;
    if (repeats < 1 || repeats > MOST_REPEATS) {
        fprintf(stderr, "usage: %s REPEATS [KERNEL ...], with 1 to %d repeats\n", argv[0], MOST_REPEATS);
        shmem_global_exit(2);
    }
    for (int k = 0; k < count; k++) {
        int wanted = argc <= 2;
        for (int a = 2; a < argc; a++)
            wanted |= strcmp(argv[a], kernels[k].name) == 0;
        if (wanted)
            kernels[k].run();
    }
    shmem_finalize();
    return 0;
}

#endif
