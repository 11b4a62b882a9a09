/* Accumulates of every type with a scale, by all ranks into the same patch at the same time: no
 * update may be lost. */
// TEST: ga ga-moving
#include "ga_check.h"

#define N 19
#define M 23
#define ROUNDS 12

static void one(const elem_type *t)
{
    int dims[2] = {N, M}, lo[2] = {2, 3}, hi[2] = {N - 2, M - 1}, ld = M;
    int g = make_array(t, 2, dims, "sum");
    char *buf = malloc(N * M * t->size), scale[16];
    double complex factor = t->is_complex ? 2.0 - 1.0 * I : 3.0;
    CHECK(buf, "no memory");
    elem_store(t, scale, 0, factor);
    GA_Zero(g);
    GA_Sync();

    for (int r = 0; r < ROUNDS; r++) {
        for (long e = 0; e < N * M; e++)
            elem_store(t, buf, e, elem_value(t, ga_me, e + r));
        NGA_Acc(g, lo, hi, buf, &ld, scale);
    }
    GA_Sync();

    int all_lo[2] = {0, 0}, all_hi[2] = {N - 1, M - 1};
    NGA_Get(g, all_lo, all_hi, buf, &ld);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double complex want = 0, got = elem_load(t, buf, i * M + j);
            int inside = i >= lo[0] && i <= hi[0] && j >= lo[1] && j <= hi[1];
            long e = (long)(i - lo[0]) * M + (j - lo[1]);
            for (int q = 0; inside && q < ga_ranks; q++)
                for (int r = 0; r < ROUNDS; r++)
                    want += factor * elem_value(t, q, e + r);
            CHECK(got == want, "%s (%d,%d): %g%+gi, not %g%+gi", t->name, i, j,
                  creal(got), cimag(got), creal(want), cimag(want));
        }
    GA_Sync();
    GA_Destroy(g);
    free(buf);
}

/* One element updated by all ranks, with the scale 1 and a negative scale. */
static void hot_spot(void)
{
    int dims[1] = {3}, at[1] = {1}, ld = 1;
    int g = make_array(elem_double, 1, dims, "hot");
    double plus = 1.0, minus = -0.5, v = 2.0, all[3];
    GA_Zero(g);
    for (int r = 0; r < 500; r++) {
        NGA_Acc(g, at, at, &v, &ld, &plus);
        NGA_Acc(g, at, at, &v, &ld, &minus);
    }
    GA_Sync();
    int lo[1] = {0}, hi[1] = {2};
    NGA_Get(g, lo, hi, all, &ld);
    CHECK(all[1] == 500.0 * ga_ranks, "sum is %g, not %g", all[1], 500.0 * ga_ranks);
    CHECK(all[0] == 0 && all[2] == 0, "neighbours are %g and %g", all[0], all[2]);
    GA_Sync();
    GA_Destroy(g);
}

/* A get sees this rank's own earlier accumulates, also after a put. */
static void in_order(void)
{
    int dims[1] = {64 * ga_ranks}, ld = 1;
    int g = make_array(elem_double, 1, dims, "order");
    double one = 1.0;
    for (int r = 0; r < 200; r++) {
        /* A different owner each round, but an element that only this rank uses. */
        int at[1] = {64 * ((ga_me + r) % ga_ranks) + ga_me % 64};
        double v = r, add = 0.25, got = -1;
        NGA_Put(g, at, at, &v, &ld);
        NGA_Acc(g, at, at, &add, &ld, &one);
        NGA_Get(g, at, at, &got, &ld);
        CHECK(got == r + 0.25, "round %d: put, accumulate, get gave %g", r, got);
    }
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_acc");
    for (int t = 0; t < ELEM_TYPES; t++)
        one(&elem_types[t]);
    hot_spot();
    in_order();
    return ga_finish();
}
