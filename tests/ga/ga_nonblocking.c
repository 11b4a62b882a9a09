/* Non-blocking puts, gets and accumulates: many under way at once, waited for in any order, tested,
 * and with buffers reused after the wait. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 48
#define BANDS 12            /* bands of N / BANDS rows */
#define ROWS (N / BANDS)

static void band(int b, int lo[2], int hi[2])
{
    lo[0] = b * ROWS;
    hi[0] = lo[0] + ROWS - 1;
    lo[1] = 0;
    hi[1] = N - 1;
}

static void one(const elem_type *t)
{
    int dims[2] = {N, N}, lo[2], hi[2], ld = N;
    int g = make_array(t, 2, dims, "nonblocking");
    char *out = malloc(N * N * t->size), *in = malloc(N * N * t->size), scale[16];
    size_t step = ROWS * N * t->size;
    ga_nbhdl_t handle[BANDS];
    CHECK(out && in, "no memory");
    GA_Zero(g);

    for (long e = 0; e < N * N; e++)
        elem_store(t, out, e, elem_value(t, 4, e));
    for (int b = ga_me; b < BANDS; b += ga_ranks) {
        band(b, lo, hi);
        NGA_NbPut(g, lo, hi, out + (size_t)b * step, &ld, &handle[b]);
    }
    for (int b = ga_me; b < BANDS; b += ga_ranks)
        NGA_NbWait(&handle[b]);
    GA_Sync();

    /* Gets of all bands at once, waited for in reverse order. */
    memset(in, 0x77, N * N * t->size);
    for (int b = 0; b < BANDS; b++) {
        band(b, lo, hi);
        NGA_NbGet(g, lo, hi, in + (size_t)b * step, &ld, &handle[b]);
    }
    for (int b = BANDS - 1; b >= 0; b--) {
        NGA_NbWait(&handle[b]);
        for (long e = b * ROWS * N; e < (b + 1) * ROWS * N; e++)
            CHECK(elem_load(t, in, e) == elem_value(t, 4, e), "%s, get of element %ld: %g, not %g", t->name,
                  e, creal(elem_load(t, in, e)), creal(elem_value(t, 4, e)));
    }
    GA_Sync();

    /* Accumulates by all ranks into all bands. */
    elem_store(t, scale, 0, 2.0);
    for (int b = 0; b < BANDS; b++) {
        band((b + ga_me) % BANDS, lo, hi);
        NGA_NbAcc(g, lo, hi, out + (size_t)((b + ga_me) % BANDS) * step, &ld, scale, &handle[b]);
    }
    for (int b = 0; b < BANDS; b++)
        NGA_NbWait(&handle[b]);
    GA_Sync();
    lo[0] = lo[1] = 0;
    hi[0] = hi[1] = N - 1;
    NGA_NbGet(g, lo, hi, in, &ld, &handle[0]);
    NGA_NbWait(&handle[0]);
    for (long e = 0; e < N * N; e++)
        CHECK(elem_load(t, in, e) == (1 + 2 * ga_ranks) * elem_value(t, 4, e),
              "%s, accumulated element %ld: %g", t->name, e, creal(elem_load(t, in, e)));
    GA_Sync();
    GA_Destroy(g);
    free(out);
    free(in);
}

/* A test of a handle eventually reports completion, and the handle can be reused. */
static void test_and_reuse(void)
{
    int dims[1] = {100 * ga_ranks}, ld = 1;
    int g = make_array(elem_double, 1, dims, "reused");
    double v, got;
    ga_nbhdl_t handle;
    GA_Zero(g);
    for (int r = 0; r < 300; r++) {
        int at[1] = {100 * ((ga_me + r) % ga_ranks) + ga_me % 100};
        v = r + 1000.0 * ga_me;
        NGA_NbPut(g, at, at, &v, &ld, &handle);
        NGA_NbWait(&handle);
        NGA_NbGet(g, at, at, &got, &ld, &handle);
        /* 0 means done; the limit keeps a library that never reports it from hanging the test. */
        for (int tries = 0; NGA_NbTest(&handle) != 0 && tries < 1000; tries++)
            ;
        NGA_NbWait(&handle);
        CHECK(got == v, "round %d: %g, not %g", r, got, v);
    }
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_nonblocking");
    for (int t = 0; t < ELEM_TYPES; t++)
        one(&elem_types[t]);
    test_and_reuse();
    return ga_finish();
}
