/* Periodic gets, puts and accumulates: patches that leave the array on one side wrap to the
 * other. */
// TEST: ga
#include "ga_check.h"

#define N 18
#define M 25

static int wrap(int i, int n) { return ((i % n) + n) % n; }

static void one(const elem_type *t, int ilo, int ihi, int jlo, int jhi)
{
    int dims[2] = {N, M}, all_lo[2] = {0, 0}, all_hi[2] = {N - 1, M - 1}, whole = M;
    int lo[2] = {ilo, jlo}, hi[2] = {ihi, jhi}, rows = ihi - ilo + 1, cols = jhi - jlo + 1, ld = cols + 1;
    int g = make_array(t, 2, dims, "periodic");
    char *all = malloc(N * M * t->size), *buf = malloc((size_t)(rows * ld) * t->size), scale[16];
    double complex *want = malloc(sizeof *want * N * M);
    CHECK(all && buf && want, "no memory");
    for (long e = 0; e < N * M; e++) {
        want[e] = elem_value(t, 1, e);
        elem_store(t, all, e, want[e]);
    }
    if (ga_me == 0)
        NGA_Put(g, all_lo, all_hi, all, &whole);
    GA_Sync();

    NGA_Periodic_get(g, lo, hi, buf, &ld);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double complex got = elem_load(t, buf, i * ld + j);
            double complex w = want[wrap(ilo + i, N) * M + wrap(jlo + j, M)];
            CHECK(got == w, "%s, periodic get of (%d,%d): %g%+gi, not %g%+gi", t->name, ilo + i, jlo + j,
                  creal(got), cimag(got), creal(w), cimag(w));
        }
    GA_Sync();

    /* A put by the last rank, then accumulates by all. */
    elem_store(t, scale, 0, 2.0);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            elem_store(t, buf, i * ld + j, elem_value(t, 3, i * ld + j));
            want[wrap(ilo + i, N) * M + wrap(jlo + j, M)] = elem_value(t, 3, i * ld + j) * (1 + 2 * ga_ranks);
        }
    if (ga_me == ga_ranks - 1)
        NGA_Periodic_put(g, lo, hi, buf, &ld);
    GA_Sync();
    NGA_Periodic_acc(g, lo, hi, buf, &ld, scale);
    GA_Sync();
    NGA_Get(g, all_lo, all_hi, all, &whole);
    for (int e = 0; e < N * M; e++)
        CHECK(elem_load(t, all, e) == want[e], "%s, (%d,%d) is %g, not %g after periodic put and accumulate",
              t->name, e / M, e % M, creal(elem_load(t, all, e)), creal(want[e]));
    GA_Sync();
    GA_Destroy(g);
    free(all);
    free(buf);
    free(want);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_periodic");
    for (int t = 0; t < ELEM_TYPES; t++) {
        const elem_type *e = &elem_types[t];
        one(e, 2, 9, 3, 20);                /* inside */
        one(e, -3, 5, 4, 11);               /* across the top edge */
        one(e, 12, N + 2, 10, M + 6);       /* across the lower right corner */
        one(e, -4, 3, -7, 2);               /* across the upper left corner */
        one(e, 5, 6, -2, M - 5);            /* wide, across the left edge */
    }
    return ga_finish();
}
