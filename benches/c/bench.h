/*
 * Common parts of the C benchmarks: a clock, medians of alternating repetitions, selection of cases
 * by name, and one output line per case:
 *
 *   case<TAB>value
 *
 * Values are microseconds per operation unless the case documents another unit.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNUSED __attribute__((unused))
#define MAX_REPS 64

typedef void (*operation)(void);

static const char *bench_only, *bench_skip;
static int bench_quick;

UNUSED static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

UNUSED static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare_doubles);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

/* Returns whether name is an element of a comma-separated list. */
static int in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, name, len) == 0 && (p[len] == ',' || p[len] == '\0'))
            return 1;
    return 0;
}

UNUSED static int wanted(const char *name)
{
    return (!bench_only || in_list(bench_only, name)) && !in_list(bench_skip, name);
}

/* Processes --only, --skip and --quick. Returns any other argument, or NULL at the end. */
UNUSED static const char *bench_argument(char **argv, int *at)
{
    while (argv[*at]) {
        const char *a = argv[(*at)++];
        if (strcmp(a, "--quick") == 0)
            bench_quick = 1;
        else if (strcmp(a, "--only") == 0 && argv[*at])
            bench_only = argv[(*at)++];
        else if (strcmp(a, "--skip") == 0 && argv[*at])
            bench_skip = argv[(*at)++];
        else
            return a;
    }
    return NULL;
}

UNUSED static void report(const char *name, double value)
{
    printf("%s\t%.6g\n", name, value);
    fflush(stdout);
}

static double seconds_of(operation op, long n)
{
    double start = now();
    for (long i = 0; i < n; i++)
        op();
    return now() - start;
}

/* Returns the number of calls that fill one repetition. The first call, which may touch new pages,
   does not count. */
UNUSED static long calls_for(operation op, operation settle)
{
    double enough = bench_quick ? 0.5e-3 : 2e-3;
    op();
    for (long n = 1;; n *= 2) {
        double s = seconds_of(op, n);
        settle();
        if (s >= enough || n >= 1L << 24)
            return n;
    }
}

/*
 * Stores the median microseconds of each of `count` operations. The operations alternate, so that a
 * disturbance affects all of them. `settle` runs after every batch and is not timed.
 */
UNUSED static void measure(int count, const operation *ops, operation settle, double *us)
{
    enum { MOST = 8 };
    static double sample[MOST][MAX_REPS];
    long calls[MOST];
    int reps = bench_quick ? 7 : 25;
    for (int o = 0; o < count; o++)
        calls[o] = calls_for(ops[o], settle);
    for (int r = 0; r < reps; r++)
        for (int o = 0; o < count; o++) {
            sample[o][r] = seconds_of(ops[o], calls[o]) * 1e6 / (double)calls[o];
            settle();
        }
    for (int o = 0; o < count; o++)
        us[o] = median(sample[o], reps);
}

#endif
