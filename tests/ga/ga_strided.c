/* NGA_Strided_put, _get and _acc: every skip-th element of a patch. */
// TEST: ga
#include "ga_check.h"

#define N 30
#define M 41

static int picked(const int lo[2], const int hi[2], const int skip[2], int i, int j)
{
    return i >= lo[0] && i <= hi[0] && j >= lo[1] && j <= hi[1] &&
           (i - lo[0]) % skip[0] == 0 && (j - lo[1]) % skip[1] == 0;
}

static void one(const elem_type *t, int si, int sj)
{
    int dims[2] = {N, M}, skip[2] = {si, sj}, lo[2] = {2, 1}, hi[2] = {N - 3, M - 2};
    int rows = (hi[0] - lo[0]) / si + 1, cols = (hi[1] - lo[1]) / sj + 1;
    int g = make_array(t, 2, dims, "strided"), ld = cols, whole = M;
    int all_lo[2] = {0, 0}, all_hi[2] = {N - 1, M - 1};
    char *buf = malloc((size_t)(rows * cols) * t->size), *all = malloc(N * M * t->size);
    char seven[16], scale[16];
    CHECK(buf && all, "no memory");
    elem_store(t, seven, 0, 7.0);
    elem_store(t, scale, 0, 2.0);

    GA_Fill(g, seven);
    for (long e = 0; e < rows * cols; e++)
        elem_store(t, buf, e, elem_value(t, 1, e));
    if (ga_me == ga_ranks - 1)
        NGA_Strided_put(g, lo, hi, skip, buf, &ld);
    GA_Sync();
    NGA_Strided_acc(g, lo, hi, skip, buf, &ld, scale);
    GA_Sync();

    double complex factor = 1.0 + 2.0 * ga_ranks;
    NGA_Get(g, all_lo, all_hi, all, &whole);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double complex got = elem_load(t, all, i * M + j), want = 7.0;
            if (picked(lo, hi, skip, i, j))
                want = factor * elem_value(t, 1, (i - lo[0]) / si * cols + (j - lo[1]) / sj);
            CHECK(got == want, "%s, skip %d %d, (%d,%d): %g%+gi, not %g%+gi", t->name, si, sj,
                  i, j, creal(got), cimag(got), creal(want), cimag(want));
        }
    memset(buf, 0, (size_t)(rows * cols) * t->size);
    NGA_Strided_get(g, lo, hi, skip, buf, &ld);
    for (long e = 0; e < rows * cols; e++) {
        double complex got = elem_load(t, buf, e), want = factor * elem_value(t, 1, e);
        CHECK(got == want, "%s, skip %d %d, got element %ld: %g, not %g", t->name, si, sj, e,
              creal(got), creal(want));
    }
    GA_Sync();
    GA_Destroy(g);
    free(buf);
    free(all);
}

int main(int argc, char **argv)
{
    ga_start(&argc, &argv, "ga_strided");
    for (int t = 0; t < ELEM_TYPES; t++) {
        one(&elem_types[t], 1, 1);
        one(&elem_types[t], 2, 3);
        one(&elem_types[t], 5, 1);
        one(&elem_types[t], 1, 4);
    }
    return ga_finish();
}
